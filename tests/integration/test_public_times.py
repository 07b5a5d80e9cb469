"""Times that evidence names, through the public calls and on the files' bytes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from evicortex import EviCortex, EvidenceDraft, Settings, TimeMention
from evicortex.errors import InputError, NotFoundError
from evicortex.interfaces.cli import cli
from evicortex.pipeline.wiring import RoomOptions
from evicortex.policy.query import QueryPolicy
from evicortex.text.times.mentions import DateOptions
from evicortex.types import Granularity, Span
from evicortex.validity import to_micros

SAID = "2026-03-09T10:00:00Z"
TEXT = "I moved to Lisbon last Saturday. Last year I lived in Rome."
SATURDAY = TimeMention(
    Span(18, 31),
    "last Saturday",
    datetime(2026, 3, 7, tzinfo=UTC),
    datetime(2026, 3, 8, tzinfo=UTC),
    Granularity.DAY,
    relative=True,
)
LAST_YEAR = TimeMention(
    Span(33, 42),
    "Last year",
    datetime(2025, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    Granularity.YEAR,
    relative=True,
)
MARK = " [last Saturday = 2026-03-07; Last year = 2025]"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def cortex(path: Path) -> Iterator[EviCortex]:
    with EviCortex.open(path, embedder=None) as cortex:
        yield cortex


def test_last_saturday_and_last_year(cortex: EviCortex) -> None:
    receipt = cortex.remember("ann", TEXT, actor="Ann", occurred_at=SAID)
    assert cortex.times("ann", receipt.evidence_id) == (SATURDAY, LAST_YEAR)
    other = cortex.remember("ann", "There is no time in this.")
    assert cortex.times("ann", other.evidence_id) == ()


def test_an_unknown_evidence_has_no_times(cortex: EviCortex) -> None:
    receipt = cortex.remember("ann", TEXT, occurred_at=SAID)
    for namespace, wanted in (("ann", "ev_0"), ("bob", receipt.evidence_id)):
        with pytest.raises(NotFoundError):
            cortex.times(namespace, wanted)
    with pytest.raises(InputError):
        cortex.times("ann", None)  # type: ignore[arg-type]


def test_a_pack_shows_times_when_asked(cortex: EviCortex) -> None:
    cortex.remember("ann", TEXT, actor="Ann", occurred_at=SAID)
    plain = cortex.recall("ann", "Where did Ann move?", budget_tokens=200)
    shown = cortex.recall("ann", "Where did Ann move?", budget_tokens=200, show_times=True)
    assert plain.items[0].times == ()
    assert shown.items[0].times == (SATURDAY, LAST_YEAR)
    assert shown.items[0].text == plain.items[0].text == TEXT
    assert shown.text == plain.text.replace(TEXT, TEXT + MARK)
    assert shown.token_count == cortex.token_counter.count(shown.text) > plain.token_count
    tight = cortex.recall(
        "ann", "Where did Ann move?", budget_tokens=plain.token_count, show_times=True
    )
    assert tight.items == ()
    with pytest.raises(InputError, match="show_times"):
        cortex.recall("ann", "x", budget_tokens=9, show_times="no")  # type: ignore[arg-type]


def test_a_reader_that_cannot_write_shows_the_same(path: Path, cortex: EviCortex) -> None:
    drafts = [EvidenceDraft(content=f"{TEXT} {n}", occurred_at=SAID) for n in range(80)]
    receipts = cortex.remember_many("ann", drafts)
    with EviCortex.open(path, embedder=None, read_only=True) as reader:
        before = reader.recall("ann", "Lisbon 7", budget_tokens=300, show_times=True)
        assert reader.times("ann", receipts[7].evidence_id) == (SATURDAY, LAST_YEAR)  # type: ignore[union-attr]
        cortex.sync_semantic("ann")
        after = reader.recall("ann", "Lisbon 7", budget_tokens=300, show_times=True)
    assert MARK in before.text
    assert before.text == after.text
    assert [item.times for item in before.items] == [item.times for item in after.items]


def test_verify_notices_when_the_times_lag_behind(cortex: EviCortex) -> None:
    cortex.remember("ann", TEXT, occurred_at=SAID)
    assert cortex.verify().notices == ()
    cortex.remember_many("ann", [EvidenceDraft(content=TEXT, occurred_at=SAID)] * 80)
    report = cortex.verify()
    assert report.ok
    (notice,) = report.notices
    assert notice.code == "projection.stale"
    assert notice.details["projection"].startswith("times/")
    assert notice.details["behind"] == 80
    cortex.sync_semantic("ann")
    assert cortex.verify().notices == ()


def test_a_rebuild_makes_them_again(cortex: EviCortex) -> None:
    receipts = cortex.remember_many(
        "ann", [EvidenceDraft(content=f"{TEXT} {n}", occurred_at=SAID) for n in range(80)]
    )
    cortex.remember("bob", TEXT, occurred_at=SAID)
    report = cortex.rebuild("ann")
    assert report.projections == {"lexical": 80, "times": 160}
    assert cortex.times("ann", receipts[-1].evidence_id) == (SATURDAY, LAST_YEAR)  # type: ignore[union-attr]
    assert cortex.rebuild("ann") == report
    assert cortex.rebuild("nobody").projections == {}
    assert cortex.verify().notices == ()


def test_an_export_carries_evidence_that_names_the_same_times(
    tmp_path: Path, cortex: EviCortex
) -> None:
    receipt = cortex.remember("ann", TEXT, occurred_at=SAID)
    cortex.export("ann", tmp_path / "ann.jsonl")
    with EviCortex.open(tmp_path / "copy.db", embedder=None) as copy:
        copy.load("ann", tmp_path / "ann.jsonl")
        assert copy.times("ann", receipt.evidence_id) == (SATURDAY, LAST_YEAR)


def test_dates_are_read_as_the_settings_say(path: Path) -> None:
    receipt = None
    for day_first, month in ((False, 5), (True, 8), (False, 5)):
        policy = QueryPolicy(dates=DateOptions(day_first=day_first))
        settings = Settings(RoomOptions(query=policy))
        with EviCortex.open(path, embedder=None, settings=settings) as cortex:
            if receipt is None:
                receipt = cortex.remember("ann", "We met on 5/8/2023.")
            (mention,) = cortex.times("ann", receipt.evidence_id)
            assert mention.start.month == month
            cortex.sync_semantic("ann")
            (again,) = cortex.times("ann", receipt.evidence_id)
            assert again == mention


def _moments(number: int) -> tuple[str, list[bytes]]:
    """Return a text with a date of its own, and how SQLite writes that day's two ends."""
    day = datetime(1741, 3, 4, tzinfo=UTC) + timedelta(37 * number)
    ends = [to_micros(day), to_micros(day + timedelta(1))]
    return f"It was {day:%d %B %Y}.", [end.to_bytes(8, "big", signed=True) for end in ends]


def test_purged_times_are_in_no_file(path: Path) -> None:
    def found(wanted: list[bytes]) -> list[bool]:
        files = [file.read_bytes() for file in path.parent.iterdir()]
        return [any(each in data for data in files) for each in wanted]

    texts, ends = zip(*map(_moments, range(150)), strict=True)
    gone = [end for pair in ends[:75] for end in pair]
    kept = [end for pair in ends[75:] for end in pair]
    with EviCortex.open(path, embedder=None) as cortex:
        for place, text in enumerate(texts):
            cortex.remember("ann", text, session="gone" if place < 75 else "kept")
        assert all(found(gone + kept))
        assert cortex.purge("ann", session="gone").complete
        assert not any(found(gone))
        assert all(found(kept))
        cortex.remember("ann", "yesterday")
        assert cortex.verify().ok
    assert not any(found(gone))
    assert all(found(kept))


def test_the_command_line_shows_times(path: Path, cortex: EviCortex) -> None:
    receipt = cortex.remember("ann", TEXT + " In May too.", actor="Ann", occurred_at=SAID)
    cortex.remember("ann", "No time.", external_id="none")

    def run(*words: str) -> str:
        result = CliRunner().invoke(cli, [words[0], str(path), "-n", "ann", *words[1:]])
        assert result.exit_code == 0, result.output
        return result.stdout

    pack = ("recall", "--budget", "200", "--no-vectors", "Lisbon")
    assert "[last Saturday = 2026-03-07; Last year = 2025; May = 2025-05]" in run(*pack, "--times")
    assert "2026-03-07" not in run(*pack)
    items = json.loads(run(*pack, "--times", "--json"))["items"]
    (item,) = [each for each in items if each["times"]]
    assert item["times"][0] == {
        "span": [18, 31],
        "text": "last Saturday",
        "start": "2026-03-07T00:00:00Z",
        "end": "2026-03-08T00:00:00Z",
        "granularity": "day",
        "relative": True,
        "open_year": False,
    }
    assert json.loads(run("times", receipt.evidence_id, "--json"))[:1] == item["times"][:1]
    table = run("times", receipt.evidence_id)
    assert "last Saturday" in table
    assert "2026-03-07 → 2026-03-08" in table
    assert table.count("the year is a guess") == 1
    none = cortex.search("ann", "No time.").hits[0].evidence.evidence_id
    assert run("times", none) == "No times.\n"
