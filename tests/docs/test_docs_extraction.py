"""The figures of extraction.md are those of the committed record, digit for digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evicortex.providers.rules import RuleExtractor

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "benchmarks/reports/extraction/extraction.json").read_text("utf-8"))
CLAIMS = json.loads((ROOT / "benchmarks/reports/extraction/claims.json").read_text("utf-8"))
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


def test_the_record_is_of_the_rules_as_they_are():
    recorded = {found["systems"]["evicortex/rules"]["revision"] for found in SETS.values()}
    assert recorded == {RuleExtractor().revision}, "run benchmarks.run_extraction again"


def points(cell):
    low, mean, high = (round(100 * cell[key], 1) + 0 for key in ("low", "mean", "high"))
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


ROWS = {
    "without claims": (
        "no-claims",
        lambda each, budget: f"{100 * each['recall'][budget]['mean']:.1f}",
    ),
    "with the claims": (None, lambda each, budget: f"{100 * each['recall'][budget]['mean']:.1f}"),
    "difference": (None, lambda each, budget: points(each["difference"][budget]["by_question"])),
    "questions of time": (
        None,
        lambda each, budget: points(each["difference"][budget]["temporal"]),
    ),
}


@pytest.mark.parametrize(("suite", "system"), [("locomo", "rules"), ("synthetic", "canonical")])
@pytest.mark.parametrize("row", ROWS)
def test_what_claims_do_to_recall_is_the_records(suite, system, row):
    found = CLAIMS["suites"][suite]
    name, cell = ROWS[row]
    each = found["systems"][name or system]
    cells = [cell(each, str(budget)) for budget in CLAIMS["configuration"]["budgets"]]
    assert f"| {row} | {' | '.join(cells)} |" in PAGE


@pytest.mark.parametrize(("suite", "system"), [("locomo", "rules"), ("synthetic", "canonical")])
def test_what_claims_cost_is_the_records(suite, system):
    found = CLAIMS["suites"][suite]
    each, base = found["systems"][system], found["systems"]["no-claims"]
    cost, plain = each["cost"], base["cost"]
    assert f"{cost['turns']:,} turns, {found['questions']:,} questions" in PAGE
    assert f"{cost['claims']:,} claims" in PAGE
    assert (
        f"{cost['extraction_cpu_s_per_1000_turns']:.2f} CPU-seconds per 1,000 turns; a recall takes "
        f"{cost['cpu_ms_per_recall']:.1f} ms of CPU instead of {plain['cpu_ms_per_recall']:.1f}"
    ) in PAGE


def test_the_rules_claim_nothing_on_the_synthetic_stream():
    rules = CLAIMS["suites"]["synthetic"]["systems"]["rules"]
    assert rules["cost"]["claims"] == 0
    assert all(cell["by_question"]["mean"] == 0 for cell in rules["difference"].values())


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
