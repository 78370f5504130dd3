"""Compiling the C runtime for the host, and small programs for it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.result import Arrays

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime"
SOURCES = sorted(RUNTIME.glob("*.c"))
INCLUDES = (f"-I{RUNTIME}", f"-I{ROOT / 'include'}")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion", "-Wshadow")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compiled(output: Path, sources: Sequence[Path], *flags: str) -> Path:
    """An executable or library of C sources and the runtime."""
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", *INCLUDES, f"-I{Path(__file__).parent}", *flags]
    subprocess.run([*command, *map(str, sources), *map(str, SOURCES), "-o", str(output)], check=True)
    return output


def small_graph(seed: int = 1) -> tuple[IntGraph, Arrays]:
    """A network of two convolutions with an image input, and inputs for it."""
    maker = GraphMaker(seed)
    x = maker.input(3, 9, 10)
    y = maker.conv(x, 20, 3)
    return maker.graph(maker.conv(y, 5, 1, stride=2), y, name="small"), maker.random_inputs()


def small_program(seed: int = 1) -> tuple[Program, Arrays]:
    """The small network for preset nano, and inputs for it."""
    graph, inputs = small_graph(seed)
    return compile_graph(graph, preset("nano")), inputs
