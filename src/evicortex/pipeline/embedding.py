"""Vectors after the commit: what is due is embedded, and what fails is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evicortex.errors import LedgerError, ProviderError
from evicortex.ledger import NamespaceRow
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.semantic import Due, VectorRow
from evicortex.types import Diagnostic, Span, SyncReport
from evicortex.validation import CheckedEmbedder, EmbeddedBatch

BATCH = 128
"""Evidence embedded and stored in one transaction: what an interruption can cost."""

_LISTED = 20
"""Failures named in a diagnostic; all are counted."""


@dataclass(slots=True)
class _Tally:
    indexed: int = 0
    stale: int = 0
    missing: int = 0
    failed: int = 0

    def report(self, diagnostics: Sequence[Diagnostic]) -> SyncReport:
        return SyncReport(self.indexed, self.stale, self.missing, self.failed, tuple(diagnostics))


def embed_due(
    rooms: Rooms,
    namespace: str,
    *,
    after: int = 0,
    replace_foreign: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> SyncReport:
    """Embed evidence past the row ``after`` that has no vector of its text by this encoder.

    Vectors of another identity are replaced only with ``replace_foreign``; without it a
    namespace that holds some is left alone, so that two encoders never mix. Each batch is
    committed by itself: an interruption loses at most one, and the next call goes on from there.
    Evidence is never touched, and a provider that fails raises nothing here.
    """
    embedder = rooms.embedder
    if embedder is None:
        off = Diagnostic("semantic_off", rooms.semantic_off_because)
        return SyncReport(0, 0, 0, 0, (off,))
    with rooms.ledger.read() as tx:
        ns = tx.namespace(namespace)
        if ns is None:
            return SyncReport(0, 0, 0, 0)
        if not replace_foreign:
            foreign = rooms.semantic.foreign(tx.connection, ns.namespace_id, embedder.digest)
            if foreign:
                return SyncReport(0, 0, 0, 0, (_mismatch(ns),))
    return _embed(rooms, ns, embedder, after, on_progress)


def _mismatch(ns: NamespaceRow) -> Diagnostic:
    return Diagnostic(
        "semantic_identity_mismatch",
        f"the vectors of namespace {ns.name!r} were made by another encoder; run sync_semantic "
        "to embed it again",
        {"namespace": ns.name},
    )


def _embed(
    rooms: Rooms,
    ns: NamespaceRow,
    embedder: CheckedEmbedder,
    after: int,
    on_progress: Callable[[int], None] | None,
) -> SyncReport:
    tally = _Tally()
    failures: list[tuple[str, str]] = []
    while True:
        with rooms.ledger.read() as tx:
            due = rooms.semantic.due(
                tx.connection, ns.namespace_id, embedder.digest, after=after, limit=BATCH
            )
        if not due:
            break
        after = due[-1].item
        tally.stale += sum(each.stale for each in due)
        tally.missing += sum(not each.stale for each in due)
        try:
            rows, bad = _vectors(embedder, due)
            if rows:
                with rooms.ledger.write() as tx:
                    rooms.semantic.store(
                        tx.connection,
                        ns.namespace_id,
                        embedder.profile,
                        embedder.digest,
                        "evidence",
                        rows,
                    )
        except (ProviderError, LedgerError) as error:
            tally.failed += len(due)
            stopped = Diagnostic(
                "semantic_not_indexed",
                f"the evidence is committed but has no vectors yet: {error}; run sync_semantic",
                {"error": type(error).__name__},
            )
            return tally.report([stopped])
        tally.indexed += len(due) - len(bad)
        tally.failed += len(bad)
        failures += bad
        if on_progress is not None:
            on_progress(tally.indexed + tally.failed)
    return tally.report([_rejected(failures)] if failures else [])


def _rejected(failures: Sequence[tuple[str, str]]) -> Diagnostic:
    return Diagnostic(
        "vectors_rejected",
        f"{len(failures)} evidence have no vector because what the encoder gave cannot be used",
        {"failures": tuple(failures[:_LISTED]), "count": len(failures)},
    )


def _vectors(
    embedder: CheckedEmbedder, due: Sequence[Due]
) -> tuple[list[VectorRow], list[tuple[str, str]]]:
    """Return the rows to store and (digest, reason) of evidence that has no usable vector.

    Texts go to the encoder shortest first, so that a batching one pads little. An over-long
    text is embedded window by window and kept as several rows.
    """
    pieces: list[tuple[Due, int, Span | None, str]] = []
    bad: list[tuple[str, str]] = []
    for each in due:
        windows = embedder.windows(each.text)
        if not windows:
            bad.append((each.input_digest, "blank text"))
        for part, window in enumerate(windows):
            whole = len(windows) == 1
            text = each.text if whole else each.text[window.start : window.end]
            pieces.append((each, part, None if whole else window, text))
    pieces.sort(key=lambda piece: (len(piece[3]), piece[0].item, piece[1]))
    batch = embedder.embed([text for *_, text in pieces], input_type="document")
    return _rows(pieces, batch, bad)


def _rows(
    pieces: Sequence[tuple[Due, int, Span | None, str]],
    batch: EmbeddedBatch,
    bad: list[tuple[str, str]],
) -> tuple[list[VectorRow], list[tuple[str, str]]]:
    rejected = {pieces[error.index][0].item: error for error in batch.errors}
    for item, error in sorted(rejected.items()):
        digest = next(each.input_digest for each, *_ in pieces if each.item == item)
        bad.append((digest, error.message))
    rows = [
        VectorRow(each.item, part, span, each.input_digest, batch.vectors[place])
        for place, (each, part, span, _) in (
            (place, pieces[index]) for place, index in enumerate(batch.indices)
        )
        if each.item not in rejected
    ]
    rows.sort(key=lambda row: (row.item, row.part))
    return rows, bad
