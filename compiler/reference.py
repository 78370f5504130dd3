"""onnxruntime as the outside reference: silent, and with whole sums on every processor."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import count

import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

_SILENT = 4
_WHOLE_SUMS = ("session.x64quantprecision", "1")
"""Else, on x86 without VNNI, products of unsigned and signed bytes are added in pairs, which saturates."""
_PLAIN_LAYOUT = ("optimization.disable_specified_optimizers", "NhwcTransformer")


def open_session(model: bytes, *, optimized: bool = True, threads: int = 0) -> onnxruntime.InferenceSession:
    """A session on the CPU, with onnxruntime's default optimizations or none; `threads` 0 leaves their number to it.

    Where the processor has VNNI neither entry changes a result. Where it has not, onnxruntime turns signed weights and
    their zero points into unsigned ones for whole sums, and fails at a tensor that two nodes share: then each gets its
    own. Nor can it load what it itself makes of some convolutions of signed bytes, be it asked for whole sums or for
    its own layout. Their sums are whole anyhow.
    """
    whole = _options(_WHOLE_SUMS, optimized, threads)
    try:
        return _session(model, whole)
    except (NoKernel, Fail):
        pass
    try:
        return _session(_unshared(model), whole)
    except (NoKernel, Fail):
        return _session(model, _options(_PLAIN_LAYOUT, optimized, threads))


def _unshared(data: bytes) -> bytes:
    """The model with a stored tensor of signed bytes for every node that reads one."""
    model = onnx.ModelProto.FromString(data)
    stored = {tensor.name: tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.INT8}
    taken = {name for node in model.graph.node for name in (*node.input, *node.output)} | stored.keys()
    readers: Counter[str] = Counter()
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name not in stored:
                continue
            readers[name] += 1
            if readers[name] > 1:
                copy = model.graph.initializer.add()
                copy.CopyFrom(stored[name])
                copy.name = next(new for new in (f"{name}_{n}" for n in count(readers[name])) if new not in taken)
                taken.add(copy.name)
                node.input[place] = copy.name
    serialized: bytes = model.SerializeToString()
    return serialized


def _session(model: bytes, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


@cache
def _options(entry: tuple[str, str], optimized: bool, threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(*entry)
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
