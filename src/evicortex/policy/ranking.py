"""The learned ranker: a small correction of the hand fusion for the best candidates.

A linear model of the features whose weights depend, linearly as well, on what kind of query it
is. It has learned the whole correction and counts at ``SHARE``: less travels better. The
correction is multiplied by the square root of the lexical gate, so that ambient statements keep
the hand fusion.

Weights and training record are data of the package; ``benchmarks.train_ranker`` makes both.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import BytesIO
from typing import Final

import numpy as np
import numpy.typing as npt

from evicortex.errors import ModelIntegrityError
from evicortex.policy.ranking_features import NAMES

Float32 = npt.NDArray[np.float32]

WEIGHTS: Final = "ranker.npz"
RECORD: Final = "ranker.json"
VERSION: Final = 2
"""Of the record and the weights: 1 held networks."""
CLIP: Final = 5.0
"""Standardised features are clipped to this many standard deviations."""
SHARE: Final = 0.7
"""How much of what was learned counts."""
CONTEXT: Final = tuple(n for n, name in enumerate(NAMES) if name.startswith("q_"))
"""The features that say something of the query alone."""


@dataclass(frozen=True, slots=True)
class Ranker:
    """The weights, float32.

    With F features and C = 1 + len(CONTEXT): ``mean`` and ``deviation`` (F), ``weights`` (F, C).
    """

    mean: Float32
    deviation: Float32
    weights: Float32

    def corrections(self, features: Float32, gate: float) -> npt.NDArray[np.float64]:
        """Return what to add to the fused score of each candidate; shape (candidates,).

        ``features`` has a row a candidate, ``gate`` is from 0 to 1. No BLAS is used: the bits
        are the same whatever the number of threads.
        """
        scaled = np.clip((features - self.mean) / self.deviation, -CLIP, CLIP)
        asked = np.append(np.float32(1), features[0, list(CONTEXT)])
        weights = np.einsum("fc,c->f", self.weights, asked, optimize=False)
        learned = np.einsum("nf,f->n", scaled, weights, optimize=False)
        corrections: npt.NDArray[np.float64] = math.sqrt(gate) * SHARE * learned.astype(np.float64)
        return corrections


_SHAPES: Final = {
    "mean": (len(NAMES),),
    "deviation": (len(NAMES),),
    "weights": (len(NAMES), 1 + len(CONTEXT)),
}


def read(weights: bytes, record: bytes) -> Ranker:
    """Return the ranker in these files.

    Raises:
        ModelIntegrityError: the weights are not those of the record, or record or weights were
            made for another version or other features.
    """
    said = json.loads(record)
    digest = hashlib.sha256(weights).hexdigest()
    if digest != said["weights_sha256"]:
        raise ModelIntegrityError(
            f"{WEIGHTS} has SHA-256 {digest}, its record says {said['weights_sha256']}; "
            "reinstall the package or train again"
        )
    if said["version"] != VERSION or said["share"] != SHARE or said["clip"] != CLIP:
        raise ModelIntegrityError(
            f"{RECORD} is of version {said['version']}, share {said['share']} and clip "
            f"{said['clip']}; this version reads {VERSION}, {SHARE} and {CLIP}; train again"
        )
    if tuple(said["features"]) != NAMES:
        raise ModelIntegrityError(
            f"{WEIGHTS} was trained on other features than this version computes; train again"
        )
    with np.load(BytesIO(weights), allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    shapes = {name: array.shape for name, array in found.items()}
    if shapes != _SHAPES:
        raise ModelIntegrityError(f"{WEIGHTS} holds {shapes}, not {_SHAPES}; train again")
    return Ranker(**found)


def written(ranker: Ranker) -> bytes:
    """Return the weights as the bytes of an uncompressed ``.npz`` file, without any time."""
    file = BytesIO()
    np.savez(file, **{name: getattr(ranker, name) for name in _SHAPES})
    return file.getvalue()


@cache
def bundled() -> Ranker:
    """Return the ranker of the package, read once; errors as ``read``."""
    folder = resources.files("evicortex.policy")
    return read(folder.joinpath(WEIGHTS).read_bytes(), folder.joinpath(RECORD).read_bytes())
