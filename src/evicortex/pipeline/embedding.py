"""Vectors after the commit: what is due is embedded, and what fails is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from evicortex.errors import LedgerError, ProviderError
from evicortex.ledger import NamespaceRow
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.semantic import Due, Kind, VectorRow
from evicortex.types import Diagnostic, Span, SyncReport
from evicortex.validation import CheckedEmbedder, EmbeddedBatch

BATCH = 128
"""Evidence or claims embedded and stored in one transaction: what an interruption can cost."""

_LISTED = 20
"""Failures named in a diagnostic; all are counted."""


@dataclass(slots=True)
class _Tally:
    indexed: int = 0
    stale: int = 0
    missing: int = 0
    failed: int = 0
    rejected: list[tuple[str, str]] = field(default_factory=list)
    stopped: Diagnostic | None = None

    def report(self) -> SyncReport:
        diagnostics = () if self.stopped is None else (self.stopped,)
        if self.rejected:
            diagnostics = (*diagnostics, _rejected(self.rejected))
        return SyncReport(self.indexed, self.stale, self.missing, self.failed, diagnostics)


class _Work(NamedTuple):
    """What is to be embedded: one kind, past an item, and who is told how far it is."""

    kind: Kind
    after: int
    on_progress: Callable[[int], None] | None


def embed_due(
    rooms: Rooms,
    namespace: str,
    *,
    after: int = 0,
    claims_after: int | None = 0,
    replace_foreign: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> SyncReport:
    """Embed evidence past the row ``after``, and claims past a number, that have no vector.

    That is, none of their present text by this encoder. ``claims_after`` ``None``: no claims.

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
    tally = _Tally()
    whole = _embed(rooms, ns, embedder, _Work("evidence", after, on_progress), tally)
    if whole and claims_after is not None:
        _embed(rooms, ns, embedder, _Work("claim", claims_after, None), tally)
    return tally.report()


def _mismatch(ns: NamespaceRow) -> Diagnostic:
    return Diagnostic(
        "semantic_identity_mismatch",
        f"the vectors of namespace {ns.name!r} were made by another encoder; run sync_semantic "
        "to embed it again",
        {"namespace": ns.name},
    )


def _embed(
    rooms: Rooms, ns: NamespaceRow, embedder: CheckedEmbedder, work: _Work, tally: _Tally
) -> bool:
    """Embed what is due; return whether the encoder and the ledger went along to the end."""
    after = work.after
    while due := _due(rooms, ns, embedder, work.kind, after):
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
                        work.kind,
                        rows,
                    )
        except (ProviderError, LedgerError) as error:
            tally.failed += len(due)
            tally.stopped = Diagnostic(
                "semantic_not_indexed",
                f"{_SAID[work.kind]} committed but without vectors yet: {error}; run sync_semantic",
                {"error": type(error).__name__},
            )
            return False
        tally.indexed += len(due) - len(bad)
        tally.failed += len(bad)
        tally.rejected += bad
        if work.on_progress is not None:
            work.on_progress(tally.indexed + tally.failed)
    return True


_SAID: Mapping[Kind, str] = {"evidence": "the evidence is", "claim": "the claims are"}


def _due(
    rooms: Rooms, ns: NamespaceRow, embedder: CheckedEmbedder, kind: Kind, after: int
) -> list[Due]:
    find = rooms.semantic.due if kind == "evidence" else rooms.semantic.due_claims
    with rooms.ledger.read() as tx:
        return find(tx.connection, ns.namespace_id, embedder.digest, after=after, limit=BATCH)


def _rejected(failures: Sequence[tuple[str, str]]) -> Diagnostic:
    return Diagnostic(
        "vectors_rejected",
        f"{len(failures)} evidence or claims have no vector because what the encoder gave "
        "cannot be used",
        {"failures": tuple(failures[:_LISTED]), "count": len(failures)},
    )


def _vectors(
    embedder: CheckedEmbedder, due: Sequence[Due]
) -> tuple[list[VectorRow], list[tuple[str, str]]]:
    """Return the rows to store and (digest, reason) of texts that have no usable vector.

    Texts go to the encoder shortest first, so that a batching one pads little. An over-long
    text is embedded window by window and kept as several rows. A blank text has nothing to
    embed: its vector is that of no direction, all zeros, near to nothing and due no more.
    """
    blank: list[VectorRow] = []
    pieces: list[tuple[Due, int, Span | None, str]] = []
    for each in due:
        windows = embedder.windows(each.text)
        if not windows:
            nothing = np.zeros(embedder.profile.dimensions, dtype=np.float32)
            blank.append(VectorRow(each.item, 0, None, each.input_digest, nothing))
        for part, window in enumerate(windows):
            whole = len(windows) == 1
            text = each.text if whole else each.text[window.start : window.end]
            pieces.append((each, part, None if whole else window, text))
    pieces.sort(key=lambda piece: (len(piece[3]), piece[0].item, piece[1]))
    batch = embedder.embed([text for *_, text in pieces], input_type="document")
    rows, bad = _rows(pieces, batch)
    return sorted([*rows, *blank], key=lambda row: (row.item, row.part)), bad


def _rows(
    pieces: Sequence[tuple[Due, int, Span | None, str]],
    batch: EmbeddedBatch,
) -> tuple[list[VectorRow], list[tuple[str, str]]]:
    bad: list[tuple[str, str]] = []
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
    return rows, bad
