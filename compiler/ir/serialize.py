"""Integer graphs as files that a person can read: JSON, with arrays as base64 of their bytes."""

import base64
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from intloom.common.atomic_write import write_text
from intloom.compiler.ir import IntGraph
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


def save(graph: IntGraph, path: Path) -> None:
    """Write the graph to a file, all or nothing."""
    write_text(path, to_text(graph))


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
