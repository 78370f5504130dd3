"""The program file `.loom`: a fixed header, a JSON manifest, the instructions and the constant image.

A model of several regions has several programs, one after the other, each with its own header.

All numbers are little-endian. The header is `MAGIC`, format version (u32), four zero bytes, the lengths in bytes of
manifest, instructions and image (u64 each) and the SHA-256 of everything else in the file. Each section starts at a
multiple of `ALIGNMENT` bytes, and so does each program, so that a reader can memory-map the image. Equal programs have
equal bytes.
"""

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intloom.common.atomic_write import write_bytes
from intloom.common.errors import EncodingError, FileFormatError, HardwareMismatchError, UsageError
from intloom.common.typed_json import SchemaError
from intloom.compiler.program.manifest import manifest_bytes, parse_manifest, read_manifest
from intloom.compiler.program.memory import encode_all
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import ISA_VERSION, decode
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import remove_check

MAGIC = b"INTLOOM\0"
FORMAT_VERSION = 6
ALIGNMENT = 64
_HEADER = struct.Struct("<8sI4xQQQ")
_DIGEST_BYTES = 32


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def to_bytes(program: Program) -> bytes:
    """The content of the program's file."""
    manifest = manifest_bytes(program)
    code = encode_all(program)
    header = _HEADER.pack(MAGIC, FORMAT_VERSION, len(manifest), len(code), len(program.image))
    body = _padded(manifest) + _padded(code) + program.image
    # The header is part of the digest, since its lengths divide the body.
    digest = hashlib.sha256(header + body).digest()
    return _padded(header + digest) + body


def save(program: Program, path: Path) -> None:
    """Write the program's file; it appears complete or not at all."""
    save_regions((program,), path)


def save_regions(programs: Sequence[Program], path: Path) -> None:
    """Write the programs of a model's regions, in order; the file appears complete or not at all."""
    if [(p.region, p.regions) for p in programs] != [(i, len(programs)) for i in range(len(programs))]:
        raise UsageError(f"the programs of all regions must be saved together, not {[p.region for p in programs]}")
    content = [to_bytes(p) for p in programs]
    # The last program is not padded, so a file of one region is exactly `to_bytes`.
    write_bytes(Path(path), b"".join((*map(_padded, content[:-1]), content[-1])))


def _sections(data: memoryview, path: Path) -> tuple[tuple[bytes, bytes, bytes], int]:
    """Manifest, code and image of the program at the start of `data`, and where it ends."""
    start = _HEADER.size + _DIGEST_BYTES
    if len(data) < start or bytes(data[: len(MAGIC)]) != MAGIC:
        raise FileFormatError(f"{path} must be an Intloom program (.loom), but is none: make it with intloom compile")
    _, version, *lengths = _HEADER.unpack_from(data)
    # Before the checksum: another version may store it elsewhere, and its user needs to know the version.
    if version != FORMAT_VERSION:
        writer = "an older" if version < FORMAT_VERSION else "a newer"
        raise FileFormatError(
            f"{path} must have format version {FORMAT_VERSION}, not {version} of {writer} release of Intloom: compile "
            "it again with this one"
        )
    offsets = [start + -start % ALIGNMENT]
    for length in lengths[:2]:
        offsets.append(offsets[-1] + length + -length % ALIGNMENT)
    end = offsets[2] + lengths[2]
    if len(data) < end:
        raise FileFormatError(
            f"{path} is truncated: it must have {end} bytes, not {len(data)}; copy or compile it again"
        )
    digest = hashlib.sha256(data[: _HEADER.size])
    digest.update(data[offsets[0] : end])
    # The padding after the header is outside the digest, so it must be zero.
    if digest.digest() != bytes(data[_HEADER.size : start]) or any(data[start : offsets[0]]):
        raise FileFormatError(f"{path} was altered: its checksum does not match; copy or compile it again")
    manifest, code, image = (bytes(data[o : o + n]) for o, n in zip(offsets, lengths, strict=True))
    return (manifest, code, image), end


def _check_hardware(manifest: dict[str, Any], expect: HardwareParams | None, path: Path) -> None:
    if manifest["isa_version"] != ISA_VERSION:
        raise HardwareMismatchError(
            f"{path} must use instruction set version {ISA_VERSION}, not {manifest['isa_version']}: compile it again"
        )
    if expect is None or manifest["fingerprint"] == expect.fingerprint():
        return
    theirs, ours = manifest["params"], expect.to_dict()
    differing = ", ".join(f"{k} is {theirs.get(k)!r}, not {v!r}" for k, v in ours.items() if theirs.get(k) != v)
    raise HardwareMismatchError(f"{path} was compiled for other hardware: {differing}; compile it for this hardware")


def _spaced(error: SchemaError) -> str:
    """A path or a predicate as it follows the word `manifest`."""
    text = str(error)
    return text if text.startswith(".") else f" {text}"


def from_bytes(data: bytes, path: Path, expect: HardwareParams | None = None) -> tuple[Program, ...]:
    """The programs in a file's content; `path` is for messages only."""
    view, programs = memoryview(data), list[Program]()
    start = 0
    while True:
        (manifest, code, image), size = _sections(view[start:], path)
        try:
            values = parse_manifest(manifest)
            _check_hardware(values, expect, path)
            programs.append(read_manifest(values, tuple(map(decode, remove_check(code))), image))
        # The checksum is no signature: a file made on purpose can hold any manifest.
        except SchemaError as error:
            raise FileFormatError(f"{path} must be compiled again: its manifest{_spaced(error)}") from None
        except EncodingError as error:
            raise FileFormatError(f"{path} must be compiled again: {error}") from None
        end = start + size
        if len(programs) == programs[0].regions:
            break
        start = end + -end % ALIGNMENT
        if len(data) <= start:
            wanted = programs[0].regions
            raise FileFormatError(f"{path} is truncated: it must hold {wanted} programs, not {len(programs)}")
        if any(data[end:start]):
            raise FileFormatError(f"{path} was altered between its programs; copy or compile it again")
    if len(data) != end:
        raise FileFormatError(f"{path} has trailing data: it must have {end} bytes, not {len(data)}; copy it again")
    if [(p.region, p.regions) for p in programs] != [(i, len(programs)) for i in range(len(programs))]:
        raise FileFormatError(f"{path} must hold one program for each region of a model, in order; compile it again")
    return tuple(programs)


def load(path: Path, expect: HardwareParams | None = None) -> Program:
    """The one program in file `path`; see `load_regions`."""
    programs = load_regions(path, expect)
    if len(programs) > 1:
        raise FileFormatError(f"{path} must hold one program, not {len(programs)} regions with the host between them")
    return programs[0]


def load_regions(path: Path, expect: HardwareParams | None = None) -> tuple[Program, ...]:
    """The programs in file `path`, one for each region of the model.

    Raises
    ------
    FileFormatError
        The file is missing, truncated, altered, or not a program.
    HardwareMismatchError
        It was compiled for another instruction set version, or for hardware other than `expect`.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileFormatError(f"cannot read program {path}: {error.strerror}") from None
    return from_bytes(data, Path(path), expect)
