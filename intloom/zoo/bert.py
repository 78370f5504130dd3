"""A BERT encoder of MiniLM-L6's size: sentence vectors of tokens with padding."""

import numpy as np

from intloom.zoo.activations import gelu
from intloom.zoo.attention import layer_norm
from intloom.zoo.builder import Builder, Target, Value

_VOCABULARY = 30522
_WIDTH, _DEPTH, _HEADS = 384, 6, 12
_PADDING = -32.0
"""Added to the scores of padding: its share is below 10^-9, and a scale of int8 still resolves the other scores."""


def minilm(b: Builder, tokens: int) -> None:
    """Wang et al. 2020: embeddings of words and positions, 6 layers, and the mean over all tokens."""
    words, given = b.indices("input_ids", tokens), b.indices("attention_mask", tokens)
    table = b.parameter("embeddings.word_embeddings.weight", (_VOCABULARY, _WIDTH), 1.0)
    x = b.op("/embeddings/Gather", "Gather", [table, words], _WIDTH)
    position = b.parameter("embeddings.position_embeddings.weight", (1, tokens, _WIDTH), 0.5)
    x = layer_norm(b, "/embeddings/LayerNorm", b.op("/embeddings/Add", "Add", [x, position], _WIDTH))
    # Any other number than 0 is a token.
    padding = b.op("/Not", "Not", [b.op("/Cast", "Cast", [given], tokens, to=9)], tokens)
    mask = b.reshape("/Reshape", b.op("/Cast_1", "Cast", [padding], tokens, to=1), [1, 1, tokens], 1)
    mask = b.op("/Mul", "Mul", [mask, b.constant("padding", np.array(_PADDING, np.float32))], 1)
    for i in range(_DEPTH):
        x = _encoder_layer(b, f"/encoder/layer.{i}", x, mask, tokens)
    x = b.op("/ReduceMean", "ReduceMean", [x], _WIDTH, axes=[1], keepdims=0)
    b.output(x, "sentence", [1, _WIDTH])


def _encoder_layer(b: Builder, path: str, x: Value, mask: Value, tokens: int) -> Value:
    """BERT's layer: attention with three products and a mask, a GELU network; LayerNorm after each sum."""
    width, at = x.channels // _HEADS, f"{path}/attention"
    q, k, v = (
        b.transpose(
            f"{at}/self/Transpose_{name}",
            b.reshape(f"{at}/self/Reshape_{name}", b.linear(f"{at}/self/{name}", x, x.channels, Target(0.0, 0.85)),
                      [tokens, _HEADS, width], tokens),
            [0, 2, 3, 1] if name == "key" else [0, 2, 1, 3],
            _HEADS,
        )
        for name in ("query", "key", "value")
    )  # fmt: skip
    scores = b.op(f"{at}/self/MatMul", "MatMul", [q, k], _HEADS)
    root = b.constant("attention.root", np.array(width**0.5, np.float32))
    scores = b.op(f"{at}/self/Add", "Add", [b.op(f"{at}/self/Div", "Div", [scores, root], _HEADS), mask], _HEADS)
    weights = b.op(f"{at}/self/Softmax", "Softmax", [scores], _HEADS, axis=-1)
    y = b.transpose(
        f"{at}/self/Transpose", b.op(f"{at}/self/MatMul_1", "MatMul", [weights, v], _HEADS), [0, 2, 1, 3], tokens
    )
    y = b.reshape(f"{at}/self/Reshape", y, [tokens, x.channels], x.channels)
    y = b.linear(f"{at}/output/dense", y, x.channels, Target(0.0, per_channel=False))
    x = layer_norm(b, f"{at}/output/LayerNorm", b.op(f"{at}/output/Add", "Add", [y, x], x.channels))
    y = b.linear(f"{path}/intermediate/dense", x, 4 * x.channels, Target(0.8, 0.6))
    y = b.linear(f"{path}/output/dense", gelu(b, f"{path}/intermediate/act", y), x.channels)
    return layer_norm(b, f"{path}/output/LayerNorm", b.op(f"{path}/output/Add", "Add", [y, x], x.channels))
