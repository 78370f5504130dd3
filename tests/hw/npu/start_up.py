"""The accelerator without initial values on Icarus Verilog, where what no reset or write has set is X (start_up.v)."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from intloom.hw.npu import TOP_NAME
from intloom.hw.spec import regs
from intloom.hw.spec.params import HardwareParams
from intloom.sim.rtl.bare import without_initial_values
from intloom.sim.rtl.ports import parse_ports
from tests.hw.npu.short_programs import MEMORY_WORDS, Program

_BASE = 0x4000_0000
_LIMIT = 3500
_CHANNELS = ("m_axi_aw", "m_axi_w", "m_axi_ar", "s_axi_b", "s_axi_r")
"""Channels on which the accelerator sends."""
_MODULE = re.compile(rf"^module \\?({TOP_NAME}(?:\.\S+)?)\s*\(.*?^endmodule", re.MULTILINE | re.DOTALL)
_HANDSHAKE = re.compile(r"^\s*(?:wire|reg) (\\?((?:\w+__)?)(valid|ready)(?:\$\d+)?) *;", re.MULTILINE)


_SHIFT = re.compile(r"^(\s*assign .* = )(.*) (<<|>>) (.*);$", re.MULTILINE)
_PRODUCT = re.compile(r"^(\s*assign .* = )(.*) \* (.*);$", re.MULTILINE)


def exact(verilog: str) -> str:
    """The Verilog where 0 that is shifted by X or multiplied with X is 0, as in hardware: Verilog defines it as X."""
    verilog = _SHIFT.sub(r"\1((\2) === 0) ? 0 : \2 \3 \4;", verilog)
    return _PRODUCT.sub(r"\1((\2) === 0 | (\3) === 0) ? 0 : \2 * \3;", verilog)


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    text: str
    """What the bench printed."""
    memory: bytes | None
    """The memory at the end; None if it has an X, or if the run did not end."""

    @property
    def is_done(self) -> bool:
        """Whether the program ended without error, and no checked bit was X."""
        done = regs.pack("STATUS", done=1)
        return f"status {done:08x} problems 0 " in self.text


def handshakes(verilog: str) -> Iterator[tuple[str, str]]:
    """Every `valid` and `ready` in the design as seen from the bench, and when it must be 0 or 1.

    Inside the design a `ready` may depend on the payload, so it has a meaning only while its `valid` is high. Where
    Yosys has given several channels of a module one name, or a channel's `valid` another name than its `ready`, the
    `ready` is checked in the component that it belongs to.
    """
    for module in _MODULE.finditer(verilog):
        path = "dut." + "".join(f"\\{part} ." for part in module[1].split(".")[1:])
        found = _HANDSHAKE.findall(module[0])
        for signal, prefix, kind in found:
            valids = [f"{path}{s} !== 1'b0" for s, p, k in found if (p, k) == (prefix, "valid")]
            inside = kind == "ready" and path != "dut."
            if inside and ("$" in signal or len(valids) != 1):
                continue
            yield f"{path}{signal} ", valids[0] if inside else "1"


def _checks(verilog: str) -> Iterator[str]:
    """Statements that check one bit or one vector each."""
    for signal, condition in handshakes(verilog):
        yield f'if ({condition}) check(^{signal}, "{signal.replace(chr(92), "").replace(" ", "")}");'
    for port in parse_ports(verilog).values():
        channel = next((c for c in _CHANNELS if port.name.startswith(c)), None)
        if port.is_input:
            continue
        sent = channel is not None and not port.name.endswith(("valid", "ready"))
        condition = f"{channel}valid !== 1'b0" if sent else "1"
        yield f'if ({condition}) check(^{port.name}, "{port.name}");'


def _ports(verilog: str) -> Iterator[str]:
    for port in parse_ports(verilog).values():
        yield f"{'reg' if port.is_input else 'wire'} [{port.width - 1}:0] {port.name};"


_WRITES = ("IRQ_ENABLE", "BASE_LOW", "LIMIT", "PROGRAM", "LENGTH", "CONTROL")


def build(verilog: str, params: HardwareParams, folder: Path) -> None:
    """Compile the accelerator without initial values, and the bench."""
    verilog = exact(without_initial_values(verilog))
    settings = {
        "MEMORY_WORDS": MEMORY_WORDS,
        "WORD": params.word_bytes,
        "BEAT": params.beat_bytes,
        "PORT": params.port_bytes,
        "BASE": f"32'h{_BASE:x}",
        "LIMIT": _LIMIT,
        "STATUS": regs.register("STATUS").offset,
        "WRITES": len(_WRITES),
    }
    files = {
        "npu.v": verilog,
        "settings.vh": "\n".join(f"`define {name} {value}" for name, value in settings.items()),
        "ports.vh": "\n".join(_ports(verilog)),
        "checks.vh": "\n".join(_checks(verilog)),
    }
    for name, text in files.items():
        (folder / name).write_text(text + "\n")
    command = ["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", Path(__file__).with_suffix(".v"), "npu.v"]
    subprocess.run(command, cwd=folder, check=True)


def run(folder: Path, program: Program) -> Outcome:
    """Run a program on a bench that was built in the folder."""
    values = (
        regs.pack("IRQ_ENABLE", done=1, error=1),
        _BASE,
        MEMORY_WORDS,
        program.first_word,
        program.instructions,
        regs.pack("CONTROL", start=1),
    )
    writes = zip((regs.register(name).offset for name in _WRITES), values, strict=True)
    (folder / "writes.hex").write_text("".join(f"{offset:x} {value:x}\n" for offset, value in writes))
    size = len(program.before) // MEMORY_WORDS
    words = (program.before[at : at + size][::-1].hex() for at in range(0, len(program.before), size))
    (folder / "memory.hex").write_text("\n".join(words))
    result = folder / "result.hex"
    result.unlink(missing_ok=True)
    ended = subprocess.run(["vvp", "bench.vvp"], cwd=folder, check=True, capture_output=True, text=True)
    found = [line for line in result.read_text().splitlines() if not line.startswith("//")] if result.exists() else []
    known = found and not any("x" in word for word in found)
    memory = b"".join(bytes.fromhex(word)[::-1] for word in found) if known else None
    return Outcome(ended.stdout, memory)
