"""Looking after a ledger: purge, rebuild, sync, verify, export, load, counts."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace

from evicortex.errors import CorruptLedgerError, InputError, NotFoundError, SelectorError
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger import keys, transfer
from evicortex.ledger import purge as purging
from evicortex.ledger import verify as verification
from evicortex.pipeline.drafts import check_text
from evicortex.pipeline.embedding import embed_due
from evicortex.pipeline.indexing import bring_up_to_date, clear, forget
from evicortex.pipeline.sentences import sentence_identity
from evicortex.pipeline.times import sync_times
from evicortex.pipeline.wiring import Rooms
from evicortex.policy import ranking
from evicortex.types import (
    Capabilities,
    Diagnostic,
    ExportReport,
    LoadReport,
    Problem,
    PurgeReceipt,
    RebuildReport,
    Stats,
    SyncReport,
    VerifyReport,
)

_PENDING = Diagnostic(
    "purge_pending",
    "a reader still holds a snapshot from before the purge, so its bytes are still in the "
    "write-ahead log; the next write or open finishes it, and verify reports it until then",
)


def purge(rooms: Rooms, namespace: str, selector: purging.Selector) -> PurgeReceipt:
    """Remove what the selector covers from the ledger and every projection in one transaction.

    Raises:
        SelectorError, NotFoundError, NamespaceError: nothing was removed.
    """
    keys.check_namespace(namespace)
    _check_selector(selector)
    with rooms.ledger.write() as tx:
        ns = tx.namespace(namespace)
        if ns is None:
            if selector.evidence_id is not None:
                raise NotFoundError(
                    f"there is no evidence {selector.evidence_id!r}: nothing was stored in "
                    f"namespace {namespace!r}"
                )
            return PurgeReceipt((), (), ())
        rows = purging.select(tx, ns, selector)
        forget(rooms, tx, ns, rows)
        removed = purging.remove(tx, ns, rows)
    complete = purging.finish(rooms.ledger)
    return PurgeReceipt(
        evidence_ids=removed.evidence_ids,
        claim_ids=removed.claim_ids,
        tombstones=removed.tombstones,
        reinstated=removed.reinstated,
        complete=complete,
        diagnostics=() if complete else (_PENDING,),
    )


def _check_selector(selector: purging.Selector) -> None:
    """Refuse what is no selector: a purge must not follow from a value of another type."""
    if type(selector.everything) is not bool:
        raise SelectorError(f"everything is True or False, not {selector.everything!r}")
    for name in ("evidence_id", "session", "source", "actor"):
        value = getattr(selector, name)
        if value is not None and not check_text(value, name).strip():
            raise SelectorError(f"{name} is blank; name what is to be purged")


def rebuild(rooms: Rooms, namespace: str) -> RebuildReport:
    """Throw the namespace's projections away and derive them again from the ledger."""
    keys.check_namespace(namespace)
    with rooms.ledger.write() as tx:
        ns = tx.namespace(namespace)
        if ns is None:
            return RebuildReport(0, {})
        clear(rooms, tx, ns)
        tx.bump_generation(ns)
    bring_up_to_date(rooms, namespace, strict=True)
    sync_times(rooms, namespace)
    with rooms.ledger.read() as tx:
        count = evidence_ledger.stats(tx, ns).evidence
        mentions = rooms.times.count(tx.connection, ns.namespace_id)
    return RebuildReport(count, {"lexical": count, "times": mentions})


def verify(rooms: Rooms, namespace: str | None) -> VerifyReport:
    """Check the ledger; raises NotFoundError for a namespace that was never written to."""
    report = verification.verify(rooms.ledger, namespace)
    problems = (*report.problems, *_damaged_sentences(rooms, namespace))
    return replace(report, ok=not problems, problems=problems)


def _damaged_sentences(rooms: Rooms, namespace: str | None) -> list[Problem]:
    try:
        with rooms.ledger.read() as tx:
            return [
                Problem(
                    "sentences.altered",
                    ns.name,
                    f"the sentence vectors of row {row_id} {wrong}; run sync_semantic",
                    {"row_id": row_id},
                )
                for ns in tx.namespaces()
                if namespace in (None, ns.name)
                for row_id, wrong in rooms.sentences.damaged(tx.connection, ns.namespace_id)
            ]
    except CorruptLedgerError as error:
        return [Problem("file.damaged", namespace or "", str(error))]


def _path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"a path is a text or a Path, not {type(path).__name__}")
    return path


def export(rooms: Rooms, namespace: str, path: str | os.PathLike[str]) -> ExportReport:
    """Write a namespace as JSON Lines; raises NotFoundError when it was never written to."""
    return transfer.export(rooms.ledger, namespace, _path(path))


def load(rooms: Rooms, namespace: str, path: str | os.PathLike[str]) -> LoadReport:
    """Read an export into a namespace, wholly or not at all, then index it."""
    report = transfer.load(rooms.ledger, namespace, _path(path))
    problems = bring_up_to_date(rooms, namespace, after=0, claim_ids=None)
    return replace(report, diagnostics=(*report.diagnostics, *problems))


def sync(rooms: Rooms, namespace: str) -> SyncReport:
    """Index and embed what is missing or stale, and only that; see ``sync_semantic``."""
    keys.check_namespace(namespace)
    problems = bring_up_to_date(rooms, namespace, strict=True)
    sync_times(rooms, namespace)
    report = embed_due(rooms, namespace, replace_foreign=True)
    return replace(report, diagnostics=(*problems, *report.diagnostics))


def capabilities(rooms: Rooms) -> Capabilities:
    """Return what is really on; a namespace embedded by another encoder is named in the notes."""
    embedder = rooms.embedder
    notes: list[str] = []
    if embedder is None:
        notes.append(rooms.semantic_off_because)
    else:
        notes += [diagnostic.message for diagnostic in embedder.diagnostics]
        if not embedder.profile.semantic:
            notes.append(f"{embedder.profile.model_id} is a diagnostic encoder, no semantic model")
        with rooms.ledger.read() as tx:
            foreign = rooms.semantic.foreign_namespaces(tx.connection, embedder.digest)
        if foreign:
            notes.append(
                "another encoder made the vectors of these namespaces; run sync_semantic: "
                + ", ".join(foreign)
            )
    if not rooms.counter.exact:
        notes.append("token counts are estimates; for exact ones: pip install 'evicortex[local]'")
    on = dict.fromkeys(("turn", "window", "session", "actor", "time", "claims", "literal"), True)
    return Capabilities(
        channels={**on, "dense_turn": embedder is not None, "dense_window": embedder is not None},
        embedder=None
        if embedder is None
        else {
            **embedder.profile.values(),
            "digest": embedder.digest,
            "sentences": sentence_identity(rooms),
        },
        extractor=None
        if rooms.extractor is None
        else {"id": rooms.extractor.extractor_id, "revision": rooms.extractor.revision},
        ranker=_ranker(rooms),
        reranker=None if rooms.reranker is None else {"identity": rooms.reranker.identity},
        token_counter={"identity": rooms.counter.identity, "exact": rooms.counter.exact},
        sqlite_version=rooms.ledger.sqlite_version,
        schema_version=rooms.ledger.schema_version,
        notes=tuple(notes),
    )


def _ranker(rooms: Rooms) -> dict[str, object] | None:
    if not rooms.ranks_closer:
        return None
    weights = ranking.written(rooms.ranker or ranking.bundled())
    return {"version": ranking.VERSION, "weights_sha256": hashlib.sha256(weights).hexdigest()}


def stats(rooms: Rooms, namespace: str) -> Stats:
    """Return counts of a namespace; zeros when nothing was ever written to it."""
    with rooms.ledger.read() as tx:
        ns = tx.namespace(namespace)
        if ns is None:
            return Stats(namespace, 0, 0, 0, 0, 0)
        return evidence_ledger.stats(tx, ns)


def namespaces(rooms: Rooms) -> tuple[str, ...]:
    """Return the names of all namespaces, sorted."""
    with rooms.ledger.read() as tx:
        return tuple(sorted(row.name for row in tx.namespaces()))
