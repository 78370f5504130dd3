"""Access to the words that a memory in Amaranth's simulator holds."""

from types import ModuleType
from typing import Any

import pytest
from amaranth.lib.memory import Memory


def stored_words(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[Any]:
    """The contents of each memory that components of the module create from now on, as a list that grows."""
    created: list[Any] = []

    def create(**arguments: Any) -> Memory:
        memory = Memory(**arguments)
        created.append(memory.data)
        return memory

    monkeypatch.setattr(module, "Memory", create)
    return created


def flip(ctx: Any, words: Any, address: int, bit: int) -> None:
    """Flip one stored bit."""
    ctx.set(words[address], int(ctx.get(words[address])) ^ 1 << bit)
