"""A vision transformer of the size of DeiT-tiny, with the mean of all tokens as its feature."""

from intloom.zoo.attention import transformer_block
from intloom.zoo.builder import Builder
from intloom.zoo.classifiers import CLASSES

_PATCH = 16


def vit(b: Builder, imgsz: int, *, width: int, depth: int, heads: int) -> None:
    """Patches of 16x16 pixels, `depth` transformer blocks, a linear classifier."""
    tokens = (imgsz // _PATCH) ** 2
    x = b.conv("/patch_embed/proj", b.input("images", imgsz, imgsz), width, _PATCH, _PATCH, mean=0.0, padded=False)
    x = b.reshape("/patch_embed/Reshape", x, [width, tokens], width)
    x = b.transpose("/patch_embed/Transpose", x, [0, 2, 1], width)
    for i in range(depth):
        x = transformer_block(b, f"/blocks.{i}", x, tokens, heads)
    x = b.op("/ReduceMean", "ReduceMean", [x], width, axes=[1], keepdims=0)
    b.output(b.gemm("/head", x, CLASSES), "logits", [1, CLASSES])
