"""Without initial values, after a reset alone: no X on a handshake or a valid output, and results without X."""

import random
import re
from pathlib import Path

import pytest

from intloom.sim.rtl.bare import without_initial_values
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.formal.planted import each_night
from tests.hw.npu.short_programs import random_short_program
from tests.hw.npu.start_up import build, exact, handshakes, run
from tests.support.shapes import SHAPES

NANO = SHAPES["nano"]
RESETS = {
    ("npu.engine.mac.sequencer", "banks_in_use"): "is not 0 or 1",
    ("npu.engine.fetch", "outstanding"): "no end",
    ("npu.run_control", "fsm_state"): "no end",
}
"""How a run ends without the reset of a module's register."""


def without_reset(verilog: str, module: str, register: str) -> str:
    """The Verilog in which no reset sets the register."""
    found = re.search(rf"^module \\?{re.escape(module)} ?\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    assert found is not None
    text, count = re.subn(rf"if \(\w*rst\) {register} +<= [^;]*;\s*else ", "", found[0])
    assert count == 1, (module, register)
    return verilog[: found.start()] + text + verilog[found.end() :]


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize("shape", SHAPES)
def test_no_x_reaches_a_handshake_an_output_or_a_result(shape: str, tmp_path: Path, seed: int) -> None:
    params = SHAPES[shape]
    build(verilog_of(params), params, tmp_path)
    program = random_short_program(random.Random(seed), params, 0)
    found = run(tmp_path, program)
    assert found.is_done, f"seed {seed}: {found.text}"
    assert found.memory == program.after, f"seed {seed}"


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize("reset", each_night(RESETS))
def test_a_missing_reset_is_found(reset: tuple[str, str], tmp_path: Path) -> None:
    build(without_reset(verilog_of(NANO), *reset), NANO, tmp_path)
    found = run(tmp_path, random_short_program(random.Random(0), NANO, 0))
    assert RESETS[reset] in found.text, found.text
    assert not found.is_done


def test_only_0_times_and_0_shifted_by_x_are_0() -> None:
    """The Verilog is changed only where an X has no effect in hardware; many handshakes are checked."""
    text = "  assign a = b << c;\n  assign d = $signed(e) * $signed(f);\n  assign g = b + c;\n"
    assert exact(text) == (
        "  assign a = ((b) === 0) ? 0 : b << c;\n"
        "  assign d = (($signed(e)) === 0 | ($signed(f)) === 0) ? 0 : $signed(e) * $signed(f);\n"
        "  assign g = b + c;\n"
    )
    assert len(list(handshakes(without_initial_values(verilog_of(NANO))))) > 200
