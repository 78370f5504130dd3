"""BEGIN and END."""

from intloom.common.errors import ProgramError
from intloom.hw.spec.isa import ISA_VERSION, Instruction, Kind
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.isa_sim.registry import executes


@executes(Kind.BEGIN)
def begin(machine: Machine, instruction: Instruction) -> None:
    """Refuse a program of another version or for other hardware, as the accelerator does."""
    expected = (ISA_VERSION, machine.params.fingerprint())
    given = (instruction["version"], instruction["fingerprint"])
    if given != expected:
        raise ProgramError(
            f"BEGIN must carry version {expected[0]} and fingerprint {expected[1]:#010x}, not {given[0]} and "
            f"{given[1]:#010x}: compile the program for this hardware"
        )


@executes(Kind.END)
def end(machine: Machine, instruction: Instruction) -> None:
    """Nothing is left to do."""
