"""A BERT encoder of MiniLM-L6's size: sentence vectors of tokens with padding."""

import numpy as np

from intloom.zoo.attention import encoder_layer, layer_norm
from intloom.zoo.builder import Builder

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
        x = encoder_layer(b, f"/encoder/layer.{i}", x, mask, tokens, _HEADS)
    x = b.op("/ReduceMean", "ReduceMean", [x], _WIDTH, axes=[1], keepdims=0)
    b.output(x, "sentence", [1, _WIDTH])
