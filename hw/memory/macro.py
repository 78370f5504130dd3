"""Large memories as instances of one module, `intloom_ram`, which another flow replaces by its memory macros."""

from typing import Any

from amaranth.hdl import ClockSignal, Elaboratable, Instance, Module, Shape
from amaranth.lib.memory import Memory

from intloom.hw.mac.array.product import OneModule
from intloom.hw.yosys_attributes import NO_RW_CHECK

RAM_MODULE = "intloom_ram"
"""Name of the module in Verilog."""
LEAST_BITS = 512
"""Memories with fewer bits stay registers."""
REGISTER_FILE_WORDS = 64
"""Macros with at most so many words replace registers: `hw.asic` counts their bits."""

RAM_VERILOG = f"""\
// {RAM_MODULE}: a memory with one read port and one write port on one clock. Replace this module by memory macros.
// The contract, for every WORDS, WIDTH and GRANULE that the design has:
// - A rising edge with `read_enable` reads: `read_data` has the word at `read_address` after this edge and keeps it
//   until the next edge with `read_enable`.
// - At a rising edge, bit n of `write_enable` writes bits n*GRANULE to n*GRANULE+GRANULE-1 of the word at
//   `write_address`.
// - A read after the edge of a write returns the new word. If one edge reads and writes the same word, the read returns
//   the old word where READ_OLD is 1; where READ_OLD is 0 the read data is not used, and this model makes it undefined.
// - There is no reset. Contents are not used before they are written.
// - With the parameter memory_parity, every word is written once after power-up, before a program reads it.
// - In the scratchpad's banks and the weight memory all inputs come from registers, and a register follows `read_data`.
//   With memory_parity, the parity bits of the banks' `write_data` come from an XOR of eight registers.
//   In the others there are gates before the inputs and after the output.
module {RAM_MODULE} #(
  parameter WORDS = 256,
  parameter WIDTH = 32,
  parameter GRANULE = 8,
  parameter ADDRESS_BITS = 8,
  parameter READ_OLD = 0
) (
  input wire clk,
  input wire read_enable,
  input wire [ADDRESS_BITS-1:0] read_address,
  output reg [WIDTH-1:0] read_data,
  input wire [WIDTH/GRANULE-1:0] write_enable,
  input wire [ADDRESS_BITS-1:0] write_address,
  input wire [WIDTH-1:0] write_data
);
  reg [WIDTH-1:0] memory [0:WORDS-1];
  integer part;
  always @(posedge clk) begin
    for (part = 0; part < WIDTH / GRANULE; part = part + 1)
      if (write_enable[part]) memory[write_address][GRANULE*part +: GRANULE] <= write_data[GRANULE*part +: GRANULE];
    if (read_enable) read_data <= memory[read_address];
`ifndef SYNTHESIS
    if (!READ_OLD && read_enable && write_enable != 0 && read_address == write_address) read_data <= {{WIDTH{{1'bx}}}};
`endif
  end
endmodule
"""


def is_macro(memory: Memory) -> bool:
    """Whether a memory is large, and has one write port and only read ports with a clock."""
    bits = Shape.cast(memory.shape).width * memory.depth
    ports = *memory.read_ports, *memory.write_ports
    clocked = all(port.domain == "sync" for port in ports) and not any(p.transparent_for for p in memory.read_ports)
    return bits >= LEAST_BITS and len(memory.write_ports) == 1 and clocked


class MemoryMacros(OneModule):
    """Elaboration platform on which large memories are instances of `RAM_MODULE`, one for each read port."""

    def get_memory(self, memory: Memory) -> Elaboratable:
        """Amaranth calls this instead of elaborating a memory."""
        if not is_macro(memory):
            built: Elaboratable = memory.elaborate(None)
            return built
        m = Module()
        for number, read in enumerate(memory.read_ports):
            m.submodules[f"copy{number}"] = _macro(memory, read)
        return m


def _macro(memory: Memory, read: Any) -> Instance:
    """The memory with one of its read ports; all copies are written alike."""
    (write,) = memory.write_ports
    width = Shape.cast(memory.shape).width
    parameters: dict[str, Any] = {
        "p_WORDS": memory.depth,
        "p_WIDTH": width,
        "p_GRANULE": width // len(write.en),
        "p_ADDRESS_BITS": len(read.addr),
        "p_READ_OLD": int(NO_RW_CHECK not in memory.attrs),
    }
    ports: dict[str, Any] = {
        "i_clk": ClockSignal(),
        "i_read_enable": read.en,
        "i_read_address": read.addr,
        "o_read_data": read.data,
        "i_write_enable": write.en,
        "i_write_address": write.addr,
        "i_write_data": write.data,
    }
    return Instance(RAM_MODULE, **parameters, **ports)
