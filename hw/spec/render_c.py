"""The C headers: registers, parameters, instructions, device image, and one header that includes all."""

from pathlib import Path

from intloom.hw.spec.c_text import header, int_enum
from intloom.hw.spec.fields import ISA_VERSION, Unit
from intloom.hw.spec.params import PRESETS, HardwareParams
from intloom.hw.spec.regs import COUNTERS, MAGIC, REGISTERS, ROUNDING_CODES, VERSION, Cause, Register, Stall
from intloom.hw.spec.render_c_image import render_image
from intloom.hw.spec.render_c_instructions import render_instructions

MAIN = "intloom.h"
REGISTERS_HEADER = "intloom_registers.h"
PARAMETERS_HEADER = "intloom_parameters.h"
INSTRUCTIONS_HEADER = "intloom_instructions.h"
CODEC_HEADER = "intloom_codec.h"
IMAGE_HEADER = "intloom_image.h"


def _register(register: Register) -> str:
    upper = f"INTLOOM_REG_{register.name}"
    lines = [f"#define {upper} 0x{register.offset:03x}u /* {register.access}: {register.doc} */"]
    for f in register.fields:
        lines.append(f"#define {upper}_{f.name.upper()}_LSB {f.lsb}u")
        lines.append(f"#define {upper}_{f.name.upper()}_MASK 0x{((1 << f.width) - 1) << f.lsb:08x}u /* {f.doc} */")
    return "\n".join(lines)


def _parameters(params: HardwareParams, name: str) -> str:
    lines = [f"/* Parameters of hardware '{name}'; portable software reads the CAP registers instead. */"]
    for key, value in params.to_dict().items():
        number = ROUNDING_CODES[params.match] if key == "match" else int(value)
        lines.append(f"#define INTLOOM_PARAM_{key.upper()} {number}u")
    lines.append(f"#define INTLOOM_PARAM_FINGERPRINT 0x{params.fingerprint():08x}u")
    return "\n".join(lines) + "\n"


def _counters() -> str:
    names = ", ".join(f'"{c.name}"' for c in COUNTERS)
    return "\n".join(
        [
            "/* The counters are consecutive registers. */",
            f"#define INTLOOM_COUNTERS {len(COUNTERS)}u",
            f"#define INTLOOM_FIRST_COUNTER INTLOOM_REG_{COUNTERS[0].name}",
            f"#define INTLOOM_COUNTER_NAMES {{{names}}}",
            "",
        ]
    )


def render_registers() -> str:
    """Registers, their fields, and the codes in them."""
    causes = ", ".join(f'"{c.name}"' for c in Cause)
    body = [
        f"#define INTLOOM_MAGIC 0x{MAGIC:08x}u",
        f"#define INTLOOM_REGISTER_VERSION {VERSION}u",
        f"#define INTLOOM_ISA_VERSION {ISA_VERSION}u\n",
        *map(_register, REGISTERS),
        "",
        _counters(),
        *(int_enum(e.__name__.lower(), e) for e in (Unit, Cause, Stall)),
        f"#define INTLOOM_CAUSES {len(Cause)}u",
        f"#define INTLOOM_CAUSE_NAMES {{{causes}}}\n",
    ]
    return header(REGISTERS_HEADER, "Registers: byte offsets from the AXI4-Lite base, fields, and codes.", body)


def _render_parameters(params: HardwareParams, name: str) -> str:
    body = [
        *(f"#define INTLOOM_FINGERPRINT_{k.upper()} 0x{p.fingerprint():08x}u" for k, p in PRESETS.items()),
        "",
        _parameters(params, name),
    ]
    return header(PARAMETERS_HEADER, "Fingerprints of the presets, and the parameters of one hardware.", body)


def c_headers(params: HardwareParams, name: str) -> dict[str, str]:
    """File name and text of the headers for hardware `params`; `name` appears in their comments."""
    parts = {
        REGISTERS_HEADER: render_registers(),
        PARAMETERS_HEADER: _render_parameters(params, name),
        INSTRUCTIONS_HEADER: render_instructions(INSTRUCTIONS_HEADER),
        # It does not depend on the instructions: it expands their field lists.
        CODEC_HEADER: Path(__file__).with_name(CODEC_HEADER).read_text(encoding="utf-8"),
        IMAGE_HEADER: render_image(IMAGE_HEADER),
    }
    whole = header(
        MAIN, "All headers of the accelerator. C99 or later; also C++11 or later.", [], [f'"{p}"' for p in parts]
    )
    return {MAIN: whole, **parts}
