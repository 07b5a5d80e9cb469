"""Vectors after the commit: what is due is embedded, and what fails is said."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from evicortex.errors import LedgerError, MissingExtraError, ProviderError, TextTooLongError
from evicortex.ledger import NamespaceRow
from evicortex.pipeline.sentences import clipped, sentence_identity, sentences_of, within
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.semantic import Due, Kind, VectorRow
from evicortex.projections.sentences import SentenceRow
from evicortex.protocols import Float32Matrix
from evicortex.types import Diagnostic, Span, SyncReport
from evicortex.validation import CheckedEmbedder, EmbeddedBatch

BATCH = 128
"""Evidence or claims embedded and stored in one transaction: what an interruption can cost."""

_FAILED = (ProviderError, MissingExtraError)
"""What a checked encoder raises; the latter when it imports its library at the first call."""

_LISTED = 20
"""Failures named in a diagnostic; all are counted."""


@dataclass(slots=True)
class _Tally:
    indexed: int = 0
    stale: int = 0
    missing: int = 0
    failed: int = 0
    rejected: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    stopped: list[Diagnostic] = field(default_factory=list)

    def reject(self, task: _Task, failures: list[tuple[str, str]]) -> None:
        if failures:
            code = "sentences_rejected" if task == "sentences" else "vectors_rejected"
            self.rejected.setdefault(code, []).extend(failures)

    def report(self) -> SyncReport:
        rejected = (_rejected(code, failures) for code, failures in self.rejected.items())
        diagnostics = (*self.stopped, *rejected)
        return SyncReport(self.indexed, self.stale, self.missing, self.failed, diagnostics)


_Task = Literal["evidence", "claim", "sentences"]
"""``sentences``: of evidence that has a vector already, which stays as it is."""


class _Work(NamedTuple):
    """What is to be embedded: one task, past an item, and who is told how far it is."""

    task: _Task
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
    An encoder that gives vectors of spans embeds the sentences of evidence in the same pass, and
    those of evidence that has only its own vector.

    Vectors of another identity are replaced only with ``replace_foreign``; without it a
    namespace that holds some is left alone, so that two encoders never mix. With it the sentence
    vectors that are damaged are replaced too, and all of them go where none can be had. Each batch is
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
    if replace_foreign:
        _drop_sentences(rooms, ns)
    tally = _Tally()
    whole = _embed(rooms, ns, embedder, _Work("evidence", after, on_progress), tally)
    if whole and claims_after is not None:
        whole = _embed(rooms, ns, embedder, _Work("claim", claims_after, None), tally)
    if whole and sentence_identity(rooms) is not None:
        _embed(rooms, ns, embedder, _Work("sentences", after, None), tally)
    return tally.report()


def _drop_sentences(rooms: Rooms, ns: NamespaceRow) -> None:
    """Take out the sentences that are damaged, or all of them where none can be had."""
    usable = sentence_identity(rooms) is not None
    number = ns.namespace_id
    with rooms.ledger.read() as tx:
        damaged = [row_id for row_id, _ in rooms.sentences.damaged(tx.connection, number)]
        held = rooms.sentences.count(tx.connection, number)
    if damaged or (held and not usable):
        with rooms.ledger.write() as tx:
            if usable:
                rooms.sentences.remove(tx.connection, number, damaged)
            else:
                rooms.sentences.clear(tx.connection, number)


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
    while due := _due(rooms, ns, embedder, work.task, after):
        after = due[-1].item
        tally.stale += sum(each.stale for each in due)
        tally.missing += sum(not each.stale for each in due)
        try:
            made = _made(rooms, embedder, work.task, due)
            _store(rooms, ns, embedder, work.task, made)
        except (*_FAILED, LedgerError) as error:
            tally.failed += len(due)
            tally.stopped.append(_not_indexed(embedder, work.task, error))
            return False
        tally.indexed += len(due) - len(made.bad)
        tally.failed += len(made.bad)
        tally.reject(work.task, made.bad)
        if work.on_progress is not None:
            work.on_progress(tally.indexed + tally.failed)
    return True


_SAID: Mapping[_Task, tuple[str, str]] = {
    "evidence": ("semantic_not_indexed", "the evidence is committed but without vectors yet"),
    "claim": ("semantic_not_indexed", "the claims are committed but without vectors yet"),
    "sentences": ("sentences_not_indexed", "the evidence has no vectors of its sentences yet"),
}


def _not_indexed(embedder: CheckedEmbedder, task: _Task, error: Exception) -> Diagnostic:
    code, said = _SAID[task]
    details = {"error": type(error).__name__, "embedder": embedder.name}
    return Diagnostic(code, f"{said}: {error}; run sync_semantic", details)


def _due(
    rooms: Rooms, ns: NamespaceRow, embedder: CheckedEmbedder, task: _Task, after: int
) -> list[Due]:
    number, digest = ns.namespace_id, embedder.digest
    with rooms.ledger.read() as tx:
        if task == "sentences":
            identity = sentence_identity(rooms)
            assert identity is not None
            return rooms.sentences.due(
                tx.connection, number, digest, identity, after=after, limit=BATCH
            )
        find = rooms.semantic.due if task == "evidence" else rooms.semantic.due_claims
        return find(tx.connection, number, digest, after=after, limit=BATCH)


class _Made(NamedTuple):
    """What one batch gave: rows to store, and (digest, reason) of texts without a usable vector."""

    vectors: list[VectorRow]
    sentences: list[SentenceRow]
    bad: list[tuple[str, str]]


def _store(
    rooms: Rooms, ns: NamespaceRow, embedder: CheckedEmbedder, task: _Task, made: _Made
) -> None:
    if not made.vectors and not made.sentences:
        return
    with rooms.ledger.write() as tx:
        if task != "sentences":
            kind: Kind = task
            rooms.semantic.store(
                tx.connection,
                ns.namespace_id,
                embedder.profile,
                embedder.digest,
                kind,
                made.vectors,
            )
        if made.sentences:
            identity = sentence_identity(rooms)
            assert identity is not None
            rooms.sentences.store(
                tx.connection, ns.namespace_id, embedder.profile, identity, made.sentences
            )


_LACKING = {
    "vectors_rejected": "evidence or claims have no vector",
    "sentences_rejected": "evidence have no vectors of their sentences",
}


def _rejected(code: str, failures: Sequence[tuple[str, str]]) -> Diagnostic:
    return Diagnostic(
        code,
        f"{len(failures)} {_LACKING[code]} because what the encoder gave cannot be used",
        {"failures": tuple(failures[:_LISTED]), "count": len(failures)},
    )


class _Text(NamedTuple):
    """One input of the encoder: a text or a window of it, with the sentences that it holds most of.

    ``window`` and ``sentences`` are spans of the item's whole text.
    """

    due: Due
    part: int
    window: Span
    whole: bool
    sentences: Sequence[Span] = ()

    @property
    def text(self) -> str:
        return self.due.text[self.window.start : self.window.end]

    @property
    def span(self) -> Span | None:
        return None if self.whole else self.window

    @property
    def shifted(self) -> list[Span]:
        start = self.window.start
        inside = (clipped(span, self.window) for span in self.sentences)
        return [Span(begin - start, end - start) for begin, end in inside]


def _made(rooms: Rooms, embedder: CheckedEmbedder, task: _Task, due: Sequence[Due]) -> _Made:
    """Embed what is due.

    An encoder that fails at spans may still give the texts' own vectors, which do not depend on
    them; the sentences are then still due, and the next task says why.
    """
    if task == "claim" or sentence_identity(rooms) is None:
        return _plain(embedder, due)
    if task == "sentences":
        return _with_sentences(embedder, due, turns=False)
    try:
        return _with_sentences(embedder, due)
    except _FAILED:
        return _plain(embedder, due)


def _texts(
    embedder: CheckedEmbedder,
    due: Sequence[Due],
    sentences: Callable[[str], Sequence[Span]] = lambda _: (),
) -> tuple[list[_Text], list[VectorRow], dict[int, str]]:
    """Return what is to be embedded, the vectors of blank texts, and which items are too long.

    Texts go to the encoder shortest first, so that a batching one pads little. An over-long
    text is embedded window by window and kept as several rows. A blank text has nothing to
    embed: its vector is that of no direction, all zeros, near to nothing and due no more. An
    encoder that refuses over-long texts refuses those alone.
    """
    blank: list[VectorRow] = []
    texts: list[_Text] = []
    too_long: dict[int, str] = {}
    for each in due:
        try:
            windows = embedder.windows(each.text)
        except TextTooLongError as error:
            too_long[each.item] = str(error)
            continue
        if not windows:
            nothing = np.zeros(embedder.profile.dimensions, dtype=np.float32)
            blank.append(VectorRow(each.item, 0, None, each.input_digest, nothing))
        whole = len(windows) == 1
        if whole:
            windows = (Span(0, len(each.text)),)
        inside = within(sentences(each.text), windows)
        for part, (window, spans) in enumerate(zip(windows, inside, strict=True)):
            texts.append(_Text(each, part, window, whole, spans))
    texts.sort(key=lambda text: (len(text.text), text.due.item, text.part))
    return texts, blank, too_long


def _plain(embedder: CheckedEmbedder, due: Sequence[Due]) -> _Made:
    """Return the rows to store of texts alone."""
    texts, blank, too_long = _texts(embedder, due)
    batch = embedder.embed([each.text for each in texts], input_type="document")
    rejected = too_long | _rejects(texts, batch)
    return _Made(_rows(texts, batch, rejected, blank), [], _reasons(due, rejected))


def _with_sentences(embedder: CheckedEmbedder, due: Sequence[Due], *, turns: bool = True) -> _Made:
    """Return the rows to store of texts and of their sentences, embedded in one pass.

    Without ``turns`` only what has sentences is embedded, and the texts' vectors are not given.
    The sentences of a text that all came back without a vector stay due: the pass without turns,
    which finds them again, counts the text as bad.
    """
    texts, blank, too_long = _texts(embedder, due, sentences_of)
    if not turns:
        texts = [each for each in texts if each.sentences]
    answer = embedder.embed_spans([each.text for each in texts], [each.shifted for each in texts])
    rejected = too_long | _rejects(texts, answer.texts)
    unusable = _without_sentences(texts, answer.spans) | rejected
    sentences = _sentence_rows(embedder, texts, answer.spans, due)
    return _Made(
        _rows(texts, answer.texts, rejected, blank) if turns else [],
        [row for row in sentences if row.row_id not in unusable],
        _reasons(due, rejected if turns else unusable),
    )


def _without_sentences(texts: Sequence[_Text], batches: Sequence[EmbeddedBatch]) -> dict[int, str]:
    """Return, by item, that none of its sentences has a vector although some hold words.

    A sentence without tokens has none, but letters and digits are tokens of every encoder.
    """
    worded = {
        each.due.item
        for each in texts
        for begin, end in each.sentences
        if any(map(str.isalnum, each.due.text[begin:end]))
    }
    given = {each.due.item for each, batch in zip(texts, batches, strict=True) if batch.indices}
    return dict.fromkeys(worded - given, "no sentence of it has a usable vector")


def _rejects(texts: Sequence[_Text], batch: EmbeddedBatch) -> dict[int, str]:
    """Return, by item, why it has no usable vector."""
    return {texts[error.index].due.item: error.message for error in batch.errors}


def _reasons(due: Sequence[Due], rejected: Mapping[int, str]) -> list[tuple[str, str]]:
    return [(each.input_digest, rejected[each.item]) for each in due if each.item in rejected]


def _rows(
    texts: Sequence[_Text],
    batch: EmbeddedBatch,
    rejected: Container[int],
    blank: Sequence[VectorRow],
) -> list[VectorRow]:
    rows = [
        VectorRow(each.due.item, each.part, each.span, each.due.input_digest, vector)
        for vector, each in zip(batch.vectors, (texts[i] for i in batch.indices), strict=True)
        if each.due.item not in rejected
    ]
    return sorted([*rows, *blank], key=lambda row: (row.item, row.part))


def _sentence_rows(
    embedder: CheckedEmbedder,
    texts: Sequence[_Text],
    batches: Sequence[EmbeddedBatch],
    due: Sequence[Due],
) -> Iterator[SentenceRow]:
    """Yield one row an item; a sentence without tokens, and so without a vector, is left out."""
    found: dict[int, dict[Span, Float32Matrix]] = {each.item: {} for each in due}
    for each, batch in zip(texts, batches, strict=True):
        kept = [each.sentences[index] for index in batch.indices]
        found[each.due.item].update(zip(kept, batch.vectors, strict=True))
    for item in due:
        spans = sorted(found[item.item])
        vectors = np.zeros((len(spans), embedder.profile.dimensions), dtype=np.float32)
        for row, span in zip(vectors, spans, strict=True):
            row[:] = found[item.item][span]
        yield SentenceRow(item.item, item.input_digest, spans, vectors)
