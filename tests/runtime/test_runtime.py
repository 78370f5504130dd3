"""The C runtime on the host, under the sanitizers: uses, misuses, images, tensors."""

import dataclasses
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from intloom.compiler.program.device_image import device_image, plan_image
from intloom.compiler.program.memory import initial_memory, read_tensor
from intloom.compiler.program.program import Program, Role
from intloom.flow.host import TensorQuantization, dequantize_array, quantize_array
from tests.runtime.support import INCLUDES, RUNTIME, SANITIZERS, SOURCES, STRICT, compiled, small_program

HERE = Path(__file__).parent
EXPECTED = {
    "probe": "OK",
    "bus_of_ones": "BUS",
    "bus_of_zeros": "BUS",
    "other_device": "NOT_INTLOOM",
    "register_version": "REGISTER_VERSION",
    "isa_version": "ISA_VERSION",
    "bus_error": "BUS",
    "stuck_writes": "BUS",
    "unaligned_memory": "ALIGNMENT",
    "unaligned_bus_address": "ALIGNMENT",
    "address_too_high": "WINDOW_ADDRESS",
    "highest_addresses": "OK",
    "last_address_too_high": "WINDOW_ADDRESS",
    "no_device": "ARGUMENT",
    "no_image": "ARGUMENT",
    "image_magic": "IMAGE_MAGIC",
    "image_version": "IMAGE_VERSION",
    "image_truncated": "IMAGE_TRUNCATED",
    "image_crc": "IMAGE_CRC",
    "image_crc_of_header": "IMAGE_CRC",
    "load_again": "OK",
    "window_flushed": "1",
    "window_invalidated": "1",
    "other_hardware": "FINGERPRINT",
    "other_instructions": "ISA_VERSION",
    "small_window": "WINDOW_BYTES",
    "failed_open": "IMAGE_TRUNCATED",
    "load_after_failed_open": "ARGUMENT",
    "start_without_image": "NOT_LOADED",
    "start_no_region": "ARGUMENT",
    "start": "OK",
    "wait": "OK",
    "start_again": "OK",
    "wait_error": "STOPPED",
    "status": "OK",
    "cause": "READ_DECERR",
    "start_after_error": "HALTED",
    "reset": "OK",
    "start_after_reset": "OK",
    "bus_lost": "BUS",
    "start_hanging": "OK",
    "poll": "PENDING",
    "start_while_busy": "BUSY",
    "wait_limit": "TIMEOUT",
    "idle_calls": "1000",
    "idle_ends": "TIMEOUT",
    "reset_hangs": "TIMEOUT",
    "no_interrupt": "TIMEOUT",
    "lost_interrupt": "OK",
    "lost_interrupt_sleeps": "3",
    "spurious_interrupts": "TIMEOUT",
    "clock_limit": "TIMEOUT",
    "clock_sleeps": "9",
    "start_interrupt": "OK",
    "wait_interrupt": "OK",
    "enabled": "3",
    "run": "OK",
    "starts": "1",
    "unordered_starts": "0",
    "unlocked_starts": "0",
    "find_output": "OK",
    "read_output": "OK",
    "invalidated": "1",
    "early_reads": "0",
    "host_part_fails": "HOST",
    "no_tensor": "NO_TENSOR",
    "get_tensor": "OK",
    "wrong_count": "ARGUMENT",
    "flushed": "1",
    "locked_after_failure": "0",
    "unknown": "unknown unknown",
    # Window, region or results, and the starts before: while frame 2 runs in B, the host works on 1 and 3 in A.
    "frames": "OK",
    "frames_calls": "A00,B01,Ar2,A02,Br3,Ar3",
    "one_frame": "OK",
    "one_frame_calls": "A00,Ar1",
    "no_frame": "ARGUMENT",
    "no_frame_calls": "",
    "frame_fails": "HOST",
    "frame_fails_calls": "A00,B01",
    "results_fail": "HOST",
    "results_fail_calls": "A00,B01,Ar2,Br2",
    "frame_stops": "STOPPED",
    "frame_stops_calls": "A00,B01",
    "frames_not_loaded": "NOT_LOADED",
    "frames_not_loaded_calls": "",
    "frame_stops_while_host_fails": "STOPPED",
    "frame_stops_while_host_fails_calls": "A00,B01",
}


@pytest.fixture(scope="module")
def program() -> Program:
    return small_program()[0]


@pytest.fixture(scope="module")
def image(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "small.bin"
    path.write_bytes(device_image((program,)))
    return path


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    for name in ("scenarios", "mutants", "tensors", "write_back_cache"):
        compiled(folder / name, [HERE / f"{name}.c"], *SANITIZERS, "-Wno-unused-function")
    return folder


def run(*command: Path | str) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_the_runtime_is_clean_c99_without_an_operating_system(source: Path, tmp_path: Path) -> None:
    flags = [*STRICT, "-O2", "-ffreestanding", "-fanalyzer", *INCLUDES]
    subprocess.run(["gcc", *flags, "-c", str(source), "-o", str(tmp_path / "object.o")], check=True)
    used = run("nm", "-u", tmp_path / "object.o").split()
    assert {n for n in used if n != "U"} <= {"memcpy", "memset", "strcmp", "_GLOBAL_OFFSET_TABLE_"} | {
        n for n in used if n.startswith("intloom_")
    }


def test_every_use_and_misuse_returns_its_own_result(tools: Path, image: Path) -> None:
    found = dict(line.split(" ", 1) for line in run(tools / "scenarios", image).splitlines())
    assert found == EXPECTED


def test_every_result_occurs_in_a_test_and_has_a_name() -> None:
    header = (RUNTIME / "intloom_runtime.h").read_text()
    names = re.findall(
        r"^    INTLOOM_(?:E_)?(\w+) = (\d+)[,;]", header[: header.index("INTLOOM_RESULTS")], re.MULTILINE
    )
    assert [int(n) for _, n in names] == list(range(len(names)))
    # Wrong records are made by the test below.
    assert {n for n, _ in names} - {"IMAGE_RECORD"} <= set(EXPECTED.values())
    listed = re.search(r"names\[INTLOOM_RESULTS\] = \{(.*?)\}", (RUNTIME / "intloom_device.c").read_text(), re.DOTALL)
    assert listed is not None
    assert re.findall(r'"(\w+)"', listed[1]) == [n for n, _ in names]


def test_wrong_records_are_rejected_or_harmless(tools: Path, image: Path, seed: int) -> None:
    count = 400
    rejected = int(run(tools / "mutants", image, str(seed), str(count)))
    assert count // 4 < rejected < count


def test_dirty_lines_of_the_window_never_reach_the_outputs(tools: Path, image: Path) -> None:
    assert int(run(tools / "write_back_cache", image, "1")) == 0
    # The same with hooks that leave the window as a whole alone: the model of the cache finds it.
    assert int(run(tools / "write_back_cache", image, "0")) > 100


@pytest.mark.parametrize("order", ["nchw", "nhwc"])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("kind", ["floats", "bytes"])
def test_inputs_are_packed_and_outputs_unpacked_as_in_python(
    tools: Path, tmp_path: Path, order: str, unsigned: bool, kind: str, seed: int
) -> None:
    made, _ = small_program(seed)
    tensors = tuple(dataclasses.replace(t, scale=0.0371, zero_point=-11, unsigned=unsigned) for t in made.tensors)
    program = dataclasses.replace(made, tensors=tensors)
    image, window, values = tmp_path / "image", tmp_path / "window", tmp_path / "values"
    image.write_bytes(device_image((program,)))
    rng = np.random.default_rng(seed)
    (tensor,) = (t for t in tensors if t.role is Role.INPUT)
    model_type = np.dtype(np.uint8 if unsigned else np.int8)
    quant = TensorQuantization(
        name="x", stored="x", source="x", shape=tensor.shape,
        scale=float(np.float32(0.0371)), zero_point=117 if unsigned else -11, unsigned=unsigned,
    )  # fmt: skip
    if kind == "floats":
        given = rng.normal(0, 3, tensor.shape).astype(np.float32)
        # Ties, saturation and the largest numbers.
        given.flat[:8] = np.float32(0.0371) * np.array([0.5, 1.5, -0.5, -1.5, -2.5, 400, -400, 0.49999997], np.float32)
        given.flat[8:10] = [1e30, -np.inf]
    else:
        given = rng.integers(0, 256, tensor.shape).astype(np.uint8).view(model_type)
    listed = given.transpose(0, 2, 3, 1) if order == "nhwc" else given
    values.write_bytes(np.ascontiguousarray(listed).tobytes())
    run(tools / "tensors", image, "write", kind, order, window, values)
    memory = np.fromfile(window, np.uint8)
    expected = initial_memory(program, {tensor.name: quantize_array(given, quant, tensor.shape)})
    assert (memory == expected).all()

    filled = rng.integers(0, 256, memory.size).astype(np.uint8)
    filled.tofile(window)
    run(tools / "tensors", image, "read", kind, order, window, values)
    data = values.read_bytes()
    for output in (t for t in tensors if t.role is Role.OUTPUT):
        quant = dataclasses.replace(quant, shape=output.shape)
        codes = read_tensor(program, filled, output)
        wanted = dequantize_array(codes, quant) if kind == "floats" else codes.view(np.uint8) ^ (128 * unsigned)
        wanted = wanted.transpose(0, 2, 3, 1) if order == "nhwc" else wanted
        part, data = data[: wanted.nbytes], data[wanted.nbytes :]
        assert part == np.ascontiguousarray(wanted).tobytes()
    assert data == b""


def test_regions_lie_apart_and_pass_their_tensors_on() -> None:
    first, _ = small_program(1)
    passed = next(t for t in first.tensors if t.role is Role.OUTPUT)
    taken = dataclasses.replace(passed, role=Role.INPUT, address=first.memory_words)
    second = dataclasses.replace(
        first, tensors=(taken,), region=1, regions=2, memory_words=first.memory_words + taken.words
    )
    plan = plan_image((dataclasses.replace(first, regions=2), second))
    assert plan.region_starts[1] >= first.memory_words * first.params.word_bytes
    assert plan.region_starts[1] % 4096 == 0
    sources = [None if t.source is None else plan.tensors[t.source].buffer.name for t in plan.tensors]
    assert sources == [None] * (len(plan.tensors) - 1) + [passed.name]
