"""Bias correction: quantization shifts the mean of a layer's outputs; the layer's bias takes the shift back."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from intloom.quantization.graph_values import channel_means
from intloom.quantization.samples import Sample

_LAYERS = frozenset({"Conv", "Gemm"})
_INT32 = np.iinfo(np.int32)


def correct_biases(
    floats: onnx.ModelProto,
    quantized: onnx.ModelProto,
    samples: Sequence[Sample],
    report: Callable[[int, int], None],
) -> int:
    """Correct the int32 biases of a model in QDQ form in place, layer by layer in execution order; return their number.

    The shift of a channel's mean against the float model, the median over the samples, becomes smaller than one step
    of the bias. Later layers are measured with the earlier ones corrected.
    """
    makers = {o: n for n in quantized.graph.node for o in n.output}
    constants = {i.name: i for i in quantized.graph.initializer}
    # Matched by node: without the ReLU that follows, a quantized layer has the name of its output.
    originals = {n.name: n.output[0] for n in floats.graph.node if n.op_type in _LAYERS}
    layers = [
        (node, makers[node.input[2]])
        for node in quantized.graph.node
        if node.op_type in _LAYERS and len(node.input) > 2 and node.input[2] in makers and node.name in originals
    ]
    for done, (layer, dequantize) in enumerate(layers):
        report(done, len(layers))
        got = channel_means(quantized, layer.output[0], samples)
        shifts = got - channel_means(floats, originals[layer.name], samples)
        # The median: one sample with large values must not decide for all.
        shift = np.median(shifts, axis=0)
        stored = constants[dequantize.input[0]]
        bias = numpy_helper.to_array(stored).astype(np.float64)
        scale = numpy_helper.to_array(constants[dequantize.input[1]]).astype(np.float64)
        corrected = np.clip(np.rint(bias - shift / scale), _INT32.min, _INT32.max).astype(np.int32)
        stored.CopyFrom(numpy_helper.from_array(corrected, stored.name))
    report(len(layers), len(layers))
    return len(layers)
