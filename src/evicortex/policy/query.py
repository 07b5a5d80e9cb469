"""What a query asks: for whom, about when, without what, and in which words. Pure.

The words of the query become three things: the actors that it names (their names then leave the
text, because nearly every turn of an actor would match them), its informative terms, and
constraints. Any string is a query; none can raise or act as syntax, and the work is linear in
its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from evicortex.policy.exclusion import Exclusion, find_exclusions
from evicortex.policy.names import NameMention, Names
from evicortex.text import content_terms, sentences
from evicortex.text.times.mentions import FoundTime, Interval, find_times
from evicortex.text.times.words import SPACE, DateOptions
from evicortex.types import Span

Kind = Literal["question", "request", "statement"]
Person = Literal["asker", "other"]
Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class QueryPolicy:
    """How queries are read.

    Attributes:
        dates: How ambiguous dates are read.
        furniture: Content terms that only shape a question ("how many", "what kind of"); they
            count as terms only when a query has no others. Chosen on development questions.
        person_rule: Whether "I" and "you said" choose an actor when the query names none.
        exclusions: Whether "not X", "other than X" and the like rule texts out.
    """

    dates: DateOptions = field(default_factory=DateOptions)
    furniture: frozenset[str] = frozenset(
        content_terms(
            "many much often long ever currently still likely kind type sort hey hi hello"
        )
    )
    person_rule: bool = True
    exclusions: bool = True


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """A query, taken apart. Spans are code points of ``query``.

    Attributes:
        query: The query exactly as it was given.
        kind: Question, request, or statement. Key words without a verb are a request.
        text: The query without actors' names and without what it excludes, for an encoder; the
            query itself when nothing would be left.
        terms: Informative terms, each once, in order (see ``text.content_terms``). Names count
            only when there is nothing else.
        literal: The query stripped of white space, when it has no informative term at all and
            can only be found as it stands; else ``None``. May be empty.
        mentions: Actors named, in the order of the text.
        actors: The same actors, each once, without those that the query rules out.
        actor: The one actor whose words are asked for: the only one named, or the one that the
            person rule gives; else ``None``.
        role: "user" or "assistant" when the person rule applies but leaves the actor open.
        person: "asker" for "I" without "you", "other" for "you said"; ``None`` otherwise.
        times: Times named. Those with ``open_year`` have candidates in every year.
        exclusions: What the query rules out.
    """

    query: str
    kind: Kind
    text: str
    terms: tuple[str, ...]
    literal: str | None
    mentions: tuple[NameMention, ...]
    actors: tuple[str, ...]
    actor: str | None
    role: Role | None
    person: Person | None
    times: tuple[FoundTime, ...]
    exclusions: tuple[Exclusion, ...]

    def intervals(self, first: datetime, last: datetime) -> tuple[Interval, ...]:
        """Return every interval that the named times can mean in data from first to last."""
        found = [each for time in self.times for each in time.candidates(first, last)]
        return tuple(sorted(set(found)))


def analyze(
    query: str,
    *,
    now: datetime,
    actors: Sequence[str] | Names = (),
    aliases: Mapping[str, str] | None = None,
    query_actor: str | None = None,
    rare: Callable[[str], bool] | None = None,
    policy: QueryPolicy | None = None,
) -> QueryAnalysis:
    """Take a query apart.

    Args:
        query: Any text at all.
        now: The moment of asking (``as_of``, or the present), aware; relative times count from it.
        actors: Names of the namespace's actors, or ``Names`` made of them before.
        aliases: Other names and whose they are; unused when ``actors`` is ``Names``.
        query_actor: Who asks or speaks.
        rare: Whether a folded word is so rare that it may be a misspelt name; see ``Names.find``.
        policy: How queries are read.

    Raises:
        NaiveDatetimeError: ``now`` has no time zone.
    """
    chosen = policy or QueryPolicy()
    names = actors if isinstance(actors, Names) else Names(actors, aliases)
    times = find_times(query, now, options=chosen.dates)
    mentions = tuple(
        mention for mention in names.find(query, rare=rare) if not _is_time(mention, times)
    )
    parts = [(span, _kind(query[span.start : span.end])) for span in sentences(query)]
    exclusions = _exclusions(query, parts) if chosen.exclusions else ()
    named = tuple(
        dict.fromkeys(
            mention.actor for mention in mentions if not _covered(mention.span, exclusions)
        )
    )
    person = _person(query) if chosen.person_rule and not named else None
    text = _without(query, [*(each.span for each in mentions), *_ruled_out(exclusions)])
    found = _terms(text, query, chosen)
    actor = named[0] if len(named) == 1 else _actor_of(person, names.actors, query_actor)
    return QueryAnalysis(
        query=query,
        kind=_strongest([kind for _, kind in parts]),
        text=text if content_terms(text) else query.strip(),
        terms=found,
        literal=None if found else query.strip(),
        mentions=mentions,
        actors=named,
        actor=actor,
        role=_ROLES[person] if person and actor is None else None,
        person=person,
        times=times,
        exclusions=exclusions,
    )


def _is_time(mention: NameMention, times: Sequence[FoundTime]) -> bool:
    # An actor may be called April; "in April" is still a month.
    return mention.span.end - mention.span.start == len(mention.text) and any(
        time.span.start <= mention.span.start and mention.span.end <= time.span.end
        for time in times
    )


def _covered(span: Span, exclusions: Sequence[Exclusion]) -> bool:
    return any(each.span.start <= span.start < each.span.end for each in exclusions if each.strict)


def _ruled_out(exclusions: Sequence[Exclusion]) -> list[Span]:
    # What is only known already ("besides pottery") helps to find its like; just the cue goes.
    return [
        each.span if each.strict else Span(each.span.start, each.span.end - len(each.phrase))
        for each in exclusions
    ]


def _exclusions(query: str, parts: Sequence[tuple[Span, Kind]]) -> tuple[Exclusion, ...]:
    # A statement tells ("I was home, not at work"); it does not rule memories out.
    asking = [span for span, kind in parts if kind != "statement"]
    found = []
    at = 0
    for exclusion in find_exclusions(query) if asking else ():
        while at < len(asking) and asking[at].end <= exclusion.span.start:
            at += 1
        if at < len(asking) and asking[at].start <= exclusion.span.start:
            found.append(exclusion)
    return tuple(found)


_QUESTION_MARK = re.compile(r"[?？؟՞\u037e]\s*[\"'”’)\]]*\s*$")
_LEAD = r"^[\W_]*(?:(?:and|so|but|also|then|ok|okay|please|hey|hi|hello|well|now)\b[\W_]*){0,3}"
_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might)"
)
_ASKS = re.compile(
    rf"{_LEAD}(?:{_AUXILIARY}(?:n['’]?t)?|won['’]?t|who|whom|whose|what|why|which"
    # "When I was young, ..." asks nothing.
    rf"|(?:when|where|how)(?:['’](?:s|re|d|ll|ve)\b|{SPACE}(?:{_AUXILIARY}|much|many|long|often|old"
    r"|far|come|to)\b))(?:['’](?:s|re|d|ll|ve))?\b",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    _LEAD
    + r"(?:tell|show|list|find|give|get|suggest|recommend|remind|name|describe|summari[sz]e|explain"
    r"|search|look|help|compare|recall|bring|pick|choose|propose|write|plan|any|something|anything"
    r"|everything|everyone|anyone|someone)\b"
    r"|(?<!what )(?<!that )(?<!which )(?<!all )\bI(?: am|['’]m)?(?: still| just| really| only)? (?:(?:want|need)(?! to\b)"
    r"|(?:look|search)ing for|would like)\b|\bI['’]d (?:like|love)\b|\bplease\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:i|we|he|she|they|it|you)(?:['’]\w{1,3})?\b|\b(?:is|are|was|were|am|been|has|have|had"
    r"|will|would|did)\b|\w(?:n['’]t)\b",
    re.IGNORECASE,
)
_KEYWORDS = 8


def _kind(sentence: str) -> Kind:
    if _QUESTION_MARK.search(sentence[-16:]) or _ASKS.match(sentence[:80]):
        return "question"
    if _REQUESTS.search(sentence):
        return "request"
    short = len(sentence) <= 120 and len(sentence.split()) <= _KEYWORDS
    return "request" if short and not _TELLS.search(sentence) else "statement"


def _strongest(kinds: Sequence[Kind]) -> Kind:
    for kind in ("question", "request"):
        if kind in kinds:
            return kind
    return "statement"


_FIRST = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|im|ive|my|me|mine|myself|we|our|us|ours)\b", re.IGNORECASE
)
_SECOND = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_SAYING = re.compile(
    r"\b(?:said|say|saying|says|suggest\w{0,7}|recommend\w{0,7}|told|tell|mention\w{0,5}|advis\w{1,3}"
    r"|advice|propos\w{1,4}|explain\w{0,5}|explanation|gave|give|describ\w{1,4}|list\w{0,3}|wrote"
    r"|write|call\w{0,3})\b",
    re.IGNORECASE,
)


_ROLES: Mapping[Person, Role] = {"asker": "user", "other": "assistant"}


def _person(query: str) -> Person | None:
    """Return whose words are meant when nobody is named.

    Without this rule, assistant-style chat loses user facts under the much longer words of the
    assistant; measured on the needles of a LongMemEval record.
    """
    if _SECOND.search(query):
        return "other" if _SAYING.search(query) else None
    return "asker" if _FIRST.search(query) else None


def _actor_of(person: Person | None, actors: Sequence[str], query_actor: str | None) -> str | None:
    if person is None or query_actor is None or query_actor not in actors:
        return None
    if person == "asker":
        return query_actor
    others = [actor for actor in actors if actor != query_actor]
    return others[0] if len(others) == 1 else None


_LOOSE_JOIN = re.compile(r"\b(?:and|or)[ ,]{1,3}(?=(?:and|or)\b)", re.IGNORECASE)
_SPACE_BEFORE_MARK = re.compile(r" ([?.!,])")
_COMMAS = re.compile(r",{2,}")


def _without(query: str, spans: Sequence[Span]) -> str:
    if not spans:
        return query.strip()
    pieces, at = [], 0
    for span in sorted(spans):
        pieces.append(query[at : max(at, span.start)])
        at = max(at, span.end)
    pieces.append(query[at:])
    joined = _LOOSE_JOIN.sub("", " ".join("".join(pieces).split()))
    return _COMMAS.sub(",", _SPACE_BEFORE_MARK.sub(r"\1", joined))


def _terms(text: str, query: str, policy: QueryPolicy) -> tuple[str, ...]:
    """Return informative terms of what is left, else of the query, else its furniture."""
    for source in (text, query):
        found = dict.fromkeys(content_terms(source))
        informative = tuple(term for term in found if term not in policy.furniture)
        if informative:
            return informative
    return tuple(dict.fromkeys(content_terms(query)))
