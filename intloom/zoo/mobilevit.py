"""MobileViT-XXS: inverted residuals, and transformer blocks on every fourth pixel."""

from dataclasses import dataclass

from intloom.zoo.activations import silu
from intloom.zoo.attention import TokenBlock, layer_norm, transformer_block
from intloom.zoo.builder import Builder, Value
from intloom.zoo.classifiers import CLASSES, pooled
from intloom.zoo.yolo_blocks import concat, conv_silu

_EXPAND, _PATCH, _HEADS, _FEATURES = 2, 2, 4, 320


@dataclass(frozen=True)
class _Stage:
    """Inverted residuals, the first with the stride; then `blocks` transformer blocks of `width` channels."""

    channels: int
    repeats: int = 1
    stride: int = 2
    width: int = 0
    blocks: int = 0


_XXS = (_Stage(16, stride=1), _Stage(24, 3), _Stage(48, 1, 2, 64, 2), _Stage(64, 1, 2, 80, 4), _Stage(80, 1, 2, 96, 3))


def mobilevit_xxs(b: Builder, imgsz: int) -> None:
    """Mehta and Rastegari 2022, the smallest of the three networks."""
    x, side = conv_silu(b, "/stem", b.input("images", imgsz, imgsz), 16, 3, 2), imgsz // 2
    for number, stage in enumerate(_XXS):
        path = f"/stages.{number}"
        side //= stage.stride
        for i in range(stage.repeats):
            x = _inverted_residual(b, f"{path}/{i}", x, stage.channels, stage.stride if i == 0 else 1)
        if stage.blocks:
            x = _mobilevit_block(b, f"{path}/{stage.repeats}", x, side, stage)
    x = pooled(b, conv_silu(b, "/final_conv", x, _FEATURES))
    b.output(b.gemm("/head/fc", x, CLASSES), "logits", [1, CLASSES])


def _inverted_residual(b: Builder, path: str, x: Value, channels: int, stride: int) -> Value:
    y = conv_silu(b, f"{path}/conv1_1x1", x, _EXPAND * x.channels)
    y = conv_silu(b, f"{path}/conv2_kxk", y, y.channels, 3, stride, y.channels)
    y = b.conv(f"{path}/conv3_1x1/conv", y, channels, mean=0.0)
    return b.op(f"{path}/Add", "Add", [x, y], channels) if stride == 1 and x.channels == channels else y


def _mobilevit_block(b: Builder, path: str, x: Value, side: int, stage: _Stage) -> Value:
    """Each pixel of a patch attends to the pixels at the same position of all other patches."""
    form = TokenBlock((side // _PATCH) ** 2, _HEADS, groups=_PATCH**2, expand=2, activation=silu)
    y = b.conv(f"{path}/conv_1x1", conv_silu(b, f"{path}/conv_kxk", x, x.channels, 3), stage.width, mean=0.0)
    y = _unfolded(b, path, y, side)
    for i in range(stage.blocks):
        y = transformer_block(b, f"{path}/transformer/transformer.{i}", y, form)
    y = _folded(b, path, layer_norm(b, f"{path}/norm", y), side)
    y = conv_silu(b, f"{path}/conv_proj", y, x.channels)
    return conv_silu(b, f"{path}/conv_fusion", concat(b, f"{path}/Concat", [x, y]), x.channels, 3)


def _unfolded(b: Builder, path: str, x: Value, side: int) -> Value:
    """[batch, channels, side, side] as [batch * positions, patches, channels]."""
    patches, channels = side // _PATCH, x.channels
    x = b.reshape(f"{path}/Reshape", x, [_PATCH, patches, _PATCH], channels, channels * patches)
    x = b.transpose(f"{path}/Transpose", x, [0, 2, 1, 3], channels)
    x = b.reshape(f"{path}/Reshape_1", x, [channels, patches**2, _PATCH**2], channels)
    x = b.transpose(f"{path}/Transpose_1", x, [0, 3, 2, 1], channels)
    return b.reshape(f"{path}/Reshape_2", x, [patches**2, channels], channels, _PATCH**2)


def _folded(b: Builder, path: str, x: Value, side: int) -> Value:
    """The inverse of `_unfolded`."""
    patches, channels = side // _PATCH, x.channels
    x = b.reshape(f"{path}/Reshape_3", x, [_PATCH**2, patches**2, channels], channels)
    x = b.transpose(f"{path}/Transpose_2", x, [0, 3, 2, 1], channels)
    x = b.reshape(f"{path}/Reshape_4", x, [patches, _PATCH, _PATCH], channels, channels * patches)
    x = b.transpose(f"{path}/Transpose_3", x, [0, 2, 1, 3], channels)
    return b.reshape(f"{path}/Reshape_5", x, [channels, side, side], channels)
