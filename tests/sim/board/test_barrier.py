"""The barrier of mapped devices: it runs on this machine, and orders memory and registers as writel and readl do."""

import platform
from pathlib import Path
from typing import Any

import pytest

from intloom.sim.board import barrier, mapped
from intloom.sim.board.bus import BoardError, BusRegisters


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(mapped, "barrier", lambda: lambda: found.append("barrier"))
    return found


class Words:
    """Elements of a mapping whose accesses are recorded."""

    def __init__(self, words: Any, events: list[str]) -> None:
        self._words, self._events = words, events

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, where: Any) -> Any:
        self._events.append("read")
        return self._words[where]

    def __setitem__(self, where: Any, value: Any) -> None:
        self._events.append("write")
        self._words[where] = value


def test_the_instructions_run_and_return() -> None:
    if platform.machine() not in barrier.INSTRUCTIONS:
        pytest.skip("a machine without a known barrier")
    run = barrier.barrier()
    for _ in range(1000):
        assert run() is None  # type: ignore[func-returns-value]  # that it comes back is what is tested


def test_memory_is_written_before_a_register_and_read_after_one(tmp_path: Path, events: list[str]) -> None:
    path = tmp_path / "device"
    path.write_bytes(bytes(4096))
    bus = mapped.MappedBus(path, 0, 4096, 0)
    bus._words = Words(bus._words, events)  # type: ignore[assignment]  # records the accesses
    bus.write(1024, b"operands")
    bus.write(0, b"word")
    BusRegisters(bus, 0).read_now("STATUS")
    assert bus.read(1024, 8) == b"operands"
    assert events == ["write", "barrier", "write", "read", "barrier", "read"]


def test_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "m68k")
    with pytest.raises(BoardError, match="no barrier is known for 'm68k', only for aarch64, armv7l, riscv64, x86_64"):
        barrier.barrier.__wrapped__()


def test_a_system_that_executes_no_code_of_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_name: str) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(barrier.os, "memfd_create", refuse)
    with pytest.raises(BoardError, match="cannot make the processor's barrier executable: .*not permitted"):
        barrier.barrier.__wrapped__()
