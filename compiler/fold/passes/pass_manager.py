"""Passes, and the pass manager: it runs passes in order and verifies the graph after each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from intloom.common.errors import IntloomError, ModelError, UsageError

Graph = TypeVar("Graph")


@dataclass(frozen=True)
class Pass(Generic[Graph]):
    """One graph transformation. `requires` and `ensures` name properties, which the pass's docstring states."""

    name: str
    run: Callable[[Graph], Graph]
    requires: frozenset[str] = frozenset()
    ensures: frozenset[str] = frozenset()


def run_passes(
    graph: Graph,
    passes: Sequence[Pass[Graph]],
    verify: Callable[[Graph], None],
    watch: Callable[[str, Graph], None] = lambda name, graph: None,
) -> Graph:
    """Run passes in order; after each one, `verify` checks the graph and `watch` receives it.

    Raises
    ------
    ModelError
        A pass returned an invalid graph; the message names the pass.
    UsageError
        A pass requires a property that no earlier pass ensures.
    """
    properties: set[str] = set()
    for step in passes:
        if missing := sorted(step.requires - properties):
            raise UsageError(f"pass {step.name} requires {', '.join(missing)}, which no earlier pass ensures")
        graph = step.run(graph)
        try:
            verify(graph)
        except IntloomError as error:
            raise ModelError(f"after pass {step.name}: {error}") from error
        properties |= step.ensures
        watch(step.name, graph)
    return graph
