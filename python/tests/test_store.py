# SPDX-License-Identifier: GPL-2.0-or-later
import csv
import hashlib
import io
import json
import subprocess
import sys

import pytest

import perch


@pytest.fixture
def store(sweep, tmp_path) -> perch.Store:
    sweep.run(tmp_path / "store")
    return perch.Store(tmp_path / "store")


def test_a_parquet_file_has_the_rows_that_the_program_exports(program, store, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    store.to_parquet(tmp_path / "all.parquet")
    rows = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    command = [program, "store", "export", store.path]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exported = list(csv.DictReader(io.StringIO(printed)))
    assert len(rows) == len(exported) > 0
    for row, line in zip(rows, exported):
        assert row.pop("value") == float(line.pop("value"))
        assert row.pop("higher_is_better") == (line.pop("higher_is_better") == "true")
        assert {name: str(value) for name, value in row.items()} == line


def test_a_parquet_file_has_every_value_of_the_results(store, sweep, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    store.to_parquet(tmp_path / "all.parquet")
    rows = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    found = {(row["key"], row["score"], row["repetition"]): row["value"] for row in rows}
    expected = {}
    for key, spec in sweep.specs():
        for score in perch.simulate(spec)["result"]["scores"]:
            for repetition, value in enumerate(score["values"]):
                expected[key, score["name"], repetition] = value
    assert found == expected


def test_a_large_store_is_written_in_parts(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    sweep = perch.Sweep.from_toml("""
machine = "x5570"
workload = "pipe"
effort = { warmup_ms = 0, measure_ms = 1, repetitions = 1 }

[axes]
seed = { from = 1, to = 600, step = 1 }
""")
    assert sweep.run(tmp_path / "store")["made"] == 600
    perch.Store(tmp_path / "store").to_parquet(tmp_path / "all.parquet")
    file = parquet.ParquetFile(tmp_path / "all.parquet")
    assert file.num_row_groups == 3
    assert set(file.read()["seed"].to_pylist()) == set(range(1, 601))


def test_a_failure_leaves_the_old_file_and_no_other(store, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    target = tmp_path / "out" / "all.parquet"
    with pytest.raises(FileNotFoundError, match=r"all\.parquet: there is no folder"):
        store.to_parquet(target)
    target.parent.mkdir()
    target.write_text("old")
    damaged = next((tmp_path / "store").glob("results/*/*.json"))
    damaged.write_text("{")
    with pytest.raises(pyarrow.ArrowException, match=damaged.name):
        store.to_parquet(target)
    assert [path.name for path in target.parent.iterdir()] == ["all.parquet"]
    assert target.read_text() == "old"


def test_without_pyarrow_the_error_says_what_to_install(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"all\.parquet: .*pip install pyarrow"):
        store.to_parquet(tmp_path / "all.parquet")


def test_what_was_not_counted_is_null(spec, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    values = perch.simulate(spec, store=tmp_path / "store")["result"]["scores"][0]["values"]
    file = next((tmp_path / "store").glob("results/*/*.json"))
    text = file.read_text().replace(f"{json.dumps(values[0])},", "null,")
    # As perch seals it, which itself seldom has such a value.
    simulation, rest = text.split('"simulation":')[1].split(',"digest":')
    sealed = simulation + rest.split('"result":')[1].rstrip()[:-1]
    digest = hashlib.sha256(sealed.encode()).hexdigest()
    file.write_text(text.replace(json.loads(text)["digest"], digest))
    rows = pyarrow.table(perch.Store(tmp_path / "store").rows()).to_pylist()
    assert [row["value"] for row in rows[:2]] == [None, values[1]]
