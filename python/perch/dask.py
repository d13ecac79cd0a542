# SPDX-License-Identifier: GPL-2.0-or-later
"""Sweeps on the workers of a dask cluster: LocalCluster, dask-jobqueue's SLURMCluster, others.

The workers need perch and nothing else: they get simulations as JSON and return results as JSON.
The store is the client's, and no folder is shared, except for workloads that read files.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future, as_completed

import perch

BATCH_SECONDS = 1.0
"""CPU time that a task may take where `batch` is not given: dask's scheduler, the client and the
worker spend some 5 ms of theirs on a task. On a machine that others use a second of time is less."""

FIRST_BATCH = 32
"""Simulations of a task before any has been timed."""

MOST_IN_A_BATCH = 1024

AHEAD = 2
"""Tasks for each thread of the workers: one that runs, and one that is there when it ends. The
others wait here: dask's scheduler keeps some kilobytes for each."""


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


def _simulate(
    specs: list[str], limit_seconds: float | None
) -> tuple[list[tuple[str | None, str | None]], float]:
    """Return the result or the error of each simulation, and the seconds of CPU time that all took.

    None begins after the limit, so that there may be fewer results than simulations.
    """
    import perch

    begin = time.thread_time()
    results: list[tuple[str | None, str | None]] = []
    for spec in specs:
        is_late = limit_seconds is not None and time.thread_time() - begin > limit_seconds
        if results and is_late:
            break
        try:
            # The sweep whose specs these are was allowed to run the code of others, or has none.
            results.append((perch.simulate_json(spec, allow_scx=True), None))
        except (ValueError, RuntimeError) as error:
            results.append((None, str(error)))
    return results, time.thread_time() - begin


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

    `batch` is the number of simulations of a task; without one a task has as many as a worker makes
    in a second of CPU time. `progress` is called with the number done and the number to do. The tasks of a worker that
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
    waiting = deque(specs)
    # Nobody knows how long a simulation takes before it has run. A task has a limit, and what it did
    # not come to waits here again: the first tasks may be large, and none takes long.
    limit = BATCH_SECONDS if batch is None else None
    size = batch or FIRST_BATCH
    tasks = as_completed()
    pending: dict[Future[Any], list[str]] = {}

    def submit() -> None:
        # Workers come and go: a cluster that grows gets more.
        threads = max(sum(client.nthreads().values()), 1)
        while waiting and len(pending) < AHEAD * threads:
            # Towards the end the tasks become smaller, so that all workers end at about the same time;
            # below a sixteenth they would cost more than they save.
            share = max(-(-len(waiting) // (AHEAD * threads)), size // 16, 1)
            some = size if batch is not None else min(size, share)
            specs = [waiting.popleft() for _ in range(min(some, len(waiting)))]
            # Not pure: nobody asks for the same task twice, and a key for it would cost a digest.
            task = client.submit(_simulate, specs, limit, pure=False)
            pending[task] = specs
            tasks.add(task)

    try:
        submit()
        for task in tasks:
            results, seconds = task.result()
            specs = pending.pop(task)
            waiting.extendleft(reversed(specs[len(results) :]))
            if batch is None:
                each = max(seconds / len(results), 1e-6)
                size = max(1, min(int(BATCH_SECONDS / each), MOST_IN_A_BATCH))
            submit()
            yield results
    finally:
        if pending:
            client.cancel(list(pending))
