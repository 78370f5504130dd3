"""Bits of signals that can never change, found by Yosys in the whole netlist."""

import json

from intloom.common.cache.store import Kind, cached_text, key_of
from intloom.common.temporary_files import temporary_folder
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import run_yosys

_SCRIPT = f"""
read_verilog npu.v
hierarchy -top {TOP_NAME}
proc
flatten
opt_expr
opt_merge
opt_dff
opt_clean
opt_expr
opt_dff
opt_clean
write_json npu.json
"""
_UNNAMED, _NAMED = "\\$", "\\net$"
"""Yosys keeps only names that do not start with a dollar sign."""


def constant_bits(verilog: str) -> dict[str, list[int]]:
    """Of each signal, by path from the top module, the bits that are tied to a constant or driven by nothing."""
    key = key_of("constants", verilog, _SCRIPT)
    found: dict[str, list[int]] = json.loads(
        cached_text(Kind.RESULT, key, "constants.json", lambda: json.dumps(_constants(verilog)), detail="constant bits")
    )
    return found


def _constants(verilog: str) -> dict[str, list[int]]:
    with temporary_folder("constants") as folder:
        (folder / "npu.v").write_text(verilog.replace(_UNNAMED, _NAMED), encoding="utf-8")
        run_yosys(_SCRIPT, folder)
        design = json.loads((folder / "npu.json").read_text(encoding="utf-8"))
    nets = design["modules"][TOP_NAME]["netnames"]
    fixed = {name: [n for n, bit in enumerate(net["bits"]) if isinstance(bit, str)] for name, net in nets.items()}
    return {name.replace(_NAMED.lstrip("\\"), "$"): bits for name, bits in fixed.items() if bits}
