"""Train the ranker of the package again, from the development conversations.

``python -m benchmarks.train_ranker --locomo FILE --realtalk FILE [--out FOLDER] [--figures]``

Writes ``ranker.npz`` and ``ranker.json``. Features are those that a recall computes, by the
product's own code: this is the one benchmark that looks inside the pipeline, and it only reads.
With ``--figures`` the record also tells what rankers reach that have not seen the conversation
(or the data set) they are measured on; this takes a few minutes more. Use one BLAS thread
(``OMP_NUM_THREADS=1``): the weights are then the same to the bit on one machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import locomo, realtalk
from benchmarks.datasets.base import Conversation, Label, Query
from benchmarks.metrics.intervals import bootstrap, paired
from benchmarks.metrics.retrieval import strict_evidence
from benchmarks.ranker_fit import Example, Recipe, fit
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem
from evicortex.opening import connect
from evicortex.pipeline import recall as recalling
from evicortex.pipeline.opinions import opinions
from evicortex.pipeline.ranking import look_closer
from evicortex.pipeline.sight import Question, check_question, look
from evicortex.pipeline.wiring import RoomOptions, Rooms
from evicortex.policy import ranking
from evicortex.policy.ranking import Ranker
from evicortex.policy.ranking_features import NAMES

BUDGETS = (512, 1024, 2048)
_NO_FILTER: Mapping[str, Any] = {
    "as_of": None,
    "known_at": None,
    "sessions": None,
    "actors": None,
    "include_superseded": False,
}


@dataclass(frozen=True, slots=True)
class Source:
    """A development file: its name, digest and conversations."""

    name: str
    digest: str
    conversations: tuple[Conversation, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One question with the features of its candidates."""

    source: str
    conversation: Conversation
    query: Query
    label: Label
    example: Example


def sources(options: argparse.Namespace) -> list[Source]:
    """Map the two development files."""
    first, second = locomo.load(options.locomo), realtalk.load(options.realtalk)
    return [
        Source("locomo_dev6", first.digest, first.conversations),
        Source("realtalk_dev4", second.digest, second.conversations),
    ]


def questions(conversation: Conversation) -> Iterator[tuple[Query, Label]]:
    """Yield the questions that can be answered from the conversation."""
    for query in conversation.queries:
        label = conversation.labels[query.query_id]
        if label.gold and label.category != "adversarial":
            yield query, label


def ingest(path: Path, found: Sequence[Source], encoder: SharedEncoder) -> None:
    """Remember every conversation of the sources in a new ledger at ``path``."""
    system = EviCortexSystem(path, embedder=encoder)
    for source in found:
        for conversation in source.conversations:
            system.ingest(conversation.conversation_id, conversation.turns)
    system.close()


def opened(path: Path, encoder: SharedEncoder, *, ranker: bool) -> Rooms:
    """Open a ledger with the default options, the ranker on or off."""
    options = RoomOptions()
    options = replace(options, fusion=replace(options.fusion, ranker=ranker))
    return connect(
        path,
        options,
        embedder=encoder,
        extractor=None,
        reranker=None,
        token_counter=None,
        read_only=False,
        clock=None,
    )


def _asked(rooms: Rooms, conversation: Conversation, query: Query) -> Question:
    return check_question(
        rooms,
        conversation.conversation_id,
        query.text,
        query_actor=query.query_actor,
        **_NO_FILTER,
    )


def example(rooms: Rooms, conversation: Conversation, query: Query, label: Label) -> Example:
    """Return what the ranker would see of a question, with the gold turns marked."""
    question = _asked(rooms, conversation, query)
    with rooms.ledger.read() as tx:
        ns = tx.namespace(conversation.conversation_id)
        assert ns is not None
        sight = look(rooms, tx, ns, question)
        analysis = recalling.analyzed(rooms, sight, question)
        said = opinions(rooms, sight, question, analysis)
        closer = look_closer(rooms, sight, analysis, said, said.fused(sight))
        assert closer is not None
    turns = [conversation.turns[row].turn_id for row in closer.rows]
    return Example(closer.features, np.isin(turns, label.gold))


def cases(rooms: Rooms, found: Sequence[Source]) -> list[Case]:
    """Return every question of every source."""
    return [
        Case(source.name, conversation, query, label, example(rooms, conversation, query, label))
        for source in found
        for conversation in source.conversations
        for query, label in questions(conversation)
    ]


def scores(rooms: Rooms, ranker: Ranker | None, chosen: Sequence[Case]) -> dict[int, list[float]]:
    """Return strict all-evidence recall of every case by budget."""
    rooms.ranker = ranker
    found: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
    for case in chosen:
        full = {turn.turn_id: turn.text for turn in case.conversation.turns}
        question = _asked(rooms, case.conversation, case.query)
        for budget in BUDGETS:
            pack = recalling.recall(rooms, question, budget)
            shown = {item.external_id: item.text for item in pack.items if item.external_id}
            value = strict_evidence(case.label.gold, shown, full, case.label.answer)
            found[budget].append(value)
    return found


def left_out(rooms: Rooms, every: Sequence[Case], recipe: Recipe, by: str) -> dict[str, Any]:
    """Return recall of rankers that were not trained on what they are measured on.

    ``by`` is ``conversation`` or ``source``.
    """

    def group(case: Case) -> str:
        return case.source if by == "source" else case.conversation.conversation_id

    found: dict[str, dict[int, list[float]]] = {}
    for name in dict.fromkeys(group(case) for case in every):
        ranker = fit([case.example for case in every if group(case) != name], recipe)
        chosen = [case for case in every if group(case) == name]
        kept = found.setdefault(chosen[0].source, {budget: [] for budget in BUDGETS})
        for budget, values in scores(rooms, ranker, chosen).items():
            kept[budget] += values
    return dict(found)


def figures(plain: Rooms, ranked: Rooms, every: Sequence[Case], recipe: Recipe) -> dict[str, Any]:
    """Return the record's figures in points, each with its 95 % interval, by source and budget."""
    out: dict[str, Any] = {}
    held = {by: left_out(ranked, every, recipe, by) for by in ("conversation", "source")}
    for name in dict.fromkeys(case.source for case in every):
        base = scores(plain, None, [case for case in every if case.source == name])
        out[name] = {"hand_fusion": {b: _points(bootstrap(v)) for b, v in base.items()}}
        for by, found in held.items():
            out[name][f"leave_one_{by}_out"] = {
                budget: {
                    "recall": _points(bootstrap(values)),
                    "over_hand_fusion": _points(paired(values, base[budget])),
                }
                for budget, values in found[name].items()
            }
    return out


def _points(interval: Any) -> dict[str, float]:
    found = {name: round(100 * value, 2) for name, value in asdict(interval).items() if name != "n"}
    return {**found, "n": interval.n}


def record(
    weights: bytes, found: Sequence[Source], encoder: SharedEncoder, recipe: Recipe
) -> dict[str, Any]:
    """Return the training record without figures."""
    return {
        "version": ranking.VERSION,
        "share": ranking.SHARE,
        "clip": ranking.CLIP,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "features": list(NAMES),
        "normalisation": f"(x - mean) / deviation, clipped to {ranking.CLIP} deviations",
        "model": f"fused + sqrt(gate) * {ranking.SHARE} * features . (weights . (1, context))",
        "recipe": asdict(recipe),
        "data_sha256": {source.name: source.digest for source in found},
        "encoder": encoder.identity,
    }


def text_of(said: Mapping[str, Any]) -> str:
    """Return a training record as the text of its file."""
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, write and report; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_ranker", description=__doc__)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--realtalk", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("src/evicortex/policy"))
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args(arguments)
    encoder = SharedEncoder.local()
    if encoder is None:
        parser.error("the ranker is trained with the local encoder: install evicortex[local]")
    found, recipe = sources(options), Recipe()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.db"
        ingest(path, found, encoder)
        plain = opened(path, encoder, ranker=False)
        every = cases(plain, found)
        weights = ranking.written(fit([case.example for case in every], recipe))
        said = record(weights, found, encoder, recipe)
        if options.figures:
            ranked = opened(path, encoder, ranker=True)
            said["figures"] = figures(plain, ranked, every, recipe)
            ranked.close()
        plain.close()
    (options.out / ranking.WEIGHTS).write_bytes(weights)
    (options.out / ranking.RECORD).write_text(text_of(said), encoding="utf-8")
    print(json.dumps(said.get("figures", {}), indent=1))
    print(f"{len(every)} questions, weights {said['weights_sha256']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
