"""The learned ranker: its arithmetic, and weights that must be those of their record."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from evicortex.errors import ModelIntegrityError
from evicortex.policy.ranking import CONTEXT, Ranker, bundled, read, written
from evicortex.policy.ranking_features import NAMES

WIDTH = len(NAMES)


def ranker(**given) -> Ranker:
    """A ranker of one hidden unit that corrects nothing, unless told otherwise."""
    zero = np.zeros(WIDTH, np.float32)
    plain = {
        "mean": zero,
        "deviation": np.ones(WIDTH, np.float32),
        "hidden": np.zeros((WIDTH, 1), np.float32),
        "bias": np.zeros(1, np.float32),
        "output": np.ones(1, np.float32),
        "direct": zero,
        "context": np.zeros((WIDTH, 1 + len(CONTEXT)), np.float32),
    }
    return Ranker(**{**plain, **given})


def unit(index: int, value: float = 1.0) -> np.ndarray:
    found = np.zeros(WIDTH, np.float32)
    found[index] = value
    return found


def test_the_direct_path_counts_half_and_the_gate_by_its_root() -> None:
    rows = np.stack([unit(3, 2.0), unit(4)])
    found = ranker(direct=unit(3)).corrections(rows, 0.25)
    assert found.dtype == np.float64
    assert found.tolist() == [0.5 * 0.5 * 2.0, 0.0]
    assert ranker(direct=unit(3)).corrections(rows, 0.0).tolist() == [0.0, 0.0]


def test_features_are_standardised_and_clipped() -> None:
    model = ranker(direct=unit(0), mean=unit(0, 10.0), deviation=np.full(WIDTH, 2.0, np.float32))
    rows = np.stack([unit(0, 12.0), unit(0, 1e9)])
    assert model.corrections(rows, 1.0).tolist() == [0.5 * 1.0, 0.5 * 5.0]


def test_hidden_units_are_rectified() -> None:
    hidden = unit(0)[:, None]
    rows = np.stack([unit(0, -3.0), unit(0, 3.0)])
    assert ranker(hidden=hidden).corrections(rows, 1.0).tolist() == [0.0, 1.5]


def test_the_context_chooses_the_linear_weights_by_its_raw_values() -> None:
    context = np.zeros((WIDTH, 1 + len(CONTEXT)), np.float32)
    context[0, 0], context[0, 1] = 1.0, 10.0
    rows = np.stack([unit(0), unit(0)])
    model = ranker(context=context)
    assert model.corrections(rows, 1.0).tolist() == [0.25, 0.25]
    rows[:, CONTEXT[0]] = 1.0
    assert model.corrections(rows, 1.0).tolist() == [0.25 * 11, 0.25 * 11]


def files(model: Ranker) -> tuple[bytes, dict[str, object]]:
    weights = written(model)
    digest = hashlib.sha256(weights).hexdigest()
    return weights, {"weights_sha256": digest, "features": list(NAMES)}


def test_what_is_written_is_read_again_and_has_the_same_bytes_every_time() -> None:
    model = ranker(direct=unit(5))
    weights, record = files(model)
    assert written(model) == weights
    found = read(weights, json.dumps(record).encode())
    assert found.direct.tolist() == model.direct.tolist()
    assert found.context.shape == model.context.shape


def test_other_weights_than_those_of_the_record_are_refused() -> None:
    _, record = files(ranker())
    other, _ = files(replace(ranker(), direct=unit(1)))
    with pytest.raises(ModelIntegrityError, match="its record says"):
        read(other, json.dumps(record).encode())


def test_weights_for_other_features_are_refused() -> None:
    weights, record = files(ranker())
    swapped = {**record, "features": [NAMES[1], NAMES[0], *NAMES[2:]]}
    with pytest.raises(ModelIntegrityError, match="other features"):
        read(weights, json.dumps(swapped).encode())


def test_the_bundled_ranker_is_intact_and_small() -> None:
    model = bundled()
    assert model is bundled()
    assert len(model.mean) == WIDTH
    assert all(np.isfinite(getattr(model, name)).all() for name in Ranker.__slots__)
    assert (model.deviation > 0).all()
    rows = np.zeros((4, WIDTH), np.float32)
    assert np.isfinite(model.corrections(rows, 1.0)).all()
