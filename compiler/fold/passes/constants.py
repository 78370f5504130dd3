"""Pass `constants`: fold Constant nodes, Identity of constants and QuantizeLinear of constants.

Requires nothing. Ensures `constants`: no Constant node is left, and quantized weights are constants.
"""

from __future__ import annotations

import numpy as np

from intloom.compiler.fold.passes.pass_manager import Pass
from intloom.compiler.fold.patterns.qparams import is_quantize, quantize, read_qparams
from intloom.compiler.importer import STANDARD, Constant, Model, OnnxNode

# numpy has no 4-bit or 2-bit integers.
_KINDS = {"int8": np.int8, "uint8": np.uint8, "int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}


def fold_constants(model: Model) -> Model:
    """Apply the pass."""
    constants = dict(model.constants)
    kept = []
    for node in model.nodes:
        found = None if node.domain != STANDARD else _value(model.with_nodes((), constants=constants), node)
        if found is None:
            kept.append(node)
        else:
            constants[node.outputs[0]] = found
    return model.with_nodes(kept, constants=constants)


def _value(model: Model, node: OnnxNode) -> Constant | None:
    if node.op == "Constant":
        return _stored(node)
    source = model.constants.get(node.input(0))
    if source is None:
        return None
    if node.op == "Identity":
        return source
    if is_quantize(node) and source.dtype == "float":
        params = read_qparams(model, node)
        # ONNX does not define the quantized value of a NaN: the node stays for onnxruntime.
        if params.dtype in _KINDS and not np.isnan(source.array).any():
            return Constant(quantize(source.array, params).astype(_KINDS[params.dtype]), params.dtype)
    return None


def _stored(node: OnnxNode) -> Constant | None:
    value = node.attributes.get("value")
    if isinstance(value, Constant):
        return value
    for name, kind, dtype in (("value_float", np.float32, "float"), ("value_int", np.int64, "int64")):
        for key in (name, f"{name}s"):
            if key in node.attributes:
                return Constant(np.array(node.attributes[key], dtype=kind), dtype)
    return None


PASS = Pass("constants", fold_constants, ensures=frozenset({"constants"}))
