"""Fitting the learned ranker: a top-k threshold loss, Adam. NumPy only.

The loss asks of every gold turn to stand above the k-th best other one, for several k that stand
for budgets: softmax-like losses fit the first ranks and forget the rest. On one machine with one
BLAS thread the weights are the same to the bit for the same input and seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicortex.policy.ranking import CLIP, CONTEXT, Ranker
from evicortex.policy.ranking_features import NAMES

Float32 = npt.NDArray[np.float32]

FUSED = NAMES.index("fused")
_FAR = -1e9
_PADDING = -30.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the ranker is trained; every figure that was not the first tried is in the decision."""

    seed: int = 20_260
    epochs: int = 12
    batch: int = 32
    rate: float = 2e-3
    decay: float = 2e-2
    places: tuple[int, ...] = (4, 10, 20, 40, 70)
    margin: float = 0.5


@dataclass(frozen=True, slots=True)
class Example:
    """One question: a row of features a candidate, and which candidates are gold."""

    features: Float32
    gold: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Padded to (questions, candidates, features)."""

    inputs: Float32
    fused: Float32
    gold: npt.NDArray[np.bool_]
    real: npt.NDArray[np.bool_]
    context: Float32

    def take(self, chosen: npt.NDArray[np.intp]) -> _Batch:
        return _Batch(
            self.inputs[chosen],
            self.fused[chosen],
            self.gold[chosen],
            self.real[chosen],
            self.context[chosen],
        )


def slope(scores: Float32, batch: _Batch, recipe: Recipe) -> Float32:
    """Return the gradient of the loss with respect to the scores.

    The loss of a gold turn is the mean over k of softplus(threshold_k - score + margin), where
    threshold_k is the mean of the other candidates around place k (within a fifth of k); the
    gold turns of a question weigh 1 / sqrt(how many) each, a batch counts by its mean.
    """
    others = np.where(batch.real & ~batch.gold, scores, _FAR)
    order = np.argsort(-others, axis=1, kind="stable")
    ordered = np.take_along_axis(others, order, 1)
    golds = np.maximum(batch.gold.sum(axis=1, keepdims=True), 1)
    weight = np.where(batch.gold, golds**-0.5, 0.0)
    found = np.zeros_like(scores)
    for place in recipe.places:
        reach = max(1, place // 5)
        part = slice(max(0, place - reach), place + reach)
        there = ordered[:, part] > _FAR / 10
        count = there.sum(axis=1)
        threshold = np.where(there, ordered[:, part], 0).sum(axis=1) / np.maximum(count, 1)
        short = np.clip(threshold[:, None] - scores + recipe.margin, -30, 30)
        push = weight / (1 + np.exp(-short)) / len(recipe.places) * (count > 0)[:, None]
        found -= push
        share = np.where(there, (push.sum(axis=1) / np.maximum(count, 1))[:, None], 0.0)
        chosen = order[:, part]
        np.put_along_axis(found, chosen, np.take_along_axis(found, chosen, 1) + share, 1)
    return (found / len(scores)).astype(np.float32)


def _gradient(batch: _Batch, weights: Float32, recipe: Recipe) -> Float32:
    projected = batch.inputs @ weights
    scores = np.einsum("bnc,bc->bn", projected, batch.context)
    push = slope(scores + batch.fused, batch, recipe)
    pulled = np.einsum("bnf,bn->bf", batch.inputs, push)
    gradient: Float32 = pulled.T @ batch.context
    return gradient


def _descend(data: _Batch, recipe: Recipe) -> Float32:
    """Adam with decoupled weight decay and a cosine rate, from zero weights.

    Kingma and Ba, Adam, ICLR 2015; Loshchilov and Hutter, Decoupled Weight Decay
    Regularization, ICLR 2019.
    """
    random = np.random.default_rng(recipe.seed)
    weights = np.zeros((data.inputs.shape[2], data.context.shape[1]), np.float32)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    count = len(data.inputs)
    steps = recipe.epochs * -(-count // recipe.batch)
    step = 0
    for _ in range(recipe.epochs):
        order = random.permutation(count)
        for begin in range(0, count, recipe.batch):
            step += 1
            found = _gradient(data.take(order[begin : begin + recipe.batch]), weights, recipe)
            rate = recipe.rate * 0.5 * (1 + np.cos(np.pi * step / steps))
            first = 0.9 * first + 0.1 * found
            second = 0.999 * second + 0.001 * found**2
            largest = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            move = first / (1 - 0.9**step) / largest
            weights -= (rate * (move + recipe.decay * weights)).astype(np.float32)
    return weights


def fit(examples: Sequence[Example], recipe: Recipe) -> Ranker:
    """Return a ranker trained on these questions; those without a gold candidate are left out."""
    usable = [example for example in examples if example.gold.any()]
    every = np.concatenate([example.features for example in usable]).astype(np.float64)
    mean, deviation = every.mean(axis=0), every.std(axis=0)
    deviation[deviation < 1e-6] = 1.0
    mean, deviation = mean.astype(np.float32), deviation.astype(np.float32)
    longest = max(len(example.features) for example in usable)
    shape = len(usable), longest
    inputs = np.zeros((*shape, len(NAMES)), np.float32)
    fused = np.full(shape, _PADDING, np.float32)
    gold, real = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for number, example in enumerate(usable):
        size = len(example.features)
        inputs[number, :size] = np.clip((example.features - mean) / deviation, -CLIP, CLIP)
        fused[number, :size] = example.features[:, FUSED]
        gold[number, :size], real[number, :size] = example.gold, True
    context = np.array([[1.0, *example.features[0, list(CONTEXT)]] for example in usable])
    data = _Batch(inputs, fused, gold, real, context.astype(np.float32))
    return Ranker(mean, deviation, _descend(data, recipe))
