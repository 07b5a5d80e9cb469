"""Every error that EviCortex raises on purpose.

::

    EviCortexError
    ├── InputError (ValueError)            the caller's argument is wrong; nothing was written
    │   ├── NamespaceError                 missing, empty or malformed namespace
    │   ├── NaiveDatetimeError             a datetime without a time zone, or text without offset
    │   ├── InvalidTimeError               unreadable, out of range, or an interval that ends before it begins
    │   ├── InvalidTextError               text that UTF-8 cannot encode (lone surrogates)
    │   ├── InvalidSpanError               a span outside the evidence, empty, or reversed
    │   ├── InvalidClaimError              a claim draft with a missing or impossible field
    │   ├── BudgetError                    a token budget that is not an integer from 0 to 1,000,000
    │   ├── SelectorError                  purge called with none or several selectors
    │   └── ImportFormatError              a file that is not in the format it was said to be
    ├── NotFoundError (LookupError)        evidence, claim or extraction unknown in this namespace
    ├── ConflictError                      same external_id with a different text
    ├── LedgerError                        the file cannot be used
    │   ├── LedgerVersionError             written by a newer program
    │   ├── NotALedgerError                some other SQLite (or other) file
    │   ├── LedgerBusyError                another writer held the lock for longer than the timeout
    │   ├── ReadOnlyError                  a write on a ledger opened read-only
    │   └── CorruptLedgerError             digests, spans or the audit chain do not agree
    ├── ProviderError                      an embedder, extractor, reranker or token counter failed
    │   ├── ProviderContractError          it returned something that breaks its contract
    │   ├── ModelIntegrityError            a model file is missing or its digest is wrong
    │   ├── TextTooLongError               a text exceeds the provider's capacity
    │   ├── ExtractionError                an extraction was refused as a whole; nothing was stored
    │   └── ProviderUnavailableError       no answer: raised, timed out, no network
    ├── MissingExtraError (ImportError)    an optional dependency is absent; says what to install
    └── ClosedError                        the cortex was closed
"""

from __future__ import annotations


class EviCortexError(Exception):
    """Base of every error that EviCortex raises on purpose."""


class InputError(EviCortexError, ValueError):
    """The caller's argument is wrong; nothing was written."""


class NamespaceError(InputError):
    """The namespace is missing, empty or malformed."""


class NaiveDatetimeError(InputError):
    """A datetime without a time zone, or a time string without an offset."""


class InvalidTimeError(InputError):
    """A time that cannot be read, is out of range, or an interval that ends before it begins."""


class InvalidTextError(InputError):
    """Text that UTF-8 cannot encode, such as a lone surrogate."""


class InvalidSpanError(InputError):
    """A span outside the evidence, empty, or reversed."""


class InvalidClaimError(InputError):
    """A claim draft with a missing or impossible field."""


class BudgetError(InputError):
    """A token budget that is not an integer from 0 to 1,000,000."""


class SelectorError(InputError):
    """Purge was called with no selector or with several."""


class ImportFormatError(InputError):
    """A file that is not in the format it was said to be."""


class NotFoundError(EviCortexError, LookupError):
    """Evidence, a claim or an extraction is unknown in this namespace."""


class ConflictError(EviCortexError):
    """The same external id was stored before with a different text."""


class LedgerError(EviCortexError):
    """The ledger file cannot be used."""


class LedgerVersionError(LedgerError):
    """The ledger was written by a newer program."""


class NotALedgerError(LedgerError):
    """The file is not an EviCortex ledger."""


class LedgerBusyError(LedgerError):
    """Another writer held the lock for longer than the timeout."""


class ReadOnlyError(LedgerError):
    """A write was tried on a ledger that is open read-only."""


class CorruptLedgerError(LedgerError):
    """Digests, spans or the audit chain do not agree with the stored rows."""


class ProviderError(EviCortexError):
    """An embedder, extractor, reranker or token counter failed."""


class ProviderContractError(ProviderError):
    """A provider returned something that breaks its contract; nothing derived from it is kept."""


class ModelIntegrityError(ProviderError):
    """A model file is missing, or its digest is not the pinned one."""


class TextTooLongError(ProviderError):
    """A text exceeds the provider's declared capacity."""


class ExtractionError(ProviderError):
    """An extraction broke a rule and was refused as a whole; nothing was stored.

    ``rule`` is the stable code of the rule that was broken, if it was one rule.
    """

    def __init__(self, message: str, *, rule: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule


class ProviderUnavailableError(ProviderError):
    """A provider gave no answer: it raised, timed out, or could not be reached."""


class MissingExtraError(EviCortexError, ImportError):
    """An optional dependency is absent; the message holds the exact install command."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency; install it with: "
            f"pip install 'evicortex[{extra}]'"
        )
        self.feature = feature
        self.extra = extra


class ClosedError(EviCortexError):
    """The cortex was closed; open it again to use it."""
