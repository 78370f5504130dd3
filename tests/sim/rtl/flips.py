"""Flipped bits in local memories: edits of the Verilog; plusargs choose memory, row, bit and moment."""

import re
from dataclasses import dataclass

from intloom.hw.spec.params import HardwareParams

_FLIP = """
  integer flip_row, flip_bit, flip_after, flip_writes;
  reg flip_due;
  initial begin
    flip_writes = 0;
    flip_due = 0;
    if (!$value$plusargs("{name}_row=%d", flip_row)) flip_row = -1;
    if (!$value$plusargs("{name}_bit=%d", flip_bit)) flip_bit = 0;
    if (!$value$plusargs("{name}_after=%d", flip_after)) flip_after = 1;
  end
  always @(posedge engine_clk) begin
    flip_due <= 0;
    if (({written}) && {address} == flip_row) begin
      flip_writes <= flip_writes + 1;
      flip_due <= flip_writes + 1 == flip_after;
    end
    if (flip_due) memory[flip_row][flip_bit] <= ~memory[flip_row][flip_bit];
  end
"""
_WRITE = re.compile(r"^\s*if \((\S+)\)\s+memory\[([^\]\s]+)\]\S* <= ", re.MULTILINE)


@dataclass(frozen=True)
class Flip:
    """A bit of a stored word that flips one cycle after a write of the word; `after` counts these writes from 1."""

    name: str
    row: int
    bit: int
    after: int = 1

    def plusargs(self) -> tuple[str, ...]:
        """Arguments of the simulator."""
        return f"+{self.name}_row={self.row}", f"+{self.name}_bit={self.bit}", f"+{self.name}_after={self.after}"


def scratch_flip(params: HardwareParams, word: int, byte: int, bit: int, after: int = 1) -> Flip:
    """Bit 8 of a byte is its parity bit."""
    row, bank = divmod(word, params.scratch_banks)
    return Flip(f"bank{bank}", row, (8 + params.memory_parity) * byte + bit, after)


def weight_flip(word: int, bit: int) -> Flip:
    """The bit above the word's bytes is its parity bit."""
    return Flip("weights", word, bit)


def with_flips(verilog: str, params: HardwareParams) -> str:
    """The Verilog in which each bank and the weight memory can have a flip."""
    modules = {f"bank{n}": f"scratch.bank{n}" for n in range(params.scratch_banks)} | {"weights": "weights"}
    for name, module in modules.items():
        found = re.search(
            rf"^module \\npu\.engine\.{re.escape(module)} \(.*?(?=^endmodule)", verilog, re.MULTILINE | re.DOTALL
        )
        assert found is not None, module
        writes = _WRITE.findall(found.group())
        assert len({address for _, address in writes}) == 1, (module, writes)
        written = " || ".join(condition for condition, _ in writes)
        text = _FLIP.format(name=name, written=written, address=writes[0][1])
        verilog = verilog[: found.end()] + text + verilog[found.end() :]
    return verilog
