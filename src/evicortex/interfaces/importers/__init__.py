"""Readers of conversation files: pure parsing, nothing is stored here."""

from __future__ import annotations

from evicortex.interfaces.importers import chatgpt, claude, jsonl, locomo, longmemeval
from evicortex.interfaces.importers.records import (
    BadRecord,
    Entry,
    Importer,
    ImportOptions,
    Place,
    SkippedRecord,
)

IMPORTERS: dict[str, Importer] = {
    "jsonl": jsonl.read,
    "locomo": locomo.read,
    "longmemeval": longmemeval.read,
    "chatgpt": chatgpt.read,
    "claude": claude.read,
}
"""Formats by the name that ``--format`` takes."""

__all__ = [
    "IMPORTERS",
    "BadRecord",
    "Entry",
    "ImportOptions",
    "Importer",
    "Place",
    "SkippedRecord",
]
