"""Two accelerators on one memory port, each with an image of its own: bytes, and the forecast with half the port."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.compiler.program.forecast import forecast
from intloom.compiler.program.memory import initial_memory, read_outputs
from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.schedule import compile_graph
from intloom.flow.networks import load_network
from intloom.hw.bus import axi4
from intloom.hw.npu import TOP_NAME, npu_members
from intloom.hw.soc.axi_arbiter import AxiArbiter
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.verilog import translated
from intloom.sim.golden import run_graph
from intloom.sim.rtl.backend import make_job
from intloom.sim.rtl.bare import build_bare, run_bare
from intloom.sim.rtl.job import MemorySettings, RunFiles
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of

PARAMS = preset("nano")
ONE = "npu_one"


class Pair(wiring.Component):
    """Two accelerators that one host starts together; addresses of the second have an offset."""

    def __init__(self, params: HardwareParams, offset: int) -> None:
        self._params, self._offset = params, offset
        super().__init__(npu_members(params))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = AxiArbiter(self._params)
        members, layouts = npu_members(self._params), axi4.channel_layouts(PARAMS.axi_addr_bits, PARAMS.axi_data_bits)
        reverse = {channel: In if flow is Out else Out for channel, flow in axi4.CHANNELS.items()}
        ones = []
        for number, bus in enumerate(arbiter.masters):
            one = wiring.Signature(members).create(path=(f"one{number}",))
            ports = {
                f"{'o' if member.flow is Out else 'i'}_{name}": getattr(one, name) for name, member in members.items()
            }
            m.submodules[f"one{number}"] = Instance(ONE, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports)
            m.d.comb += [a.eq(b) for a, b in axi4.flat_pairs(one, "m_axi", bus, layouts, reverse)]
            for name, member in members.items():
                if name.startswith("s_axi") and member.flow is In:
                    m.d.comb += getattr(one, name).eq(getattr(self, name))
            ones.append(one)
        for channel in ("ar", "aw"):
            payload = getattr(arbiter.masters[1], channel).payload
            m.d.comb += payload.addr.eq(getattr(ones[1], f"m_axi_{channel}addr") + self._offset)
        m.d.comb += [a.eq(b) for a, b in axi4.flat_pairs(self, "m_axi", arbiter.memory, layouts, axi4.CHANNELS)]
        # Both have the same registers and answer in the same cycle.
        for name, member in members.items():
            if name.startswith("s_axi") and member.flow is Out:
                m.d.comb += getattr(self, name).eq(getattr(ones[0], name))
        m.d.comb += self.irq.eq(ones[0].irq & ones[1].irq)
        return m


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("bandwidth", [1.0, 0.25])
def test_two_accelerators_share_a_port(tmp_path, bandwidth):
    network = load_network("c2f", 32)
    half = MemoryTiming(bandwidth=bandwidth / 2)
    program = compile_graph(network.graph, PARAMS, memory=half)
    rng = np.random.default_rng(1)
    images = [network.inputs, {n: rng.permuted(a, axis=-1) for n, a in network.inputs.items()}]
    memory = np.concatenate([initial_memory(program, image) for image in images])
    job = make_job(program, RtlOptions(memory=MemorySettings(bandwidth=bandwidth)))
    words = program.memory_words
    job = replace(job, memory_words=2 * words, window_words=words, boundaries=(), registers=("STATUS",))
    one = verilog_of(PARAMS).replace(f"module {TOP_NAME}(", f"module {ONE}(", 1)
    verilog = translated(Pair(PARAMS, words * PARAMS.word_bytes), TOP_NAME) + one
    files = RunFiles(tmp_path)
    memory.tofile(files.memory)
    done = run_bare(build_bare(verilog, optimize="-O1"), job, files)
    assert done.finished and not done.violation
    after = np.fromfile(files.memory, np.uint8).reshape(2, -1)
    for image, part in zip(images, after, strict=True):
        golden = run_graph(network.graph, image, match=str(PARAMS.match))
        for name, found in read_outputs(program, part).items():
            np.testing.assert_array_equal(found, golden[name])
    told = forecast(program.instructions, program.provenance, len(program.layers), PARAMS, half).cycles
    # The two delay each other's bursts, which half a port does not model.
    assert abs(told / done.cycles - 1) < 0.03
