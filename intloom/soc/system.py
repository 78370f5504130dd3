"""A run of the system: its Verilog, its simulator, its memory."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np

from intloom.common.errors import SimulationError
from intloom.common.extras import require_extra
from intloom.hw.soc.soc import SOC_TOP, generate_soc
from intloom.hw.soc.uart import UartTransmitter
from intloom.hw.spec.params import HardwareParams
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.soc import SOC_MEMORY, SocResult, build_soc, run_soc
from intloom.sim.rtl.verilog import verilog_of
from intloom.soc.firmware import Firmware

_CORE_PACKAGE = "pythondata_cpu_vexriscv"
_CORE = "VexRiscv.v"
"""The variant with 4 KiB of instruction cache and 4 KiB of data cache, RV32IM."""
_LIMIT = 200_000_000
PASSED = "PASSED"


def core_verilog() -> str:
    """The core's Verilog, from its package."""
    require_extra("soc", _CORE_PACKAGE)
    spec = importlib.util.find_spec(_CORE_PACKAGE)
    folder = Path(next(iter((spec and spec.submodule_search_locations) or ["."])))
    return (folder / "verilog" / _CORE).read_text(encoding="utf-8")


def run_firmware(
    firmware: Firmware,
    params: HardwareParams,
    folder: Path,
    data: bytes = b"",
    *,
    accelerators: int = 1,
    say: Callable[[str], None] | None = None,
) -> SocResult:
    """Build the simulator and run firmware, with `data` behind its memory; `say` gets each line of the console.

    Raises
    ------
    SimulationError
        The firmware did not end with success.
    """
    # The simulator runs in this folder, so the paths that it gets must not be relative to another one.
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    simulator = build_soc(SOC_TOP, generate_soc(params, accelerators), verilog_of(params), core_verilog())
    files = RunFiles(folder)
    memory = np.zeros(firmware.memory_bytes, np.uint8)
    for at, contents in ((0, firmware.binary), (firmware.data_at, data)):
        memory[at : at + len(contents)] = np.frombuffer(contents, np.uint8)
    memory.tofile(files.memory)
    job = Job(
        word_bytes=params.word_bytes,
        port_bytes=params.port_bytes,
        memory_words=firmware.memory_bytes // params.word_bytes,
        program_word=0,
        instructions=0,
        limit=_LIMIT,
        memory=SOC_MEMORY,
    )
    result = run_soc(simulator, job, files, UartTransmitter.BIT_CYCLES, say)
    if not result.finished:
        raise SimulationError(f"the firmware did not end within {_LIMIT:,} cycles:\n{result.console[-1000:]}")
    if result.console.splitlines()[-1:] != [PASSED]:
        raise SimulationError(f"the firmware did not report success:\n{result.console[-1000:]}")
    return result
