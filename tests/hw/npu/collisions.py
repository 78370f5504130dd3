"""Memories that are told never to be read where they are written: a netlist in which doing so gives wrong data."""

import re

_MODULE = re.compile(r"^module .*?^endmodule", re.DOTALL | re.MULTILINE)
_MEMORY = re.compile(r"\(\* no_rw_check = 32'd1 \*\)\n +reg \[\d+:0\] (\S+) \[\d+:0\];")
_WRITE = r"(?:if \((?P<enable>.*)\)\n +)?(?<![\w$\\]){name} ?\[(?P<address>.*?)\](?:\[[\d:]+\])? <= "
_READ = r"(?P<target>\S+) <= (?P<word>{name} ?\[(?P<address>.*)\]);"


def poison_collisions(verilog: str) -> tuple[str, int]:
    """The netlist with inverted data wherever such a memory is read in the cycle of a write; how many there are."""
    count = 0

    def module(match: re.Match[str]) -> str:
        nonlocal count
        text = match[0]
        for name in _MEMORY.findall(text):
            text, reads = _poison(text, re.escape(name))
            count += bool(reads)
        return text

    return _MODULE.sub(module, verilog), count


def _poison(module: str, name: str) -> tuple[str, int]:
    """The module with one memory's clocked reads poisoned, and how many reads that are."""
    writes = list(re.finditer(_WRITE.format(name=name), module))
    assert writes, f"memory {name} is never written"

    def poisoned(read: re.Match[str]) -> str:
        hits = [f"(({w['enable'] or 1}) && ({w['address']}) == ({read['address']}))" for w in writes]
        return f"{read['target']} <= ({' || '.join(hits)}) ? ~{read['word']} : {read['word']};"

    return re.subn(_READ.format(name=name), poisoned, module)
