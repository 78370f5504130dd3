"""The firmware that reads: a picture in memory, the letters on the console, damage found before."""

import re

import numpy as np
import pytest
from PIL import Image

from intloom.common.errors import ExitCode, UsageError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.reading.drawing import draw_line
from intloom.reading.networks import decoded, recognizer_input
from intloom.reading.pretrained import pretrained
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from intloom.soc.firmware import build_reader, picture_bytes, picture_size
from intloom.soc.reader import TEXT, Reader, as_bytes, main
from intloom.soc.system import run_firmware

NEEDS = pytest.mark.needs("gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf")
LETTERS = ("", *'ab"\\é文?/', " ")
HEIGHT, WIDTH = 3, 26


@pytest.fixture(scope="module")
def recognizer():
    """A network with a column of scores for each position."""
    maker = GraphMaker(5)
    graph = maker.graph(maker.conv(maker.input(3, HEIGHT, WIDTH), len(LETTERS), 3, pads=(0, 0, 0, 0)), name="letters")
    return graph, compile_graph(graph, preset("nano"))


def expected(graph, picture):
    """The text by the golden model: the network takes blue, green and red from -1 to 1, and 0 behind the picture."""
    (name,) = graph.inputs
    scale, zero_point = graph.tensors[name].scale, graph.tensors[name].zero_point
    real = np.zeros((1, 3, HEIGHT, WIDTH), np.float32)
    pixels = np.asarray(picture, np.float32)[..., ::-1].transpose(2, 0, 1) / np.float32(127.5) - np.float32(1)
    real[0, :, :, : picture.width] = pixels[..., :WIDTH]
    codes = np.clip(np.rint(real / np.float32(scale)) + zero_point, -128, 127).astype(np.int8)
    (scores,) = (run_graph(graph, {name: codes}, match="ort")[n] for n in graph.outputs)
    return decoded(scores[0, :, 0].T.astype(np.float32), LETTERS)


@pytest.mark.slow
@NEEDS
def test_pictures_are_read_by_one_firmware(recognizer, tmp_path, rng):
    graph, program = recognizer
    firmware = build_reader(program, LETTERS, picture_size(HEIGHT, WIDTH + 4), tmp_path / "firmware")
    texts = set()
    for number, width in enumerate((WIDTH, 7, WIDTH + 4)):
        picture = Image.frombytes("RGB", (width, HEIGHT), rng.randbytes(3 * width * HEIGHT))
        console = run_firmware(firmware, program.params, tmp_path / str(number), picture_bytes(picture)).console
        assert "damaged instruction: STOPPED" in console and "cause: PROGRAM_CHECK" in console
        (text,) = re.findall(rf"^{TEXT}(.*)$", console, re.MULTILINE)
        assert text == expected(graph, picture)
        texts.add(text)
    assert len(texts) == 3


def test_a_program_that_is_no_recognizer_is_refused(tmp_path):
    maker = GraphMaker(3)
    x = maker.conv(maker.input(3, 4, 4), 4, 3)
    program = compile_graph(maker.graph(x, maker.conv(x, 4, 3)), preset("nano"))
    with pytest.raises(UsageError, match="one input and one output, not 3"):
        build_reader(program, LETTERS, 100, tmp_path)


def test_a_line_is_scaled_as_for_the_network():
    line = draw_line(3)[1]
    raw, tensor = as_bytes(line), recognizer_input(line)
    width = int.from_bytes(raw[:4], "little")
    pixels = np.frombuffer(raw[4:], np.uint8).reshape(48, width, 3)[..., ::-1].transpose(2, 0, 1)
    np.testing.assert_array_equal(pixels / np.float32(127.5) - np.float32(1), tensor[0, :, :, :width])
    assert not tensor[..., width:].any()


def test_a_file_that_is_no_picture_ends_in_one_line(tmp_path, capsys):
    (tmp_path / "x.png").write_bytes(b"no picture")
    assert main([str(tmp_path / "x.png"), "-o", str(tmp_path / "out")]) == ExitCode.BAD_FILE
    assert re.fullmatch(r"soc: image \S+ cannot be read: .*\n", capsys.readouterr().err)


@pytest.mark.evidence
@NEEDS
def test_the_recognizer_reads_two_lines(tmp_path):
    reader = Reader(pretrained().recognizer, tmp_path)
    reads = [reader.read(draw_line(seed)[1], f"line-{seed}") for seed in (5, 8)]
    assert all(read.text == read.golden_text for read in reads)
    assert reads[0].text != reads[1].text
    assert all("cause: CONSTANT_CHECK" in read.run.console for read in reads)
