# SPDX-License-Identifier: GPL-2.0-or-later
import json
import os
import subprocess
from pathlib import Path

import pytest

import perch

SWEEP = """
machine = "x5570"
workload = "pipe"
effort = { warmup_ms = 1, measure_ms = 2, repetitions = 2 }
baseline = "stock"

[axes]
workload.pairs = [1, 4]
hardware.transfer_ns.llc = [25, 40]
arm = { stock = "off", posted = "cluster=posted" }
"""


@pytest.fixture
def sweep() -> perch.Sweep:
    return perch.Sweep.from_toml(SWEEP)


@pytest.fixture
def spec() -> dict:
    return {
        "machine": "x5570",
        "workload": "pipe:pairs=2",
        "effort": {"warmup_ms": 1, "measure_ms": 2, "repetitions": 2},
    }


@pytest.fixture
def program(spec, tmp_path) -> str:
    """A perch of the same model, if scripts/python-test found one."""
    program = os.environ.get("PERCH_PROGRAM")
    if program is None:
        pytest.skip("PERCH_PROGRAM names no perch")
    file = tmp_path / "of-which-model.json"
    file.write_text(json.dumps(spec))
    ran = subprocess.run([program, "simulate", file], check=False, capture_output=True)
    if ran.returncode != 0 or json.loads(ran.stdout)["model"] != perch.MODEL:
        pytest.skip(f"{program} is of another model")
    return program


def results(store: Path) -> dict[str, bytes]:
    """Return the bytes of each result in a store by its key."""
    return {path.stem: path.read_bytes() for path in store.glob("results/*/*.json")}
