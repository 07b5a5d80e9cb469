"""The learned ranker: its arithmetic, and weights that must be those of their record."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from evicortex.errors import ModelIntegrityError
from evicortex.policy.ranking import (
    CLIP,
    CONTEXT,
    SHARE,
    VERSION,
    Ranker,
    bundled,
    read,
    written,
)
from evicortex.policy.ranking_features import NAMES

WIDTH = len(NAMES)


def ranker(**given) -> Ranker:
    """A ranker that corrects nothing, unless told otherwise."""
    plain = {
        "mean": np.zeros(WIDTH, np.float32),
        "deviation": np.ones(WIDTH, np.float32),
        "weights": np.zeros((WIDTH, 1 + len(CONTEXT)), np.float32),
    }
    return Ranker(**{**plain, **given})


def unit(index: int, value: float = 1.0) -> np.ndarray:
    found = np.zeros(WIDTH, np.float32)
    found[index] = value
    return found


def always(index: int, value: float = 1.0) -> np.ndarray:
    """Weights that look at one feature, whatever is asked."""
    found = np.zeros((WIDTH, 1 + len(CONTEXT)), np.float32)
    found[index, 0] = value
    return found


def test_what_was_learned_counts_by_its_share_and_by_the_root_of_the_gate() -> None:
    rows = np.stack([unit(3, 2.0), unit(4)])
    model = ranker(weights=always(3))
    found = model.corrections(rows, 0.25)
    assert found.dtype == np.float64
    assert found.tolist() == [0.5 * SHARE * 2.0, 0.0]
    assert model.corrections(rows, 0.0).tolist() == [0.0, 0.0]


def test_features_are_standardised_and_clipped() -> None:
    model = ranker(weights=always(0), mean=unit(0, 10.0), deviation=np.full(WIDTH, 2.0, np.float32))
    rows = np.stack([unit(0, 12.0), unit(0, 1e9)])
    assert model.corrections(rows, 1.0).tolist() == [SHARE * 1.0, SHARE * 5.0]


def test_the_context_chooses_the_weights_by_its_raw_values() -> None:
    weights = always(0)
    weights[0, 1] = 10.0
    rows = np.stack([unit(0), unit(0)])
    model = ranker(weights=weights)
    assert model.corrections(rows, 1.0).tolist() == [SHARE, SHARE]
    rows[:, CONTEXT[0]] = 1.0
    assert model.corrections(rows, 1.0).tolist() == [SHARE * 11, SHARE * 11]


def files(model: Ranker) -> tuple[bytes, dict[str, object]]:
    weights = written(model)
    digest = hashlib.sha256(weights).hexdigest()
    record = {"version": VERSION, "share": SHARE, "clip": CLIP}
    return weights, {**record, "weights_sha256": digest, "features": list(NAMES)}


def test_what_is_written_is_read_again_and_has_the_same_bytes_every_time() -> None:
    model = ranker(weights=always(5))
    weights, record = files(model)
    assert written(model) == weights
    found = read(weights, json.dumps(record).encode())
    assert found.weights.tolist() == model.weights.tolist()


def test_other_weights_than_those_of_the_record_are_refused() -> None:
    _, record = files(ranker())
    other, _ = files(replace(ranker(), weights=always(1)))
    with pytest.raises(ModelIntegrityError, match="its record says"):
        read(other, json.dumps(record).encode())


def test_weights_for_other_features_are_refused() -> None:
    weights, record = files(ranker())
    swapped = {**record, "features": [NAMES[1], NAMES[0], *NAMES[2:]]}
    with pytest.raises(ModelIntegrityError, match="other features"):
        read(weights, json.dumps(swapped).encode())


@pytest.mark.parametrize(("key", "value"), [("version", 1), ("share", 0.5), ("clip", 4.0)])
def test_a_record_of_another_version_is_refused(key, value) -> None:
    weights, record = files(ranker())
    with pytest.raises(ModelIntegrityError, match="train again"):
        read(weights, json.dumps({**record, key: value}).encode())


def test_weights_of_another_shape_are_refused() -> None:
    weights, record = files(ranker(mean=np.zeros(3, np.float32)))
    with pytest.raises(ModelIntegrityError, match="holds"):
        read(weights, json.dumps(record).encode())


def test_the_bundled_ranker_is_intact_and_small() -> None:
    model = bundled()
    assert model is bundled()
    assert len(model.mean) == WIDTH
    assert all(np.isfinite(getattr(model, name)).all() for name in Ranker.__slots__)
    assert (model.deviation > 0).all()
    rows = np.zeros((4, WIDTH), np.float32)
    assert np.isfinite(model.corrections(rows, 1.0)).all()
