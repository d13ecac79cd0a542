# SPDX-License-Identifier: GPL-2.0-or-later
"""Parquet files of rows."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perch import Rows


def write(rows: Rows, path: str | os.PathLike[str]) -> None:
    """Write rows to a Parquet file as they are read: a row group for each part.

    The rows go to a temporary file beside it first. A reader sees the old file or the whole new one.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"{os.fspath(path)}: perch writes Parquet files with pyarrow, and cannot import it "
            f"({error}): pip install pyarrow"
        ) from error

    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: there is no folder {folder} to write it to")
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".new", delete=False) as unfinished:
        try:
            reader = pyarrow.RecordBatchReader.from_stream(rows)
            with pyarrow.parquet.ParquetWriter(
                unfinished, reader.schema, compression="zstd"
            ) as writer:
                for batch in reader:
                    writer.write_batch(batch)
            # Only the owner can read a temporary file; this one is shared as the store is.
            os.chmod(unfinished.name, 0o644)
            os.replace(unfinished.name, path)
        except BaseException:
            Path(unfinished.name).unlink(missing_ok=True)
            raise
