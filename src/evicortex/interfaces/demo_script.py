"""What a demonstration tells and asks; the bundled conversation's script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from io import BytesIO
from itertools import groupby
from typing import TypedDict

from evicortex.interfaces.importers import IMPORTERS, Entry, ImportOptions
from evicortex.types import EvidenceDraft

BUNDLED = "demo_conversation.jsonl"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the times it is asked for, and the external ids of what answers it.

    ``absent`` are words that no cited text may hold. ``answered_by`` empty: nothing answers it;
    ``refused``: the pack should say so.
    """

    text: str
    remark: str
    answered_by: tuple[str, ...] = ()
    as_of: str | None = None
    known_at: str | None = None
    absent: tuple[str, ...] = ()
    refused: bool = False
    budget: int = 160


class PurgeSelector(TypedDict):
    """The selector of what is purged."""

    session: str


@dataclass(frozen=True, slots=True)
class DemoScript:
    """A conversation by session, in order, and what is asked of it.

    ``fact`` is the subject and predicate whose history is shown. ``purge`` is the selector of
    what is forgotten, ``purged_words`` are words that occur nowhere else.
    """

    namespace: str
    sessions: tuple[tuple[Entry, ...], ...]
    questions: tuple[Question, ...]
    fact: tuple[str, str]
    fact_remark: str
    purge: PurgeSelector
    purge_remark: str
    purged_words: tuple[str, ...]


def by_session(entries: Iterator[Entry]) -> tuple[tuple[Entry, ...], ...]:
    """Group entries that follow each other by their session."""
    grouped = groupby(entries, key=_session)
    return tuple(tuple(group) for _, group in grouped)


def _session(entry: Entry) -> str | None:
    return entry.found.session if isinstance(entry.found, EvidenceDraft) else None


def bundled_script() -> DemoScript:
    """Two years of Nora, Idris and their assistant, with claims declared in the file."""
    data = (resources.files("evicortex.interfaces") / BUNDLED).read_bytes()
    sessions = by_session(IMPORTERS["jsonl"](BytesIO(data), ImportOptions()))
    return DemoScript(
        namespace="nora",
        sessions=sessions,
        questions=_QUESTIONS,
        fact=("Nora", "lives_in"),
        fact_remark="Nothing is overwritten: each move closes the claim before it.",
        purge={"session": "s7"},
        purge_remark="Nora asked for it: the private talk of May 2024 goes, with all that came of it.",
        purged_words=("biopsy", "Marrowgate", "Aldric"),
    )


_QUESTIONS = (
    Question(
        "Where does Nora live?",
        "A question asked as of one date",
        answered_by=("s1:3",),
        as_of="2023-12-01T00:00:00Z",
    ),
    Question(
        "Where does Nora live?",
        "the same question as of another",
        answered_by=("s5:1",),
        as_of="2024-06-01T00:00:00Z",
    ),
    Question("Where does Nora live?", "and today", answered_by=("s10:1",)),
    Question(
        "When is Runa's birthday?",
        "What was known before a correction",
        answered_by=("s1:8",),
        known_at="2023-05-01T00:00:00Z",
    ),
    Question("When is Runa's birthday?", "and after it", answered_by=("s2:8",)),
    Question("What is Idris allergic to?", "A fact said once, two years ago", ("s1:7",)),
    Question(
        "How long did Nora take for the marathon in Rotterdam?", "A detail", answered_by=("s6:1",)
    ),
    Question("What did Nora do in October 2023?", "A question about a time", ("s3:1",)),
    Question(
        "Which marathon is Nora running, other than Rotterdam?",
        "An exclusion: nothing cited may mention Rotterdam",
        answered_by=("s10:7",),
        absent=("Rotterdam",),
    ),
    Question("How much did Pilot's surgery cost?", "A number", answered_by=("s9:6",)),
    Question("佐藤さんはだれですか?", "Another language, without a model", ("s8:6",)),
    Question(
        "What is the alarm code of The Lantern?",
        "A hostile mail was remembered: it stays attributed data",
        answered_by=("s9:1",),
    ),
    Question("Which university did Idris attend?", "Nothing answers this", refused=True),
)
