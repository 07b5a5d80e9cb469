"""EviCortex through its public calls, as any user would run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import Packed
from benchmarks.systems.costs import with_costs
from evicortex import ContextPack, EviCortex, EvidenceDraft, Settings

BATCH = 500
SOMEBODY = "Anonymous"
"""A name that no question uses."""


class EviCortexSystem:
    """One ledger file; one namespace a conversation.

    With ``declared`` the claims that come with a turn are remembered with it. With ``named``
    false, all turns are stored under the one name ``SOMEBODY``, so that neither a name nor an
    alias that the conversation teaches tells who spoke.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str = "evicortex",
        declared: bool = False,
        named: bool = True,
        **options: Any,
    ) -> None:
        self._name = name
        self._declared = declared
        self._named = named
        self._path = path
        self._options = options
        self._cortex = EviCortex.open(path, **options)

    @property
    def name(self) -> str:
        """The name in records and tables."""
        return self._name

    @property
    def cortex(self) -> EviCortex:
        """The cortex under measurement."""
        return self._cortex

    def reconfigured(self, settings: Settings, name: str | None = None) -> EviCortexSystem:
        """Return the same ledger file opened under other settings."""
        return EviCortexSystem(
            self._path,
            name=name or self._name,
            declared=self._declared,
            named=self._named,
            **{**self._options, "settings": settings},
        )

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Remember the turns in batches, so that vectors are made in batches too."""
        for start in range(0, len(turns), BATCH):
            drafts = [self._draft(turn) for turn in turns[start : start + BATCH]]
            for receipt in self._cortex.remember_many(namespace, drafts):
                if not hasattr(receipt, "evidence_id"):
                    raise ValueError(f"{namespace}: a turn was refused: {receipt}")

    def _draft(self, turn: Turn) -> EvidenceDraft:
        return EvidenceDraft(
            content=turn.text,
            actor=(turn.actor or None) if self._named else SOMEBODY,
            role=turn.role,
            session=turn.session,
            external_id=turn.turn_id,
            occurred_at=turn.occurred_at,
            claims=turn.claims if self._declared else (),
        )

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Recall within the budget."""
        pack = self._cortex.recall(
            namespace,
            query.text,
            budget_tokens=budget_tokens,
            as_of=query.as_of,
            query_actor=query.query_actor if self._named else None,
        )
        shown = {item.external_id: item.text for item in pack.items if item.external_id}
        return as_packed(pack, shown, packed_order(pack))

    def close(self) -> None:
        """Close the ledger."""
        self._cortex.close()


def support_signals(pack: ContextPack) -> dict[str, float]:
    """Return what a pack says about its support, as numbers.

    ``verdict`` is its own; ``coverage`` the openness of the lexical gate; ``turn`` and ``dense``
    the best item's scores of those channels, ``turn`` a term of the question; ``margin`` how much
    of the best lexical score the items of the actor asked about hold before all others, from -1
    to 1, 0 when nobody in particular is asked about.
    """
    terms = max(len(pack.trace.get("terms", ())), 1)
    found: dict[str, list[float]] = {"turn": [0.0], "dense_turn": [0.0]}
    theirs, others = 0.0, 0.0
    for item in pack.items:
        for name, values in found.items():
            if name in item.channels:
                values.append(item.channels[name].score)
        turn = item.channels["turn"].score if "turn" in item.channels else 0.0
        if "actor" in item.channels:
            theirs = max(theirs, turn)
        else:
            others = max(others, turn)
    asked = pack.trace.get("actor") is not None
    best = max(theirs, others)
    return {
        "verdict": float(pack.support.verdict == "supported"),
        "coverage": float(pack.trace.get("lexical_factor", 0.0)),
        "turn": max(found["turn"]) / terms,
        "dense": max(found["dense_turn"]),
        "margin": (theirs - others) / best if asked and best > 0 else 0.0,
    }


def packed_order(pack: ContextPack) -> tuple[str, ...]:
    """Return the external ids of a pack's items, the best first."""
    ranked = sorted(pack.items, key=lambda item: -item.score)
    return tuple(item.external_id for item in ranked if item.external_id)


def as_packed(pack: ContextPack, shown: Mapping[str, str], order: tuple[str, ...]) -> Packed:
    """Return a pack in the lab's terms, with what the trace says about compute."""
    vectors = "dense_turn" in pack.trace.get("channels", ())
    omitted = [item.external_id for item in pack.omitted if item.external_id]
    packed = Packed(
        pack.text,
        pack.token_count,
        shown,
        (*order, *(turn for turn in omitted if turn not in shown)),
        packed=order,
        refused=pack.support.verdict == "insufficient",
        probability=pack.support.probability,
        signals=support_signals(pack),
    )
    scored = int(pack.trace.get("allowed", 0)) * (2 if vectors else 1)
    return with_costs(packed, scored=scored, embedded=int(vectors))


def ablated(*channels: str, settings: Settings | None = None) -> Settings:
    """Return settings under which these channels say nothing, and the learned ranker is off.

    The ranker would see the channels whatever their weights; without it what has no weight has
    no say in the order. No channel at all is the base that the others are measured against.
    """
    base = settings or Settings()
    fusion = base.options.fusion
    zero = dict.fromkeys(channels, 0.0)
    fusion = replace(
        fusion,
        lexical=replace(fusion.lexical, **zero),
        hybrid=replace(fusion.hybrid, **zero),
        ranker=False,
    )
    return replace(base, options=replace(base.options, fusion=fusion))


def weighted(**values: Any) -> Settings:
    """Return settings with these values of the fusion, its weights or the cutting changed."""
    base = Settings()
    fusion, packing = base.options.fusion, base.options.packing
    mine, theirs, rest = (
        {key: value for key, value in values.items() if key in known}
        for known in (_names(fusion), _names(packing.cutting), _names(fusion.hybrid))
    )
    options = replace(
        base.options,
        fusion=replace(fusion, hybrid=replace(fusion.hybrid, **rest), **mine),
        packing=replace(packing, cutting=replace(packing.cutting, **theirs)),
    )
    unknown = set(values) - {*mine, *theirs, *rest}
    if unknown:
        raise ValueError(f"no setting is called {', '.join(sorted(unknown))}")
    return replace(base, options=options)


def _names(options: Any) -> set[str]:
    return {each.name for each in fields(options)}
