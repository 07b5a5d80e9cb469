"""LoCoMo: long conversations between two people, with questions and gold turns.

Only sessions are dated; every turn takes its session's time, read as UTC. A caption is part of
the turn's text; ``query`` and ``img_url`` never are, because gold answers leak from them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import (
    Conversation,
    Dataset,
    DatasetError,
    Label,
    Query,
    Repair,
    Source,
    Turn,
    map_records,
    read_bytes,
    text_of,
    words_of,
)
from benchmarks.datasets.evidence_ids import Pin, check_pinned, resolve

SOURCE = Source(
    name="locomo",
    origin="snap-research/LoCoMo, data/locomo10.json",
    revision="3eb6f2c",
    licence="CC BY-NC 4.0",
    known={
        "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4": "official",
        "31c997782d0d979ef7b6003035d3ff261538d9f9aec4f6482dccfe6894dc881a": "dev6",
    },
)

CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
ANSWERABLE = frozenset({"multi-hop", "temporal", "open-domain", "single-hop"})

_READ = frozenset({"conv-26", "conv-30", "conv-41", "conv-43", "conv-47", "conv-49"})
PINS = (
    Pin("malformed", "D8:6; D9:17", "conv-26", 37, ("D8:6", "D9:17")),
    Pin("malformed", "D:11:26", "conv-43", 18, ("D11:26",)),
    Pin("no such turn", "D4:36", "conv-47", 38, ()),
    Pin("malformed", "D9:1 D4:4 D4:6", "conv-49", 31, ("D9:1", "D4:4", "D4:6")),
    Pin(
        "malformed", "D22:1 D22:2 D9:10 D9:11", "conv-49", 38, ("D22:1", "D22:2", "D9:10", "D9:11")
    ),
    Pin(
        "malformed",
        "D21:18 D21:22 D11:15 D11:19",
        "conv-49",
        46,
        ("D21:18", "D21:22", "D11:15", "D11:19"),
    ),
    Pin("malformed", "D30:05", resolved=("D30:5",), elsewhere=_READ),
    Pin("unparseable", "D", resolved=(), elsewhere=_READ),
    Pin("no such turn", resolved=(), elsewhere=_READ),
    Pin("duplicate", elsewhere=_READ),
)
"""The nine malformed evidence strings and the one duplicate of the official file.

The open ones lie in the four conversations held out here, of which only the kinds are known.
"""

CORRECTIONS_SHA256 = "e88fcf97c4b0bb5428fb5017d9314d4d730795914e9cc05538d1e4764c86fd20"
"""The audit's corrections for the six development conversations (dial481/locomo-audit 9493fb4)."""

_SESSION = re.compile(r"session_(\d+)")
_Mapped = tuple[Query, Label, list[Repair]]


def session_time(text: str) -> datetime:
    """Read ``1:56 pm on 8 May, 2023`` as UTC; raises DatasetError for anything else."""
    try:
        return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise DatasetError(f"not a LoCoMo session time: {text!r}") from error


def turn_text(turn: Mapping[str, Any]) -> str:
    """Return the turn's text with its caption, when there is one."""
    caption = turn.get("blip_caption")
    text = text_of(turn, "text")
    return f"{text} [image: {caption}]" if caption else text


def _turns(record: Mapping[str, Any]) -> tuple[Turn, ...]:
    conversation = record["conversation"]
    numbers = sorted(
        int(match.group(1))
        for key, value in conversation.items()
        if (match := _SESSION.fullmatch(key)) and isinstance(value, list)
    )
    turns: list[Turn] = []
    for number in numbers:
        at = session_time(conversation[f"session_{number}_date_time"])
        turns += [
            Turn(
                words_of(turn, "dia_id"),
                f"session_{number}",
                words_of(turn, "speaker"),
                "user",
                turn_text(turn),
                at,
            )
            for turn in conversation[f"session_{number}"]
        ]
    ids = [turn.turn_id for turn in turns]
    if len(set(ids)) != len(ids):
        raise DatasetError(f"{record['sample_id']}: a dia_id occurs twice")
    return tuple(turns)


def _label(sample: str, index: int, entry: Mapping[str, Any], known: Collection[str]) -> _Mapped:
    category = CATEGORIES.get(entry.get("category", 0))
    if category is None:
        raise DatasetError(f"{sample}, question {index}: unknown category")
    query_id = f"{sample}/{index}"
    gold, repairs = resolve(entry.get("evidence", ()), known, conversation_id=sample, index=index)
    answer = entry.get("answer")
    label = Label(
        query_id,
        gold,
        category,
        None if answer is None else str(answer),
        answerable=category in ANSWERABLE,
    )
    return Query(query_id, words_of(entry, "question")), label, repairs


def _corrected(
    record: Mapping[str, Any], corrections: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the record under the audit's labels, having checked that the audit saw this one."""
    sample = record["sample_id"]
    entries = [dict(entry) for entry in record["qa"]]
    for change in corrections:
        if change["sample_id"] != sample:
            continue
        index = change["question_index"]
        entry = entries[index] if index < len(entries) else {}
        cited = (change["question"], change["category"], change["cited_evidence"])
        if (entry.get("question"), entry.get("category"), entry.get("evidence")) != cited:
            raise DatasetError(f"{sample}, question {index}: the correction is for another label")
        entry["evidence"] = change["correct_evidence"]
        entry["answer"] = change["correct_answer"]
    return {**record, "qa": entries}


def _conversation(record: Mapping[str, Any]) -> tuple[Conversation, list[Repair]]:
    sample = str(record["sample_id"])
    turns = _turns(record)
    known = {turn.turn_id for turn in turns}
    mapped = [_label(sample, index, entry, known) for index, entry in enumerate(record["qa"])]
    queries = tuple(query for query, _, _ in mapped)
    labels = {label.query_id: label for _, label, _ in mapped}
    repairs = [repair for _, _, mended in mapped for repair in mended]
    return Conversation(sample, turns, queries, labels), repairs


def read_corrections(path: Path) -> list[dict[str, Any]]:
    """Return the audit's corrections; raises DatasetError for any other file."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != CORRECTIONS_SHA256:
        raise DatasetError(f"{path.name}: not the pinned file of label corrections")
    corrections: list[dict[str, Any]] = json.loads(content)
    return corrections


def load(
    path: Path, *, corrections: Path | None = None, accept_repairs: str | None = None
) -> Dataset:
    """Map a LoCoMo file whole.

    Args:
        path: The file; known by SHA-256, or labelled ``unofficial``.
        corrections: The audit's corrections: the condition is then ``corrected``.
        accept_repairs: Digest of the log of malformed labels of a file that is not known.

    Raises:
        DatasetError: A record is not as expected, or a malformed label is not pinned.
    """
    content, digest, label = read_bytes(path, SOURCE)
    changes = read_corrections(corrections) if corrections else []

    def mapped(_: int, record: Mapping[str, Any]) -> tuple[Conversation, list[Repair]]:
        conversation, mended = _conversation(record)
        if changes:
            conversation, _ignored = _conversation(_corrected(record, changes))
        return conversation, mended

    conversations, repairs = map_records(content, path.name, "LoCoMo records", mapped)
    if len({c.conversation_id for c in conversations}) != len(conversations):
        raise DatasetError(f"{path.name}: a conversation occurs twice")
    exact = label == "official"
    check_pinned(repairs, PINS, where=path.name, exact=exact, accepted=accept_repairs)
    condition = "corrected" if corrections else "official"
    return Dataset(SOURCE, digest, label, conversations, tuple(repairs), condition)
