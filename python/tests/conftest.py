# SPDX-License-Identifier: GPL-2.0-or-later
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


def results(store: Path) -> dict[str, bytes]:
    """Return the bytes of each result in a store by its key."""
    return {path.stem: path.read_bytes() for path in store.glob("results/*/*.json")}
