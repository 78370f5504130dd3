"""The weight memory: a circular buffer, written by the load unit and read by the MAC unit."""

from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Module, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.memory.parity import ParityChecker, parity_error_layout, registered_parity
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import WEIGHT_LATENCY, WeightReadPort, WeightWritePort
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import HardwareParams
from intloom.hw.yosys_attributes import NO_COLLISIONS

_INPUT_STAGES = WEIGHT_LATENCY - 3
"""Input registers: the block RAM is one stage of `WEIGHT_LATENCY`, and two registers follow it."""
_PARITY_STAGES = 2
"""Input registers in which the parity bit of a written word is computed."""


class WeightMemory(wiring.Component):
    """A simple dual-port memory of `weight_words` words whose addresses wrap at the end.

    Pipeline registers before and after the block RAM allow it to be placed far from both units.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    read
        Read port of the MAC unit.
    write
        Write port of the load unit.
    error
        Only with the parameter `memory_parity`. A word that was read does not match its parity bit; unit and address of
        the read.

    Handshake
    ---------
    Both ports are always ready. Read data is valid for 1 cycle. `error.valid` is a pulse.

    Timing
    ------
    One read and one write per cycle. From `read.valid` to `read.data`: `WEIGHT_LATENCY` = 6 cycles. A read that is
    requested at least 1 cycle after a write returns the written data. From `read.valid` to `error`: `WEIGHT_LATENCY` +
    `ParityChecker.LATENCY` = 8 cycles.

    Requirements
    ------------
    No read and write of one word in the same cycle: the read data is undefined. With `memory_parity`, every word is
    written before it is read.

    Reset and faults
    ----------------
    Reset clears the valid bits in the pipeline; contents and data registers have no reset. Addresses wrap; `error` is a
    fault, which `FaultLatch` keeps.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        members: dict[str, Any] = {
            "read": In(WeightReadPort(params.word_bytes)),
            "write": In(WeightWritePort(params.word_bytes)),
        }
        if params.memory_parity:
            members["error"] = Out(parity_error_layout(exact_log2(params.weight_words)))
        super().__init__(members)

    @staticmethod
    def model(
        params: HardwareParams, steps: Iterable[tuple[int | None, tuple[int, int] | None]]
    ) -> Iterator[int | None]:
        """Yield the word that each cycle's read returns, or None if there is no read or its data is undefined.

        A step has the read address or None, and the write address and word or None.
        """
        words = dict.fromkeys(range(params.weight_words), 0)
        for read, write in steps:
            write_at = None if write is None else write[0] % params.weight_words
            read_at = None if read is None else read % params.weight_words
            yield None if read_at is None or read_at == write_at else words[read_at]
            if write is not None and write_at is not None:
                words[write_at] = write[1]

    def elaborate(self, platform: object) -> Module:
        """A simple dual-port memory with input stages, a register at its output, and one at the port."""
        m = Module()
        words = self._params.weight_words
        bits = exact_log2(words)
        shape = unsigned(8 * self._params.word_bytes + self._params.memory_parity)
        m.submodules.memory = memory = Memory(shape=shape, depth=words, init=[], attrs=NO_COLLISIONS)
        write = memory.write_port()
        read = memory.read_port(domain="sync")
        # The block RAM absorbs the first register as its own output register. The second one ends the route to the MAC
        # array.
        block_register = Signal(shape, reset_less=True)
        out = Signal(shape, reset_less=True)
        m.d.sync += [block_register.eq(read.data), out.eq(block_register)]
        # A parity bit is the highest bit of its word.
        m.d.comb += self.read.data.eq(out)
        read_en = pipeline_stages(m, "read_valid", self.read.valid, _INPUT_STAGES, reset_less=False)
        address = pipeline_stages(m, "read_address", self.read.addr[:bits], _INPUT_STAGES, reset_less=True)
        m.d.comb += [
            write.en.eq(pipeline_stages(m, "write_valid", self.write.valid, _INPUT_STAGES, reset_less=False)),
            write.addr.eq(pipeline_stages(m, "write_address", self.write.addr[:bits], _INPUT_STAGES, reset_less=True)),
            write.data.eq(pipeline_stages(m, "write_data", self.write.data, _INPUT_STAGES, reset_less=True)),
            read.en.eq(read_en),
            read.addr.eq(address),
        ]
        if self._params.memory_parity:
            m.d.comb += write.data[-1].eq(self._written_parity(m))
            self._check(m, read_en, address, out)
        return m

    def _written_parity(self, m: Module) -> Value:
        """The parity bit of the word to write: its XOR takes `_PARITY_STAGES` of the input stages."""
        word = pipeline_stages(m, "parity_data", self.write.data, _INPUT_STAGES - _PARITY_STAGES, reset_less=True)
        odd = Signal(reset_less=True)
        m.d.sync += odd.eq(registered_parity(m, "odd_parts", word))
        return odd

    def _check(self, m: Module, read_en: Value, address: Value, out: Signal) -> None:
        """Check each word behind the output register; the whole word is one granule."""
        m.submodules.parity = checker = ParityChecker(len(out), len(out), len(address), WEIGHT_LATENCY - _INPUT_STAGES)
        m.d.comb += [
            checker.read.eq(read_en),
            checker.unit.eq(Unit.MAC),
            checker.address.eq(address),
            checker.word.eq(out),
            self.error.eq(checker.error),
        ]
