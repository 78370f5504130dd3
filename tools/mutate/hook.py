"""Looks at every elaboration of a component, or changes it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Fragment

from tools.mutate.targets import mutated

Visit = Callable[[Any, Fragment], None]
"""Gets the component and its elaborated form, which it may change."""


@contextmanager
def elaborations(name: str, visit: Visit) -> Iterator[None]:
    """Call `visit` with every elaboration of the component."""
    component: Any = mutated()[name]
    elaborate = component.elaborate

    def visited(self: Any, platform: Any) -> Fragment:
        fragment = Fragment.get(elaborate(self, platform), platform)
        visit(self, fragment)
        return fragment

    component.elaborate = visited
    try:
        yield
    finally:
        component.elaborate = elaborate
