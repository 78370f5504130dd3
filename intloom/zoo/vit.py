"""Vision transformers of the size of DeiT-tiny: with the mean of all tokens as feature, and with a class token."""

import numpy as np

from intloom.zoo.attention import TokenBlock, layer_norm, transformer_block
from intloom.zoo.builder import Builder
from intloom.zoo.classifiers import CLASSES

_PATCH, _WIDTH, _DEPTH, _HEADS = 16, 192, 12, 3


def vit(b: Builder, imgsz: int, *, class_token: bool = False) -> None:
    """Patches of 16x16 pixels, transformer blocks, a linear classifier."""
    tokens = (imgsz // _PATCH) ** 2
    x = b.conv("/patch_embed/proj", b.input("images", imgsz, imgsz), _WIDTH, _PATCH, _PATCH, mean=0.0, padded=False)
    x = b.reshape("/patch_embed/Reshape", x, [_WIDTH, tokens], _WIDTH)
    x = b.transpose("/patch_embed/Transpose", x, [0, 2, 1], _WIDTH)
    if class_token:
        first = b.parameter("cls_token", (1, 1, _WIDTH), 1.0)
        b.weights[first] = np.repeat(b.weights[first], b.batch, axis=0)
        tokens += 1
        x = b.op("/Concat", "Concat", [first, x], _WIDTH, axis=1)
        x = b.op("/Add", "Add", [x, b.parameter("pos_embed", (1, tokens, _WIDTH), 0.5)], _WIDTH)
    for i in range(_DEPTH):
        x = transformer_block(b, f"/blocks.{i}", x, TokenBlock(tokens, _HEADS))
    if class_token:
        x = layer_norm(b, "/norm", x)
        x = b.op("/Gather", "Gather", [x, b.constant("first", np.array(0, np.int64))], _WIDTH, axis=1)
        b.output(b.gemm("/head", x, CLASSES), "logits", [1, CLASSES])
        return
    x = b.op("/ReduceMean", "ReduceMean", [x], _WIDTH, axes=[1], keepdims=0)
    b.output(b.gemm("/head", x, CLASSES), "logits", [1, CLASSES])
