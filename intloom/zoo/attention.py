"""Attention: convolutional blocks of YOLO11, YOLO26 and text recognizers, and the transformer block on tokens."""

from dataclasses import dataclass

import numpy as np

from intloom.zoo.activations import Activation, gelu
from intloom.zoo.builder import Builder, Target, Value
from intloom.zoo.yolo_blocks import concat, conv_silu


@dataclass(frozen=True)
class _Form:
    """Heads of attention; channels of a key; whether values pass a depthwise convolution that is added to the result.

    `spread` is the standard deviation of queries, keys and values.
    """

    heads: int
    key: int
    positional: bool
    spread: float = 1.0


def c2psa(b: Builder, path: str, x: Value, side: int, repeats: int) -> Value:
    """Half of the channels pass a chain of PSA blocks; `side` is the height and width of the feature map."""
    half = x.channels // 2
    kept, y = b.split(f"{path}/Split", conv_silu(b, f"{path}/cv1", x, 2 * half), [half, half])
    for i in range(repeats):
        y = psa_block(b, f"{path}/m/m.{i}", y, side, half // 64)
    return conv_silu(b, f"{path}/cv2", concat(b, f"{path}/Concat", [kept, y]), x.channels)


def psa_block(b: Builder, path: str, x: Value, side: int, heads: int) -> Value:
    """Attention with positional encoding and a feed-forward part; keys have half the width of values."""
    form = _Form(heads, x.channels // heads // 2, positional=True)
    return _feed_forward(b, path, x, _conv_attention(b, f"{path}/attn", x, (side, side), form))


def column_block(b: Builder, path: str, x: Value, columns: int, heads: int) -> Value:
    """Attention over the columns of a text line of one row, and a feed-forward part."""
    # Columns of one line are similar: with a spread of 1, most weights of the softmax would be 0.
    form = _Form(heads, x.channels // heads, positional=False, spread=0.8)
    return _feed_forward(b, path, x, _conv_attention(b, f"{path}/attn", x, (1, columns), form))


def _feed_forward(b: Builder, path: str, x: Value, attended: Value) -> Value:
    """Residual addition of attention's result, then two 1x1 convolutions with a residual addition."""
    x = b.op(f"{path}/Add", "Add", [x, attended], x.channels)
    y = conv_silu(b, f"{path}/ffn/ffn.0", x, 2 * x.channels)
    y = b.conv(f"{path}/ffn/ffn.1/conv", y, x.channels, mean=0.0)
    return b.op(f"{path}/Add_1", "Add", [x, y], x.channels)


def _conv_attention(b: Builder, path: str, x: Value, shape: tuple[int, int], form: _Form) -> Value:
    """Attention over all pixels of a feature map of this height and width."""
    heads, key = form.heads, form.key
    tokens, width = shape[0] * shape[1], x.channels // heads
    y = b.conv(f"{path}/qkv/conv", x, x.channels + 2 * heads * key, target=Target(0.0, form.spread))
    y = b.reshape(f"{path}/Reshape", y, [heads, 2 * key + width, tokens], heads)
    q, k, v = b.split(f"{path}/Split", y, [key, key, width], axis=2)
    q = b.transpose(f"{path}/Transpose", q, [0, 1, 3, 2], heads)
    scores = b.op(f"{path}/MatMul", "MatMul", [q, k], heads)
    scale = b.constant(f"{path}/scale", np.array(key**-0.5, np.float32))
    scores = b.op(f"{path}/Mul", "Mul", [scores, scale], heads)
    weights = b.op(f"{path}/Softmax", "Softmax", [scores], heads, axis=-1)
    weights = b.transpose(f"{path}/Transpose_1", weights, [0, 1, 3, 2], heads)
    y = b.op(f"{path}/MatMul_1", "MatMul", [v, weights], heads)
    y = b.reshape(f"{path}/Reshape_1", y, [x.channels, *shape], x.channels)
    if form.positional:
        v = b.reshape(f"{path}/Reshape_2", v, [x.channels, *shape], x.channels)
        position = b.depthwise(f"{path}/pe/conv", v, mean=0.0)
        y = b.op(f"{path}/Add", "Add", [y, position], x.channels)
    # Without a position, the average of tokens differs more between images than inside of one.
    return b.conv(f"{path}/proj/conv", y, x.channels, target=Target(0.0, per_channel=form.positional))


@dataclass(frozen=True)
class TokenBlock:
    """A transformer block on [batch * groups, tokens, channels]."""

    tokens: int
    heads: int
    groups: int = 1
    expand: int = 4
    """Width of the network after the attention, in channels of the block."""
    activation: Activation = gelu


def transformer_block(b: Builder, path: str, x: Value, form: TokenBlock) -> Value:
    """LayerNorm and attention, LayerNorm and a network of two linear layers."""
    y = _token_attention(b, f"{path}/attn", layer_norm(b, f"{path}/norm1", x), form)
    x = b.op(f"{path}/Add", "Add", [x, y], x.channels)
    y = b.linear(f"{path}/mlp/fc1", layer_norm(b, f"{path}/norm2", x), form.expand * x.channels, Target(0.8, 0.6))
    y = b.linear(f"{path}/mlp/fc2", form.activation(b, f"{path}/mlp/act", y), x.channels)
    return b.op(f"{path}/Add_1", "Add", [x, y], x.channels)


def layer_norm(b: Builder, path: str, x: Value) -> Value:
    """LayerNorm over the channels of [batch, tokens, channels]."""
    scale = b.constant(f"{path}/weight", np.ones(x.channels, np.float32))
    bias = b.constant(f"{path}/bias", np.zeros(x.channels, np.float32))
    return b.op(f"{path}/LayerNormalization", "LayerNormalization", [x, scale, bias], x.channels, axis=-1, epsilon=1e-6)


def _token_attention(b: Builder, path: str, x: Value, form: TokenBlock) -> Value:
    tokens, heads, width = form.tokens, form.heads, x.channels // form.heads
    y = b.linear(f"{path}/qkv", x, 3 * x.channels, Target(0.0, 0.85))
    y = b.reshape(f"{path}/Reshape", y, [tokens, 3, heads, width], tokens, form.groups)
    y = b.transpose(f"{path}/Transpose", y, [2, 0, 3, 1, 4], heads)
    q, k, v = (
        b.op(
            f"{path}/Gather{suffix}",
            "Gather",
            [y, b.constant(f"{path}/index{n}", np.array(n, np.int64))],
            heads,
            axis=0,
        )
        for n, suffix in enumerate(("", "_1", "_2"))
    )
    k = b.transpose(f"{path}/Transpose_1", k, [0, 1, 3, 2], heads)
    scale = b.constant(f"{path}/scale", np.array(width**-0.5, np.float32))
    q = b.op(f"{path}/Mul", "Mul", [q, scale], heads)
    weights = b.op(f"{path}/Softmax", "Softmax", [b.op(f"{path}/MatMul", "MatMul", [q, k], heads)], heads, axis=-1)
    y = b.transpose(
        f"{path}/Transpose_2", b.op(f"{path}/MatMul_1", "MatMul", [weights, v], heads), [0, 2, 1, 3], tokens
    )
    y = b.reshape(f"{path}/Reshape_1", y, [tokens, x.channels], x.channels, form.groups)
    # Attention averages tokens: a channel differs more between images than the few of the measurement show.
    return b.linear(f"{path}/proj", y, x.channels, Target(0.0, per_channel=False))
