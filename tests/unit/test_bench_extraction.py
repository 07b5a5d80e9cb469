"""The extraction lab: adapters, judging, and the command, on small files of the two formats."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import run_extraction
from benchmarks.datasets import dialogre, sgd
from benchmarks.datasets.base import DatasetError, Turn
from benchmarks.datasets.labelled import Dialogue, GoldClaim, Labelled
from benchmarks.extractors.baselines import Majority, NounPhrases
from benchmarks.metrics.extraction import Emitted, changes, f1, judge, rate

DATA = Path(__file__).parents[3] / "shared" / "data"


def user(text, slots, state, actions=()):
    spans = [
        {"slot": slot, "start": text.index(value), "exclusive_end": text.index(value) + len(value)}
        for slot, value in slots
    ]
    frame = {
        "service": "Flights_3",
        "slots": spans,
        "actions": list(actions),
        "state": {"slot_values": state},
    }
    return {"speaker": "USER", "utterance": text, "frames": [frame]}


def system(text):
    return {
        "speaker": "SYSTEM",
        "utterance": text,
        "frames": [{"service": "Flights_3", "slots": [], "actions": []}],
    }


def day_action(value, canonical):
    return {"slot": "departure_date", "values": [value], "canonical_values": [canonical]}


@pytest.fixture
def sgd_file(tmp_path):
    first = {"destination_city": ["Rome"], "departure_date": ["March 5th"]}
    second = first | {"origin_city": ["Oslo"], "destination_city": ["Paris"]}
    record = {
        "dialogue_id": "1_1",
        "services": ["Flights_3"],
        "turns": [
            user(
                "Find me a flight to Rome on March 5th.",
                [("destination_city", "Rome"), ("departure_date", "March 5th")],
                first,
                [day_action("March 5th", "2019-03-05")],
            ),
            system("From which city are you leaving?"),
            user(
                "From Oslo. And I want to fly to Paris instead.",
                [("origin_city", "Oslo"), ("destination_city", "Paris")],
                second,
            ),
            system("Booked."),
            user("Thanks, with Delta.", [("airlines", "Delta")], second | {"airlines": ["Delta"]}),
        ],
    }
    path = tmp_path / "sgd.json"
    path.write_text(json.dumps([record]), encoding="utf-8")
    return path


@pytest.fixture
def dialogre_file(tmp_path):
    lines = [
        "Speaker 1: Hi, this is my sister Anna. I'm a nurse.",
        "Speaker 2: I'm Bob. Anna is my wife. Nice weather.",
        "Speaker 1, Speaker 2: Bye!",
    ]
    relations = [
        {"x": "Speaker 1", "y": "Speaker 3", "r": ["per:siblings"], "t": ["sister"]},
        {"x": "Speaker 1", "y": "nurse", "r": ["per:title"], "t": [""]},
        {"x": "Speaker 2", "y": "Bobby", "r": ["per:alternate_names"], "t": [""]},
        {"x": "Speaker 2", "y": "Speaker 3", "r": ["per:spouse", "unanswerable"], "t": ["", ""]},
        {"x": "Speaker 2", "y": "Acme", "r": ["per:client"], "t": [""]},
    ]
    path = tmp_path / "dialogre.json"
    path.write_text(json.dumps([[lines, relations]]), encoding="utf-8")
    return path


def claim(turn, predicate, value, span=None, *, subject=sgd.USER, negative=False, day=None):
    return Emitted(turn, subject, predicate, value, span, negative, 0.9, day)


def test_sgd_maps_accepted_slots_to_claims_on_their_spans(sgd_file):
    labelled = sgd.load([sgd_file])
    (dialogue,) = labelled.dialogues
    assert [(g.turn, sorted(g.predicates), g.object, g.span) for g in dialogue.gold] == [
        (0, ["travels_to"], "Rome", (20, 24)),
        (0, ["travels_on"], "March 5th", (28, 37)),
        (2, ["travels_from"], "Oslo", (5, 9)),
        (2, ["travels_to"], "Paris", (32, 37)),
        (4, [], "Delta", (13, 18)),
    ]
    assert dialogue.gold[1].day == date(2019, 3, 5)
    assert dialogue.silent == {1, 3}
    assert dialogue.states[2]["travels_to"] == dialogue.states[3]["travels_to"] == {"paris"}
    assert [turn.role for turn in dialogue.turns[:2]] == ["user", "assistant"]
    assert list(labelled.files.values()) == ["unofficial"]


def test_a_hotel_is_not_travelled_to():
    assert sgd.predicate_of("Hotels_1", "destination") == "plans_in"
    assert sgd.predicate_of("RideSharing_1", "destination") == "travels_to"
    assert sgd.predicate_of("Banks_2", "transfer_amount") is None


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"turns": []}]', "[[[], 5]]", "no json"])
def test_another_format_is_refused(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    if content != "{}":
        with pytest.raises(DatasetError, match=r"other\.json"):
            sgd.load([path])
        with pytest.raises(DatasetError, match=r"other\.json"):
            dialogre.load([path])


def test_dialogre_joins_names_and_keeps_what_no_predicate_says(dialogre_file):
    labelled = dialogre.load([dialogre_file])
    (dialogue,) = labelled.dialogues
    assert [g.label for g in dialogue.gold] == [
        "per:siblings",
        "per:title",
        "per:alternate_names",
        "per:spouse",
        "per:client",
    ]
    assert dialogue.gold[4].predicates == frozenset()
    assert dialogue.names["bobby"] == dialogue.names["speaker 2"]
    assert dialogue.silent == {1, 2}
    assert [turn.actor for turn in dialogue.turns] == [
        "Speaker 1",
        "Speaker 2",
        "Speaker 1, Speaker 2",
    ]


def test_judging_by_span_and_by_triple(sgd_file):
    labelled = sgd.load([sgd_file])
    (dialogue,) = labelled.dialogues
    counts = judge(
        labelled,
        dialogue,
        [
            claim(0, "travels_to", "Rome", (20, 24)),
            claim(0, "travels_on", "on March 5th", (25, 37), day=date(2019, 3, 6)),
            claim(2, "travels_to", "Oslo", (5, 9)),
            claim(1, "plans_in", "city", (11, 15)),
            claim(4, "likes", "Delta", (13, 18)),
        ],
    )
    assert (counts.emitted, counts.judged, counts.gold, counts.mapped) == (5, 4, 5, 4)
    assert counts.right == {"span_exact": 2, "span_overlap": 3, "claim_exact": 1, "spo": 2}
    assert counts.found["claim_exact"] == 1
    assert (counts.on_silent, counts.on_silent_judged) == (1, 1)
    assert counts.contradictions == 1
    assert counts.boundaries == (0, 0, 0, 1)
    assert counts.by_label["Flights.destination_city"] == (1, 2)
    assert counts.coverage == {
        "travels_to": (1, 2),
        "travels_on": (0, 1),
        "travels_from": (0, 1),
        "none": (0, 1),
    }
    assert counts.by_predicate["travels_to"] == (1, 2)


def test_a_date_is_judged_by_the_day_it_was_read_as(sgd_file):
    labelled = sgd.load([sgd_file])
    (dialogue,) = labelled.dialogues
    for day, expected in (
        (date(2019, 3, 5), (1, 0, 0, 0)),
        (date(2019, 4, 5), (0, 1, 0, 0)),
        (None, (0, 0, 1, 0)),
    ):
        emitted = [claim(0, "travels_on", "March 5th", (28, 37), day=day)]
        assert judge(labelled, dialogue, emitted).boundaries == expected


def test_a_name_that_is_no_argument_stands_for_a_speaker(dialogre_file):
    labelled = dialogre.load([dialogre_file])
    (dialogue,) = labelled.dialogues

    def counts(predicate, value, *, subject="Speaker 1", negative=False):
        emitted = [claim(0, predicate, value, (0, 2), subject=subject, negative=negative)]
        found = judge(labelled, dialogue, emitted * 2)
        return found.judged, found.right["spo"], found.contradictions

    assert counts("has_sibling", "Anna") == (1, 1, 0)
    assert counts("has_sibling", "Anna", negative=True) == (0, 0, 0)
    assert counts("works_as", "head nurse") == (1, 1, 0)
    assert counts("name", "Bob", subject="Speaker 2") == (0, 0, 0)
    assert counts("name", "Bobby", subject="Speaker 2") == (1, 1, 0)
    assert counts("spouse", "Anna", subject="Speaker 2") == (1, 1, 0)
    assert counts("spouse", "Bobby", subject="Speaker 2") == (1, 0, 1)
    assert counts("likes", "tea") == (0, 0, 0)
    assert counts("plans_to", "go") == (0, 0, 0)


@pytest.mark.parametrize(
    ("before", "after", "gold_before", "gold", "expected"),
    [
        ("rome", "paris", "rome", "paris", "right"),
        ("rome", "rome paris", "rome", "paris", "missed"),
        ("rome", "rome oslo", "rome", "paris", "wrong"),
        ("rome", "", "rome", "paris", "missed"),
        ("rome", "oslo", "rome", "paris", "wrong"),
        ("rome", "rome", "rome", "paris", "missed"),
        ("", "", "rome", "paris", "missed"),
        ("rome", "oslo", "rome", "rome", "premature"),
        ("rome", "rome", "rome", "rome", "kept"),
        ("rome", "", "rome", "rome", "premature"),
        ("rome", "rome", "rome", "", None),
        ("oslo", "rome", "rome", "rome", None),
        ("", "rome", "", "rome", None),
    ],
)
def test_what_became_of_a_fact(before, after, gold_before, gold, expected):
    values = [frozenset(text.split()) for text in (before, after, gold_before, gold)]
    assert changes(*values) == expected


def test_rates_have_sums_and_intervals(sgd_file):
    labelled = sgd.load([sgd_file])
    (dialogue,) = labelled.dialogues
    good = judge(labelled, dialogue, [claim(0, "travels_to", "Rome", (20, 24))])
    bad = judge(labelled, dialogue, [claim(0, "travels_to", "Oslo", (0, 4))])
    found = rate([good, bad], lambda c: c.right["claim_exact"], lambda c: c.judged)
    assert (found["value"], found["count"], found["of"]) == (0.5, 1, 2)
    assert (found["low"], found["high"]) == (0, 1)
    assert rate([good], lambda c: 0, lambda c: 0)["value"] == 0
    harmonic = f1([good, good], "claim_exact", judged=True)
    assert harmonic["value"] == harmonic["low"] == pytest.approx(2 * 1 * 0.2 / 1.2)
    assert f1([bad], "claim_exact", judged=False)["value"] == 0


def test_baselines_claim_runs_of_words_and_names():
    text = "I want the cheap flight from New York to Rome, please"
    phrases = [text[s.start : s.end] for s in NounPhrases("x").spans(text)]
    assert "New York" in phrases
    assert "Rome" in phrases
    names = [text[s.start : s.end] for s in Majority("x").spans(text)]
    assert names == ["New York", "Rome"]


def test_the_command_reports_both_sets_from_records(sgd_file, dialogre_file, tmp_path, capsys):
    out, records = tmp_path / "out.json", tmp_path / "records.jsonl"
    arguments = [
        "--sgd",
        sgd_file,
        "--dialogre",
        dialogre_file,
        "--json",
        out,
        "--records",
        records,
    ]
    assert run_extraction.main([*map(str, arguments), "--gate"]) == 0
    found = json.loads(out.read_text("utf-8"))
    flights, people = found["data"]
    rules = flights["systems"]["evicortex/rules"]
    assert rules["matches"]["claim_exact"]["precision_judged"]["value"] == 1
    assert rules["matches"]["claim_exact"]["recall"]["count"] == 4
    superseded = rules["supersession"]
    rates = superseded.pop("rates")
    assert superseded == {
        "changes": 1, "right": 1, "wrong": 0, "missed": 0, "kept": 4, "premature": 0,
    }  # fmt: skip
    assert (rates["right"]["value"], rates["right"]["of"]) == (1, 1)
    assert (rates["premature"]["value"], rates["premature"]["of"]) == (0, 4)
    days = rules["temporal_boundaries"]
    assert days.pop("errors")["of"] == 1
    assert days == {"right": 1, "wrong": 0, "unread": 0, "unclaimed": 0}
    assert rules["coverage"]["by_predicate"]["travels_to"] == {"right": 2, "of": 2}
    assert rules["by_file"] == {}
    assert rules["gates"]["passed"]
    cost = rules["cost_per_1000_turns"]
    assert set(cost) == {"calls", "prompt_tokens", "completion_tokens", "cpu_s"}
    assert cost["cpu_s"] > 0
    nothing = flights["systems"]["baseline/nothing"]
    assert nothing["abstention_rate"]["value"] == 1
    assert nothing["supersession"]["missed"] == nothing["supersession"]["changes"] == 1
    assert nothing["temporal_boundaries"]["unclaimed"] == 1
    assert people["systems"]["evicortex/rules"]["matches"]["spo"]["recall"]["count"] == 3
    lines = [json.loads(line) for line in records.read_text("utf-8").splitlines()]
    assert len(lines) == 8
    assert not any("Rome" in line for line in records.read_text("utf-8").splitlines())
    assert "evicortex/rules" in capsys.readouterr().out


def test_files_are_reported_together_and_apart(sgd_file, tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text(sgd_file.read_text("utf-8").replace("Rome", "Bonn"), encoding="utf-8")
    out = tmp_path / "out.json"
    arguments = ["--sgd", str(sgd_file), str(empty), "--systems", "evicortex/rules"]
    assert run_extraction.main([*arguments, "--json", str(out)]) == 0
    (found,) = json.loads(out.read_text("utf-8"))["data"]
    rules = found["systems"]["evicortex/rules"]
    apart = list(rules["by_file"].values())
    assert list(rules["by_file"]) == list(found["files"])
    assert [each["recall"]["of"] for each in apart] == [5, 5]
    assert rules["matches"]["claim_exact"]["recall"]["count"] == sum(
        each["recall"]["count"] for each in apart
    )
    assert run_extraction.main([arguments[0], str(sgd_file), *arguments[1:2], *arguments[3:]]) == 0


PLACES = st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 3))
"""Turn, first character, number of characters."""
SAID = "abcdefgh"
DAYS = st.sampled_from([None, date(2019, 3, 5), date(2019, 3, 6)])
GOLD = st.lists(
    st.tuples(PLACES, st.sampled_from(["p", "q", None]), DAYS), max_size=5, unique_by=lambda g: g[0]
)
CLAIMED = st.lists(
    st.tuples(PLACES, st.sampled_from(["p", "q", "other"]), DAYS, st.booleans()),
    max_size=6,
    unique_by=lambda e: e[:2],
)


@given(GOLD, CLAIMED)
def test_the_figures_are_those_of_a_plain_count(labels, claimed):
    """An oracle that shares no code with the metrics: loops over characters and triples."""
    gold = [
        GoldClaim(
            "l", "user", SAID[at : at + size], frozenset({name} if name else ()),
            turn=turn, span=(at, at + size), day=day,
        )
        for (turn, at, size), name, day in labels
    ]  # fmt: skip
    states = tuple(
        {g.predicates and min(g.predicates): frozenset({g.object}) for g in gold if g.turn == turn}
        for turn in range(3)
    )
    states = tuple({k: v for k, v in each.items() if k} for each in states)
    turns = tuple(Turn(f"t{n}", "d", "user", "user", SAID, None) for n in range(3))
    silent = frozenset(range(3)) - {g.turn for g in gold}
    dialogue = Dialogue("d", turns, tuple(gold), silent, states)
    labelled = Labelled(sgd.SOURCE, {}, (dialogue,), frozenset("pq"), has_spans=True)
    emitted = [
        Emitted(turn, "user", name, SAID[at : at + size], (at, at + size), negative, 0.9, day)
        for (turn, at, size), name, day, negative in claimed
    ]
    counts = judge(labelled, dialogue, emitted)
    judged = [e for e in emitted if e.predicate in "pq" and not e.negative]
    assert (counts.emitted, counts.judged, counts.gold) == (len(emitted), len(judged), len(gold))

    def characters(span):
        return set(range(*span))

    tests = {
        "span_exact": lambda e, g: characters(e.span) == characters(g.span),
        "span_overlap": lambda e, g: bool(characters(e.span) & characters(g.span)),
        "claim_exact": lambda e, g: e.span == g.span and e.predicate in g.predicates,
        "spo": lambda e, g: e.predicate in g.predicates and e.object == g.object,  # letters differ
    }
    for match, test in tests.items():
        pairs = [
            (n, m)
            for n, e in enumerate(judged)
            for m, g in enumerate(gold)
            if e.turn == g.turn and test(e, g)
        ]
        assert counts.right[match] == len({n for n, _ in pairs}), match
        assert counts.found[match] == len({m for _, m in pairs}), match
    assert counts.on_silent == sum(e.turn in silent for e in emitted)
    assert counts.on_silent_judged == sum(e.turn in silent for e in judged)
    assert counts.contradictions == sum(
        e.predicate in states[e.turn]
        and e.object not in states[e.turn][e.predicate]
        and not any(tests["spo"](e, g) and e.turn == g.turn for g in gold)
        for e in judged
    )
    days = {(g.turn, g.span): g.day for g in gold if g.day}
    read = {(e.turn, e.span): e.day for e in emitted}
    assert counts.boundaries == (
        sum(read.get(place, "no") == day for place, day in days.items()),
        sum(place in read and read[place] not in (None, day) for place, day in days.items()),
        sum(place in read and read[place] is None for place in days),
        sum(place not in read for place in days),
    )
    precision = counts.right["claim_exact"] / len(judged) if judged else 0
    recall = counts.found["claim_exact"] / len(gold) if gold else 0
    expected = 2 * precision * recall / (precision + recall) if precision + recall else 0
    assert f1([counts], "claim_exact", judged=True)["value"] == pytest.approx(expected)


def test_the_command_needs_a_file_and_tells_a_missed_gate(sgd_file, monkeypatch, capsys):
    with pytest.raises(SystemExit) as caught:
        run_extraction.main([])
    assert caught.value.code == 2
    capsys.readouterr()
    monkeypatch.setattr(run_extraction, "PRECISION_GATE", 1.01)
    only = ["--sgd", str(sgd_file), "--systems", "evicortex/rules"]
    assert run_extraction.main(only) == 0
    assert run_extraction.main([*only, "--gate"]) == 1


@pytest.mark.skipif(not DATA.is_dir(), reason="third-party data is not in this checkout")
def test_the_real_files_map_whole():
    flights = sgd.load([DATA / "sgd" / "dev_dialogues_001.json"])
    assert list(flights.files.values()) == ["dev 001"]
    assert flights.sizes == (len(flights.dialogues),) == (128,)
    assert sum(not gold.predicates for d in flights.dialogues for gold in d.gold) == 0
    people = dialogre.load([DATA / "dialogre" / "dev.json"])
    assert len(people.dialogues) == 358
    assert {gold.label for d in people.dialogues for gold in d.gold} <= {
        *dialogre.PREDICATES,
        *dialogre.UNMAPPED,
    }
