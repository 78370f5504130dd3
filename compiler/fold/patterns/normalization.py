"""Normalizations by statistics of the values themselves, which no integers define."""

from intloom.compiler.fold.patterns.unsupported import UnsupportedPattern

NORMALIZATIONS = frozenset(
    {
        "EmbedLayerNormalization",
        "GroupNorm",
        "GroupNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "LpNormalization",
        "MeanVarianceNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
        "SkipGroupNorm",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    }
)
"""Of ONNX and of onnxruntime. A BatchNormalization has constant statistics and is none of them."""


def unsupported_normalization(op: str) -> UnsupportedPattern:
    """Why the accelerator has no such operator, and what to change."""
    return UnsupportedPattern(
        f"onnxruntime has no integer kernel for {op}: float sums, a root and a division determine its bytes",
        "leave it on the host, or train with BatchNormalization, which becomes part of a convolution",
    )
