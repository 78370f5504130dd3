"""The ONNX backend interface: runs models, such as those of ONNX's backend tests, in the accelerator's arithmetic.

The front end and the golden model evaluate quantized operators, matrix products and data movement. onnxruntime
evaluates the other operators, as on the host side of a compiled model.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from intloom.common.errors import ModelError, UnsupportedError, UsageError
from intloom.compiler.fold.arithmetic.runtime_evaluation import evaluate
from intloom.compiler.importer import STANDARD, Constant, Model, OnnxNode, ValueType, cut, from_proto
from intloom.hw.spec.arith import RoundingMode
from intloom.onnx_nodes import EVALUATIONS, Evaluation

Array = NDArray[Any]


class IntloomRep(BackendRep):
    """An imported model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """The model's outputs for its inputs, in order (a sequence) or by name (a mapping)."""
        if isinstance(inputs, dict):
            if missing := [name for name in self._model.inputs if name not in inputs]:
                raise UsageError(f"input {missing[0]!r} of the model is missing")
            inputs = [inputs[name] for name in self._model.inputs]
        if len(inputs) != len(self._model.inputs):
            raise UsageError(f"the model has {len(self._model.inputs)} inputs, not {len(inputs)}")
        values = dict(self._model.constants)
        for name, array in zip(self._model.inputs, inputs, strict=True):
            values[name] = self._input(name, _unpacked(array))
        for node in self._model.nodes:
            values.update(zip(node.outputs, _evaluate(self._model, node, values), strict=False))
        outputs = namedtupledict("Outputs", list(self._model.outputs))
        return tuple(outputs(*[_packed(values[name]) for name in self._model.outputs]))

    def _input(self, name: str, array: Array) -> Constant:
        kind = self._model.types.get(name)
        shape = None if kind is None else kind.shape
        if shape is not None and array.shape != shape:
            raise UsageError(f"input {name!r} must have shape {list(shape)}, not {list(array.shape)}")
        return Constant(array, self._model.dtype(name))


def _evaluate(model: Model, node: OnnxNode, values: dict[str, Constant]) -> tuple[Constant, ...]:
    rule = EVALUATIONS.get(node.op) if node.domain == STANDARD else None
    if rule is not None:
        with contextlib.suppress(UnsupportedError):  # evaluated by the host instead, as in a compiled model
            return rule(Evaluation(model, node, tuple(values[n] if n else None for n in node.inputs)))
    names = tuple(dict.fromkeys(n for n in node.inputs if n and n not in model.constants))
    part = cut(model, (node,), names, tuple(n for n in node.outputs if n))
    types = {n: ValueType(values[n].dtype, tuple(values[n].array.shape)) for n in names}
    part = Model(
        part.name, part.nodes, part.inputs, part.outputs, part.constants, {**model.types, **types}, part.opsets
    )
    made = iter(evaluate(part, {n: values[n].array for n in names}, RoundingMode.EXACT))
    return tuple(Constant(next(made), model.dtype(n)) if n else Constant(np.zeros(0), "") for n in node.outputs)


def _unpacked(value: Any) -> Array:
    """The value as an array; 4-bit and 2-bit integers as bytes, because numpy has no type for them."""
    if isinstance(value, list | tuple) and any(np.ndim(v) for v in value):
        raise UnsupportedError("an input must be a tensor, not a sequence of tensors: give each its own input")
    array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    name = array.dtype.name
    if name in ("int4", "int2"):
        return array.astype(np.int8)
    return array.astype(np.uint8) if name in ("uint4", "uint2") else array


def _packed(constant: Constant) -> Array:
    """The array in the numpy type of its ONNX element type, as ONNX's tests expect it."""
    if not constant.dtype:
        raise UnsupportedError(
            "an output must be a tensor of known type: sequences and optional values are not supported"
        )
    kind = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(constant.dtype.upper()))
    return constant.array.astype(kind)


class IntloomBackend(Backend):
    """ONNX's `Backend` interface, implemented by `IntloomRep`."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> IntloomRep:
        """Import a model.

        Raises
        ------
        ModelError, UnsupportedError
            The model is invalid or unsupported; the message names the node.
        """
        if not cls.supports_device(device):
            raise UsageError(f"device must be CPU, not {device!r}")
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        newest = max((o.version for o in copy.opset_import if o.domain in ("", "ai.onnx")), default=0)
        if not newest:
            raise ModelError("the model imports no ONNX opset; it must import a version of the domain ai.onnx")
        return IntloomRep(from_proto(copy, name=copy.graph.name or "model", newest_opset=newest))

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Array, ...]:
        """The outputs of one node, by default of opset 25."""
        arrays = [np.asarray(a) for a in inputs]
        names = [n for n in node.input if n]
        if len(arrays) != len(names):
            raise UsageError(f"{node.op_type} has {len(names)} inputs, not {len(arrays)}")
        feeds = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(names, arrays, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=n) for n in node.output if n]
        graph = onnx.helper.make_graph([node], "node", feeds, results)
        opset = kwargs.get("opset_version", 25)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
        return cls.prepare(model, device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device` is the CPU, the only supported device."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except AttributeError:
            # onnx.backend.base.Device raises this for names that it does not know.
            return False


prepare = IntloomBackend.prepare
run_model = IntloomBackend.run_model
run_node = IntloomBackend.run_node
supports_device = IntloomBackend.supports_device
