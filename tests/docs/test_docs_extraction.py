"""The figures of extraction.md are those of the committed record, digit for digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "benchmarks/reports/extraction/extraction.json").read_text("utf-8"))
PAGE = " ".join((ROOT / "docs/extraction.md").read_text("utf-8").split())
SETS = {found["data"]: found for found in RECORD["data"]}


def percent(rate):
    return f"{100 * rate['value']:.1f}"


def interval(rate):
    return f"{percent(rate)} [{100 * rate['low']:.1f}, {100 * rate['high']:.1f}]"


def counted(rate):
    return f"{rate['count']:.0f} of {rate['of']:.0f}"


@pytest.mark.parametrize("name", ["sgd", "dialogre"])
def test_the_rules_figures_are_the_records(name):
    found = SETS[name]
    rules = found["systems"]["evicortex/rules"]
    match = rules["matches"][rules["headline"]]
    silent = rules["false_positives_per_100_silent_turns"]["all"]["value"]
    assert f"{interval(match['precision_judged'])} ({counted(match['precision_judged'])})" in PAGE
    row = f"{interval(match['recall'])} | {percent(match['f1_judged'])} | {silent:.1f} |"
    assert row in PAGE
    assert interval(match["precision_all"]) in PAGE
    size = f"{found['dialogues']:,} dialogues, {found['turns']:,} turns, {found['gold']:,}"
    assert size in PAGE
    for digest in found["files"]:
        assert digest[:8] in PAGE


@pytest.mark.parametrize("name", ["sgd", "dialogre"])
@pytest.mark.parametrize("system", ["baseline/noun-phrases", "baseline/majority"])
def test_the_baselines_figures_are_the_records(name, system):
    each = SETS[name]["systems"][system]
    match = each["matches"][each["headline"]]
    cells = [match[key] for key in ("precision_judged", "precision_all", "recall", "f1_judged")]
    silent = each["false_positives_per_100_silent_turns"]["all"]["value"]
    assert " | ".join([*map(percent, cells), f"{silent:.0f} |"]) in PAGE


def test_errors_over_time_are_the_records():
    rules = SETS["sgd"]["systems"]["evicortex/rules"]
    changed, days = rules["supersession"], rules["temporal_boundaries"]
    assert (
        f"Of {changed['changes']} values that changed, the memory followed {changed['right']} and "
        f"missed {changed['missed']}"
    ) in PAGE
    assert f"of {changed['kept'] + changed['premature']:,} times that a held value stayed" in PAGE
    assert (changed["wrong"], changed["premature"], days["wrong"]) == (0, 1, 0)
    read = sum(days[name] for name in ("right", "wrong", "unread", "unclaimed"))
    assert f"Of {read} dates with a labelled day, {days['right']} were read as labelled" in PAGE
    assert f"{days['unread']} claimed and not read, {days['unclaimed']} not claimed" in PAGE
    against = rules["contradictions"]
    assert f"{against['count']:.0f} claims contradict the labelled state" in PAGE
    assert (
        f"({percent(against)} % [{100 * against['low']:.1f}, {100 * against['high']:.1f}])" in PAGE
    )
    assert f"Abstention {percent(rules['abstention_rate'])} %" in PAGE
    for predicate, row in rules["coverage"]["by_predicate"].items():
        assert f"`{predicate}` {row['right']} of {row['of']}" in PAGE


def test_a_turn_takes_the_rules_less_than_a_millisecond():
    costs = [found["systems"]["evicortex/rules"]["cost_per_1000_turns"] for found in SETS.values()]
    for cost in costs:
        assert cost["calls"] == cost["prompt_tokens"] == cost["completion_tokens"] == 0
        assert 0 < cost["cpu_s"] < 1
    low, high = (f"{pick(c['cpu_s'] for c in costs):.2f}" for pick in (min, max))
    assert f"{low} to {high} CPU-seconds per 1,000 turns" in PAGE


def test_the_record_holds_no_text():
    assert set(RECORD) == {"git_commit", "libraries", "data"}
    texts = [name for found in RECORD["data"] for name in _texts(found)]
    assert texts
    assert max(map(len, texts)) <= 80


def _texts(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
