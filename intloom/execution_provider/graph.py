"""Conversion of onnxruntime's graphs into ONNX models."""

import ctypes
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from intloom.execution_provider.abi import Api

# onnxruntime's types of attributes: the reader of ReadOpAttr's bytes.
_INT, _INTS, _FLOAT, _FLOATS, _STRING, _STRINGS, _TENSOR = 1, 2, 3, 4, 5, 6, 8
_NUMBERS = {_INT: np.int64, _INTS: np.int64, _FLOAT: np.float32, _FLOATS: np.float32}


class GraphReader:
    """Reads one graph, whose nodes are in topological order."""

    def __init__(self, api: Api, graph: int) -> None:
        self._api = api
        self._graph = graph
        self.nodes = api.pointers(api.Graph_GetNumNodes, api.Graph_GetNodes, graph)

    def name(self, value: int) -> str:
        """The name of a value; an absent optional one has none."""
        return self._api.text(self._api.GetValueInfoName, value) if value else ""

    def inputs(self) -> list[str]:
        """Names of the graph's inputs without its initializers."""
        constants = {self.name(v) for v in self._initializers()}
        return [n for n in map(self.name, self._all_inputs()) if n not in constants]

    def outputs(self) -> list[str]:
        """Names of the graph's outputs."""
        return [self.name(v) for v in self._outputs()]

    def is_nested(self) -> bool:
        """Whether the graph belongs to a node with control flow."""
        return bool(self._api.pointer(self._api.Graph_GetParentNode, self._graph))

    def has_control_flow(self) -> bool:
        """Whether a node has graphs of its own."""
        return any(self._api.size(self._api.Node_GetNumSubgraphs, n) for n in self.nodes)

    def provider(self, position: int) -> str:
        """The provider that has taken the node at this position; empty for none."""
        return self._api.text(self._api.Node_GetEpName, self.nodes[position])

    def model(self) -> onnx.ModelProto:
        """The graph as a model; its nodes are in the order of `nodes`."""
        nodes = [self._node(n) for n in self.nodes]
        known = set(self.inputs())
        graph = helper.make_graph(
            nodes,
            "graph",
            [self._type(v) for v in self._all_inputs() if self.name(v) in known],
            [self._type(v) for v in self._outputs()],
            [self._initializer(v) for v in self._initializers()],
        )
        return helper.make_model(graph, opset_imports=self._operator_sets())

    def _all_inputs(self) -> Any:
        return self._api.pointers(self._api.Graph_GetNumInputs, self._api.Graph_GetInputs, self._graph)

    def _outputs(self) -> Any:
        return self._api.pointers(self._api.Graph_GetNumOutputs, self._api.Graph_GetOutputs, self._graph)

    def _initializers(self) -> Any:
        return self._api.pointers(self._api.Graph_GetNumInitializers, self._api.Graph_GetInitializers, self._graph)

    def _operator_sets(self) -> list[onnx.OperatorSetIdProto]:
        count = self._api.size(self._api.Graph_GetNumOperatorSets, self._graph)
        domains, versions = (ctypes.c_char_p * count)(), (ctypes.c_int64 * count)()
        self._api.Graph_GetOperatorSets(self._graph, domains, versions, count)
        return [helper.make_opsetid((d or b"").decode(), v) for d, v in zip(domains, versions, strict=True)]

    def _node(self, node: int) -> onnx.NodeProto:
        api = self._api
        made = helper.make_node(
            api.text(api.Node_GetOperatorType, node),
            [self.name(v) for v in api.pointers(api.Node_GetNumInputs, api.Node_GetInputs, node)],
            [self.name(v) for v in api.pointers(api.Node_GetNumOutputs, api.Node_GetOutputs, node)],
            name=api.text(api.Node_GetName, node),
            domain=api.text(api.Node_GetDomain, node),
        )
        for attribute in api.pointers(api.Node_GetNumAttributes, api.Node_GetAttributes, node):
            name = api.text(api.OpAttr_GetName, attribute)
            value = self._attribute(attribute)
            if value is not None:
                made.attribute.append(helper.make_attribute(name, value))
        return made

    def _attribute(self, attribute: int) -> Any:
        """The value of an attribute; None for an empty list, which has no type."""
        api = self._api
        kind = api.number(api.OpAttr_GetType, attribute)
        if kind == _TENSOR:
            value = api.pointer(api.OpAttr_GetTensorAttributeAsOrtValue, attribute)
            tensor = numpy_helper.from_array(array_of(api, value).copy())
            api.ReleaseValue(value)
            return tensor
        size = ctypes.c_size_t()
        # The first call fails because the buffer is empty, and gives the size.
        try:
            api.ReadOpAttr(attribute, kind, None, 0, ctypes.byref(size))
        except RuntimeError:
            if not size.value:
                raise
        buffer = ctypes.create_string_buffer(size.value)
        api.ReadOpAttr(attribute, kind, buffer, size.value, ctypes.byref(size))
        if kind in _NUMBERS:
            values = np.frombuffer(buffer.raw, _NUMBERS[kind]).tolist()
            return values[0] if kind in (_INT, _FLOAT) else values or None
        text = buffer.raw[: size.value]
        return text.rstrip(b"\0") if kind == _STRING else [t for t in text.split(b"\0") if t] or None

    def _type(self, value: int) -> onnx.ValueInfoProto:
        api = self._api
        info = api.pointer(api.CastTypeInfoToTensorInfo, api.pointer(api.GetValueInfoTypeInfo, value))
        kind, shape = _kind_and_shape(api, info)
        return helper.make_tensor_value_info(self.name(value), kind, [None if d < 0 else d for d in shape])

    def _initializer(self, value: int) -> TensorProto:
        api = self._api
        return numpy_helper.from_array(
            array_of(api, api.pointer(api.ValueInfo_GetInitializerValue, value)), self.name(value)
        )


def _kind_and_shape(api: Api, info: int) -> tuple[int, list[int]]:
    dimensions = (ctypes.c_int64 * api.size(api.GetDimensionsCount, info))()
    api.GetDimensions(info, dimensions, len(dimensions))
    return api.number(api.GetTensorElementType, info), list(dimensions)


def array_of(api: Api, value: int) -> NDArray[Any]:
    """The memory of a tensor as an array."""
    info = api.pointer(api.GetTensorTypeAndShape, value)
    kind, shape = _kind_and_shape(api, info)
    api.ReleaseTensorTypeAndShapeInfo(info)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.zeros(shape, dtype)
    memory = (ctypes.c_byte * (count * dtype.itemsize)).from_address(api.pointer(api.GetTensorMutableData, value))
    return np.frombuffer(memory, dtype).reshape(shape)
