"""Check of a program against its hardware: the BEGIN instruction has the ISA version and the parameter fingerprint."""

from intloom.common.errors import HardwareMismatchError
from intloom.hw.spec.fields import ISA_VERSION
from intloom.hw.spec.instructions import Kind
from intloom.hw.spec.isa import Instruction, make
from intloom.hw.spec.params import PRESETS, HardwareParams


def begin(params: HardwareParams) -> Instruction:
    """The BEGIN instruction of every program for this hardware."""
    return make(Kind.BEGIN, version=ISA_VERSION, fingerprint=params.fingerprint())


def name_of(fingerprint: int) -> str:
    """The preset's name and fingerprint, or the fingerprint alone, for messages."""
    known = (f"{name} ({fingerprint:08x})" for name, p in PRESETS.items() if p.fingerprint() == fingerprint)
    return next(known, f"{fingerprint:08x}")


def check_program(first: Instruction, params: HardwareParams) -> None:
    """Check that a program is for this instruction set version and this hardware.

    Raises
    ------
    HardwareMismatchError
        It does not start with BEGIN, or version or fingerprint differ; the message names both sides.
    """
    if first.kind is not Kind.BEGIN:
        raise HardwareMismatchError(f"a program must start with BEGIN, not {first.kind}: compile it again")
    if first["version"] != ISA_VERSION:
        raise HardwareMismatchError(
            f"the program must be for instruction set version {ISA_VERSION}, not {first['version']}: compile it again"
        )
    if first["fingerprint"] != params.fingerprint():
        raise HardwareMismatchError(
            f"the program must be for hardware {name_of(params.fingerprint())}, not {name_of(first['fingerprint'])}: "
            "compile it for this hardware, or run it on the hardware that it was compiled for"
        )
