"""Progress of long work: on standard error, and only where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from evicortex.interfaces.escaping import printable


@contextmanager
def measured(path: Path) -> Iterator[BinaryIO]:
    """Open a file so that reading from it moves a bar."""
    bar = _progress(BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with path.open("rb") as raw, bar:
        yield bar.wrap_file(raw, total=path.stat().st_size, description=printable(path.name))


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Show, while the block runs, what it is doing and for how long it has been at it."""
    spinner = _progress(SpinnerColumn(), TimeElapsedColumn())
    with spinner:
        spinner.add_task(printable(doing), total=None)
        yield


def _progress(*columns: ProgressColumn) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        *columns,
        console=Console(stderr=True, markup=False, emoji=False, highlight=False),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
