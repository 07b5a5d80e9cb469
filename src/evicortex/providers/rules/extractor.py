"""The extractor that needs no model: forms of statements, and how they are meant."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from evicortex.errors import InputError
from evicortex.protocols import EvidenceContext, ExtractionResult
from evicortex.providers.proposals import Proposal, settle
from evicortex.providers.rules import bookings as booking
from evicortex.providers.rules import references
from evicortex.providers.rules.framing import Sentence, Turn, frame, quoted_spans, read
from evicortex.providers.rules.moments import Times, resolved
from evicortex.providers.rules.people import people
from evicortex.providers.rules.statements import STATEMENTS
from evicortex.providers.rules.table import SPEAKER, Finding, Rule
from evicortex.providers.rules.titles import titles
from evicortex.providers.rules.values import name
from evicortex.text.times.mentions import FoundTime
from evicortex.types import Authority, Diagnostic, Polarity, Span

VERSION = "3"
"""Version of everything that the rule table does not show: framing, readers, references."""

TOPICS = (
    "identity", "residence", "work", "study", "family", "pets", "possessions", "preferences",
    "health", "plans", "events", "requests", "corrections",
)  # fmt: skip
MAX_CHARACTERS = 20_000
"""Longer texts are documents, not turns; only so much of them is read."""

_TOKENS = re.compile(r"[^\W_]+(?:'[a-z]+|-[^\W_]+)*")
_SPEAKERS = frozenset({None, "user", "human"})
_GOVERNED = re.compile(r"\b(?:in|at|from|near|of|for|with|to|by)\s+(?:the\s+)?$", re.IGNORECASE)
"""What stands before a name that is no subject: "my sister in Rome works at …"."""


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What the rules look for.

    Attributes:
        topics: Which of ``TOPICS`` are extracted.
        least_confidence: Claims below it are left out, with a diagnostic.
        hedged: Factor on the confidence of a hedged statement ("I think I live in …").
        speaker: The subject of first-person claims where the evidence names no actor.
    """

    topics: tuple[str, ...] = TOPICS
    least_confidence: float = 0.35
    hedged: float = 0.5
    speaker: str = "user"

    def __post_init__(self) -> None:
        unknown = [topic for topic in self.topics if topic not in TOPICS]
        if unknown:
            raise InputError(f"topics are among {', '.join(TOPICS)}, not {unknown[0]!r}")
        if not (0 <= self.least_confidence <= 1 and 0 <= self.hedged <= 1):
            raise InputError("least_confidence and hedged are numbers from 0 to 1")
        if not self.speaker.strip():
            raise InputError("speaker is a name, not blank")


class RuleExtractor:
    """Extracts claims from plain statements in English, with rules alone.

    What it reads: first- and third-person statements about identity, residence, work, study,
    family, pets, possessions, preferences, health, plans and dated events; details of requests;
    corrections and changes. Questions, hypothetical, reported and quoted speech are refused, each
    with a diagnostic; hedges lower the confidence. It prefers silence to a guess.

    Roles other than a user speak of themselves in no way that is worth keeping ("I can help"), so
    first-person statements count only for evidence of a user or without a role.
    """

    def __init__(self, options: RuleOptions | None = None) -> None:
        self._options = options or RuleOptions()
        chosen = [each for each in STATEMENTS if each.topic in self._options.topics]
        self._by_trigger: dict[str, list[Rule]] = {}
        for each in chosen:
            for trigger in each.triggers:
                self._by_trigger.setdefault(trigger, []).append(each)
        self._order = {id(each): number for number, each in enumerate(chosen)}
        told = repr((VERSION, _table_digest(), self._options)).encode()
        self._revision = f"{VERSION}+{hashlib.sha256(told).hexdigest()[:16]}"

    @property
    def extractor_id(self) -> str:
        """The name."""
        return "evicortex/rules"

    @property
    def revision(self) -> str:
        """Version, and the digest of the rules and options."""
        return self._revision

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Return what the text states, in the order of the text."""
        reading = _Reading(self, context)
        proposals = list(reading.proposals())
        return settle(context, proposals, reading.told, {"calls": 0.0})

    @property
    def options(self) -> RuleOptions:
        """The options in force."""
        return self._options

    def rules_for(self, tokens: frozenset[str]) -> list[Rule]:
        """Return the rules that a sentence of these words can match, in their order."""
        found = {
            id(each): each
            for token in tokens & self._by_trigger.keys()
            for each in self._by_trigger[token]
        }
        return sorted(found.values(), key=lambda each: self._order[id(each)])


@lru_cache(maxsize=1)
def _table_digest() -> str:
    rows = [
        (
            e.topic,
            sorted(e.triggers),
            e.pattern.pattern,
            e.predicate,
            e.when,
            e.confidence,
            e.denies,
            e.affirms,
            e.follows and e.follows.pattern,
        )
        for e in STATEMENTS
    ]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


class _Reading:
    """One evidence while it is read."""

    def __init__(self, extractor: RuleExtractor, context: EvidenceContext) -> None:
        self._extractor = extractor
        self._options = extractor.options
        self._context = context
        self._speaker = context.actor or self._options.speaker
        self._speaks = context.role in _SPEAKERS and context.authority is not Authority.UNTRUSTED
        self._turn = read(context.content[:MAX_CHARACTERS], self._speaker)
        self._times = Times(self._turn.text, context.occurred_at)
        self._used: dict[Span, FoundTime] = {}
        self._so_far: list[Finding] = []
        self.told: list[Diagnostic] = []

    def proposals(self) -> Iterator[Proposal]:
        """Yield every claim that the text makes."""
        if len(self._context.content) > MAX_CHARACTERS:
            self._tell(
                "text_cut",
                "only the beginning was read",
                MAX_CHARACTERS,
                len(self._context.content),
            )
        question, about = self._conversation()
        for sentence in self._turn.sentences:
            found = list(self._sentence(sentence, about, question))
            yield from self._judged(sentence, _apart(found))
        self.told += map(resolved, self._used.values())
        for start, end in quoted_spans(self._turn):
            self._tell("quoted", "quoted speech is not the speaker's claim", start, end)
        if not self._so_far and not self.told:
            self.told.append(Diagnostic("no_statement", "no form of statement was recognised"))

    def _conversation(self) -> tuple[booking.Asked, booking.Topic]:
        if "requests" not in self._options.topics or not self._speaks:
            return booking.asked(None), booking.Topic(False, False)
        previous = self._context.previous
        last = previous[-1][1] if previous and previous[-1][0] != self._context.actor else None
        recent = [text for _, text in previous[-6:]]
        return booking.asked(last), booking.topic(self._turn, recent)

    def _sentence(
        self, sentence: Sentence, about: booking.Topic, question: booking.Asked
    ) -> Iterator[Finding]:
        turn, topics = self._turn, self._options.topics
        tokens = _tokens(turn, sentence)
        yield from _statements(turn, sentence, self._extractor.rules_for(tokens))
        if "family" in topics or "pets" in topics:
            yield from (f for f in people(turn, sentence, tokens) if f.topic in topics)
        if "work" in topics:
            yield from titles(turn, sentence, tokens)
        if "preferences" in topics:
            yield from references.favourites(turn, sentence)
        if "events" in topics:
            yield from references.schedules(turn, sentence, self._times)
        if "corrections" in topics:
            yield from self._leaning(sentence)
        if "requests" in topics and self._speaks and about.task:
            yield from booking.bookings(turn, sentence, self._times, about, question)

    def _leaning(self, sentence: Sentence) -> Iterator[Finding]:
        for found in (
            *references.corrections(
                self._turn, sentence, self._times, self._earlier, answers=self._answers()
            ),
            *references.endings(self._turn, sentence, self._earlier),
        ):
            if isinstance(found, Diagnostic):
                self.told.append(found)
            else:
                yield found

    def _answers(self) -> bool:
        """Whether somebody else has just asked something: "it's Tom" is the answer then."""
        previous = self._context.previous
        asked = bool(previous) and previous[-1][0] != self._context.actor
        return asked and "?" in previous[-1][1] and not self._so_far

    def _earlier(self) -> Sequence[tuple[Finding, str]]:
        here = [(f, self._turn.text[f.span.start : f.span.end]) for f in reversed(self._so_far)]
        for actor, text in reversed(self._context.previous[-8:]):
            if actor != self._context.actor:
                continue
            here += _plain_findings(self._extractor, text, self._context)
        return here

    def _judged(self, sentence: Sentence, found: Iterable[Finding]) -> Iterator[Proposal]:
        for finding in found:
            if finding.subject.startswith(SPEAKER) and not self._speaks:
                continue
            if finding.topic == "requests" or finding.presupposed:
                hedged = False
            else:
                judged = frame(self._turn, sentence, finding.start, finding.end)
                if judged.refused:
                    self._tell(
                        judged.refused, "not stated by the speaker", finding.start, finding.end
                    )
                    continue
                hedged = judged.hedged
            confidence = finding.confidence * (self._options.hedged if hedged else 1.0)
            if confidence < self._options.least_confidence:
                self._tell("hedged", "too uncertain to claim", finding.start, finding.end)
                continue
            self._so_far.append(finding)
            yield self._proposal(sentence, replace(finding, confidence=round(confidence, 4)))

    def _proposal(self, sentence: Sentence, finding: Finding) -> Proposal:
        text = self._turn.text
        bounds = self._times.bounds(finding.when, sentence, finding.start, finding.end)
        for mention in bounds.used:
            self._used[mention.span] = mention
        self._keep_time(finding)
        value = finding.notes[0] if finding.notes else text[finding.span.start : finding.span.end]
        return Proposal(
            subject=finding.subject.replace(SPEAKER, self._speaker),
            predicate=finding.predicate,
            object=" ".join(value.split()),
            span=finding.span,
            confidence=finding.confidence,
            polarity=finding.polarity,
            valid_from=bounds.valid_from,
            valid_to=bounds.valid_to,
            cardinality="single" if finding.single else None,
        )

    def _keep_time(self, finding: Finding) -> None:
        """Keep how the day of an event was read; requests and schedules look ahead."""
        if finding.topic not in ("events", "requests", "corrections"):
            return
        day = self._times.at(finding.span.start)
        if day is None or not self._times.placed(day):
            return
        ahead = finding.topic == "requests" or finding.predicate == "scheduled_for"
        read_as = self._times.upcoming(day) if ahead else day
        if read_as is not None:
            self._used[day.span] = read_as

    def _tell(self, code: str, message: str, start: int, end: int) -> None:
        self.told.append(Diagnostic(code, message, {"span": [start, end]}))


def _plain_findings(
    extractor: RuleExtractor, text: str, context: EvidenceContext
) -> list[tuple[Finding, str]]:
    """Return what an earlier turn states, newest first; it is read and never cited."""
    turn = read(text[:MAX_CHARACTERS], context.actor)
    times = Times(turn.text, context.occurred_at)
    out: list[tuple[Finding, str]] = []
    for sentence in turn.sentences:
        tokens = _tokens(turn, sentence)
        found = [
            *_statements(turn, sentence, extractor.rules_for(tokens)),
            *people(turn, sentence, tokens),
            *references.schedules(turn, sentence, times),
        ]
        out += [
            (finding, text[finding.span.start : finding.span.end])
            for finding in found
            if frame(turn, sentence, finding.start, finding.end).refused is None
        ]
    return out[::-1]


def _tokens(turn: Turn, sentence: Sentence) -> frozenset[str]:
    """Return the lower-case words of a sentence, and what "Ann's", "isn't", "I-I'm" are made of."""
    found = _TOKENS.findall(turn.plain[sentence.start : sentence.end].lower())
    parts = [part for word in found if "-" in word for part in word.split("-")]
    owners = [word[:-2] for word in found if word.endswith("'s")]
    denied = [word[:-3] for word in found if word.endswith("n't")]
    return frozenset((*found, *parts, *owners, *denied))


def _statements(turn: Turn, sentence: Sentence, rules: Iterable[Rule]) -> Iterator[Finding]:
    for each in rules:
        for match in each.pattern.finditer(turn.plain, sentence.start, sentence.end):
            span = _value(turn.plain, match, each, sentence.end)
            subject = _subject(turn.plain, match, sentence.end)
            if span is None or subject is None:
                continue
            groups = match.groupdict()
            negated = any(groups.get(each) for each in ("neg", "neg3", "neg4"))
            if negated and each.affirms:
                continue
            denied = negated != each.denies
            yield Finding(
                each.topic,
                subject,
                each.predicate,
                span,
                match.start(),
                max(match.end(), span.end),
                each.when,
                each.confidence,
                Polarity.NEGATIVE if denied else Polarity.POSITIVE,
                each.predicate == "employment_status",
            )


def _value(plain: str, match: re.Match[str], each: Rule, end: int) -> Span | None:
    span: Span | None
    if each.read:
        spans = (reader(plain, match.end(), end) for reader in each.read)
        span = next((found for found in spans if found is not None), None)
    else:
        span = Span(*match.span("v"))
    if span is None or (each.follows and not each.follows.match(plain, span.end)):
        return None
    return span


def _subject(plain: str, match: re.Match[str], end: int) -> str | None:
    groups = match.groupdict()
    if groups.get("kn"):
        found = name(plain, match.start("kn"), match.end("kn"))
        if found is None or found.end != match.end("kn"):
            return None
        return plain[found.start : found.end]
    if groups.get("kin"):
        return f"{SPEAKER}'s {groups['kin']}"
    if groups.get("n"):
        found = name(plain, match.start("n"), match.end("n"))
        governed = _GOVERNED.search(plain, max(0, match.start("n") - 12), match.start("n"))
        if found is None or found.end != match.end("n") or governed:
            return None
        return plain[found.start : found.end]
    return SPEAKER


def _apart(found: list[Finding]) -> list[Finding]:
    """Leave out what a better finding on the same characters says otherwise.

    Of findings with one predicate and overlapping values the longest stays; a named pet or
    relative stands for the unnamed one in the same words.
    """
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda f: (f.span.start - f.span.end, f.start)):
        if not any(_covers(other, finding) for other in kept):
            kept.append(finding)
    return sorted(kept, key=lambda f: f.span)


def _covers(other: Finding, finding: Finding) -> bool:
    overlap = other.span.start < finding.span.end and finding.span.start < other.span.end
    same = other.predicate == finding.predicate
    return (
        overlap and same and other.polarity is finding.polarity and other.subject == finding.subject
    )
