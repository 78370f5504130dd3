"""Interrupt flags, for all bus accesses and events and for ever: none is lost, none appears by itself.

The accelerator's own wiring is proved: its register bank and run control, with an engine whose outputs are free.
"""

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cat, Module, Mux, Signal, Value

from intloom.hw import npu
from intloom.hw.control.registers import Registers
from intloom.hw.control.run_control import RunControl
from intloom.hw.engine import Engine
from intloom.hw.npu import Npu
from intloom.hw.spec.params import preset
from intloom.hw.spec.regs import REGISTER_BYTES, register
from tests.hw.formal.order import Free, FreeBench
from tests.hw.formal.planted import each_night, planted, rebased
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
NANO = preset("nano")


class CheckedNpu(Npu):
    """The accelerator with the rules of IRQ_STATUS, IRQ_ENABLE and `irq`."""

    def _connect_run_control(self, m: Module, run_control: RunControl, engine: Engine, registers: Registers) -> None:
        super()._connect_run_control(m, run_control, engine, registers)
        bus = registers.bus
        mask = Cat(strobe.replicate(8) for strobe in bus.w.payload.strb)
        taken = bus.aw.valid & bus.aw.ready & bus.w.valid & bus.w.ready

        def written(name: str) -> Value:
            hit = taken & (bus.aw.payload.addr // REGISTER_BYTES == register(name).offset // REGISTER_BYTES)
            return Mux(hit, mask, 0)

        fields = register("IRQ_STATUS").fields
        events = Signal(len(fields))
        for field in fields:
            m.d.comb += events[field.lsb].eq(getattr(run_control, f"{field.name}_event"))
        flags, enable = registers.irq_status_value, registers.irq_enable
        next_flags, next_enable = Signal.like(flags), Signal.like(enable)
        stored = written("IRQ_ENABLE")
        m.d.sync += [
            next_flags.eq((flags & ~(bus.w.payload.data & written("IRQ_STATUS"))) | events),
            next_enable.eq(((enable & ~stored) | (bus.w.payload.data & stored))[: len(fields)]),
        ]
        m.d.comb += [
            Assert(flags == next_flags),
            Assert(enable == next_enable),
            Assert(self.irq == (flags & enable).any()),
        ]


@pytest.fixture(autouse=True)
def free_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npu, "Engine", lambda params: Free(Engine(params)))


def test_a_flag_is_set_by_its_event_and_cleared_by_software_alone(tmp_path: Path) -> None:
    result = prove(FreeBench(CheckedNpu(NANO), resets=True), tmp_path, depth=2, induction=True)
    assert result.holds, result.log


_FLAGS = "(value & ~Mux(selected, data & mask, 0)) | getattr(self, name)"
_REGISTER_FAULTS = {
    "an event is lost while its flag is cleared": (
        _FLAGS,
        "(value | getattr(self, name)) & ~Mux(selected, data & mask, 0)",
    ),
    "an event overwrites the other, pending flag": (
        _FLAGS,
        "Mux(getattr(self, name).any(), getattr(self, name), value & ~Mux(selected, data & mask, 0))",
    ),
}  # fmt: skip
_NPU_FAULTS = {
    "irq is independent of the enable": ("(registers.irq_status_value & registers.irq_enable).any()",
                                         "registers.irq_status_value.any()"),
    "an event sets the other flag": ('_field("IRQ_STATUS", "error", registers.irq_status).eq(run_control.error_event)',
                                     '_field("IRQ_STATUS", "error", registers.irq_status).eq(run_control.done_event)'),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_night(_REGISTER_FAULTS))
def test_a_faulty_register_bank_is_refuted(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npu, "Registers", planted(Registers, _REGISTER_FAULTS[fault]))
    assert not prove(FreeBench(CheckedNpu(NANO), resets=True), tmp_path, depth=2, induction=True).holds


@pytest.mark.parametrize("fault", each_night(_NPU_FAULTS))
def test_a_faulty_connection_is_refuted(fault: str, tmp_path: Path) -> None:
    faulty = rebased(CheckedNpu, planted(Npu, _NPU_FAULTS[fault]))
    assert not prove(FreeBench(faulty(NANO), resets=True), tmp_path, depth=2, induction=True).holds
