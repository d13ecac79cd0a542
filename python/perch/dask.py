# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps on the workers of a dask cluster: LocalCluster, dask-jobqueue's SLURMCluster, others.

The workers need perch and nothing else: they get simulations as JSON and return results as JSON.
The store is the client's, and no folder is shared, except for workloads that read files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future, as_completed

import perch

BATCH_SECONDS = 0.5
"""What a task should take where `batch` is not given: dask's scheduler spends some 1 ms on a task."""

MOST_IN_A_BATCH = 256

AHEAD = 4
"""Tasks for each thread of the workers that wait in dask. The others wait here: dask's scheduler
keeps some kilobytes for each."""


@dataclass
class Done:
    """The numbers of a sweep's simulations."""

    all: int = 0
    """Simulations of the sweep, each once."""
    had: int = 0
    """Those that the store had before."""
    made: int = 0
    """Those that were made now."""
    failed: list[str] = field(default_factory=list)
    """The messages of those that failed."""


class WorkerError(RuntimeError):
    """A worker that has no perch, or another one."""


def _model() -> str:
    """Return the model of the process that this runs in."""
    import perch

    return perch.MODEL


def _simulate(specs: list[str]) -> tuple[list[tuple[str | None, str | None]], float]:
    """Return the result or the error of each simulation, and the seconds that all took."""
    import perch

    begin = time.perf_counter()
    results: list[tuple[str | None, str | None]] = []
    for spec in specs:
        try:
            results.append((perch.simulate_json(spec), None))
        except (ValueError, RuntimeError) as error:
            results.append((None, str(error)))
    return results, time.perf_counter() - begin


def check(client: Client) -> None:
    """Refuse workers that have another perch than this process, or none.

    A worker that joins later is refused by the store: a result carries its model.
    """
    models = client.run(_model, on_error="return")
    if not models:
        raise WorkerError("the cluster has no workers: expected at least one")
    for worker, model in sorted(models.items()):
        if isinstance(model, Exception):
            raise WorkerError(
                f"worker {worker}: {type(model).__name__}: {model}; install this perch there"
            )
        if model != perch.MODEL:
            raise WorkerError(
                f"worker {worker} has perch of model {model}, and this one is {perch.MODEL}: "
                "install the same perch in both places"
            )


def run(
    sweep: perch.Sweep,
    client: Client,
    store: str | os.PathLike[str],
    *,
    batch: int | None = None,
    shard: str = "1/1",
    progress: Callable[[int, int], object] | None = None,
) -> Done:
    """Simulate on a cluster what the store does not have, and keep each result as it comes.

    `batch` is the number of simulations of a task; without one it follows from what the first ones
    took. `progress` is called with the number done and the number to do. The tasks of a worker that
    is lost are done again by dask. After an error, or Ctrl-C, what was made stays in the store.
    """
    if batch is not None and batch < 1:
        raise ValueError(f"batch {batch}: expected at least 1")
    whole = sweep.specs(shard)
    kept = perch.Store(store)
    there = set(kept.keys())
    specs = [spec for key, spec in whole if key not in there]
    done = Done(all=len(whole), had=len(whole) - len(specs))
    if not specs:
        return done
    check(client)
    for results in _results(client, specs, batch):
        for text, message in results:
            if text is None:
                done.failed.append(message or "")
            else:
                kept.put(text)
                done.made += 1
        if progress is not None:
            progress(done.made + len(done.failed), len(specs))
    done.failed.sort()
    return done


def _results(
    client: Client, specs: list[str], batch: int | None
) -> Iterator[list[tuple[str | None, str | None]]]:
    """Yield the results of each task as it ends."""
    waiting = iter(specs)
    size = batch or 1
    tasks = as_completed()
    pending: set[Future[Any]] = set()

    def submit() -> None:
        # Workers come and go: a cluster that grows gets more.
        threads = sum(client.nthreads().values())
        while len(pending) < AHEAD * max(threads, 1):
            some = [spec for _, spec in zip(range(size), waiting)]
            if not some:
                return
            # Not pure: nobody asks for the same task twice, and a key for it would cost a digest.
            task = client.submit(_simulate, some, pure=False)
            pending.add(task)
            tasks.add(task)

    try:
        submit()
        for task in tasks:
            results, seconds = task.result()
            pending.discard(task)
            if batch is None:
                each = max(seconds / len(results), 1e-6)
                size = max(1, min(int(BATCH_SECONDS / each), MOST_IN_A_BATCH, 2 * len(results)))
            submit()
            yield results
    finally:
        if pending:
            client.cancel(list(pending))
