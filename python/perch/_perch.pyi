# SPDX-License-Identifier: GPL-2.0-or-later
import os
from collections.abc import Callable
from typing import Any, Self, TypedDict, final, type_check_only

from matplotlib.figure import Figure

__all__ = [
    "MODEL",
    "Comparison",
    "Machine",
    "Recording",
    "Rows",
    "Store",
    "Sweep",
    "Table",
    "__version__",
    "compare",
    "key",
    "machine",
    "machines",
    "replay",
    "simulate_json",
    "workloads",
]

MODEL: str
"""The model's version: results of the same simulation and the same model are the same bytes."""
__version__: str

_Path = str | os.PathLike[str]
_Modes = str | dict[str, str]

@type_check_only
class Done(TypedDict):
    """The numbers of a sweep's simulations, and the messages of those that failed."""

    all: int
    had: int
    made: int
    failed: list[str]

@final
class Machine:
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def cpus(self) -> int: ...
    @property
    def cores(self) -> int: ...
    @property
    def clusters(self) -> int: ...
    @property
    def llcs(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def toml(self) -> str: ...

@final
class Table:
    """A table that pyarrow.table, polars.DataFrame and pandas.DataFrame.from_arrow take."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def num_rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Rows:
    """The rows of a recording, read while pyarrow.RecordBatchReader.from_stream takes them.

    pyarrow.table, polars.DataFrame and pandas.DataFrame.from_arrow take them all.
    """

    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Recording:
    """A recording as `perch record` writes it."""

    def __new__(cls, path: _Path, *, era: str | None = None) -> Self: ...
    @property
    def path(self) -> os.PathLike[str]: ...
    @property
    def perch(self) -> str: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def kernel(self) -> str: ...
    @property
    def era(self) -> str: ...
    @property
    def modes(self) -> str: ...
    @property
    def hz(self) -> int: ...
    @property
    def command(self) -> list[str]: ...
    def counts(self) -> dict[str, Any]: ...
    def wake_ups(self, modes: _Modes | None = None) -> Rows: ...
    def decisions(self) -> Rows: ...

@final
class Comparison:
    @property
    def json(self) -> str: ...
    def table(self) -> Table: ...
    def plot(self, score: str | None = None, **kwargs: Any) -> Figure: ...

@final
class Store:
    def __new__(cls, path: _Path) -> Self: ...
    @property
    def path(self) -> os.PathLike[str]: ...
    def keys(self) -> list[str]: ...
    def put(self, text: str) -> str: ...
    def verify(self) -> list[tuple[str, str]]: ...

@final
class Sweep:
    @staticmethod
    def from_file(path: _Path) -> Sweep: ...
    @staticmethod
    def from_toml(text: str, origin: str = "sweep") -> Sweep: ...
    @property
    def names(self) -> list[str]: ...
    def specs(self, shard: str = "1/1") -> list[tuple[str, str]]: ...
    def missing(self, store: _Path, shard: str = "1/1") -> list[tuple[str, str]]: ...
    def run(
        self,
        store: _Path,
        jobs: int | None = None,
        shard: str = "1/1",
        progress: Callable[[int, int], object] | None = None,
    ) -> Done: ...
    def table(self, store: _Path) -> Table: ...

def compare(
    machine: str,
    workload: str,
    arms: list[tuple[str, str]],
    era: str,
    effort: str,
    seed: int,
    jobs: int | None,
    hz: int,
    root_domain: str,
) -> Comparison: ...
def machine(name_or_path: str) -> Machine: ...
def machines() -> list[str]: ...
def replay(
    path: _Path,
    modes: _Modes | None = None,
    *,
    era: str | None = None,
    jobs: int | None = None,
) -> dict[str, Any]: ...
def workloads() -> list[tuple[str, str]]: ...
def key(text: str) -> str: ...
def simulate_json(text: str, store: _Path | None = None) -> str: ...
