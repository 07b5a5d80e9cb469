"""Imports entries into a namespace, batch by batch; the same for the command line and the demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from evicortex.cortex import EviCortex
from evicortex.errors import ConflictError, ImportFormatError
from evicortex.interfaces.diagnosing import Reported, reported
from evicortex.interfaces.importers import BadRecord, Entry, Place, SkippedRecord
from evicortex.types import Diagnostic, EvidenceDraft, RejectedDraft, RememberReceipt

BATCH = 512
"""Messages a transaction: large enough to spread the cost of a commit, small enough to resume."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A line or record that was not imported. ``error`` is the name of the error class."""

    number: int
    label: str
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, in messages.

    ``skipped`` counts what a format leaves out, by reason; ``diagnostics`` what the library
    reported of the messages that it took.
    """

    created: int
    unchanged: int
    not_indexed: int
    skipped: Mapping[str, int]
    refused: tuple[Refused, ...]
    diagnostics: tuple[Reported, ...] = ()

    @property
    def conflicts(self) -> int:
        """How many messages have the external id of another text."""
        return sum(item.error == ConflictError.__name__ for item in self.refused)


def import_entries(
    cortex: EviCortex, namespace: str, entries: Iterable[Entry], *, batch: int = BATCH
) -> ImportReport:
    """Remember every draft of ``entries``; report, by place, whatever was refused.

    Each batch is one transaction. An interrupted import is resumed by running it again.
    """
    tally = _Tally()
    for chunk in _chunks(entries, batch):
        tally.add_unread(chunk)
        drafts = [
            (entry.place, entry.found) for entry in chunk if isinstance(entry.found, EvidenceDraft)
        ]
        receipts = cortex.remember_many(namespace, [draft for _, draft in drafts])
        for (place, _), receipt in zip(drafts, receipts, strict=True):
            if isinstance(receipt, RejectedDraft):
                tally.refuse(place, receipt.error, receipt.message)
            else:
                tally.count(receipt)
    return tally.report()


def _chunks(entries: Iterable[Entry], size: int) -> Iterator[list[Entry]]:
    iterator = iter(entries)
    while chunk := list(islice(iterator, size)):
        yield chunk


class _Tally:
    """Counts while an import runs."""

    def __init__(self) -> None:
        self._created = self._unchanged = self._not_indexed = 0
        self._skipped: Counter[str] = Counter()
        self._refused: list[Refused] = []
        self._diagnostics: list[Diagnostic] = []

    def add_unread(self, chunk: list[Entry]) -> None:
        for place, found in chunk:
            if isinstance(found, BadRecord):
                self.refuse(place, ImportFormatError.__name__, found.reason)
            elif isinstance(found, SkippedRecord):
                self._skipped[found.reason] += 1

    def refuse(self, place: Place, error: str, message: str) -> None:
        self._refused.append(Refused(place.number, place.label, error, message))

    def count(self, receipt: RememberReceipt) -> None:
        self._created += receipt.created
        self._unchanged += not receipt.created
        self._not_indexed += not receipt.indexed
        self._diagnostics += receipt.diagnostics

    def report(self) -> ImportReport:
        return ImportReport(
            created=self._created,
            unchanged=self._unchanged,
            not_indexed=self._not_indexed,
            skipped=dict(sorted(self._skipped.items())),
            refused=tuple(sorted(self._refused, key=lambda item: item.number)),
            diagnostics=reported(self._diagnostics),
        )
