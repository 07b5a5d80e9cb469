"""Rebuilds all-MiniLM-L6-v2 from the packaged int8 weights as a faster graph.

The packaged graph stores int8 weights but multiplies in float32. Two other graphs are built
from the same weights:

``dynamic-u8``
    Dynamic 8-bit quantisation of the activations (one scale a tensor, hence one text a run),
    per-column weights. Weights are stored as **unsigned** bytes with zero point 128. Signed
    weights go through ``vpmaddubsw`` on processors with AVX2 but without VNNI, whose 16-bit
    sums saturate and change the result; unsigned weights take the exact kernel there and the
    VNNI kernel elsewhere, so the integer sums are exact on every processor. 44 activation
    channels with outliers are divided by a constant that multiplies the matching weight rows,
    so that they do not coarsen the scale of the whole tensor (the idea of SmoothQuant,
    https://arxiv.org/abs/2211.10438).

``blocks-8bit``
    ``MatMulNBits`` with 8 bits and blocks of 32 inputs, float32 activations in and out.

Both use ONNX Runtime's contributed operators ``MultiHeadAttention`` and ``Gelu``, and separate
``Add`` and ``LayerNormalization`` (the fused operator is slower). The bytes are a pure function
of the packaged model, so a graph is named and cached by its SHA-256.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evicortex.errors import MissingExtraError, ModelIntegrityError

Array = npt.NDArray[Any]
Recipe = Literal["dynamic-u8", "blocks-8bit"]

LAYERS = 6
HEADS = 12
WIDTH = 384
EPSILON = 1e-12  # of every LayerNormalization, as in the model's configuration
BLOCK = 32
ZERO_POINT = 128  # of unsigned bytes that hold symmetric weights
IR_VERSION = 10
OPSETS = (("", 17), ("com.microsoft", 1))
MATRICES = ("query", "key", "value", "attention_out", "ffn_in", "ffn_out")

OUTLIERS: Mapping[str, Mapping[int, float]] = {
    "wqkv0": {63: 1.2, 99: 1.3},
    "wi0": {63: 2.1, 99: 5.7, 157: 1.3, 267: 1.4, 303: 1.3},
    "wf0": {856: 4.1},
    "wqkv1": {99: 1.6, 157: 1.3},
    "wi1": {63: 1.7, 99: 6.1, 157: 1.5, 223: 1.3, 267: 1.4},
    "wf1": {607: 3.4},
    "wqkv2": {99: 1.6, 157: 1.2},
    "wi2": {63: 1.5, 99: 5.5, 157: 1.4, 223: 2.6},
    "wf2": {218: 2.4, 1004: 2.9},
    "wqkv3": {99: 1.9, 157: 1.2},
    "wi3": {63: 2.0, 99: 5.8, 157: 1.3, 223: 3.0},
    "wf3": {358: 2.3},
    "wqkv4": {99: 2.1, 157: 1.4},
    "wi4": {63: 1.8, 99: 4.3, 127: 2.6, 157: 1.2, 223: 2.6},
    "wqkv5": {99: 2.0, 157: 1.2},
    "wi5": {99: 2.5, 127: 1.4, 223: 2.4, 319: 1.4},
}
"""Divisors of activation channels, by matrix and layer; calibrated on 64 synthetic turns."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A quantised matrix: int8 ``values`` (inputs, outputs), float32 ``scales`` (outputs,)."""

    values: Array
    scales: Array


@dataclass(frozen=True, slots=True)
class Weights:
    """The packaged model's tensors by name, and its matrices by layer and role."""

    tensors: Mapping[str, Array]
    layers: tuple[Mapping[str, Matrix], ...]


def read_weights(model: bytes) -> Weights:
    """Read the packaged model.

    Raises:
        MissingExtraError: The ``onnx`` package is not installed.
        ModelIntegrityError: The model has other tensors than the one this recipe was made for.
    """
    onnx = _onnx()
    graph = onnx.load_model_from_string(model).graph
    tensors = {item.name: onnx.numpy_helper.to_array(item) for item in graph.initializer}
    numbers = sorted(
        int(match.group(1)) for name in tensors if (match := re.fullmatch(r"val_(\d+)_q", name))
    )
    if len(numbers) != LAYERS * len(MATRICES):
        raise ModelIntegrityError(
            f"the packaged model has {len(numbers)} quantised matrices, "
            f"not {LAYERS * len(MATRICES)}"
        )
    matrices = [
        Matrix(tensors[f"val_{number}_q"], tensors[f"val_{number}_scale"].reshape(-1))
        for number in numbers
    ]
    step = len(MATRICES)
    layers = tuple(
        dict(zip(MATRICES, matrices[start : start + step], strict=True))
        for start in range(0, len(matrices), step)
    )
    return Weights(tensors, layers)


def build_graph(weights: Weights, recipe: Recipe) -> bytes:
    """Return the serialised graph: input ``input_ids`` (1, n), output ``last_hidden_state``.

    The output has shape (1, n, 384). Texts of a batch must have equal lengths, for the graph
    has no attention mask; with ``dynamic-u8`` a batch shares its activation scales, so run it
    with one text at a time.

    Raises:
        MissingExtraError: The ``onnx`` package is not installed.
    """
    builder = _Builder(weights, recipe)
    return builder.serialised(builder.encoder())


def _onnx() -> Any:
    try:
        import onnx
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingExtraError("rebuilding the encoder's graph", "local") from error
    return onnx


class _Builder:
    """Collects nodes and initializers; every node is named after its first output."""

    def __init__(self, weights: Weights, recipe: Recipe) -> None:
        self._onnx = _onnx()
        self._weights = weights
        self._recipe = recipe
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def encoder(self) -> str:
        """Add the whole encoder and return the name of its output."""
        hidden = self._embeddings()
        for layer in range(LAYERS):
            hidden = self._layer(layer, hidden)
        return hidden

    def serialised(self, output: str) -> bytes:
        """Return the model's bytes, the same on every call."""
        helper = self._onnx.helper
        kinds = self._onnx.TensorProto
        graph = helper.make_graph(
            self._nodes,
            f"all-MiniLM-L6-v2 {self._recipe}",
            [helper.make_tensor_value_info("input_ids", kinds.INT64, ["batch", "tokens"])],
            [helper.make_tensor_value_info(output, kinds.FLOAT, ["batch", "tokens", WIDTH])],
            self._constants,
        )
        model = helper.make_model(
            graph,
            producer_name="evicortex",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS],
        )
        content: bytes = model.SerializeToString(deterministic=True)
        return content

    def _constant(self, name: str, value: Array) -> str:
        array = np.ascontiguousarray(value)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _node(
        self,
        operator: str,
        inputs: list[str],
        *outputs: str,
        contrib: bool = False,
        **attributes: Any,
    ) -> str:
        self._nodes.append(
            self._onnx.helper.make_node(
                operator,
                inputs,
                list(outputs),
                name=outputs[0],
                domain="com.microsoft" if contrib else "",
                **attributes,
            )
        )
        return outputs[0]

    def _embeddings(self) -> str:
        tensors, prefix = self._weights.tensors, "inner.embeddings"
        positions = (
            tensors[f"{prefix}.position_embeddings.weight_q"].astype(np.float32)
            * tensors[f"{prefix}.position_embeddings.weight_scale"]
        ) + tensors[f"{prefix}.token_type_embeddings.weight"][0]
        words = self._constant("words", tensors[f"{prefix}.word_embeddings.weight_q"])
        scales = self._constant("words.scale", tensors[f"{prefix}.word_embeddings.weight_scale"])
        places = self._constant("positions", positions[np.newaxis])
        zero = self._constant("zero", np.array([0], dtype=np.int64))
        one = self._constant("one", np.array([1], dtype=np.int64))
        self._node("Gather", [words, "input_ids"], "embed.bytes")
        self._node("Cast", ["embed.bytes"], "embed.float", to=self._onnx.TensorProto.FLOAT)
        self._node("Gather", [scales, "input_ids"], "embed.scale")
        self._node("Mul", ["embed.float", "embed.scale"], "embed.word")
        self._node("Shape", ["input_ids"], "length", start=1, end=2)
        self._node("Slice", [places, zero, "length", one], "embed.position")
        self._node("Add", ["embed.word", "embed.position"], "embed.sum")
        return self._normalised("embed.sum", f"{prefix}.LayerNorm", "hidden0")

    def _layer(self, layer: int, hidden: str) -> str:
        matrices = self._weights.layers[layer]
        prefix = f"inner.encoder.layer.{layer}"
        joined = [matrices[role] for role in ("query", "key", "value")]
        qkv = Matrix(
            np.concatenate([matrix.values for matrix in joined], axis=1),
            np.concatenate([matrix.scales for matrix in joined]),
        )
        biases = [
            self._weights.tensors[f"{prefix}.attention.self.{role}.bias"]
            for role in ("query", "key", "value")
        ]
        mixed = self._linear(hidden, f"wqkv{layer}", qkv, np.concatenate(biases))
        sizes = self._constant(f"split{layer}", np.array([WIDTH] * 3, dtype=np.int64))
        heads = [f"query{layer}", f"key{layer}", f"value{layer}"]
        self._node("Split", [mixed, sizes], *heads, axis=-1)
        context = self._node(
            "MultiHeadAttention", heads, f"context{layer}", contrib=True, num_heads=HEADS
        )
        attended = self._residual(
            context, hidden, f"wo{layer}", matrices["attention_out"], f"{prefix}.attention.output"
        )
        bias = self._weights.tensors[f"{prefix}.intermediate.dense.bias"]
        inner = self._linear(attended, f"wi{layer}", matrices["ffn_in"], bias)
        active = self._node("Gelu", [inner], f"gelu{layer}", contrib=True)
        return self._residual(
            active, attended, f"wf{layer}", matrices["ffn_out"], f"{prefix}.output"
        )

    def _residual(self, x: str, skip: str, name: str, matrix: Matrix, prefix: str) -> str:
        projected = self._linear(x, name, matrix, self._weights.tensors[f"{prefix}.dense.bias"])
        total = self._node("Add", [projected, skip], f"{name}.sum")
        last = name == f"wf{LAYERS - 1}"
        return self._normalised(
            total, f"{prefix}.LayerNorm", "last_hidden_state" if last else f"{name}.norm"
        )

    def _normalised(self, x: str, prefix: str, output: str) -> str:
        tensors = self._weights.tensors
        weight = self._constant(f"{output}.weight", tensors[f"{prefix}.weight"])
        bias = self._constant(f"{output}.bias", tensors[f"{prefix}.bias"])
        return self._node("LayerNormalization", [x, weight, bias], output, axis=-1, epsilon=EPSILON)

    def _linear(self, x: str, name: str, matrix: Matrix, bias: Array) -> str:
        shift = self._constant(f"{name}.bias", bias)
        if self._recipe == "blocks-8bit":
            values, scales = _blocks(matrix)
            self._node(
                "MatMulNBits",
                [x, self._constant(name, values), self._constant(f"{name}.scale", scales)],
                f"{name}.product",
                contrib=True,
                K=matrix.values.shape[0],
                N=matrix.values.shape[1],
                bits=8,
                block_size=BLOCK,
                accuracy_level=4,
            )
            return self._node("Add", [f"{name}.product", shift], f"{name}.out")
        factors = OUTLIERS.get(name)
        if factors is not None:
            divisors = np.ones(matrix.values.shape[0], dtype=np.float32)
            divisors[list(factors)] = list(factors.values())
            matrix = _scaled_rows(matrix, divisors)
            inverse = self._constant(f"{name}.divisor", np.float32(1.0) / divisors)
            x = self._node("Mul", [x, inverse], f"{name}.in")
        unsigned = (matrix.values.astype(np.int16) + ZERO_POINT).astype(np.uint8)
        zeros = np.full(unsigned.shape[1], ZERO_POINT, dtype=np.uint8)
        inputs = [
            x,
            self._constant(name, unsigned),
            self._constant(f"{name}.scale", matrix.scales),
            self._constant(f"{name}.zero", zeros),
            shift,
        ]
        return self._node("DynamicQuantizeMatMul", inputs, f"{name}.out", contrib=True)


def _scaled_rows(matrix: Matrix, factors: Array) -> Matrix:
    """Multiply rows; a column's scale grows only as far as its largest value then needs."""
    values = matrix.values.astype(np.float32) * factors[:, np.newaxis]
    growth = np.maximum(np.abs(values).max(axis=0) / np.float32(127.0), np.float32(1.0))
    return Matrix(np.rint(values / growth).astype(np.int8), matrix.scales * growth)


def _blocks(matrix: Matrix) -> tuple[Array, Array]:
    """Requantise to one scale per output and block of inputs, as ``MatMulNBits`` wants it."""
    weights = (matrix.values.astype(np.float32) * matrix.scales).T
    outputs, inputs = weights.shape
    blocks = weights.reshape(outputs, inputs // BLOCK, BLOCK)
    largest = np.abs(blocks).max(axis=2)
    scales = np.where(largest > 0.0, largest / np.float32(127.0), np.float32(1.0))
    values = np.rint(blocks / scales[:, :, np.newaxis]) + ZERO_POINT
    return values.astype(np.uint8), scales.astype(np.float32)
