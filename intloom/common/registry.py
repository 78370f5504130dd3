"""Registries that decorators fill: operator lowerings, golden operations, schedules and the like."""

from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Entry = TypeVar("Entry")


class Registry(dict[Key, Entry], Generic[Key, Entry]):
    """Entries by key; a key can be registered once."""

    def __init__(self, entry: str) -> None:
        super().__init__()
        self._entry = entry

    def register(self, *keys: Key) -> Callable[[Entry], Entry]:
        """Decorate an entry to register it under all `keys`.

        Raises
        ------
        ValueError
            A key already has an entry. It is a fault of the source, not of an input.
        """

        def decorate(entry: Entry) -> Entry:
            for key in keys:
                if key in self:
                    name = key.__name__ if isinstance(key, type) else key
                    raise ValueError(f"{name} already has {self._entry}")
                self[key] = entry
            return entry

        return decorate
