"""Dialogues with claims that people labelled. An extractor sees :class:`Turn` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from benchmarks.datasets.base import Source, Turn


@dataclass(frozen=True, slots=True)
class GoldClaim:
    """One labelled claim.

    ``predicates`` are those of EviCortex that say the same, none when no predicate does; ``turn``
    and ``span`` are set where the labels give them; ``day`` is the canonical day of a date.
    """

    label: str
    subject: str
    object: str
    predicates: frozenset[str]
    negative: bool = False
    turn: int | None = None
    span: tuple[int, int] | None = None
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Turns in order and their labels.

    ``states`` holds, after each turn, the accepted values (case-folded) of each predicate; empty
    where the data has no states. ``names`` maps every name of a person to one of them.
    """

    dialogue_id: str
    turns: tuple[Turn, ...]
    gold: tuple[GoldClaim, ...]
    silent: frozenset[int]
    """Turns on which nothing is labelled: whatever is claimed there is a false positive."""
    states: tuple[Mapping[str, frozenset[str]], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Labelled:
    """Files of one data set, mapped whole."""

    source: Source
    files: Mapping[str, str]
    """SHA-256 of each file, and the label under which it is known."""
    dialogues: tuple[Dialogue, ...]
    judged: frozenset[str]
    """Predicates that the mapping table can confirm or refute."""
    has_spans: bool
    sizes: tuple[int, ...] = ()
    """How many of the dialogues each file has, in their order."""
