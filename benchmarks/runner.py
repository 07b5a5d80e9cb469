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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import manifest, prereg
from benchmarks.config import ConfigError, RunConfig
from benchmarks.datasets.base import Conversation, Label, Query, Stream
from benchmarks.datasets.catalog import Declaration, open_streams
from benchmarks.encoders import make_counter, make_encoder
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
    """Return the data digests of a run by suite."""
    return {suite.name: suite.stream.digest for suite in suites}


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

    def suite(self, suite: Suite) -> None:
        """Ask every pending question of a data set."""
        for group, conversations in suite.groups():
            for name in self._config.systems:
                labelled = label(name, self._bench)
                if self._pending(suite.name, labelled, conversations):
                    self._group(suite, group, conversations, name)
            if self._bench.encoder is not None and not suite.declaration.shared:
                self._bench.encoder.keep(())

    def _pending(
        self, suite: str, system: str, conversations: Iterable[Conversation]
    ) -> list[tuple[Conversation, Query]]:
        return [
            (conversation, query)
            for conversation in conversations
            for query in conversation.queries
            if any(
                (suite, conversation.conversation_id, query.query_id, system, budget)
                not in self._done
                for budget in self._config.budgets
            )
        ]

    def _group(
        self, suite: Suite, group: str, conversations: Sequence[Conversation], name: str
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="bench-"))
        try:
            system = make(name, self._bench, folder)
            name = label(name, self._bench)
            try:
                self._ingest(suite.name, group, conversations, system, name)
                pending = self._pending(suite.name, name, conversations)
                self._say(f"{suite.name} | {group} | {name}: {len(pending)} questions")
                for conversation, query in pending:
                    self._question(suite.name, conversation, query, system, name)
            finally:
                system.close()
        finally:
            shutil.rmtree(folder)

    def _ingest(
        self,
        suite: str,
        group: str,
        conversations: Sequence[Conversation],
        system: Participant,
        name: str,
    ) -> None:
        encoder = self._bench.encoder
        before = encoder.requested if encoder else 0
        started = time.process_time()
        for conversation in conversations:
            system.ingest(conversation.conversation_id, conversation.turns)
        row = Ingest(
            suite,
            group,
            name,
            sum(len(conversation.turns) for conversation in conversations),
            time.process_time() - started,
            (encoder.requested if encoder else 0) - before,
            manifest.peak_rss_mib(),
        )
        self._ingests.append([row])

    def _question(
        self,
        suite: str,
        conversation: Conversation,
        query: Query,
        system: Participant,
        name: str,
    ) -> None:
        gold = conversation.labels[query.query_id]
        texts = {turn.turn_id: turn.text for turn in conversation.turns}
        rows = []
        for budget in self._config.budgets:
            key = (suite, conversation.conversation_id, query.query_id, name, budget)
            if key in self._done:
                continue
            started = time.process_time()
            packed, error = self._answer(system, conversation.conversation_id, query, gold, budget)
            spent = 1000 * (time.process_time() - started)
            rows.append(self._record(key, gold, packed, error, spent, texts))
        self._records.append(rows)
        self._done.update(row.key for row in rows)

    def _answer(
        self, system: Participant, namespace: str, query: Query, gold: Label, budget: int
    ) -> tuple[Packed, str | None]:
        try:
            packed = _ask(system, namespace, query, gold, budget)
            counted = self._bench.count(packed.text)
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
        spent: float,
        texts: dict[str, str],
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
            values=values,
            costs=dict(packed.costs),
            cpu_ms=round(spent, 3),
            groups=groups(gold),
        )


def _ask(system: Participant, namespace: str, query: Query, gold: Label, budget: int) -> Packed:
    """Ask a system without the label; only a control, whose type says so, is shown it."""
    if isinstance(system, LabelledControl):
        return system.ask_with_label(namespace, query, gold, budget)
    return system.ask(namespace, query, budget)


def bench_of(config: RunConfig) -> Bench:
    """Return the counter, the encoder and the settings that all systems of a run share."""
    return Bench(make_counter(), make_encoder(config.encoder), config.hybrid)


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
    _begin(config.output, entry)
    runner = Runner(config, ready, say or (lambda line: print(line, file=sys.stderr, flush=True)))
    started = time.process_time()
    try:
        for suite in suites:
            runner.suite(suite)
    finally:
        runner.close()
    _finish(config.output, time.process_time() - started)
    return config.output


_SAME = ("config_sha256", "suites", "encoder", "token_counter", "prereg_sha256")


def _begin(folder: Path, entry: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST
    if path.is_file():
        known = read_manifest(folder)
        changed = [key for key in _SAME if known.get(key) != entry[key]]
        if changed:
            raise ConfigError(
                f"{folder} holds another run ({', '.join(changed)} differ): choose another output"
            )
        return
    _write(path, entry)


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
