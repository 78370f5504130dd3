"""Conversion of an ONNX file to a `Model`: read, check, inline functions, infer shapes, convert."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnx.inliner
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from intloom.common.errors import FileFormatError, ModelError, UnsupportedError
from intloom.compiler.importer.batch import one_image
from intloom.compiler.importer.contributed import domain_of, mark_contributed
from intloom.compiler.importer.control_flow import check_branches, check_loops, decide_branches
from intloom.compiler.importer.convolutions import check_convolutions
from intloom.compiler.importer.dims import fix_dims
from intloom.compiler.importer.domains import to_standard_domain
from intloom.compiler.importer.guarded_inference import guarded_inference
from intloom.compiler.importer.limits import check_limits
from intloom.compiler.importer.model import MICROSOFT, STANDARD, Attribute, Constant, Model, OnnxNode, Opaque, ValueType
from intloom.compiler.importer.old_opsets import (
    CONVERTED_OPSET,
    converted,
    mark_layer_norms,
    modernize_ir,
    name_resize_operands,
)
from intloom.compiler.importer.order import check_order
from intloom.compiler.importer.shapes import infer_shapes
from intloom.compiler.importer.subgraphs import captured_values, inline_branches
from intloom.compiler.refusals import Refusal

_log = logging.getLogger(__name__)
_QUANTIZER_DOMAINS = frozenset({"onnx.brevitas", "qonnx.custom_op.general", "finn.custom_op.general", "mct_quantizers"})
OLDEST_OPSET = 7
NEWEST_OPSET = 25
_FIRST_QUANTIZED = 10
"""Opset of the first QuantizeLinear; models of older ones are converted."""
_FIRST_PER_CHANNEL = 13
"""Opset from which QuantizeLinear and DequantizeLinear have scales along an axis."""
_PAIR = frozenset({"QuantizeLinear", "DequantizeLinear"})
_CHAINS = frozenset({"ConvInteger", "MatMulInteger"})
LARGEST_FILE = 2 << 30
_FINDING = " (op_type:"
"""Start of a finding in a message of shape inference."""


def load_onnx_model(source: Path | onnx.ModelProto, *, dims: Mapping[str, int] | None = None) -> Model:
    """Read, check and convert an ONNX file, or a model in memory, which stays unchanged.

    `dims` sets the sizes of open dimensions by their names; see `fix_dims`.

    Raises
    ------
    FileFormatError
        The file cannot be read or is not an ONNX model.
    ModelError
        The model is not valid ONNX.
    UnsupportedError
        The opset is out of range, or a dimension is still dynamic.
    """
    if isinstance(source, onnx.ModelProto):
        proto, name = onnx.ModelProto(), source.graph.name or "model"
        proto.CopyFrom(source)
    else:
        proto, name = read_onnx(Path(source)), Path(source).stem
    single = one_image(proto)
    if single is not proto:
        _log.warning("the batch size becomes 1: the program runs once for each image")
    proto = single
    # The hash is taken after external data is loaded, so it covers the weights and not the file's path.
    content = hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()
    return from_proto(proto, name=name, source=content, dims=dims)


_FORMATS = (
    (
        0,
        b"PK\x03\x04",
        "is a zip archive, such as a PyTorch or Keras file: use torch.onnx.export or tf2onnx",
    ),
    (0, b"\x80\x02", "is a Python pickle, such as an old PyTorch file: export it with torch.onnx.export"),
    (0, b"\x89HDF", "is an HDF5 file, as Keras writes it: convert it with tf2onnx"),
    (4, b"ORTM", "is in onnxruntime's own format: give the ONNX file that it was made from"),
    (0, b"<?xml", "is XML, such as an OpenVINO model: give the ONNX file that it was made from"),
    (0, b"\x1f\x8b", "is compressed by gzip: unpack it"),
    (0, b"INTLOOM\0", "is a program that intloom compile made: give the quantized model, or run it with intloom run"),
    (0, b"version https://git-lfs", "is a pointer of Git LFS: download the file itself with git lfs pull"),
    (0, b"7767517", "is an ncnn model: give the ONNX file that it was made from"),
)
"""Position and bytes by which files of other formats are known, and what to do with them."""


def _other_format(start: bytes) -> str:
    """The format of a file that begins so, and what to do; empty if it is not known."""
    return next((text for at, magic, text in _FORMATS if start[at : at + len(magic)] == magic), "")


def read_onnx(path: Path, *, external_data: bool = True) -> onnx.ModelProto:
    """The model in an ONNX file, with its external data.

    Raises
    ------
    FileFormatError
        The file or its external data cannot be read, or it is not an ONNX model.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise FileFormatError(f"{path} must be smaller than 2 GiB: store its weights as external data")
        data = path.read_bytes()
        proto = onnx.ModelProto.FromString(data)
    except OSError as error:
        raise FileFormatError(f"cannot read model {path}: {error.strerror}") from None
    except DecodeError:
        form = "a TFLite file" if path.suffix == ".tflite" else "an ONNX model"
        what = _other_format(data) or "it does not begin or parse as one: check that the file is complete"
        raise FileFormatError(f"{path} must be {form}, but {what}") from None
    if not proto.HasField("graph"):
        raise FileFormatError(f"{path} must be an ONNX model, but it has no graph: export the model again")
    try:
        if external_data:
            onnx.load_external_data_for_model(proto, str(path.parent))
    except Exception as error:  # noqa: BLE001  # the loader raises OSError, ValueError, ValidationError…
        raise FileFormatError(f"external data of {path} cannot be read: {error}") from None
    return proto


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a ModelProto in memory was made of."""

    form: str = "ONNX model"
    """Of the file, for messages."""
    newest_opset: int = NEWEST_OPSET
    checked: bool = False
    """ONNX's checker has seen the file; a rewritten model may use what its opset does not define."""


_FILE = Origin()


def from_proto(
    proto: onnx.ModelProto,
    *,
    name: str,
    source: str = "",
    dims: Mapping[str, int] | None = None,
    origin: Origin = _FILE,
) -> Model:
    """Convert a ModelProto in memory; see `load_onnx_model`."""
    check_limits(proto)
    check_order(proto.graph)
    _check_opset(proto, origin.newest_opset)
    _check_quantization(proto)
    # Before the checks of operators: a function's node is no standard operator.
    if proto.functions:
        proto = _guarded("inline functions", lambda: onnx.inliner.inline_local_functions(proto))
    inline_branches(proto.graph)
    name_resize_operands(proto)
    proto = _with_known_opset(proto)
    to_standard_domain(proto)
    mark_contributed(proto)
    _check_known_ops(proto)
    # Sizes before shape inference, which would otherwise leave every later shape open.
    chosen = fix_dims(proto.graph, dims or {})
    _drop_unused_domains(proto)
    # Before inference, which reads required inputs and attributes without a check that they exist (onnx 1.23).
    if not origin.checked:
        _check_scales(proto)
        _guarded("check", lambda: check_valid(proto))
    proto = _guarded("infer shapes", lambda: infer_shapes(proto), origin.form)
    proto = _decided(proto)
    # Once more, since trips may depend on sizes.
    check_loops(proto)
    # Inlined functions bring new names, so the order is checked again.
    check_order(proto.graph)
    model = _convert(proto, name, source)
    check_convolutions(model)
    return replace(model, dims=chosen)


def _decided(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Inline the branches that sizes select; the sizes after them may select others."""
    if not decide_branches(proto.graph):
        check_branches(proto.graph)
        return proto
    inline_branches(proto.graph)
    return _decided(_guarded("infer shapes", lambda: infer_shapes(proto)))


def check_valid(proto: onnx.ModelProto) -> None:
    """Run ONNX's checker, without outputs of unknown shape: it requires shapes that unknown operators do not have."""
    outputs = list(proto.graph.output)
    del proto.graph.output[:]
    proto.graph.output.extend(v for v in outputs if v.type.tensor_type.HasField("shape"))
    onnx.checker.check_model(proto)
    del proto.graph.output[:]
    proto.graph.output.extend(outputs)


def _guarded(what: str, action: Any, form: str = "ONNX model") -> Any:
    """Run a step of the ONNX library; convert its exception to a ModelError that names the step."""
    try:
        return action()
    except UnsupportedError:  # from the guard of shape inference
        raise
    except ModelError as error:  # from it, too
        raise ModelError(f"not a valid {form} ({what}): {error}") from None
    except Exception as error:  # noqa: BLE001  # the library raises RuntimeError, ValueError and its own classes
        raise ModelError(
            f"not a valid {form} ({what}): {_first_finding(str(error))}: correct the model, or export it again"
        ) from None


def _first_finding(text: str) -> str:
    """The library's message on one line; shape inference lists a finding for each node, of which one is shown."""
    first, *others = " ".join(text.split()).rstrip(". ").split(_FINDING)
    if not others:
        return first
    more = f" ({len(others) - 1} more)" if len(others) > 1 else ""
    return f"{first}{_FINDING}{others[0].rstrip('. ')}{more}"


def _check_opset(proto: onnx.ModelProto, newest: int) -> None:
    versions = [o.version for o in proto.opset_import if o.domain in (STANDARD, "ai.onnx")]
    if not versions:
        raise ModelError("the model must import the standard operator set, but it imports none: add an opset import")
    if len(set(versions)) > 1:
        raise ModelError(f"the model must import one version of the standard operator set, not {versions}: remove one")
    if not OLDEST_OPSET <= versions[0] <= newest:
        raise UnsupportedError(
            f"the model's opset must be from {OLDEST_OPSET} to {newest}, not {versions[0]}: convert it to one of these",
            Refusal.OPSET.number,
        )


def _check_quantization(proto: onnx.ModelProto) -> None:
    """Refuse the nodes of QONNX and of MCT that quantize to any number of bits; onnxruntime implements none."""
    for node in proto.graph.node:
        if node.domain in _QUANTIZER_DOMAINS:
            raise UnsupportedError(
                f"node {node.name or node.output[0]!r} is {node.op_type} of {node.domain}: export the model with "
                "QuantizeLinear and DequantizeLinear (qonnx-convert --output-style qcdq, Brevitas: export_onnx_qcdq)",
                Refusal.QONNX.number,
            )


def _check_scales(proto: onnx.ModelProto) -> None:
    """Refuse scales per channel in an opset that lacks them: ONNX's checker does not name the remedy."""
    version = next(o.version for o in proto.opset_import if o.domain in (STANDARD, "ai.onnx"))
    for node in proto.graph.node:
        per_channel = node.op_type in _PAIR and not node.domain and any(a.name == "axis" for a in node.attribute)
        if per_channel and version < _FIRST_PER_CHANNEL:
            raise ModelError(
                f"node {node.name!r}: {node.op_type} has scales per channel from opset {_FIRST_PER_CHANNEL} on, not "
                f"in {version}: export with opset_version={_FIRST_PER_CHANNEL} or later, then quantize"
            )


def _with_known_opset(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model, converted by ONNX's converter if its opset is older than the first that this package reads.

    Integer chains with static scales become Conv and Gemm with a scale per channel, which need a newer opset.
    """
    version = next(o.version for o in proto.opset_import if o.domain in (STANDARD, "ai.onnx"))
    ops = {n.op_type for n in proto.graph.node}
    chains = version < CONVERTED_OPSET and ops & _CHAINS and "DynamicQuantizeLinear" not in ops
    marked = mark_layer_norms(proto)
    if version >= _FIRST_QUANTIZED and not chains and not marked:
        return proto
    modernize_ir(proto)
    _guarded("check", lambda: check_valid(proto))
    # The converter infers shapes without the guard.
    _guarded("infer shapes", lambda: guarded_inference(proto, check_type=False, strict=False))
    return cast("onnx.ModelProto", _guarded(f"convert from opset {version}", lambda: converted(proto)))


def _check_known_ops(proto: onnx.ModelProto) -> None:
    """Check that standard operators exist in the model's opset; shape inference silently ignores those that do not."""
    version = next(o.version for o in proto.opset_import if o.domain in (STANDARD, "ai.onnx"))
    for node in proto.graph.node:
        if node.domain in (STANDARD, "ai.onnx") and not onnx.defs.has(
            node.op_type, domain="", max_inclusive_version=version
        ):
            raise ModelError(f"node {node.name!r}: {node.op_type} is not an operator of opset {version}")


def _drop_unused_domains(proto: onnx.ModelProto) -> None:
    """Remove imported domains without nodes; exporters often import domains that the model does not use."""
    used = {n.domain for n in proto.graph.node} | {STANDARD, "ai.onnx"}
    # Backwards, because deletion shifts the later entries.
    for index in range(len(proto.opset_import) - 1, -1, -1):
        if proto.opset_import[index].domain not in used:
            del proto.opset_import[index]
    imported = {o.domain for o in proto.opset_import}
    for domain in used - imported - {STANDARD, "ai.onnx"}:
        raise ModelError(f"the model has nodes of domain {domain!r} but no opset import for it: add the import")


def _convert(proto: onnx.ModelProto, name: str, source: str) -> Model:
    graph = proto.graph
    constants = {t.name: _constant(t) for t in graph.initializer}
    # An output without a type may be an input or another value with one.
    types = {v.name: _type(v) for v in (*graph.output, *graph.input, *graph.value_info)}
    types |= {v.name: _type(v) for v in graph.output if v.type.tensor_type.elem_type}
    nodes = _convert_nodes(graph)
    opsets = {STANDARD if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}
    return Model(
        name=name,
        nodes=nodes,
        # An initializer with the name of an input is its default value, so the input is a constant here.
        inputs=tuple(v.name for v in graph.input if v.name not in constants),
        outputs=tuple(v.name for v in graph.output),
        constants=constants,
        types=types,
        opsets={MICROSOFT: 1, **opsets},
        source=source,
    )


def _convert_nodes(graph: onnx.GraphProto) -> tuple[OnnxNode, ...]:
    taken: set[str] = set()
    nodes = []
    for proto in graph.node:
        base = proto.name or f"{proto.op_type}({next((o for o in proto.output if o), '')})"
        name, copy = base, 1
        # ONNX does not require unique node names; assignments and messages do.
        while name in taken:
            copy += 1
            name = f"{base}#{copy}"
        taken.add(name)
        nodes.append(
            OnnxNode(
                name=name,
                op=proto.op_type,
                inputs=tuple(proto.input),
                outputs=tuple(proto.output),
                attributes={a.name: _attribute(a) for a in proto.attribute},
                domain=domain_of(proto),
            )
        )
    return tuple(nodes)


def _type(value: onnx.ValueInfoProto) -> ValueType:
    tensor = value.type.tensor_type
    dtype = onnx.TensorProto.DataType.Name(tensor.elem_type).lower() if tensor.elem_type else ""
    # A shape with one open dimension counts as unknown: every lowering needs all sizes.
    if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
        return ValueType(dtype, None)
    return ValueType(dtype, tuple(d.dim_value for d in tensor.shape.dim))


def _constant(tensor: onnx.TensorProto) -> Constant:
    """Convert a stored tensor to a numpy array; integer types below 8 bits become int8 or uint8."""
    dtype = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
    array = _guarded(f"read tensor {tensor.name!r}", lambda: numpy_helper.to_array(tensor))
    if dtype in ("int4", "int2"):
        array = array.astype(np.int8)
    elif dtype in ("uint4", "uint2"):
        array = array.astype(np.uint8)
    return Constant(array, dtype)


def _attribute(proto: onnx.AttributeProto) -> Attribute:
    kinds = onnx.AttributeProto
    if proto.type == kinds.TENSOR:
        return _constant(proto.t)
    if proto.type in (kinds.INT, kinds.FLOAT):
        return int(proto.i) if proto.type == kinds.INT else float(proto.f)
    if proto.type == kinds.STRING:
        return _text(proto.s)
    if proto.type in (kinds.INTS, kinds.FLOATS):
        return tuple(proto.ints) if proto.type == kinds.INTS else tuple(proto.floats)
    if proto.type == kinds.STRINGS and all(isinstance(_text(s), str) for s in proto.strings):
        return tuple(str(_text(s)) for s in proto.strings)
    graphs = [proto.g] if proto.type == kinds.GRAPH else list(proto.graphs)
    captured = dict.fromkeys(name for graph in graphs for name in captured_values(graph))
    return Opaque(proto.SerializeToString(), tuple(captured))


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
