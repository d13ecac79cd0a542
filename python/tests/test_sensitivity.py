# SPDX-License-Identifier: GPL-2.0-or-later
import pytest

import perch

sensitivity = pytest.importorskip("perch.sensitivity")

# On x5570, which has no clusters, the arms are the same.
SPEC = {
    "machine": "kunpeng920",
    "workload": "tcp_rr:where=node0,n=12",
    "era": "6.5",
    "effort": {"warmup_ms": 12, "measure_ms": 4, "repetitions": 2},
}
AXES = {"hardware.transfer_ns.llc": (20, 60), "hardware.context_switch_ns": (500, 3000)}


@pytest.mark.parametrize(("method", "samples", "points"), [("morris", 3, 9), ("sobol", 2, 8)])
def test_each_key_has_an_index(tmp_path, method, samples, points):
    options = {"method": method, "samples": samples, "store": tmp_path / "store"}
    found = sensitivity.analyze(SPEC, AXES, **options)
    assert {index.key for index in found.indices} == set(AXES)
    effects = [index.effect for index in found.indices]
    assert effects == sorted(effects, reverse=True)
    assert effects[0] > 0
    assert len(found.points) == len(found.change_pct) == points
    assert all(20 <= point["hardware.transfer_ns.llc"] <= 60 for point in found.points)
    again = sensitivity.analyze(SPEC, AXES, **options, jobs=1)
    assert (again.points, again.change_pct) == (found.points, found.change_pct)


def test_keys_have_no_effect_where_the_arms_are_the_same(spec):
    for method in ["morris", "sobol"]:
        found = sensitivity.analyze(spec, AXES, method=method, samples=2)
        assert set(found.change_pct) == {0.0}
        assert [index.effect for index in found.indices] == [0.0, 0.0]


def test_flips_are_the_points_of_another_sign():
    found = sensitivity.analyze(SPEC, AXES, samples=3)
    assert len(found.flips) == sum((pct > 0) != (found.base_pct > 0) for pct in found.change_pct)
    assert all((flip.change_pct > 0) != (found.base_pct > 0) for flip in found.flips)


def test_a_point_is_what_a_simulation_by_hand_gives():
    axes = {"workload.n": (8, 24)}
    plain = SPEC | {"workload": "tcp_rr:where=node0"}
    arms = {"stock": "off", "posted": "cluster=posted"}
    found = sensitivity.analyze(plain, axes, arms=arms, samples=2)
    at = found.points[0]["workload.n"]
    means = []
    for modes in arms.values():
        result = perch.simulate(plain | {"workload": f"tcp_rr:where=node0,n={at}", "modes": modes})
        values = result["result"]["scores"][0]["values"]
        means.append(sum(values) / len(values))
    assert found.change_pct[0] == pytest.approx(100 * (means[1] / means[0] - 1))


@pytest.mark.parametrize(
    ("axes", "options", "message"),
    [
        ({}, {}, "at least one key"),
        ({"era": (6, 7)}, {}, "`era`: expected hardware"),
        ({"workload.pairs": (4, 1)}, {}, "a lower and a higher"),
        ({"hardware.transfer_ns.moon": (1, 4)}, {}, "moon"),
        (AXES, {"score": "beauty", "samples": 1}, "no such score: expected one of"),
        (AXES, {"arms": {"one": "off"}}, "expected two"),
        (AXES, {"method": "magic"}, "expected morris or sobol"),
    ],
)
def test_mistakes_are_value_errors_that_name_them(spec, axes, options, message):
    with pytest.raises(ValueError, match=message):
        sensitivity.analyze(spec, axes, **options)
