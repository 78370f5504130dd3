"""The part of onnxruntime's C interface that the provider uses: positions in its function tables, and structures.

onnxruntime only appends to its tables, so positions stay valid. They are those of version 23 of the interface, the
first one with providers in libraries; onnxruntime asserts some of them when it is built, for example that GetEpApi is
function 317 and CreateExternalInitializerInfo function 389.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

API_VERSION = 23
OK, FAIL = None, 1
CPU_DEVICE = 0

_SIZE, _TEXT, _INT = POINTER(c_size_t), POINTER(c_char_p), POINTER(c_int)
_POINTER, _LONG = POINTER(c_void_p), POINTER(c_int64)

# Name: position, types of the parameters. All of these functions return a status, NULL if they succeed.
_CHECKED: dict[str, tuple[int, tuple[Any, ...]]] = {
    "GetTensorMutableData": (51, (c_void_p, _POINTER)),
    "CastTypeInfoToTensorInfo": (55, (c_void_p, _POINTER)),
    "GetTensorElementType": (60, (c_void_p, _INT)),
    "GetDimensionsCount": (61, (c_void_p, _SIZE)),
    "GetDimensions": (62, (c_void_p, _LONG, c_size_t)),
    "GetTensorTypeAndShape": (65, (c_void_p, _POINTER)),
    "KernelContext_GetInput": (90, (c_void_p, c_size_t, _POINTER)),
    "KernelContext_GetOutput": (91, (c_void_p, c_size_t, _LONG, c_size_t, _POINTER)),
    "ReadOpAttr": (272, (c_void_p, c_int, c_void_p, c_size_t, _SIZE)),
    "GetValueInfoName": (289, (c_void_p, _TEXT)),
    "GetValueInfoTypeInfo": (290, (c_void_p, _POINTER)),
    "ValueInfo_GetInitializerValue": (326, (c_void_p, _POINTER)),
    "Graph_GetNumOperatorSets": (336, (c_void_p, _SIZE)),
    "Graph_GetOperatorSets": (337, (c_void_p, _TEXT, _LONG, c_size_t)),
    "Graph_GetNumInputs": (338, (c_void_p, _SIZE)),
    "Graph_GetInputs": (339, (c_void_p, _POINTER, c_size_t)),
    "Graph_GetNumOutputs": (340, (c_void_p, _SIZE)),
    "Graph_GetOutputs": (341, (c_void_p, _POINTER, c_size_t)),
    "Graph_GetNumInitializers": (342, (c_void_p, _SIZE)),
    "Graph_GetInitializers": (343, (c_void_p, _POINTER, c_size_t)),
    "Graph_GetNumNodes": (344, (c_void_p, _SIZE)),
    "Graph_GetNodes": (345, (c_void_p, _POINTER, c_size_t)),
    "Graph_GetParentNode": (346, (c_void_p, _POINTER)),
    "Node_GetName": (349, (c_void_p, _TEXT)),
    "Node_GetOperatorType": (350, (c_void_p, _TEXT)),
    "Node_GetDomain": (351, (c_void_p, _TEXT)),
    "Node_GetNumInputs": (353, (c_void_p, _SIZE)),
    "Node_GetInputs": (354, (c_void_p, _POINTER, c_size_t)),
    "Node_GetNumOutputs": (355, (c_void_p, _SIZE)),
    "Node_GetOutputs": (356, (c_void_p, _POINTER, c_size_t)),
    "Node_GetNumAttributes": (359, (c_void_p, _SIZE)),
    "Node_GetAttributes": (360, (c_void_p, _POINTER, c_size_t)),
    "OpAttr_GetTensorAttributeAsOrtValue": (362, (c_void_p, _POINTER)),
    "OpAttr_GetType": (363, (c_void_p, _INT)),
    "OpAttr_GetName": (364, (c_void_p, _TEXT)),
    "Node_GetNumSubgraphs": (365, (c_void_p, _SIZE)),
    "Node_GetEpName": (368, (c_void_p, _TEXT)),
    "GetSessionOptionsConfigEntries": (379, (c_void_p, _POINTER)),
}
# Name: position, type of the result, types of the parameters.
_PLAIN: dict[str, tuple[int, Any, tuple[Any, ...]]] = {
    "CreateStatus": (0, c_void_p, (c_int, c_char_p)),
    "GetErrorMessage": (2, c_char_p, (c_void_p,)),
    "ReleaseStatus": (93, None, (c_void_p,)),
    "ReleaseValue": (96, None, (c_void_p,)),
    "ReleaseTensorTypeAndShapeInfo": (99, None, (c_void_p,)),
    "GetKeyValuePairs": (298, None, (c_void_p, POINTER(_TEXT), POINTER(_TEXT), _SIZE)),
    "ReleaseKeyValuePairs": (300, None, (c_void_p,)),
    "HardwareDevice_Type": (307, c_int, (c_void_p,)),
    "GetEpApi": (317, c_void_p, ()),
}
_CREATE_EP_DEVICE, _ADD_NODES_TO_FUSE = 0, 2

CreateFactories = ctypes.CFUNCTYPE(c_void_p, c_char_p, c_void_p, c_void_p, _POINTER, c_size_t, _SIZE)
Release = ctypes.CFUNCTYPE(None, c_void_p)
GetText = ctypes.CFUNCTYPE(c_void_p, c_void_p)
GetNumber = ctypes.CFUNCTYPE(c_uint32, c_void_p)
GetFlag = ctypes.CFUNCTYPE(ctypes.c_bool, c_void_p)
GetDevices = ctypes.CFUNCTYPE(c_void_p, c_void_p, _POINTER, c_size_t, _POINTER, c_size_t, _SIZE)
CreateEp = ctypes.CFUNCTYPE(c_void_p, c_void_p, _POINTER, _POINTER, c_size_t, c_void_p, c_void_p, _POINTER)
CreateNothing = ctypes.CFUNCTYPE(c_void_p, c_void_p, _POINTER)
GetCapability = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)
Compile = ctypes.CFUNCTYPE(c_void_p, c_void_p, _POINTER, _POINTER, c_size_t, _POINTER, _POINTER)
CreateState = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, _POINTER)
Compute = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)


class Factory(ctypes.Structure):
    """The factory of providers; functions that are NULL are optional."""

    _fields_ = (
        ("version", c_uint32), ("get_name", GetText), ("get_vendor", GetText), ("get_devices", GetDevices),
        ("create_ep", CreateEp), ("release_ep", c_void_p), ("get_vendor_id", GetNumber), ("get_version", GetText),
        ("validate_compiled", c_void_p), ("create_allocator", c_void_p), ("release_allocator", c_void_p),
        ("create_data_transfer", CreateNothing), ("is_stream_aware", GetFlag), ("create_stream", c_void_p),
        ("set_environment", c_void_p), ("later", c_void_p * 16),
    )  # fmt: skip


class Ep(ctypes.Structure):
    """A provider, which belongs to one session."""

    _fields_ = (
        ("version", c_uint32), ("get_name", GetText), ("get_capability", GetCapability), ("compile", Compile),
        ("release_compute_infos", c_void_p), ("optional", c_void_p * 24),
    )  # fmt: skip


class ComputeInfo(ctypes.Structure):
    """The functions of one compiled part of a graph."""

    _fields_ = (("version", c_uint32), ("create_state", CreateState), ("compute", Compute), ("release_state", c_void_p))


class FusionOptions(ctypes.Structure):
    """How nodes become one node."""

    _fields_ = (("version", c_uint32), ("drop_constant_initializers", ctypes.c_bool))


class Api:
    """Function tables of the running onnxruntime."""

    def __init__(self, base: int) -> None:
        get_api = ctypes.CFUNCTYPE(c_void_p, c_uint32)(c_void_p.from_address(base).value or 0)
        self._table = get_api(API_VERSION)
        if not self._table:
            raise RuntimeError(f"onnxruntime does not have version {API_VERSION} of its interface")
        for name, (position, result, parameters) in _PLAIN.items():
            setattr(self, name, _function(self._table, position, result, parameters))
        for name, (position, parameters) in _CHECKED.items():
            setattr(self, name, self._checked(_function(self._table, position, c_void_p, parameters)))
        provider_table = self.GetEpApi()
        devices = (c_void_p, c_void_p, c_void_p, c_void_p, _POINTER)
        nodes = (c_void_p, _POINTER, c_size_t, POINTER(FusionOptions))
        self.CreateEpDevice = self._checked(_function(provider_table, _CREATE_EP_DEVICE, c_void_p, devices))
        self.AddNodesToFuse = self._checked(_function(provider_table, _ADD_NODES_TO_FUSE, c_void_p, nodes))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def _checked(self, function: Any) -> Any:
        def call(*arguments: Any) -> None:
            if status := function(*arguments):
                message = self.GetErrorMessage(status).decode()
                self.ReleaseStatus(status)
                raise RuntimeError(f"onnxruntime: {message}")

        return call

    def text(self, function: Any, of: int) -> str:
        """A text that `function` gives of an object."""
        value = c_char_p()
        function(of, ctypes.byref(value))
        return (value.value or b"").decode()

    def entries(self, options: int) -> dict[str, str]:
        """The configuration entries of a session's options."""
        pairs = self.pointer(self.GetSessionOptionsConfigEntries, options)
        keys, values, count = _TEXT(), _TEXT(), c_size_t()
        self.GetKeyValuePairs(pairs, ctypes.byref(keys), ctypes.byref(values), ctypes.byref(count))
        entries = {(keys[i] or b"").decode(): (values[i] or b"").decode() for i in range(count.value)}
        self.ReleaseKeyValuePairs(pairs)
        return entries

    def pointer(self, function: Any, *of: Any) -> int:
        """A pointer that `function` gives of an object; 0 if it is NULL."""
        value = c_void_p()
        function(*of, ctypes.byref(value))
        return value.value or 0

    def number(self, function: Any, of: int) -> int:
        """An enumeration value that `function` gives of an object."""
        value = c_int()
        function(of, ctypes.byref(value))
        return value.value

    def pointers(self, count: Any, function: Any, of: int) -> Sequence[int]:
        """The objects that a pair of functions gives of an object; 0 for missing ones."""
        number = self.size(count, of)
        values = (c_void_p * number)()
        function(of, values, number)
        return [v or 0 for v in values]

    def size(self, count: Any, of: int) -> int:
        """A number of objects."""
        number = c_size_t()
        count(of, ctypes.byref(number))
        return number.value


def _function(table: int, position: int, result: Any, parameters: Sequence[Any]) -> Any:
    address = c_void_p.from_address(table + position * ctypes.sizeof(c_void_p)).value or 0
    return ctypes.CFUNCTYPE(result, *parameters)(address)
