# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the costs that nobody knows exactly decides whether an arm is faster.

SALib draws points and makes indices of what was simulated there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy
from SALib.analyze import morris as analyze_morris
from SALib.analyze import sobol as analyze_sobol
from SALib.sample import morris as sample_morris
from SALib.sample import sobol as sample_sobol

import perch
from perch import _vary


@dataclass(frozen=True)
class Index:
    """How much the change between the arms depends on one key."""

    key: str
    effect: float
    """Morris: the mean size of an elementary effect (mu*), in percentage points over the key's
    range. Sobol: the share of the variance that is the key's, with all that it does together with
    others (total order)."""
    conf95: float
    """Half the width of the effect's 95 % confidence interval."""
    alone: float
    """Morris: the mean effect with its sign (mu). Sobol: the share that is the key's alone (first
    order)."""


@dataclass(frozen=True)
class Flip:
    """A point at which the verdict is not the one at the spec's own values."""

    values: dict[str, float]
    change_pct: float


@dataclass(frozen=True)
class Sensitivity:
    """The result of `analyze`."""

    score: str
    base_pct: float
    """The change from the first arm to the second at the spec's own values, in percent."""
    indices: list[Index]
    """One for each key, the greatest effect first."""
    points: list[dict[str, float]]
    """The values at which was simulated."""
    change_pct: list[float]
    """The change at each point."""
    flips: list[Flip]
    """The points at which the change has another sign than `base_pct`."""


def analyze(
    spec: Mapping[str, Any],
    axes: _vary.Axes,
    *,
    arms: Mapping[str, str] = perch.ARMS,
    score: str | None = None,
    method: Literal["morris", "sobol"] = "morris",
    samples: int = 8,
    seed: int = 1,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Sensitivity:
    """Vary keys of a simulation, and tell which of them decides the change between two arms.

    Morris takes `samples` * (keys + 1) points and says which keys matter; Sobol takes `samples` *
    (keys + 2), where `samples` is a power of 2, and shares the variance out. At each point both
    arms are simulated. `score` is the first one where none is named.
    """
    _vary.check(axes)
    if len(arms) != 2:
        raise ValueError(f"{len(arms)} arms: expected two")
    problem = {
        "num_vars": len(axes),
        "names": list(axes),
        "bounds": [[float(low), float(high)] for low, high in axes.values()],
    }
    if method == "morris":
        drawn = sample_morris.sample(problem, samples, seed=seed)
    elif method == "sobol":
        drawn = sample_sobol.sample(problem, samples, calc_second_order=False, seed=seed)
    else:
        raise ValueError(f"method {method}: expected morris or sobol")
    points = [_vary.values(axes, point) for point in drawn]
    specs = [
        _vary.changed(spec, point) | {"modes": modes}
        for point in [{}, *points]
        for modes in arms.values()
    ]
    results = _vary.simulate(specs, store, jobs)
    means = [_vary.mean(found, score) for found in results]
    if 0 in means[::2]:
        raise ValueError("the first arm's score is 0, from which there is no change in percent")
    base, *change = [100 * (b / a - 1) for a, b in zip(means[::2], means[1::2])]
    if min(change) == max(change):
        # Shares of a variance of 0 are undefined.
        zeros = [0.0] * len(axes)
        found, columns = {"none": zeros}, ("none", "none", "none")
    elif method == "morris":
        found = analyze_morris.analyze(problem, drawn, numpy.array(change), seed=seed)
        columns = ("mu_star", "mu_star_conf", "mu")
    else:
        found = analyze_sobol.analyze(
            problem, numpy.array(change), calc_second_order=False, seed=seed
        )
        columns = ("ST", "ST_conf", "S1")
    rows = zip(axes, *(numpy.asarray(found[column], dtype=float) for column in columns))
    indices = [Index(key, *map(float, row)) for key, *row in rows]
    indices.sort(key=lambda index: -index.effect)
    named = score or results[0]["result"]["scores"][0]["name"]
    pairs = list(zip(points, change))
    flips = [Flip(point, pct) for point, pct in pairs if (pct > 0) != (base > 0)]
    return Sensitivity(named, base, indices, points, change, flips)
