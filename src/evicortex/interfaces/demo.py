"""Runs a demonstration in a temporary ledger and returns what was seen; printing is elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evicortex.cortex import EviCortex
from evicortex.interfaces.demo_locomo import locomo_script
from evicortex.interfaces.demo_script import DemoScript, Question, bundled_script
from evicortex.interfaces.importers import Entry
from evicortex.interfaces.importing import import_entries
from evicortex.types import Claim, ContextPack, EvidenceDraft, PurgeReceipt, VerifyReport

_STEM_LETTERS = 5
"""Letters of a word that its stem in the full-text index also has."""


class DemoClock:
    """A clock that stands where the story is, so that every run is the same."""

    def __init__(self) -> None:
        self._moment = datetime(2000, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        """Return the present of the story."""
        return self._moment

    def advance(self, moment: datetime) -> None:
        """Move on to ``moment``; never back."""
        self._moment = max(self._moment, moment)


@dataclass(frozen=True, slots=True)
class Told:
    """What was remembered."""

    messages: int
    sessions: int
    claims: int
    refused: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its pack, and whether the pack is as the question expects it."""

    question: Question
    pack: ContextPack
    as_expected: bool


@dataclass(frozen=True, slots=True)
class Remembered:
    """The history of one fact."""

    remark: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A purge, and in how many files each word was found before and after it."""

    remark: str
    receipt: PurgeReceipt
    before: dict[str, int]
    after: dict[str, int]


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Everything a demonstration showed. ``ok``: the ledger verifies, nothing purged is left."""

    namespace: str
    told: Told
    asked: tuple[Asked, ...]
    remembered: Remembered
    forgotten: Forgotten
    verified: VerifyReport
    ok: bool


def run_demo(locomo: Path | None = None) -> DemoReport:
    """Run the bundled script, or that of a LoCoMo file, in a ledger that is thrown away."""
    script = locomo_script(locomo) if locomo else bundled_script()
    clock = DemoClock()
    with TemporaryDirectory(prefix="evicortex-demo-") as folder:
        path = Path(folder) / "memory.db"
        with EviCortex.open(path, embedder=None, clock=clock) as cortex:
            return _run(cortex, script, clock, path.parent)


def _run(cortex: EviCortex, script: DemoScript, clock: DemoClock, folder: Path) -> DemoReport:
    told = _tell(cortex, script, clock)
    asked = tuple(_ask(cortex, script.namespace, question) for question in script.questions)
    history = tuple(cortex.history(script.namespace, *script.fact))
    forgotten = _forget(cortex, script, folder)
    verified = cortex.verify(script.namespace)
    return DemoReport(
        namespace=script.namespace,
        told=told,
        asked=asked,
        remembered=Remembered(script.fact_remark, history),
        forgotten=forgotten,
        verified=verified,
        ok=verified.ok and not any(forgotten.after.values()),
    )


def _tell(cortex: EviCortex, script: DemoScript, clock: DemoClock) -> Told:
    """Remember session by session, each when it was held: what was known when stays true."""
    messages = claims = refused = 0
    times: list[datetime] = []
    for session in script.sessions:
        held = list(_times(session))
        times += held
        clock.advance(max(held, default=clock.now()) + timedelta(minutes=1))
        report = import_entries(cortex, script.namespace, session)
        messages += report.created
        refused += len(report.refused)
        claims += sum(
            len(entry.found.claims) for entry in session if isinstance(entry.found, EvidenceDraft)
        )
    clock.advance(max(times) + timedelta(days=1))
    return Told(messages, len(script.sessions), claims, refused, min(times), max(times))


def _times(session: Sequence[Entry]) -> Iterator[datetime]:
    for entry in session:
        if isinstance(entry.found, EvidenceDraft):
            moment: Any = entry.found.occurred_at
            yield datetime.fromisoformat(moment) if isinstance(moment, str) else moment


def _ask(cortex: EviCortex, namespace: str, question: Question) -> Asked:
    pack = cortex.recall(
        namespace,
        question.text,
        budget_tokens=question.budget,
        as_of=question.as_of,
        known_at=question.known_at,
    )
    cited = {item.external_id for item in pack.items}
    unwanted = any(
        word.casefold() in item.text.casefold() for word in question.absent for item in pack.items
    )
    answered = cited.issuperset(question.answered_by) and not unwanted
    doubted = pack.support.verdict == "insufficient" or not question.refused
    return Asked(question, pack, as_expected=answered and doubted)


def _forget(cortex: EviCortex, script: DemoScript, folder: Path) -> Forgotten:
    before = _files_with(folder, script.purged_words)
    receipt = cortex.purge(script.namespace, **script.purge)
    return Forgotten(script.purge_remark, receipt, before, _files_with(folder, script.purged_words))


def _files_with(folder: Path, words: Sequence[str]) -> dict[str, int]:
    """Return in how many files the bytes of each word, or of its stem, are found, in any case."""
    contents = [file.read_bytes().lower() for file in sorted(folder.iterdir())]
    return {
        word: sum(word[:_STEM_LETTERS].lower().encode() in content for content in contents)
        for word in words
    }
