"""What an extractor must beat: nothing, every noun phrase, and the trivial majority relation."""

from __future__ import annotations

import re

from evicortex.protocols import EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.text import STOP_WORDS
from evicortex.types import Span

_WORD = re.compile(r"[^\W_][\w'’&.-]*(?<![.'’-])")
_NAME = re.compile(r"[A-Z][\w'’&-]*(?:\s[A-Z][\w'’&-]*)*")


class _Baseline:
    def __init__(self, name: str, predicate: str) -> None:
        self._name = name
        self._predicate = predicate

    @property
    def extractor_id(self) -> str:
        """The name, with the predicate that it gives to everything."""
        return f"baseline/{self._name}"

    @property
    def revision(self) -> str:
        """The predicate that it gives to everything."""
        return f"1+{self._predicate or 'none'}"

    def spans(self, text: str) -> list[Span]:
        """Return the characters that are claimed."""
        return []

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Claim every span as a value of the one predicate, of whoever speaks."""
        claims = tuple(
            ExtractedClaim(
                evidence_id=context.evidence_id,
                evidence_digest=context.digest,
                subject=context.actor or "user",
                predicate=self._predicate,
                object=context.content[span.start : span.end],
                span=span,
                quote=context.content[span.start : span.end],
                confidence=0.5,
            )
            for span in self.spans(context.content)
        )
        return ExtractionResult(claims, abstained=not claims)


class Nothing(_Baseline):
    """Abstains always."""

    def __init__(self) -> None:
        super().__init__("nothing", "none")


class NounPhrases(_Baseline):
    """Claims every run of words that are no stop words, as values of the majority predicate."""

    def __init__(self, predicate: str) -> None:
        super().__init__("noun-phrases", predicate)

    def spans(self, text: str) -> list[Span]:
        """Return runs of content words on one line without punctuation between."""
        found: list[Span] = []
        for match in _WORD.finditer(text):
            if match[0].lower() in STOP_WORDS:
                continue
            if found and text[found[-1].end : match.start()] == " ":
                found[-1] = Span(found[-1].start, match.end())
            else:
                found.append(Span(*match.span()))
        return found


class Majority(_Baseline):
    """Claims every capitalised name as a value of the majority predicate."""

    def __init__(self, predicate: str) -> None:
        super().__init__("majority", predicate)

    def spans(self, text: str) -> list[Span]:
        """Return capitalised runs that are no stop word."""
        return [
            Span(*match.span())
            for match in _NAME.finditer(text)
            if match[0].lower() not in STOP_WORDS
        ]
