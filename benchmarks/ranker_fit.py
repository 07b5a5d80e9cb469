"""Fitting the learned ranker: a top-k threshold loss, small networks, Adam. NumPy only.

The loss asks of every gold turn to stand above the k-th best other one, for several k that stand
for budgets: softmax-like losses fit the first ranks and forget the rest. On one machine with one
BLAS thread the weights are the same to the bit for the same input and seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicortex.policy.ranking import CLIP, CONTEXT, Ranker
from evicortex.policy.ranking_features import NAMES

Float32 = npt.NDArray[np.float32]
Parameters = dict[str, Float32]

FUSED = NAMES.index("fused")
_FAR = -1e9
_PADDING = -30.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the ranker is trained; every figure that was not the first tried is in the decision."""

    seed: int = 20_260
    networks: int = 3
    units: int = 32
    epochs: int = 12
    batch: int = 32
    rate: float = 2e-3
    decay: float = 1e-2
    context_decay: float = 2e-2
    dropout: float = 0.3
    """Share of the features that is hidden from a network in one batch."""
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


def _descend(
    data: _Batch,
    parameters: Parameters,
    decay: Mapping[str, float],
    gradients: Callable[[_Batch, Parameters], Parameters],
    random: np.random.Generator,
    recipe: Recipe,
) -> Parameters:
    """Adam with decoupled weight decay and a cosine rate.

    Kingma and Ba, Adam, ICLR 2015; Loshchilov and Hutter, Decoupled Weight Decay
    Regularization, ICLR 2019.
    """
    first = {name: np.zeros_like(value) for name, value in parameters.items()}
    second = {name: np.zeros_like(value) for name, value in parameters.items()}
    count = len(data.inputs)
    steps = recipe.epochs * -(-count // recipe.batch)
    step = 0
    for _ in range(recipe.epochs):
        order = random.permutation(count)
        for begin in range(0, count, recipe.batch):
            step += 1
            slopes = gradients(data.take(order[begin : begin + recipe.batch]), parameters)
            rate = recipe.rate * 0.5 * (1 + np.cos(np.pi * step / steps))
            for name, value in parameters.items():
                first[name] = 0.9 * first[name] + 0.1 * slopes[name]
                second[name] = 0.999 * second[name] + 0.001 * slopes[name] ** 2
                largest = np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8
                move: Float32 = first[name] / (1 - 0.9**step) / largest
                change: Float32 = rate * (move + decay.get(name, 0.0) * value)
                value -= change.astype(np.float32)
    return parameters


def _network(data: _Batch, seed: int, recipe: Recipe) -> Parameters:
    random = np.random.default_rng(seed)
    width = data.inputs.shape[2]
    units = recipe.units
    parameters = {
        "hidden": random.normal(0, width**-0.5, (width, units)).astype(np.float32),
        "bias": np.zeros(units, np.float32),
        "output": random.normal(0, 0.05, units).astype(np.float32),
        "direct": np.zeros(width, np.float32),
    }

    def gradients(batch: _Batch, now: Parameters) -> Parameters:
        kept = np.where(random.random(width) > recipe.dropout, 1 / (1 - recipe.dropout), 0.0)
        inputs = batch.inputs.reshape(-1, width) * kept.astype(np.float32)
        before = inputs @ now["hidden"] + now["bias"]
        active = np.maximum(before, 0)
        scores = (active @ now["output"] + inputs @ now["direct"]).reshape(batch.fused.shape)
        push = slope(scores + batch.fused, batch, recipe).reshape(-1)
        back = push[:, None] * now["output"] * (before > 0)
        return {
            "hidden": inputs.T @ back,
            "bias": back.sum(axis=0),
            "output": active.T @ push,
            "direct": inputs.T @ push,
        }

    decay = dict.fromkeys(("hidden", "output", "direct"), recipe.decay)
    return _descend(data, parameters, decay, gradients, random, recipe)


def _in_context(data: _Batch, seed: int, recipe: Recipe) -> Float32:
    random = np.random.default_rng(seed)
    shape = data.inputs.shape[2], data.context.shape[1]

    def gradients(batch: _Batch, now: Parameters) -> Parameters:
        projected = batch.inputs @ now["context"]
        scores = np.einsum("bnc,bc->bn", projected, batch.context)
        push = slope(scores + batch.fused, batch, recipe)
        pulled = np.einsum("bnf,bn->bf", batch.inputs, push)
        return {"context": pulled.T @ batch.context}

    parameters = {"context": np.zeros(shape, np.float32)}
    decay = {"context": recipe.context_decay}
    return _descend(data, parameters, decay, gradients, random, recipe)["context"]


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
    networks = [_network(data, recipe.seed + n, recipe) for n in range(recipe.networks)]
    share = np.float32(1 / recipe.networks)
    return Ranker(
        mean,
        deviation,
        np.concatenate([each["hidden"] for each in networks], axis=1),
        np.concatenate([each["bias"] for each in networks]),
        np.concatenate([each["output"] for each in networks]) * share,
        np.sum([each["direct"] for each in networks], axis=0) * share,
        _in_context(data, recipe.seed + 100, recipe),
    )
