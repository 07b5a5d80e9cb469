"""What a query rules out: "not an accessory", "other than Paris", "except on Mondays".

An exclusion is found by its cue and the noun phrase behind it. Ordinary negation ("why did she
not come?", "not only", "I couldn't") is none. A strict exclusion rejects every text that holds
its terms, unless the text negates them itself ("no accessories included", "never in Paris").

"Besides", "apart from", "aside from" and "in addition to" ask for more of the same, and their
answers often name what is known already ("German, and a bit of Spanish"): on the development
questions five of seven gold turns do. They are found, but reject nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from evicortex.text import content_terms, sentences, words
from evicortex.text.segments import Word
from evicortex.text.times.words import SPACE, listed
from evicortex.types import Span


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One thing that a query rules out.

    Attributes:
        span: The cue and the phrase, in the query.
        phrase: What is ruled out, as written: "an accessory".
        terms: Its content terms (see ``text.content_terms``); all of them, near each other,
            make a mention.
        strict: Whether texts that mention it are rejected.
    """

    span: Span
    phrase: str
    terms: tuple[str, ...]
    strict: bool = True


_CUE = re.compile(
    rf"\b(?:(?P<additive>besides|apart{SPACE}from|aside{SPACE}from|in{SPACE}addition{SPACE}to)"
    rf"|(?P<strict>other{SPACE}than|with{SPACE}the{SPACE}exception{SPACE}of|excluding|excepting"
    rf"|not{SPACE}(?:including|counting|involving)|except(?:{SPACE}for)?(?!ed|ion)"
    rf"|(?:any|every)(?:thing|one|body|where){SPACE}but|all{SPACE}but)"
    rf"|(?P<relative>(?:that|which|who)(?:['’]s{SPACE}not|{SPACE}(?:is|are|was|were)(?:{SPACE}not"
    rf"|n['’]t)|{SPACE}(?:do|does|did)(?:{SPACE}not|n['’]t){SPACE}"
    r"(?:include|contain|involve|have|use|mention|require|need|concern|serve)))"
    r"|(?P<without>without)|(?P<none>no)|(?P<negated>not))\b(?!['’-]\w)",
    re.IGNORECASE,
)

_DETERMINERS = frozenset(
    listed("a an the any my your his her their our its this those these another some all every")
)
_PREPOSITIONS = frozenset(
    listed("in on at with from for by about during near of to involving related including")
)
_LEADING = _DETERMINERS | _PREPOSITIONS
_CONJUNCTIONS = frozenset(listed("and or nor"))
_AUXILIARIES = frozenset(
    listed("is are was were do does did will can could has have had should would may might")
)
_STOPPERS = frozenset(
    listed(
        "do does did is are was were be been has have had can could will would should may might "
        "must that which who whom whose when where why how what if because since while but so then "
        "please thanks i you he she we they it in on at for with from by during after before until "
        "about as than into like also though too instead now or and nor"
    )
)
# After "not" these make it the negation of a verb, an adjective or the whole clause.
_NO_NOUN = frozenset(
    listed(
        "only just merely even yet really very so too sure to because that all always every many "
        "much until as necessarily anymore going be been being have having know knowing like want "
        "wanting true exactly quite well enough more less able long likely possible i you he she "
        "we they it is are was were do does did if when why what how who good bad right wrong one"
    )
)
_ORDINARY_BEFORE = frozenset(
    listed(
        "is are was were am be been do does did has have had can could will would shall should may "
        "might must or if why whether i you he she it we they this there certainly probably maybe "
        "perhaps definitely absolutely course still also just really hopefully of than"
    )
)
_WITHOUT_VERBS = frozenset(
    listed("go gone going goes went live lives lived living survive manage be being do does did")
)
_UNABLE = frozenset(listed("able never cannot can't can’t couldn't couldn’t not won't won’t"))
_NO_IDIOMS = frozenset(
    listed("one longer matter doubt problem problems idea way need wonder more less worries")
)
_PHRASE_WORDS = 6


def find_exclusions(text: str) -> tuple[Exclusion, ...]:
    """Return the exclusions of a query, in its order; a phrase without content is none."""
    if not _CUE.search(text):
        return ()
    listing = words(text)
    found: list[Exclusion] = []
    end = -1
    for cue in _CUE.finditer(text):
        if cue.start() < end:
            continue
        after = _index_after(listing, cue.end())
        if not _excludes(cue, text, listing, after):
            continue
        for phrase in _phrases(text, listing, after, cue.end()):
            terms = tuple(dict.fromkeys(content_terms(text[phrase.head : phrase.end])))
            if terms:
                start = cue.start() if end < cue.start() else phrase.start
                end = phrase.end
                strict = cue["additive"] is None
                found.append(Exclusion(Span(start, end), text[phrase.start : end], terms, strict))
    return tuple(found)


def _index_after(listing: list[Word], position: int) -> int:
    low, high = 0, len(listing)
    while low < high:
        middle = (low + high) // 2
        if listing[middle].start < position:
            low = middle + 1
        else:
            high = middle
    return low


def _word(listing: list[Word], at: int) -> str:
    return listing[at].text.casefold() if 0 <= at < len(listing) else ""


def _excludes(cue: re.Match[str], text: str, listing: list[Word], after: int) -> bool:
    """Return whether a cue rules something out, rather than negate or tell."""
    following, second = _word(listing, after), _word(listing, after + 1)
    before = _word(listing, _index_after(listing, cue.start()) - 1)
    opening = text[max(0, cue.start() - 3) : cue.start()].rstrip()
    pause = not opening or opening[-1] in ",;:(–—.!?\n-"
    if cue["negated"]:
        apart = after >= len(listing) or text[cue.end() : listing[after].start].strip()
        here = after - 1
        # "What is Sam not a fan of?" asks; "places not in Rome" rules out.
        inverted = {_word(listing, at) for at in range(max(0, here - 3), here)} & _AUXILIARIES
        plain = not pause and inverted and before != "but"
        return not (apart or plain) and _negation_excludes(pause, before, following, second)
    if cue["without"]:
        return _lack_excludes(listing, after, before, following)
    if cue["none"]:
        return (pause or before in ("with", "but", "and")) and following not in _NO_IDIOMS
    return True


def _negation_excludes(pause: bool, before: str, following: str, second: str) -> bool:
    if following in _NO_NOUN or (following, second) == ("at", "all"):
        return False
    if before == "but":
        return True
    if following in _LEADING:
        return pause or before not in _ORDINARY_BEFORE
    return pause or (before == "and" and following not in _STOPPERS)


def _lack_excludes(listing: list[Word], after: int, before: str, following: str) -> bool:
    if following.endswith("ing") or before in _WITHOUT_VERBS:
        return False
    clause = {_word(listing, at) for at in range(max(0, after - 8), after - 1)}
    return not clause & _UNABLE


class _Phrase(NamedTuple):
    start: int
    head: int  # where articles and prepositions end
    end: int


def _phrases(text: str, listing: list[Word], after: int, start: int) -> Iterator[_Phrase]:
    """Yield the noun phrases that follow a cue: "Paris or the old town" has two."""
    at = after
    while at < len(listing) and _joined(text, start, listing[at].start):
        first, at = _phrase(text, listing, at, start)
        if first is None:
            return
        yield first
        start = first.end
        if _word(listing, at) not in _CONJUNCTIONS or not _joined(text, start, listing[at].start):
            return
        start = listing[at].end
        at += 1


def _phrase(text: str, listing: list[Word], at: int, start: int) -> tuple[_Phrase | None, int]:
    begin = at
    while at < len(listing) and _word(listing, at) in _LEADING:
        if not _joined(text, start, listing[at].start):
            return None, at
        start = listing[at].end
        at += 1
    head = at
    while (
        at < len(listing) and at - head < _PHRASE_WORDS and _joined(text, start, listing[at].start)
    ):
        if _word(listing, at) in _STOPPERS:
            break
        start = listing[at].end
        at += 1
    while at > head and _word(listing, at - 1) in _LEADING:
        at -= 1
    if at == head:
        return None, at
    return _Phrase(listing[begin].start, listing[head].start, listing[at - 1].end), at


def _joined(text: str, start: int, end: int) -> bool:
    """Return whether nothing but space, or a join as in ``CS:GO``, lies between two words."""
    gap = text[start:end]
    return len(gap) <= 3 and (not gap.strip() or (len(gap) == 1 and gap in "-/:&+.'’"))


_CHUNK = re.compile(r"\S+")
_EDGES = " \t\n.,;:!?\"'“”‘’()[]*_—–…"
_PAUSE = re.compile(r"[.,;:!?)\]—–…]$")
_NEGATORS = frozenset(
    listed(
        "not no never without cannot neither nor none nothing nobody nowhere hardly barely zero "
        "except excluding non dont doesnt didnt isnt arent wasnt werent wont cant couldnt wouldnt "
        "shouldnt havent hasnt hadnt aint"
    )
)
_NEGATING_PAIRS = frozenset(
    {("other", "than"), ("rather", "than"), ("instead", "of"), ("free", "of"), ("free", "from")}
    | {(word, "but") for word in listed("anything everything anyone everyone anywhere all")}
)
# "Not only Paris", "can't wait for Paris", "no doubt about Paris": nothing is denied.
_NO_DENIAL = frozenset(
    listed("only just merely wait doubt problem wonder matter worries until stop enough better")
)
_BREAKS = frozenset(listed("but because although however though while when until"))
_SUBJECTS = frozenset(listed("i you he she we they it"))
_LEFT_OUT = frozenset(
    listed("included allowed part needed there available involved permitted used served wanted")
)
_BACK = 5
_SPREAD = 4


class _Sentence:
    """The chunks of a sentence: plain words, their terms, and where a clause pauses."""

    def __init__(self, text: str) -> None:
        chunks = _CHUNK.findall(text)
        self.words = [chunk.strip(_EDGES).casefold().replace("’", "'") for chunk in chunks]
        self.terms = [frozenset(content_terms(chunk)) for chunk in chunks]
        self.pauses = [bool(_PAUSE.search(chunk)) for chunk in chunks]

    def mentions(self, terms: tuple[str, ...]) -> list[int]:
        """Return where each mention of all ``terms`` begins."""
        places = [[i for i, held in enumerate(self.terms) if term in held] for term in terms]
        if not all(places):
            return []
        reach = len(terms) - 1 + _SPREAD
        found = []
        for at in places[0]:
            near = [at, *(_nearest(others, at) for others in places[1:])]
            if all(abs(place - at) <= reach for place in near):
                found.append(min(near))
        return found

    def negates(self, at: int) -> bool:
        """Return whether the sentence denies what begins at chunk ``at``."""
        word = self.words[at]
        if word.endswith("-free") or word.startswith("non-") or self._left_out(at):
            return True
        for back in range(at - 1, max(-1, at - 1 - _BACK), -1):
            if self.pauses[back] or self.words[back] in _BREAKS:
                break
            if self._denies(back):
                return True
            if self.words[back] in _SUBJECTS and back and self.words[back - 1] in ("and", "so"):
                break
        return self._pair_before(at)

    def _denies(self, at: int) -> bool:
        word = self.words[at]
        if word not in _NEGATORS and not word.endswith("n't"):
            return False
        return self.words[at + 1] not in _NO_DENIAL and (at == 0 or self.words[at - 1] != "why")

    def _pair_before(self, at: int) -> bool:
        low = max(0, at - 4)
        return any(
            pair in _NEGATING_PAIRS and not any(self.pauses[low + i : at])
            for i, pair in enumerate(pairwise(self.words[low:at]))
        )

    def _left_out(self, at: int) -> bool:
        after = [*self.words[at + 1 : at + 4], "", "", ""]
        if after[0] in ("excluded", "excepted", "free"):
            return not self.pauses[at]
        if after[0].endswith("n't"):
            return after[1] in _LEFT_OUT
        return after[0] in _AUXILIARIES and after[1] in ("not", "never") and after[2] in _LEFT_OUT


def _nearest(ascending: list[int], place: int) -> int:
    at = bisect_left(ascending, place)
    return min(ascending[max(0, at - 1) : at + 1], key=lambda found: abs(found - place))


def rejects(exclusion: Exclusion, text: str) -> bool:
    """Return whether ``text`` holds what a strict exclusion rules out, and does not deny it."""
    if not exclusion.strict or not set(exclusion.terms).issubset(content_terms(text)):
        return False
    for span in sentences(text):
        sentence = _Sentence(text[span.start : span.end])
        if not all(sentence.negates(at) for at in sentence.mentions(exclusion.terms)):
            return True
    return False
