"""Parts of a network run alone with golden inputs, and together give the whole network's bytes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from intloom.common.cache.store import cached_bytes
from intloom.common.errors import UsageError
from intloom.compiler.ir import Add, IntGraph
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.arith import RoundingMode
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.compare import compare
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.result_cache import run_cached, run_key
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.slices import blocks, extract, golden_tensors, is_trivial, make_slice, select

NANO = preset("nano")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A separate folder for results; simulators stay in the shared cache."""
    results = partial(cached_bytes, home=tmp_path)
    monkeypatch.setattr("intloom.sim.result_cache.cached_bytes", results)
    return tmp_path


@pytest.fixture
def network():
    maker = GraphMaker(7)
    x = maker.conv(maker.input(3, 12, 12), 8, 3, stride=2)
    y = maker.add(maker.conv(x, 8, 3), x)
    z = maker.concat(maker.max_pool(y, 3, pad=1), x)
    graph = maker.graph(maker.conv(z, 10, 1))
    origins = ("/model.0/conv", "/model.1/cv/conv", "/model.1/add", "/model.2/pool", "/model.2/concat", "/model.3/conv")
    renamed = [type(n)(**{**vars(n), "origin": (o,)}) for n, o in zip(graph.nodes, origins, strict=True)]
    return IntGraph("net", graph.tensors, tuple(renamed), graph.inputs, graph.outputs), maker.random_inputs()


def test_a_block_is_named_by_the_first_part_of_a_name_of_the_file(network):
    """A node whose names have one part, or none, is a block of its own."""
    graph, _ = network
    names = [("conv", "/a/b/c"), ("a/x",), ("/y",), (), ("/b/z", "/a/w"), ("add",)]
    nodes = tuple(replace(n, origin=origin) for n, origin in zip(graph.nodes, names, strict=True))
    found = blocks(replace(graph, nodes=nodes))
    own = [n.name for n in nodes]
    assert {block: [n.name for n in part] for block, part in found.items()} == {
        "a": own[:2], own[2]: [own[2]], own[3]: [own[3]], "b": [own[4]], own[5]: [own[5]],
    }  # fmt: skip


def test_layers_are_chosen_by_pattern(network):
    graph, _ = network
    assert [n.origin[0] for n in select(graph, "model.1.*")] == ["/model.1/cv/conv", "/model.1/add"]
    assert [n.name for n in select(graph, "conv0")] == ["conv0"]
    with pytest.raises(UsageError, match="'model.9' matches none"):
        select(graph, "model.9")


def test_blocks_follow_the_names_of_the_model(network):
    graph, _ = network
    assert {k: len(v) for k, v in blocks(graph).items()} == {"model.0": 1, "model.1": 2, "model.2": 2, "model.3": 1}


def test_slices_chained_give_the_whole_networks_bytes(network):
    graph, inputs = network
    tensors = golden_tensors(graph, inputs, RoundingMode.ORT)
    made = dict(inputs)
    for name, nodes in blocks(graph).items():
        part = make_slice(graph, nodes, name, tensors)
        assert not is_trivial(part.graph)
        made |= run_graph(part.graph, {t: made[t] for t in part.graph.inputs}, match=RoundingMode.ORT)
    whole = run_graph(graph, inputs, match=RoundingMode.ORT)
    for name, array in whole.items():
        np.testing.assert_array_equal(made[name], array)


@pytest.mark.slow
def test_every_block_runs_alone_on_the_rtl_and_the_second_time_from_the_cache(network, cache):
    graph, inputs = network
    tensors = golden_tensors(graph, inputs, NANO.match)
    backend = RtlBackend()
    for name, nodes in blocks(graph).items():
        part = make_slice(graph, nodes, name, tensors)
        program = compile_graph(part.graph, NANO)
        first = run_cached(program, part.inputs, backend)
        again = run_cached(program, part.inputs, backend)
        assert again.cached
        assert first.figures == again.figures
        for run in (first, again):
            compare(part.expected, run.outputs).require_equal()
    kept = sorted((cache / "results").glob("*/*.npz"))
    for damage in (lambda b: b[: len(b) // 2], lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:], lambda b: b""):
        kept_file = max(kept, key=lambda p: p.stat().st_mtime_ns)
        kept_file.write_bytes(damage(kept_file.read_bytes()))
        repeated = run_cached(program, part.inputs, backend)
        assert not repeated.cached
        compare(part.expected, repeated.outputs).require_equal()


def run_blocks(graph, tensors, backend):
    """Every block alone, in order: its name, its outputs and whether they were kept from before."""
    for name, nodes in blocks(graph).items():
        part = make_slice(graph, nodes, name, tensors)
        given = {t: tensors[t] for t in part.graph.inputs}
        run = run_cached(compile_graph(part.graph, NANO), given, backend)
        yield name, run


@pytest.mark.slow
def test_a_network_by_slices_and_in_one_run_gives_the_same_bytes(network, cache):
    """Each slice is fed with what the slices before it gave in RTL."""
    graph, inputs = network
    whole = RtlBackend().run(compile_graph(graph, NANO), inputs).outputs
    made = dict(inputs)
    for name, nodes in blocks(graph).items():
        part = extract(graph, nodes, name)
        made |= run_cached(compile_graph(part, NANO), {t: made[t] for t in part.inputs}, RtlBackend()).outputs
    compare(whole, {t: made[t] for t in graph.outputs}).require_equal()


@pytest.mark.slow
def test_only_slices_that_changed_run_again(network, cache):
    graph, inputs = network
    backend = RtlBackend()
    first = dict(run_blocks(graph, golden_tensors(graph, inputs, NANO.match), backend))
    assert not any(run.cached for run in first.values())
    for changed, kept in (("/model.3/conv", ["model.0", "model.1", "model.2"]), ("/model.1/add", ["model.0"])):
        nodes = tuple(altered(n) if n.origin == (changed,) else n for n in graph.nodes)
        other = IntGraph(graph.name, graph.tensors, nodes, graph.inputs, graph.outputs)
        again = dict(run_blocks(other, golden_tensors(other, inputs, NANO.match), backend))
        assert [name for name, run in again.items() if run.cached] == kept


def altered(node):
    if isinstance(node, Add):
        return replace(node, affine=replace(node.affine, c=node.affine.c + (1 << node.affine.shift + 3)))
    return replace(node, bias=node.bias + 1)


def test_another_accelerator_has_another_key(network):
    graph, inputs = network
    program = compile_graph(graph, NANO)
    other = RtlBackend(RtlOptions(verilog=RtlBackend().verilog(program) + "// changed"))
    assert run_key(program, inputs, other) != run_key(program, inputs, RtlBackend())


def test_the_key_of_a_result_follows_program_inputs_and_memory(network):
    graph, inputs = network
    program = compile_graph(graph, NANO)
    key = run_key(program, inputs, RtlBackend())
    assert key == run_key(compile_graph(graph, NANO), inputs, RtlBackend())
    other = {k: v + np.int8(1) for k, v in inputs.items()}
    slow = RtlBackend(RtlOptions(memory=MemorySettings(read_latency=99)))
    assert len({key, run_key(program, other, RtlBackend()), run_key(program, inputs, slow)}) == 3
