"""Words, blocks, sentences, passages and duplicate keys as exact ranges."""

import pytest

from evicortex.text import (
    blocks,
    estimate_tokens,
    normalized,
    passages,
    sentences,
    words,
)


def cut(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("Hi", ["Hi"]),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        (
            "Dr. Smith met J. K. Jones at 5 p.m. on Jan. 5. He left.",
            ["Dr. Smith met J. K. Jones at 5 p.m. on Jan. 5.", "He left."],
        ),
        ("We met at 5 p.m. Then we ate.", ["We met at 5 p.m.", "Then we ate."]),
        ("I said no. Then I left.", ["I said no.", "Then I left."]),
        ("See fig. 3 and approx. five.", ["See fig. 3 and approx. five."]),
        ("Wait... what? Yes… Really.", ["Wait... what?", "Yes…", "Really."]),
        ("Version 1.2.3 of example.com works.", ["Version 1.2.3 of example.com works."]),
        ('"Really?" she asked. "Yes!"', ['"Really?" she asked.', '"Yes!"']),
        ("hey\nhow are you. fine. ok", ["hey", "how are you.", "fine.", "ok"]),
        ("Great! 😀😀 We went 🎉 Then home.", ["Great! 😀😀", "We went 🎉", "Then home."]),
        ("I ❤️ NY. Ok", ["I ❤️ NY.", "Ok"]),
        (
            "今天很好。我去了北京！「真的？」他问。",
            ["今天很好。", "我去了北京！", "「真的？」", "他问。"],
        ),
        ("यह ठीक है। वह गया।", ["यह ठीक है।", "वह गया।"]),
        ("هل أنت بخير؟ نعم.", ["هل أنت بخير؟", "نعم."]),
        ("1. First. More.\n2. Second", ["1. First.", "More.", "2. Second"]),
        (". x", [". x"]),
        ("windows\r\nlines\r\n", ["windows", "lines"]),
        (
            "This is a paragraph that somebody wrapped at a column of seventy\nand went on. Next.",
            [
                "This is a paragraph that somebody wrapped at a column of seventy\nand went on.",
                "Next.",
            ],
        ),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_code_and_tables_stay_whole() -> None:
    text = "Look:\n```py\nx = 1. \n\nY\n```\nand\n| a | b |\n|---|---|\n| 1. Yes | 2 |\nDone. Bye."
    assert cut(text) == [
        "Look:",
        "```py\nx = 1. \n\nY\n```",
        "and",
        "| a | b |\n|---|---|\n| 1. Yes | 2 |",
        "Done.",
        "Bye.",
    ]


def test_blocks() -> None:
    text = (
        "Para one\nstill one\n\n- a\n  more\n\n- b\n\n\n\nPara\n~~~\ncode\n~~~~\n"
        "x | y\n--- | ---\n1 | 2\n\n- only one\n\nthen\n1. i\n2) ii\n```\nunclosed\n"
    )
    kinds = [(block.kind, text[block.start : block.end]) for block in blocks(text)]
    assert kinds == [
        ("prose", "Para one\nstill one"),
        ("list", "- a\n  more\n\n- b"),
        ("prose", "Para"),
        ("code", "~~~\ncode\n~~~~"),
        ("table", "x | y\n--- | ---\n1 | 2"),
        ("prose", "- only one"),
        ("prose", "then"),
        ("list", "1. i\n2) ii"),
        ("code", "```\nunclosed"),
    ]


def test_words_are_exact() -> None:
    text = "Don’t ask O'Brien—or mother-in-law's dog, snake_case 3.5 東京tower हिन्दी 서울에 กรุงเทพ"
    found = words(text)
    assert [word.text for word in found] == [
        *("Don’t", "ask", "O'Brien", "or", "mother-in-law's", "dog", "snake_case", "3", "5"),
        *("東京", "tower", "हिन्दी", "서울에", "กรุงเทพ"),
    ]
    assert all(text[word.start : word.end] == word.text for word in found)


def test_passages_pack_sentences() -> None:
    text = " ".join(f"Sentence number {n} says something rather plain." for n in range(40))
    found = [text[a:b] for a, b in passages(text, 40)]
    assert "".join(found) == text
    assert len(found) > 8
    assert all(estimate_tokens(piece) <= 40 and piece.rstrip().endswith(".") for piece in found)


def test_a_long_sentence_is_cut_at_clauses_then_words() -> None:
    clauses = "we went there, and then we came back again, " * 20
    found = [clauses[a:b] for a, b in passages(clauses, 20)]
    assert "".join(found) == clauses
    assert all(piece.rstrip().endswith(",") for piece in found)
    plain = "word " * 200
    assert all(plain[b - 1] == " " for _, b in passages(plain, 10))


def test_a_long_code_block_is_cut_at_lines() -> None:
    code = "```\n" + "value = compute(a, b)\n" * 60 + "```"
    found = [code[a:b] for a, b in passages(code, 40)]
    assert "".join(found) == code
    assert all(piece.endswith("\n") for piece in found[:-1])


def test_an_endless_word_is_cut_but_never_inside_a_character() -> None:
    text = "น้ำ" * 400
    assert all(text[start] != "้" for start, _ in passages(text, 10))
    marks = "a" + "\u0301" * 3000
    assert "".join(marks[a:b] for a, b in passages(marks, 10)) == marks


def test_passages_of_short_and_blank_texts() -> None:
    assert passages("") == []
    assert passages(" \n " * 500) == []
    assert passages("short") == [(0, 5)]
    padded = " " * 2000 + "x" + " " * 2000
    assert passages(padded, 10) == [(0, len(padded))]


def test_estimate() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
    assert estimate_tokens("東京") == 2
    assert estimate_tokens("\ud800") == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("meet at 5", "Meet  at\n5."),
        ("“Meet at noon”", '"meet at noon"'),
        ("don’t", "don't"),
        ("ＡＢＣ", "abc"),
        ("cafe\u0301", "café"),
        ("(see you!)", "see you"),
    ],
)
def test_duplicates(one: str, other: str) -> None:
    assert normalized(one) == normalized(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("meet at 5", "meet at 6"),
        ("10²", "102"),
        ("1½", "11⁄2"),
        (".5 mg", "5 mg"),
        ("6'", "6"),
        ("6'", '6"'),
        ("5%", "5"),
        ("-5", "5"),
        ("C++", "C"),
        ("C#", "C"),
        ("She moved?", "She moved."),
        ("!!!", "???"),
        ("café", "cafe"),
        ("", "…"),
    ],
)
def test_different_statements_keep_different_keys(one: str, other: str) -> None:
    assert normalized(one) != normalized(other)
