"""One case of a regression as plain data, so that it can be stored, sent to another machine and run again alone."""

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program
from intloom.hw.spec.params import HardwareParams
from intloom.sim.compare import Comparison
from intloom.sim.result import Arrays

PROGRAM = "program"
"""The value of `Case.graph` for random programs."""
Argument = int | str | tuple[int, ...]


class Outcome(StrEnum):
    """How a case ended."""

    PASS = "pass"
    FAIL = "fail"
    """Results differ, or a fault was not reported as it must be."""
    ERROR = "error"
    """The case could not be run to its end."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A graph on some hardware with some memory behavior."""

    suite: str
    name: str
    hardware: str
    """The parameters as TOML."""
    graph: str
    """Which recipe of `intloom.sim.regress.graphs` makes the graph; or `network`, or `program` for a random program."""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    seed: int = 0
    stall_permille: int = 0
    fault: str = ""
    """The injected fault; empty: none, and results must be equal.

    A name in `intloom.sim.regress.faults`, or of a random program in `intloom.sim.random_programs.faults`.
    """

    @property
    def key(self) -> str:
        """Hash of the case; equal cases have equal keys in every process."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:24]

    @property
    def reproduce(self) -> str:
        """The command that runs this case alone, whether or not it has passed before."""
        chosen = f"--seeds {self.seed}:{self.seed}" if self.graph == PROGRAM else f"--case {shlex.quote(self.name)}"
        return f"intloom regress {self.suite} {chosen} --fresh"


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """What came of a case."""

    suite: str
    name: str
    key: str
    outcome: Outcome
    seconds: float
    message: str = ""
    cycles: int = 0
    compared_bytes: int = 0
    instructions: int = 0
    seed: int = 0
    reproduce: str = ""
    version: str = ""
    """The project's sources that gave this result; see `intloom.sim.regress.version`."""


@dataclass(frozen=True, eq=False)
class Network:
    """A network with inputs, and what it must give."""

    graph: IntGraph
    inputs: Arrays
    compare: Callable[[Arrays], Comparison]
    """Compares the graph's outputs with the original network's."""


Compile = Callable[[IntGraph, HardwareParams], Program]
LoadNetwork = Callable[[str, int], Network]
"""Gives a named network at an input size, for a case's rounding `ort`."""


@dataclass(frozen=True)
class Tools:
    """What cases need from above this package. Functions of modules, so that they can be sent to other processes."""

    compile: Compile
    load_network: LoadNetwork | None = None
