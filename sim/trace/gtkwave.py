"""A save file for waves: GTKWave shows which instruction of which layer each unit works on, beside its signals."""

from pathlib import Path

from intloom.common.atomic_write import write_text
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import COUNT_BITS, QUEUED_UNITS, disassemble

SAVE_FILE = "waves.gtkw"
_NAMES = "instructions.txt"
_SHOWN = 60
"""Characters of an instruction's text."""
_BINARY, _TRANSLATED, _HEXADECIMAL = "@28", "@2022", "@22"
_BUS = ("araddr", "arvalid", "arready", "rvalid", "rready", "awaddr", "awvalid", "awready", "wvalid", "wready")


def write_save_file(waves: Path, program: Program, top: str) -> Path:
    """Write the save file beside `waves`, with the texts of the instructions; `top` is the accelerator's place in them.

    The watchdog's candidates have, for each unit, whether it works and the index of the instruction issued last.
    """
    folder = waves.parent
    digits = -(-COUNT_BITS // 4)
    texts = []
    for index, (instruction, source) in enumerate(zip(program.instructions, program.provenance, strict=True)):
        layer = program.layers[source.layer].name if source.layer >= 0 else ""
        place = f"{layer} tile {source.tile} " if layer else ""
        texts.append(f"{index:0{digits}X} #{index} {place}{disassemble(instruction)[:_SHOWN]}")
    write_text(folder / _NAMES, "\n".join(texts) + "\n")
    lines = [f'[dumpfile] "{waves.resolve()}"', "[sst_width] 250", "[signals_width] 320"]
    for unit in QUEUED_UNITS:
        candidate = f"{top}.engine.candidates[{2 * unit}]"
        lines += ["@200", f"-{unit.name}", _BINARY, f"{candidate}.valid"]
        lines += [_TRANSLATED, f"^1 {(folder / _NAMES).resolve()}", f"{candidate}.index[{COUNT_BITS - 1}:0]"]
    lines += ["@200", "-BUS"]
    for name in _BUS:
        if name.endswith("addr"):
            lines += [_HEXADECIMAL, f"{top}.m_axi_{name}[{program.params.axi_addr_bits - 1}:0]"]
        else:
            lines += [_BINARY, f"{top}.m_axi_{name}"]
    write_text(folder / SAVE_FILE, "\n".join(lines) + "\n")
    return folder / SAVE_FILE
