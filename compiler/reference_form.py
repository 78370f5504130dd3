"""The form of a model that onnxruntime computes in integers: the reference of the exact comparison.

It has the real values of the file, and every value keeps its name. Of the nodes that run on the accelerator,

- int8 activations are uint8 (pass `unsigned_activations`),
- a ConvTranspose is zero insertion and a Conv, because onnxruntime has no integer kernel for it,
- a convolution or product before a Relu or Clip is rounded first, because onnxruntime sums in float there; both are
  monotone, so the order of clamping and rounding changes no result,
- the float operators before a QuantizeLinear have no other readers: where the host or another QuantizeLinear reads
  their unrounded results, these come from copies (`compiler.unit_copies`), because onnxruntime computes operators with
  several readers in float,
- a Softmax over more than two channels is integer operations, which the accelerator's is defined by, and so are a
  normalization and an average, except a GlobalAveragePool, for which onnxruntime has an integer kernel,
- a float bias is an int32 bias, and ConvInteger and MatMulInteger chains are Conv and Gemm (pass `integer_chains`),
- constants per channel after a product are part of its weights and bias (pass `products`),
- data movement has QDQ pairs (pass `propagate_qdq`), without which onnxruntime computes its readers in float. The host
  parts have them too.
"""

from collections.abc import Set
from dataclasses import dataclass, field, replace

import numpy as np

from intloom.compiler.fold.arithmetic.integer_softmax import is_pair
from intloom.compiler.fold.arithmetic.weights import read_bias, read_weights
from intloom.compiler.fold.lowering.conv_transpose import output_first, transposed_geometry
from intloom.compiler.fold.passes.channel_scales import join_equal_scales, without_channel_scales
from intloom.compiler.fold.passes.constants import fold_constants
from intloom.compiler.fold.passes.custom_shapes import add_custom_shapes
from intloom.compiler.fold.passes.integer_chains import fold_integer_chains
from intloom.compiler.fold.passes.products import fold_products
from intloom.compiler.fold.passes.propagate_qdq import propagate_qdq
from intloom.compiler.fold.passes.unsigned_activations import use_unsigned_activations
from intloom.compiler.fold.patterns.normalization import read_normalization
from intloom.compiler.fold.patterns.qparams import DEQUANTIZE, read_qparams
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit, find_quantization_units
from intloom.compiler.importer import Model, OnnxNode
from intloom.compiler.importer.check import check_model
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.ops.conv_transpose import spread_borders, spread_pixels
from intloom.compiler.reference_operators import (
    AVERAGES,
    SOFTMAXES,
    IntegerForm,
    write_average,
    write_norm,
    write_softmax,
)
from intloom.compiler.unit_copies import separate_units

_SUMS = frozenset({"Conv", "ConvTranspose", "Gemm"})
_FIRST_PAD_OF_BYTES = 11
"""Opset from which Pad takes integers."""


def reference_form(model: Model, accelerated: Set[str]) -> Model | None:
    """The integer form of a model, or None if it is the model itself; `accelerated` are names of nodes."""
    plain = add_custom_shapes(fold_constants(model))
    scaled = without_channel_scales(join_equal_scales(plain))
    form = propagate_qdq(fold_products(fold_integer_chains(use_unsigned_activations(scaled))))
    form, shared = separate_units(form, accelerated)
    form = _Rewriter(form, accelerated, shared, IntegerForm(form)).rewrite()
    check_model(form)
    return None if form.nodes == plain.nodes else form


@dataclass
class _Rewriter:
    """The rewritten nodes and constants."""

    model: Model
    accelerated: Set[str]
    shared: Set[str]
    """Nodes that compute unrounded values for the host."""
    form: IntegerForm
    pairs: list[OnnxNode] = field(default_factory=list)

    def rewrite(self) -> Model:
        units = {u.unclamped: u for u in find_quantization_units(self.model)}
        clamped = {value: u for value, u in units.items() if self._clamps_sums(u)}
        norms = {value: (u, norm) for value, u in units.items() if (norm := read_normalization(u)) is not None}
        chained = {n.name for u, _ in norms.values() for n in u.operators}
        for node in self.model.nodes:
            mine = node.name not in self.shared and self.accelerated & set(node.origins)
            if node.outputs[0] in norms and mine:
                write_norm(self.form, *norms[node.outputs[0]])
            elif node.name in chained and mine:
                pass  # the last operator of the chain stands for it
            elif node.op in SOFTMAXES and mine and not is_pair(self.model, node):
                write_softmax(self.form, node)
            elif node.op in AVERAGES and mine:
                write_average(self.form, node, units.get(node.outputs[0]))
            elif node.op not in _SUMS or not mine:
                self.form.nodes.append(node)
            elif node.outputs[0] in clamped:
                self._multiplication(self._rounded(node, clamped[node.outputs[0]]))
                self.form.nodes += self.pairs
                self.pairs = []
            else:
                self._multiplication(node)
        return self.model.with_nodes(self.form.nodes, constants=self.form.constants)

    def _clamps_sums(self, unit: QuantizationUnit) -> bool:
        """Whether onnxruntime keeps a clamp after a sum: it drops a Relu where the zero point is the smallest byte."""
        if not unit.clamps or unit.main is None or unit.main.op not in _SUMS:
            return False
        zero = self.model.constant(unit.quantize.input(2))
        return [c.op for c in unit.clamps] != ["Relu"] or (zero is not None and bool(zero.any()))

    def _rounded(self, node: OnnxNode, unit: QuantizationUnit) -> OnnxNode:
        """The node with a result of another name, which a pair with the unit's parameters brings to the clamp."""
        value, quantize = node.outputs[0], unit.quantize
        whole, stored = f"{value}/float", f"{value}/stored"
        self.pairs = [
            replace(quantize, name=stored, inputs=(whole, *quantize.inputs[1:]), outputs=(stored,)),
            OnnxNode(f"{stored}/back", DEQUANTIZE, (stored, *quantize.inputs[1:]), (value,), {}, quantize.domain),
        ]
        return replace(node, outputs=(whole, *node.outputs[1:]))

    def _multiplication(self, node: OnnxNode) -> None:
        if node.input(2) in self.model.constants:
            node = replace(node, inputs=(*node.inputs[:2], self._quantized_bias(node)))
        if node.op == "ConvTranspose" and self.model.opset >= _FIRST_PAD_OF_BYTES:
            self._transposed(node)
        else:
            self.form.nodes.append(node)

    def _quantized_bias(self, node: OnnxNode) -> str:
        """Quantize a float bias with the product of input and weight scale, as the front end does."""
        x, axis = read_qparams(self.model, self.model.producers[node.input(0)]), int(node.op == "ConvTranspose")
        if node.op == "Gemm":
            axis = 1 - node.integer("transB", 0)
        scale = read_weights(self.model, node.input(1), axis).scale
        bias = read_bias(self.model, node.input(2), x, scale)
        w = Writer(f"{node.name}/bias/")
        stored, steps = w.constant(np.asarray(bias), np.int32), w.constant(x.scale * scale, np.float32)
        value = w.op(DEQUANTIZE, (stored, steps), axis=0)
        self.form.take(w)
        return value

    def _transposed(self, node: OnnxNode) -> None:
        """Replace a ConvTranspose by a Conv of its input with zeros between and around the pixels."""
        model, w = self.model, self.form.writer(node)
        source, weights = model.producers[node.input(0)], model.producers[node.input(1)]
        array, shape = model.constants[weights.inputs[0]].array, model.shape(source.inputs[0]) or ()
        sequence = array.ndim == 3
        if sequence:
            # A sequence is an image of height 1.
            array, shape = array[:, :, None], (*shape[:2], 1, *shape[2:])
        geometry, extra = transposed_geometry(node, (array.shape[2], array.shape[3]))
        borders = spread_borders(geometry.kernel, geometry.strides, geometry.dilations, geometry.pads, extra)
        zero = self.form.stored(w, source.input(2))
        spread = spread_pixels(w, source.inputs[0], shape, geometry.strides, borders, zero)
        x = w.op(DEQUANTIZE, (spread, source.input(1), zero))
        group = node.integer("group", 1)
        turned = output_first(array, group)[:, :, ::-1, ::-1]
        stored = w.constant(np.ascontiguousarray(turned), turned.dtype)
        filters = w.op(DEQUANTIZE, (stored, *weights.inputs[1:]), axis=0)
        size = w.constant((1, len(turned), -1), np.int64)
        self.form.take(w)
        made = replace(node, op="Conv", attributes={"dilations": geometry.dilations, "group": group})
        made = replace(made, inputs=(x, filters, *node.inputs[2:]))
        if sequence:
            image = f"{node.outputs[0]}/image"
            self.form.nodes.append(replace(made, outputs=(image,)))
            made = replace(node, name=image, op="Reshape", inputs=(image, size), attributes={})
        self.form.nodes.append(made)
