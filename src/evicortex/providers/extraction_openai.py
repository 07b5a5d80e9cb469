"""Claims through any OpenAI-compatible chat endpoint; its spans are located and checked here."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evicortex.errors import ExtractionError, InputError, TextTooLongError
from evicortex.protocols import EvidenceContext, ExtractionResult
from evicortex.providers.extraction_prompt import (
    PROMPT_VERSION,
    messages,
    prompt_identity,
    response_format,
)
from evicortex.providers.http_json import JsonClient, StatusError
from evicortex.providers.proposals import Proposal, settle
from evicortex.text import STOP_WORDS, sentences
from evicortex.types import Diagnostic, Polarity, Span
from evicortex.validity import match_key

IMPLEMENTATION = "2"
TOO_LONG = ("context_length_exceeded", "maximum context length", "exceeds the available context")
CONTEXT_ONLY = 0.5
"""Factor on the confidence of what is read only with the help of earlier turns."""

_FIELDS = ("subject", "predicate", "object", "quote")
_PREDICATE = re.compile(r"[^\w]+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_FIRST_PERSON = frozenset(("i", "me", "my", "mine", "myself"))


class OpenAICompatibleExtractor:
    """Extracts through ``POST {base_url}/chat/completions`` with a JSON schema.

    The model is asked for quotes; a claim whose quote is not in the window is left out with a
    diagnostic, whatever the model says, and so is one whose subject is neither the speaker nor
    named in the text. A value that the quote does not say gives way to the quote. A reply that is
    not the JSON asked for is an ``ExtractionError`` and never "no facts". Texts longer than
    ``window_characters`` are sent in windows of whole sentences; each window is its own request,
    and no request knows of another, so that nothing in one can change what is read from another.
    Requests are repeated on transport faults only. ``usage`` is of the evidence alone, but for
    ``retries``: those that the client made meanwhile, for whomever.

    By default earlier turns are not shown, and an extraction depends on its own evidence alone.
    With ``previous_turns`` every window is read twice, without them and with them. What is read
    without them stands, whatever they hold. They can only add claims, on words that nothing was
    read from without them; such claims get half the confidence and a diagnostic ``context_only``.

    Args:
        client: The server, its key, timeouts and retries.
        model: The name sent as ``model``.
        revision: What the caller relies on, such as a release date or a weights digest.
        window_characters: Most characters of evidence in one request.
        previous_turns: How many earlier turns are shown as context, in a second request.
        previous_characters: Most characters of them together.
        max_claims: Most claims of one answer; further ones are left out with a diagnostic.
        max_tokens: Most tokens of one answer; one that is cut there is refused.
        temperature: Sampling temperature; 0 for the most likely answer.
        json_schema: Whether to bind the answer to the schema; servers without it get the schema
            in no way, and their answers are checked all the same.

    Raises:
        InputError: An option is impossible.
    """

    def __init__(
        self,
        client: JsonClient,
        *,
        model: str,
        revision: str,
        window_characters: int = 6_000,
        previous_turns: int = 0,
        previous_characters: int = 3_000,
        max_claims: int = 32,
        max_tokens: int = 2_048,
        temperature: float = 0.0,
        json_schema: bool = True,
    ) -> None:
        if min(window_characters, max_tokens, max_claims) < 1:
            raise InputError("windows and answers need at least one character, claim and token")
        if min(previous_turns, previous_characters) < 0:
            raise InputError("previous_turns and previous_characters are 0 or more")
        if not model.strip() or not revision.strip() or not 0 <= temperature <= 2:
            raise InputError("model and revision are names, temperature is from 0 to 2")
        self._client = client
        self._model = model
        self._window = window_characters
        self._turns = previous_turns
        self._characters = previous_characters
        self._most = max_claims
        self._body: dict[str, Any] = {
            "model": model,
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        if json_schema:
            self._body["response_format"] = response_format(max_claims)
        told = [IMPLEMENTATION, prompt_identity(), revision, self._body, window_characters]
        told += [previous_turns, previous_characters, max_claims]
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        self._revision = f"{revision}+prompt{PROMPT_VERSION}+{digest[:16]}"

    @property
    def extractor_id(self) -> str:
        """The name, with the model that is asked; the server's address is no part of it."""
        return f"openai-compatible/{self._model}"

    @property
    def revision(self) -> str:
        """The caller's revision, the prompt's version, and the digest of all settings."""
        return self._revision

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Return the claims whose quotes are in the text, with what the request cost.

        Raises:
            ExtractionError: The reply is not what was asked for (``rule`` ``reply``).
            TextTooLongError: By its word, the server's capacity is exceeded.
            ProviderUnavailableError: No success after all attempts.
        """
        reading = _Reading(context, self._most)
        started = time.monotonic()
        previous = self._previous(context)
        for window in _windows(context.content, self._window):
            self._read(reading, window)
            if previous:
                self._read(reading, window, previous)
        if not context.content.strip():
            reading.tell("no_text", "the text is blank; nothing was asked")
        reading.meter["seconds"] = time.monotonic() - started
        return settle(context, reading.proposals, reading.told, reading.meter)

    def _read(
        self, reading: _Reading, window: Span, previous: Sequence[tuple[str | None, str]] = ()
    ) -> None:
        retries = self._client.usage.retries
        answer = self._ask(reading.context, window, previous)
        reading.meter["calls"] += 1
        reading.meter["retries"] += self._client.usage.retries - retries
        _count(reading.meter, answer)
        reply = _reply(answer)
        found = list(reading.located(window, reply["claims"]))
        if not reply["claims"]:
            reading.tell("model_abstained", _reason(reply["reason"]), span=list(window))
        if previous:
            reading.add_to_what_stands(found, previous)
        else:
            reading.proposals += found

    def _ask(
        self, context: EvidenceContext, window: Span, previous: Sequence[tuple[str | None, str]]
    ) -> Any:
        text = context.content[window.start : window.end]
        body = {**self._body, "messages": messages(context, text, previous)}
        try:
            return self._client.post("/chat/completions", body)
        except StatusError as error:
            if error.status == 413 or any(phrase in error.body for phrase in TOO_LONG):
                raise TextTooLongError(str(error)) from error
            raise

    def _previous(self, context: EvidenceContext) -> list[tuple[str | None, str]]:
        """Return the newest earlier turns that fit, oldest first."""
        room = self._characters
        kept: list[tuple[str | None, str]] = []
        newest = context.previous[-self._turns :] if self._turns else ()
        for actor, text in reversed(newest):
            if len(text) > room:
                break
            room -= len(text)
            kept.append((actor, text))
        return kept[::-1]


def _windows(text: str, limit: int) -> Iterator[Span]:
    """Yield parts of whole sentences of at most ``limit`` characters; longer sentences are cut."""
    start = end = None
    for sentence in sentences(text):
        for begin in range(sentence.start, sentence.end, limit):
            stop = min(begin + limit, sentence.end)
            if start is not None and end is not None and stop - start > limit:
                yield Span(start, end)
                start = None
            start = begin if start is None else start
            end = stop
    if start is not None and end is not None:
        yield Span(start, end)


def _count(meter: dict[str, float], answer: Any) -> None:
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    if not isinstance(usage, Mapping):
        return
    for name in ("prompt_tokens", "completion_tokens"):
        amount = usage.get(name)
        if type(amount) is int and amount >= 0:
            meter[name] += amount


def _reply(answer: Any) -> Mapping[str, Any]:
    """Return the parsed content of the first choice, known to have claims and a reason."""
    try:
        choice = answer["choices"][0]
        content = choice["message"]["content"]
        finish = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _malformed("it holds no message", answer) from error
    if finish == "length":
        raise _malformed(
            "it was cut at max_tokens; raise the limit or shorten the windows", content
        )
    if not isinstance(content, str):
        raise _malformed("its message is no text", content)
    try:
        reply = json.loads(content)
    except ValueError as error:
        raise _malformed("its message is no JSON", content) from error
    if not isinstance(reply, Mapping) or not isinstance(reply.get("claims"), list):
        raise _malformed("it has no list of claims", content)
    reason = reply.get("reason", "")
    return {"claims": reply["claims"], "reason": reason if isinstance(reason, str) else ""}


def _malformed(why: str, what: object) -> ExtractionError:
    return ExtractionError(
        f"the reply of the model cannot be used: {why} ({str(what)[:160]!r})", rule="reply"
    )


def _reason(reason: str) -> str:
    return " ".join(reason.split())[:200] or "no reason given"


class _Reading:
    """One evidence while it is read: what was found, what is to be told, and what it cost."""

    def __init__(self, context: EvidenceContext, most: int) -> None:
        self.context = context
        self.proposals: list[Proposal] = []
        self.told: list[Diagnostic] = []
        self.meter = {"calls": 0.0, "retries": 0.0, "prompt_tokens": 0.0, "completion_tokens": 0.0}
        self._most = most
        self._speaker = context.actor or context.role or "user"
        self._words = _words(context.content)

    def tell(self, code: str, message: str, **details: Any) -> None:
        """Keep a diagnostic."""
        self.told.append(Diagnostic(code, message, details))

    def located(self, window: Span, claims: Sequence[Any]) -> Iterator[Proposal]:
        """Yield the claims whose quotes stand in the window; say what became of the others."""
        if len(claims) > self._most:
            self.tell("too_many_claims", f"only {self._most} claims were looked at")
        used: dict[str, int] = {}
        for number, raw in enumerate(claims[: self._most], start=1):
            values = _checked(number, raw)
            span = _find(self.context.content, window, values["quote"], used)
            subject = self._subject(values["subject"])
            if span is None:
                self.tell(
                    "quote_not_found",
                    f"claim {number}: the quote is not in the text",
                    quote=values["quote"][:200],
                    predicate=values["predicate"][:100],
                )
            elif subject is None:
                self.tell(
                    "subject_not_found",
                    f"claim {number}: the subject is not the speaker, and the text does not name it",
                    span=list(span),
                    subject=values["subject"][:100],
                )
            else:
                yield from self._proposed(number, values, subject, span)

    def _proposed(
        self, number: int, values: Mapping[str, Any], subject: str, span: Span
    ) -> Iterator[Proposal]:
        value = self._value(values["object"], span)
        alike = subject != self._speaker and match_key(subject) == match_key(value)
        if alike or not set(_words(value)) - STOP_WORDS:
            self.tell("no_value", f"claim {number}: it says nothing", span=list(span))
            return
        yield Proposal(
            subject=subject,
            predicate=_PREDICATE.sub("_", values["predicate"].casefold()).strip("_"),
            object=value,
            span=span,
            confidence=values["confidence"],
            polarity=values["polarity"],
        )

    def _subject(self, subject: str) -> str | None:
        """Return the speaker, or who is named in the text itself, or "the speaker's" someone."""
        if subject.casefold() in _FIRST_PERSON or match_key(subject) == match_key(self._speaker):
            return self._speaker
        owner = f"{self._speaker}'s "
        named = subject.removeprefix(owner)
        return subject if _within(_words(named), self._words) else None

    def _value(self, value: str, span: Span) -> str:
        """Return the value if the quote says it, else the quote itself: no value is invented."""
        quote = self.context.content[span.start : span.end]
        if _within(_words(value), _words(quote)) and match_key(value) in match_key(quote):
            return value
        self.tell(
            "value_replaced",
            "the quote does not say the value; the quote stands in its place",
            span=list(span),
            value=value[:100],
        )
        return " ".join(quote.split())

    def add_to_what_stands(
        self, found: Sequence[Proposal], previous: Sequence[tuple[str | None, str]]
    ) -> None:
        """Add what earlier turns helped to read, where nothing was read without them."""
        shown = json.dumps(list(previous), ensure_ascii=False).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(shown).hexdigest()
        self.tell("context_shown", "earlier turns were shown", turns=len(previous), sha256=digest)
        standing = [each.span for each in self.proposals]
        for each in found:
            details = {"span": list(each.span), "predicate": each.predicate[:100]}
            if each in self.proposals:
                continue
            if any(s.start < each.span.end and each.span.start < s.end for s in standing):
                self.tell("context_overruled", "what is read without context stands", **details)
                continue
            self.tell("context_only", "read only with the help of earlier turns", **details)
            self.proposals.append(replace(each, confidence=each.confidence * CONTEXT_ONLY))


def _words(text: str) -> list[str]:
    return _WORD.findall(match_key(text))


def _within(words: Sequence[str], all_words: Sequence[str]) -> bool:
    """Whether the words stand together, whole and in this order."""
    size = len(words)
    return bool(words) and any(
        list(all_words[at : at + size]) == list(words) for at in range(len(all_words) - size + 1)
    )


def _checked(number: int, raw: Any) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise _malformed(f"claim {number} is no object", raw)
    values: dict[str, Any] = {}
    for name in _FIELDS:
        value = raw.get(name)
        if not isinstance(value, str) or not value.strip() or not _encodes(value):
            raise _malformed(f"claim {number}: {name} must be text that is not blank", raw)
        values[name] = value if name == "quote" else " ".join(value.split())
    if not _PREDICATE.sub("", values["predicate"]):
        raise _malformed(f"claim {number}: the predicate names nothing", raw)
    confidence = raw.get("confidence", 1.0)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise _malformed(f"claim {number}: confidence must be a number", raw)
    if not 0 <= confidence <= 1:
        raise _malformed(f"claim {number}: confidence must be from 0 to 1", raw)
    try:
        values["polarity"] = Polarity(raw.get("polarity", "positive"))
    except ValueError as error:
        raise _malformed(f"claim {number}: the polarity is unknown", raw) from error
    return {**values, "confidence": float(confidence)}


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _find(text: str, window: Span, quote: str, used: dict[str, int]) -> Span | None:
    """Return where the quote stands: the next place after its last use, else the first.

    Runs of white space count as equal, nothing else does.
    """
    words = quote.split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    match = pattern.search(text, used.get(quote, window.start), window.end)
    match = match or pattern.search(text, window.start, window.end)
    if match is None:
        return None
    used[quote] = match.end()
    return Span(*match.span())
