"""Changes the values of a program file and gives the result the right checksum, as an attacker would."""

import copy
import hashlib
import json
import random
import struct
from typing import Any

from intloom.common.errors import IntloomError
from intloom.compiler.program.file import FORMAT_VERSION
from intloom.hw.spec.fields import INSTRUCTION_BYTES
from intloom.hw.spec.program_check import add_check

_HEADER = struct.Struct("<8sI4xQQQ")
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 127, 128, 255, 1 << 20, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, 1 << 64, 10**400,
    -(1 << 40), 0.0, 0.5, -1.5, 1e300, float("nan"), float("inf"), "", "x", "blocked", "input", "\ud800", "\x00\n",
    "*/", "a" * 70_000, [], [[]], [0], [1, 1, 1, 1], [1, 1 << 19, 1 << 19, 1 << 19], ["a", "b", "c"], {}, {"a": 1},
)  # fmt: skip


def sections(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Manifest, code and image of a file with one program."""
    lengths, at, result = _HEADER.unpack_from(data)[2:], 128, []
    for length in lengths:
        result.append(data[at : at + length])
        at += length + -length % 64
    return result[0], result[1], result[2]


def joined(manifest: bytes, code: bytes, image: bytes, header: bytes | None = None) -> bytes:
    """The file of these sections, with the right checksum."""
    head = header or _HEADER.pack(b"INTLOOM\0", FORMAT_VERSION, len(manifest), len(code), len(image))
    body = b"".join((manifest + bytes(-len(manifest) % 64), code + bytes(-len(code) % 64), image))
    return (head + hashlib.sha256(head + body).digest()).ljust(128, b"\0") + body


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, item in inner for p in _paths(item, (*path, key)))]


def _change_value(rng: random.Random, values: Any) -> Any:
    """Replace, remove, add, duplicate or exchange a value anywhere in the manifest."""
    # By top member first: there are as many provenances as instructions.
    top = rng.choice(sorted(values))
    path = (top, *rng.choice(_paths(values[top])))
    holder = values
    for key in path[:-1]:
        holder = holder[key]
    kind, key = rng.randrange(8), path[-1]
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(rng.choice(holder)))
    elif kind == 2 and isinstance(holder, dict):
        holder[rng.choice(["", "words", "extra"])] = rng.choice(_VALUES)
    elif kind == 3:
        other = rng.choice(sorted(values))
        holder[key], values[other] = copy.deepcopy(values[other]), copy.deepcopy(holder[key])
    elif kind == 4 and isinstance(holder[key], int):
        holder[key] += rng.choice([-1, 1, 1 << 10, -(1 << 10), 1 << 31])
    else:
        holder[key] = rng.choice(_VALUES)
    return values


def _change_text(rng: random.Random, manifest: bytes) -> bytes:
    """Overwrite, remove or repeat bytes of the JSON text, or nest lists deeply."""
    at, kind = rng.randrange(len(manifest)), rng.randrange(4)
    if kind == 0:
        depth = rng.choice([10, 900, 100_000])
        return manifest.replace(b'"layers":[', b'"layers":[' + b"[" * depth + b"]" * depth, 1)
    if kind == 1:
        return manifest[:at] + bytes([rng.randrange(256)]) + manifest[at + 1 :]
    if kind == 2:
        return manifest[:at] + manifest[at + rng.randrange(40) :]
    return manifest[:at] + manifest[at : at + rng.randrange(40)] + manifest[at:]


def _change_code(rng: random.Random, code: bytes) -> bytes:
    """Flip bits of instructions, drop or repeat some; mostly with the right program check."""
    changed = [bytearray(code[i : i + INSTRUCTION_BYTES]) for i in range(0, len(code), INSTRUCTION_BYTES)]
    kind = rng.randrange(6)
    if kind == 0:
        del changed[rng.randrange(len(changed)) :]
    elif kind == 1:
        changed.insert(rng.randrange(len(changed)), bytearray(rng.choice(changed)))
    elif kind == 2:
        changed[rng.randrange(len(changed))][:] = rng.randbytes(INSTRUCTION_BYTES)
    else:
        for _ in range(rng.randint(1, 3)):
            bit = rng.randrange(8 * INSTRUCTION_BYTES)
            rng.choice(changed)[bit // 8] ^= 1 << bit % 8
    if rng.random() < 0.1:
        return b"".join(changed)[: -rng.randrange(INSTRUCTION_BYTES) or None]
    return add_check(map(bytes, changed))


def _change_header(rng: random.Random, lengths: list[int]) -> bytes:
    lengths[rng.randrange(3)] = rng.choice([0, 1, 63, 1 << 20, 1 << 40, (1 << 64) - 1])
    others = (0, FORMAT_VERSION - 1, FORMAT_VERSION + 1, (1 << 32) - 1)
    return _HEADER.pack(b"INTLOOM\0", rng.choice((*[FORMAT_VERSION] * 3, *others)), *lengths)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A file with one to three changes and the right checksum."""
    manifest, code, image = sections(data)
    kind = rng.randrange(20)
    if kind < 13:
        values = json.loads(manifest)
        for _ in range(rng.choice([1, 1, 2, 3])):
            try:
                values = _change_value(rng, values)
            except (KeyError, IndexError, ValueError):
                continue
        manifest = json.dumps(values).encode()
    elif kind < 15:
        manifest = _change_text(rng, manifest)
    elif kind < 18:
        code = _change_code(rng, code)
    elif kind == 18:
        return joined(manifest, code, image, _change_header(rng, [len(manifest), len(code), len(image)]))
    else:
        image = image[: rng.randrange(len(image))] if rng.random() < 0.5 else image + bytes(rng.randrange(1 << 20))
    return joined(manifest, code, image)


def outcome(use: Any) -> str:
    """`accepted`, `refused`, or kind and function of a foreign exception."""
    try:
        use()
    except IntloomError as error:
        return "refused" if "\n" not in str(error) and len(str(error)) < 2_000 else f"message {str(error)[:200]!r}"
    except Exception as error:  # noqa: BLE001  # this is what the test looks for
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        where = "" if frame is None else f"{frame.tb_frame.f_code.co_qualname} line {frame.tb_lineno}"
        return f"{type(error).__name__} in {where}: {str(error)[:120]}"
    return "accepted"
