"""A Verilog testbench with a small program: checks the generated accelerator in any simulator, without Python."""

from pathlib import Path

from intloom.compiler.program.memory import initial_memory, pack_tensor
from intloom.compiler.program.program import Role
from intloom.compiler.schedule import compile_graph
from intloom.hw.npu import TOP_NAME
from intloom.hw.spec import regs
from intloom.hw.spec.params import HardwareParams
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import make_graph

TESTBENCH = f"{TOP_NAME}_tb"
MEMORY_FILE = f"{TESTBENCH}_memory.hex"
EXPECTED_FILE = f"{TESTBENCH}_expected.hex"
_TEMPLATE = Path(__file__).with_name("testbench.v.txt")
_LIMIT = 20_000
"""Cycles."""


def _hex(data: bytes, word_bytes: int) -> str:
    """Lines for $readmemh: a word each, its last byte first."""
    words = (data[i : i + word_bytes] for i in range(0, len(data), word_bytes))
    return "".join(word[::-1].hex() + "\n" for word in words)


def render_testbench(params: HardwareParams) -> dict[str, str]:
    """Testbench, memory contents and expected output words; deterministic."""
    # Whole blocks of channels: other lanes of an output word would be undefined.
    channels = max(params.word_bytes, params.cols)
    sizes = {"inputs": 3, "outputs": channels, "height": 6, "width": 6, "kernel": 3, "stride": 1, "pad": 1}
    graph, inputs = make_graph("conv", 1, sizes)
    program = compile_graph(graph, params)
    golden = run_graph(graph, inputs, match=params.match)
    (output,) = (t for t in program.tensors if t.role is Role.OUTPUT)
    expected = pack_tensor(output, params, golden[output.name])
    memory = initial_memory(program, inputs).tobytes()
    word = params.word_bytes
    values: dict[str, object] = {
        "WORD_BYTES": word,
        "PORT_BYTES": params.port_bytes,
        "BEAT_BYTES": params.beat_bytes,
        "MEMORY_WORDS": len(memory) // word,
        "OUTPUT_WORDS": len(expected) // word,
        "OUTPUT_AT": output.address,
        "PROGRAM": program.instructions_at,
        "INSTRUCTIONS": len(program.instructions),
        "ADDRESS_BITS": params.axi_addr_bits,
        "REGISTER_BITS": regs.ADDRESS_BITS,
        "LIMIT": _LIMIT,
    }
    names = ("CONTROL", "STATUS", "PROGRAM", "LENGTH", "BASE_LOW", "BASE_HIGH", "LIMIT", "IRQ_ENABLE", "FINGERPRINT")
    for name in names:
        values[f"REG_{name}"] = regs.register(name).offset
    values["TRACE_PORTS"] = ".trace_started(), .trace_done(), " if params.trace else ""
    text = _TEMPLATE.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    text = text.replace("@MEMORY_FILE@", MEMORY_FILE).replace("@EXPECTED_FILE@", EXPECTED_FILE)
    return {f"{TESTBENCH}.v": text, MEMORY_FILE: _hex(memory, word), EXPECTED_FILE: _hex(expected, word)}
