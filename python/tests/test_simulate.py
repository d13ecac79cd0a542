# SPDX-License-Identifier: GPL-2.0-or-later
import json
import re
import subprocess
import threading
import tomllib

import pytest

import perch

from conftest import results


def test_results_are_the_bytes_that_a_sweep_stores(sweep, tmp_path):
    sweep.run(tmp_path / "store")
    stored = results(tmp_path / "store")
    assert len(stored) == 8
    for key, spec in sweep.specs():
        assert perch.key(spec) == key
        assert perch.simulate_json(spec).encode() == stored[key]


def test_results_are_the_bytes_that_the_program_prints(program, spec, tmp_path):
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec))
    printed = subprocess.run([program, "simulate", file], check=True, capture_output=True).stdout
    assert perch.simulate_json(json.dumps(spec)).encode() == printed


def test_simulate_returns_the_result_as_a_dict(spec):
    found = perch.simulate(spec)
    assert found["key"] == perch.key(spec)
    assert found["model"] == perch.MODEL
    assert found["simulation"]["workload"] == "pipe:pairs=2"
    assert all(len(score["values"]) == 2 for score in found["result"]["scores"])
    assert found == perch.simulate(json.dumps(spec))


def test_a_store_keeps_the_result_and_gives_it_back(spec, tmp_path):
    made = perch.simulate(spec, store=tmp_path / "store")
    assert made == perch.simulate(spec, store=tmp_path / "store")
    file = next((tmp_path / "store").glob("results/*/*.json"))
    changed = file.read_text().replace('"repetitions":2,"window"', '"repetitions":3,"window"')
    file.write_text(changed)
    with pytest.raises(ValueError, match="not the one that was written"):
        perch.simulate(spec, store=tmp_path / "store")


def test_store_refuses_damaged_results_and_those_of_another_model(spec, tmp_path):
    store = perch.Store(tmp_path / "store")
    text = perch.simulate_json(json.dumps(spec))
    assert store.put(text) == perch.key(spec)
    assert store.keys() == [perch.key(spec)]
    assert store.verify() == []
    with pytest.raises(ValueError, match="of model other"):
        store.put(text.replace(perch.MODEL, "other"))
    with pytest.raises(ValueError, match="not as it was made"):
        store.put(text.replace('"repetitions":2,"window"', '"repetitions":3,"window"'))
    with pytest.raises(ValueError, match="expected what simulate_json returns"):
        store.put("{}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": "x5571"}, "x5570"),
        ({"workload": "pip"}, "pipe"),
        ({"era": "1.0"}, "era"),
        ({"modes": "cluster=no"}, "modes"),
        ({"colour": "red"}, "colour"),
        ({"changed": {"hardware.transfer_ns.moon": 1}}, "moon"),
    ],
)
def test_mistakes_are_value_errors_that_name_them(spec, change, message):
    with pytest.raises(ValueError, match=message):
        perch.simulate(spec | change)
    with pytest.raises(ValueError, match=message):
        perch.key(spec | change)


def test_a_system_that_refuses_is_a_runtime_error(spec, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="file"):
        perch.simulate(spec, store=tmp_path / "file" / "store")


def steps_while_simulating(spec, measure_ms):
    """Return how often this thread ran while another one simulated."""
    times = {"warmup_ms": 1, "measure_ms": measure_ms, "repetitions": 5}
    text = json.dumps(spec | {"effort": times})
    begun, ended = threading.Event(), threading.Event()

    def work():
        begun.set()
        perch.simulate_json(text)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    steps = 0
    # A wait gives the interpreter's lock away, and needs it to return.
    while not ended.wait(0.0001):
        steps += 1
    thread.join()
    return steps


def test_other_threads_run_while_one_simulates(spec):
    # With the lock held this thread would run once or twice however long the simulation is. A host
    # that is very fast gets a longer one.
    tries = (steps_while_simulating(spec, 200 * 2**longer) for longer in range(8))
    assert any(steps > 10 for steps in tries)


def test_machines_and_workloads_are_listed():
    assert "kunpeng920" in perch.machines()
    machine = perch.machine("kunpeng920")
    assert (machine.name, machine.cpus, machine.nodes) == ("kunpeng920", 128, 4)
    assert machine.clusters == 32
    assert machine.llcs == 4
    assert tomllib.loads(machine.toml)["name"] == "kunpeng920"
    assert "pipe" in dict(perch.workloads())


def test_a_machine_in_a_file_is_part_of_the_specification(spec, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(perch.machine("x5570").toml)
    assert perch.machine(str(file)).cpus == 16
    found = perch.simulate(spec | {"machine": str(file)})
    assert "machine" not in found["simulation"]
    assert found["key"] == perch.key(spec)


def test_a_machine_of_the_library_stays_as_it_is_after_a_change(spec):
    plain = perch.simulate_json(json.dumps(spec))
    changed = spec | {"changed": {"hardware.transfer_ns.llc": 400}}
    assert perch.key(changed) != perch.key(spec)
    assert perch.simulate(changed)["result"] != json.loads(plain)["result"]
    assert perch.simulate_json(json.dumps(spec)) == plain


def test_a_machine_in_a_file_is_read_anew_for_each_simulation(spec, tmp_path):
    file = tmp_path / "mine.toml"
    keys = []
    for cost in ["context_switch_ns = 1000", "context_switch_ns = 9000"]:
        text, replaced = re.subn(r"context_switch_ns = \d+", cost, perch.machine("x5570").toml)
        assert replaced == 1
        file.write_text(text)
        keys.append(perch.simulate(spec | {"machine": str(file)})["key"])
    assert keys[0] != keys[1]
