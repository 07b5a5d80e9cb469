"""The facade: wiring only. Every call checks its input, names a namespace, and hands over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal, TypeVar

from evicortex.errors import ClosedError, InputError
from evicortex.ledger.purge import Selector
from evicortex.opening import connect
from evicortex.pipeline import (
    beliefs,
    conversation,
    extraction,
    maintenance,
    recall,
    remember,
    times,
)
from evicortex.pipeline.sight import check_question
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.packing import checked_budget
from evicortex.protocols import ClaimExtractor, Clock, Embedder, Reranker, TokenCounter
from evicortex.settings import Settings
from evicortex.types import (
    Authority,
    Capabilities,
    Claim,
    ClaimDraft,
    ContextPack,
    Evidence,
    EvidenceDraft,
    ExportReport,
    ExtractionReceipt,
    ExtractionRecord,
    Json,
    LoadReport,
    PurgeReceipt,
    RebuildReport,
    RejectedDraft,
    RememberReceipt,
    RetractReceipt,
    SearchResult,
    Stats,
    SyncReport,
    TimeInput,
    TimeMention,
    VerifyReport,
)

Progress = Callable[[int, int], None]
"""Called with (done, total)."""


_Value = TypeVar("_Value")


def _several(values: Iterable[_Value], name: str) -> tuple[_Value, ...]:
    if not isinstance(values, Iterable):
        raise InputError(f"{name} is a sequence, not {type(values).__name__}")
    return tuple(values)


class EviCortex:
    """Evidence-first memory in one file. Open it with :meth:`open`; use it in a ``with`` block.

    Safe to share between threads; not across a fork. Every call raises ``NamespaceError`` for
    a missing or empty namespace, ``ClosedError`` after :meth:`close`, and ``InputError`` (or a
    subclass) for an argument that cannot be used; nothing is written then.
    """

    def __init__(self, rooms: Rooms, settings: Settings) -> None:
        self._rooms: Rooms | None = rooms
        self._settings = settings

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | Literal["auto"] | None = "auto",
        extractor: ClaimExtractor | None = None,
        reranker: Reranker | None = None,
        token_counter: TokenCounter | None = None,
        settings: Settings | None = None,
        read_only: bool = False,
        clock: Clock | None = None,
    ) -> EviCortex:
        """Open a ledger file, or make one.

        Args:
            path: the file; it is created unless ``read_only``.
            embedder: ``"auto"`` uses the local encoder when ``evicortex[local]`` is installed,
                ``None`` recalls without vectors.
            extractor: the default of :meth:`remember_extracted`.
            reranker: reorders at most 16 candidates of a recall.
            token_counter: counts budgets; the local tokenizer when installed, else an estimate.
            settings: ``None`` reads the defaults and the environment once, now.
            read_only: never writes, not even a migration.
            clock: source of the present; the system's by default.

        Raises:
            LedgerError: the file cannot be used (a subclass says why).
            ProviderError: a provider breaks its contract.
        """
        chosen = settings if settings is not None else Settings.from_environment()
        if not isinstance(chosen, Settings):
            raise InputError(f"settings is a Settings object, not {type(chosen).__name__}")
        rooms = connect(
            path,
            chosen.options,
            embedder=embedder,
            extractor=extractor,
            reranker=reranker,
            token_counter=token_counter,
            read_only=read_only,
            clock=clock,
        )
        return cls(rooms, chosen)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @property
    def token_counter(self) -> TokenCounter:
        """The counter that budgets are counted with."""
        return self._open.counter

    @property
    def _open(self) -> Rooms:
        if self._rooms is None:
            raise ClosedError("this cortex was closed; open it again to use it")
        return self._rooms

    def close(self) -> None:
        """Close the file; calling it twice does nothing more."""
        rooms, self._rooms = self._rooms, None
        if rooms is not None:
            rooms.close()

    def __enter__(self) -> EviCortex:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def remember(
        self,
        namespace: str,
        content: str,
        *,
        actor: str | None = None,
        role: str | None = None,
        session: str | None = None,
        source: str | None = None,
        external_id: str | None = None,
        occurred_at: TimeInput | None = None,
        authority: Authority | str | None = None,
        claims: Sequence[ClaimDraft] = (),
        metadata: Mapping[str, Json] | None = None,
    ) -> RememberReceipt:
        """Store one evidence and its claims atomically.

        The same ``external_id`` with the same text returns the same ids and ``created=False``.

        Raises:
            ConflictError: the ``external_id`` holds another text.
            InputError: an argument cannot be used (a subclass says which).
        """
        draft = EvidenceDraft(
            content=content,
            actor=actor,
            role=role,
            session=session,
            source=source,
            external_id=external_id,
            occurred_at=occurred_at,
            authority=authority,
            claims=_several(claims, "claims"),
            metadata={} if metadata is None else metadata,
        )
        return remember.remember(self._open, namespace, draft)

    def remember_many(
        self,
        namespace: str,
        drafts: Sequence[EvidenceDraft],
        *,
        on_progress: Progress | None = None,
    ) -> list[RememberReceipt | RejectedDraft]:
        """Store drafts in one transaction; a bad one is reported in its place, the others land."""
        return remember.remember_many(self._open, namespace, drafts, on_progress)

    def remember_extracted(
        self,
        namespace: str,
        content: str,
        *,
        extractor: ClaimExtractor | None = None,
        actor: str | None = None,
        role: str | None = None,
        session: str | None = None,
        source: str | None = None,
        external_id: str | None = None,
        occurred_at: TimeInput | None = None,
        authority: Authority | str | None = None,
        metadata: Mapping[str, Json] | None = None,
        previous: Sequence[tuple[str | None, str]] = (),
    ) -> ExtractionReceipt:
        """Extract claims, validate all of them, then store evidence and claims in one write.

        The same ``external_id`` and text again extracts anew from the evidence as it is stored:
        claims that the new extraction does not emit are withdrawn, and stay readable.
        ``previous`` holds (actor, text) of earlier turns that the extractor may read, never cite.

        Raises:
            ExtractionError: the result broke a rule; nothing was stored.
            ProviderUnavailableError: the extractor raised or timed out; nothing was stored.
            ConflictError: the ``external_id`` holds another text; the extractor was not asked.
            InputError: no extractor is configured, or an argument cannot be used.
        """
        draft = EvidenceDraft(
            content=content,
            actor=actor,
            role=role,
            session=session,
            source=source,
            external_id=external_id,
            occurred_at=occurred_at,
            authority=authority,
            metadata={} if metadata is None else metadata,
        )
        return extraction.remember_extracted(
            self._open, namespace, draft, extractor, _several(previous, "previous")
        )

    def conversation(
        self,
        namespace: str,
        session: str,
        *,
        extractor: ClaimExtractor | None = None,
        context_turns: int = 6,
    ) -> Conversation:
        """Return a session to which turns are said, each extracted with those before it.

        ``context_turns`` (0 to 64) earlier turns of the session are read, never cited. A session
        that is stored already goes on where it stopped.

        Raises:
            InputError: ``session`` is blank, or ``context_turns`` out of range.
        """
        return Conversation(
            conversation.Turns(self._open, namespace, session, extractor, context_turns)
        )

    def get_extraction(self, namespace: str, evidence_id: str) -> ExtractionRecord:
        """Return the newest extraction record of an evidence; raises NotFoundError."""
        return beliefs.get_extraction(self._open, namespace, evidence_id)

    def extraction_history(self, namespace: str, evidence_id: str) -> tuple[ExtractionRecord, ...]:
        """Return every extraction record of an evidence, oldest first; raises NotFoundError."""
        return beliefs.extraction_history(self._open, namespace, evidence_id)

    def recall(
        self,
        namespace: str,
        query: str,
        *,
        budget_tokens: int,
        query_actor: str | None = None,
        as_of: TimeInput | None = None,
        known_at: TimeInput | None = None,
        sessions: Sequence[str] | None = None,
        actors: Sequence[str] | None = None,
        include_superseded: bool = False,
        show_times: bool = False,
    ) -> ContextPack:
        """Return cited evidence for a question or a statement, inside a hard token budget.

        Args:
            namespace: whose memory is asked; no other is read.
            query: any text at all.
            budget_tokens: 0 to 1,000,000; ``token_count`` never exceeds it.
            query_actor: who asks or speaks.
            as_of: what was true then: evidence up to that time, claims that held.
            known_at: what was known then: records up to that time of the ledger.
            sessions: only these sessions.
            actors: only these actors' words.
            include_superseded: show superseded evidence, marked with what replaced it.
            show_times: show after each item what the times that it names mean, such as
                `` [last Saturday = 2026-03-07]``; items carry them as ``times``.
        """
        budget = checked_budget(budget_tokens)
        question = check_question(
            self._open,
            namespace,
            query,
            query_actor=query_actor,
            as_of=as_of,
            known_at=known_at,
            sessions=sessions,
            actors=actors,
            include_superseded=include_superseded,
            show_times=show_times,
        )
        return recall.recall(self._open, question, budget)

    def search(
        self,
        namespace: str,
        query: str,
        *,
        limit: int = 10,
        query_actor: str | None = None,
        as_of: TimeInput | None = None,
        known_at: TimeInput | None = None,
        sessions: Sequence[str] | None = None,
        actors: Sequence[str] | None = None,
        include_superseded: bool = False,
    ) -> SearchResult:
        """Return ranked evidence without packing; arguments as in :meth:`recall`."""
        wanted = recall.checked_limit(limit)
        question = check_question(
            self._open,
            namespace,
            query,
            query_actor=query_actor,
            as_of=as_of,
            known_at=known_at,
            sessions=sessions,
            actors=actors,
            include_superseded=include_superseded,
        )
        return recall.search(self._open, question, wanted)

    def claims(
        self,
        namespace: str,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        as_of: TimeInput | None = None,
        known_at: TimeInput | None = None,
        include_superseded: bool = False,
    ) -> tuple[Claim, ...]:
        """Return what is held true at ``as_of`` (now), as known at ``known_at``; oldest first."""
        return beliefs.claims(
            self._open,
            namespace,
            subject=subject,
            predicate=predicate,
            as_of=as_of,
            known_at=known_at,
            include_superseded=include_superseded,
        )

    def history(self, namespace: str, subject: str, predicate: str) -> tuple[Claim, ...]:
        """Return every claim ever recorded for a subject and predicate; oldest first."""
        return beliefs.history(self._open, namespace, subject, predicate)

    def retract(self, namespace: str, claim_id: str, *, reason: str) -> RetractReceipt:
        """Withdraw a claim from now on; the past stays readable through ``known_at``."""
        return beliefs.retract(self._open, namespace, claim_id, reason)

    def evidence(self, namespace: str, evidence_id: str) -> Evidence:
        """Return one evidence with its exact text; raises NotFoundError."""
        return beliefs.evidence(self._open, namespace, evidence_id)

    def times(self, namespace: str, evidence_id: str) -> tuple[TimeMention, ...]:
        """Return the times that one evidence names, in the order of its text.

        They are read from the moment at which it was said, in UTC days. Raises NotFoundError.
        """
        return times.times(self._open, namespace, evidence_id)

    def purge(
        self,
        namespace: str,
        *,
        evidence_id: str | None = None,
        session: str | None = None,
        source: str | None = None,
        actor: str | None = None,
        everything: bool = False,
    ) -> PurgeReceipt:
        """Delete for good what exactly one selector covers; its bytes are in no file afterwards.

        Raises:
            SelectorError: no selector, or several.
            NotFoundError: an ``evidence_id`` that is unknown in this namespace.
        """
        selector = Selector(
            evidence_id=evidence_id,
            session=session,
            source=source,
            actor=actor,
            everything=everything,
        )
        return maintenance.purge(self._open, namespace, selector)

    def sync_semantic(self, namespace: str) -> SyncReport:
        """Bring the projections of a namespace in step with its ledger; idempotent."""
        return maintenance.sync(self._open, namespace)

    def rebuild(self, namespace: str) -> RebuildReport:
        """Rebuild lexical, claim and time projections; invokes no provider."""
        return maintenance.rebuild(self._open, namespace)

    def verify(self, namespace: str | None = None) -> VerifyReport:
        """Check digests, spans, the audit chain and the projections; read-only."""
        return maintenance.verify(self._open, namespace)

    def export(self, namespace: str, path: str | os.PathLike[str]) -> ExportReport:
        """Write a namespace as JSON Lines."""
        return maintenance.export(self._open, namespace, path)

    def load(self, namespace: str, path: str | os.PathLike[str]) -> LoadReport:
        """Read an export into a namespace; loading twice changes nothing."""
        return maintenance.load(self._open, namespace, path)

    def stats(self, namespace: str) -> Stats:
        """Return counts of one namespace."""
        return maintenance.stats(self._open, namespace)

    def namespaces(self) -> tuple[str, ...]:
        """Return the names of all namespaces in the file, sorted."""
        return maintenance.namespaces(self._open)

    def capabilities(self) -> Capabilities:
        """Return which channels and providers are really on, and why one is off."""
        return maintenance.capabilities(self._open)


class Conversation:
    """One session as it goes on; made by :meth:`EviCortex.conversation`."""

    def __init__(self, turns: conversation.Turns) -> None:
        self._turns = turns

    @property
    def context(self) -> tuple[tuple[str | None, str], ...]:
        """What the next turn is read with: (actor, text), oldest first."""
        return self._turns.context

    def say(
        self,
        content: str,
        *,
        actor: str | None = None,
        role: str | None = None,
        source: str | None = None,
        external_id: str | None = None,
        occurred_at: TimeInput | None = None,
        authority: Authority | str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> ExtractionReceipt:
        """Remember one turn with its claims, as :meth:`EviCortex.remember_extracted` does."""
        draft = EvidenceDraft(
            content=content,
            actor=actor,
            role=role,
            source=source,
            external_id=external_id,
            occurred_at=occurred_at,
            authority=authority,
            metadata=metadata or {},
        )
        return self._turns.say(draft)
