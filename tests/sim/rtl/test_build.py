"""Builds are cached by content, survive each other, and fail with the compiler's own words."""

import multiprocessing
import subprocess

import pytest

from intloom.common.cache_folder import cache_folder
from intloom.common.errors import SimulationError
from intloom.sim.rtl.bare import bare_plan
from intloom.sim.rtl.build import BuildPlan, build
from intloom.sim.rtl.toolchain import toolchain
from tests.sim.rtl.standin import VERILOG


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def tiny(body: str) -> BuildPlan:
    return BuildPlan(name="tiny", top="t", generated={"t.v": body, "main.cpp": "int main() {}\n"}, cpp=("main.cpp",))


def leftovers(cache):
    return [p.name for p in (cache / "builds").iterdir() if p.name.startswith(".")]


def test_the_cache_follows_the_environment_variable(cache):
    assert cache_folder() == cache


def test_equal_sources_are_built_once_and_changed_ones_again(cache):
    first = build(tiny("module t(input a); endmodule\n"))
    again = build(tiny("module t(input a); endmodule\n"))
    other = build(tiny("module t(input b); endmodule\n"))
    assert (first.cached, again.cached, other.cached) == (False, True, False)
    assert first.binary == again.binary != other.binary
    assert again.seconds == 0
    assert len(list((cache / "libraries").glob("*/library.o"))) == 1, "both simulators have the same flags"
    assert not leftovers(cache)


def test_a_truncated_library_is_compiled_again(cache, caplog):
    build(tiny("module t(input g); endmodule\n"))
    (library,) = (cache / "libraries").glob("*/library.o")
    whole = library.read_bytes()
    library.write_bytes(whole[: len(whole) // 2])
    made = build(tiny("module t(input h); endmodule\n"))
    assert not made.cached
    assert f"cache entry {library.parent.name} was altered; it is made again" in caplog.text
    assert len(library.read_bytes()) == len(whole)
    assert not subprocess.run([made.binary], check=False).returncode


def test_a_build_tells_how_far_it_is_and_a_kept_one_says_nothing(cache):
    told = []
    plan = tiny("module t(input d); endmodule\n")
    build(plan, lambda done, steps: told.append((done, steps)))
    assert told[0] == (0, 1)
    steps = told[-1][1]
    assert told[-1] == (steps, steps)
    assert steps >= 2 + 3, "Verilator's own file, the library and main.cpp are compiled"
    assert told == sorted(told)
    assert not build(plan, lambda *_: pytest.fail("nothing is built")).seconds


def test_every_part_of_a_plan_changes_its_key():
    tools = toolchain()
    plan = bare_plan(VERILOG)
    others = [bare_plan(VERILOG + "// changed\n"), bare_plan(VERILOG, optimize="-O0"), tiny("module t; endmodule")]
    keys = {p.key(tools) for p in (plan, *others)}
    assert len(keys) == 4
    assert plan.key(tools) == bare_plan(VERILOG).key(tools)


def test_broken_verilog_is_refused_with_verilators_message_and_leaves_nothing(cache):
    with pytest.raises(SimulationError, match=r"(?s)building the simulator failed.*syntax error"):
        build(tiny("module t(input a; endmodule\n"))
    assert not leftovers(cache)


def test_what_a_killed_build_left_goes_with_the_next_of_its_kind(cache):
    plan, other = tiny("module t(input e); endmodule\n"), tiny("module t(input f); endmodule\n")
    cache_folder()
    for name in (f".{plan.name}-{p.key(toolchain())}.abc" for p in (plan, other)):
        (cache / "builds" / name / "obj").mkdir(parents=True)
    build(plan)
    assert leftovers(cache) == [f".{other.name}-{other.key(toolchain())}.abc"], "the other's maker may be at work"


def _build_in_process(queue):
    queue.put(build(tiny("module t(input c); endmodule\n")).cached)


@pytest.mark.slow
def test_two_processes_may_want_the_same_build_at_once(cache):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    workers = [context.Process(target=_build_in_process, args=(queue,)) for _ in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(120)
    assert sorted(queue.get(timeout=5) for _ in workers) == [False, True]
    assert not leftovers(cache)
