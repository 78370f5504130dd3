"""Warnings about known problems: the node or tensor, the effect, and what to do."""

from collections.abc import Iterator, Set

import numpy as np

from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.qparams import QParams, is_dequantize, is_quantize, read_qparams
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.ir import Conv

_FEW_LEVELS = 8
_ROUND_MANTISSA_BITS = 4
_MOST_NAMES = 4


def find_warnings(builder: GraphBuilder, file: Model) -> tuple[str, ...]:
    """All warnings on a model, in the order of the checks below; `file` is the imported model."""
    of_onnxruntime = (_successive_pairs, _tie_prone, _mode_dependent, _float_kernels) if file.tflite is None else ()
    checks = (_mixed_concats, _one_sided_outputs, *of_onnxruntime)
    return (
        *(text for check in checks for text in check(builder)),
        *_missing_zero_points(file),
    )


def _names(names: list[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _params(model: Model, value: str) -> QParams | None:
    """Parameters of a dequantized 8-bit value, or None."""
    node = model.producers.get(value)
    if node is None or not is_dequantize(node):
        return None
    params = read_qparams(model, node)
    return params if params.per_tensor and params.dtype in ("int8", "uint8") else None


def _mixed_concats(builder: GraphBuilder) -> Iterator[str]:
    """Warn about a Concat with one scale for values of very different ranges, such as pixels and scores."""
    model = builder.model
    for node in model.nodes:
        quantize = [n for n in model.users(node.outputs[0]) if is_quantize(n)] if node.op == "Concat" else []
        if not quantize:
            continue
        scale = float(np.max(read_qparams(model, quantize[0]).scale))
        for value in node.inputs:
            params = _params(model, value)
            levels = 256 if params is None else int(255 * float(params.scale) / scale) + 1
            if levels <= _FEW_LEVELS:
                yield (
                    f"{node.name!r} has the scale {scale:.4g}, with which {value!r} has only {levels} levels: "
                    "keep this Concat float, or make its inputs separate outputs"
                )


def _one_sided_outputs(builder: GraphBuilder) -> Iterator[str]:
    """Warn about class logits whose zero point is the maximum of the range: every positive value becomes zero."""
    for unit_output, (name, _) in builder.views.items():
        node = next((n for n in builder.nodes.values() if n.output == name), None)
        tensor = builder.tensors[name]
        if isinstance(node, Conv) and tensor.zero_point == 127 and unit_output == name:
            yield (
                f"{name!r} has its zero point at the maximum of its range, so it stores no positive value: "
                "if these are logits, calibrate with images that show objects"
            )


def _missing_zero_points(file: Model) -> Iterator[str]:
    """Warn about QuantizeLinear nodes without zero point and type."""
    every = [n for n in file.nodes if is_quantize(n)]
    bare = [n.name for n in every if not n.input(2) and not n.integer("output_dtype", 0)]
    if bare:
        yield f"{_names(bare)}: without a zero point input the type is uint8 and the zero point 0: add the input"


def _successive_pairs(builder: GraphBuilder) -> Iterator[str]:
    """Warn about a QuantizeLinear directly after a DequantizeLinear with other parameters."""
    model, pairs = builder.model, []
    for node in model.nodes:
        source = model.producers.get(node.input(0)) if is_quantize(node) else None
        if source is None or not is_dequantize(source) or not builder.on_accelerator(node.name):
            continue
        of_file = not node.origin and not source.origin
        if of_file and not read_qparams(model, node).same(read_qparams(model, source)):
            pairs.append(node.name)
    if pairs:
        yield (
            f"{_names(pairs)}: onnxruntime merges this with the pair before it and chooses other scales, so results of "
            "the file itself differ: remove one of the two pairs"
        )


def _tie_prone(builder: GraphBuilder) -> Iterator[str]:
    """Warn about requantization scales that are nearly powers of two, with which many results are exact ties."""
    prone = []
    for node in builder.nodes.values():
        if isinstance(node, Conv):
            low_bits = node.mantissa & -node.mantissa.astype(np.int64)
            # An integer scale has no fraction to round.
            fractional = low_bits < np.int64(1) << node.shift.astype(np.int64)
            pairs = zip(node.mantissa[fractional], low_bits[fractional], strict=True)
            bits = [int(m // lowest).bit_length() for m, lowest in pairs if m]
            if bits and min(bits) <= _ROUND_MANTISSA_BITS:
                prone.append(node.name)
    if prone:
        yield (
            f"{_names(prone)}: the scale of a channel is almost a power of two, so many results are exact ties: "
            "tools with another rounding of ties give other results"
        )


def _mode_dependent(builder: GraphBuilder) -> Iterator[str]:
    """Warn about nodes whose results depend on onnxruntime's optimization level."""
    dependent = [name for name in builder.mode_dependent if builder.on_accelerator(name)]
    if dependent:
        yield (
            f"{_names(dependent)}: with optimizations onnxruntime adds the zero point before rounding, without "
            "them after: state the optimization level in every comparison"
        )


def _float_kernels(builder: GraphBuilder) -> Iterator[str]:
    """Warn about multiplications that onnxruntime on x86 computes in float if it runs the file itself."""
    resizes = {n.name for n in builder.model.nodes if n.op in ("Resize", "Upsample")}
    kernels = [n.name for n in builder.model.nodes if _runs_in_float(builder, n, resizes)]
    if kernels:
        yield (
            f"{_names(kernels)}: onnxruntime on x86 computes these in float (int8 activations, or no integer kernel), "
            "so single results of the file itself may differ by one step: --check compares with its integer form"
        )


def _runs_in_float(builder: GraphBuilder, node: OnnxNode, resizes: Set[str]) -> bool:
    if node.qoperator is not None or node.op not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        return False
    params = _params(builder.model, node.input(0))
    if params is None or node.name not in builder.findings:
        return False
    # onnxruntime selects no integer kernel for a convolution after a Resize that has no QDQ pair.
    before = builder.model.producers[node.input(0)]
    return (
        before.inputs[0] in builder.model.shifted or node.op == "ConvTranspose" or not resizes.isdisjoint(before.origin)
    )
