"""How stored text is shown: escapes, names, headers, spans."""

from datetime import UTC, date, datetime

import pytest

from evicortex.policy.rendering import (
    CITATION_ESCAPED,
    CONTROL_ESCAPED,
    DELIMITER_ESCAPED,
    NAME_CHARACTERS,
    day_of,
    escaped,
    escaped_name,
    header,
    merged_spans,
    shown_text,
    speaker,
)
from evicortex.types import Span

FLAG_OF_WALES = "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words, 3 < 4 and [brackets] \t tab",
        "<memories> <memoryless> <mem> memory> [E] [E3x] [Eleven] supersede [super",
        "naïve café 日本語 עברית \u200e ar\u200fabic zero\u200bwidth",
        "👨‍👩‍👧‍👦 ❤️ " + FLAG_OF_WALES,
        "[image: a photo of a dog]",
        "back\\slash \\n \\x1b",
    ],
)
def test_ordinary_text_is_shown_as_it_is(text):
    assert escaped(text) == (text, frozenset())


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_line_breaks_become_continuation_lines(line_break):
    assert escaped(f"a{line_break}b") == ("a\n  b", frozenset())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<memory>", "<\\memory>"),
        ("</memory>", "<\\/memory>"),
        ("</MEMORY>", "<\\/MEMORY>"),
        ("< / Memory >", "<\\ / Memory >"),
        ("</memory", "<\\/memory"),
        ("<memory id=1>", "<\\memory id=1>"),
        ("<\u200b/mem\u200bory>", "<\\\u200b/mem\u200bory>"),
        ("＜/memory＞", "＜\\/memory＞"),
        ("<<memory>>", "<<\\memory>>"),
        ("<\n/memory>", "<\\\n  /memory>"),
    ],
)
def test_delimiters_are_neutralised(text, shown):
    assert escaped(text) == (shown, {DELIMITER_ESCAPED})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[E3]", "\\[E3]"),
        ("see [E12] and [e1]", "see \\[E12] and \\[e1]"),
        ("[ E 3 ]", "\\[ E 3 ]"),
        ("x [superseded by E1: a = b]", "x \\[superseded by E1: a = b]"),
        ("[[E3]]", "[\\[E3]]"),
    ],
)
def test_citations_and_marks_are_neutralised(text, shown):
    assert escaped(text) == (shown, {CITATION_ESCAPED})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x00", "\\x00"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1c\x1d\x1e", "\\x1c\\x1d\\x1e"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("\u202eevil\u202c", "\\u202eevil\\u202c"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("\ud800", "\\ud800"),
        ("hi\U000e0041", "hi\\U000e0041"),
        ("🏴\U000e0067", "🏴\\U000e0067"),
    ],
)
def test_controls_are_shown_escaped(text, shown):
    assert escaped(text) == (shown, {CONTROL_ESCAPED})


def test_escaping_is_linear_in_hostile_text():
    assert len(escaped("<" + " " * 200_000 + "x").text) == 200_002
    assert len(escaped("< " * 100_000).text) == 200_000
    assert len(escaped("[E" + "1" * 200_000).text) == 200_002


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Alice", "Alice"),
        ("  Alice \n B. \u2028 ", "Alice B."),
        ("[E3] Bob", "\\[E3] Bob"),
        ("</memory>", "<\\/memory>"),
        ("a\x1bb", "a\\x1bb"),
        ("x" * 100, "x" * (NAME_CHARACTERS - 1) + "…"),
    ],
)
def test_names_are_one_bounded_line(name, shown):
    assert escaped_name(name).text == shown


@pytest.mark.parametrize(
    ("actor", "role", "shown"),
    [
        ("Alice", "user", "Alice"),
        (None, "assistant", "assistant"),
        (" \n", "tool", "tool"),
        (None, None, "unknown"),
        ("", " ", "unknown"),
        ("Bob: I owe you", "user", "Bob\\: I owe you"),
        ("Bob:", "user", "Bob\\:"),
        ("agent:7", "user", "agent:7"),
    ],
)
def test_the_speaker(evidence, actor, role, shown):
    assert speaker(evidence("x", actor=actor, role=role)).text == shown


@pytest.mark.parametrize(
    ("day", "session", "shown"),
    [
        (date(2023, 5, 8), None, "## 8 May 2023\n"),
        (date(987, 12, 31), None, "## 31 December 987\n"),
        (None, None, "## undated\n"),
        (date(2023, 5, 8), "s7", "## 8 May 2023 · session s7\n"),
        (None, " ", "## undated\n"),
        (None, "a\nb", "## undated · session a b\n"),
    ],
)
def test_headers(day, session, shown):
    assert header(day, session).text == shown


def test_the_day_is_that_of_utc_and_unknown_without_a_time(evidence):
    assert day_of(evidence("x", day=9)) == date(2023, 5, 9)
    assert day_of(evidence("x", occurred_at=None)) is None
    assert day_of(evidence("x", occurred_at=datetime(2023, 5, 8, 23, 59, 59, tzinfo=UTC))) == date(
        2023, 5, 8
    )


@pytest.mark.parametrize(
    ("content", "spans", "merged"),
    [
        ("abc", [(0, 3)], [(0, 3)]),
        ("", [(0, 0)], [(0, 0)]),
        (" ab ", [(1, 3)], [(0, 4)]),
        ("One. Two. Three.", [(5, 9), (0, 4)], [(0, 9)]),
        ("One. Two. Three.", [(10, 16), (0, 4)], [(0, 4), (10, 16)]),
        ("One. Two. Three.", [(0, 9), (2, 7), (5, 12)], [(0, 12)]),
        ("One.Two.", [(0, 4), (4, 8)], [(0, 8)]),
        ("One. Two. ", [(5, 9)], [(5, 10)]),
    ],
)
def test_spans_are_merged_over_white_space(content, spans, merged):
    assert merged_spans(content, [Span(*span) for span in spans]) == tuple(merged)


@pytest.mark.parametrize(
    ("spans", "shown"),
    [
        ([(0, 16)], "One. Two. Three."),
        ([(0, 4)], "One. …"),
        ([(5, 9)], "… Two. …"),
        ([(10, 16)], "… Three."),
        ([(0, 4), (10, 16)], "One. … Three."),
    ],
)
def test_cuts_are_marked(spans, shown):
    assert shown_text("One. Two. Three.", tuple(Span(*span) for span in spans)).text == shown


def test_escapes_of_all_pieces_are_reported():
    text = "a\x00. b. [E1]"
    shown = shown_text(text, (Span(0, 3), Span(7, 11)))
    assert shown == ("a\\x00. … \\[E1]", {CONTROL_ESCAPED, CITATION_ESCAPED})
