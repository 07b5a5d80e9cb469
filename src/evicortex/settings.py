"""One frozen object for everything that can be set, and the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from evicortex.errors import InputError
from evicortex.pipeline.wiring import RoomOptions

ENVIRONMENT_PREFIX = "EVICORTEX_"


def _boolean(text: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    try:
        return known[text.strip().lower()]
    except KeyError:
        raise ValueError("use 1 or 0") from None


_VARIABLES: Mapping[str, tuple[str, str, Callable[[str], object]]] = {
    "EVICORTEX_BUSY_TIMEOUT": ("ledger", "busy_timeout", float),
    "EVICORTEX_SYNCHRONOUS": ("ledger", "synchronous", str.upper),
    "EVICORTEX_RECALL_CANDIDATES": ("recall", "candidates", int),
    "EVICORTEX_LITERAL_CAP": ("literal", "max_rows", int),
    "EVICORTEX_EXTRACTION_TIMEOUT": ("extraction", "timeout_seconds", float),
    "EVICORTEX_EMBEDDING_TIMEOUT": ("providers", "embedding_timeout_seconds", float),
    "EVICORTEX_RERANK_TIMEOUT": ("providers", "rerank_timeout_seconds", float),
    "EVICORTEX_CUT": ("packing", "cut", _boolean),
    "EVICORTEX_RANKER": ("fusion", "ranker", _boolean),
    "EVICORTEX_SENTENCES": ("semantic", "sentences", _boolean),
}
"""Variable: (part of the options, field, reader). Durations are in seconds."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a cortex behaves. Every field is a frozen options object of its room.

    Build one with keyword arguments, or from the environment with :meth:`from_environment`;
    ``EviCortex.open`` reads the environment once when no settings are given.
    """

    options: RoomOptions = field(default_factory=RoomOptions)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the defaults changed by ``EVICORTEX_*`` variables.

        Raises:
            InputError: a variable of that prefix that is unknown, or a value that does not fit.
        """
        found = os.environ if environment is None else environment
        options = RoomOptions()
        for name, text in sorted(found.items()):
            if not name.startswith(ENVIRONMENT_PREFIX):
                continue
            options = _with(options, name, text)
        return cls(options)


def _with(options: RoomOptions, name: str, text: str) -> RoomOptions:
    known = _VARIABLES.get(name)
    if known is None:
        raise InputError(f"{name} is not a setting; there are {', '.join(sorted(_VARIABLES))}")
    part, key, read = known
    try:
        changed = replace(getattr(options, part), **{key: read(text)})
    except ValueError as error:
        raise InputError(f"{name}={text!r} cannot be used: {error}") from error
    return replace(options, **{part: changed})
