# SPDX-License-Identifier: GPL-2.0-or-later
import doctest
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDING = Path(__file__).parent / "data" / "run.perch"
NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.ipynb"))


def test_the_examples_of_the_page_print_what_it_shows(tmp_path, monkeypatch):
    for needed in ["SALib", "distributed", "matplotlib", "optuna", "polars", "pyarrow"]:
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    shutil.copy(RECORDING, tmp_path)
    page = tmp_path / "python.md"
    page.write_text((ROOT / "docs" / "python.md").read_text())
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert tried > 20
    assert failed == 0


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    shutil.copy(RECORDING, tmp_path)
    read = nbformat.read(notebook, as_version=4)
    nbformat.validate(read)
    run = nbclient.NotebookClient(read, timeout=None, resources={"metadata": {"path": tmp_path}})
    run.execute()
    assert not any(cell.get("outputs") for cell in nbformat.read(notebook, as_version=4).cells)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4
