"""Verilator's library is compiled beside other work, once, and not to its end when that work fails."""

import time

import pytest

from intloom.common.cache.housekeeping import items
from intloom.common.cache.store import Kind, read_record
from intloom.sim.rtl import fast
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.library import library, library_ahead
from intloom.sim.rtl.toolchain import toolchain


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_block_in_a_block_waits_for_the_same_library(cache):
    flags, tools = ("--no-timing", "-DANY"), toolchain()
    with library_ahead(flags, tools) as outer, library_ahead(flags, tools) as inner:
        assert inner() == outer()
    assert [i.kind for i in items(cache)] == [Kind.LIBRARY]
    assert read_record(outer().parent).file == outer()
    assert library(("--vpi", "--no-timing"), tools) == outer(), "with and without cocotb"


def test_a_block_in_a_block_with_other_flags_has_its_own(cache):
    tools = toolchain()
    with library_ahead((), tools) as outer, library_ahead(("--timing",), tools) as inner:
        assert inner() != outer()


def test_an_interrupt_ends_the_compilation(cache, monkeypatch):
    monkeypatch.setenv("CCACHE_DISABLE", "1")

    def interrupted():
        while not list((cache / "libraries").glob(".*/obj/verilator.cpp")):
            time.sleep(0.01)
        moments.append(time.monotonic())
        raise KeyboardInterrupt

    moments = []
    with pytest.raises(KeyboardInterrupt), library_ahead(("--no-timing",), toolchain()):
        interrupted()
    assert time.monotonic() - moments[0] < 1.5
    assert not items(cache)


class Standin:
    """A bench that records what is called."""

    def __init__(self, calls):
        self._calls = calls

    def compiled_ahead(self):
        return self

    def __enter__(self):
        self._calls.append("library")

    def __exit__(self, *_):
        self._calls.append("end")

    def build(self, verilog, watch=None):
        self._calls.append(f"build {verilog}")
        return Build(None, 0, cached=False)


@pytest.mark.parametrize(
    ("generated", "expected"), [(False, ["library", "verilog", "build v", "end"]), (True, ["verilog", "build v"])]
)
def test_the_library_is_compiled_while_verilog_is_generated(monkeypatch, generated, expected):
    calls = []
    monkeypatch.setattr(fast, "is_generated", lambda _params: generated)
    fast.build_for(Standin(calls), None, lambda: calls.append("verilog") or "v")
    assert calls == expected
