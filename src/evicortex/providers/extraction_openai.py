"""Claims through any OpenAI-compatible chat endpoint; its spans are located and checked here."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
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
from evicortex.text import sentences
from evicortex.types import Diagnostic, Polarity, Span
from evicortex.validity import match_key

IMPLEMENTATION = "1"
TOO_LONG = ("context_length_exceeded", "maximum context length", "exceeds the available context")
MAX_CLAIMS = 64
"""Claims of one window that are looked at; the rest are a diagnostic."""

_FIELDS = ("subject", "predicate", "object", "quote")
_PREDICATE = re.compile(r"[^\w]+")


class OpenAICompatibleExtractor:
    """Extracts through ``POST {base_url}/chat/completions`` with a JSON schema.

    The model is asked for quotes; a claim whose quote is not in the window is left out with a
    diagnostic, whatever the model says, and so is one whose subject nobody named. A value that
    the quote does not say gives way to the quote. A reply that is not the JSON asked for is an
    ``ExtractionError`` and never "no facts". Texts longer than ``window_characters`` are sent in
    windows of whole sentences; each window is its own request, so that nothing in one can change
    what is read from another. Requests are repeated on transport faults only.

    Args:
        client: The server, its key, timeouts and retries.
        model: The name sent as ``model``.
        revision: What the caller relies on, such as a release date or a weights digest.
        window_characters: Most characters of evidence in one request.
        previous_turns: How many earlier turns are shown as context.
        previous_characters: Most characters of them together.
        max_tokens: Most tokens of one answer.
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
        previous_turns: int = 6,
        previous_characters: int = 3_000,
        max_tokens: int = 1_024,
        temperature: float = 0.0,
        json_schema: bool = True,
    ) -> None:
        if min(window_characters, max_tokens) < 1 or min(previous_turns, previous_characters) < 0:
            raise InputError("windows and answers need at least one character and token")
        if not model.strip() or not revision.strip() or not 0 <= temperature <= 2:
            raise InputError("model and revision are names, temperature is from 0 to 2")
        self._client = client
        self._model = model
        self._window = window_characters
        self._turns = previous_turns
        self._characters = previous_characters
        self._body: dict[str, Any] = {
            "model": model,
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        if json_schema:
            self._body["response_format"] = response_format()
        told = [IMPLEMENTATION, prompt_identity(), revision, self._body, window_characters]
        told += [previous_turns, previous_characters]
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
        meter = {"calls": 0.0, "retries": 0.0, "prompt_tokens": 0.0, "completion_tokens": 0.0}
        started = time.monotonic()
        proposals: list[Proposal] = []
        told: list[Diagnostic] = []
        for window in _windows(context.content, self._window):
            retries = self._client.usage.retries
            answer = self._ask(context, window)
            meter["calls"] += 1
            meter["retries"] += self._client.usage.retries - retries
            _count(meter, answer)
            reply = _reply(answer)
            proposals += _located(context, window, reply["claims"], told)
            if not reply["claims"]:
                told.append(_silence(window, reply["reason"]))
        if not context.content.strip():
            told.append(Diagnostic("no_text", "the text is blank; nothing was asked"))
        meter["seconds"] = time.monotonic() - started
        return settle(context, proposals, told, meter)

    def _ask(self, context: EvidenceContext, window: Span) -> Any:
        text = context.content[window.start : window.end]
        body = {**self._body, "messages": messages(context, text, self._previous(context))}
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


def _silence(window: Span, reason: str) -> Diagnostic:
    said = " ".join(reason.split())[:200] or "no reason given"
    return Diagnostic("model_abstained", said, {"span": list(window)})


def _located(
    context: EvidenceContext, window: Span, claims: Iterable[Any], told: list[Diagnostic]
) -> Iterator[Proposal]:
    """Yield the claims whose quotes stand in the window, and say what became of the others."""
    used: dict[str, int] = {}
    for number, raw in enumerate(claims, start=1):
        if number > MAX_CLAIMS:
            told.append(Diagnostic("too_many_claims", f"only {MAX_CLAIMS} claims were looked at"))
            return
        values = _checked(number, raw)
        span = _find(context.content, window, values["quote"], used)
        if span is None:
            told.append(
                Diagnostic(
                    "quote_not_found",
                    f"claim {number}: the quote is not in the text",
                    {"quote": values["quote"][:200], "predicate": values["predicate"][:100]},
                )
            )
            continue
        if not _known(context, values["subject"]):
            told.append(
                Diagnostic(
                    "subject_not_found",
                    f"claim {number}: neither the text nor its context names the subject",
                    {"span": list(span), "subject": values["subject"][:100]},
                )
            )
            continue
        yield Proposal(
            subject=values["subject"],
            predicate=_PREDICATE.sub("_", values["predicate"].casefold()).strip("_"),
            object=_value(context, values["object"], span, told),
            span=span,
            confidence=values["confidence"],
            polarity=values["polarity"],
        )


def _known(context: EvidenceContext, subject: str) -> bool:
    """Whether the subject is the speaker, or named in the text or in what was shown with it."""
    speaker = context.actor or context.role or "user"
    wanted = match_key(subject)
    if wanted == match_key(speaker):
        return True
    shown = [context.content, speaker]
    shown += [text for turn in context.previous for text in turn if text is not None]
    return any(wanted in match_key(text) for text in shown)


def _value(context: EvidenceContext, value: str, span: Span, told: list[Diagnostic]) -> str:
    """Return the value if the quote says it, else the quote itself: no value is invented."""
    quote = context.content[span.start : span.end]
    if match_key(value) in match_key(quote):
        return value
    told.append(
        Diagnostic(
            "value_replaced",
            "the quote does not say the value; the quote stands in its place",
            {"span": list(span), "value": value[:100]},
        )
    )
    return " ".join(quote.split())


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
