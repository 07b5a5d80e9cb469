from evicortex.policy.echo import is_mostly_recalled, is_recalled, recalled_spans
from evicortex.types import Span

PACK = "<memory>\n## 8 May 2023\n[E1] Ann: I moved.\n  to Lisbon\n[E2] Bob: ok\n</memory>"


def test_plain_text_is_no_echo() -> None:
    for text in ("", "hello", "see [E1] in the list", "<memory> is a tag", "a\n[E] x"):
        assert recalled_spans(text) == ()
        assert not is_recalled(text, None)
        assert not is_mostly_recalled(text)


def test_a_fenced_pack_is_found_between_other_words() -> None:
    text = f"Context:\n{PACK}\nThanks, I live in Porto."
    (span,) = recalled_spans(text)
    assert text[span.start : span.end].strip() == PACK
    start = text.index("I live")
    assert not is_recalled(text, Span(start, start + 6))
    assert is_recalled(text, Span(text.index("Lisbon"), text.index("Lisbon") + 6))
    assert is_recalled(text, None)
    assert is_mostly_recalled(text)


def test_cited_lines_without_a_fence_are_found_with_their_continuations() -> None:
    text = "[E1] Ann: one\n  two\n[E2] Ann: more\nmine\n[E12] Bob: three\n[E13] Bob: four\n"
    assert [text[s:e] for s, e in recalled_spans(text)] == [
        "[E1] Ann: one\n  two\n[E2] Ann: more\n",
        "[E12] Bob: three\n[E13] Bob: four\n",
    ]


def test_one_cited_line_alone_is_nobody_s_pack() -> None:
    for text in ("[E12] Motor: overheated", "log:\n[E1] fails on boot\nend\n[E2] again"):
        assert recalled_spans(text) == ()


def test_an_unclosed_fence_reaches_to_the_end() -> None:
    text = "so\n<memory>\nanything\nat all"
    assert recalled_spans(text) == (Span(3, len(text)),)


def test_a_cited_line_before_a_fence_joins_it() -> None:
    text = "[E1] A: b\n<memory>\nx\n</memory>\nend"
    assert [text[s:e] for s, e in recalled_spans(text)] == ["[E1] A: b\n<memory>\nx\n</memory>\n"]


def test_a_little_echo_in_a_long_text_is_not_most_of_it() -> None:
    assert not is_mostly_recalled("word " * 100 + "\n[E1] A: b\n[E2] A: c\n" + "word " * 100)
