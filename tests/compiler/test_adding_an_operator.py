"""The example of docs/adding-an-operator.md, applied to a copy of the tree: the files that change, and that it runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "adding-an-operator.md"
FOLDERS = ("compiler", "docs", "hw", "include", "intloom", "runtime", "sim", "tests", "tools")
MOST_FILES = 6

RUN = """
import numpy as np
from intloom.compiler.ir import IntGraph, Tensor
from intloom.compiler.ir.onnx_export import to_onnx
from intloom.compiler.ir.ops.minimum import Min
from intloom.compiler.ir.verify import verify
from intloom.compiler.program.soundness import check_program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import decode, encode
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.golden import run_graph
from intloom.sim.isa_sim import IsaSimulator
from tests.support.parity import run_onnxruntime

params = preset("nano")
shape = (1, 7, 5, 6)
tensors = {name: Tensor(name, shape, 0.1, 3, False) for name in "abcd"}
invert = bytes(255 - k for k in range(256))
first = Min(name="first", inputs=("a", "b"), output="c")
second = Min(name="second", inputs=("c", "a"), output="d", table=invert)
graph = IntGraph("minimum", tensors, (first, second), ("a", "b"), ("d",))
verify(graph)
program = compile_graph(graph, params)
check_program(program)
kinds = [i.kind for i in program.instructions]
assert kinds.count("VMIN") >= 2, kinds
assert all(decode(encode(i)) == i for i in program.instructions)
random = np.random.default_rng(0)
inputs = {name: random.integers(-128, 128, shape, dtype=np.int8) for name in "ab"}
table = np.frombuffer(invert, np.int8)
expected = table[np.minimum(inputs["a"], inputs["b"]).view(np.uint8)]
assert np.array_equal(run_graph(graph, inputs, match=params.match)["d"], expected)
assert np.array_equal(run_onnxruntime(to_onnx(graph), inputs, ["d"])["d"], expected)
assert np.array_equal(IsaSimulator(program).run(inputs)["d"], expected)
result = RtlBackend().run(program, inputs)
assert np.array_equal(result.outputs["d"], expected)
assert result.cycles > 0
print("equal")
"""


def blocks(kind: str) -> dict[str, str]:
    """The guide's code blocks of a language, by file name."""
    found = re.findall(rf'^```{kind} title="(.*?)"\n(.*?)^```$', GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return dict(found)


def named_files() -> set[str]:
    """The files of the guide's table."""
    return set(re.findall(r"^\| `(.*?)` \|", GUIDE.read_text(), re.MULTILINE))


def contents(root: Path) -> dict[str, bytes]:
    """Every file of the tree, links and caches left out."""
    found = {}
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            hidden = any(p.startswith(".") or p == "__pycache__" for p in path.relative_to(root).parts)
            if path.is_file() and not hidden and not path.is_symlink():
                found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def run(tree: Path, *arguments: str) -> str:
    """A Python process whose `intloom` is the one of `tree`."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree with the guide's example in it."""
    copy = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name, text in blocks("python").items():
        assert not (copy / name).exists(), name
        (copy / name).write_text(text)
    for name, text in blocks("diff").items():
        patch = f"--- a/{name}\n+++ b/{name}\n{text}"
        subprocess.run(["git", "apply", "-"], cwd=copy, input=patch, text=True, check=True)
    run(copy, "-m", "intloom.hw.spec")
    run(copy, "-m", "intloom.manual")
    return copy


def test_the_guide_names_exactly_the_files_that_change(tree: Path) -> None:
    before, after = contents(ROOT), contents(tree)
    changed = {name for name, content in after.items() if before.get(name) != content}
    assert changed == named_files()
    assert len(changed) <= MOST_FILES
    assert set(blocks("python")) | set(blocks("diff")) <= changed


@pytest.mark.slow
def test_the_example_runs_on_every_level(tree: Path) -> None:
    assert run(tree, "-c", RUN).strip() == "equal"


@pytest.mark.slow
def test_the_registries_and_the_vector_unit_accept_the_example(tree: Path) -> None:
    tests = ("tests/compiler/schedule/test_operators.py", "tests/hw/vector/test_unit.py")
    run(tree, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests, "-k", "VMIN or schedule")
