# SPDX-License-Identifier: GPL-2.0-or-later
"""perch, a simulator of the Linux scheduler's wake-up path: docs/python.md tells how to use it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from perch import _perch
from perch._perch import (
    MODEL,
    Comparison,
    Machine,
    Recording,
    Rows,
    Store,
    Sweep,
    Table,
    __version__,
    machine,
    machines,
    replay,
    simulate_json,
    workloads,
)

__all__ = [
    "MODEL",
    "Comparison",
    "Machine",
    "Recording",
    "Rows",
    "Store",
    "Sweep",
    "Table",
    "__version__",
    "compare",
    "key",
    "machine",
    "machines",
    "replay",
    "simulate",
    "simulate_json",
    "workloads",
]

Spec = Mapping[str, Any] | str
"""A simulation: its keys (docs/sweeps.md), or their JSON."""

ARMS = {"stock": "off", "posted": "cluster=posted"}
"""The arms that `compare` compares where none are given."""


def _text(spec: Spec) -> str:
    return spec if isinstance(spec, str) else json.dumps(dict(spec))


def simulate(
    spec: Spec, store: str | os.PathLike[str] | None = None, *, allow_scx: bool = False
) -> dict[str, Any]:
    """Simulate, and return what `perch simulate` prints.

    The result is taken from the store where it is there, and kept there. A score that nothing was
    counted for is None. Modes `scx:FILE` are the code of others, which runs only with `allow_scx`.
    """
    found: dict[str, Any] = json.loads(simulate_json(_text(spec), store, allow_scx))
    return found


def key(spec: Spec, *, allow_scx: bool = False) -> str:
    """Return the key under which a store keeps the simulation's result."""
    return _perch.key(_text(spec), allow_scx)


def compare(
    machine: str,
    workload: str,
    arms: Mapping[str, str] = ARMS,
    *,
    era: str = "7.2",
    effort: str | Mapping[str, int] = "quick",
    seed: int = 1,
    jobs: int | None = None,
    hz: int = 250,
    root_domain: str = "stock",
) -> Comparison:
    """Compare arms, names and modes, on a workload, as `perch compare` does.

    Changes are from the first arm. `effort` is "quick", "normal", "full" or a mapping of
    warmup_ms, measure_ms and repetitions. Results do not depend on `jobs`, the number of threads.
    """
    effort = json.dumps(effort if isinstance(effort, str) else dict(effort))
    pairs = list(arms.items())
    return _perch.compare(machine, workload, pairs, era, effort, seed, jobs, hz, root_domain)
