"""Text analysis without models: index terms, words, sentences, passages, duplicate keys.

Everything here is pure and deterministic. Positions are half-open ranges of code points of the
text that was given, never of a normalised form.
"""

from evicortex.text.analysis import ANALYSIS, content_terms, terms
from evicortex.text.folding import fold, normalized
from evicortex.text.segments import (
    Block,
    Word,
    blocks,
    estimate_tokens,
    passages,
    sentences,
    words,
)
from evicortex.text.stopwords import STOP_WORDS

__all__ = [
    "ANALYSIS",
    "STOP_WORDS",
    "Block",
    "Word",
    "blocks",
    "content_terms",
    "estimate_tokens",
    "fold",
    "normalized",
    "passages",
    "sentences",
    "terms",
    "words",
]
