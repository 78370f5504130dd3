"""Signal values of every clock cycle, recorded from Amaranth's simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from amaranth.hdl import Elaboratable
from amaranth.sim import Simulator

from intloom.common.temporary_files import temporary_folder

Process = Callable[[Any], Any]
_PERIOD = 1e-8


class Recording:
    """Values by hierarchical signal name and cycle; cycle 0 ends with the first rising clock edge."""

    def __init__(self, values: dict[str, list[int]]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> list[int]:
        """The values of a signal, named as in the waveform: `top.module.signal`."""
        if name not in self._values:
            last = name.rpartition(".")[2]
            similar = ", ".join(sorted(n for n in self._values if n.rpartition(".")[2] == last)) or "none"
            raise KeyError(f"the simulation has no signal {name}; signals with that last name: {similar}")
        return self._values[name]


def record(design: Elaboratable, bench: Process, background: Iterable[Process] = ()) -> Recording:
    """Simulate until `bench` returns and give every signal's value before each rising edge of the clock."""
    simulator = Simulator(design)
    simulator.add_clock(_PERIOD)
    simulator.add_testbench(bench)
    for process in background:
        simulator.add_testbench(process, background=True)
    with temporary_folder() as folder:
        path = folder / "waves.vcd"
        with simulator.write_vcd(str(path)):
            simulator.run()
        return Recording(_sampled(path))


def _sampled(path: Path) -> dict[str, list[int]]:
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
    clock = next(code for code, found in names.items() if "clk" in found)
    return _by_cycle(lines, names, clock)


def _by_cycle(changes: Iterator[str], names: dict[str, list[str]], clock: str) -> dict[str, list[int]]:
    now = dict.fromkeys(names, 0)
    samples: dict[str, list[int]] = {code: [] for code in names}
    for line in changes:
        if line[:1] == "b":
            value, code = line[1:].split()
        elif line[:1] in ("0", "1"):
            value, code = line[0], line[1:]
        else:
            continue
        if code == clock and value == "1":
            for each, values in samples.items():
                values.append(now[each])
        now[code] = int(value, 2)
    return {name: samples[code] for code, found in names.items() for name in found}
