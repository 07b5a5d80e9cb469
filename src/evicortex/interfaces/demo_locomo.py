"""The demonstration's script for a LoCoMo file: its own questions, and facts made from its turns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from json import dumps
from pathlib import Path
from typing import Any

from evicortex.errors import ImportFormatError
from evicortex.interfaces.demo_script import DemoScript, Question, by_session
from evicortex.interfaces.importers import IMPORTERS, Entry, ImportOptions
from evicortex.interfaces.importers.chosen_records import Conversation, chosen_records
from evicortex.interfaces.plain import iso
from evicortex.types import ClaimDraft, EvidenceDraft

_ANSWERABLE = (1, 2, 3, 4)
_WORD = re.compile(r"[A-Za-z]{7,}")
_STEM_LETTERS = 5
_STRANGERS = ("Zephyrine Quillfeather", "Ottoline Marchbanks", "Balthazar Ngugi-Thorne")
_QUESTIONS = 8
_BUDGET = 256


def locomo_script(path: Path) -> DemoScript:
    """Make a script from the first conversation of ``path``.

    Raises ``ImportFormatError`` when the file is not LoCoMo or too small to ask anything of.
    """
    with path.open("rb") as file:
        first = next(chosen_records(file, None, "sample_id"), None)
    if not isinstance(first, Conversation):
        raise ImportFormatError(f"{path.name} holds no LoCoMo conversation")
    entries = IMPORTERS["locomo"](BytesIO(dumps(first.record).encode()), ImportOptions())
    sessions = by_session(_with_claims(entries))
    drafts = [
        entry.found
        for session in sessions
        for entry in session
        if isinstance(entry.found, EvidenceDraft)
    ]
    asked = first.record.get("qa")
    if not drafts or not isinstance(asked, list):
        raise ImportFormatError(f"{path.name} has no dated sessions or no questions")
    speaker = drafts[0].actor or ""
    turn, word = _rarest(drafts)
    return DemoScript(
        namespace=first.identifier,
        sessions=sessions,
        questions=(*_questions(asked, drafts), _exclusion(speaker, drafts), *_stranger(drafts)),
        fact=(speaker, "last_heard_in"),
        fact_remark=(
            "LoCoMo declares no claims and no model runs here, so the demonstration recorded "
            "in which session each speaker was last heard."
        ),
        purge={"session": turn.session or ""},
        purge_remark=f"One session goes: the only one with the word '{word}'.",
        purged_words=(word,),
    )


def _with_claims(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Let the first turn of each speaker in each session claim that it was heard there."""
    heard: set[tuple[str | None, str | None]] = set()
    for entry in entries:
        draft = entry.found
        if isinstance(draft, EvidenceDraft) and (draft.session, draft.actor) not in heard:
            heard.add((draft.session, draft.actor))
            claim = ClaimDraft(
                draft.actor or "", "last_heard_in", draft.session or "", cardinality="single"
            )
            yield entry._replace(found=replace(draft, claims=(claim,)))
        else:
            yield entry


def _questions(asked: Sequence[Any], drafts: Sequence[EvidenceDraft]) -> Iterator[Question]:
    """Yield questions spread over the file; the latest one also as of a time before its answer."""
    order = {draft.external_id: index for index, draft in enumerate(drafts)}
    usable = [
        Question(
            item["question"],
            f"Question {index} of the file",
            tuple(item["evidence"]),
            budget=_BUDGET,
        )
        for index, item in enumerate(asked)
        if item.get("category") in _ANSWERABLE
        and item.get("evidence")
        and all(name in order for name in item["evidence"])
    ]
    yield from usable[:: max(1, len(usable) // _QUESTIONS)][:_QUESTIONS]
    single = [question for question in usable if len(question.answered_by) == 1]
    if single:
        latest = max(single, key=lambda question: order[question.answered_by[0]])
        said = drafts[order[latest.answered_by[0]]].occurred_at
        before = iso(_before(said))
        yield replace(latest, remark="As of a time before the answer", answered_by=(), as_of=before)
        yield replace(latest, remark="and today")


def _before(moment: Any) -> Any:
    return moment.replace(hour=0, minute=0)


def _stranger(drafts: Sequence[EvidenceDraft]) -> Iterator[Question]:
    """Yield a question about somebody whom no turn mentions.

    The file's own adversarial questions are no such thing: they are about what was said, and
    only the person is wrong.
    """
    said = " ".join(f"{draft.actor} {draft.content}" for draft in drafts).casefold()
    for name in _STRANGERS:
        if not any(word in said for word in name.casefold().split()):
            yield Question(
                f"Which instrument does {name} play?",
                "Invented for this demonstration: nobody ever spoke of this person",
                refused=True,
                budget=_BUDGET,
            )
            return


def _exclusion(speaker: str, drafts: Sequence[EvidenceDraft]) -> Question:
    names = {(draft.actor or "").lower() for draft in drafts}
    counts = Counter(
        word.lower()
        for draft in drafts
        if draft.actor == speaker
        for word in _WORD.findall(draft.content)
        if word.lower() not in names
    )
    word = counts.most_common(1)[0][0] if counts else "nothing"
    return Question(
        f"What did {speaker} talk about, other than {word}?",
        f"An exclusion: nothing cited may mention '{word}'",
        absent=(word,),
        budget=_BUDGET,
    )


def _rarest(drafts: Sequence[EvidenceDraft]) -> tuple[EvidenceDraft, str]:
    """Return a turn with a word whose first letters occur in no other turn, and that word."""
    everything = [draft.content.lower() for draft in drafts]
    for draft in drafts:
        for word in sorted(_WORD.findall(draft.content), key=lambda word: (-len(word), word)):
            stem = word[:_STEM_LETTERS].lower()
            if sum(stem in text for text in everything) == 1:
                return draft, word
    raise ImportFormatError("no turn has a word of its own to purge")
