"""Who is whose: kin, partners, friends and pets by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evicortex.providers.rules.framing import Sentence, Turn
from evicortex.providers.rules.lexicon import ANIMALS, KIN, either
from evicortex.providers.rules.table import SPEAKER, Finding
from evicortex.providers.rules.values import NAME, name, possessor
from evicortex.types import Polarity, Span

_KIND = f"(?i:{either(re.escape(word) for word in KIN)})"
_PET = either(ANIMALS)
_ADJECTIVE = r"(?:(?!(?:my|our|his|her|their|your|the|an?|and|or|is|was)\b)[a-z-]+\s+){0,2}?"
_OWNER = (
    rf"(?:(?P<my>\b[Mm]y|\b[Oo]ur)|(?:(?P<with>{NAME})\s+and\s+)?(?P<owner>{NAME})(?:'s|(?<=s)'))"
)
"""My; Ross's; Tom and Sue's."""
_MARKS = r"(?:\s*(?:[.,!?;:)]|--|…|$|\n)|\s)"

_APPOSED = re.compile(
    rf"{_OWNER}\s+{_ADJECTIVE}(?P<kin>{_KIND}|{_PET})(?P<comma>,)?\s+(?P<v>{NAME})(?!'s\s+(?:{_KIND}))"
)
"""My sister Anna; Ross's sister, Monica."""
_NAMED = re.compile(
    rf"{_OWNER}\s+{_ADJECTIVE}(?P<kin>{_KIND}|{_PET})"
    rf"(?:'s\s+name(?:'s|\s+is)|(?:\s+is|,)\s+(?:named|called))\s+(?P<v>{NAME})"
)
_HAS = re.compile(
    rf"(?:(?P<my>(?<![\w'])I(?:'ve)?|\b[Ww]e(?:'ve)?)|(?P<owner>{NAME}))\s+(?:also\s+|just\s+)?"
    rf"(?:have|has|got|adopted|bought|rescued)\s+(?:an?|two|a\s+new)\s+{_ADJECTIVE}(?P<kin>{_KIND}|{_PET}),?\s+"
    rf"(?:(?:named|called)\s+)?(?P<v>{NAME})"
)
_IS = re.compile(
    rf"(?P<v>{NAME})(?:'s|\s+is|\s+was)\s+(?:(?P<my>my|our)|(?P<owner>{NAME})'s?)\s+{_ADJECTIVE}(?P<kin>{_KIND}|{_PET})\b"
    r"(?!\s+(?:\w+'s|in|and)\b|')"
)
_APPOSING = re.compile(
    rf"(?P<v>{NAME}),\s+(?:(?P<my>my|our)|(?P<owner>{NAME})(?:'s|(?<=s)'))\s+{_ADJECTIVE}"
    rf"(?P<kin>{_KIND}|{_PET})(?=\s*(?:[,.!?;:)…]|--|$))"
)
"""Kip, my old roommate."""
_AND_HIS = re.compile(
    rf"(?<!\bat )(?<!\bin )(?P<owner>{NAME})\s+and\s+(?:his|her)\s+{_ADJECTIVE}(?P<kin>{_KIND}|{_PET}),?\s+"
    rf"(?P<v>{NAME})"
)
"""Joseph and his wife, Karen."""
_FRIEND_OF = re.compile(
    r"(?<![\w'])(?P<me>I)(?:'m|\s+am)\s+an?\s+(?:[a-z-]+\s+)?"
    rf"(?P<kin>friend|buddy|colleague|coworker|co-worker|neighbou?r|cousin)\s+of\s+(?P<owner>{NAME})"
)
_I_AM = re.compile(
    rf"(?<![\w'])(?P<me>I)(?:'m|\s+am)\s+(?P<owner>{NAME})'s?\s+{_ADJECTIVE}(?P<kin>{_KIND})\b(?!')"
)
_PAIR = re.compile(
    rf"(?:(?P<my>[Mm]e\s+and|[Mm]yself\s+and)\s+(?P<v>{NAME})|(?P<a>{NAME})\s+and\s+(?:(?P<i>I|me)\b|(?P<b>{NAME})))"
    r"\s+(?:just\s+|recently\s+|are\s+|were\s+|have\s+|'re\s+|finally\s+|both\s+|got\s+|getting\s+)*"
    r"(?P<what>broke\s+up|broken\s+up|split\s+up|separated|divorced|a\s+divorce|dating|married|engaged|going\s+out|roommates|best\s+friends|friends|living\s+together|sisters|brothers|siblings|a\s+couple|neighbors|neighbours|colleagues)\b"
)
_BROKE = re.compile(
    rf"(?:(?P<my>(?<![\w'])I(?:'ve)?)|(?P<owner>{NAME}))\s+(?:just\s+|recently\s+|finally\s+|have\s+|has\s+)?"
    rf"(?P<what>broke\s+up|broken\s+up|split\s+up)\s+with\s+(?P<v>{NAME})"
)
_INTRODUCES = re.compile(r"\b(?:this|that|here|it)(?:'s|\s+is)\s+(?:uh,?\s+)?$", re.IGNORECASE)
_PAIRS = {
    "dating": "dating",
    "going out": "dating",
    "a couple": "dating",
    "married": "spouse",
    "engaged": "engaged_to",
    "roommates": "lives_with",
    "living together": "lives_with",
    "best friends": "friend_of",
    "friends": "friend_of",
    "sisters": "has_sibling",
    "brothers": "has_sibling",
    "siblings": "has_sibling",
    "neighbors": "neighbour_of",
    "neighbours": "neighbour_of",
    "colleagues": "colleague_of",
}
_TRIGGERS = frozenset(word.split()[-1] for word in (*KIN, *ANIMALS)) | frozenset(
    "broke split broken divorced divorce dating married engaged roommates friends together "
    "separated sisters brothers siblings couple neighbors neighbours colleagues out".split()
)
_FORMS = (
    (_NAMED, 0.95),
    (_HAS, 0.95),
    (_IS, 0.9),
    (_APPOSED, 0.9),
    (_AND_HIS, 0.85),
    (_APPOSING, 0.8),
)


def people(turn: Turn, sentence: Sentence, tokens: frozenset[str]) -> Iterator[Finding]:
    """Yield the relations between persons (and to pets) that a sentence names."""
    plain = turn.plain
    if _TRIGGERS.isdisjoint(tokens):
        return
    for pattern, confidence in _FORMS:
        for match in pattern.finditer(plain, sentence.start, sentence.end):
            yield from _relation(turn, sentence, match, confidence)
    for pattern in (_I_AM, _FRIEND_OF):
        for match in pattern.finditer(plain, sentence.start, sentence.end):
            owner = _named(plain, match, "owner")
            if owner:
                span = Span(*match.span("owner"))
                yield _finding(match, owner, KIN[match["kin"].lower()], span, 0.9, turned=True)
    for pattern in (_PAIR, _BROKE):
        for match in pattern.finditer(plain, sentence.start, sentence.end):
            yield from _pair(plain, match, sentence.end)


def _relation(
    turn: Turn, sentence: Sentence, match: re.Match[str], confidence: float
) -> Iterator[Finding]:
    plain = turn.plain
    groups = match.groupdict()
    span = (possessor if match.re is _IS else name)(plain, match.start("v"), sentence.end)
    if span is None or (match.re in (_IS, _APPOSING) and span.end != match.end("v")):
        return
    introduced = _INTRODUCES.search(plain, max(sentence.start, match.start() - 24), match.start())
    pet = match["kin"].lower() in ANIMALS
    if groups.get("comma") and not (
        introduced or pet or _between_commas(plain, span, sentence.end)
    ):
        return
    predicate = KIN.get(match["kin"].lower(), "has_pet")
    if groups.get("comma"):
        confidence -= 0.1
    plain_apposition = match.re is _APPOSED and not groups.get("comma")
    for subject in _owners(plain, match):
        if subject != plain[span.start : span.end]:
            yield _finding(
                match, subject, predicate, span, confidence, presupposed=plain_apposition
            )


def _owners(plain: str, match: re.Match[str]) -> list[str]:
    """Return whose relative it is: the speaker's, or one or two persons' by name."""
    groups = match.groupdict()
    if groups.get("my"):
        return [SPEAKER]
    named = (_named(plain, match, group) for group in ("with", "owner") if groups.get(group))
    return [owner for owner in named if owner]


def _between_commas(plain: str, span: Span, end: int) -> bool:
    """Whether a name after a comma is an apposition: "my boss, Joanna, said", not a vocative."""
    after = plain[span.end : end]
    return after.startswith(",") and bool(after[1:].strip(" .!?"))


def _named(plain: str, match: re.Match[str], group: str) -> str | None:
    if match[group] is None:
        return None
    start = match.start(group)
    found = possessor(plain, start, match.end(group))
    return plain[found.start : found.end] if found and found.end == match.end(group) else None


def _pair(plain: str, match: re.Match[str], end: int) -> Iterator[Finding]:
    groups = match.groupdict()
    what = " ".join(match["what"].split())
    if groups.get("v"):
        subject = SPEAKER if groups.get("my") else _named(plain, match, "owner")
        span = name(plain, match.start("v"), end)
    else:
        other = "i" if groups.get("i") else "b"
        subject = SPEAKER if other == "i" else _named(plain, match, "b")
        first = name(plain, match.start("a"), match.end("a"))
        span = first if first and first.end == match.end("a") else None
    if not subject or span is None:
        return
    if what in _PAIRS:
        predicate = "engaged_to" if re.search(r"getting\s+married$", match[0]) else _PAIRS[what]
        yield _finding(match, subject, predicate, span, 0.85, when="change")
        return
    ended = "spouse" if "divorce" in what else "dating"
    yield _finding(match, subject, ended, span, 0.9, when="change", polarity=Polarity.NEGATIVE)
    yield _finding(match, subject, "former_partner", span, 0.9, when="change")


def _finding(
    match: re.Match[str],
    subject: str,
    predicate: str,
    span: Span,
    confidence: float,
    *,
    when: str = "never",
    polarity: Polarity = Polarity.POSITIVE,
    turned: bool = False,
    presupposed: bool = False,
) -> Finding:
    inverse = {"child_of": "has_child", "has_child": "child_of", "manager": "manages"}
    return Finding(
        topic="pets" if predicate == "has_pet" else "family",
        subject=SPEAKER if turned else subject,
        predicate=inverse.get(predicate, predicate) if turned else predicate,
        span=span,
        start=match.start(),
        end=max(match.end(), span.end),
        when="change" if when == "change" else "never",
        confidence=confidence,
        polarity=polarity,
        presupposed=presupposed,
    )
