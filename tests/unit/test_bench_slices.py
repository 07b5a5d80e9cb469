"""Conversations of other kinds, made by rule; facts of assistant turns, made by rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.datasets import needles, slices
from benchmarks.datasets.base import Conversation, Label, Query, Turn
from benchmarks.recall_suites import sentence_shown

AT = datetime(2024, 3, 1, tzinfo=UTC)
LINES = (
    ("Ann", "Hi Ben, Annabel's cat is here."),
    ("Ben", "Ann, is it James' cat?"),
    ("Ann", "It is Ben's."),
)
QUESTIONS = (
    ("When did Ben meet Ann's cat on 1 March 2024?", "Ben"),
    ("What did Ann tell Ben about Annabel?", None),
    ("Which gift did Ben get for Ben's birthday?", None),
)


@pytest.fixture
def conversation() -> Conversation:
    turns = tuple(
        Turn(f"D1:{n}", "s1", actor, "user", text, AT) for n, (actor, text) in enumerate(LINES)
    )
    queries = tuple(Query(f"q{n}", text, None, actor) for n, (text, actor) in enumerate(QUESTIONS))
    labels = {
        query.query_id: Label(query.query_id, ("D1:0",), "single-hop", "Ben") for query in queries
    }
    return Conversation("c", turns, queries, labels)


def test_speakers_come_in_the_order_in_which_they_begin(conversation: Conversation) -> None:
    assert slices.speakers(conversation) == ("Ann", "Ben")


@pytest.mark.parametrize("name", slices.SLICES)
def test_a_slice_keeps_ids_sessions_gold_and_the_number_of_questions(
    conversation: Conversation, name: str
) -> None:
    made = slices.SLICES[name](conversation)
    assert made == slices.SLICES[name](conversation)
    assert made.labels == conversation.labels
    assert made.conversation_id == conversation.conversation_id
    assert [(t.turn_id, t.session) for t in made.turns] == [
        (t.turn_id, t.session) for t in conversation.turns
    ]
    assert [q.query_id for q in made.queries] == [q.query_id for q in conversation.queries]


def test_without_dates_nothing_but_the_times_goes(conversation: Conversation) -> None:
    made = slices.without_dates(conversation)
    assert all(turn.occurred_at is None for turn in made.turns)
    assert [turn.text for turn in made.turns] == [text for _, text in LINES]
    assert made.queries == conversation.queries


def test_without_names_speakers_are_someone_and_other_people_stay(
    conversation: Conversation,
) -> None:
    made = slices.without_names(conversation)
    assert {turn.actor for turn in made.turns} == {""}
    assert [turn.text for turn in made.turns] == [
        "Hi someone, Annabel's cat is here.",
        "someone, is it James' cat?",
        "It is someone's.",
    ]
    assert made.queries[0].text == "When did someone meet someone's cat on 1 March 2024?"
    assert {query.query_actor for query in made.queries} == {None}


def test_one_speaker_says_everything_and_is_the_only_name(conversation: Conversation) -> None:
    made = slices.one_speaker(conversation)
    assert slices.speakers(made) == ("Ann",)
    assert made.turns[0].text == "Hi Ann, Annabel's cat is here."
    assert made.queries[2].text == "Which gift did Ann get for Ann's birthday?"


def test_the_speaker_whom_most_questions_name_becomes_the_user_who_asks(
    conversation: Conversation,
) -> None:
    made = slices.assistant_chat(conversation)
    assert [(turn.actor, turn.role) for turn in made.turns] == [
        ("assistant", "assistant"),
        ("user", "user"),
        ("assistant", "assistant"),
    ]
    assert [turn.text for turn in made.turns] == [text for _, text in LINES]
    assert [query.text for query in made.queries] == [
        "When did I meet your cat on 1 March 2024?",
        "What did you tell I about Annabel?",
        "Which gift did I get for my birthday?",
    ]
    assert {query.query_actor for query in made.queries} == {"user"}


def test_a_name_after_a_preposition_becomes_me_and_a_bare_apostrophe_possesses() -> None:
    turns = (Turn("t", "s", "James", "user", "x", AT), Turn("u", "s", "Ann", "user", "y", AT))
    queries = (Query("q", "Who gave James' dog to James and Ann’s cat to Ann?"),)
    made = slices.assistant_chat(Conversation("c", turns, queries, {}))
    assert made.queries[0].text == "Who gave my dog to me and your cat to you?"


FILLER = "and then the same again " * 40


def record(path: Path, *answers: str) -> Path:
    lines = [
        turn
        for answer in answers
        for turn in (
            {"role": "user", "content": f"{FILLER} Zebras quietly outrun heavy iron lanterns."},
            {"role": "assistant", "content": answer},
        )
    ]
    entry = {"haystack_sessions": [lines], "haystack_dates": ["2023/05/30 (Tue) 23:17"]}
    path.write_text(json.dumps([entry]), encoding="utf-8")
    return path


def test_a_fact_is_asked_by_the_rarest_words_of_a_sentence_in_its_order(tmp_path: Path) -> None:
    fact = "Perhaps walnut varnish protects every violin better than the same again would."
    dataset = needles.assistant_facts(record(tmp_path / "r.json", f"{FILLER}\n1. {fact}", "Short."))
    (conversation,) = dataset.conversations
    (query,) = conversation.queries
    label = conversation.labels[query.query_id]
    assert query.text == "perhaps protects every better"
    assert query.query_actor == "user"
    assert (label.gold, label.answer) == (("S0:1",), fact)
    assert dataset.label == "unofficial"


def test_sentences_without_rare_words_user_turns_and_short_turns_are_never_asked(
    tmp_path: Path,
) -> None:
    common = f"{FILLER} then again same then again same then again same."
    dataset = needles.assistant_facts(record(tmp_path / "r.json", common, "Walnut varnish."))
    assert dataset.questions == 0


def test_turns_take_turns_in_which_of_their_sentences_is_asked(tmp_path: Path) -> None:
    both = (
        f"{FILLER}\nRed walnut varnish protects every violin in here."
        "\nCold harbour pilots navigate narrow channels after midnight."
    )
    dataset = needles.assistant_facts(record(tmp_path / "r.json", both, both))
    answers = [label.answer for label in dataset.conversations[0].labels.values()]
    assert [str(answer).split()[0] for answer in answers] == ["Red", "Cold"]


def test_a_fact_counts_when_its_sentence_is_shown_wherever_and_however_broken() -> None:
    label = Label("q", ("a",), "assistant fact", "One two three.")
    assert sentence_shown(label, {"b": "… One two\n  three. …"}, {}) == 1.0
    assert sentence_shown(label, {"a": "One two … three."}, {}) == 0.0
    assert sentence_shown(label, {}, {}) == 0.0
