"""Program files made by an attacker: each ends in a result or in one line, never in another exception."""

import dataclasses
import itertools
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from intloom.cli.disasm import listing, rows
from intloom.common.errors import FileFormatError, IntloomError
from intloom.compiler.program.device_image import device_image
from intloom.compiler.program.file import FORMAT_VERSION, from_bytes, to_bytes
from intloom.compiler.program.manifest import check_program_values
from intloom.compiler.program.program import Program, Role
from intloom.compiler.program.soundness import check_program
from intloom.compiler.schedule import compile_graph
from intloom.flow.bundle import bundle_without_model
from intloom.flow.export import render_program_header
from intloom.hw.spec.params import preset
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.regress.graphs import GraphMaker
from tests.support.loom_mutation import joined, mutated, outcome, sections

FILE = Path("hostile.loom")


@pytest.fixture(scope="module")
def program() -> Program:
    maker = GraphMaker(0)
    x = maker.conv(maker.input(3, 12, 12), 8, 3)
    return compile_graph(maker.graph(maker.max_pool(maker.conv(x, 8, 3), 3, pad=1)), preset("nano"))


def _use(data: bytes) -> None:
    """Everything that a user can do with a file without its model and a simulator of the RTL."""
    programs = from_bytes(data, FILE)
    bundle = bundle_without_model(programs)
    repr(bundle)
    for one in programs:
        rows(one)
        listing(one)
    image = device_image(programs)
    render_program_header(programs, image)
    for one in programs:
        check_program(one)
        if one.memory_words <= 1 << 20:
            inputs = {t.name: np.zeros(t.shape, np.int8) for t in one.tensors if t.role is Role.INPUT}
            IsaSimulator(one).run(inputs)


def _many(program: Program, count: int, seed: int) -> Counter[str]:
    rng, data = random.Random(seed), to_bytes(program)
    return Counter(outcome(lambda: _use(mutated(rng, data))) for _ in range(count))


def _assert_harmless(results: Counter[str]) -> None:
    foreign = {what: n for what, n in results.items() if what not in ("accepted", "refused")}
    assert not foreign, "\n".join(f"{n} x {what}" for what, n in sorted(foreign.items()))
    # Both outcomes, or the changes test nothing.
    assert results["refused"] > results["accepted"] > 0


@pytest.mark.parametrize("count", [1500, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.nightly])])
def test_changed_files_are_used_or_refused(program, count):
    _assert_harmless(_many(program, count, seed=2))


LOCAL = {"name": "a", "shape": [1, 4, 2, 2], "buffer": 0, "first_block": 0}


def _with(data: bytes, **changes: object) -> bytes:
    manifest, code, image = sections(data)
    return joined(json.dumps(json.loads(manifest) | changes).encode(), code, image)


def _first_tensor(data: bytes, **changes: object) -> bytes:
    tensors = json.loads(sections(data)[0])["tensors"]
    return _with(data, tensors=[tensors[0] | changes, *tensors[1:]])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"image_at": -(1 << 20)}, r"manifest\.image_at must lie inside the program's \d+ words"),
        ({"image_at": 1 << 40}, r"manifest\.image_at must lie inside"),
        ({"memory_words": 1 << 62}, r"manifest\.memory_words must be from 1 to 1073741824"),
        ({"instructions_at": 3}, r"manifest\.instructions_at must be a multiple of 16"),
        ({"predicted_cycles": "9"}, r"manifest\.predicted_cycles must be an integer .* not '9'"),
        ({"dims": {"n": 0}}, r"manifest\.dims must have sizes from 1"),
        ({"region": 1}, r"manifest\.region must be from 0 to 0"),
        ({"extra": 1}, r"manifest must not have the member 'extra'"),
        ({"provenance": []}, r"manifest\.provenance must have an entry for each"),
        ({"fingerprint": 1}, r"manifest\.fingerprint must be that of the hardware parameters"),
        ({"local_results": [[0, 0, 0, 0, 0]]}, r"manifest\.local_results\[0\] must name an instruction that writes"),
        (
            {"local_tensors": [LOCAL | {"first_block": 1 << 30}]},
            r"manifest\.local_tensors must have at most 4,294,967,296 bytes together, not",
        ),
        (
            {"local_tensors": [LOCAL | {"shape": [1, 1 << 20, 64, 64]}] * 2},
            r"manifest\.local_tensors must have at most 4,294,967,296 bytes together, not 8,589,934,592",
        ),
        ({"local_tensors": [LOCAL, LOCAL | {"shape": [1, 4, 2, 3]}]}, r"\[1\]\.shape must have the rows and pixels"),
        ({"local_tensors": [LOCAL | {"buffer": -1}]}, r"local_tensors\[0\]\.buffer must not be negative"),
    ],
)  # fmt: skip
def test_each_rule_names_the_value(program, changes, said):
    with pytest.raises(FileFormatError, match=said):
        from_bytes(_with(to_bytes(program), **changes), FILE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shape": [1, 1 << 19, 1 << 19, 1 << 19]}, r"tensors\[0\]\.words must be the"),
        ({"shape": [1, -3, 12, 12]}, r"tensors\[0\]\.shape must be"),
        ({"address": -1}, r"tensors\[0\]\.address must lie inside"),
        ({"scale": 0}, r"tensors\[0\]\.scale must be a positive fp32 number"),
        ({"scale": 3.5e38}, r"tensors\[0\]\.scale must be a number within float32"),
        ({"zero_point": 128}, r"tensors\[0\]\.zero_point must be from -128 to 127"),
        ({"first_instruction": 10**6}, r"tensors\[0\]\.first_instruction must be the number"),
        ({"name": "\ud800"}, r"tensors\[0\]\.name must be valid Unicode"),
        ({"role": "both"}, r"tensors\[0\]\.role must be one of input, output"),
    ],
)  # fmt: skip
def test_each_rule_of_a_tensor_names_the_value(program, changes, said):
    with pytest.raises(FileFormatError, match=said):
        from_bytes(_first_tensor(to_bytes(program), **changes), FILE)


def test_tensors_have_names_of_their_own(program):
    tensors = json.loads(sections(to_bytes(program))[0])["tensors"]
    doubled = [tensors[0], *(t | {"name": tensors[0]["name"]} for t in tensors[1:])]
    with pytest.raises(FileFormatError, match=r"manifest\.tensors must have different names"):
        from_bytes(_with(to_bytes(program), tensors=doubled), FILE)


def test_the_largest_scale_of_float32_is_accepted(program):
    """A scale above 2^63 once compiled and did not load."""
    largest = float(np.finfo(np.float32).max)
    (one,) = from_bytes(_first_tensor(to_bytes(program), scale=largest), FILE)
    assert one.tensors[0].scale == largest


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "[]", '{"a": NaN}', "9" * 5_000, "\xff"])
def test_text_that_is_no_manifest_is_refused(program, text):
    _, code, image = sections(to_bytes(program))
    with pytest.raises(FileFormatError, match=r"manifest( must|\.isa_version must)"):
        from_bytes(joined(text.encode("latin-1"), code, image), FILE)


def test_a_manifest_has_a_size_limit(program):
    with pytest.raises(FileFormatError, match=r"must have at most 67,108,864 bytes"):
        from_bytes(_with(to_bytes(program), name="a" * (1 << 26)), FILE)


@pytest.mark.parametrize(("version", "writer"), [(FORMAT_VERSION - 1, "an older"), (FORMAT_VERSION + 1, "a newer")])
def test_another_format_version_is_named(program, version, writer):
    data = bytearray(to_bytes(program))
    data[8:12] = version.to_bytes(4, "little")
    with pytest.raises(FileFormatError, match=f"version {FORMAT_VERSION}, not {version} of {writer} release"):
        from_bytes(bytes(data), FILE)


def test_constants_cannot_replace_the_checked_instructions(program):
    hidden = _with(to_bytes(program), instructions_at=program.image_at)
    with pytest.raises(IntloomError, match="belongs to two of them"):
        check_program(from_bytes(hidden, FILE)[0])


def _accepted(data: bytes) -> bool:
    try:
        from_bytes(data, FILE)
    except FileFormatError:
        return False
    return True


MOST = 1 << 20
"""Pixels, rows, channels or blocks, and a size of a model."""


def test_both_sides_of_each_limit_of_a_program(program):
    data, word = to_bytes(program), program.params.word_bytes
    code, image = 64 * len(program.instructions) // word, -(-len(program.image) // word)
    end, writer = program.memory_words, next(k for k, i in enumerate(program.instructions) if i.unit.name == "VEC")
    count, layers = len(program.instructions), len(program.layers)
    origins = [[p.layer, p.tile, p.note] for p in program.provenance]

    def result(at: int, value: int) -> list[list[int]]:
        return [[writer, *(value if k == at else 0 for k in range(1, 5))]]

    limits = {
        "image_at": ([end - image], [end - image + 1, -1]),
        "instructions_at": ([(end - code) // 16 * 16], [(end - code) // 16 * 16 + 16, -16, 8]),
        "memory_words": ([end, 1 << 30], [0, -1, (1 << 30) + 1]),
        "predicted_cycles": ([0], [-1]),
        "dims": ([{}, {"n": 1, "m": MOST - 1}], [{"n": 0}, {"n": MOST}, {"n": 1, "m": 0}]),
        "local_results": (
            [result(k, v) for k in range(2, 5) for v in (0, MOST - 1)] + [[]],
            [result(k, v) for k in range(1, 5) for v in (-1, MOST)] + [[[count, 0, 0, 0, 0]], [[-1, 0, 0, 0, 0]]],
        ),
        "provenance": (
            [[[layer, tile, ""], *origins[1:]] for layer, tile in ((-1, -1), (layers - 1, MOST - 1))],
            [[[layer, tile, ""], *origins[1:]] for layer, tile in ((-2, 0), (layers, 0), (0, -2), (0, MOST))]
            + [origins[1:], [*origins, origins[0]]],
        ),
        "local_tensors": (
            [[LOCAL | {"shape": [1, 4, 1 << 10, MOST]}], [LOCAL, LOCAL | {"buffer": 1, "shape": [1, 4, 2, 3]}]],
            [
                [LOCAL | {"shape": [1, 5, 1 << 10, MOST]}],
                [LOCAL | {"shape": [1, 4, 1 << 10, MOST], "first_block": 1}],
                [LOCAL, LOCAL | {"shape": [1, 4, 3, 2]}],
                [LOCAL | {"first_block": -1}],
                [LOCAL | {"shape": [1, 0, 2, 2]}],
            ],
        ),
    }  # fmt: skip
    for name, (good, bad) in limits.items():
        for values, expected in ((good, True), (bad, False)):
            for value in values:
                assert _accepted(_with(data, **{name: value})) == expected, (name, value)
    for regions, region in itertools.product(range(4), range(-1, 4)):
        failures = check_program_values(dataclasses.replace(program, regions=regions, region=region))
        assert (not list(failures)) == (0 <= region < regions)


def test_both_sides_of_each_limit_of_a_tensor(program):
    data = to_bytes(program)
    first = program.tensors[0]
    assert (first.role, first.layout.value, first.shape) == (Role.INPUT, "blocked", (1, 3, 12, 12))
    count, end, words = len(program.instructions), program.memory_words, first.words
    assert words == 144
    limits = {
        "address": ([0, end - words], [-1, end - words + 1]),
        "words": ([], [words - 1, words + 1, words + 144, 0]),
        "scale": ([1e-40, 1.0], [0, -1.0]),
        "zero_point": ([-128, 127], [-129, 128]),
        "first_instruction": ([None, 0, count - 1], [-1, count]),
        "shape": ([[1, 1, 12, 12], [1, 4, 12, 12]], [[1, 5, 12, 12], [2, 3, 12, 12], [1, 0, 12, 12], [1, 3, 12, 13]]),
    }
    for name, (good, bad) in limits.items():
        for values, expected in ((good, True), (bad, False)):
            for value in values:
                assert _accepted(_first_tensor(data, **{name: value})) == expected, (name, value)
    # Words of four channels hold one pixel of either layout, but the packed one has no second block.
    for layout, channels, fits in (("pixels4", 4, True), ("pixels4", 5, False), ("blocked", 4, True)):
        assert _accepted(_first_tensor(data, layout=layout, shape=[1, channels, 12, 12])) == fits
    assert not _accepted(_first_tensor(data, layout="pixels4", shape=[1, 5, 12, 12], words=288, address=0))
    # Of blocks: five channels are two words a pixel, and what is no input may have whole blocks more.
    blocks: dict[str, object] = {"layout": "blocked", "shape": [1, 5, 12, 12], "address": 0}
    assert end >= 5 * 144
    for role in ("input", "intermediate"):
        for n in (143, 144, 287, 288, 289, 431, 432, 433):
            fits = n == 288 or (n == 432 and role == "intermediate")
            assert _accepted(_first_tensor(data, **blocks, words=n, role=role)) == fits, (role, n)


@pytest.mark.parametrize(
    ("part", "names"),
    [("layers", ("macs", "predicted_cycles", "dram_words")), ("residences", ("words", "rows", "height"))],
)
def test_counts_of_layers_and_residences_are_not_negative(program, part, names):
    data = to_bytes(program)
    values = json.loads(sections(data)[0])[part]
    assert values
    for name in names:
        for value in (0, -1):
            changed = [*values[:-1], values[-1] | {name: value}]
            assert _accepted(_with(data, **{part: changed})) == (value == 0), (part, name)
