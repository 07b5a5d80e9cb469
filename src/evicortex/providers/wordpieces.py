"""Encoding of one text into the pieces of a tokenizer, with a finite capacity and no truncation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evicortex.errors import InvalidTextError, TextTooLongError
from evicortex.types import Span

CHARACTERS_PER_TOKEN = 256
"""Longer texts than this many characters a token are refused before they are tokenised."""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """Token ids, their type ids, and the range of characters of each: (0, 0) for special tokens.

    All arrays have one row a token; ``offsets`` has shape (tokens, 2).
    """

    ids: npt.NDArray[np.int64]
    type_ids: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


class WordPieces:
    """Encodes texts of at most ``max_tokens`` pieces, special tokens included.

    Args:
        tokenizer: A ``tokenizers.Tokenizer``. Its own truncation and padding are turned off.
        max_tokens: The capacity, special tokens included.
        prefix: Text put before every text; offsets are those of the text without it.
    """

    def __init__(self, tokenizer: Any, max_tokens: int, *, prefix: str = "") -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._prefix = prefix
        self._max_characters = max_tokens * CHARACTERS_PER_TOKEN

    def encode(self, text: str) -> EncodedText:
        """Return the encoding of ``text``.

        Raises:
            TextTooLongError: It exceeds the capacity.
            InvalidTextError: UTF-8 cannot encode it.
        """
        if len(text) > self._max_characters:
            raise TextTooLongError(
                f"a text of {len(text)} characters exceeds the encoder's {self._max_characters}"
            )
        encoding = self._encoding(text)
        if len(encoding.ids) > self._max_tokens:
            raise TextTooLongError(
                f"a text of {len(encoding.ids)} tokens exceeds the encoder's {self._max_tokens}; "
                "embed its windows() instead"
            )
        offsets = np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        return EncodedText(
            np.asarray(encoding.ids, dtype=np.int64),
            np.asarray(encoding.type_ids, dtype=np.int64),
            np.maximum(offsets - len(self._prefix), 0),
        )

    def fits(self, text: str) -> bool:
        """Tell whether ``encode`` takes ``text``."""
        if len(text) > self._max_characters:
            return False
        return len(self._encoding(text).ids) <= self._max_tokens

    def windows(self, text: str) -> tuple[Span, ...]:
        """Cut ``text`` into spans that fit, of about equal numbers of tokens, at words' borders.

        The spans touch each other and cover the whole text; a blank text has none.

        Raises:
            InvalidTextError: UTF-8 cannot encode it.
        """
        if not text.strip():
            return ()
        return tuple(self._windows(text, 0, len(text)))

    def _windows(self, text: str, start: int, end: int) -> Iterator[Span]:
        for piece_start, piece_end in self._cut(text, start, end):
            if self.fits(text[piece_start:piece_end]):
                yield Span(piece_start, piece_end)
            else:
                middle = _middle(text, piece_start, piece_end)
                yield from self._windows(text, piece_start, middle)
                yield from self._windows(text, middle, piece_end)

    def _cut(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        if end - start > self._max_characters:
            return [(start, end)]
        encoding = self._encoding(text[start:end])
        special = len(encoding.ids) - sum(word is not None for word in encoding.word_ids)
        tokens = len(encoding.ids) - special
        capacity = max(1, self._max_tokens - special)
        parts = -(-tokens // capacity)
        if parts <= 1:
            return [(start, end)]
        share = -(-tokens // parts)
        cuts = [start]
        seen = since = 0
        previous = None
        for word, (offset, _) in zip(encoding.word_ids, encoding.offsets, strict=True):
            if word is None:
                continue
            place = start + max(0, offset - len(self._prefix))
            if word != previous and seen - since >= share and place > cuts[-1]:
                cuts.append(place)
                since = seen
            previous = word
            seen += 1
        return list(zip(cuts, [*cuts[1:], end], strict=True))

    def _encoding(self, text: str) -> Any:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidTextError(
                f"the text cannot be encoded as UTF-8: {error.reason}"
            ) from error
        return self._tokenizer.encode(self._prefix + text)


def _middle(text: str, start: int, end: int) -> int:
    """Return a place to cut near the middle, after white space if there is any in the middle half."""
    middle = (start + end) // 2
    reach = (end - start) // 4
    for place in range(middle, middle - reach, -1):
        if text[place - 1].isspace():
            return place
    return middle
