"""Reading values: names, places, noun phrases, occupations, clock times, as exact spans."""

from __future__ import annotations

import re

from evicortex.providers.rules.lexicon import (
    LANGUAGES,
    NO_NAMES,
    OCCUPATIONS,
    STATES,
    either,
    listed,
)
from evicortex.text import STOP_WORDS
from evicortex.types import Span

CAPITAL = r"[^\W\d_a-zß-öø-ÿ]"
"""An upper-case letter (and letters of scripts without case)."""
NAME_WORD = rf"(?<!\w)(?!I\b){CAPITAL}(?:[\w.&-]|'(?!s\b)(?=\w)){{0,40}}(?<![.-])(?!\w)"
"""A capitalised word. It is bounded, and begins at a word: a run of letters is scanned once."""
_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|St)\.?\s)?"
NAME = (
    rf"{_TITLE}{NAME_WORD}(?:\s(?:(?:of|the|de|da|di|du|van|von|la|le|del|der|and\sthe)\s){{0,2}}"
    rf"{NAME_WORD}){{0,4}}"
)
_NAME = re.compile(NAME)
_AFTER_COMMA = re.compile(rf",\s?(?P<state>{either(map(re.escape, STATES))}|[A-Z]{{2}})\b")
_THE = re.compile(r"(?:the|a|an|my|our|some|this)\s+", re.IGNORECASE)
_WORD = re.compile(r"(?!-)[^\s,.;:!?()\"\x01…—–]+(?:[.](?=\w))?[^\s,.;:!?()\"\x01…—–]*")
_JOINED = re.compile(r"[ ]+")

_STOPPERS = listed(
    "and or but because that which who whom whose when while since for with without in on at to so "
    "if as by from about after before until till though although than then too also either like "
    "right both is are was were am be been being have has had do does did will would can could should might "
    "may must it he she they we i you there here this these those what how where why again now "
    "today tomorrow yesterday tonight lately recently anymore any_more these_days right_now "
    "during around near over under into through between every once twice just really very much "
    "instead please always never sometimes back ever anyway lol haha yet still not any anymore it's i'm i've "
    "i'll i'd she's he's they're we're you're that's there's myself next last ago"
)
_EMPTY = STOP_WORDS | listed(
    "one ones thing things stuff lot lots bit way kind sort idea sound look time times day days "
    "something anything everything nothing someone anyone everyone somebody anybody everybody "
    "nobody place person people guy guys girl hell it's much many more less most least another "
    "other others same first second third last next"
)


def name(plain: str, at: int, end: int) -> Span | None:
    """Return the capitalised name at ``at``; none where a word names nobody or a possessor."""
    found = possessor(plain, at, end)
    return None if found and plain.startswith("'", found.end) else found


def possessor(plain: str, at: int, end: int) -> Span | None:
    """Return the capitalised name at ``at``, whether or not it is a possessor."""
    match = _NAME.match(plain, at, end)
    if match is None:
        return None
    words = match[0].split()
    while words and _names_nobody(words[-1].rstrip(".")):
        words.pop()
        while words and words[-1].islower():
            words.pop()
    if not words or (_names_nobody(words[0]) and words[0] not in _OPENERS):
        return None
    if all(word in _INSTITUTIONS for word in words):
        return None
    if len(words) == 1 and (words[0] == "New" or len(words[0]) < 2):
        return None
    stop = at
    for number, word in enumerate(words):
        stop = plain.index(word, stop if number else at) + len(word)
    return Span(at, stop)


def employer(plain: str, at: int, end: int) -> Span | None:
    """Return the name of a firm at ``at``, also one that ends like a possessor ("Bloomingdale's")."""
    found = possessor(plain, at, end)
    if found is None or not plain.startswith("'", found.end):
        return found
    if _OWNS.match(plain, found.end, end):
        return None
    return Span(at, found.end + 2) if plain.startswith("'s", found.end) else found


_OWNS = re.compile(r"'s?\s+(?!and\b|but\b|or\b|in\b|as\b|on\b|now\b|for\b|since\b)\w")


_INSTITUTIONS = listed(
    "High School College University Middle Elementary Academy Institute State Junior"
)
_OPENERS = frozenset(("Dr.", "Mr.", "Mrs.", "Ms.", "Dr", "Mr", "Mrs", "Ms", "New", "Santa", "The"))


def _names_nobody(word: str) -> bool:
    return word in NO_NAMES or word.capitalize() in NO_NAMES


_VENUE = re.compile(
    rf"{NAME_WORD}(?:'s)?(?:\s(?:(?:of|the|&|and|in|on|at)\s(?:the\s)?)?(?:{NAME_WORD}(?:'s)?|[0-9]+(?=\s[A-Z])|&)){{0,8}}"
)


def venue(plain: str, at: int, end: int) -> Span | None:
    """Return the name of an establishment, whose last word may be a possessor ("Anna's")."""
    match = _VENUE.match(plain, at, end)
    if match is None:
        return None
    found = match[0]
    cut = re.search(r"\s(?:in|on|at|and)\s", found)
    words = found[: cut.start()].split(" ") if cut else found.split(" ")
    while words and _names_nobody(words[-1]):
        words.pop()
    if not words or (_names_nobody(words[0]) and (len(words) == 1 or words[0] not in _OPENERS)):
        return None
    return Span(at, at + len(" ".join(words)))


def place(plain: str, at: int, end: int) -> Span | None:
    """Return the place named at ``at``, with the state or country after a comma."""
    the = re.compile(r"the\s+", re.IGNORECASE).match(plain, at, end)
    found = name(plain, the.end() if the else at, end)
    if found is None:
        return None
    state = _AFTER_COMMA.match(plain, found.end, end)
    return Span(found.start, state.end()) if state else found


def phrase(plain: str, at: int, end: int) -> Span | None:
    """Return the noun phrase or activity at ``at``: up to six words, without its article."""
    start = at
    article = _THE.match(plain, at, end)
    if article and not article[0].lower().startswith(("my", "our")):
        start = article.end()
    stop, count, informative = start, 0, False
    position = start
    while count < 6:
        word = _WORD.match(plain, position, end)
        if word is None:
            break
        lower = word[0].lower()
        first = count == 0
        if lower in _STOPPERS and not (first and lower in ("my", "our")):
            break
        informative = informative or lower not in _EMPTY
        stop, count = word.end(), count + 1
        space = _JOINED.match(plain, stop, end)
        if space is None:
            break
        position = space.end()
    if not informative or stop == start:
        return None
    words = plain[start:stop].split(" ")
    while words and words[-1].lower() in _EMPTY | {""}:
        stop -= len(words.pop()) + 1
    return Span(start, stop)


_GERUND = re.compile(
    r"(?!thing\b|king\b|ring\b|spring\b|wedding\b|building\b|morning\b|evening\b)[a-z]+ing\b"
)
_VAGUE = listed(
    "being having getting going doing making taking seeing feeling keeping finding trying using "
    "spending sharing expressing knowing hearing looking putting letting giving"
)
_CLAUSE_END = re.compile(
    r"[,.;:!?()\"\x01…—–\n]|\s-|\s(?:and|or|but|so|because|'cause|cause|if|when|while|since|that|which|who|"
    r"before|after|until|as|it|these|lately|more|too|every|on\s+(?:the\s+)?weekends?)\b"
)


def liked(plain: str, at: int, end: int) -> Span | None:
    """Return what someone likes: a noun phrase, or an activity with its objects."""
    if not _GERUND.match(plain, at, end):
        return phrase(plain, at, end)
    stop = _CLAUSE_END.search(plain, at, end)
    last = stop.start() if stop else end
    found = plain[at:last].rstrip()
    words = found.split(" ")
    if len(words) > 7 or (len(words) == 1 and words[0] in _VAGUE):
        return None
    if words[-1].lower() in _STOPPERS | _EMPTY:
        return None
    return Span(at, at + len(found))


_EMPTY_VERBS = listed(
    "go get make do take be have say think see know use call keep try put let give look feel"
)


def liked_to(plain: str, at: int, end: int) -> Span | None:
    """Return what someone likes to do: the verb with its objects, to the end of the clause."""
    stop = _CLAUSE_END.search(plain, at, end)
    last = stop.start() if stop else end
    found = plain[at:last].rstrip()
    words = found.split(" ")
    if not words[0].isalpha() or len(words) > 7 or words[-1].lower() in _STOPPERS | _EMPTY:
        return None
    return None if len(words) == 1 and words[0] in _EMPTY_VERBS else Span(at, at + len(found))


def activity(plain: str, at: int, end: int) -> Span | None:
    """Return what one plans: the verb and its words to the end of the clause, at most ten."""
    match = re.compile(r"[^,.;:!?()\"\x01…—–\n]+").match(plain, at, end)
    if match is None:
        return None
    text = re.split(
        r"\s(?:and|but|so|because|if|when|while|since|that|which|who|before|after|until)\b",
        match[0],
        maxsplit=1,
    )[0].rstrip()
    words = text.split(" ")
    if len(words) > 10 or not text or not text[0].isalpha():
        return None
    if words[0].lower() in _EMPTY - {"have", "get", "go", "do", "make", "see", "take"}:
        return None
    if words[-1].lower() in _UNFINISHED:
        return None
    return Span(at, at + len(text)) if len(words) > 1 else None


_UNFINISHED = frozenset("of with to for at from into than do".split())

_OCCUPATION = re.compile(
    rf"(?:(?:an?|the)\s+)(?P<v>(?:[\w-]+\s+){{0,3}}?"
    rf"(?:{either(OCCUPATIONS)}|\w+(?:ologist|ographer|ician|maker|keeper|writer)))\b(?!['’-]\w)",
    re.IGNORECASE,
)
_BARE_OCCUPATION = re.compile(
    rf"(?:(?:an?|the)\s+)?(?P<v>(?:[\w-]+\s+){{0,3}}?{either(OCCUPATIONS)})\b", re.IGNORECASE
)
_NOT_OCCUPATION = re.compile(
    r"\b(?:good|great|bad|terrible|horrible|better|best|not|huge|big|fan|bit|lousy|amazing|awesome"
    r"|role|very|natural|total|real|fast|slow|quick|like|of|to|for|with|in|who|and|or)\b",
    re.IGNORECASE,
)


def occupation(plain: str, at: int, end: int) -> Span | None:
    """Return the occupation at ``at``, which needs an article ("a nurse"), without it."""
    return _occupation(_OCCUPATION.match(plain, at, end))


def bare_occupation(plain: str, at: int, end: int) -> Span | None:
    """Return the occupation at ``at``, with or without an article ("as lead designer")."""
    return _occupation(_BARE_OCCUPATION.match(plain, at, end))


def _occupation(match: re.Match[str] | None) -> Span | None:
    if match is None or _NOT_OCCUPATION.search(match["v"]):
        return None
    return Span(*match.span("v"))


_LANGUAGE = re.compile(
    rf"(?:(?:fluent|some|a little|a bit of|good|basic)\s+)?(?P<v>{either(LANGUAGES)})\b"
)


def language(plain: str, at: int, end: int) -> Span | None:
    """Return the language named at ``at``."""
    match = _LANGUAGE.match(plain, at, end)
    return Span(*match.span("v")) if match else None


_HOUR = r"(?:[01]?[0-9]|2[0-3])"
_SPOKEN = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|quarter|noon|midnight)"
)
_PART = r"(?:in\sthe\s(?:morning|afternoon|evening)|at\snight|o'clock|[ap]\.m\.|[ap]\.?m\b)"
CLOCK = re.compile(
    rf"\b(?:(?:morning|afternoon|evening|night)\s{_HOUR}(?::[0-5][0-9])?(?![\w:])"
    rf"|(?:half\spast|(?:a\s)?quarter\s(?:to|past))\s(?:{_HOUR}|{_SPOKEN})\b(?:\s?{_PART})?"
    rf"|{_HOUR}:[0-5][0-9](?![\w:])(?:\s?{_PART})?"
    rf"|(?:{_HOUR}|{_SPOKEN})\s?{_PART}"
    r"|noon\b|midnight\b)",
    re.IGNORECASE,
)
"""A time of the day."""
