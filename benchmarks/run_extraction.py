"""Claims from raw text against human labels, separately from any retrieval figure.

``python -m benchmarks.run_extraction --sgd FILE... --dialogre FILE... --json OUT``

Takes any files of these formats and tunes nothing. Every turn goes to each extractor with the six
turns before it as read-only context, through the same checks as in the product. On SGD the claims
are also remembered, so that what is held after each turn can be compared with the labelled state.
Records (``--records``) hold one line a dialogue and system, ids and counts only; every figure is
computed from them. ``--endpoint`` adds an OpenAI-compatible extractor.

``--json`` writes ``{git_commit, libraries, data: [set, ...]}`` without any text of the data. A
set has ``data`` (its name), ``revision``, ``files`` (SHA-256 to label), ``dialogues``, ``turns``,
``gold`` and ``systems``, by extractor id. A *rate* is ``{value, low, high, count, of}``: a ratio
of sums with its 95 % interval by dialogue. A system has:

- ``revision``; ``headline``: the match that the tables quote, ``claim_exact`` or ``spo``;
- ``matches``: ``span_exact``, ``span_overlap``, ``claim_exact`` and ``spo`` (SGD), or ``spo``
  (DialogRE), each with the rates ``precision_judged``, ``precision_all`` and ``recall``, and with
  ``f1_judged`` and ``f1_all`` (``{value, low, high}``);
- ``coverage``: the rates ``of_all_gold`` and ``of_mapped_gold``; ``by_label`` and
  ``by_predicate``: ``{right, of}`` of the gold; ``precision_by_predicate``: of what is emitted;
- ``false_positives_per_100_silent_turns``: the rates ``all`` and ``judged``, times 100;
- ``contradictions``: the rate of judged claims that the labels hold another value for;
- ``supersession`` (SGD): counts ``changes``, ``right``, ``wrong``, ``missed``, ``kept`` and
  ``premature``, and under ``rates`` what part of the changes were right, wrong or missed, and of the
  unchanged facts premature;
- ``temporal_boundaries`` (SGD): counts ``right``, ``wrong``, ``unread`` and ``unclaimed``, and
  ``errors``: the rate of wrong or unread days among those claimed;
- ``abstention_rate``: a rate; ``refused``: turns whose extraction failed;
- ``cost_per_1000_turns``: ``calls``, ``prompt_tokens``, ``completion_tokens``, ``cpu_s``;
- ``by_file`` (several files): SHA-256 to ``precision_judged`` and ``recall`` of that file;
- ``gates``: the precision aimed at, and whether it is reached.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from benchmarks.datasets import dialogre, sgd
from benchmarks.datasets.labelled import Dialogue, Labelled
from benchmarks.extractors.baselines import Majority, Nothing, NounPhrases
from benchmarks.manifest import git_commit, versions
from benchmarks.metrics.extraction import MATCHES, Counts, Emitted, changes, f1, judge, rate
from evicortex import EviCortex
from evicortex.errors import ProviderError
from evicortex.protocols import ClaimExtractor, EvidenceContext, ExtractionResult
from evicortex.providers.rules import RuleExtractor

CONTEXT_TURNS = 6
PRECISION_GATE = 0.80


@dataclass
class Metered:
    """An extractor that is timed, and whose results are kept."""

    extractor: ClaimExtractor
    results: list[ExtractionResult] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def extractor_id(self) -> str:
        """The name of what is timed."""
        return self.extractor.extractor_id

    @property
    def revision(self) -> str:
        """The revision of what is timed."""
        return self.extractor.revision

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Extract, and count the CPU seconds of this process."""
        started = time.process_time()
        try:
            result = self.extractor.extract(context)
        finally:
            self.cpu_s += time.process_time() - started
        self.results.append(result)
        return result


def measure(labelled: Labelled, extractor: ClaimExtractor, folder: Path) -> list[Counts]:
    """Run one extractor over every dialogue, each one a memory of its own."""
    place = folder / f"{labelled.source.name}-{extractor.extractor_id.replace('/', '-')}.db"
    with EviCortex.open(place, embedder=None) as cortex:
        return [_dialogue(labelled, dialogue, extractor, cortex) for dialogue in labelled.dialogues]


def _dialogue(
    labelled: Labelled, dialogue: Dialogue, extractor: ClaimExtractor, cortex: EviCortex
) -> Counts:
    metered = Metered(extractor)
    emitted: list[Emitted] = []
    abstained = refused = 0
    usage: Counter[str] = Counter()
    superseded: Counter[str] = Counter()
    held: dict[str, frozenset[str]] = {}
    for number, turn in enumerate(dialogue.turns):
        before = [
            (t.actor, t.text) for t in dialogue.turns[max(0, number - CONTEXT_TURNS) : number]
        ]
        metered.results.clear()
        try:
            receipt = cortex.remember_extracted(
                dialogue.dialogue_id,
                turn.text or " ",
                extractor=metered,
                actor=turn.actor,
                role=turn.role,
                occurred_at=turn.occurred_at,
                previous=before,
            )
        except ProviderError:
            refused += 1
            continue
        abstained += receipt.abstained
        for result in metered.results:
            usage.update(dict(result.usage))
            emitted += _emitted(number, result)
        if dialogue.states and turn.role == "user":
            now = _held(cortex, dialogue, turn.occurred_at)
            superseded.update(_changed(labelled, dialogue, number, held, now))
            held = now
    return replace(
        judge(labelled, dialogue, emitted),
        supersession=dict(superseded),
        abstained=abstained,
        refused=refused,
        cost={**usage, "cpu_s": metered.cpu_s},
    )


def _emitted(number: int, result: ExtractionResult) -> list[Emitted]:
    days = {
        tuple(told.details["span"]): date.fromisoformat(told.details["start"][:10])
        for told in result.diagnostics
        if told.code == "resolved_time"
    }
    return [
        Emitted(
            number,
            claim.subject,
            claim.predicate,
            claim.object,
            None if claim.span is None else (claim.span.start, claim.span.end),
            claim.polarity == "negative",
            claim.confidence,
            None if claim.span is None else days.get((claim.span.start, claim.span.end)),
        )
        for claim in result.claims
    ]


def _held(cortex: EviCortex, dialogue: Dialogue, at: datetime | None) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for claim in cortex.claims(dialogue.dialogue_id, subject=sgd.USER, as_of=at):
        values = found.get(claim.predicate, frozenset())
        found[claim.predicate] = values | {claim.object.casefold()}
    return found


def _changed(
    labelled: Labelled,
    dialogue: Dialogue,
    number: int,
    before: Mapping[str, frozenset[str]],
    after: Mapping[str, frozenset[str]],
) -> list[str]:
    earlier = dialogue.states[number - 1] if number else {}
    none: frozenset[str] = frozenset()
    found = []
    for predicate in sorted(labelled.judged):
        what = changes(
            before.get(predicate, none),
            after.get(predicate, none),
            earlier.get(predicate, none),
            dialogue.states[number].get(predicate, none),
        )
        if what is not None:
            found.append(what)
    return found


def summarise(labelled: Labelled, counts: Sequence[Counts]) -> dict[str, Any]:
    """Return every figure of one system, from its records alone."""
    headline = "claim_exact" if labelled.has_spans else "spo"
    matches = MATCHES if labelled.has_spans else ("spo",)
    judged = rate(counts, lambda c: c.right[headline], lambda c: c.judged)
    return {
        "headline": headline,
        "matches": {match: _match(counts, match) for match in matches},
        "coverage": {
            "of_all_gold": rate(counts, lambda c: c.found[headline], lambda c: c.gold),
            "of_mapped_gold": rate(counts, lambda c: c.found[headline], lambda c: c.mapped),
            "by_label": _summed(c.by_label for c in counts),
            "by_predicate": _summed(c.coverage for c in counts),
        },
        "precision_by_predicate": _summed(c.by_predicate for c in counts),
        "false_positives_per_100_silent_turns": {
            "all": rate(counts, lambda c: c.on_silent, lambda c: c.silent_turns, scale=100),
            "judged": rate(
                counts, lambda c: c.on_silent_judged, lambda c: c.silent_turns, scale=100
            ),
        },
        "contradictions": rate(counts, lambda c: c.contradictions, lambda c: c.judged),
        "supersession": _supersession(counts) if labelled.has_spans else None,
        "temporal_boundaries": _boundaries(counts) if labelled.has_spans else None,
        "abstention_rate": rate(counts, lambda c: c.abstained, lambda c: c.turns),
        "refused": sum(c.refused for c in counts),
        "cost_per_1000_turns": _cost(counts),
        "gates": {
            "judged_precision_at_least": PRECISION_GATE,
            "passed": judged["of"] == 0 or judged["value"] >= PRECISION_GATE,
        },
    }


CHANGED = ("right", "wrong", "missed")
UNCHANGED = ("kept", "premature")


def _supersession(counts: Sequence[Counts]) -> dict[str, Any]:
    def number(each: Counts, names: Sequence[str]) -> int:
        return sum(each.supersession.get(name, 0) for name in names)

    def of(name: str, all_of: Sequence[str]) -> dict[str, float]:
        return rate(counts, lambda c: number(c, [name]), lambda c: number(c, all_of))

    return {
        "changes": sum(number(each, CHANGED) for each in counts),
        **{n: sum(number(each, [n]) for each in counts) for n in (*CHANGED, *UNCHANGED)},
        "rates": {
            **{name: of(name, CHANGED) for name in CHANGED},
            "premature": of("premature", UNCHANGED),
        },
    }


def _boundaries(counts: Sequence[Counts]) -> dict[str, Any]:
    names = ("right", "wrong", "unread", "unclaimed")
    return {
        **{name: sum(c.boundaries[place] for c in counts) for place, name in enumerate(names)},
        "errors": rate(counts, lambda c: sum(c.boundaries[1:3]), lambda c: sum(c.boundaries[:3])),
    }


def by_file(labelled: Labelled, counts: Sequence[Counts]) -> dict[str, Any]:
    """Return precision and recall of each file; empty for one file, or one that came twice."""
    if len(labelled.files) < 2 or len(labelled.files) != len(labelled.sizes):
        return {}
    headline = "claim_exact" if labelled.has_spans else "spo"
    found: dict[str, Any] = {}
    first = 0
    for digest, size in zip(labelled.files, labelled.sizes, strict=True):
        match = _match(counts[first : first + size], headline)
        found[digest] = {name: match[name] for name in ("precision_judged", "recall")}
        first += size
    return found


def _match(counts: Sequence[Counts], match: str) -> dict[str, Any]:
    return {
        "precision_judged": rate(counts, lambda c: c.right[match], lambda c: c.judged),
        "precision_all": rate(counts, lambda c: c.right[match], lambda c: c.emitted),
        "recall": rate(counts, lambda c: c.found[match], lambda c: c.gold),
        "f1_judged": f1(counts, match, judged=True),
        "f1_all": f1(counts, match, judged=False),
    }


def _summed(tables: Any) -> dict[str, dict[str, int]]:
    sums: dict[str, list[int]] = {}
    for table in tables:
        for name, (top, bottom) in table.items():
            row = sums.setdefault(name, [0, 0])
            row[0] += top
            row[1] += bottom
    ordered = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    return {name: {"right": top, "of": bottom} for name, (top, bottom) in ordered}


def _cost(counts: Sequence[Counts]) -> dict[str, float]:
    total: Counter[str] = Counter(calls=0, prompt_tokens=0, completion_tokens=0, cpu_s=0)
    for each in counts:
        total.update(dict(each.cost))
    turns = sum(each.turns for each in counts) or 1
    return {name: 1000 * amount / turns for name, amount in sorted(total.items())}


def majority(labelled: Labelled) -> str:
    """Return the predicate that the most gold claims map to."""
    found = Counter(name for d in labelled.dialogues for g in d.gold for name in g.predicates)
    return min(found, key=lambda name: (-found[name], name))


def extractors(options: argparse.Namespace, labelled: Labelled) -> list[ClaimExtractor]:
    """Return the baselines, the rules, and the extractor behind an endpoint if one is named."""
    trivial = majority(labelled)
    found: list[ClaimExtractor] = [
        Nothing(),
        NounPhrases(trivial),
        Majority(trivial),
        RuleExtractor(),
    ]
    if options.endpoint:
        from evicortex.providers.extraction_openai import OpenAICompatibleExtractor
        from evicortex.providers.http_json import JsonClient

        client = JsonClient(options.endpoint, timeout_seconds=options.timeout)
        found.append(
            OpenAICompatibleExtractor(client, model=options.model, revision=options.revision)
        )
    names = [name for name in options.systems.split(",") if name]
    return [each for each in found if not names or each.extractor_id in names]


def report(
    labelled: Labelled, options: argparse.Namespace, folder: Path, records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Measure every extractor on one data set."""
    systems = {}
    for extractor in extractors(options, labelled):
        counts = measure(labelled, extractor, folder)
        name = extractor.extractor_id
        records += [
            {"data": labelled.source.name, "system": name, **asdict(each)} for each in counts
        ]
        systems[name] = {
            "revision": extractor.revision,
            **summarise(labelled, counts),
            "by_file": by_file(labelled, counts),
        }
        print(f"{labelled.source.name}: {name} done", file=sys.stderr, flush=True)
    return {
        "data": labelled.source.name,
        "revision": labelled.source.revision,
        "files": dict(labelled.files),
        "dialogues": len(labelled.dialogues),
        "turns": sum(len(each.turns) for each in labelled.dialogues),
        "gold": sum(len(each.gold) for each in labelled.dialogues),
        "systems": systems,
    }


def render(found: Mapping[str, Any]) -> str:
    """Return one data set's report as a plain table, in percent."""
    lines = [
        (
            f"{found['data']}: {found['dialogues']} dialogues, {found['turns']} turns, "
            f"{found['gold']} gold claims"
        ),
        (
            f"{'':26}{'P judged':>21}{'P all':>8}{'R all gold':>21}{'R mapped':>9}{'F1':>6}"
            f"{'FP/100':>8}{'abst.':>7}{'CPU s/1k':>9}"
        ),
    ]
    for name, each in found["systems"].items():
        match = each["matches"][each["headline"]]
        lines.append(
            f"{name:26}{_percent(match['precision_judged'])}"
            f"{100 * match['precision_all']['value']:>8.1f}{_percent(match['recall'])}"
            f"{100 * each['coverage']['of_mapped_gold']['value']:>9.1f}"
            f"{100 * match['f1_judged']['value']:>6.1f}"
            f"{each['false_positives_per_100_silent_turns']['all']['value']:>8.1f}"
            f"{100 * each['abstention_rate']['value']:>7.1f}"
            f"{each['cost_per_1000_turns']['cpu_s']:>9.2f}"
        )
        for key in ("supersession", "temporal_boundaries"):
            if each[key]:
                counts = {what: n for what, n in each[key].items() if isinstance(n, int)}
                told = ", ".join(f"{what} {count}" for what, count in counts.items())
                lines.append(f"  {key.replace('_', ' ')}: {told}")
    return "\n".join(lines)


def _percent(cell: Mapping[str, float]) -> str:
    value, low, high = (100 * cell[key] for key in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]".rjust(21)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run_extraction", description=__doc__
    )
    parser.add_argument("--sgd", type=Path, nargs="+", default=[])
    parser.add_argument("--dialogre", type=Path, nargs="+", default=[])
    parser.add_argument(
        "--systems", default="", help="extractor ids, comma-separated; all by default"
    )
    parser.add_argument("--endpoint", help="base URL of an OpenAI-compatible server (…/v1)")
    parser.add_argument("--model", default="local")
    parser.add_argument("--revision", default="unknown")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--records", type=Path, help="write one JSON line a dialogue and system")
    parser.add_argument("--gate", action="store_true", help="fail when the rules miss the gate")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 0, 1 when a gate is missed under ``--gate``, 2 for wrong use."""
    parser = _parser()
    options = parser.parse_args(arguments)
    data = [
        module.load(paths)
        for module, paths in ((sgd, options.sgd), (dialogre, options.dialogre))
        if paths
    ]
    if not data:
        parser.error("name at least one data file")
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        sets = [report(each, options, Path(name), records) for each in data]
    commit = git_commit(Path(__file__).parent)
    found = {"git_commit": commit, "libraries": versions(), "data": sets}
    print("\n\n".join(render(each) for each in sets))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    if options.records:
        lines = [json.dumps(each) for each in records]
        options.records.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rules = [each["systems"].get("evicortex/rules") for each in sets]
    missed = any(each is not None and not each["gates"]["passed"] for each in rules)
    return 1 if options.gate and missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
