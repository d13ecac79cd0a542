# SPDX-License-Identifier: GPL-2.0-or-later
"""data/run.perch is what this command wrote:

perch compare -m kunpeng920 -w tcp_rr:where=node0,n=16 --era 6.5 --arm stock:cluster=off \
    --warmup 2ms --measure 6ms --record run.perch
"""

import csv
import io
import json
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

import perch

RUN = Path(__file__).parent / "data" / "run.perch"


def block(kind: bytes, stored: bytes) -> bytes:
    """Return a block of a recording (crates/perch-record/src/format/mod.rs), not compressed."""
    head = kind + struct.pack("<II", len(stored), len(stored))
    return head + struct.pack("<I", zlib.crc32(head + stored)) + stored


def written(*blocks: bytes, **header) -> bytes:
    """Return a recording of pixel3 with these blocks."""
    first = {
        "perch": "0.1.0",
        "machine": perch.machine("pixel3").toml,
        "kernel": "7.2.1",
        "era": "7.2",
        "hz": 250,
        "command": ["true"],
        "cpu": [],
        "group": [],
        "task": [],
    }
    start = b"PERCHREC" + struct.pack("<I", 1)
    return start + b"".join([block(b"H", json.dumps(first | header).encode()), *blocks])


def footer(**counts) -> bytes:
    return block(b"F", json.dumps({"wake_ups": 0, "dropped": 0, "cost_ns": 0} | counts).encode())


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def signed(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def pick(at_ns: int, picked: int) -> bytes:
    """Return a decision, in postcard's form: which of two waiting tasks runs next."""

    def entity(pid: int, deadline: int) -> bytes:
        times = signed(0) + signed(deadline) + signed(0) + varint(2_800_000)
        return varint(pid) + varint(1 << 20) + times + bytes(5)

    waiting = varint(2) + entity(11, 1000) + entity(12, 2000)
    # No entity runs, and there is no next buddy.
    queue = waiting + bytes([0, 0, 0]) + signed(0) + varint(2 << 10)
    return varint(at_ns) + varint(3) + queue + bytes([0, 0, 1]) + varint(picked)


@pytest.fixture
def file(tmp_path):
    def write(content: bytes) -> Path:
        path = tmp_path / "made.perch"
        path.write_bytes(content)
        return path

    return write


def test_a_recording_has_its_circumstances_and_counts():
    recording = perch.Recording(RUN)
    assert (recording.kernel, recording.era, recording.hz) == ("simulated 6.5", "6.5", 250)
    assert recording.machine.cpus == 128
    assert recording.command == ["tcp_rr:where=node0,n=16"]
    counts = recording.counts()
    assert (counts["wake_ups"], counts["dropped"], counts["cut_off"]) == (1359, 0, None)
    assert perch.Recording(RUN, era="7.2").era == "7.2"


def test_wake_ups_are_those_that_the_program_lists(program):
    pyarrow = pytest.importorskip("pyarrow")
    for options, modes in [([], None), (["--set", "cluster=posted"], "cluster=posted")]:
        command = [program, "replay", RUN, *options, "--list"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = pyarrow.table(perch.Recording(RUN).wake_ups(modes)).to_pylist()
        texts = [
            {name: "" if value is None else str(value) for name, value in row.items()}
            for row in rows
        ]
        assert texts == list(csv.DictReader(io.StringIO(printed)))


def test_other_modes_have_a_choice_of_their_own():
    polars = pytest.importorskip("polars")
    recording = perch.Recording(RUN)
    table = polars.DataFrame(recording.wake_ups({"cluster": "posted"}))
    assert table.height == 1359
    assert (table["chosen"] == table["model"]).all()
    assert (table["other"] != table["model"]).sum() == 1341
    assert polars.DataFrame(recording.wake_ups())["other"].null_count() == 1359


def test_a_long_recording_is_read_in_parts(program, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "long.perch"
    command = [program, "compare", "-m", "kunpeng920", "-w", "hackbench:groups=8", "--quiet"]
    command += ["--arm", "on:cluster=posted", "--era", "6.5", "--warmup", "2ms"]
    command += ["--measure", "60ms", "--record", path]
    subprocess.run(command, check=True, capture_output=True)
    reader = pyarrow.RecordBatchReader.from_stream(perch.Recording(path).wake_ups())
    lengths = [len(batch) for batch in reader]
    assert len(lengths) > 2
    assert sum(lengths) == perch.Recording(path).counts()["wake_ups"]
    # Each stream begins anew.
    assert len(pyarrow.table(perch.Recording(path).wake_ups())) == sum(lengths)


def test_a_replay_is_the_one_that_the_program_prints(program):
    both = "cluster=upstream,capacity=upstream"
    for options, arguments in [
        ([], {}),
        (["--set", "cluster=posted", "--era", "7.2"], {"modes": "cluster=posted", "era": "7.2"}),
        (["--set", both], {"modes": both}),
    ]:
        command = [program, "replay", RUN, *options, "--format", "json"]
        printed = subprocess.run(command, check=True, capture_output=True).stdout
        assert perch.replay(RUN, **arguments) == json.loads(printed)


def test_a_replay_of_queues_is_the_one_that_the_program_prints(program, file):
    pyarrow = pytest.importorskip("pyarrow")
    decisions = {"recorded": 2, "dropped": 0, "too_long": 1, "cost_ns": 7}
    blocks = [block(b"D", pick(5, 0) + pick(6, 1)), footer(decisions=decisions)]
    path = file(written(*blocks))
    command = [program, "replay", path, "--list-decisions"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    rows = pyarrow.table(perch.Recording(path).decisions()).to_pylist()
    assert len(lines) == len(rows) == 2
    for row, line in zip(rows, lines):
        assert (line.pop("kind"), line.pop("why")) == (row["kind"], row["why"])
        assert json.loads(row["decision"]) == line
        assert (row["at_ns"], row["cpu"], row["waiting"]) == (line["at_ns"], 3, 2)


def test_decisions_about_queues_say_where_the_model_differs(file):
    pyarrow = pytest.importorskip("pyarrow")
    path = file(written(block(b"D", pick(5, 0) + pick(6, 1)), footer()))
    rows = pyarrow.table(perch.Recording(path).decisions()).to_pylist()
    assert [(row["kind"], row["why"]) for row in rows] == [("pick", None), ("pick", "model wrong")]
    assert perch.Recording(path).counts()["decisions"] is None


def test_the_number_of_threads_does_not_change_a_replay():
    found = perch.replay(RUN, "cluster=posted", jobs=1)
    assert found == perch.replay(RUN, {"cluster": "posted"}, jobs=3)


def test_what_a_recording_lacks_is_a_warning(tmp_path):
    cut = tmp_path / "cut.perch"
    # Without its footer.
    cut.write_bytes(RUN.read_bytes()[:-20])
    with pytest.warns(UserWarning, match=r"cut\.perch ends at byte \d+ before its end"):
        assert perch.replay(cut)["model"]["wake_ups"] == 1359
    counts = perch.Recording(cut).counts()
    assert counts["cut_off"] > 0
    assert "wake_ups" not in counts


def damaged() -> bytes:
    content = bytearray(RUN.read_bytes())
    content[-2000] ^= 1
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"#!/bin/sh\necho\n", "not a recording of perch"),
        (b"PERCHREC\x07\0\0\0", "version 7 of the format"),
        (RUN.read_bytes()[:40], "before its header ends"),
        (written(era="1.0"), "header: .*1.0"),
        (written(machine="cpus = 3"), "its machine"),
        (written(rows=[4, 4]), "of 4 CPUs and 4 sets"),
        (written(modes="cache=perch"), "what cache decides by"),
    ],
)
def test_files_that_cannot_be_read_are_named(content, message, file):
    path = file(content)
    for read in [perch.Recording, perch.replay]:
        with pytest.raises(ValueError, match=message) as raised:
            read(path)
        assert "made.perch" in str(raised.value)


def test_a_damaged_block_is_named_by_its_place(file):
    pyarrow = pytest.importorskip("pyarrow")
    path = file(damaged())
    recording = perch.Recording(path)
    message = r"made\.perch: byte \d+: the checksum of this block is wrong"
    with pytest.raises(ValueError, match=message):
        recording.counts()
    with pytest.raises(ValueError, match=message):
        perch.replay(path)
    with pytest.raises(pyarrow.ArrowException, match=message):
        pyarrow.table(recording.wake_ups())


def test_a_recording_without_wake_ups_is_refused(file):
    with pytest.raises(ValueError, match="made.perch: it holds no wake-up: there is nothing"):
        perch.replay(file(written(footer())))
    with pytest.raises(ValueError, match=r"none\.perch"):
        perch.Recording("none.perch")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"modes": "cluster"}, "`cluster`: expected MECHANISM=MODE"),
        ({"modes": {"cluster": "fast"}}, "`cluster=fast`"),
        ({"modes": "moon=perch"}, "`moon=perch`"),
        ({"modes": "cache=perch"}, "what cache decides by"),
        ({"era": "3.4"}, "expected 5.5 or later"),
        ({"era": "none"}, "era: "),
    ],
)
def test_mistakes_are_value_errors_that_name_them(arguments, message):
    with pytest.raises(ValueError, match=message):
        perch.replay(RUN, **arguments)
