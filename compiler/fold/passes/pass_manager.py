"""What a pass is, and the driver that runs passes in order, verifies after each and can stop to show a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from intloom.common.errors import IntloomError, ModelError, UsageError

Graph = TypeVar("Graph")


@dataclass(frozen=True)
class Pass(Generic[Graph]):
    """One rewriting of a graph. `requires` and `ensures` are facts by name; the pass's docstring states them."""

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
    """Run passes in order; after each one `verify` checks the graph and `watch` is shown it.

    Raises
    ------
    ModelError
        A pass left a graph that breaks a rule; the message names the pass.
    UsageError
        A pass requires a fact that no earlier one ensures.
    """
    facts: set[str] = set()
    for step in passes:
        if missing := sorted(step.requires - facts):
            raise UsageError(f"pass {step.name} requires {', '.join(missing)}, which no pass before it ensures")
        graph = step.run(graph)
        try:
            verify(graph)
        except IntloomError as error:
            raise ModelError(f"after pass {step.name}: {error}") from error
        facts |= step.ensures
        watch(step.name, graph)
    return graph
