"""The manifest of a program file: its JSON form, its schema, and the rules between its values.

The schema is the type hints of `Program` and its parts. Files come from outside: `read_manifest` accepts nothing that
the schema or a rule of `check_program_values` forbids, so that readers of a `Program` need no checks of their own.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from intloom.common.errors import ParameterError, UsageError
from intloom.common.typed_json import SchemaError, member_readers, parse, read_members, reader
from intloom.compiler.program.footprint import footprint
from intloom.compiler.program.memory import PIXEL_CHANNELS, instruction_words, row_words, tensor_words
from intloom.compiler.program.program import Layout, MemoryTiming, Program, Provenance, Role, TensorBuffer
from intloom.hw.spec.isa import ISA_VERSION, Instruction
from intloom.hw.spec.params import HardwareParams, from_dict

MAX_BYTES = 1 << 26
"""Bytes of a manifest; the largest network of the zoo has one of 2 MB."""
MAX_MEMORY_BYTES = 1 << 32
"""Bytes of a program's memory."""
MAX_COORDINATE = 1 << 20
"""Pixels, rows, channels or blocks of a tensor."""
_HARDWARE = ("isa_version", "fingerprint")
_SECTIONS = ("instructions", "image")
"""Fields of a program that are sections of the file."""
_MAX_FP32 = float.fromhex("0x1.fffffep127")


def manifest_bytes(program: Program) -> bytes:
    """The manifest as JSON: equal programs have equal bytes."""
    values = {f.name: getattr(program, f.name) for f in dataclasses.fields(Program) if f.name not in _SECTIONS}
    values |= {
        "isa_version": ISA_VERSION,
        "fingerprint": program.params.fingerprint(),
        "params": program.params.to_dict(),
        "dims": dict(program.dims),
        "memory": asdict(program.memory),
        # A list each: there are as many as instructions.
        "provenance": [[p.layer, p.tile, p.note] for p in program.provenance],
    }
    for name in ("tensors", "local_tensors", "residences", "layers"):
        # Their values are plain; `asdict` would copy each of them.
        values[name] = [{f.name: getattr(value, f.name) for f in dataclasses.fields(value)} for value in values[name]]
    # Sorted keys and fixed separators: equal programs give equal bytes. JSON has no NaN, so a NaN must fail here.
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def parse_manifest(data: bytes) -> dict[str, Any]:
    """The manifest's values; only `isa_version`, `fingerprint` and `params` are checked."""
    if len(data) > MAX_BYTES:
        raise SchemaError(f"must have at most {MAX_BYTES:,} bytes, not {len(data):,}")
    values = parse(data)
    if type(values) is not dict:
        raise SchemaError("must be an object")
    for name in _HARDWARE:
        if type(values.get(name)) is not int:
            raise SchemaError(f".{name} must be an integer")
    if type(values.get("params")) is not dict:
        raise SchemaError(".params must be an object")
    return values


def _params(value: Any) -> HardwareParams:
    try:
        return from_dict(value)
    except ParameterError as error:
        raise SchemaError(f"must be valid: {str(error)[:200]}") from None


def _timing(value: Any) -> MemoryTiming:
    try:
        timing: MemoryTiming = reader(MemoryTiming)(value)
    except UsageError as error:
        raise SchemaError(f"must be valid: {error}") from None
    return timing


def _provenance(value: Any) -> tuple[Provenance, ...]:
    rows: tuple[tuple[int, int, str], ...] = reader(tuple[tuple[int, int, str], ...])(value)
    return tuple(Provenance(layer=layer, tile=tile, note=note) for layer, tile, note in rows)


def read_manifest(values: dict[str, Any], instructions: tuple[Instruction, ...], image: bytes) -> Program:
    """The program of a parsed manifest and the file's sections.

    Raises
    ------
    SchemaError
        A value has the wrong type, is out of its range, or contradicts another one.
    """
    readers = member_readers(Program, without=(*_SECTIONS, "params", "provenance"))
    readers |= {"params": _params, "memory": _timing, "provenance": _provenance}
    own = {name: value for name, value in values.items() if name not in _HARDWARE}
    program = Program(instructions=instructions, image=image, **read_members(Program, own, readers))
    if values["fingerprint"] != program.params.fingerprint():
        raise SchemaError(
            ".fingerprint must be that of the hardware parameters, as this release of Intloom computes it"
        )
    for failure in check_program_values(program):
        raise SchemaError(failure)
    return program


def _outside(path: str, first: int, words: int, end: int) -> Iterator[str]:
    if first < 0 or words < 0 or first + words > end:
        yield f"{path} must lie inside the program's {end} words of memory, not at words {first} to {first + words}"


def _negative(path: str, value: object, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if getattr(value, name) < 0:
            yield f"{path}.{name} must not be negative, but is {getattr(value, name)}"


def check_program_values(program: Program) -> Iterator[str]:
    """Each rule between its values that a program breaks, as the end of a sentence."""
    yield from _check_memory(program)
    yield from _check_names(program)
    for index, tensor in enumerate(program.tensors):
        yield from _check_tensor(program, f".tensors[{index}]", tensor)
    yield from _check_local(program)
    yield from _check_layers(program)


def _check_memory(program: Program) -> Iterator[str]:
    word, end = program.params.word_bytes, program.memory_words
    limit = min(MAX_MEMORY_BYTES, 1 << program.params.axi_addr_bits) // word
    if not 0 < end <= limit:
        yield f".memory_words must be from 1 to {limit}, not {end}"
    step = instruction_words(1, program.params)
    if program.instructions_at % max(step, 1):
        yield f".instructions_at must be a multiple of {step}, not {program.instructions_at}"
    parts = {
        ".instructions_at": (program.instructions_at, instruction_words(len(program.instructions), program.params)),
        ".image_at": (program.image_at, -(-len(program.image) // word)),
    }
    for name, (first, words) in parts.items():
        yield from _outside(name, first, words, end)
    yield from _negative("", program, ("predicted_cycles",))


def _check_names(program: Program) -> Iterator[str]:
    if not 0 <= program.region < program.regions:
        yield f".region must be from 0 to {program.regions - 1}, not {program.region}"
    if not all(0 < size < MAX_COORDINATE for size in program.dims.values()):
        yield f".dims must have sizes from 1 to {MAX_COORDINATE - 1}"
    names = [t.name for t in program.tensors]
    if len(set(names)) != len(names):
        yield ".tensors must have different names"


def _check_shape(path: str, shape: tuple[int, ...]) -> Iterator[str]:
    if shape[0] != 1 or not all(0 < size <= MAX_COORDINATE for size in shape):
        yield f"{path}.shape must be [1, channels, rows, pixels] of at most {MAX_COORDINATE} each, not {list(shape)}"


def _check_tensor(program: Program, path: str, t: TensorBuffer) -> Iterator[str]:
    yield from _check_shape(path, t.shape)
    yield from _outside(f"{path}.address", t.address, t.words, program.memory_words)
    if t.layout is Layout.PIXELS4 and t.shape[1] > PIXEL_CHANNELS:
        yield f"{path}.shape must have at most {PIXEL_CHANNELS} channels in this layout"
    needed = tensor_words(t.shape, t.layout, program.params)
    plane = t.shape[2] * row_words(t.shape[3], t.layout, program.params)
    # A tensor that begins inside a channel block of a larger one has a block more.
    if t.words < needed or t.words % max(plane, 1) or (t.role is Role.INPUT and t.words != needed):
        yield f"{path}.words must be the {needed} words of its shape, not {t.words}"
    if not 0 < t.scale <= _MAX_FP32:
        yield f"{path}.scale must be a positive fp32 number, not {t.scale}"
    if not -128 <= t.zero_point <= 127:
        yield f"{path}.zero_point must be from -128 to 127, not {t.zero_point}"
    if t.first_instruction is not None and not 0 <= t.first_instruction < len(program.instructions):
        yield f"{path}.first_instruction must be the number of an instruction, not {t.first_instruction}"


def _check_local(program: Program) -> Iterator[str]:
    sizes: dict[int, tuple[int, ...]] = {}
    size = 0
    for index, tensor in enumerate(program.local_tensors):
        path = f".local_tensors[{index}]"
        yield from _check_shape(path, tensor.shape)
        yield from _negative(path, tensor, ("buffer", "first_block"))
        if sizes.setdefault(tensor.buffer, tensor.shape[2:]) != tensor.shape[2:]:
            yield f"{path}.shape must have the rows and pixels of its buffer, {list(sizes[tensor.buffer])}"
        size += (tensor.first_block * program.params.rows + tensor.shape[1]) * math.prod(tensor.shape[2:])
    if size > MAX_MEMORY_BYTES:
        yield f".local_tensors must have at most {MAX_MEMORY_BYTES:,} bytes together, not {size:,}"
    yield from _check_local_results(program)


def _check_local_results(program: Program) -> Iterator[str]:
    count = len(program.instructions)
    for index, result in enumerate(program.local_results):
        path = f".local_results[{index}]"
        if not 0 <= result.instruction < count:
            yield f"{path} must name an instruction below {count}, not {result.instruction}"
        elif not any(a.write for a in footprint(program.instructions[result.instruction], program.params)):
            yield f"{path} must name an instruction that writes a tensor, not {result.instruction}"
        if not all(0 <= value < MAX_COORDINATE for value in result[1:]):
            yield f"{path} must have coordinates from 0 to {MAX_COORDINATE - 1}"


def _check_layers(program: Program) -> Iterator[str]:
    for index, layer in enumerate(program.layers):
        yield from _negative(f".layers[{index}]", layer, ("macs", "predicted_cycles", "dram_words"))
    for index, residence in enumerate(program.residences):
        yield from _negative(f".residences[{index}]", residence, ("words", "rows", "height"))
    if len(program.provenance) != len(program.instructions):
        yield f".provenance must have an entry for each of {len(program.instructions)} instructions"
    layers, tiles = range(-1, len(program.layers)), range(-1, MAX_COORDINATE)
    if not all(p.layer in layers and p.tile in tiles for p in program.provenance):
        yield f".provenance must name layers below {len(program.layers)} and tiles below {MAX_COORDINATE}"
