"""Results of RTL runs, kept under the hash of all that they depend on: Verilog, program, inputs, memory, bench."""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.cache.store import Kind, cached_bytes
from intloom.compiler.program.file import to_bytes
from intloom.compiler.program.program import Program
from intloom.sim.result import Arrays
from intloom.sim.rtl.backend import RtlBackend

_FIGURES = "figures"


@dataclass(frozen=True)
class CachedRun:
    """Outputs and figures of a run, fresh or kept."""

    outputs: Mapping[str, NDArray[np.int8]]
    figures: Mapping[str, Any]
    cached: bool


def run_key(program: Program, inputs: Arrays, backend: RtlBackend) -> str:
    """Hash of everything that a run's result depends on."""
    digest = hashlib.sha256(backend.verilog(program).encode())
    digest.update(to_bytes(program))
    # Sorted, so that the order in which a caller lists inputs does not matter.
    for name in sorted(inputs):
        digest.update(name.encode() + b"\0" + np.ascontiguousarray(inputs[name]).tobytes())
    digest.update(backend.settings_text().encode())
    return digest.hexdigest()[:32]


def run_cached(program: Program, inputs: Arrays, backend: RtlBackend) -> CachedRun:
    """The run's outputs and figures, from the cache when nothing that matters has changed. Failed runs are not kept."""

    def make(folder: Path) -> Path:
        result = backend.run(program, inputs)
        # A tensor may have any name, so its key carries a prefix that the figures' key lacks.
        arrays: dict[str, Any] = {f"t:{name}": array for name, array in result.outputs.items()}
        arrays[_FIGURES] = np.frombuffer(json.dumps(result.to_dict()).encode(), np.uint8)
        np.savez_compressed(folder / "run.npz", **arrays)
        return folder / "run.npz"

    content, cached = cached_bytes(Kind.RESULT, run_key(program, inputs, backend), make, detail=program.name)
    with np.load(io.BytesIO(content)) as stored:
        figures = json.loads(bytes(stored[_FIGURES]).decode())
        return CachedRun({n[2:]: stored[n] for n in stored.files if n != _FIGURES}, figures, cached)
