"""The first difference of a run."""

from intloom.compiler.schedule import compile_graph
from intloom.flow.first_divergence import first_difference
from intloom.hw.spec.params import preset
from intloom.sim.checks import GOLDEN, ONNXRUNTIME, Check
from tests.support.random_graph import random_graph


def test_the_golden_model_comes_first_then_the_earliest_layer(seed: int) -> None:
    program = compile_graph(random_graph(seed, nodes=4)[0], preset("nano"))
    layers = [layer.name for layer in program.layers]

    def first(*differing: tuple[str, str]) -> tuple[str, str] | None:
        checks = [
            Check("t", name, kind, 8, (kind, name) in differing) for kind in (ONNXRUNTIME, GOLDEN) for name in layers
        ]
        found = first_difference(program, checks[::-1])
        return found and (found.against, found.layer)

    golden, onnxruntime = ([(kind, name) for name in layers] for kind in (GOLDEN, ONNXRUNTIME))
    assert first(*golden, *onnxruntime) == golden[0]
    assert first(golden[-1], onnxruntime[0]) == golden[-1]
    assert first(*onnxruntime) == onnxruntime[0]
    assert first() is None
