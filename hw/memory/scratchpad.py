"""The scratchpad: banks interleaved by the low address bits, and fixed priorities among readers and among writers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from intloom.hw.memory.bank import Bank
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import ReadPort, WritePort, out_of_range
from intloom.hw.spec.params import HardwareParams

READERS = ("act0", "act1", "residual", "vec_a", "vec_b", "store")
"""Read ports, most important first."""
WRITERS = ("mac", "vec", "load")
"""Write ports, most important first."""
ALWAYS_GRANTED = ("act0", "act1")
"""The MAC unit never waits: it asks for neighbouring words, which lie in different banks."""
NARROW_VECTOR = 4
"""Where the vector unit takes at least this many cycles for a word, it leaves enough of one path to the others."""


def shared_paths(params: HardwareParams) -> tuple[tuple[str, ...], ...]:
    """Ports that share one way out of the banks, or into them: one of a group is served a cycle, whatever its bank."""
    if params.vector_lanes * NARROW_VECTOR > params.rows:
        return ()
    return ("residual", "vec_a", "vec_b", "store"), ("vec", "load")


class _Request(NamedTuple):
    """A granted request, in registers: a bit for the bank that it goes to, and the rest of it."""

    banks: Signal
    payload: data.View[data.StructLayout]


class Scratchpad(wiring.Component):
    """`scratch_words` words in `scratch_banks` banks; word `a` lies in bank `a % scratch_banks`.

    Each cycle each bank serves the most important reader and the most important writer that ask for it. With a narrow
    vector unit, some ports share a path besides. A port's `ready` says whether a more important port asks for the same
    bank or the same path; it does not depend on the port's own `valid`.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    act0, act1, residual, vec_a, vec_b, store:
        Read ports, most important first. `act0` and `act1` are never refused and must not ask for different words
        of one bank in the same cycle.
    mac, vec, load:
        Write ports, most important first.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._bank_bits = exact_log2(params.scratch_banks)
        self._address_bits = exact_log2(params.scratch_words)
        super().__init__(
            {
                **{name: In(ReadPort(params.word_bytes)) for name in READERS},
                **{name: In(WritePort(params.word_bytes)) for name in WRITERS},
            }
        )

    @staticmethod
    def model(params: HardwareParams, requests: Mapping[str, int]) -> set[str]:
        """The ports whose requests, each an address, are granted in a cycle."""
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
        """Grant both ways; a cycle later a row and an enable go to each bank; then each path picks its bank's word."""
        m = Module()
        depth = self._params.scratch_words // self._params.scratch_banks
        banks = [Bank(depth, self._params.word_bytes) for _ in range(self._params.scratch_banks)]
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
        return m

    def _paths(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The ports, those that share a path together."""
        shared = [group for group in shared_paths(self._params) if group[0] in names]
        alone = [(name,) for name in names if not any(name in group for group in shared)]
        return alone + shared

    def _joined(self, m: Module, names: tuple[str, ...], signature: Signature) -> Any:
        """The port that a path serves in this cycle: the most important one that asks."""
        if len(names) == 1:
            return getattr(self, names[0])
        joined = signature.flip().create(path=("path", *names))
        for name in reversed(names):
            port = getattr(self, name)
            with m.If(port.valid):
                m.d.comb += [
                    getattr(joined, member).eq(getattr(port, member))
                    for member, flow in signature.members.items()
                    if flow.flow is Out
                ]
                m.d.comb += [joined.ready.eq(port.ready), joined.fault.eq(port.fault)]
        return joined

    def _granted(self, m: Module, names: tuple[str, ...], signature: Signature) -> _Request:
        """The path's request of the cycle before, if it was granted. What lies outside is not written."""
        path = self._joined(m, names, signature)
        members = ("addr",) if isinstance(signature, ReadPort) else ("addr", "data", "mask")
        layout = data.StructLayout({name: signature.members[name].shape for name in members})
        banks = Signal(self._params.scratch_banks, name=f"{names[0]}_banks")
        request = Signal(layout, name=f"{names[0]}_request", reset_less=True)
        m.d.sync += [
            banks.eq((path.valid & path.ready) << self._bank_of(path)),
            *(request[name].eq(getattr(path, name)) for name in members),
        ]
        if "mask" in members:
            m.d.sync += request.mask.eq(Mux(path.fault, 0, path.mask))
        return _Request(banks, request)

    def _bank_of(self, port: Any) -> Value:
        return port.addr[: self._bank_bits]

    def _row_of(self, port: Any) -> Value:
        return port.addr[self._bank_bits : self._address_bits]

    def _grant(self, m: Module, names: tuple[str, ...], always: tuple[str, ...]) -> None:
        """Ready where no more important port wants the bank or path; fault where the address lies past the end."""
        for i, name in enumerate(names):
            port = getattr(self, name)
            clashes = [self._clash(rival, name) for rival in names[:i] if name not in always]
            m.d.comb += [
                port.ready.eq(~Cat(clashes).any()),
                port.fault.eq(port.valid & out_of_range(port.addr, self._params.scratch_words)),
            ]

    def _clash(self, rival: str, name: str) -> Value:
        one_path = any(rival in group and name in group for group in shared_paths(self._params))
        first, second = getattr(self, rival), getattr(self, name)
        same: Value = first.valid & (one_path | (self._bank_of(first) == self._bank_of(second)))
        return same

    def _read(self, m: Module, bank: Bank, number: int, readers: list[_Request]) -> None:
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
        """Pick the bank's word when it comes; a register ends the long way from there."""
        taken = pipeline_stages(m, f"{names[0]}_taken", request.banks.any(), Bank.LATENCY, reset_less=False)
        bank = pipeline_stages(m, f"{names[0]}_bank", self._bank_of(request.payload), Bank.LATENCY, reset_less=True)
        word = Signal(8 * self._params.word_bytes, name=f"{names[0]}_data", reset_less=True)
        with m.If(taken):
            m.d.sync += word.eq(words[bank])
        m.d.comb += [getattr(self, name).data.eq(word) for name in names]
