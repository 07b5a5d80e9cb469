"""The explicit grammar of the synthetic stream. It is a parser, not an understanding of language.

::

    statement := opening SUBJECT "'s " PREDICATE verb VALUE [" since " DATE] [" until " DATE] "."
    opening   := "For the record, " | "Correction: "
    verb      := " is " | " is not "
    SUBJECT   := ASCII letters, one word or several
    PREDICATE := one of the configured predicates, with spaces for underscores
    VALUE     := ASCII letters, digits, hyphens and single spaces, without " since " or " until "
    DATE      := YYYY-MM-DD, midnight UTC

A statement is a claim whose span is the value; ``is not`` is negative, ``since`` is
``valid_from`` (else the evidence's time), ``until`` is ``valid_to``, exclusive. A correction
names the ``since`` of what it corrects: the same beginning, recorded later, so it replaces it.
Nothing else in a text is a claim.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from evicortex.errors import InputError
from evicortex.protocols import EvidenceContext, ExtractionResult
from evicortex.providers.proposals import Proposal, settle
from evicortex.types import Cardinality, Diagnostic, Polarity, Span

PREDICATES: Mapping[str, Cardinality] = MappingProxyType(
    {
        "city": "single",
        "employer": "single",
        "car": "single",
        "dentist": "single",
        "phone_number": "single",
        "hobby": "multi",
        "allergy": "multi",
        "language": "multi",
    }
)
"""What the synthetic stream speaks about, and whether one value holds at a time."""

GRAMMAR = "1"
"""Version of the grammar above."""

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*")


class CanonicalGrammarExtractor:
    """Extracts statements of the canonical grammar, for deterministic tests and benchmarks.

    Args:
        predicates: What statements may be about, in lower case with underscores, and the
            cardinality that their claims declare.

    Raises:
        InputError: No predicate, or a name that is not lower case with underscores.
    """

    def __init__(self, predicates: Mapping[str, Cardinality] = PREDICATES) -> None:
        bad = [name for name in predicates if not _NAME.fullmatch(name)]
        if bad or not predicates:
            raise InputError(f"predicates are lower-case words joined by underscores, not {bad}")
        self._predicates = dict(predicates)
        names = "|".join(name.replace("_", " ") for name in sorted(predicates, key=len)[::-1])
        self._statement = re.compile(
            r"(?:For the record, |Correction: )(?P<subject>[A-Za-z]+(?: [A-Za-z]+)*)'s "
            rf"(?P<predicate>{names}) is (?P<negation>not )?"
            r"(?P<value>[A-Za-z0-9-]+(?: (?!since |until )[A-Za-z0-9-]+)*)"
            rf"(?: since (?P<since>{_DATE}))?(?: until (?P<until>{_DATE}))?\."
        )
        told = json.dumps([GRAMMAR, sorted(predicates.items())]).encode()
        self._revision = f"{GRAMMAR}+{hashlib.sha256(told).hexdigest()[:16]}"

    @property
    def extractor_id(self) -> str:
        """The name."""
        return "evicortex/canonical-grammar"

    @property
    def revision(self) -> str:
        """The grammar's version and the digest of the predicates."""
        return self._revision

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Return the statements of the text; a date that does not exist is a diagnostic."""
        proposals: list[Proposal] = []
        told: list[Diagnostic] = []
        for match in self._statement.finditer(context.content):
            try:
                proposals.append(self._proposal(match))
            except ValueError as error:
                told.append(
                    Diagnostic(
                        "unresolved_span",
                        f"no such date in {match[0]!r}: {error}",
                        {"span": list(match.span())},
                    )
                )
        if not proposals and not told:
            told.append(Diagnostic("no_statement", "no statement of the canonical grammar"))
        return settle(context, proposals, told)

    def _proposal(self, match: re.Match[str]) -> Proposal:
        predicate = match["predicate"].replace(" ", "_")
        return Proposal(
            subject=match["subject"],
            predicate=predicate,
            object=match["value"],
            span=Span(*match.span("value")),
            confidence=1.0,
            polarity=Polarity.NEGATIVE if match["negation"] else Polarity.POSITIVE,
            valid_from=_midnight(match["since"]),
            valid_to=_midnight(match["until"]),
            cardinality=self._predicates[predicate],
        )


def _midnight(text: str | None) -> datetime | None:
    return None if text is None else datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
