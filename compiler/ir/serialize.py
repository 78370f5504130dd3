"""Integer graphs as files that a person can read: JSON, with arrays as base64 of their bytes."""

import base64
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from intloom.common.atomic_write import write_text
from intloom.common.errors import FileFormatError, IntloomError
from intloom.compiler.ir import IntGraph, Node, Tensor
from intloom.compiler.ir.node import operators
from intloom.compiler.ir.verify import verify
from intloom.hw.spec.arith import Affine

FORMAT = "intloom-graph"
VERSION = 3


def to_text(graph: IntGraph) -> str:
    """The graph as text; the same graph always gives the same text."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "tensors": [dataclasses.asdict(t) for t in graph.tensors.values()],
        "nodes": [
            {"kind": type(n).__name__, **{f.name: _plain(getattr(n, f.name)) for f in dataclasses.fields(n)}}
            for n in graph.nodes
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def from_text(text: str) -> IntGraph:
    """The graph that `to_text` wrote, verified.

    Raises
    ------
    FileFormatError
        The text is no integer graph, is of another version, or breaks a rule of the graph.
    """
    try:
        document = json.loads(text)
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            was = f"{document.get('format')} {document.get('version')}"
            raise FileFormatError(f"an integer graph must have format {FORMAT} {VERSION}, not {was}")
        tensors = {t["name"]: Tensor(**{**t, "shape": tuple(t["shape"])}) for t in document["tensors"]}
        nodes = tuple(_node(n) for n in document["nodes"])
        graph = IntGraph(document["name"], tensors, nodes, tuple(document["inputs"]), tuple(document["outputs"]))
        verify(graph)
    except IntloomError as error:
        raise FileFormatError(str(error)) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileFormatError(f"the text is not an integer graph: {type(error).__name__}: {error}") from None
    return graph


def save(graph: IntGraph, path: Path) -> None:
    """Write the graph to a file, all or nothing."""
    write_text(path, to_text(graph))


def load(path: Path) -> IntGraph:
    """Read a graph from a file."""
    try:
        return from_text(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"cannot read integer graph {path}: {error}") from None


def _plain(value: Any) -> Any:
    """A field as JSON knows it."""
    if isinstance(value, np.ndarray):
        return {
            "dtype": str(value.dtype),
            "shape": value.shape,
            "data": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode(),
        }
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Affine):
        return {"affine": dataclasses.asdict(value)}
    return dict(value) if isinstance(value, Mapping) else value


def _rich(value: Any) -> Any:
    """The field that `_plain` wrote."""
    if isinstance(value, list):
        return tuple(_rich(v) for v in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"dtype", "shape", "data"}:
        # Without `validate`, Python skips invalid characters and a damaged file would give other weights.
        data = base64.b64decode(value["data"], validate=True)
        return np.frombuffer(data, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
    if set(value) == {"bytes"}:
        return bytes.fromhex(value["bytes"])
    if set(value) == {"affine"}:
        return Affine(**value["affine"])
    return {k: _rich(v) for k, v in value.items()}


def _node(fields: dict[str, Any]) -> Node:
    fields = dict(fields)
    kind = fields.pop("kind")
    known = operators()
    # Only registered classes are created, so a file cannot name any other class.
    if kind not in known:
        raise FileFormatError(f"node kind must be one of {', '.join(known)}, not {kind!r}")
    return known[kind](**{name: _rich(value) for name, value in fields.items()})
