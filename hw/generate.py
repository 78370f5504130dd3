"""Verilog and its companions from hardware parameters."""

from __future__ import annotations

from amaranth.back import verilog

from hw.spec.params import HardwareParams

from .npu import TOP_NAME, Npu


def generate_verilog(params: HardwareParams) -> str:
    """The accelerator as one Verilog-2005 file with top module `npu`; same parameters, same bytes."""
    text: str = verilog.convert(Npu(params), name=TOP_NAME, emit_src=False, strip_internal_attrs=True)
    return text
