"""EviCortex: evidence-first long-term memory for LLM agents.

``EviCortex.open(path)`` is where to begin; every public name is listed in ``__all__``.
"""

from evicortex import errors, types
from evicortex.cortex import EviCortex
from evicortex.errors import ConflictError, EviCortexError, InputError, NotFoundError
from evicortex.settings import Settings
from evicortex.types import (
    Authority,
    Claim,
    ClaimDraft,
    ContextPack,
    Diagnostic,
    Evidence,
    EvidenceDraft,
    PackItem,
    RejectedDraft,
    RememberReceipt,
    Span,
    TimeMention,
)

__version__ = "0.1.0"

__all__ = [
    "Authority",
    "Claim",
    "ClaimDraft",
    "ConflictError",
    "ContextPack",
    "Diagnostic",
    "EviCortex",
    "EviCortexError",
    "Evidence",
    "EvidenceDraft",
    "InputError",
    "NotFoundError",
    "PackItem",
    "RejectedDraft",
    "RememberReceipt",
    "Settings",
    "Span",
    "TimeMention",
    "__version__",
    "errors",
    "types",
]
