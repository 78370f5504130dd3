"""Signal values of every clock cycle, recorded from Amaranth's simulator."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from amaranth.hdl import Elaboratable
from amaranth.sim import Simulator

from intloom.common.temporary_files import temporary_folder

Process = Callable[[Any], Any]
_PERIOD = 1e-8


class Recording:
    """Values by hierarchical signal name and cycle; cycle 0 ends with the first rising clock edge.

    `names` lists, for each recorded wire, its name in every module that uses it.
    """

    def __init__(self, wires: Sequence[tuple[Sequence[str], list[int]]]) -> None:
        self._wires = wires

    def __getitem__(self, name: str) -> list[int]:
        """The values of a signal, named as in the waveform: `module.submodule.signal`.

        The simulator adds a number to a name that a module uses twice, in no order to rely on. So the signal meant is
        the one with that name that no submodule uses; of several, the module's port, which its parent uses.
        """
        scope = name.rpartition(".")[0]
        wires = [wire for wire in self._wires if any(each.partition("$")[0] == name for each in wire[0])]
        if len(wires) > 1:
            wires = [wire for wire in wires if not any(_is_below(each, scope) for each in wire[0])]
        if len(wires) > 1 and scope:
            wires = [wire for wire in wires if any(_scope(each) == scope.rpartition(".")[0] for each in wire[0])]
        if len(wires) != 1:
            last = name.rpartition(".")[2]
            all_names = {each for names, _ in self._wires for each in names}
            similar = ", ".join(sorted(n for n in all_names if n.rpartition(".")[2] == last)) or "none"
            raise KeyError(f"{len(wires)} signals are called {name}, not 1; signals with that last name: {similar}")
        return wires[0][1]


def _scope(name: str) -> str:
    """The module of a signal; a field of a struct, written with a backslash, belongs to the struct's module."""
    return name.partition("\\")[0].rstrip(".") if "\\" in name else name.rpartition(".")[0]


def _is_below(name: str, scope: str) -> bool:
    """Whether a signal is used in a submodule of `scope`."""
    inner = _scope(name)
    return inner != scope and (not scope or inner.startswith(f"{scope}."))


def record(
    design: Elaboratable, bench: Process, background: Iterable[Process] = (), domains: Sequence[str] = ("sync",)
) -> Recording:
    """Simulate until `bench` returns and give every signal's value before each rising edge of the clock.

    All `domains` tick together.
    """
    simulator = Simulator(design)
    for domain in domains:
        simulator.add_clock(_PERIOD, domain=domain)
    simulator.add_testbench(bench)
    for process in background:
        simulator.add_testbench(process, background=True)
    with temporary_folder() as folder:
        path = folder / "waves.vcd"
        with simulator.write_vcd(str(path)):
            simulator.run()
        return Recording(_sampled(path))


def _sampled(path: Path) -> list[tuple[list[str], list[int]]]:
    """Each signal's value before each rising edge.

    pyvcd's own reader (0.4) refuses the names of array elements that its writer writes.
    """
    names: dict[str, list[str]] = {}
    scope: list[str] = []
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    for line in lines:
        words = line.split()
        match words[:1]:
            case ["$scope"]:
                scope.append(words[2])
            case ["$upscope"]:
                scope.pop()
            case ["$var"]:
                names.setdefault(words[3], []).append(".".join([*scope[2:], words[4]]))
            case ["$enddefinitions"]:
                break
            case _:
                pass
    clock = next(code for code, found in names.items() if "clk" in found)
    return _by_cycle(lines, names, clock)


def _by_cycle(changes: Iterator[str], names: dict[str, list[str]], clock: str) -> list[tuple[list[str], list[int]]]:
    """Values before each rising edge: the simulator writes the changes of one time in no particular order."""
    now = dict.fromkeys(names, 0)
    samples: dict[str, list[int]] = {code: [] for code in names}
    at_once: dict[str, int] = {}
    for line in chain(changes, ["#"]):
        if line[:1] == "b":
            value, code = line[1:].split()
            at_once[code] = int(value, 2)
        elif line[:1] in ("0", "1"):
            at_once[line[1:]] = int(line[0])
        elif line[:1] == "#":
            if at_once.get(clock):
                for code, values in samples.items():
                    values.append(now[code])
            now |= at_once
            at_once = {}
    return [(found, samples[code]) for code, found in names.items()]
