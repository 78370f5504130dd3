"""The rules of every handshake between components, and monitors that hold each side to them.

An offer stays, unchanged, until it is taken. Which members of a port are an offer is read off its signature, so a
bench cannot forget a port.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Value
from amaranth.lib import stream, wiring

from intloom.hw.bus.axi4 import Burst
from intloom.hw.ports import ReadPort, UnitPort, WritePort

OFFERS: dict[type, tuple[str, ...]] = {
    stream.Signature: ("payload",),
    ReadPort: ("addr",),
    WritePort: ("addr", "data", "mask"),
    UnitPort: ("instruction", "index"),
}
"""Signatures with `valid` and `ready`, and the members that must hold while an offer waits."""


@dataclass(frozen=True)
class Handshake:
    """One pair of `valid` and `ready` with what is offered; `offers` says that the component itself makes the offer."""

    name: str
    valid: Value
    ready: Value
    payload: Value
    offers: bool


def handshakes(component: wiring.Component) -> list[Handshake]:
    """Every handshake in a component's signature, however deep."""
    return list(_below(component.signature, component, ""))


def of_port(port: Any, name: str) -> Handshake:
    """The handshake of a single stream, for streams inside a bench."""
    return Handshake(name, port.valid, port.ready, Value.cast(port.payload), offers=True)


def _below(signature: Any, interface: Any, path: str) -> Iterator[Handshake]:
    for name, member in signature.members.items():
        if member.is_signature:
            for at, part in _elements(getattr(interface, name), member.dimensions, f"{path}{name}"):
                yield from _at(member.signature, part, at)


def _elements(value: Any, dimensions: tuple[int, ...], path: str) -> Iterator[tuple[str, Any]]:
    if not dimensions:
        yield path, value
        return
    for number in range(dimensions[0]):
        yield from _elements(value[number], dimensions[1:], f"{path}__{number}")


def _at(signature: Any, interface: Any, path: str) -> Iterator[Handshake]:
    """The handshake that an interface is, or those of its members."""
    plain = signature.flip() if isinstance(signature, wiring.FlippedSignature) else signature
    for kind, names in OFFERS.items():
        if isinstance(plain, kind):
            payload = Cat(Value.cast(getattr(interface, name)) for name in names)
            offers = signature.members["valid"].flow is wiring.Out
            yield Handshake(path, interface.valid, interface.ready, payload, offers)
            return
    yield from _below(signature, interface, f"{path}__")


def monitor(watched: Handshake) -> Callable[[Any], Any]:
    """Fails when an offer changes or goes away before it was taken."""
    name = watched.name

    async def process(ctx: Any) -> None:
        held = None
        async for *_, reset, valid, ready, payload in ctx.tick().sample(watched.valid, watched.ready, watched.payload):
            if reset:
                held = None
                continue
            if held is not None:
                assert valid, f"{name}: an offer was taken back"
                assert payload == held, f"{name}: payload changed from {held:#x} to {payload:#x} before it was taken"
            held = payload if valid and not ready else None

    return process


def check_burst(address: Any, word_bytes: int) -> None:
    """What every AXI4 address of this accelerator has in common: an INCR burst of whole words with one identifier."""
    expected = {
        "id": 0,
        "size": word_bytes.bit_length() - 1,
        "burst": Burst.INCR,
        "lock": 0,
        # Normal memory, not cacheable, bufferable; data, non-secure, unprivileged.
        "cache": 0b0011,
        "prot": 0b010,
        "qos": 0,
    }
    assert {name: address[name] for name in expected} == expected
    assert address["addr"] % word_bytes == 0
