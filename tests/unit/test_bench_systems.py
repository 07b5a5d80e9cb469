"""Comparators: the same turns, filters before ranking, hard budgets, and honest failures."""

from __future__ import annotations

import inspect
import typing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.datasets.base import Label, Query, Turn
from benchmarks.systems import controls, crossed, hybrid, longmemeval_retriever
from benchmarks.systems.base import Piece, merged, pack_greedily, pack_pieces, serialize
from benchmarks.systems.bm25 import BM25
from benchmarks.systems.catalog import ABLATION_BASE, Bench, make
from benchmarks.systems.chunks import RecordLog, large_chunks, sentences, small_chunks
from benchmarks.systems.dense import Dense, SharedEncoder
from benchmarks.systems.evicortex import (
    EviCortexSystem,
    ablated,
    weighted,
)
from benchmarks.systems.hybrid import DIAGNOSTIC, HybridChunks, HybridConfig, ScanOverflowError
from benchmarks.systems.longmemeval_retriever import LongMemEvalRetriever
from benchmarks.systems.rrf import ReciprocalRankFusion
from evicortex import EviCortex, Settings
from evicortex.providers.hashing import HashingEmbedder
from evicortex.types import Span

START = datetime(2023, 5, 1, 9, tzinfo=UTC)


class Hashing(HashingEmbedder):
    """The diagnostic encoder with windows, as the shared encoder expects."""

    def windows(self, text):
        return [Span(start, min(start + 400, len(text))) for start in range(0, len(text), 400)]


class Semantic(Hashing):
    """The same vectors, said to be semantic: the learned ranker would be on."""

    @property
    def profile(self):
        return replace(super().profile, semantic=True)


class Words:
    """Counts words."""

    identity, exact = "words", True

    def count(self, text):
        return len(text.split())


def words(text):
    return len(text.split())


def turn(number, text, *, session="s1", day=0, actor="Ann", role="user"):
    at = START + timedelta(days=day, minutes=number)
    return Turn(f"t{number}", session, actor, role, text, at)


TALK = [
    turn(0, "I bought a red kayak. It was cheap, only 3.50 euros!"),
    turn(1, "How nice. Where did you find it?", actor="Bob"),
    turn(2, "At the harbour market. The seller was kind.", actor="Ann"),
    turn(3, "My sister plays the cello every evening.", session="s2", day=3, actor="Bob"),
    turn(4, "I sold the red kayak yesterday.", session="s3", day=9),
]
QUESTION = Query("q", "Who has a red kayak?")


@pytest.fixture
def encoder():
    return SharedEncoder(Hashing())


def systems(encoder, tmp_path):
    config = HybridConfig()
    return [
        BM25(words),
        Dense(words, encoder),
        ReciprocalRankFusion(words, encoder),
        HybridChunks(words, encoder),
        LongMemEvalRetriever(words, encoder, "turn"),
        LongMemEvalRetriever(words, encoder, "session"),
        controls.FullHistory(words),
        controls.NoMemory(),
        crossed.turns_under_hybrid(words, encoder, config),
        crossed.ChunksUnderEviCortex(tmp_path / "c.db", words, config, embedder=None),
        EviCortexSystem(tmp_path / "e.db", embedder=None),
    ]


def test_no_system_breaks_the_budget_or_shows_what_had_not_happened(encoder, tmp_path):
    with EviCortex.open(tmp_path / "count.db", embedder=None) as cortex:
        count = cortex.token_counter.count
    early = Query("q", QUESTION.text, START + timedelta(days=4))
    for system in systems(encoder, tmp_path):
        system.ingest("a", TALK)
        system.ingest("b", [turn(9, "I own three red kayaks.")])
        for budget in (0, 12, 40, 400):
            for query in (QUESTION, early):
                packed = system.ask("a", query, budget)
                assert packed.token_count <= budget or not packed.text
                assert set(packed.packed) == set(packed.shown)
                assert "t9" not in packed.ranking, system.name
                if query is early:
                    assert "t4" not in {*packed.ranking, *packed.shown}, system.name
        system.close()
    assert count("") == 0


def test_no_signature_of_a_system_takes_a_label():
    makers = [
        BM25,
        Dense,
        ReciprocalRankFusion,
        HybridChunks,
        LongMemEvalRetriever,
        controls.FullHistory,
        controls.NoMemory,
        crossed.ChunksUnderEviCortex,
        EviCortexSystem,
    ]
    for maker in makers:
        for name in ("ingest", "ask"):
            hints = typing.get_type_hints(getattr(maker, name))
            assert not any(Label in (hint, *typing.get_args(hint)) for hint in hints.values())
    assert "label" in inspect.signature(controls.OracleEvidence.ask_with_label).parameters
    assert not hasattr(controls.OracleEvidence, "ask")


def test_signals_of_support_are_numbers_that_know_no_label(encoder, tmp_path):
    known, unknown = Query("q", "Who has a red kayak?"), Query("q", "Who flew to Lisbon?")
    for system in systems(encoder, tmp_path):
        system.ingest("a", TALK)
        found = system.ask("a", known, 400).signals
        assert all(isinstance(each, float) for each in found.values()), system.name
        if "bm25" in found:
            assert found["bm25"] > system.ask("a", unknown, 400).signals["bm25"] == 0.0
        if "verdict" in found:
            none = system.ask("a", unknown, 400).signals
            assert (found["verdict"], none["verdict"]) == (1.0, 0.0)
            assert found["turn"] > none["turn"]
        system.close()


def test_the_margin_tells_who_said_it(tmp_path):
    system = EviCortexSystem(tmp_path / "m.db", embedder=None)
    system.ingest("a", TALK)
    ann = system.ask("a", Query("q", "What did Ann say of her red kayak?"), 400).signals
    bob = system.ask("a", Query("q", "What did Bob say of his red kayak?"), 400).signals
    anyone = system.ask("a", QUESTION, 400).signals
    assert ann["margin"] > 0 > bob["margin"]
    assert anyone["margin"] == 0.0
    system.close()


def test_the_oracle_packs_the_gold_and_nothing_else():
    oracle = controls.OracleEvidence(words)
    oracle.ingest("a", TALK)
    packed = oracle.ask_with_label("a", QUESTION, Label("q", ("t0", "t4"), "c"), 100)
    assert list(packed.shown) == ["t0", "t4"]
    refused = oracle.ask_with_label("a", QUESTION, Label("q", (), "c", answerable=False), 100)
    assert refused.refused


def test_full_history_says_whether_it_fits():
    system = controls.FullHistory(words)
    system.ingest("a", TALK)
    assert system.ask("a", QUESTION, 1_000).costs == {"fits": 1.0}
    small = system.ask("a", QUESTION, 10)
    assert (small.text, small.costs) == ("", {"fits": 0.0})


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=40), min_size=1, max_size=8),
    budget=st.integers(0, 60),
    data=st.data(),
)
def test_packing_never_breaks_the_budget_for_any_counter(texts, budget, data):
    turns = [turn(i, text, session=f"s{i // 3}") for i, text in enumerate(texts)]
    ranking = data.draw(st.permutations(turns))
    order = {each.turn_id: place for place, each in enumerate(turns)}
    weird = data.draw(st.sampled_from([words, len, lambda text: len(text) // 3 + text.count("\n")]))
    packed = pack_greedily(ranking, order, budget, weird)
    assert packed.token_count == weird(packed.text) <= budget or packed.text == ""
    assert set(packed.packed) == set(packed.shown)


def test_greedy_packing_is_what_trying_every_turn_whole_would_pack():
    turns = [turn(i, f"word{i} " * (1 + i * 7 % 11), session=f"s{i // 4}") for i in range(16)]
    order = {each.turn_id: place for place, each in enumerate(turns)}
    ranking = sorted(turns, key=lambda each: len(each.text) * 37 % 97)
    for budget in range(0, 140, 7):
        chosen = []
        for each in ranking:
            trial = sorted([*chosen, each], key=lambda t: order[t.turn_id])
            if words(serialize(trial)) <= budget:
                chosen = trial
        packed = pack_greedily(ranking, order, budget, words)
        assert packed.text == serialize(chosen)


def test_pieces_of_one_turn_are_merged_and_gaps_are_marked():
    each = turn(0, "One two. Three four. Five six.")
    order = {"t0": 0}
    packed = pack_pieces([Piece(each, (0, 9)), Piece(each, (21, 30))], order, 50, words)
    assert packed.shown == {"t0": "One two. … Five six."}
    packed = pack_pieces([Piece(each, (9, 20)), Piece(each, (0, 9))], order, 50, words)
    assert packed.shown == {"t0": "One two. Three four. …"}
    assert pack_pieces([Piece(each, (9, 20)), Piece(each)], order, 50, words).shown == {
        "t0": each.text
    }
    assert merged([(5, 7), (0, 3), (3, 4)]) == ((0, 7),)


@given(st.text(alphabet="ab .!?\n3\"'", max_size=60))
def test_sentences_cover_all_but_white_space_in_order(text):
    spans = sentences(text)
    assert all(a < b for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in pairwise(spans))
    covered = {place for a, b in spans for place in range(a, b)}
    assert all(place in covered for place, mark in enumerate(text) if not mark.isspace())


def test_sentences_end_at_marks_not_at_decimal_points():
    text = "It cost 3.50 euros. Cheap!"
    assert [text[a:b].strip() for a, b in sentences(text)] == ["It cost 3.50 euros.", "Cheap!"]


def test_chunks_keep_sentences_whole_at_two_granularities():
    log = RecordLog()
    log.append(TALK)
    small = small_chunks(log.records, 6, words)
    large = large_chunks(log.records, 20, 1, words)
    assert [chunk.text for chunk in small][:2] == [
        "Ann: I bought a red kayak.",
        "Ann: It was cheap, only 3.50 euros!",
    ]
    assert all(len(chunk.pieces) == 1 for chunk in small)
    assert len({chunk.session for chunk in large}) == 3
    for chunk in large:
        assert len({piece.turn.session for piece in chunk.pieces}) == 1
    shown = {(p.turn.turn_id, p.span) for chunk in large for p in chunk.pieces}
    assert shown == {(each.turn_id, (0, len(each.text))) for each in TALK}


def test_a_chunk_that_reaches_beyond_the_time_asked_for_is_left_out_whole(encoder):
    """Messages have clocks of their own; what had happened is still there in small chunks."""
    system = HybridChunks(words, encoder)
    system.ingest("a", TALK)
    then = Query("q", QUESTION.text, START)
    assert set(system.ask("a", then, 100).shown) == {"t0"}
    assert {"t0", "t1"} <= set(system.ask("a", QUESTION, 100).shown)


def test_a_large_budget_is_filled_behind_the_candidates(encoder):
    many = [turn(number, f"The kayak number {number} leaks.") for number in range(40)]
    system = HybridChunks(words, encoder, HybridConfig(candidates=3))
    system.ingest("a", many)
    assert len(system.ask("a", QUESTION, 1_000).shown) == 40


def test_large_chunks_span_turns_of_a_session_and_overlap():
    same = [turn(number, f"This is sentence number {number}.") for number in range(6)]
    log = RecordLog()
    log.append(same)
    found = large_chunks(log.records, 15, 1, words)
    assert [chunk.rows for chunk in found] == [(0, 1, 2), (2, 3, 4), (4, 5)]


def test_records_are_appended_and_the_latest_version_at_a_time_counts(encoder):
    first = turn(0, "The meeting is at noon.")
    second = Turn("t0", "s1", "Ann", "user", "The meeting is at nine.", START + timedelta(days=2))
    log = RecordLog()
    log.append([first])
    log.append([first])
    log.append([second])
    assert [(record.version, record.row) for record in log.records] == [(1, 0), (2, 1)]
    assert log.current(None) == {1}
    assert log.current(START + timedelta(days=1)) == {0}
    system = HybridChunks(words, encoder)
    system.ingest("a", [first])
    system.ingest("a", [second])
    now = system.ask("a", Query("q", "When is the meeting?"), 50)
    then = system.ask("a", Query("q", "When is the meeting?", START + timedelta(days=1)), 50)
    assert "nine" in now.text
    assert "noon" not in now.text
    assert "noon" in then.text


def test_the_exact_scan_fails_closed(encoder):
    system = HybridChunks(words, encoder, HybridConfig(scan_limit=3))
    system.ingest("a", TALK)
    with pytest.raises(ScanOverflowError, match="exceed the exact scan's 3"):
        system.ask("a", QUESTION, 100)


def test_a_diagnostic_encoder_shows_in_the_name(encoder):
    assert HybridChunks(words, encoder).name == DIAGNOSTIC == "BM25 + hashing diagnostic"


def test_a_repeated_text_is_packed_once_and_the_newest_stays(encoder):
    talk = [turn(0, "The code is blue."), turn(1, "The code is blue.", session="s2", day=5)]
    config = HybridConfig(neighbours=0)
    system = HybridChunks(words, encoder, config)
    system.ingest("a", talk)
    assert system.ask("a", Query("q", "What is the code?"), 60).packed == ("t1",)


def test_neighbours_and_parents_come_along(encoder):
    long = "The cat sleeps on the warm roof. " * 12 + "The kayak is red."
    talk = [turn(0, "Listen."), turn(1, long), turn(2, "Really?"), turn(3, "Bye.", session="s2")]
    base = HybridConfig(small_tokens=10, parent_tokens=20, neighbours=0, large=0.0, dense=0.0)
    system = HybridChunks(words, encoder, base)
    system.ingest("a", talk)
    query = Query("q", "kayak")
    alone = system.ask("a", query, 90)
    assert alone.packed == ("t1",)
    assert alone.shown["t1"] == "… The kayak is red."
    near = system.reconfigured(HybridConfig(**{**base.record(), "neighbours": 1}))
    assert near.ask("a", query, 90).packed == ("t1", "t0", "t2")
    whole = system.reconfigured(HybridConfig(**{**base.record(), "parent_tokens": 200}))
    assert whole.ask("a", query, 120).shown["t1"] == long


def test_a_session_penalty_spreads_what_is_chosen(encoder):
    talk = [turn(i, f"The kayak number {i} is red.") for i in range(6)]
    talk.append(turn(6, "A kayak.", session="s2", day=2))
    base = HybridConfig(neighbours=0, mmr=1.0, large=0.0)
    system = HybridChunks(words, encoder, base)
    system.ingest("a", talk)
    query = Query("q", "kayak number red")
    assert system.ask("a", query, 300).ranking[-1] == "t6"
    spread = system.reconfigured(HybridConfig(**{**base.record(), "session_penalty": 2.0}))
    assert "t6" in spread.ask("a", query, 300).ranking[:2]


def test_the_longmemeval_setting_ranks_user_turns_and_reads_rounds(encoder):
    talk = [
        turn(0, "Tell me about kayaks.", actor="user"),
        turn(1, "Kayaks float.", actor="assistant", role="assistant"),
        turn(2, "Thanks.", actor="user"),
    ]
    system = LongMemEvalRetriever(words, encoder, "turn")
    system.ingest("a", talk)
    assert system.ask("a", Query("q", "about kayaks"), 60).packed == ("t0", "t1", "t2")
    assert system.ask("a", Query("q", "about kayaks"), 60).costs["scored"] == 2
    whole = LongMemEvalRetriever(words, encoder, "session")
    whole.ingest("a", talk)
    assert whole.ask("a", Query("q", "about kayaks"), 60).costs["scored"] == 1


def test_the_longmemeval_setting_truncates_as_the_release_does(encoder):
    documents = longmemeval_retriever._rounds([turn(0, "kayak " * 200)])
    system = LongMemEvalRetriever(words, encoder, "turn")
    assert len(system._truncated(documents[0])) == 400


def test_the_shared_encoder_embeds_each_text_once(encoder):
    Dense(words, encoder).ingest("a", TALK)
    HybridChunks(words, encoder).ingest("a", TALK)
    before = encoder.embedded
    Dense(words, encoder).ingest("b", TALK)
    assert encoder.embedded == before
    encoder.keep({TALK[0].text})
    encoder.embed([TALK[0].text, TALK[1].text])
    assert encoder.embedded == before + 1
    assert encoder.embed([]).shape == (0, encoder.profile.dimensions)


def test_ablations_change_what_they_say_and_nothing_else(tmp_path):
    off = ablated("window", "dense_window").options.fusion
    default = ablated().options.fusion
    assert off.hybrid.window == off.hybrid.dense_window == off.lexical.window == 0.0
    assert off.hybrid.turn == default.hybrid.turn
    assert weighted(actor=9.0).options.fusion.hybrid.actor == 9.0
    assert weighted(actor=9.0).options.fusion.lexical == default.lexical
    assert weighted(whole_share=0.3).options.packing.cutting.whole_share == 0.3
    assert weighted(ranker_candidates=9).options.fusion.ranker_candidates == 9
    with pytest.raises(ValueError, match="no setting is called magic"):
        weighted(magic=1)
    assert Settings().options.fusion == replace(default, ranker=True)
    system = EviCortexSystem(tmp_path / "n.db", embedder=None, named=False)
    system.ingest("a", TALK)
    assert "Ann:" not in system.ask("a", QUESTION, 100).text
    again = system.reconfigured(ablated("time"), "time off")
    assert again.name == "time off"
    assert again.ask("a", QUESTION, 100).packed
    again.close()
    system.close()


SAME = "We went to the harbour market."
RAIN = f"Nothing of note happened. {'It rained all day. ' * 20}"


def talk(*texts, actors=None, days=None):
    """Make one session of these texts."""
    actors, days = actors or {}, days or {}
    return [
        turn(number, text, actor=actors.get(number, "Ann"), day=days.get(number, 0))
        for number, text in enumerate(texts)
    ]


ABOUT_TIME = talk(SAME, SAME, "Yes.", days={1: 40, 2: 41})
ABOUT_NAMES = talk(
    "Hi Bob! Hey Bob, listen. Thanks, Bob.",
    *(*[RAIN] * 6, SAME, *[RAIN] * 6, SAME, *[RAIN] * 6),
    actors={14: "Bob"},
)
ABOUT_WINDOWS = talk("The weather was fine.", SAME, *[RAIN] * 6, "Did the kayak leak?", SAME)


@pytest.mark.parametrize(
    ("off", "turns", "question", "spoken_for"),
    [
        ("time off", ABOUT_TIME, "Which market was it in June 2023?", 1),
        ("names off", ABOUT_NAMES, "Which market did Bob see?", 14),
        ("windows off", ABOUT_WINDOWS, "At which market was the kayak?", 9),
    ],
)
def test_an_ablated_channel_is_hidden_whole(tmp_path, off, turns, question, spoken_for):
    """Two turns say the same; only the channel tells them apart, and only where it is on."""
    bench = Bench(Words(), SharedEncoder(Semantic()))
    scores = {}
    for name in (ABLATION_BASE, f"{ABLATION_BASE}, {off}"):
        system = make(name, bench, tmp_path / name)
        assert isinstance(system, EviCortexSystem)
        system.ingest("a", turns)
        hits = system.cortex.search("a", question, limit=40).hits
        scores[name] = {
            hit.evidence.external_id: hit.score for hit in hits if hit.evidence.content == SAME
        }
        system.close()
    other = next(key for key in scores[ABLATION_BASE] if key != f"t{spoken_for}")
    shown, hidden = scores.values()
    assert shown[f"t{spoken_for}"] > shown[other]
    assert hidden[f"t{spoken_for}"] == pytest.approx(hidden[other])


def test_chunks_under_evicortex_are_reported_as_the_turns_they_came_from(tmp_path):
    config = HybridConfig(small_tokens=6)
    system = crossed.ChunksUnderEviCortex(tmp_path / "c.db", words, config, embedder=None)
    system.ingest("a", TALK)
    packed = system.ask("a", QUESTION, 400)
    assert "t0" in packed.shown
    assert packed.shown["t0"].startswith("I bought a red kayak.")
    assert hybrid.HybridConfig(**config.record()) == config
    system.close()
