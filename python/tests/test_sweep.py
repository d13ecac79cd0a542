# SPDX-License-Identifier: GPL-2.0-or-later
import json

import pytest

import perch

from conftest import SWEEP, results


def test_parts_make_the_whole_and_a_second_run_makes_nothing(sweep, tmp_path):
    store = tmp_path / "store"
    seen = []
    first = sweep.run(store, jobs=2, shard="1/2", progress=lambda *step: seen.append(step))
    assert first == {"all": 4, "had": 0, "made": 4, "failed": []}
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(sweep.missing(store)) == 4
    assert sweep.run(store) == {"all": 8, "had": 4, "made": 4, "failed": []}
    assert sweep.run(store) == {"all": 8, "had": 8, "made": 0, "failed": []}
    assert sweep.missing(store) == []
    assert perch.Store(store).verify() == []


def test_results_do_not_depend_on_the_number_of_threads(sweep, tmp_path):
    sweep.run(tmp_path / "one", jobs=1)
    sweep.run(tmp_path / "three", jobs=3)
    assert results(tmp_path / "one") == results(tmp_path / "three")


def test_an_error_of_the_progress_stops_the_sweep(sweep, tmp_path):
    def stop(done, _all):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.run(tmp_path / "store", jobs=1, progress=stop)
    # What was made stays, and the sweep goes on from there. A thread is at most two simulations
    # ahead of the progress.
    had = len(results(tmp_path / "store"))
    assert 1 <= had <= 3
    assert sweep.run(tmp_path / "store") == {"all": 8, "had": had, "made": 8 - had, "failed": []}


def test_a_sweep_is_read_from_a_file_which_errors_name(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(SWEEP)
    sweep = perch.Sweep.from_file(file)
    assert sweep.names == ["arm", "hardware.transfer_ns.llc", "workload.pairs"]
    assert len(sweep.specs()) == 8
    assert len(sweep.specs(shard="3/3")) == 2
    file.write_text(SWEEP.replace("pairs", "paris"))
    with pytest.raises(ValueError, match="mine.toml.*paris"):
        perch.Sweep.from_file(file).specs()
    with pytest.raises(ValueError, match="shard 9/3"):
        sweep.specs(shard="9/3")


def test_pyarrow_pandas_and_polars_read_the_table(sweep, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    sweep.run(tmp_path / "store")
    table = sweep.table(tmp_path / "store")
    arrow = pyarrow.table(table)
    assert arrow.column_names == table.column_names
    assert arrow.num_rows == len(table) == 8 * len(set(arrow["score"].to_pylist()))
    assert arrow.schema.field("workload.pairs").type == pyarrow.int64()
    assert arrow.schema.field("arm").type == pyarrow.string()
    rows = arrow.to_pylist()
    # A millisecond is too short to tell, and one score even moved in it.
    assert {row["settled"] for row in rows} == {False}
    assert {row["why_not_settled"] for row in rows} == {
        "still changed at 2 ms",
        "warmed up for less than 1000 ms",
    }
    stored = {key: json.loads(text) for key, text in results(tmp_path / "store").items()}
    for key, text in sweep.specs():
        spec = json.loads(text)
        score = stored[key]["result"]["scores"][0]
        mean = sum(score["values"]) / len(score["values"])
        matching = [
            row
            for row in rows
            if f"pairs={row['workload.pairs']}" in spec["workload"]
            and row["hardware.transfer_ns.llc"] == spec["changed"]["hardware.transfer_ns.llc"]
            and (row["arm"] == "stock") == (spec["modes"] == "off")
            and row["score"] == score["name"]
        ]
        assert [row["mean"] for row in matching] == pytest.approx([mean])
    frame = polars.DataFrame(table)
    assert frame.rows(named=True) == rows
    assert polars.from_arrow(table).struct.unnest().equals(frame)
    panda = pandas.DataFrame.from_arrow(table)
    assert panda["mean"].tolist() == arrow["mean"].to_pylist()
    # Read twice: the table is not used up.
    assert pyarrow.table(table).equals(arrow)


def test_the_table_of_a_store_without_results_is_empty(sweep, tmp_path):
    perch.Store(tmp_path / "store")
    table = sweep.table(tmp_path / "store")
    assert len(table) == 0
    assert table.column_names[:3] == sweep.names
    with pytest.raises(ValueError, match="perch sweep run --store"):
        sweep.table(tmp_path / "nothing")
