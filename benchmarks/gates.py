"""Evidence gates: what has been shown, by which record, and what may therefore be said.

Each gate of the two specification documents (Prototype B, Phase C) is passed, failed or not run.
``passed`` means that the evidence exists and says what the gate asks; the wording that a gate
allows is generated from its figures, and nothing else may be claimed in README or docs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks import gate_checks, gate_evidence, tables
from benchmarks.gate_checks import (
    COMPARATOR,
    CURVE,
    EXTERNAL,
    NOT_RUN,
    OWN,
    Check,
    Run,
    Status,
    Verdict,
    pool_of,
    where_of,
)
from benchmarks.metrics.intervals import Interval, bootstrap
from benchmarks.results import MANIFEST, Record, read_manifest, read_records, select


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate. ``record`` is the file that proves it; ``wording`` what it allows, if passed."""

    key: str
    document: str
    question: str
    status: Status
    figure: str
    record: str
    wording: str


@lru_cache(maxsize=4)
def _runs(folder: Path) -> tuple[Run, ...]:
    """Return the finished runs; one that was stopped midway proves nothing."""
    places = sorted(path.parent for path in folder.rglob(MANIFEST))
    found = [(place, read_manifest(place)) for place in places]
    return tuple(
        Run(place, manifest, read_records(place))
        for place, manifest in found
        if manifest.get("complete")
    )


def efficiency(folder: Path, runs: Sequence[Run]) -> Verdict:
    """More recall for the same tokens, for no more compute, and every other gate of Prototype B.

    The specification allows the word only after all gates of Prototype B. Beyond that: with the
    same encoder and tokens, by conversation, the difference to the tuned comparator is above 0 at
    every budget of the curve, and the CPU time of a question (its encoding included) is no
    greater, on every external data set measured.
    """
    told, good = [], True
    where = ""
    for suite in EXTERNAL:
        pool = pool_of(runs, suite)
        if not {OWN, COMPARATOR} <= set(tables.complete(pool, suite)):
            continue
        where = where or where_of(folder, runs, suite)
        for budget in CURVE:
            gained = tables.difference(pool, suite, OWN, COMPARATOR, budget, "conversation")
            ratio = _cpu_ratio(pool, suite, budget)
            if gained is None or ratio is None:
                good = False
                continue
            good &= gained.low > 0 and ratio.high <= 1
            told.append(
                f"{suite} @{budget}: {tables.signed(gained)} points, CPU {ratio.mean:.2f} "
                f"[{ratio.low:.2f}, {ratio.high:.2f}] of the comparator's"
            )
    if not told:
        return NOT_RUN
    open_gates = [
        key
        for key, _, _, check in (*GATES_B, *GATES_OF_B_IN_C)
        if check is not efficiency and check(folder, runs)[0] != "passed"
    ]
    figure = "; ".join(told)
    if open_gates:
        figure += f"; gates not passed: {', '.join(open_gates)}"
    status: Status = "passed" if good and not open_gates else "failed"
    return status, figure, where, "More efficient than RAG on the data named."


def _cpu_ratio(pool: Sequence[Record], suite: str, budget: int) -> Interval | None:
    """Return EviCortex's CPU time of a question over the comparator's mean, by conversation."""
    own = select(pool, suite=suite, system=OWN, budget=budget)
    other = select(pool, suite=suite, system=COMPARATOR, budget=budget)
    if not own.records or not other.records:
        return None
    mean = sum(r.cpu_ms for r in other.records) / len(other.records)
    if mean <= 0:
        return None
    return bootstrap(
        [r.cpu_ms / mean for r in own.records], clusters=own.clusters(), resamples=tables.RESAMPLES
    )


Entry = tuple[str, str, str, Check]
B, C = "Prototype B", "Phase C"

GATES_OF_B_IN_C: Sequence[Entry] = (
    (
        "controls",
        C,
        "No memory, full history, oracle, dense, released retriever",
        gate_checks.controls_present,
    ),
    ("shared-reader", C, "A shared reader with its exact tokenizer", gate_evidence.shared_reader),
)
"""Gates that both documents ask for."""

GATES_C: Sequence[Entry] = (
    ("semantic-smoke", C, "The pinned semantic path runs end to end", gate_evidence.smoke),
    (
        "official-longmemeval-s",
        C,
        "Official LongMemEval-S, preregistered",
        gate_checks.official_longmemeval,
    ),
    (
        "cross-encoder",
        C,
        "No reranker against a pinned top-16 cross-encoder",
        gate_checks.cross_encoder,
    ),
    ("calibrated-refusal", C, "Refusal calibrated on a development split", gate_checks.calibrated),
    ("ann-scale", C, "ANN recall against exact cosine at 10k and 100k", gate_evidence.ann_scale),
)

GATES_B: Sequence[Entry] = (
    ("synthetic-curves", B, "Five seeds at 512 to 8k tokens", gate_checks.synthetic_curves),
    ("vector-scale", B, "1k and 10k exact scan, 100k crossover", gate_evidence.vector_scale),
    (
        "extraction",
        B,
        "Extraction accuracy and cost, apart from retrieval",
        gate_evidence.extraction,
    ),
    ("crossover", B, "Representation and retriever crossed, paired", gate_checks.crossed),
    (
        "equal-tuning",
        B,
        "The comparator is tuned as often as EviCortex",
        gate_evidence.tuned_equally,
    ),
    (
        "external",
        B,
        "Better than the tuned hybrid on external conversations",
        gate_checks.external_comparison,
    ),
    (
        "official-split",
        B,
        "An external benchmark on its official split",
        gate_checks.official_split,
    ),
    ("efficiency", B, "More efficient than RAG", efficiency),
)

GATES: Sequence[Entry] = (*GATES_OF_B_IN_C, *GATES_C, *GATES_B)


def evaluate(folder: Path) -> list[Gate]:
    """Return every gate as the records under ``folder`` decide it."""
    runs = _runs(folder.resolve())
    found: list[Gate] = []
    for key, document, question, check in GATES:
        status, figure, record, wording = check(folder.resolve(), runs)
        said = wording if status == "passed" else ""
        found.append(Gate(key, document, question, status, figure, record, said))
    return found


def render(gates: Sequence[Gate]) -> str:
    """Return the gates as text, with the wording that they allow."""
    lines = []
    for gate in gates:
        lines.append(f"{gate.status:8} {gate.document:12} {gate.key:24} {gate.question}")
        if gate.figure:
            lines.append(f"{'':22}{gate.figure} [{gate.record}]")
    return "\n".join([*lines, "", "Allowed wording:", *(f"- {each}" for each in wording(gates))])


def wording(gates: Sequence[Gate]) -> list[str]:
    """Return the sentences that the gates allow."""
    found = [gate.wording for gate in gates if gate.wording]
    if not any(gate.key == "efficiency" and gate.status == "passed" for gate in gates):
        found.append('"More efficient than RAG" remains an unverified research hypothesis.')
    return found


_OTHERS = r"(?:any |every |other |a |an |the )*(?:tuned |plain )*(?:RAG|vector|hybrid|chunk|retriev|memor)"
CLAIMS: Sequence[tuple[str, str]] = (
    (r"\b(?:out)?performs? (?:every|all|any|other|competing)\b", "external"),
    (r"\bbetter than (?:RAG|retrieval|vector|hybrid|chunk|other memor)", "external"),
    (r"\b(?:beats?|outperform\w*|surpass\w*) ", "external"),
    (
        r"\b(?:superior to|wins? against|ahead of|better recall than|higher recall than)\b",
        "external",
    ),
    (rf"\bmore (?:evidence|recall|gold|facts) than {_OTHERS}", "external"),
    (r"\bbest[- ]in[- ]class\b", "external"),
    (r"\bmore (?:efficient|accurate) than\b", "efficiency"),
    (
        rf"\b(?:cheaper|faster|leaner|as (?:accurate|efficient|fast|cheap)) (?:than|as) {_OTHERS}",
        "efficiency",
    ),
    (r"\bRAG (?:is )?(?:obsolete|dead|unnecessary)\b", "efficiency"),
    (r"\b(?:replac\w+|supersed\w+) RAG\b", "efficiency"),
    (r"\bstate[- ]of[- ]the[- ]art\b", "official-longmemeval-s"),
    (r"\bSOTA\b", "official-longmemeval-s"),
    (r"\bon (?:the official )?LongMemEval[^.]*\d+(?:\.\d+)? ?%", "official-longmemeval-s"),
    (r"\bcalibrated (?:probabilit|confiden|refus)\w*", "calibrated-refusal"),
    (r"\b(?:fastest|best|leading|most accurate) (?:agent |long-term |LLM )?memory\b", "external"),
    (r"\bnever hallucinat\w*", "shared-reader"),
    (r"\banswers? (?:more )?(?:correctly|accurately)\b", "shared-reader"),
    (r"\bscales? to (?:millions|100k|1M|billions)\b", "ann-scale"),
)
"""Phrases that claim a result, with the gate whose generated wording would be needed."""

_DENIED = re.compile(
    r"\b(?:not|no|nothing|never|nor|unverified|until|cannot|unless|would|when|whether)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(r"\b(?:unverified|hypothesis|stays? empty)\b", re.IGNORECASE)


def overclaims(text: str, gates: Sequence[Gate]) -> list[str]:
    """Return the sentences of a document that claim what no passed gate allows.

    What a clause denies or conditions before it says it, or calls a hypothesis after, is no claim;
    a denial in another clause of the sentence excuses nothing. Wording generated by a passed
    gate is allowed word for word, and nothing freer: a gate passed on one configuration does not
    allow a claim about every other.
    """
    for gate in gates:
        if gate.wording:
            text = text.replace(gate.wording, "")
    flat = re.sub(r"\s+", " ", re.sub(r"```.*?```", " ", text, flags=re.DOTALL))
    found = []
    for sentence in re.split(r"(?<=[.!?:;])\s|\s\| ", flat):
        key = next((key for clause in sentence.split(",") if (key := _claimed(clause))), None)
        if key is not None:
            found.append(f"{key}: {sentence.strip()}")
    return found


def _claimed(clause: str) -> str | None:
    """Return the gate whose wording a clause would need, or None when it claims nothing."""
    for pattern, key in CLAIMS:
        said = re.search(pattern, clause, re.IGNORECASE)
        if said is None or _DENIED.search(clause[: said.start()]):
            continue
        if not _DOUBTED.search(clause[said.end() :]):
            return key
    return None
