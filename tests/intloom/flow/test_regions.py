"""Models with float operators in the middle: several regions, the host between them, every backend the same bytes."""

import random
from dataclasses import replace
from types import SimpleNamespace

import onnx
import pytest

import intloom
from intloom.common.errors import FileFormatError, UsageError
from intloom.compiler.fold.target import Target
from intloom.compiler.partition.regions import _is_small
from intloom.compiler.program.file import load, load_regions, save_regions, to_bytes
from intloom.compiler.program.program import Role
from intloom.flow.bundle import load_bundle
from intloom.sim.regress.graphs import GraphMaker
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal, folded, random_feeds


def interrupted(m: OnnxMaker, channels: int = 16) -> onnx.ModelProto:
    """Convolutions with a Softmax between them, which only the host can compute, and a way round it."""
    x = m.conv(m.image(3, 12, 12), channels)
    (soft,) = m.node("Softmax", [x.name], axis=1)
    weighted = m.pair(soft, x.shape, 1 / 255, 0)
    y = m.conv(weighted, 24, 3)
    z = m.conv(x, 24, 1)
    m.output(m.conv(m.binary("Add", y, z), 8, 3), y)
    return m.model()


@pytest.fixture
def model(rng: random.Random) -> onnx.ModelProto:
    return interrupted(OnnxMaker(rng))


def test_what_follows_the_host_is_a_region_of_its_own(model, seed):
    found = assert_equal(model, seed)
    first, second = found.folded.regions
    # What the host made, and what went round it; where a sum's ties need it, with marks on its pairs.
    assert len([name for name in second.inputs if "/mark_" not in name]) == 2
    assert found.folded.host_parts[0] is None
    assert found.folded.host_parts[1] is not None
    assert found.folded.final_host_part is None
    assert len(first.nodes) + len(second.nodes) == len(found.folded.graph.nodes)
    assignments = {v.name: v for v in found.folded.assignments}
    soft = next(v for v in assignments.values() if v.op == "Softmax")
    assert soft.target is Target.HOST
    assert [v.target for v in assignments.values() if v.op == "Conv"] == [Target.ARRAY] * 4


def test_three_regions(rng, seed):
    m = OnnxMaker(rng)
    x = m.image(8, 10, 10)
    for _ in range(3):
        x = m.conv(x, 32, 3)
        (soft,) = m.node("Softmax", [x.name], axis=1)
        x = m.pair(soft, x.shape, 1 / 64, 0)
    m.output(m.conv(x, 32, 3))
    found = assert_equal(m.model(), seed)
    assert len(found.folded.regions) == 4


def test_a_region_of_little_work_stays_with_the_host(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 12, 12), 16)
    (soft,) = m.node("Softmax", [x.name], axis=1)
    m.output(m.conv(m.pair(soft, x.shape, 1 / 255, 0), 1, 1))
    found = assert_equal(m.model(), seed)
    assert len(found.folded.regions) == 1
    (_, last) = (v for v in found.folded.assignments if v.op == "Conv")
    assert last.target is Target.HOST
    assert "per byte of input and output" in last.reason


def test_what_only_moves_a_result_of_the_host_stays_with_the_host(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 12, 12), 16)
    (soft,) = m.node("Softmax", [x.name], axis=1)
    weighted = m.pair(soft, x.shape, 1 / 255, 0)
    (flat,) = m.node("Flatten", [weighted.name])
    m.output(m.pair(flat, (1, 16 * 144), weighted.scale, 0), m.conv(x, 8))
    (flatten,) = (v for v in assert_equal(m.model(), seed).folded.assignments if v.op == "Flatten")
    assert flatten.target is Target.HOST
    assert "no multiplication depends on it" in flatten.reason


@pytest.mark.parametrize("backend", ["golden", "isa", pytest.param("rtl", marks=pytest.mark.slow)])
def test_every_backend_gives_onnxruntimes_bytes(backend, model, seed, tmp_path):
    onnx.save(model, tmp_path / "m.onnx")
    program = intloom.compile(tmp_path / "m.onnx", preset="nano")
    session = intloom.Session(program, backend=backend, check=True)
    feeds = random_feeds(model, seed)
    outputs = session.run(None, feeds)
    assert len(outputs) == 2
    record = session.last.record
    assert record["mismatches"] == 0
    assert record["compared_bytes"] > 0
    assert len(record["layers"]) == len(program.folded.graph.nodes)
    if backend == "rtl":
        assert record["cycles"] > 0
        assert sum(layer["cycles"] for layer in record["layers"]) <= record["cycles"]


def test_the_file_holds_all_regions(model, tmp_path):
    onnx.save(model, tmp_path / "m.onnx")
    program = intloom.compile(tmp_path / "m.onnx", preset="nano")
    path = tmp_path / "m.loom"
    program.save(path)
    programs = load_regions(path)
    assert [(p.region, p.regions) for p in programs] == [(0, 2), (1, 2)]
    assert [p.instructions for p in programs] == [p.instructions for p in program.bundle.programs]
    with pytest.raises(FileFormatError, match="one program, not 2"):
        load(path)
    data = path.read_bytes()
    second = data.rindex(b"INTLOOM\0")
    for broken in (data[:second], data[: second + 100], data[:-1], data + b"\0", data[:second]):
        path.write_bytes(broken)
        with pytest.raises(FileFormatError, match=r"truncated|trailing data"):
            load_regions(path)
    # The bytes that fill up the first program are in no checksum.
    longer = to_bytes(replace(programs[0], image=programs[0].image + bytes(4)))
    path.write_bytes(longer + bytes(-len(longer) % 64) + data[second:])
    assert len(load_regions(path)) == 2
    path.write_bytes(longer + b"\1".rjust(-len(longer) % 64, b"\0") + data[second:])
    with pytest.raises(FileFormatError, match="altered between its programs"):
        load_regions(path)
    of_three = data[:second] + to_bytes(replace(programs[1], regions=3))
    for broken in (data[second:], of_three):
        path.write_bytes(broken)
        with pytest.raises(FileFormatError, match=r"each region|truncated"):
            load_regions(path)
    with pytest.raises(UsageError, match="saved together"):
        save_regions(programs[:1], path)


@pytest.mark.parametrize("change", ["regions", "ends"])
def test_a_program_of_another_version_is_refused(change, model, tmp_path):
    """As where a later version computes more on the accelerator, or gives a tensor another scale."""
    onnx.save(model, tmp_path / "m.onnx")
    path = tmp_path / "m.loom"
    intloom.compile(tmp_path / "m.onnx", preset="nano").save(path)
    first, *others = load_regions(path)
    tensors = tuple(replace(t, scale=2 * t.scale) if t.role is Role.INPUT else t for t in first.tensors)
    save_regions([replace(first, tensors=tensors), *others] if change == "ends" else [replace(first, regions=1)], path)
    with pytest.raises(FileFormatError, match="by another version of Intloom: compile it again"):
        load_bundle(path)


def test_several_regions_need_the_model(model, tmp_path, seed):
    onnx.save(model, tmp_path / "m.onnx")
    path = tmp_path / "m.loom"
    intloom.compile(tmp_path / "m.onnx", preset="nano").save(path)
    (tmp_path / "m.loom.onnx").unlink()
    assert load_bundle(path).folded is None
    with pytest.raises(UsageError, match="several regions needs the model"):
        intloom.Session(path, backend="isa").run(None, random_feeds(model, seed))


def test_the_host_may_read_inputs_of_the_model_late(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 16)
    m.inputs.append(onnx.helper.make_tensor_value_info("gain", onnx.TensorProto.FLOAT, (1, 16, 8, 8)))
    (scaled,) = m.node("Mul", [x.name, "gain"])
    m.output(m.conv(m.pair(scaled, x.shape, 0.02), 32, 3))
    model = m.model()
    found = folded(model)
    assert len(found.regions) == 2
    assert set(found.inputs) == {v.name for v in model.graph.input}
    assert_equal(model, seed)


def test_what_nothing_needs_is_not_made_by_the_host(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 16)
    (soft,) = m.node("Softmax", [x.name], axis=1)
    m.conv(m.pair(soft, x.shape, 1 / 255, 0), 64, 3)
    m.output(m.conv(x, 4))
    found = assert_equal(m.model(), seed)
    assert len(found.folded.regions) == 1
    assert found.folded.graph.inputs == found.folded.regions[0].inputs


@pytest.mark.parametrize(
    ("channels", "small"),
    [((32, 32), False), ((31, 32), True), ((32, 31), True), ((20, 80), False), ((20, 79), True), ((20, 20, 20), False)],
)
def test_a_region_does_sixteen_multiplications_for_each_byte_that_crosses_its_border(channels, small):
    """Of products of pixels in a row, of which only the first reads and the last writes what crosses it."""
    maker = GraphMaker(0)
    x = maker.input(channels[0], 2, 3)
    for count in channels[1:]:
        x = maker.conv(x, count)
    graph = maker.graph(x)
    builder = SimpleNamespace(nodes={n.name: n for n in graph.nodes}, tensors=graph.tensors)
    levels = dict.fromkeys(graph.tensors, 1)
    assert _is_small(builder, levels, 1) == small
