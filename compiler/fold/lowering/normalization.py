"""Layer and RMS normalization: integers on the vector unit."""

from intloom.compiler.fold.arithmetic.integer_norm import norm_axis, norm_fields
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.common.over_axis import lower_over_axis
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.normalization import read_normalization
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Norm
from intloom.compiler.refusals import Refusal


def is_normalization_unit(builder: GraphBuilder, unit: QuantizationUnit) -> bool:
    """Whether the unit normalizes over the last axes, as one operator or as a chain."""
    return read_normalization(unit) is not None


@lowers("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def lower_normalization(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a normalization over channels or the last axis, also as a chain, if the hardware has `vector_norm`."""
    norm = read_normalization(unit)
    if norm is None:
        raise Refusal.NORMALIZATION("its factors or offsets are not constants", "use constants for scale and bias")
    if not builder.options.norm:
        raise Refusal.HARDWARE(
            "the accelerator computes no root of a variance",
            "choose hardware with vector_norm, or leave it on the host",
        )
    if unit.clamps or any(n.outputs[0] in unit.model.outputs for n in unit.operators):
        raise Refusal.NOT_QUANTIZED("its float result is used otherwise", "quantize the result first")
    x = builder.operand_in_any_order(norm.value)
    axis = norm_axis(norm, x.shape)
    fields = norm_fields(norm, x.shape, axis, x.params, builder.params(unit))

    def make(source: str, result: str) -> Norm:
        return Norm(name=unit_name(unit), inputs=(source,), output=result, **fields)

    lower_over_axis(builder, unit, norm.value, axis, make)
    builder.assign(unit, Target.VECTOR, "integers within 1 of the real result")
