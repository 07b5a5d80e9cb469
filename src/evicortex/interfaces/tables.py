"""What people see of a result: rich renderables, with all stored text escaped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evicortex.interfaces.escaping import one_line, printable
from evicortex.interfaces.plain import iso
from evicortex.types import (
    Capabilities,
    Claim,
    ContextPack,
    Derivation,
    Evidence,
    ExtractionRecord,
    PackItem,
    Polarity,
    Span,
    Stats,
    TimeMention,
    Validity,
)

NOTHING = "–"
Shown = str | int | float | bool | datetime | None
_STATUS_STYLES = {
    "held": "green",
    "superseded": "yellow",
    "conflicting": "red",
    "retracted": "dim",
}


def cell(value: Shown, *, style: str = "") -> Text:
    """Return one value of a table on one line; a dash for nothing."""
    if value is None or value == "":
        return Text(NOTHING, style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no", style=style)
    shown = moment(value) if isinstance(value, datetime) else str(value)
    return Text(one_line(shown), style=style)


def moment(value: datetime) -> str:
    """Return a UTC time as short as it can be without losing anything."""
    text = iso(value).removesuffix("Z")
    day, _, clock = text.partition("T")
    return day if clock == "00:00:00" else f"{day} {clock.removesuffix(':00')}Z"


def interval(validity: Validity) -> str:
    """Return a half-open interval; an unbounded end is left empty."""
    if validity.valid_from is None and validity.valid_to is None:
        return "always"
    start = moment(validity.valid_from) if validity.valid_from else ""
    end = moment(validity.valid_to) if validity.valid_to else ""
    return f"{start} → {end}".strip()


def verbatim(text: str) -> Text:
    """Return stored text with its own line breaks and no others."""
    return Text(printable(text), no_wrap=True, overflow="ignore")


def pairs(rows: Iterable[tuple[str, Shown | Text]]) -> Table:
    """Return a two-column table: what it is, and its value."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else cell(value))
    return table


def grid(
    columns: Sequence[str],
    rows: Iterable[Sequence[Text]],
    *,
    title: str = "",
    whole: Collection[str] = (),
) -> Table:
    """Return a table whose cells fold instead of losing text; columns in ``whole`` do not fold."""
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in whole)
    for row in rows:
        table.add_row(*row)
    return table


def claims_table(claims: Sequence[Claim]) -> RenderableType:
    """One claim a row, in the order given."""
    if not claims:
        return Text("No claims.")
    columns = ("about", "object", "held", "status", "claim", "evidence", "note")
    return grid(columns, (_claim_row(claim) for claim in claims), whole=("claim", "evidence"))


def _claim_row(claim: Claim) -> list[Text]:
    denied = "not " if claim.polarity is Polarity.NEGATIVE else ""
    return [
        cell(f"{claim.subject} {claim.predicate}"),
        cell(denied + claim.object),
        cell(interval(Validity(claim.valid_from, claim.valid_to))),
        cell(claim.status.value, style=_STATUS_STYLES.get(claim.status.value, "")),
        cell(claim.claim_id),
        Text("\n".join(derivation(item) for item in claim.derivations)),
        cell(_claim_note(claim)),
    ]


def derivation(item: Derivation) -> str:
    """Return an evidence id with the characters that support a claim."""
    return f"{item.evidence_id} {_span(item.span)}".rstrip()


def _span(span: Span | None) -> str:
    return "" if span is None else f"[{span.start}:{span.end}]"


def _claim_note(claim: Claim) -> str:
    notes = [
        ("by", claim.superseded_by),
        ("against", claim.conflicts_with),
        ("like", claim.corroborated_by),
    ]
    return "; ".join(f"{what} {', '.join(ids)}" for what, ids in notes if ids)


def evidence_card(evidence: Evidence) -> RenderableType:
    """One evidence with all that is known of it, and its text below."""
    known: list[tuple[str, Shown | Text]] = [
        ("evidence", evidence.evidence_id),
        ("namespace", evidence.namespace),
        ("external id", evidence.external_id),
        ("actor", evidence.actor),
        ("role", evidence.role),
        ("authority", evidence.authority.value),
        ("session", evidence.session),
        ("source", evidence.source),
        ("occurred at", evidence.occurred_at),
        ("recorded at", evidence.recorded_at),
        ("SHA-256", evidence.digest),
    ]
    known += [(f"metadata {one_line(key)}", str(value)) for key, value in evidence.metadata.items()]
    return Group(pairs(known), Text(""), verbatim(evidence.content))


def times_table(times: Sequence[TimeMention]) -> RenderableType:
    """One time a row, in the order of the text; an interval ends before its second moment."""
    if not times:
        return Text("No times.")
    columns = ("text", "characters", "means", "granularity", "note")
    rows = (
        [
            cell(time.text),
            cell(_span(time.span)),
            cell(interval(Validity(time.start, time.end))),
            cell(time.granularity.value),
            cell("the year is a guess" if time.open_year else ""),
        ]
        for time in times
    )
    return grid(columns, rows)


def extraction_card(record: ExtractionRecord) -> RenderableType:
    """Who extracted what, from which characters."""
    head = pairs(
        [
            ("evidence", record.evidence_id),
            ("digest", record.evidence_digest),
            ("extractor", record.extractor_id),
            ("revision", record.extractor_revision),
            ("recorded at", record.recorded_at),
            ("superseded at", record.superseded_at),
            ("abstained", record.abstained),
        ]
    )
    rows = (
        [
            cell(item.claim_id),
            cell(_span(item.span) or "whole evidence"),
            cell(item.confidence),
            cell(item.authority.value),
        ]
        for item in record.derivations
    )
    return Group(head, grid(("claim", "characters", "confidence", "authority"), rows))


def pack_explained(pack: ContextPack) -> RenderableType:
    """Why the pack holds what it holds: items, what was left out, the channels' opinions."""
    items = grid(
        ("cited", "evidence", "external id", "when", "who", "characters", "channels"),
        (_item_row(item) for item in pack.items),
        title="In the pack",
    )
    omitted = grid(
        ("evidence", "external id", "reason", "tokens"),
        (
            [cell(item.evidence_id), cell(item.external_id), cell(item.reason), cell(item.tokens)]
            for item in pack.omitted
        ),
        title="Left out",
    )
    return Group(items, omitted) if pack.omitted else items


def _item_row(item: PackItem) -> list[Text]:
    shown = "all" if item.complete else " ".join(_span(span) for span in item.spans)
    ranks = " ".join(f"{name}:{score.rank}" for name, score in item.channels.items())
    return [
        cell(item.citation),
        cell(item.evidence_id),
        cell(item.external_id),
        cell(item.occurred_at),
        cell(item.actor or item.role),
        cell(shown + (" (superseded)" if item.superseded else "")),
        cell(ranks),
    ]


def pack_summary(pack: ContextPack) -> str:
    """One line about a pack, for people."""
    support = pack.support
    probability = "" if support.probability is None else f" (p={support.probability:.2f})"
    reasons = f": {', '.join(support.reasons)}" if support.reasons else ""
    return (
        f"{len(pack.items)} cited, {pack.token_count} of {pack.budget_tokens} tokens, "
        f"{len(pack.omitted)} left out; support {support.verdict}{probability}{reasons}"
    )


def stats_table(stats: Sequence[Stats]) -> RenderableType:
    """Counts, one namespace a row."""
    columns = ("namespace", "evidence", "claims", "sessions", "actors", "bytes of text")
    rows = (
        [
            cell(item.namespace),
            cell(item.evidence),
            cell(item.claims),
            cell(item.sessions),
            cell(item.actors),
            cell(item.bytes),
        ]
        for item in stats
    )
    return grid(columns, rows)


def stats_card(stats: Stats) -> RenderableType:
    """Counts of one namespace."""
    return pairs(
        [
            ("namespace", stats.namespace),
            ("evidence", stats.evidence),
            ("claims", stats.claims),
            ("sessions", stats.sessions),
            ("actors", stats.actors),
            ("bytes of text", stats.bytes),
        ]
    )


def capabilities_table(capabilities: Capabilities) -> RenderableType:
    """What is really on, with identities."""
    rows: list[tuple[str, Shown | Text]] = [
        (f"channel {one_line(name)}", "on" if on else "off")
        for name, on in capabilities.channels.items()
    ]
    providers = ("embedder", "extractor", "ranker", "reranker", "token_counter")
    for name in providers:
        identity = getattr(capabilities, name)
        rows.append((name.replace("_", " "), _identity(identity) if identity else None))
    rows += [
        ("SQLite", capabilities.sqlite_version),
        ("schema", capabilities.schema_version),
        *(("note", text) for text in capabilities.notes),
    ]
    return pairs(rows)


def _identity(identity: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in identity.items())
