"""The C headers compile without warnings and encode, decode and reject exactly as Python does."""

import random
import subprocess
from pathlib import Path

import pytest

from intloom.hw.spec.isa import INSTRUCTION_BYTES, INSTRUCTIONS, Field, Instruction, InstructionSpec, encode, make
from intloom.hw.spec.params import PRESETS, HardwareParams
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import REGISTERS, capability_values
from intloom.hw.spec.render_c import c_headers

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")

# Reads lines "<kind number> <field> <field> ..."; prints the encoder's answer and bytes, then what the decoder reads.
MAIN_HEAD = """\
#include <inttypes.h>
#include <stdio.h>
#include "intloom.h"
static void show(const uint8_t *b) { for (int i = 0; i < 64; i++) printf("%02x", b[i]); }
int main(void) {
  int kind;
  uint8_t bytes[INTLOOM_INSTRUCTION_BYTES];
  while (scanf("%d", &kind) == 1) switch (kind) {
"""


def c_case(number: int, spec: InstructionSpec) -> str:
    """Run one line through the struct of one instruction."""
    name = f"intloom_{spec.kind.lower()}"
    fields = [f.name for f in spec.fields[1:]]
    reads = "".join(f'    if (scanf("%" SCNd64, &x) != 1) return 1;\n    in.{f} = x;\n' for f in fields)
    shows = "".join(f'    printf(" %" PRId64, (int64_t)out.{f});\n' for f in fields)
    return f"""  case {number}: {{
    int64_t x; struct {name} in, out; int bad;
    {name}_defaults(&in);
{reads}    bad = {name}_encode(&in, bytes);
    printf("%d", bad);
    if (!bad) {{ putchar(' '); show(bytes); if ({name}_decode(&out, bytes)) return 2;
{shows}    }}
    putchar('\\n'); break; }}
"""


MAIN_CHECK = """\
#include <stdio.h>
#include "intloom.h"
int main(void) {
  static uint8_t program[64 * 64];
  size_t size = fread(program, 1, sizeof program, stdin);
  intloom_add_check(program, (uint32_t)(size / INTLOOM_INSTRUCTION_BYTES));
  return fwrite(program, 1, size, stdout) != size;
}
"""


def write_headers(folder: Path, params: HardwareParams, name: str) -> None:
    for file, text in c_headers(params, name).items():
        (folder / file).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program around the header's encoders and decoders."""
    folder = tmp_path_factory.mktemp("header")
    write_headers(folder, PRESETS["base"], "base")
    cases = "".join(c_case(n, s) for n, s in enumerate(INSTRUCTIONS))
    (folder / "main.c").write_text(MAIN_HEAD + cases + "  default: return 3;\n  }\n  return 0;\n}\n", encoding="utf-8")
    # The test's own assignments from 64-bit numbers may narrow; the header itself is compiled strictly below.
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Werror", "main.c", "-o", "codec"], cwd=folder, check=True)
    return folder / "codec"


def run(codec: Path, lines: list[str]) -> list[list[str]]:
    """The program's answers, a list of words a line."""
    done = subprocess.run([codec], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def random_value(rng: random.Random, field: Field) -> int:
    """A legal value, often a limit."""
    return rng.choice([field.minimum, field.maximum, *(rng.randint(field.minimum, field.maximum) for _ in range(3))])


def line_of(instruction: Instruction) -> str:
    """The instruction for the program's input."""
    spec = instruction.spec
    return f"{INSTRUCTIONS.index(spec)} " + " ".join(str(instruction[f.name]) for f in spec.fields[1:])


def test_c_and_python_encode_and_decode_alike(codec: Path, rng: random.Random):
    made = [
        make(spec.kind, **{f.name: random_value(rng, f) for f in spec.fields[1:]})
        for spec in INSTRUCTIONS
        for _ in range(200)
    ]
    for instruction, (bad, data, *values) in zip(made, run(codec, [line_of(i) for i in made]), strict=True):
        assert bad == "0"
        assert bytes.fromhex(data) == encode(instruction)
        assert list(map(int, values)) == [instruction[f.name] for f in instruction.spec.fields[1:]]


def test_c_and_python_add_the_same_program_check(tmp_path: Path, rng: random.Random):
    write_headers(tmp_path, PRESETS["base"], "base")
    (tmp_path / "main.c").write_text(MAIN_CHECK)
    subprocess.run(["gcc", "-std=c99", *STRICT, "main.c", "-o", "check"], cwd=tmp_path, check=True)
    specs = [*rng.choices(INSTRUCTIONS[2:], k=20), INSTRUCTIONS[1]]
    codes = [encode(make(s.kind, **{f.name: random_value(rng, f) for f in s.fields[1:]})) for s in specs]
    # Check bits from before are replaced.
    stale = b"".join(codes[:-1]) + add_check(codes[-1:])
    done = subprocess.run([tmp_path / "check"], input=stale, capture_output=True, check=True)
    assert done.stdout == add_check(codes)


def test_c_refuses_what_python_refuses_and_numbers_the_field(codec: Path):
    lines, wanted = [], []
    for kind, spec in enumerate(INSTRUCTIONS):
        defaults = [f.default for f in spec.fields[1:]]
        for number, f in enumerate(spec.fields[1:]):
            bits = 64 if f.width > 32 else 32
            for value in (f.minimum - 1, f.maximum + 1):
                # A value that the struct's member cannot hold cannot be given to C.
                if -(1 << (bits - 1)) * f.signed <= value < 1 << (bits - f.signed):
                    lines.append(" ".join(map(str, [kind, *defaults[:number], value, *defaults[number + 1 :]])))
                    wanted.append([str(number + 1)])
    assert len(wanted) > 200
    assert run(codec, lines) == wanted


@pytest.mark.parametrize(("compiler", "standard", "suffix"), [("gcc", "c99", "c"), ("g++", "c++11", "cpp")])
def test_the_header_compiles_strictly_for_every_preset(tmp_path: Path, compiler: str, standard: str, suffix: str):
    for name, params in PRESETS.items():
        write_headers(tmp_path, params, name)
        source = tmp_path / f"main.{suffix}"
        source.write_text('#include "intloom.h"\n#include "intloom.h"\nint main(void) { return 0; }\n')
        subprocess.run([compiler, f"-std={standard}", *STRICT, "-fsyntax-only", source], check=True)


def test_constants_in_the_header_are_the_tables(tmp_path: Path):
    params = PRESETS["small"]
    write_headers(tmp_path, params, "small")
    expected = {f"INTLOOM_REG_{r.name}": r.offset for r in REGISTERS}
    expected |= {f"INTLOOM_OPCODE_{s.kind}": s.opcode for s in INSTRUCTIONS}
    names = (f"INTLOOM_PARAM_{n.upper()}" for n in params.to_dict())
    expected |= dict(zip(names, capability_values(params), strict=True))
    expected["INTLOOM_PARAM_FINGERPRINT"] = params.fingerprint()
    expected["INTLOOM_INSTRUCTION_BYTES"] = INSTRUCTION_BYTES
    prints = "".join(f'printf("%lu\\n", (unsigned long){name});' for name in expected)
    (tmp_path / "main.c").write_text(
        f'#include <stdio.h>\n#include "intloom.h"\nint main(void) {{ {prints} return 0; }}\n'
    )
    subprocess.run(["gcc", "-std=c99", "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert [int(line) for line in done.stdout.splitlines()] == list(expected.values())
