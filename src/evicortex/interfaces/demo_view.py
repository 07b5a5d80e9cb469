"""What people see of a demonstration."""

from __future__ import annotations

from textwrap import indent

from rich.console import Group, RenderableType
from rich.text import Text

from evicortex.interfaces.demo import Asked, DemoReport, Forgotten
from evicortex.interfaces.escaping import printable
from evicortex.interfaces.receipts import purge_table, verify_table
from evicortex.interfaces.tables import (
    claims_table,
    moment,
    pack_summary,
    verbatim,
)


def demo_view(report: DemoReport) -> RenderableType:
    """Return the whole demonstration, top to bottom."""
    told = report.told
    parts: list[RenderableType] = [
        _heading(f"EviCortex on the conversation of {report.namespace!r}"),
        Text(
            f"{told.messages} messages in {told.sessions} sessions, {moment(told.first)[:10]} to "
            f"{moment(told.last)[:10]}, with {told.claims} claims. No model, no key, no network."
        ),
    ]
    for number, asked in enumerate(report.asked, start=1):
        parts += [_heading(f"{number}. {asked.question.text}"), _asked(asked)]
    parts += [
        _heading("A fact and its history"),
        Text(report.remembered.remark),
        claims_table(report.remembered.claims),
        _heading("Forgetting for good"),
        _forgotten(report.forgotten),
        _heading("Verify"),
        verify_table(report.verified),
        Text(""),
        _verdict(report),
    ]
    return Group(*parts)


def _heading(text: str) -> Text:
    return Text(f"\n{printable(text)}", style="bold")


def _asked(asked: Asked) -> RenderableType:
    question, pack = asked.question, asked.pack
    times = [
        f"{name} {given[:10]}"
        for name, given in (("as of", question.as_of), ("as known on", question.known_at))
        if given
    ]
    return Group(
        Text(f"({', '.join([question.remark, *times])})", style="italic"),
        verbatim(indent(pack.text, "    ")),
        Text(f"→ {pack_summary(pack)}", style="dim"),
        _answer(asked),
    )


def _answer(asked: Asked) -> Text:
    answers = [
        f"[{item.citation.strip('[]')}]"
        for item in asked.pack.items
        if item.external_id in asked.question.answered_by
    ]
    if not asked.question.answered_by:
        return Text(_nothing_expected(asked))
    if not asked.as_expected:
        return Text("→ not all of the answer is among what is cited", style="red")
    return Text(f"→ the answer is in {' '.join(answers)}", style="green")


def _nothing_expected(asked: Asked) -> str:
    words = ", ".join(map(repr, asked.question.absent))
    if asked.question.refused:
        said = "and the pack says so" if asked.as_expected else "but the pack does not say so"
        return f"→ no message answers it, {said}"
    if not words:
        return "→ no message answers it"
    return f"→ nothing cited mentions {words}" if asked.as_expected else f"→ {words} is cited"


def _forgotten(forgotten: Forgotten) -> RenderableType:
    lines = [
        f"'{word}': found in {_files(forgotten.before[word])} before, "
        f"in {_files(forgotten.after[word])} after"
        for word in forgotten.before
    ]
    return Group(Text(forgotten.remark), purge_table(forgotten.receipt), Text("\n".join(lines)))


def _files(count: int) -> str:
    return "no file" if count == 0 else "the ledger's files"


def _verdict(report: DemoReport) -> Text:
    answered = sum(item.as_expected for item in report.asked)
    done = f"{answered} of {len(report.asked)} questions as expected"
    return Text(done, style="bold green" if report.ok else "bold red")
