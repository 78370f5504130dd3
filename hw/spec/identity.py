"""BEGIN, the first instruction of a program: it has the ISA version and the fingerprint of the hardware parameters."""

from intloom.hw.spec.instructions import Kind
from intloom.hw.spec.isa import ISA_VERSION, Instruction, make
from intloom.hw.spec.params import HardwareParams


def begin(params: HardwareParams) -> Instruction:
    """The BEGIN instruction of every program for this hardware."""
    return make(Kind.BEGIN, version=ISA_VERSION, fingerprint=params.fingerprint())
