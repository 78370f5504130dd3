"""Arm's Vela beside this compiler: its estimates for a TFLite file, with the same memory.

Vela estimates; nothing here runs an Ethos-U.
"""

import csv
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from intloom.common.errors import UsageError
from intloom.common.extras import require_extra
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.program.program import MemoryTiming

_CLOCK = 1_000_000_000
_MEMORY = """
[System_Config.Same_Memory]
core_clock={clock}
axi0_port=Sram
axi1_port={outer}
Sram_clock_scale=1.0
Sram_burst_length=64
Sram_read_latency=32
Sram_write_latency=32
Sram_max_reads=16
Sram_max_writes=16
{outer}_clock_scale={scale}
{outer}_burst_length=128
{outer}_read_latency={latency}
{outer}_write_latency={latency}
{outer}_max_reads=64
{outer}_max_writes=32
[Memory_Mode.Same_Cache]
const_mem_area=Axi1
arena_mem_area={arena}
cache_mem_area=Axi0
{size}
"""


@dataclass(frozen=True)
class Estimate:
    """What Vela estimates for a network on one of its accelerators."""

    accelerator: str
    multipliers: int
    cycles: int
    macs: int
    dram_bytes: int
    """Bytes that cross the outer memory port."""
    weight_bytes: int
    """Weights, losslessly coded."""
    original_weight_bytes: int
    cpu_operators: bool = False

    @property
    def use(self) -> float:
        """Share of the cycles' products that are work."""
        return self.macs / max(1, self.cycles * self.multipliers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "use": self.use}


@dataclass(frozen=True)
class Ethos:
    """An accelerator that Vela compiles for."""

    name: str
    multipliers: int

    @property
    def is_u55(self) -> bool:
        """Whether the outer memory is flash: U55 keeps all tensors in SRAM."""
        return self.name.startswith("ethos-u55")


_CONFIGURATIONS = {
    "ethos-u55": (32, 64, 128, 256),
    "ethos-u65": (256, 512),
    "ethos-u85": (128, 256, 512, 1024, 2048),
}


def peers(multipliers: int) -> tuple[Ethos, ...]:
    """The accelerators with that many multipliers, or with the nearest number."""
    chosen = []
    for family, sizes in _CONFIGURATIONS.items():
        nearest = min(sizes, key=lambda n: (abs(n - multipliers), n))
        chosen.append(Ethos(f"{family}-{nearest}", nearest))
    return tuple(chosen)


def estimate(model: Path, ethos: Ethos, memory: MemoryTiming, cache_kib: int) -> Estimate:
    """Vela's estimate for a file, with this memory behind the accelerator and this much SRAM before it.

    Raises
    ------
    EnvironmentFault
        Vela is not installed.
    UsageError
        Vela does not compile the file.
    """
    check_tool()
    with temporary_folder() as folder:
        config = folder / "memory.ini"
        config.write_text(_config(ethos, memory, cache_kib))
        command = [
            sys.executable, "-c", "from ethosu.vela.vela import main; main()", str(model), "--output-dir", str(folder),
            "--accelerator-config", ethos.name, "--config", str(config),
            "--system-config", "Same_Memory", "--memory-mode", "Same_Cache",
        ]  # fmt: skip
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        summaries = list(folder.glob("*_summary_*.csv"))
        if done.returncode or len(summaries) != 1:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise UsageError(f"Vela does not compile {model}: {lines[-1] if lines else 'no message'}")
        (row,) = csv.DictReader(summaries[0].read_text().splitlines())
    outer = "off_chip_flash_total_bytes" if ethos.is_u55 else "dram_total_bytes"
    return Estimate(
        accelerator=ethos.name,
        multipliers=ethos.multipliers,
        cycles=round(float(row["cycles_total"])),
        macs=round(float(row["nn_macs"])),
        dram_bytes=round(float(row[outer])),
        weight_bytes=round(float(row["total_npu_encoded_weights"])),
        original_weight_bytes=round(float(row["total_original_weights"])),
        cpu_operators="CPU operators = 0 " not in done.stdout,
    )


def _config(ethos: Ethos, memory: MemoryTiming, cache_kib: int) -> str:
    beats = memory.bandwidth or 1.0
    return _MEMORY.format(
        clock=_CLOCK,
        outer="OffChipFlash" if ethos.is_u55 else "Dram",
        # Vela multiplies the port's bytes by this number; the port of U55 has half the bytes.
        scale=beats * (2 if ethos.is_u55 else 1),
        latency=memory.read_latency,
        arena="Axi0" if ethos.is_u55 else "Axi1",
        size="" if ethos.is_u55 else f"arena_cache_size={cache_kib << 10}",
    )


def check_tool() -> None:
    """Raise an error if Vela is not installed.

    Raises
    ------
    EnvironmentFault
        It is not; the message ends with the command that installs it.
    """
    require_extra("vela", "ethosu.vela")
