# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

import perch

fit = pytest.importorskip("perch.fit")

KEY = "hardware.context_switch_ns"


@pytest.fixture
def cells(spec):
    """Figures of a machine whose cost is 2500, which the fit is not told."""
    made = []
    for pairs in [1, 2, 4, 6]:
        one = spec | {"workload": f"pipe:pairs={pairs}"}
        result = perch.simulate(one | {"changed": {KEY: 2500}})
        values = result["result"]["scores"][0]["values"]
        made.append(fit.Cell(one, sum(values) / len(values)))
    return made


def test_the_cost_that_made_the_figures_is_found(cells):
    found = fit.fit(cells, {KEY: (500, 5000)}, trials=25)
    unfitted = fit.fit(cells, {KEY: (500, 600)}, trials=3)
    assert found.error_pct < unfitted.error_pct / 2
    assert found.held_out_error_pct < unfitted.held_out_error_pct / 2
    assert abs(found.values[KEY] - 2500) < 500
    assert len(found.held_out) == 1
    assert found == fit.fit(cells, {KEY: (500, 5000)}, trials=25)


def test_held_out_cells_do_not_decide(cells):
    axes, options = {KEY: (500, 5000)}, {"trials": 5, "hold_out": [3]}
    wrong = [*cells[:3], fit.Cell(cells[3].spec, 10 * cells[3].measured)]
    right, found = fit.fit(cells, axes, **options), fit.fit(wrong, axes, **options)
    assert found.held_out == [3]
    assert (found.values, found.error_pct) == (right.values, right.error_pct)
    assert found.held_out_error_pct > 80
    assert fit.fit(cells, axes, trials=1, hold_out=0).held_out_error_pct is None


@pytest.mark.parametrize(
    ("hold_out", "message"),
    [([0, 1, 2, 3], "none is left"), ([7], "expected places"), (1.5, "expected a share")],
)
def test_mistakes_are_value_errors_that_name_them(cells, hold_out, message):
    with pytest.raises(ValueError, match=message):
        fit.fit(cells, {KEY: (500, 5000)}, hold_out=hold_out)
