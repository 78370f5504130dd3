"""Looks at every elaboration of a component, or changes it."""

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import Fragment

from tools.mutate.targets import targets

PACKAGE = "intloom.hw."

Visit = Callable[[Any, Fragment], None]
"""Gets the component and its elaborated form, which it may change."""


def component_class(name: str) -> type[Any]:
    """The class of a component with a name such as `dma.load:LoadUnit`."""
    module, _, member = name.partition(":")
    component: type[Any] = getattr(importlib.import_module(PACKAGE + module), member)
    return component


@functools.cache
def others(name: str) -> tuple[type, ...]:
    """The classes of all components with a bench, and this one: each of its elaborations is visited by itself."""
    return tuple(component_class(other) for other in {name, *targets()})


@contextmanager
def elaborations(name: str, visit: Visit) -> Iterator[None]:
    """Call `visit` with every elaboration of the component."""
    component = component_class(name)
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
