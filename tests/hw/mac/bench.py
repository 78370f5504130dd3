"""Builds a MAC unit with Verilator and runs instructions on it; see bench.cpp."""

import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from amaranth.back import verilog
from amaranth.hdl import Elaboratable

from intloom.hw.mac.unit import MacUnit
from intloom.hw.ports import READ_LATENCY, WEIGHT_LATENCY
from intloom.hw.spec.isa import Instruction, encode
from intloom.hw.spec.params import HardwareParams
from intloom.sim.rtl.build import BuildPlan, build

_SETTINGS, _REPORT = "<9I", "<8I"


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


def build_bench(top: Elaboratable, source: Path, **sizes: int) -> Path:
    """An executable of the RTL and a C++ bench, which gets these macros, from the cache or built now."""
    generated = {"dut.v": verilog.convert(top, name="dut", emit_src=False), source.name: source.read_text()}
    flags = tuple(f"-D{name}={value}" for name, value in sizes.items())
    plan = BuildPlan(
        name=source.stem, top="dut", generated=generated, cpp=(source.name,), cxx_flags=flags, optimize="-O1",
        verilator_flags=("--no-timing",),
    )  # fmt: skip
    return build(plan).binary


class Bench:
    """A MAC unit with the given parameters."""

    def __init__(self, params: HardwareParams) -> None:
        self.params = params
        sizes = {"ROWS": params.rows, "READ_LATENCY": READ_LATENCY, "WEIGHT_LATENCY": WEIGHT_LATENCY}
        source = Path(__file__).with_name("bench.cpp")
        self._binary = build_bench(MacUnit(params), source, **{f"BENCH_{name}": value for name, value in sizes.items()})

    def run(
        self,
        program: list[Instruction],
        scratch: np.ndarray,
        weights: np.ndarray,
        *,
        results_ready: int = 100,
        residual_ready: int = 100,
        offered: int = 100,
        seed: int = 1,
        most_cycles: int = 1_000_000,
        longest_wait: int = 1,
    ) -> Outcome:
        """Run the instructions one after the other, as fast as the unit takes them.

        The results port is ready, or not, for up to `longest_wait` cycles at a time.
        """
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
            longest_wait,
        )
        encoded = b"".join(map(encode, program))
        with tempfile.TemporaryDirectory() as folder:
            job, result = Path(folder) / "job", Path(folder) / "result"
            job.write_bytes(struct.pack(_SETTINGS, *settings) + scratch.tobytes() + weights.tobytes() + encoded)
            finished = subprocess.run([self._binary, job, result], capture_output=True, text=True, check=False)
            assert finished.returncode == 0, finished.stderr
            data = result.read_bytes()
        size = struct.calcsize(_REPORT)
        return Outcome(*struct.unpack(_REPORT, data[:size]), np.frombuffer(data[size:], np.int8).reshape(-1, p.rows))
