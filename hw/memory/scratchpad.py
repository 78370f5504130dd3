"""The scratchpad: banks interleaved by the low address bits, and a fixed-priority arbiter per bank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from intloom.hw.memory.bank import Bank
from intloom.hw.memory.parity import READER_BITS, ParityChecker, parity_error_layout
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import ReadPort, WritePort, out_of_range
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import HardwareParams

READER_UNITS = {
    "act0": Unit.MAC,
    "act1": Unit.MAC,
    "residual": Unit.MAC,
    "vec_a": Unit.VEC,
    "vec_b": Unit.VEC,
    "store": Unit.STORE,
}
"""Read ports, highest priority first, and the unit of each."""
READERS = tuple(READER_UNITS)
WRITERS = ("mac", "vec", "load")
"""Write ports, highest priority first."""
ALWAYS_GRANTED = ("act0", "act1")
"""Ports that are always ready: they have the highest priority, and the MAC unit requests neighboring words, which
are in different banks."""
SHARED_PATH_CYCLES = 4
"""If the vector unit takes at least this many cycles per word, the lower-priority ports share one data path."""


def shared_paths(params: HardwareParams) -> tuple[tuple[str, ...], ...]:
    """Groups of ports that share one data path: one port of a group is granted per cycle, whatever its bank."""
    if params.vector_lanes * SHARED_PATH_CYCLES > params.rows:
        return ()
    return ("residual", "vec_a", "vec_b", "store"), ("vec", "load")


class _Request(NamedTuple):
    """A granted request in registers: its bank, one-hot, and its payload."""

    banks: Signal
    payload: data.View[data.StructLayout]


class Scratchpad(wiring.Component):
    """`scratch_words` words in `scratch_banks` interleaved banks; word `a` is in bank `a % scratch_banks`.

    In each cycle each bank grants one read and one write: the valid ports with the highest priority. With a narrow
    vector unit, groups of lower-priority ports share a data path, and one port of a group is granted per cycle
    (`shared_paths`).

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    act0, act1, residual, vec_a, vec_b, store
        Read ports, highest priority first.
    mac, vec, load
        Write ports, highest priority first.
    error
        Only with the parameter `memory_parity`. A byte that was read does not match its parity bit; unit and address of
        the read.

    Handshake
    ---------
    Ports follow `ReadPort` and `WritePort`. A port's `ready` is combinational from the `valid` and `addr` of
    higher-priority ports; it does not depend on its own `valid`. `act0`, `act1` and `mac` are always ready.
    `error.valid` is a pulse; of several errors in one cycle, that of the lowest bank is reported.

    Timing
    ------
    One request per port and cycle. From a granted read to its data: `READ_LATENCY` = 5 cycles: request register, bank
    (3 cycles), register after the bank multiplexer. A read granted at least 1 cycle after a write returns the new data.
    From a granted read to `error`: `ERROR_LATENCY` = 7 cycles.

    Requirements
    ------------
    `act0` and `act1` do not request different words of one bank in the same cycle. No word is read in the cycle in
    which it is written: the data is undefined.

    Reset and faults
    ----------------
    Reset drops requests in flight; contents have no reset. An address past the end raises the port's `fault` in the
    cycle of the request; such a write is dropped. `error` is a fault, which `FaultLatch` keeps.
    """

    ERROR_LATENCY = 1 + Bank.LATENCY + ParityChecker.LATENCY + 1
    """Cycles from a granted read to its parity error: request register, bank, check, choice of the bank."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._bank_bits = exact_log2(params.scratch_banks)
        self._address_bits = exact_log2(params.scratch_words)
        members: dict[str, Any] = {
            **{name: In(ReadPort(params.word_bytes)) for name in READERS},
            **{name: In(WritePort(params.word_bytes)) for name in WRITERS},
        }
        if params.memory_parity:
            members["error"] = Out(parity_error_layout(self._address_bits))
        super().__init__(members)

    @staticmethod
    def model(params: HardwareParams, requests: Mapping[str, int]) -> set[str]:
        """The ports that are granted in a cycle; `requests` has an address per valid port."""
        granted = set()
        for order in (READERS, WRITERS):
            banks, paths = set(), set()
            for name in (name for name in order if name in requests):
                bank = requests[name] % params.scratch_banks
                path = next((group for group in shared_paths(params) if name in group), (name,))
                if name in ALWAYS_GRANTED or (bank not in banks and path not in paths):
                    granted.add(name)
                banks.add(bank)
                paths.add(path)
        return granted

    def elaborate(self, platform: object) -> Module:
        """Arbitrate; register the granted requests; drive the banks; select each path's word from its bank."""
        m = Module()
        depth = self._params.scratch_words // self._params.scratch_banks
        parity = self._params.memory_parity
        banks = [Bank(depth, self._params.word_bytes, parity=parity) for _ in range(self._params.scratch_banks)]
        for number, bank in enumerate(banks):
            m.submodules[f"bank{number}"] = bank
        self._grant(m, READERS, always=ALWAYS_GRANTED)
        self._grant(m, WRITERS, always=())
        read, write = ReadPort(self._params.word_bytes), WritePort(self._params.word_bytes)
        readers = [self._granted(m, names, read) for names in self._paths(READERS)]
        writers = [self._granted(m, names, write) for names in self._paths(WRITERS)]
        for number, bank in enumerate(banks):
            self._read(m, bank, number, readers)
            self._write(m, bank, number, writers)
        words = Array(bank.read_data for bank in banks)
        for names, request in zip(self._paths(READERS), readers, strict=True):
            self._deliver(m, names, request, words)
        if parity:
            self._report(m, banks, readers)
        return m

    def _paths(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The ports, grouped by data path."""
        shared = [group for group in shared_paths(self._params) if group[0] in names]
        alone = [(name,) for name in names if not any(name in group for group in shared)]
        return alone + shared

    def _selected(self, m: Module, names: tuple[str, ...], signature: Signature) -> Any:
        """The port that a path serves in this cycle: the valid one with the highest priority."""
        if len(names) == 1:
            return getattr(self, names[0])
        selected = signature.flip().create(path=("path", *names))
        # The last assignment in Amaranth wins, so the port with the highest priority comes last.
        for name in reversed(names):
            port = getattr(self, name)
            with m.If(port.valid):
                m.d.comb += [
                    getattr(selected, member).eq(getattr(port, member))
                    for member, flow in signature.members.items()
                    if flow.flow is Out
                ]
                m.d.comb += [selected.ready.eq(port.ready), selected.fault.eq(port.fault)]
        return selected

    def _granted(self, m: Module, names: tuple[str, ...], signature: Signature) -> _Request:
        """Register the path's granted request; a write outside the memory loses its mask."""
        path = self._selected(m, names, signature)
        members = ("addr",) if isinstance(signature, ReadPort) else ("addr", "data", "mask")
        layout = data.StructLayout({name: signature.members[name].shape for name in members})
        # One-hot and decoded before the register: the banks' enables leave registers, and `ready`, late behind the
        # comparison of banks, ends here. The one-hot bits qualify the payload, which has no reset.
        banks = Signal(self._params.scratch_banks, name=f"{names[0]}_banks")
        request = Signal(layout, name=f"{names[0]}_request", reset_less=True)
        m.d.sync += [
            banks.eq((path.valid & path.ready) << self._bank_of(path)),
            *(request[name].eq(getattr(path, name)) for name in members),
        ]
        if "mask" in members:
            # `_row_of` drops the upper address bits: an unmasked write past the end would change another word.
            m.d.sync += request.mask.eq(Mux(path.fault, 0, path.mask))
        return _Request(banks, request)

    def _bank_of(self, port: Any) -> Value:
        return port.addr[: self._bank_bits]

    def _row_of(self, port: Any) -> Value:
        return port.addr[self._bank_bits : self._address_bits]

    def _grant(self, m: Module, names: tuple[str, ...], always: tuple[str, ...]) -> None:
        """Drive `ready`: no conflict with a higher-priority port; and `fault`: address past the end."""
        for i, name in enumerate(names):
            port = getattr(self, name)
            conflicts = [self._conflict(higher, name) for higher in names[:i] if name not in always]
            m.d.comb += [
                port.ready.eq(~Cat(conflicts).any()),
                port.fault.eq(port.valid & out_of_range(port.addr, self._params.scratch_words)),
            ]

    def _conflict(self, higher: str, name: str) -> Value:
        one_path = any(higher in group and name in group for group in shared_paths(self._params))
        first, second = getattr(self, higher), getattr(self, name)
        same: Value = first.valid & (one_path | (self._bank_of(first) == self._bank_of(second)))
        return same

    def _read(self, m: Module, bank: Bank, number: int, readers: list[_Request]) -> None:
        # The path with the lowest priority needs no select term: without a request the row does not matter.
        row = self._row_of(readers[-1].payload)
        for request in reversed(readers[:-1]):
            row = Mux(request.banks[number], self._row_of(request.payload), row)
        m.d.comb += [bank.read_en.eq(Cat(request.banks[number] for request in readers).any()), bank.read_row.eq(row)]

    def _write(self, m: Module, bank: Bank, number: int, writers: list[_Request]) -> None:
        for request in reversed(writers):
            with m.If(request.banks[number]):
                m.d.comb += [
                    bank.write_row.eq(self._row_of(request.payload)),
                    bank.write_data.eq(request.payload.data),
                    bank.write_mask.eq(request.payload.mask),
                ]

    def _deliver(self, m: Module, names: tuple[str, ...], request: _Request, words: Array) -> None:
        """Select the bank's word when it arrives; a register ends the long routing delay from the banks."""
        read = pipeline_stages(m, f"{names[0]}_read", request.banks.any(), Bank.LATENCY, reset_less=False)
        bank = pipeline_stages(m, f"{names[0]}_bank", self._bank_of(request.payload), Bank.LATENCY, reset_less=True)
        # All ports of a path see this word. Each knows the cycle of its own, since the latency from grant to data is
        # constant.
        word = Signal(8 * self._params.word_bytes, name=f"{names[0]}_data", reset_less=True)
        with m.If(read):
            m.d.sync += word.eq(words[bank])
        m.d.comb += [getattr(self, name).data.eq(word) for name in names]

    def _report(self, m: Module, banks: list[Bank], readers: list[_Request]) -> None:
        """Tell each bank which unit reads, and register the error of the first bank that has one."""
        units = [self._unit(m, names) for names in self._paths(READERS)]
        valid = Signal(name="error_valid")
        unit = Signal(READER_BITS, name="error_unit", reset_less=True)
        address = Signal(self._address_bits, name="error_address", reset_less=True)
        m.d.sync += valid.eq(Cat(bank.error.valid for bank in banks).any())
        # The last assignment wins: the lowest bank, and the path with the highest priority, come last.
        for number, bank in reversed([*enumerate(banks)]):
            for request, code in reversed([*zip(readers, units, strict=True)]):
                with m.If(request.banks[number]):
                    m.d.comb += bank.reader.eq(code)
            with m.If(bank.error.valid):
                m.d.sync += [
                    unit.eq(bank.error.unit),
                    address.eq(Cat(Const(number, self._bank_bits), bank.error.address)),
                ]
        m.d.comb += [self.error.valid.eq(valid), self.error.unit.eq(unit), self.error.address.eq(address)]

    def _unit(self, m: Module, names: tuple[str, ...]) -> Value:
        """The unit of a path's granted read: a constant, or a register beside the request's."""
        if len(names) == 1:
            return Const(READER_UNITS[names[0]], READER_BITS)
        unit, register = Signal(READER_BITS), Signal(READER_BITS, name=f"{names[0]}_unit", reset_less=True)
        for name in reversed(names):
            with m.If(getattr(self, name).valid):
                m.d.comb += unit.eq(READER_UNITS[name])
        m.d.sync += register.eq(unit)
        return register
