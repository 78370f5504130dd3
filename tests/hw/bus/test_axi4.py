"""AXI names: every signal of the standard that other tools look for, with its width and direction."""

from typing import Any

from amaranth.hdl import C, Module, Shape
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus import axi4, axi4_lite
from intloom.hw.spec.params import preset
from tests.hw.streams import run

ADDRESS = {"id": 1, "addr": 40, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4}
MASTER = {
    "aw": (Out, ADDRESS),
    "w": (Out, {"data": 128, "strb": 16, "last": 1}),
    "b": (In, {"id": 1, "resp": 2}),
    "ar": (Out, ADDRESS),
    "r": (In, {"id": 1, "data": 128, "resp": 2, "last": 1}),
}
SLAVE = {
    "aw": (In, {"addr": 10, "prot": 3}),
    "w": (In, {"data": 32, "strb": 4}),
    "b": (Out, {"resp": 2}),
    "ar": (In, {"addr": 10, "prot": 3}),
    "r": (Out, {"data": 32, "resp": 2}),
}


def _flat(channels: dict) -> dict:
    members = {}
    for channel, (flow, fields) in channels.items():
        back = In if flow is Out else Out
        members |= {f"x_{channel}{name}": (flow, width) for name, width in fields.items()}
        members |= {f"x_{channel}valid": (flow, 1), f"x_{channel}ready": (back, 1)}
    return members


def test_master_has_the_full_signal_set() -> None:
    members = axi4.flat_members("x", axi4.channel_layouts(40, 128), axi4.CHANNELS)
    assert {n: (m.flow, Shape.cast(m.shape).width) for n, m in members.items()} == {
        n: (flow, width) for n, (flow, width) in _flat(MASTER).items()
    }


def test_slave_has_the_lite_signal_set() -> None:
    members = axi4.flat_members("x", axi4_lite.channel_layouts(10), axi4_lite.CHANNELS)
    assert {n: (m.flow, Shape.cast(m.shape).width) for n, m in members.items()} == {
        n: (flow, width) for n, (flow, width) in _flat(SLAVE).items()
    }


class _Address(wiring.Component):
    """A burst of five words from the third one on, of a master with attributes of its own."""

    def __init__(self) -> None:
        super().__init__({"o": Out(axi4.address_layout(32))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        params = preset("base").replace(axi_cache=0b1010, axi_prot=0b101, axi_qos=0b0110)
        m.d.sync += list(axi4.drive_address(self.o, C(3), C(4), params.word_bytes, params))
        return m


def test_an_address_has_the_attributes_of_the_parameters() -> None:
    address = _Address()
    fields = {"addr": 48, "len": 4, "size": 4, "burst": axi4.Burst.INCR, "lock": 0, "id": 0}

    async def bench(ctx: Any) -> None:
        await ctx.tick()
        payload = ctx.get(address.o)
        found = {name: payload[name] for name in ADDRESS}
        assert found == fields | {"cache": 0b1010, "prot": 0b101, "qos": 0b0110}

    run(address, bench)


def test_signatures_print_their_widths() -> None:
    assert repr(axi4.Axi4(40, 128)) == "Axi4(40, 128)"
    assert repr(axi4_lite.Axi4Lite(10)) == "Axi4Lite(10)"
