"""Index terms: every script findable, compounds whole and in parts, English stemmed."""

import re
import unicodedata

import pytest

from evicortex.text import ANALYSIS, STOP_WORDS, content_terms, fold, terms
from evicortex.text.scripts import CJK, HANGUL, MARKS, SOUTH_EAST_ASIAN


def finds(query: str, text: str) -> bool:
    """Say whether every term of the query is a term of the text."""
    wanted = set(content_terms(query))
    return bool(wanted) and wanted <= set(content_terms(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cafe", "Wir gingen ins Café."),
        ("CAFÉ", "un cafe noir"),
        ("Strasse", "in der Straße"),
        ("Łódź", "she left lodz"),
        ("smorrebrod", "smørrebrød for lunch"),
        ("São Paulo", "sao paulo in may"),
        ("cafe\u0301", "caf\u00e9"),
        ("ёлка", "нарядная елка"),
        ("Москва", "МОСКВА не сразу строилась"),
        ("замок", "старый за\u0301мок"),
        ("λόγος", "ΛΟΓΟΣ"),
        ("Οδυσσεας", "ο Οδυσσέας"),
        ("كتاب", "هذا كِتَابٌ جديد"),
        ("أحمد", "احمد"),
        ("كـــتاب", "كتاب"),
        ("2023", "في ٢٠٢٣"),
        ("שלום", "שָׁלוֹם"),
        ('צה"ל', "צה״ל"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ।"),
        ("२०", "20"),
        ("กรุงเทพ", "ฉันรักกรุงเทพมาก"),
        ("ນະຄອນ", "ນະຄອນຫຼວງ"),
        ("ភ្នំពេញ", "ខ្ញុំរស់នៅភ្នំពេញ"),
        ("ရန်ကုန်", "သူရန်ကုန်မှာနေတယ်"),
        ("北京", "我去年在北京工作"),
        ("京", "我去年在北京工作"),
        ("東京タワー", "昨日東京タワーに行きました"),
        ("コーヒー", "ｺｰﾋｰが好き"),
        ("서울", "저는 서울에 살고 있어요"),
        ("重跑", "重跑gen-itgc"),
        ("gen-itgc", "重跑gen-itgc"),
        ("itgc", "重跑gen-itgc"),
        ("C++", "she writes c++ well"),
        ("c#", "C# or F#"),
        (".NET", "the .net runtime"),
        ("a-b", "an a-b test"),
        ("@x", "ask @X about it"),
        ("#tag", "see #Tag"),
        ("tag", "see #Tag"),
        ("me@mail.example.com", "(me@Mail.example.com)"),
        ("mail.example.com", "me@mail.example.com"),
        ("https://example.com/a?b=1", "look at https://www.example.com/a?b=1."),
        ("example.com", "<https://example.com/a/b>"),
        ("3.11.2", "on 3.11.2 now"),
        ("snake_case", "the snake_case name"),
        ("snake", "the snake_case name"),
        ("user", "call getUserName()"),
        ("parser", "HTMLParser"),
        ("gpt 4", "GPT-4"),
        ("gpt4", "gpt4 is"),
        ("3 pm", "at 3pm"),
        ("1000000", "1,000,000 people"),
        ("path/to/file.py", "open path/to/file.py"),
        ("file", "open path/to/file.py"),
        ("std::vector", "std::vector"),
        ("AT&T", "at AT&T"),
        ("€50", "€50"),
        ("👩‍💻", "works 👩‍💻 here"),
        ("💻", "works 👩‍💻 here"),
        ("👍", "👍🏽"),
        ("❤", "I ❤️ it"),
        ("🇵🇹", "to 🇵🇹!"),
        ("USA", "in the U.S.A."),
        ("U.S.", "the US army"),
        ("Will", "ask Will about it"),
        ("Alice", "Alice’s dog"),
        ("runs", "running"),
        ("O'Brien", "Mr O’Brien"),
        ("brien", "O'Brien"),
        ("mother-in-law", "my mother-in-law's car"),
        ("rock'n'roll", "Rock’n’Roll"),
        ("ﬁnd", "find"),
        ("ＦＵＬＬ", "full"),
        ("می‌خواهم", "میخواهم"),
    ],
)
def test_findable(query: str, text: str) -> None:
    assert finds(query, text), (content_terms(query), content_terms(text))


@pytest.mark.parametrize(
    ("query", "text", "shared"),
    [
        ("도서관", "도서관에서", {"도서", "서관"}),
        ("getUserName", "getusername", {"getusernam"}),
        ("user-name", "the user", {"user"}),
        ("C++", "C", {"c"}),
    ],
)
def test_found_by_a_part(query: str, text: str, shared: set[str]) -> None:
    assert set(terms(query)) & set(terms(text)) == shared


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("йод", "иод"),
        ("київ", "киив"),
        ("हिन्दी", "हन्द"),
        ("C++", "C"),
        ("us", "let us go"),
        ("will", "I will go"),
        ("北京", "京北"),
        ("3.11.2", "3 11 2"),
    ],
)
def test_different_words_stay_different(query: str, text: str) -> None:
    assert not finds(query, text)


def test_mixed_text_yields_its_parts() -> None:
    assert terms("重跑gen-itgc") == ["重", "重跑", "跑", "gen-itgc", "gen", "itgc"]


def test_contractions_and_possessives() -> None:
    assert terms("don't can't won't shan't ain't") == [
        *("do", "not"),
        *("can", "not"),
        *("will", "not"),
        *("shall", "not"),
        *("is", "not"),
    ]
    assert terms("we're I've she'll he'd I'm couldn't've") == [
        *("we", "are"),
        *("i", "have"),
        *("she", "will"),
        *("he", "would"),
        *("i", "am"),
        *("could", "not", "have"),
    ]
    assert terms("Alice's dogs' y'all it’s") == ["alic", "dog", "y'all", "y", "all", "it"]


def test_stop_words_are_dropped_by_content_terms_only() -> None:
    sentence = "Where does she live, and who is with her now?"
    assert content_terms(sentence) == ["live"]
    assert terms(sentence)[:3] == ["where", "doe", "she"]
    assert content_terms("to be or not to be") == []
    assert 170 <= len(STOP_WORDS) <= 260
    assert not {"may", "won", "well"} & STOP_WORDS


def test_parts_of_compounds_are_stopped_but_the_whole_is_kept() -> None:
    assert content_terms("and/or") == ["and/or"]
    assert content_terms("up-to-date") == ["up-to-date", "date"]


@pytest.mark.parametrize("separator", ["\x00", "\x1f", "\x7f", "\u200b", "\ud800", "\u2028"])
def test_controls_separate(separator: str) -> None:
    assert terms(f"alpha{separator}beta") == ["alpha", "beta"]


@pytest.mark.parametrize("invisible", ["\u00ad", "\u200c", "\u2060", "\ufeff", "\u200e"])
def test_invisible_characters_vanish(invisible: str) -> None:
    assert terms(f"al{invisible}pha") == ["alpha"]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "* ++ -- \" ' …", "\x00", "()[]{}"])
def test_nothing_to_index(text: str) -> None:
    assert terms(text) == []


def test_hashes_are_not_cut_into_digits() -> None:
    digest = "9f86d081884c7d659a2feaa0c55ad015"
    assert terms(digest) == [digest]


def test_long_words_are_capped_alike_in_texts_and_queries() -> None:
    assert terms("x" * 100_000) == terms("x" * 70)
    assert max(map(len, terms("a-" * 50_000 + "a"))) <= 256


def test_fold_is_what_terms_compare() -> None:
    assert fold("ÉCOLE ΛΌΓΟΣ Ёж كِتاب") == "ecole λογοσ еж كتاب"


def test_long_chunks_do_not_fill_the_memo() -> None:
    text = "b" * 40 + "-" + "c" * 40
    assert terms(text) == terms(text)
    from evicortex.text import analysis

    assert text not in analysis._all_terms.__self__  # type: ignore[attr-defined]


def test_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from evicortex.text import analysis

    memo = analysis._Memo(stop_words=True)
    monkeypatch.setattr(analysis, "_MEMO_ENTRIES", 3)
    for word in ("one", "two", "three", "four", "five"):
        assert memo[word] == tuple(terms(word))
    assert len(memo) <= 3


def test_analysis_names_the_stemmer() -> None:
    assert re.fullmatch(r"\d+-\d+\.\d+.*", ANALYSIS)


def test_the_table_of_marks_misses_none_of_the_basic_plane() -> None:
    known = re.compile(f"[{MARKS}{CJK}{HANGUL}{SOUTH_EAST_ASIAN}]|\\w")
    missed = [
        f"{code:04x}"
        for code in range(0x10000)
        if unicodedata.category(chr(code)).startswith("M") and not known.match(chr(code))
    ]
    assert missed == []
