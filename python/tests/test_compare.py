# SPDX-License-Identifier: GPL-2.0-or-later
import json
import subprocess

import pytest

import perch

SHORT = {"warmup_ms": 1, "measure_ms": 2, "repetitions": 3}


def compare(**changes):
    arguments = {"machine": "x5570", "workload": "pipe:pairs=2", "effort": SHORT} | changes
    return perch.compare(**arguments)


def test_a_comparison_has_the_scores_of_each_arm():
    pyarrow = pytest.importorskip("pyarrow")
    found = compare()
    read = json.loads(found.json)
    assert [arm["name"] for arm in read["arms"]] == ["stock", "posted"]
    assert read["repetitions"] == 3
    rows = pyarrow.table(found.table()).to_pylist()
    expected = [
        (score["name"], arm["arm"], arm["mean"]) for score in read["scores"] for arm in score["arms"]
    ]
    assert [(row["score"], row["arm"], row["mean"]) for row in rows] == expected
    assert all(row["change_pct"] == 0 for row in rows if row["arm"] == "stock")
    assert "pipe:pairs=2" in str(found)


def test_a_comparison_is_the_one_that_the_program_prints(program):
    command = [program, "compare", "-m", "x5570", "-w", "pipe:pairs=2", "--effort", "quick"]
    command += ["--arm", "near:cluster=perch", "--arm", "posted:cluster=posted", "--quiet"]
    printed = subprocess.run([*command, "--format", "json"], check=True, capture_output=True).stdout
    arms = {"near": "cluster=perch", "posted": "cluster=posted"}
    assert compare(arms=arms, effort="quick").json.encode() == printed


def test_results_do_not_depend_on_the_number_of_threads():
    assert compare(jobs=1).json == compare(jobs=3).json


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": "x5571"}, "x5570"),
        ({"workload": "pip"}, "pipe"),
        ({"era": "1.0"}, "era"),
        ({"arms": {}}, "no arm"),
        ({"arms": {"odd": "cluster=odd"}}, "arm `odd`"),
        ({"effort": "some"}, "expected quick, normal, full"),
        ({"effort": {"warmup_ms": 1}}, "expected quick, normal, full"),
        ({"effort": SHORT | {"repetitions": 0}}, "at least 1"),
        ({"root_domain": "no"}, "root_domain"),
    ],
)
def test_mistakes_are_value_errors_that_name_them(change, message):
    with pytest.raises(ValueError, match=message):
        compare(**change)


def test_a_plot_has_a_bar_for_each_arm():
    pytest.importorskip("matplotlib")
    found = compare()
    names = [score["name"] for score in json.loads(found.json)["scores"]]
    figure = found.plot()
    assert len(figure.axes) == len(names)
    assert len(figure.axes[0].patches) == 2
    assert len(found.plot(names[0], figsize=(4, 3)).axes) == 1
    with pytest.raises(ValueError, match="expected one of"):
        found.plot("beauty")


@pytest.mark.parametrize(
    ("warmup_ms", "measure_ms", "settled"), [(1000, 1000, True), (10, 1000, False), (1000, 10, False)]
)
def test_scores_are_settled_where_the_times_are_long_enough_to_tell(warmup_ms, measure_ms, settled):
    pyarrow = pytest.importorskip("pyarrow")
    effort = {"warmup_ms": warmup_ms, "measure_ms": measure_ms, "repetitions": 2}
    found = compare(machine="juno", workload="pipe:pairs=1", effort=effort)
    assert set(pyarrow.table(found.table())["settled"].to_pylist()) == {settled}
    # The same in words, and of one simulation.
    assert ("not settled" in str(found)) != settled
    one = perch.simulate({"machine": "juno", "workload": "pipe:pairs=1", "effort": effort})
    assert {score["settled"] for score in one["result"]["scores"]} == {settled}
