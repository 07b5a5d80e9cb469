"""Questions about one LongMemEval record: facts of its user turns, and of its assistant turns.

An assistant-style conversation: short user turns, long answers. The person who asks is the user.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import (
    Conversation,
    Dataset,
    DatasetError,
    Label,
    Query,
    Source,
    Turn,
    read_bytes,
)

SOURCE = Source(
    name="needles",
    origin="written for this project about one record of LongMemEval-S (cleaned)",
    revision="1",
    licence="same as the project; the record is MIT",
    known={"b4e0a249dc16caf3d39b61399ff9aa794219a0fea67c716302ede4e311456275": "needles40"},
)

FACTS = Source(
    name="assistant-facts",
    origin="made by rule from one record of LongMemEval-S (cleaned)",
    revision="1",
    licence="MIT, as the record",
    known={"9c5d1cd86db0d66671786bae984d94337cde306f1235a14bb12bd6a958b27d81": "one record"},
)
QUERIES = 100
RARE_WORDS = 4
_RARE_IN = 5
_LONG_TURN = 150
_SENTENCE_WORDS = range(8, 41)
_WORD = re.compile(r"[^\W\d_]{4,}")
_MARKER = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def session_time(text: str) -> datetime:
    """Read ``2023/05/30 (Tue) 23:17`` as UTC; raises DatasetError for anything else."""
    try:
        return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
    except ValueError as error:
        raise DatasetError(f"not a LongMemEval time: {text!r}") from error


def _turns(entry: Mapping[str, Any]) -> tuple[Turn, ...]:
    return tuple(
        Turn(f"S{session}:{place}", f"S{session}", turn["role"], turn["role"], turn["content"], at)
        for session, (lines, at) in enumerate(
            zip(
                entry["haystack_sessions"],
                map(session_time, entry["haystack_dates"]),
                strict=True,
            )
        )
        for place, turn in enumerate(lines)
    )


def _read_record(content: bytes) -> tuple[Turn, ...]:
    found = json.loads(content)
    return _turns(found[0] if isinstance(found, list) else found)


def load(path: Path, record: Path) -> Dataset:
    """Map the questions onto the record; raises DatasetError when they do not fit it."""
    content, digest, label = read_bytes(path, SOURCE)
    turns = _read_record(record.read_bytes())
    known = {turn.turn_id for turn in turns}
    queries: list[Query] = []
    labels: dict[str, Label] = {}
    for index, needle in enumerate(json.loads(content)):
        gold = f"S{needle['gold'][0]}:{needle['gold'][1]}"
        if gold not in known:
            raise DatasetError(f"needle {index} names turn {gold}, which the record lacks")
        query_id = f"needles/{index}"
        queries.append(Query(query_id, needle["question"], None, "user"))
        labels[query_id] = Label(query_id, (gold,), "user fact", str(needle["answer"]))
    conversation = Conversation("needles", turns, tuple(queries), labels)
    return Dataset(SOURCE, digest, label, (conversation,))


def assistant_facts(record: Path) -> Dataset:
    """Return queries about single sentences of long assistant turns, made by rule.

    A query is the four rarest words of one sentence, in its order; rare means in at most
    ``_RARE_IN`` turns of the record. A turn gives one sentence: the next turn the next one in
    place, so that beginnings and ends are asked alike; of all such turns ``QUERIES`` are taken at
    even distances. The label's answer is the sentence. No person asked these, and they are easier
    than questions that people ask.
    """
    content, digest, label = read_bytes(record, FACTS)
    turns = _read_record(content)
    frequency = Counter(word for turn in turns for word in set(_words(turn.text)))
    found: list[tuple[Turn, str, str]] = []
    for turn in turns:
        asked = _facts(turn, frequency)
        if asked:
            found.append((turn, *asked[len(found) % len(asked)]))
    count = min(QUERIES, len(found))
    chosen = [found[place * len(found) // count] for place in range(count)]
    queries: list[Query] = []
    labels: dict[str, Label] = {}
    for turn, sentence, text in chosen:
        query_id = f"assistant-facts/{turn.turn_id}"
        queries.append(Query(query_id, text, None, "user"))
        labels[query_id] = Label(query_id, (turn.turn_id,), "assistant fact", sentence)
    conversation = Conversation("assistant-facts", turns, tuple(queries), labels)
    return Dataset(FACTS, digest, label, (conversation,))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _facts(turn: Turn, frequency: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the sentences of a long assistant turn that can be asked for, with the queries."""
    if turn.role != "assistant" or len(turn.text.split()) < _LONG_TURN:
        return []
    found: list[tuple[str, str]] = []
    for sentence in _sentences(turn.text):
        words = list(dict.fromkeys(_words(sentence)))
        rare = [word for word in words if frequency[word] <= _RARE_IN]
        if len(rare) >= RARE_WORDS:
            kept = sorted(rare, key=lambda word: (frequency[word], word))[:RARE_WORDS]
            found.append((sentence, " ".join(word for word in words if word in kept)))
    return found


def _sentences(text: str) -> Sequence[str]:
    lines = [_MARKER.sub("", line).strip() for line in text.splitlines()]
    return [
        sentence
        for line in lines
        for sentence in _SENTENCE_END.split(line)
        if sentence.endswith((".", "!", "?")) and len(sentence.split()) in _SENTENCE_WORDS
    ]
