"""A conversation as it goes on: each turn extracted with the turns before it as context."""

from __future__ import annotations

import threading
from dataclasses import replace

from evicortex.errors import InputError
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger import keys
from evicortex.pipeline.extraction import remember_extracted
from evicortex.pipeline.wiring import Rooms
from evicortex.protocols import ClaimExtractor
from evicortex.types import EvidenceDraft, ExtractionReceipt

MAX_CONTEXT_TURNS = 64


class Turns:
    """The newest turns of one session, oldest first; safe to share between threads.

    Turns are those of the ledger when the conversation is opened, then those that are said. A
    turn that is said again is seen as it was seen first: with the turns before it.
    """

    def __init__(
        self,
        rooms: Rooms,
        namespace: str,
        session: str,
        extractor: ClaimExtractor | None,
        context_turns: int,
    ) -> None:
        keys.check_namespace(namespace)
        if not isinstance(session, str) or not session.strip():
            raise InputError("a conversation needs the name of its session")
        if type(context_turns) is not int or not 0 <= context_turns <= MAX_CONTEXT_TURNS:
            raise InputError(f"context_turns is from 0 to {MAX_CONTEXT_TURNS}")
        self._rooms = rooms
        self._namespace = namespace
        self._session = session
        self._extractor = extractor
        self._limit = context_turns
        self._lock = threading.Lock()
        self._said = self._stored()

    @property
    def context(self) -> tuple[tuple[str | None, str], ...]:
        """What the next turn is read with: (actor, text), oldest first."""
        with self._lock:
            return self._before(len(self._said))

    def say(self, draft: EvidenceDraft) -> ExtractionReceipt:
        """Remember one turn of the session with its claims; as ``remember_extracted``."""
        with self._lock:
            place = self._place(draft.external_id)
            receipt = remember_extracted(
                self._rooms,
                self._namespace,
                replace(draft, session=self._session),
                self._extractor,
                self._before(place),
            )
            if receipt.created or place == len(self._said):
                self._said.append((draft.external_id, draft.actor, draft.content))
                del self._said[: -2 * MAX_CONTEXT_TURNS]
            return receipt

    def _stored(self) -> list[tuple[str | None, str | None, str]]:
        with self._rooms.ledger.read() as tx:
            ns = tx.namespace(self._namespace)
            if ns is None:
                return []
            newest = evidence_ledger.newest_of_session(
                tx, ns, self._session, limit=MAX_CONTEXT_TURNS
            )
        return [(each.external_id, each.actor, each.content) for each in newest]

    def _place(self, external_id: str | None) -> int:
        if external_id is not None:
            for number, (known, _, _) in enumerate(self._said):
                if known == external_id:
                    return number
        return len(self._said)

    def _before(self, place: int) -> tuple[tuple[str | None, str], ...]:
        first = max(0, place - self._limit)
        return tuple((actor, text) for _, actor, text in self._said[first:place])
