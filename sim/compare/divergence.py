"""Finds the first instruction whose results differ between RTL and instruction simulator, and describes it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.program import Program, Provenance
from intloom.hw.spec.isa import disassemble
from intloom.sim.checks import GOLDEN, FirstDivergence
from intloom.sim.compare.expected_writes import ExpectedWrite, expected_writes, write_count, writes_by_instruction
from intloom.sim.compare.locate import element_in_dram, element_in_scratchpad
from intloom.sim.result import Arrays, RunResult
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.write_log import byte_masks


def find_divergence(
    program: Program, inputs: Arrays, options: RtlOptions | None = None, *, plusargs: tuple[str, ...] = ()
) -> FirstDivergence | None:
    """Run the RTL once more with its write ports tapped, and find the first wrong write; None when there is none.

    The run need not complete: after a hang or an error the first missing write counts.
    """
    options = options or RtlOptions()
    backend = RtlBackend(replace(options, bench=FastBench(taps=True, plusargs=plusargs), folder=None))
    return first_wrong_write(program, inputs, backend.observe(program, inputs, log_writes=True))


def first_wrong_write(program: Program, inputs: Arrays, seen: RunResult) -> FirstDivergence | None:
    """The first wrong or missing write, by the program's order of instructions."""
    if seen.writes is None:
        return None
    records = writes_by_instruction(program, seen.writes)
    for expected, (_, _, written) in zip(expected_writes(program, inputs), records, strict=True):
        wrong = _first_wrong(expected, written)
        if wrong is not None:
            return _describe(program, expected, written[wrong], seen.origin)
        # Missing writes come after all writes that the port made, so they are reported second.
        if len(written) < write_count(program.instructions[expected.index], program.params):
            return _describe_missing(program, expected, written)
    return None


def _wanted(expected: ExpectedWrite, written: NDArray[np.void]) -> NDArray[np.uint8]:
    # Addresses of local memories wrap at their size.
    return expected.content[written["word"] % len(expected.content)]


def _first_wrong(expected: ExpectedWrite, written: NDArray[np.void]) -> int | None:
    content = _wanted(expected, written)
    differs = ((content != written["data"]) & byte_masks(written, content.shape[1])).any(axis=1)
    outside = ~np.isin(written["word"] % len(expected.content), expected.words)
    wrong = np.flatnonzero(differs | outside)
    return int(wrong[0]) if len(wrong) else None


def _describe(program: Program, expected: ExpectedWrite, record: np.void, first_cycle: int) -> FirstDivergence:
    word = int(record["word"]) % len(expected.content)
    one = np.array([record], dtype=record.dtype)
    # Only masked bytes were written; the others may differ because of later instructions.
    content, mask = expected.content[word], byte_masks(one, expected.content.shape[1])[0]
    wrong_bytes = np.flatnonzero((content != record["data"]) & mask)
    byte = int(wrong_bytes[0]) if len(wrong_bytes) else int(np.flatnonzero(mask)[0])
    outside = word not in expected.words
    values = _Values(
        wanted=None if outside else int(content[byte].astype(np.int8)), got=int(record["data"][byte].astype(np.int8))
    )
    return _divergence(program, expected, (word, byte), int(record["cycle"]) - first_cycle, values)


def _describe_missing(program: Program, expected: ExpectedWrite, written: NDArray[np.void]) -> FirstDivergence:
    missing = expected.words[~np.isin(expected.words, written["word"] % len(expected.content))]
    word = int(missing[0]) if len(missing) else int(expected.words[-1])
    wanted = int(expected.content[word][0].astype(np.int8))
    return _divergence(program, expected, (word, 0), None, _Values(wanted, None))


@dataclass(frozen=True)
class _Values:
    """A byte as it should be, and as it was written; None for no write."""

    wanted: int | None
    got: int | None


def _divergence(
    program: Program, expected: ExpectedWrite, at: tuple[int, int], cycle: int | None, values: _Values
) -> FirstDivergence:
    origin = program.provenance[expected.index].layer
    layer = program.layers[origin] if 0 <= origin < len(program.layers) else None
    locate = {Memory.DRAM: element_in_dram, Memory.SCRATCH: element_in_scratchpad}.get(expected.memory)
    element = locate(program, *at, expected.index) if locate else None
    first = FirstDivergence(
        against=GOLDEN,
        layer=layer.name if layer else "",
        layer_index=origin if layer else None,
        node=", ".join(layer.origin) if layer else "",
        tensor="" if element is None else element.tensor,
        coordinate=() if element is None else (0, element.channel, element.y, element.x),
        expected=values.wanted,
        got=values.got,
        instruction=expected.index,
        text=disassemble(program.instructions[expected.index]),
        cycle=cycle,
    )
    return replace(first, description=_description(first, program.provenance[expected.index], expected, at))


def _description(first: FirstDivergence, source: Provenance, expected: ExpectedWrite, at: tuple[int, int]) -> str:
    where = f"{expected.memory.name.lower()} word {at[0]}, byte {at[1]}"
    if first.coordinate:
        _, channel, y, x = first.coordinate
        where += f" = tensor {first.tensor!r}, channel {channel}, y {y}, x {x}"
    when = "never" if first.cycle is None else f"cycle {first.cycle}"
    lines = [
        f"first divergence: ONNX node {first.node or '-'} (layer {first.layer!r}), tile {source.tile}",
        f"  instruction #{first.instruction}: {first.text}" + (f" [{source.note}]" if source.note else ""),
        f"  unit {expected.writer.unit.name}, {when}; {where}",
        f"  expected {_or(first.expected, 'no write here')}, got {_or(first.got, 'no write')}",
    ]
    return "\n".join(lines)


def _or(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else str(value)
