"""Runs systems over data sets, with a checkpoint per question.

Every answer is written durably before the next question is asked. A run that was killed is
started again with the same command: questions that have a record are not asked again, and a
configuration or data file that changed in between is refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import manifest, prereg
from benchmarks.config import ConfigError, RunConfig
from benchmarks.datasets.base import Conversation, Label, Query, Stream
from benchmarks.datasets.catalog import Declaration, open_streams
from benchmarks.encoders import make_counter, make_encoder
from benchmarks.metering import Meter, Spent
from benchmarks.results import (
    INGEST,
    MANIFEST,
    RECORDS,
    Ingest,
    Key,
    Record,
    RecordFile,
    read_manifest,
    read_records,
)
from benchmarks.scoring import gold_ranks, groups, score
from benchmarks.systems.base import LabelledControl, Packed
from benchmarks.systems.catalog import Bench, Participant, label, make
from evicortex import EviCortexError

FAILURES = (
    EviCortexError,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a system may raise and still be counted, with zero, instead of ending the run."""

VECTORS = "vectors.sqlite"
"""Kept beside the folders of records, for all runs there."""

Progress = Callable[[str], None]


class BudgetBrokenError(ValueError):
    """A pack larger than its budget, or whose token count is not that of its text."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One data set as the run knows it."""

    name: str
    declaration: Declaration
    stream: Stream

    def groups(self) -> Iterator[tuple[str, list[Conversation]]]:
        """Yield conversations that go into one memory: all of them, or each on its own."""
        if self.declaration.shared:
            yield "all", list(self.stream.conversations())
            return
        for conversation in self.stream.conversations():
            yield conversation.conversation_id, [conversation]


def suites_of(config: RunConfig) -> list[Suite]:
    """Open every data set; raises ConfigError when two suites have one name."""
    found = [
        Suite(name, declaration, stream)
        for options in config.datasets
        for name, declaration, stream in open_streams(options)
    ]
    names = [suite.name for suite in found]
    if len(set(names)) != len(names):
        raise ConfigError("two data sets have one name: give each a `name`")
    return found


def digests(suites: Sequence[Suite]) -> dict[str, str]:
    """Return the data digests of a run by suite, and of further files by suite and option."""
    found = {suite.name: suite.stream.digest for suite in suites}
    for suite in suites:
        found |= {f"{suite.name}, {key}": each for key, each in suite.stream.others.items()}
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, and its label in each suite that asks it.

    ``namespace`` and ``shown`` are what a system gets: ids of a data set may tell about labels,
    as LongMemEval's ``_abs`` does, so that it gets places instead.
    """

    conversation: str
    namespace: str
    query: Query
    shown: Query
    labels: Mapping[str, Label]
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Conversations that go into one memory, with the questions asked of it."""

    name: str
    suites: tuple[str, ...]
    conversations: Sequence[Conversation]
    questions: Sequence[Asked]


def families(suites: Sequence[Suite]) -> list[list[Suite]]:
    """Put together suites of the same turns and queries: they differ in labels, and are asked once."""
    found: list[list[Suite]] = []
    for suite in suites:
        kin = next((each for each in found if _same_questions(each[0], suite)), None)
        if kin is None:
            found.append([suite])
        else:
            kin.append(suite)
    return found


def _same_questions(one: Suite, other: Suite) -> bool:
    """Compare whole data sets that are held in memory; one that is streamed is asked by itself."""
    if not (one.declaration.shared and other.declaration.shared):
        return False
    if one.stream.digest != other.stream.digest:
        return False
    return _unlabelled(one) == _unlabelled(other)


def _unlabelled(suite: Suite) -> list[Any]:
    return [(c.conversation_id, c.turns, c.queries) for c in suite.stream.conversations()]


def _groups(family: Sequence[Suite]) -> Iterator[Group]:
    names = tuple(suite.name for suite in family)
    for kin in zip(*(suite.groups() for suite in family), strict=True):
        name, conversations = kin[0]
        labels = {
            (suite, c.conversation_id): c.labels
            for suite, (_, found) in zip(names, kin, strict=True)
            for c in found
        }
        questions = []
        for place, c in enumerate(conversations):
            texts = {turn.turn_id: turn.text for turn in c.turns}
            questions += [
                Asked(
                    c.conversation_id,
                    namespace_of(place),
                    query,
                    replace(query, query_id=f"question {number}"),
                    {suite: labels[suite, c.conversation_id][query.query_id] for suite in names},
                    texts,
                )
                for number, query in enumerate(c.queries)
            ]
        yield Group(name, names, conversations, questions)


def namespace_of(place: int) -> str:
    """Return the namespace in which a group's conversation at this place is stored."""
    return f"conversation-{place}"


class Runner:
    """One run: its files, and the questions that have been answered already."""

    def __init__(self, config: RunConfig, bench: Bench, say: Progress) -> None:
        self._config = config
        self._bench = bench
        self._say = say
        self._records = RecordFile(config.output / RECORDS)
        self._ingests = RecordFile(config.output / INGEST)
        self._done: set[Key] = {record.key for record in read_records(config.output)}

    def close(self) -> None:
        """Close the record files."""
        self._records.close()
        self._ingests.close()

    def family(self, family: Sequence[Suite]) -> None:
        """Ask every pending question of suites that ask the same."""
        for group in _groups(family):
            for name in self._config.systems:
                if self._pending(group, label(name, self._bench)):
                    self._group(group, name)
            if self._bench.encoder is not None and not family[0].declaration.shared:
                self._bench.encoder.keep(())

    def _pending(self, group: Group, system: str) -> list[Asked]:
        return [
            asked
            for asked in group.questions
            if any(self._open(asked, system, budget) for budget in self._config.budgets)
        ]

    def _open(self, asked: Asked, system: str, budget: int) -> list[Key]:
        """Return the keys of the records that are still to be written."""
        keys = [
            (suite, asked.conversation, asked.query.query_id, system, budget)
            for suite in asked.labels
        ]
        return [key for key in keys if key not in self._done]

    def _group(self, group: Group, name: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="bench-"))
        try:
            manifest.forget_peak_rss()
            system = make(name, self._bench, folder)
            name = label(name, self._bench)
            try:
                taken = self._ingest(group, system, name)
                pending = self._pending(group, name)
                suites = " and ".join(group.suites)
                self._say(f"{suites} | {group.name} | {name}: {len(pending)} questions")
                for asked in pending:
                    self._question(asked, system, name)
                self._ingests.append(
                    [replace(row, peak_rss_mib=manifest.peak_rss_mib()) for row in taken]
                )
            finally:
                system.close()
        finally:
            shutil.rmtree(folder)

    def _ingest(self, group: Group, system: Participant, name: str) -> list[Ingest]:
        meter = Meter(self._bench)
        for place, conversation in enumerate(group.conversations):
            system.ingest(namespace_of(place), conversation.turns)
        spent = meter.read()
        rows = [
            Ingest(
                suite=suite,
                group=group.name,
                system=name,
                turns=sum(len(conversation.turns) for conversation in group.conversations),
                cpu_s=round(spent.cpu_s, 6),
                embedded=spent.embedded,
                peak_rss_mib=manifest.peak_rss_mib(),
                embed_cpu_s=round(spent.embed_cpu_s, 6),
            )
            for suite in group.suites
        ]
        self._ingests.append(rows)
        return rows

    def _question(self, asked: Asked, system: Participant, name: str) -> None:
        rows = []
        for budget in self._config.budgets:
            keys = self._open(asked, name, budget)
            shown = isinstance(system, LabelledControl)
            for some in [[key] for key in keys] if shown else [keys] if keys else []:
                meter = Meter(self._bench)
                packed, error = self._answer(system, asked, asked.labels[some[0][0]], budget)
                spent = meter.read()
                rows += [
                    self._record(key, asked.labels[key[0]], packed, error, spent, asked.texts)
                    for key in some
                ]
        self._records.append(rows)
        self._done.update(row.key for row in rows)

    def _answer(
        self, system: Participant, asked: Asked, gold: Label, budget: int
    ) -> tuple[Packed, str | None]:
        try:
            packed = _ask(system, asked.namespace, asked.shown, gold, budget)
            counted = self._bench.counter.count(packed.text)
            if counted != packed.token_count or counted > budget:
                raise BudgetBrokenError(
                    f"{counted} tokens, said to be {packed.token_count}, of {budget}"
                )
        except FAILURES as error:
            return Packed("", 0, {}), f"{type(error).__name__}"
        return packed, None

    def _record(
        self,
        key: Key,
        gold: Label,
        packed: Packed,
        error: str | None,
        spent: Spent,
        texts: Mapping[str, str],
    ) -> Record:
        suite, conversation, query, system, budget = key
        values = {} if error else score(gold, packed, texts, self._config.cutoffs)
        return Record(
            suite=suite,
            conversation=conversation,
            query=query,
            system=system,
            budget=budget,
            category=gold.category,
            answerable=gold.answerable,
            counted=gold.counted,
            status="failed" if error else "ok",
            error=error,
            pack_sha256=hashlib.sha256(packed.text.encode()).hexdigest(),
            tokens=packed.token_count,
            items=len(packed.shown),
            gold=len(gold.gold),
            gold_ranks=gold_ranks(gold, packed),
            refused=packed.refused,
            probability=packed.probability,
            signals={name: round(each, 6) for name, each in packed.signals.items()},
            values=values,
            costs=dict(packed.costs),
            cpu_ms=round(1000 * spent.cpu_s, 3),
            embed_cpu_ms=round(1000 * spent.embed_cpu_s, 3),
            groups=groups(gold),
        )


def _ask(system: Participant, namespace: str, query: Query, gold: Label, budget: int) -> Packed:
    """Ask a system without the label; only a control, whose type says so, is shown it."""
    if isinstance(system, LabelledControl):
        return system.ask_with_label(namespace, query, gold, budget)
    return system.ask(namespace, query, budget)


def bench_of(config: RunConfig) -> Bench:
    """Return the counter, the encoder and the settings that all systems of a run share."""
    encoder = make_encoder(config.encoder)
    if encoder is not None:
        encoder.keep_in(config.output.parent / VECTORS)
    return Bench(make_counter(), encoder, config.hybrid)


def run(config: RunConfig, *, bench: Bench | None = None, say: Progress | None = None) -> Path:
    """Run or continue a run; returns the folder of its records.

    Raises:
        ConfigError: The folder holds another run, or a preregistration does not fit.
        DatasetError: A data set is not what it should be.
    """
    suites = suites_of(config)
    frozen = prereg.check(config, digests(suites))
    ready = bench or bench_of(config)
    described = {suite.name: manifest.describe_stream(suite.stream) for suite in suites}
    entry = manifest.describe(config, ready, described, frozen)
    try:
        if not _begin(config.output, entry):
            _answer_all(config, ready, suites, say or _print)
    finally:
        if ready.encoder is not None:
            ready.encoder.close()
    return config.output


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _answer_all(config: RunConfig, bench: Bench, suites: Sequence[Suite], say: Progress) -> None:
    started = time.process_time()
    runner = Runner(config, bench, say)
    try:
        for family in families(suites):
            runner.family(family)
    finally:
        runner.close()
    _finish(config.output, time.process_time() - started)


_SAME = ("config_sha256", "suites", "encoder", "token_counter", "prereg_sha256")


def _begin(folder: Path, entry: dict[str, Any]) -> bool:
    """Write the manifest, or check the one that is there; returns whether the run is finished.

    A run that was stopped does not go on under another code: half of its records would be of
    one program and half of another.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST
    if path.is_file():
        known = read_manifest(folder)
        changed = [key for key in _SAME if known.get(key) != entry[key]]
        if changed:
            raise ConfigError(
                f"{folder} holds another run ({', '.join(changed)} differ): choose another output"
            )
        if not known.get("complete") and known.get("code_sha256") != entry["code_sha256"]:
            raise ConfigError(
                f"{folder} was begun with other code: remove it, or choose another output"
            )
        return bool(known.get("complete"))
    _write(path, entry)
    return False


def _finish(folder: Path, spent: float) -> None:
    entry = read_manifest(folder)
    entry["cpu_s"] = round(entry.get("cpu_s", 0.0) + spent, 3)
    entry["peak_rss_mib"] = round(max(entry.get("peak_rss_mib", 0.0), manifest.peak_rss_mib()), 1)
    entry["complete"] = True
    _write(folder / MANIFEST, entry)


def _write(path: Path, entry: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(entry, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(path)


def with_output(config: RunConfig, output: Path) -> RunConfig:
    """Return the same configuration writing elsewhere."""
    return replace(config, output=output)
