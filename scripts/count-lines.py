#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints what count-lines.sh counted as a table (docs/calibration.md, "Measured on the kernel").

    scripts/count-lines.py OUT

An operation is the simulator's: a round trip of a pair, a message of hackbench, a lock, yield and
unlock of sysbench's threads, a request of schbench.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

PLACES = ["cluster", "LLC", "package"]
KINDS = ["dirty load", "dirty store", "upgrade", "clean load", "cold"]
# A read of hackbench's executes so many instructions of the user's code; the two lengths of the
# whole program, with the same messages more in each, give it.
READ_INSTRUCTIONS = 32


class Tasks:
    """Tasks of a slot, added up."""

    def __init__(self, tasks=()):
        self.figures = defaultdict(float)
        for task in tasks:
            for key, count in task.items():
                self.figures[key] += count

    def minus(self, other):
        left = Tasks([self.figures])
        for key, count in other.figures.items():
            left.figures[key] -= count
        return left

    def moved(self, kind):
        return sum(n for key, n in self.figures.items() if key[0] == kind and key[1])

    def cells(self, operations, sides=2):
        """Moves for an operation; instructions for an operation and a side; lines for a run."""
        f = self.figures
        moves = [f"{self.moved(kind) / operations:.1f}" for kind in KINDS]
        instructions = (f["instructions", "user"] + f["instructions", "kernel"]) / operations / sides
        runs = max(f["runs", ""], 1)
        lines = [f"{f[kind, ''] / runs:.0f}" for kind in ("own", "data", "code")]
        return moves + [f"{instructions:.0f}"] + lines


def slots(path):
    """The tasks of each slot, by name."""
    for slot in json.loads(path.read_text())["slots"]:
        tasks = defaultdict(lambda: defaultdict(int))
        for record in slot["records"]:
            if record["what"] == "task":
                detail = record.get("distance") or record.get("mode") or ""
                tasks[record["name"]][record["kind"], detail] += record["count"]
        yield slot, dict(tasks)


def busiest(tasks, number):
    """The users' tasks that ran most often."""
    users = [t for name, t in tasks.items() if name.startswith("user")]
    return sorted(users, key=lambda task: -task["runs", ""])[:number]


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def pairs(load, path, names=PLACES):
    """Two pinned tasks in lockstep, with the idle tasks of their CPUs."""
    for (slot, tasks), place in zip(slots(path), names):
        sides = busiest(tasks, 2)
        operations = slot["operations"] if slot["operations"] > 1 else sides[1]["runs", ""]
        idle = [t for name, t in tasks.items() if name.startswith("idle")]
        idle = sorted(idle, key=lambda task: -task["runs", ""])[:2]
        row(load, place, *Tasks(sides + idle).cells(operations)[:6], *Tasks(sides).cells(1)[6:])


def hackbench(path):
    """The first two slots are a whole group, short and long; the others have readers apart."""
    found = [tasks for _, tasks in slots(path)]
    whole = [Tasks(t for n, t in tasks.items() if not n.startswith("idle")) for tasks in found[:2]]
    users = [busiest(tasks, 40) for tasks in found[:2]]
    more = whole[1].minus(whole[0]).cells(20 * 20 * 20)
    row("hackbench, 40 tasks", "8 CPUs", *more[:6], *Tasks(users[1]).cells(1)[6:])
    for tasks, cpu, place in zip(found[2:], (1, 2, 4), PLACES):
        on = {n: t for n, t in tasks.items() if n.startswith("user") and n.endswith(f" on {cpu}")}
        readers = Tasks(busiest(on, 4))
        messages = readers.figures["instructions", "user"] / READ_INSTRUCTIONS
        row("hackbench, a reader", place, *readers.cells(messages, 1))


def sysbench(path):
    """Pairs of slots, 4 and 12 events of a thousand rounds."""
    found = [tasks for _, tasks in slots(path)]
    cases = ["alone", "two on a CPU", "two, a mutex, cluster", "two, a mutex, LLC"]
    for case, short, long in zip(cases, found[::2], found[1::2]):
        of = [Tasks(t for n, t in tasks.items() if n.startswith("user")) for tasks in (short, long)]
        more = of[1].minus(of[0])
        row("sysbench", case, *more.cells(8 * 1000, 1))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: count-lines.py OUT, the folder that count-lines.sh filled")
    out = Path(sys.argv[1])
    row("load", "where", *KINDS, "instructions a side", "its own lines", "data", "code")
    row(*["---"] * 2, *["---:"] * 9)
    for load in ("pipe", "tcp", "udp", "netperf", "tbench", "hackbench", "sysbench", "schbench"):
        path = out / f"{load}.json"
        if not path.exists():
            print(f"{load}: not counted, {path} is not there", file=sys.stderr)
            continue
        match load:
            case "hackbench":
                hackbench(path)
            case "sysbench":
                sysbench(path)
            case "netperf":
                pairs(load, path, [f"{t}, {p}" for t in ("TCP_RR", "UDP_RR") for p in PLACES])
            case _:
                pairs(load, path)


main()
