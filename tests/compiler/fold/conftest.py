"""Every attribute that these tests read has the standard's default, whether or not the node has the attribute."""

from functools import cache
from typing import Any

import onnx
import pytest

from intloom.compiler.importer import OnnxNode


@cache
def _defaults(op: str, name: str) -> list[Any]:
    """The defaults of an operator's attribute, in all versions that have one."""
    schemas = (s for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", op))
    found = (s.attributes[name].default_value for s in schemas if name in s.attributes)
    values = [onnx.helper.get_attribute_value(value) for value in found if value.name]
    return [pytest.approx(v) if isinstance(v, float) else v.decode() if isinstance(v, bytes) else v for v in values]


@pytest.fixture(autouse=True)
def standard_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the default of each read with the standard's; an empty text is that of a message."""
    for reader in ("integer", "real", "text"):
        read = getattr(OnnxNode, reader)

        def checked(node: OnnxNode, name: str, default: Any, read: Any = read) -> Any:
            known = [] if node.domain or default == "" else _defaults(node.op, name)
            assert not known or default in known, f"{node.op}.{name} is {default!r} if absent, not one of {known}"
            return read(node, name, default)

        monkeypatch.setattr(OnnxNode, reader, checked)
