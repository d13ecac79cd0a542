# SPDX-License-Identifier: GPL-2.0-or-later
import os
import signal

import pytest

import perch

from conftest import SWEEP, results

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("perch.dask")

MANY = SWEEP.replace("[1, 4]", "{ from = 1, to = 16, step = 1 }")


@pytest.fixture
def client(tmp_path):
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, local_directory=tmp_path / "dask") as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield client


def test_a_cluster_makes_the_bytes_of_a_local_run(sweep, client, tmp_path):
    seen = []
    done = dask.run(sweep, client, tmp_path / "far", progress=lambda *step: seen.append(step))
    assert (done.all, done.had, done.made, done.failed) == (8, 0, 8, [])
    assert seen[-1] == (8, 8)
    assert seen == sorted(seen)
    sweep.run(tmp_path / "near")
    assert results(tmp_path / "far") == results(tmp_path / "near")
    assert dask.run(sweep, client, tmp_path / "far") == dask.Done(all=8, had=8)


def test_the_work_of_a_killed_worker_is_done_again(client, tmp_path):
    sweep = perch.Sweep.from_toml(MANY)
    killed = []

    def kill(_done, _all):
        # In the middle: results are there, and the worker has tasks.
        if not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    done = dask.run(sweep, client, tmp_path / "far", batch=4, progress=kill)
    assert killed
    assert (done.all, done.made, done.failed) == (64, 64, [])
    sweep.run(tmp_path / "near")
    assert results(tmp_path / "far") == results(tmp_path / "near")
    assert perch.Store(tmp_path / "far").verify() == []


def test_a_worker_of_another_model_is_refused_by_name(sweep, client, tmp_path):
    def change(dask_worker):
        import perch

        perch.MODEL = "other"
        return dask_worker.address

    worker = sorted(client.scheduler_info()["workers"])[1]
    client.run(change, workers=[worker])
    with pytest.raises(dask.WorkerError, match=f"worker {worker} has perch of model other"):
        dask.run(sweep, client, tmp_path / "store")
    assert results(tmp_path / "store") == {}


def test_a_worker_without_perch_is_refused_by_name(sweep, client, tmp_path):
    def hide():
        import sys

        sys.modules["perch"] = None

    worker = sorted(client.scheduler_info()["workers"])[0]
    client.run(hide, workers=[worker])
    with pytest.raises(dask.WorkerError, match=f"worker {worker}: .*install this perch"):
        dask.run(sweep, client, tmp_path / "store")


def test_simulations_that_fail_do_not_stop_the_others(sweep, client, tmp_path):
    specs = sweep.specs()

    class Odd:
        def specs(self, shard):
            return [*specs[:3], ("", specs[3][1].replace("x5570", "x5571")), *specs[4:]]

    done = dask.run(Odd(), client, tmp_path / "store", batch=2)
    assert done.made == 7
    assert len(done.failed) == 1
    assert "x5571" in done.failed[0]


def test_what_a_task_did_not_come_to_is_done_by_another(client, tmp_path, monkeypatch):
    # Each task makes one simulation of those that it was given.
    monkeypatch.setattr(dask, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(dask, "FIRST_BATCH", 5)
    sweep = perch.Sweep.from_toml(MANY)
    done = dask.run(sweep, client, tmp_path / "far")
    assert (done.all, done.made, done.failed) == (64, 64, [])
    sweep.run(tmp_path / "near")
    assert results(tmp_path / "far") == results(tmp_path / "near")


def test_a_task_stops_at_its_limit_after_one_simulation(sweep):
    specs = [spec for _, spec in sweep.specs()]
    made, seconds = dask._simulate(specs, 0.0)
    assert len(made) == 1
    assert seconds > 0
    assert len(dask._simulate(specs, None)[0]) == len(specs)


def test_a_batch_of_nothing_is_refused(sweep, tmp_path):
    with pytest.raises(ValueError, match="batch 0"):
        dask.run(sweep, None, tmp_path / "store", batch=0)
