"""What synthesis makes of the accelerator for an FPGA runs programs as the accelerator does, cycle for cycle."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.fpga.flow import Flow, synthesize
from intloom.hw.fpga.netlist import change_modules
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import run_yosys
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.backend import GoldenBackend, RtlBackend
from intloom.sim.regress.graphs import make_graph
from intloom.sim.regress.suites import suite
from intloom.sim.rtl.build import Build, BuildWatch, build
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of

PRIMITIVES = Path(__file__).with_name("primitives.v")
PARAMS = preset("nano").replace(weight_kib=32)
"""A weight memory of 8,192 words: the larger presets' takes RAMs in another way than those of fewer words."""


def without_open_ports(module: dict[str, Any]) -> int:
    """Ports that lead nowhere are marked "x", which Verilog has no word for at an output."""
    for cell in module["cells"].values():
        cell["connections"] = {port: bits for port, bits in cell["connections"].items() if bits != ["x"]}
    return 0


class Bench(FastBench):
    """The fast bench, built in a third of the time: programs are short, and the netlist is long."""

    def build(self, verilog: str, watch: BuildWatch | None = None) -> Build:
        return build(replace(self.plan(verilog), optimize="-O0"), watch)


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("gates")
    netlist = synthesize(PARAMS, Flow(folder, print), TOP_NAME)
    change_modules(netlist, without_open_ports)
    run_yosys(f"read_json {netlist.name}; write_verilog -noattr gates.v", folder)
    return (folder / "gates.v").read_text() + PRIMITIVES.read_text()


@pytest.mark.slow
@pytest.mark.nightly
def test_the_netlist_runs_as_the_accelerator_does(gates: str) -> None:
    assert "DP16KD" in gates and "MULT18X18D" in gates and "CCU2C" in gates
    assert "PFUMX" not in gates, "a wide look-up table takes a register's way in"
    _assert_same_runs(gates, PARAMS, PARAMS)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("products", [{"lut_products": 16}, {"lut_products": 0, "multiplier_bits": 25}])
def test_products_in_the_form_for_synthesis_run_as_in_the_simulated_one(products: dict[str, int]) -> None:
    simulated = preset("nano")
    params = simulated.replace(**products)
    _assert_same_runs(f"`define INTLOOM_LUT_PRODUCTS\n{verilog_of(params)}", params, simulated)


def _assert_same_runs(verilog: str, params: HardwareParams, simulated: HardwareParams) -> None:
    """Run a suite on this Verilog, and compare outputs and all counters with the accelerator as it is simulated."""
    for case in suite("smoke"):
        graph, inputs = make_graph(case.graph, case.seed, dict(case.arguments))
        program = compile_graph(graph, params)
        expected = GoldenBackend(graph).run(program, inputs)
        accelerator = RtlBackend().run(compile_graph(graph, simulated), inputs)
        options = RtlOptions(bench=Bench(), verilog=verilog, limit=10 * accelerator.cycles)
        other = RtlBackend(options).run(program, inputs)
        for name, values in expected.outputs.items():
            assert np.array_equal(other.outputs[name], values), f"{case.name}: {name}"
        assert other.counters == accelerator.counters, case.name
