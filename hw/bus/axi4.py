"""AXI4 as a signature: each channel is a stream of a struct; and the flat port names of the AXI standard.

Parameters are the data and the address width. The identifier has one bit and is always 0, so the slave returns
responses in the order of the requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from amaranth.hdl import Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from intloom.hw.spec.params import HardwareParams

ID_BITS = 1
LENGTH_BITS = 8
RESP_BITS = 2
BOUNDARY_BYTES = 4096
"""A burst must not cross a multiple of this address (AXI4, A3.4.1)."""


class Resp(IntEnum):
    """AXI response codes."""

    OKAY = 0
    # Answers exclusive accesses only (AXI4 A7.2), which no unit makes.
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class Burst(IntEnum):
    """AXI burst types."""

    FIXED = 0
    INCR = 1
    WRAP = 2


def address_layout(addr_bits: int) -> data.StructLayout:
    """Payload of the AW and AR channels."""
    return data.StructLayout(
        {
            "id": ID_BITS,
            "addr": addr_bits,
            "len": LENGTH_BITS,
            "size": 3,
            "burst": 2,
            "lock": 1,
            "cache": 4,
            "prot": 3,
            "qos": 4,
        }
    )


def write_layout(data_bits: int) -> data.StructLayout:
    """Payload of the W channel."""
    return data.StructLayout({"data": data_bits, "strb": data_bits // 8, "last": 1})


def read_layout(data_bits: int) -> data.StructLayout:
    """Payload of the R channel."""
    return data.StructLayout({"id": ID_BITS, "data": data_bits, "resp": RESP_BITS, "last": 1})


RESPONSE_LAYOUT = data.StructLayout({"id": ID_BITS, "resp": RESP_BITS})
"""Payload of the B channel."""

CHANNELS = {"aw": Out, "w": Out, "b": In, "ar": Out, "r": In}
"""Direction of each of the five channels at the master."""


def channel_layouts(addr_bits: int, data_bits: int) -> dict[str, data.StructLayout]:
    """Payload of each channel, by the channel's standard short name."""
    return {
        "aw": address_layout(addr_bits),
        "w": write_layout(data_bits),
        "b": RESPONSE_LAYOUT,
        "ar": address_layout(addr_bits),
        "r": read_layout(data_bits),
    }


class Axi4(Signature):
    """An AXI4 interface from the master's side: streams `aw`, `w`, `b`, `ar` and `r`.

    Parameters
    ----------
    addr_bits
        Width of byte addresses.
    data_bits
        Width of a beat.
    """

    def __init__(self, addr_bits: int, data_bits: int) -> None:
        self.addr_bits = addr_bits
        self.data_bits = data_bits
        layouts = channel_layouts(addr_bits, data_bits)
        super().__init__({name: flow(stream.Signature(layouts[name])) for name, flow in CHANNELS.items()})

    def __repr__(self) -> str:
        return f"Axi4({self.addr_bits}, {self.data_bits})"


def drive_address(
    payload: data.View[data.StructLayout], at: Value, beats_less_one: Value, beat_bytes: int, params: HardwareParams
) -> Iterator[Any]:
    """Yield assignments that set `payload` to an INCR burst of beats of `beat_bytes`; `at` counts such beats."""
    size = exact_log2(beat_bytes)
    # One identifier for all bursts: AXI4 A5.3 orders responses of equal identifier, so FIFOs in request order match
    # them.
    fixed = {"id": 0, "size": size, "burst": Burst.INCR, "lock": 0}
    fixed |= {"cache": params.axi_cache, "prot": params.axi_prot, "qos": params.axi_qos}
    yield payload.addr.eq(at << size)
    yield payload.len.eq(beats_less_one)
    for name, value in fixed.items():
        yield payload[name].eq(value)


def flat_members(prefix: str, layouts: dict[str, data.StructLayout], flows: dict[str, Any]) -> dict[str, Any]:
    """Members of a flat port with the names of the AXI standard: `<prefix>_awaddr`, `<prefix>_awvalid` and so on."""
    members: dict[str, Any] = {}
    for channel, layout in layouts.items():
        forward = flows[channel]
        backward = In if forward is Out else Out
        for name, field in layout:
            members[f"{prefix}_{channel}{name}"] = forward(field.shape)
        members[f"{prefix}_{channel}valid"] = forward(1)
        members[f"{prefix}_{channel}ready"] = backward(1)
    return members


def flat_pairs(
    port: object, prefix: str, bus: object, layouts: dict[str, data.StructLayout], flows: dict[str, Any]
) -> Iterator[tuple[Value, Value]]:
    """Yield pairs (driven, driver) that connect the flat members of component `port` to the streams of `bus`."""
    for channel, layout in layouts.items():
        channel_stream = getattr(bus, channel)
        forward = [(getattr(port, f"{prefix}_{channel}{name}"), channel_stream.payload[name]) for name, _ in layout]
        forward.append((getattr(port, f"{prefix}_{channel}valid"), channel_stream.valid))
        backward = (channel_stream.ready, getattr(port, f"{prefix}_{channel}ready"))
        if flows[channel] is Out:
            yield from forward
            yield backward
        else:
            yield from ((inner, outer) for outer, inner in forward)
            yield backward[1], backward[0]
