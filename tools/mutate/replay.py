"""Replays recorded inputs on every fault in one Verilator program and says which faults a checker would find.

A payload is compared only while its `valid` is high: no checker looks at it in other cycles.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from intloom.sim.rtl.build import BuildPlan, build
from tools.mutate.netlist import SELECT
from tools.mutate.record import TOP, Port

_MAIN = """\
// Replays records on each fault: reads the inputs of a cycle, compares the outputs just before the clock edge.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>
#include "Vtop.h"
#include "verilated.h"

struct Record {
    std::vector<uint32_t> words;
    long first = 0;  // the first cycle that is compared
};

constexpr long kMostSkipped = 64;

// The number of the first cycle from `record.first` on in which an output differs, or of the last one; -1: none.
static long difference(Vtop& top, const Record& record, bool last) {
    const uint32_t* at = record.words.data();
    const uint32_t* end = at + record.words.size();
    long found = -1;
    for (long now = 0; at < end; now++) {
        bool same = true;
%(cycle)s
        if (!same && now >= record.first) {
            found = now;
            if (!last) return found;
        }
        top.clk = 1;
        top.eval();
        top.clk = 0;
    }
    return found;
}

static long difference(int fault, const Record& record, bool last) {
    auto context = std::make_unique<VerilatedContext>();
    auto top = std::make_unique<Vtop>(context.get());
    top->clk = 0;
    top->%(select)s = fault;
    // Yosys (0.70) puts a fault's switch between a register and its name, which keeps the initial value: only a
    // reset gives registers other values than 0.
    top->rst = 1;
    top->eval();
    top->clk = 1;
    top->eval();
    top->clk = 0;
    top->rst = 0;
    return difference(*top, record, last);
}

int main(int argc, char** argv) {
    const int faults = std::atoi(argv[1]);
    std::vector<Record> records;
    for (int i = 2; i < argc; i++) {
        FILE* file = std::fopen(argv[i], "rb");
        Record record;
        for (uint32_t word; std::fread(&word, 4, 1, file) == 1;) record.words.push_back(word);
        std::fclose(file);
        records.push_back(record);
    }
    // The netlist without faults. Registers without reset have other values in the first cycles: the reset takes
    // a clock edge. A test that sets registers inside the component cannot be replayed.
    const size_t recorded = records.size();
    for (Record& record : records) record.first = difference(0, record, true) + 1;
    const auto differs = [](const Record& record) { return record.first > kMostSkipped; };
    records.erase(std::remove_if(records.begin(), records.end(), differs), records.end());
    std::printf("%%zu %%zu\\n", recorded, records.size());
    for (int fault = 1; fault <= faults; fault++) {
        bool seen = false;
        for (size_t i = 0; i < records.size() && !seen; i++) {
            seen = difference(fault, records[i], false) >= 0;
            // A record that shows one fault often shows the next one.
            if (seen) std::rotate(records.begin(), records.begin() + i, records.begin() + i + 1);
        }
        std::printf("%%d\\n", seen);
    }
}
"""


def _member(port: Port) -> str:
    """What Verilator calls a port in C++, where double underscores are its own."""
    return port.name.replace("__", "___05F")


def _input(port: Port) -> str:
    if port.width > 64:
        return f"for (int i = 0; i < {port.words}; i++) top.{_member(port)}[i] = *at++;"
    high = " | (uint64_t)at[1] << 32" if port.words == 2 else ""
    return f"top.{_member(port)} = at[0]{high}; at += {port.words};"


def _output(port: Port) -> str:
    if port.width > 64:
        return f"for (int i = 0; i < {port.words}; i++) same &= top.{_member(port)}[i] == *at++;"
    high = " | (uint64_t)at[1] << 32" if port.words == 2 else ""
    return f"same &= (uint64_t)top.{_member(port)} == ((uint64_t)at[0]{high}); at += {port.words};"


def _valid_of(port: Port, ports: list[Port]) -> Port | None:
    """The output that says whether this port has a meaning: of a payload, with the port's name, or of all results."""
    before, payload, _ = port.name.rpartition("payload")
    flags = [f"{before}valid"] if payload else [f"{port.name}_valid", *["result_valid"] * (port.width > 1)]
    return next((p for flag in flags for p in ports if p.name == flag and not p.is_input), None)


def checked_output(port: Port, ports: list[Port]) -> str:
    """C++ that compares an output, of a payload only if it is valid."""
    valid = _valid_of(port, ports)
    if valid is None:
        return _output(port)
    offset = sum(p.words for p in ports[: ports.index(valid)])
    return f"if (cycle[{offset}]) {{ {_output(port)} }} else at += {port.words};"


def _main_source(ports: list[Port]) -> str:
    """The program for these ports; a record holds inputs and outputs in the ports' order, so inputs are set first."""
    skip = {p.name: f"at += {p.words};" for p in ports}
    inputs = [_input(p) if p.is_input else skip[p.name] for p in ports]
    outputs = [skip[p.name] if p.is_input else checked_output(p, ports) for p in ports]
    lines = ["const uint32_t* cycle = at;", *inputs, "top.eval();", "at = cycle;", *outputs]
    return _MAIN % {"cycle": "\n".join(f"        {line}" for line in lines), "select": SELECT}


def read_ports(folder: Path) -> list[Port]:
    """The ports as the recorder wrote them down."""
    rows = [line.split() for line in (folder / "ports").read_text(encoding="utf-8").splitlines()]
    return [Port(name, int(width), is_input == "1") for name, width, is_input in rows]


@dataclass(frozen=True)
class Replay:
    """What the records of one netlist show."""

    seen: list[bool]
    """For every fault, from 1, whether some record shows it."""
    records: int
    left_out: int
    """Records with which the netlist without faults does not agree: their test sets registers inside the component."""


def replay(folder: Path, faults: int) -> Replay:
    """Replay all records of a netlist on every fault."""
    generated = {
        "mutants.v": (folder / "mutants.v").read_text(encoding="utf-8"),
        "main.cpp": _main_source(read_ports(folder)),
    }
    plan = BuildPlan(name="mutants", top=TOP, generated=generated, cpp=("main.cpp",), optimize="-O1")
    records = sorted(map(str, folder.glob("*.record")))
    command = [str(build(plan).binary), str(faults), *records]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, *lines = done.stdout.splitlines()
    recorded, kept = map(int, first.split())
    if not kept:
        raise SystemExit("the netlist without faults differs from all records: recording or replay is broken")
    return Replay([line == "1" for line in lines], recorded, recorded - kept)
