"""How a sentence is meant: stated, asked, supposed, reported, quoted, or hedged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evicortex.providers.rules.values import NAME
from evicortex.text import sentences

QUOTED = "\x01"
"""Stands for every character of quoted speech in :attr:`Turn.plain`."""

_MARKS = re.compile(r"[\"“«„`'>]")
_MARKED = re.compile(r"[^\n]")
_PLAIN = str.maketrans({"’": "'", "‘": "'", "\xa0": " ", "\t": " "})
_QUOTES = re.compile(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|„[^“”\n]{1,400}[“”]"
    r"|`[^`\n]{1,400}`|(?<![\w'])'(?=[A-Z])[^'\n]{2,400}[.,!?]'"
)
_CITED = re.compile(
    r"^[ ]{0,3}>[^\n]*|^[ ]{0,3}```.*?(?:^[ ]{0,3}```|\Z)", re.MULTILINE | re.DOTALL
)
"""Lines of a mail that is answered, and blocks of code."""
_HANDED_OVER = re.compile(
    r"\W*(?:(?:hey|hi|hello|ok(?:ay)?|now|please|kindly|(?:can|could|would|will)\s+you|help\s+me"
    r"|i\s+(?:need|want)\s+you\s+to)\W+){0,4}"
    r"(?:(?:(?:translate|summari[sz]e|rephrase|rewrite|paraphrase|proofread|edit|shorten"
    r"|(?:fix|check|correct)\s+(?:my|the|this)\s+(?:grammar|text|spelling|sentence))\b[^\n:]*[:\n])"
    r"|(?:write|draft|compose)\s+(?:me\s+)?(?:an?|the|my)\s+(?:\w+\s+)?(?:story|poem|song|letter"
    r"|e-?mail|essay|dialogue|bio|message|text|joke|scene|script|sentence)\b[^\n:]*:)(?P<text>.*)",
    re.IGNORECASE | re.DOTALL,
)
"""A task, and the text to work on, which states nothing of whoever hands it over."""
_LINE_OF = re.compile(rf"^\[?(?P<who>{NAME}|[Uu]ser|[Mm]e)\]?:[ ](?P<said>.+)$", re.MULTILINE)
_ASKS = re.compile(
    r"(?:[,;:]|\s[-–—]|\.\.\.|…)\s*(?:and|but|so)?\s*"
    r"(?:what|how|who|where|when|why|which|do|does|did|are|is|isn't|aren't|don't|doesn't|have|can"
    r"|could|would|will|should|right|okay|ok|remember|you know|y'know|hm+|huh|eh|you)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:()\x02…]|\.\.\.|\s[-–—]+\s|--|\b(?:but|because|although|though|so that)\b"
)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|wish(?:ed|es)?|imagine|suppos(?:e|ing)|pretend(?:ing|ed)?|whether|as though"
    r"|would|could|should|dream(?:ed|t|ing)?|in case|hop(?:e|es|ing)|until|lest|rather|nearly"
    r"|almost|as if|why|how|what|who|where|like|assuming|hypothetically|let's say)\b|^\s*say\s*$",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?P<who>[\w']+)\s+(?:(?:just|always|also|once|really|never|'s|is|was|has|had|keeps?)\s+)*"
    r"(?:said|says|saying|say|tells?|told|telling|thinks?|thought|thinking|claims?|claimed|asks?"
    r"|asked|heard|hears|believes?|believed|wrote|writes|texted|announced|insist(?:s|ed)?|convinced"
    r"|knows?|knew|sings?|sang|called|repl(?:y|ies|ied)|mention(?:s|ed)?|suggest(?:s|ed)?|assum(?:e|es|ed)"
    r"|swears?|swore|explain(?:s|ed)?|argue[sd]?|jok(?:es|ed)|figures?|figured|reckons?|has\s+it)\b"
    r"|\baccording\s+to\s+(?!me\b)(?P<source>[\w']+)",
    re.IGNORECASE,
)
_QUOTATIVE = re.compile(
    r"(?:\b(?:was|is|were|be)|'s|'re)\s+(?:just\s+)?(?:like|all)[\s,:]*$"
    r"|\baccording\s+to\s+(?!me\b)[^,]{1,40},\s*$",
    re.IGNORECASE,
)
"""She was like, …; According to Ben, …"""
_SAID_AFTER = re.compile(
    r"\s*,\s*(?:(?:so\s+)?(?:he|she|they|[A-Z]\w+)\s+(?:says?|said|claims?|claimed)"
    r"|(?:said|says|claimed|claims)\s+(?!so\b)\w+|according\s+to\s+(?!me\b))",
)
_DENIED = re.compile(
    r"\b(?:den(?:y|ies|ied)|doubt(?:s|ed)?|no\s+way|lie[ds]?|false|untrue|myth"
    r"|never\s+(?:said|told|claimed|thought))\b"
    r"|(?:\bnot|n't)\s+(?:(?:really|even)\s+)?(?:true|that|the\s+case|saying)\b|\bnot\s+like\b",
    re.IGNORECASE,
)
_OWN = frozenset(("i", "we", "i've", "i'd", "and", "already", "just", "you"))
_INVERTED = re.compile(
    r"\s*(?:(?:and|so|but|oh|well|wait|hey|no|yes|or)\W+)*"
    r"(?:do|did|does|am|are|is|was|were|have|has|had|can|could|should|would|will|may|shall"
    r"|don't|didn't|doesn't|aren't|isn't|wasn't|haven't|can't|won't|wouldn't|ain't)\s*",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|apparently|supposedly|presumably|might|i (?:think|guess"
    r"|believe|suppose|assume|suspect|feel like)|not sure|i'm (?:pretty|fairly|quite) sure"
    r"|kind of|kinda|sort of|sorta|seems?|or something|if i remember)\b",
    re.IGNORECASE,
)
_JOKING = re.compile(
    r"\b(?:just kidding|i'm kidding|kidding|just joking|i'm joking|jk|not really)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Where a sentence lies; what stands at ``asked_from`` or after it is a question."""

    start: int
    end: int
    asked_from: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A text made plain for the rules, with every character in its place.

    ``plain`` has straight apostrophes and plain spaces, and hides quoted speech; ``text`` is
    exactly what was given.
    """

    text: str
    plain: str
    sentences: tuple[Sentence, ...]
    joking: bool


def read(text: str, speaker: str | None = None) -> Turn:
    """Return the text as the rules read it, said by ``speaker``."""
    plain = text.translate(_PLAIN)
    if _MARKS.search(plain):
        plain = _QUOTES.sub(_hidden, _CITED.sub(_hidden, plain))
    plain = _without_others(plain, speaker)
    handed_over = _HANDED_OVER.match(plain)
    if handed_over:
        at = handed_over.start("text")
        plain = plain[:at] + _MARKED.sub(QUOTED, plain[at:])
    return Turn(text, plain, tuple(_sentences(plain)), bool(_JOKING.search(plain)))


def _hidden(match: re.Match[str]) -> str:
    return _MARKED.sub(QUOTED, match[0])


def _without_others(plain: str, speaker: str | None) -> str:
    """Hide the lines of a pasted dialogue ("Tom: …") that somebody else speaks."""
    lines = list(_LINE_OF.finditer(plain)) if ": " in plain else []
    names = {match["who"].casefold() for match in lines}
    if len(names) < 2:
        return plain
    own = {"user", "me", (speaker or "user").casefold()}
    for match in lines:
        if match["who"].casefold() not in own:
            start, end = match.span("said")
            plain = plain[:start] + QUOTED * (end - start) + plain[end:]
    return plain


def _sentences(plain: str) -> Iterator[Sentence]:
    for start, end in sentences(plain):
        asked = end
        if plain[start:end].rstrip(" \"'”)!").endswith("?"):
            asked = start
            for match in _ASKS.finditer(plain, start, end):
                asked = match.start()
        yield Sentence(start, end, asked)


def quoted_spans(turn: Turn) -> Iterator[tuple[int, int]]:
    """Yield where speech is quoted."""
    for match in re.finditer(f"{QUOTED}+(?:\n+{QUOTED}+)*", turn.plain):
        yield match.span()


@dataclass(frozen=True, slots=True)
class Frame:
    """What the words around a statement make of it.

    ``refused`` is why it is not the speaker's claim (a stable code), else None.
    """

    refused: str | None
    hedged: bool


def frame(turn: Turn, sentence: Sentence, start: int, end: int) -> Frame:
    """Judge the statement at ``[start, end)`` of a sentence by what stands around it."""
    if start >= sentence.asked_from:
        return Frame("question", False)
    before = turn.plain[sentence.start : start]
    clause = _CLAUSE.split(before)[-1]
    hedged = turn.joking or bool(
        _HEDGED.search(clause)
        or _HEDGED.search(turn.plain, start, end)
        or _HEDGED.search(turn.plain, end, min(sentence.end, end + 24))
    )
    if _QUOTATIVE.search(before[-60:]) or _SAID_AFTER.match(turn.plain, end, sentence.end):
        return Frame("reported_speech", hedged)
    if not clause.strip():
        # "She said, I live in Rome": what is told may follow a comma.
        return Frame("reported_speech" if _told(before[-40:], at_end=True) else None, hedged)
    if _INVERTED.fullmatch(clause):
        return Frame("question", hedged)
    if _DENIED.search(clause):
        return Frame("denied", hedged)
    if _SUPPOSED.search(clause):
        return Frame("hypothetical", hedged)
    if _told(clause):
        return Frame("reported_speech", hedged)
    return Frame(None, hedged)


def _told(before: str, *, at_end: bool = False) -> bool:
    for match in _REPORTED.finditer(before):
        if at_end and before[match.end() :].strip(" ,:"):
            continue
        if match["source"] or match["who"].lower() not in _OWN:
            return True
    return False
