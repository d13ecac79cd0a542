# SPDX-License-Identifier: GPL-2.0-or-later
"""Values of unknown costs with which simulations come closest to what was measured.

Optuna proposes values. Some cells are held out: an error there that is far greater than the one on
the fitted cells says that the values learned the cells and not the machine.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna

from perch import _vary


@dataclass(frozen=True)
class Cell:
    """A measured figure, and the simulation that should give it."""

    spec: Mapping[str, Any]
    measured: float
    """The score's mean, in the unit of the simulation's score."""
    score: str | None = None
    """The first score where none is named."""


@dataclass(frozen=True)
class Fit:
    """The result of `fit`."""

    values: dict[str, float]
    """The best values found."""
    error_pct: float
    """The mean distance between the measured and the simulated figures of the fitted cells, in
    percent of the measured ones."""
    held_out_error_pct: float | None
    """The same of the cells that were held out; None where there are none."""
    held_out: list[int]
    """The places of those cells."""
    simulated: list[float]
    """The simulated figure of each cell at the best values."""
    trials: int


def fit(
    cells: Sequence[Cell],
    axes: _vary.Axes,
    *,
    hold_out: float | Collection[int] = 0.25,
    trials: int = 50,
    seed: int = 1,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Fit:
    """Look for the values of keys with which the simulations are nearest to the measured figures.

    `hold_out` is the share of the cells that the search does not see, which are drawn by `seed`, or
    their places in `cells`.
    """
    _vary.check(axes)
    held_out = _held_out(len(cells), hold_out, seed)
    seen = [place for place in range(len(cells)) if place not in held_out]
    if not seen:
        raise ValueError(f"{len(cells)} cells, {len(held_out)} held out: none is left to fit")
    for place, cell in enumerate(cells):
        if not cell.measured > 0:
            raise ValueError(f"cell {place}: measured {cell.measured}: expected more than 0")

    def simulated(places: Sequence[int], values: Mapping[str, float]) -> list[float]:
        specs = [_vary.changed(cells[place].spec, values) for place in places]
        results = _vary.simulate(specs, store, jobs)
        return [_vary.mean(found, cells[place].score) for place, found in zip(places, results)]

    def error(places: Sequence[int], figures: Sequence[float]) -> float:
        apart = [abs(figure / cells[at].measured - 1) for at, figure in zip(places, figures)]
        return 100 * sum(apart) / len(apart)

    def objective(trial: optuna.Trial) -> float:
        values: dict[str, float] = {}
        for key, (low, high) in axes.items():
            if _vary.is_whole(axes, key):
                values[key] = trial.suggest_int(key, int(low), int(high))
            else:
                values[key] = trial.suggest_float(key, low, high)
        return error(seen, simulated(seen, values))

    sampler = optuna.samplers.TPESampler(seed=seed)
    # optuna prints a line for each trial.
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.WARNING))
    try:
        study = optuna.create_study(sampler=sampler, direction="minimize")
        study.optimize(objective, n_trials=trials)
    finally:
        optuna.logging.set_verbosity(level)
    best = dict(study.best_params)
    figures = simulated(range(len(cells)), best)
    apart = [figures[place] for place in held_out]
    return Fit(
        values=best,
        error_pct=study.best_value,
        held_out_error_pct=error(held_out, apart) if held_out else None,
        held_out=held_out,
        simulated=figures,
        trials=trials,
    )


def _held_out(cells: int, hold_out: float | Collection[int], seed: int) -> list[int]:
    if isinstance(hold_out, Collection):
        unknown = [place for place in hold_out if not 0 <= place < cells]
        if unknown:
            raise ValueError(f"hold_out: {unknown}: expected places from 0 to {cells - 1}")
        return sorted(set(hold_out))
    if not 0 <= hold_out < 1:
        raise ValueError(f"hold_out {hold_out}: expected a share from 0 to below 1")
    return sorted(random.Random(seed).sample(range(cells), round(hold_out * cells)))
