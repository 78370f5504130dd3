"""The ONNX backend interface: runs models, such as those of ONNX's backend tests, in the accelerator's arithmetic.

A model runs as in `intloom.Session` on the golden model: integer operators by their own definitions, the others by
onnxruntime, on the host.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from intloom.common.errors import ModelError, UnsupportedError, UsageError
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import Model, from_proto
from intloom.compiler.importer.load import Origin
from intloom.compiler.refusals import Refusal
from intloom.flow.host import HostSide
from intloom.flow.regions import run_regions
from intloom.hw.spec.arith import RoundingMode
from intloom.sim.golden import run_graph

Array = NDArray[Any]


class IntloomRep(BackendRep):
    """An imported model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._folded = fold_model(model)
        self._host = HostSide(self._folded)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """The model's outputs for its inputs, in order (a sequence) or by name (a mapping)."""
        if isinstance(inputs, dict):
            if missing := [name for name in self._model.inputs if name not in inputs]:
                raise UsageError(f"input {missing[0]!r} of the model is missing")
            inputs = [inputs[name] for name in self._model.inputs]
        if len(inputs) != len(self._model.inputs):
            raise UsageError(f"the model has {len(self._model.inputs)} inputs, not {len(inputs)}")
        feeds = {name: self._input(name, array) for name, array in zip(self._model.inputs, inputs, strict=True)}
        folded = self._folded
        _, made = run_regions(
            folded, self._host, feeds, lambda n, values: run_graph(folded.regions[n], values, match=RoundingMode.ORT)
        )
        results = self._host.after(made, feeds)
        if any(isinstance(results[name], list) for name in self._model.outputs):
            raise UnsupportedError("an output must be a tensor, not a sequence of tensors", Refusal.OPERATOR.number)
        outputs = namedtupledict("Outputs", list(self._model.outputs))
        return tuple(outputs(*[self._typed(name, results[name]) for name in self._model.outputs]))

    def _typed(self, name: str, array: Array) -> Array:
        """The array in the numpy type of its ONNX type: onnxruntime gives small floats as bytes."""
        kind = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(self._model.dtype(name).upper()))
        return array.view(kind) if array.dtype != kind and array.dtype.itemsize == kind.itemsize else array

    def _input(self, name: str, value: Any) -> Array:
        if isinstance(value, list | tuple) and any(np.ndim(v) for v in value):
            raise UsageError("an input must be a tensor, not a sequence of tensors: give each its own input")
        array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
        shape = self._model.shape(name)
        if shape is not None and array.shape != shape:
            raise UsageError(f"input {name!r} must have shape {list(shape)}, not {list(array.shape)}")
        return array


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
        return IntloomRep(from_proto(copy, name=copy.graph.name or "model", origin=Origin(newest_opset=newest)))

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
