# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots of comparisons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from perch import Comparison


def comparison(found: Comparison, score: str | None = None, **kwargs: Any) -> Figure:
    """Draw a panel for each score, or for one: a bar for each arm, with its 95 % interval.

    The figure belongs to no window: a notebook shows it, and `savefig` writes it. `kwargs` go to
    the figure.
    """
    # pyplot, which needs a backend, is left alone.
    from matplotlib.figure import Figure

    read = json.loads(found.json)
    known = [row["name"] for row in read["scores"]]
    if score is not None and score not in known:
        raise ValueError(f"score {score}: no such score: expected one of {', '.join(known)}")
    rows = [row for row in read["scores"] if score in (None, row["name"])]
    figure = Figure(**{"figsize": (3.2 * len(rows), 3.2), "layout": "constrained"} | kwargs)
    panels = figure.subplots(1, len(rows), squeeze=False)[0]
    for panel, row in zip(panels, rows):
        names = [arm["arm"] for arm in row["arms"]]
        means = [arm["mean"] for arm in row["arms"]]
        halves = [arm["ci95"] or 0.0 for arm in row["arms"]]
        colours = [f"C{index}" for index in range(len(names))]
        panel.bar(names, means, yerr=halves, color=colours, capsize=4)
        better = "more" if row["higher_is_better"] else "less"
        panel.set_title(f"{row['name']} ({better} is better)", fontsize="medium")
        panel.set_ylabel(row["unit"])
    figure.suptitle(f"{read['workload']} on {read['machine']}, Linux {read['era']}")
    return figure
