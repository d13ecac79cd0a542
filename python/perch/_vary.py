# SPDX-License-Identifier: GPL-2.0-or-later
"""A simulation of which some keys get values, and many of them at once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import perch

Axes = Mapping[str, tuple[float, float]]
"""The lowest and the highest value of each key: `hardware.…` and `numa.…` of the machine's file,
and `workload.KEY`. Two whole numbers are a range of whole numbers."""


def check(axes: Axes) -> None:
    """Refuse ranges that make no sense."""
    if not axes:
        raise ValueError("axes: expected at least one key and its range")
    for key, (low, high) in axes.items():
        if not key.startswith(("hardware.", "numa.", "workload.")):
            raise ValueError(f"axes: `{key}`: expected hardware.…, numa.… or workload.KEY")
        if not low < high:
            raise ValueError(f"axes: `{key}`: {low} to {high}: expected a lower and a higher value")


def is_whole(axes: Axes, key: str) -> bool:
    """Return whether the key's values are whole numbers."""
    return all(isinstance(end, int) for end in axes[key])


def values(axes: Axes, point: Sequence[float]) -> dict[str, float]:
    """Return the values of the keys at a point, whole where their range is."""
    return {
        key: round(float(value)) if is_whole(axes, key) else float(value)
        for key, value in zip(axes, point)
    }


def changed(spec: Mapping[str, Any], given: Mapping[str, float]) -> dict[str, Any]:
    """Return the simulation with these values."""
    made = dict(spec) | {"changed": dict(spec.get("changed", {}))}
    for key, value in given.items():
        if key.startswith("workload."):
            workload = made["workload"]
            separator = "," if ":" in workload else ":"
            made["workload"] = f"{workload}{separator}{key.removeprefix('workload.')}={value}"
        else:
            made["changed"][key] = value
    return made


def simulate(
    specs: Sequence[Mapping[str, Any]],
    store: str | os.PathLike[str] | None,
    jobs: int | None,
) -> list[dict[str, Any]]:
    """Return the results of simulations, each of which is made once, on `jobs` threads."""
    texts = [json.dumps(spec) for spec in specs]
    distinct = list(dict.fromkeys(texts))
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        found = dict(zip(distinct, pool.map(lambda text: perch.simulate(text, store), distinct)))
    return [found[text] for text in texts]


def mean(found: Mapping[str, Any], score: str | None) -> float:
    """Return the mean of a score over its repetitions: of the first one where none is named."""
    scores = found["result"]["scores"]
    named = [one for one in scores if score in (None, one["name"])]
    if not named:
        known = ", ".join(one["name"] for one in scores)
        raise ValueError(f"score {score}: no such score: expected one of {known}")
    counted: list[float] = [value for value in named[0]["values"] if value is not None]
    workload = found["simulation"]["workload"]
    if not counted:
        raise ValueError(f"{workload}: nothing was counted for `{named[0]['name']}`: measure longer")
    return sum(counted) / len(counted)
