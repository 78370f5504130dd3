"""Reference of the Python interface, generated from signatures and docstrings."""

import inspect
import re
import textwrap
from enum import Enum
from typing import Any

import intloom

_HEAD = """# Python reference

*`python -m intloom.manual` generates this page from signatures and docstrings.*
[Python](python.md) is the introduction.
"""


def api_page() -> str:
    """The page's text: every public name of the package."""
    names = [n for n in intloom.__all__ if not n.startswith("__")]
    return _HEAD + "".join(_describe(name, getattr(intloom, name)) for name in names)


def _describe(name: str, thing: Any) -> str:
    text = f"\n## {name}\n\n{_signature(name, thing)}{_document(thing)}"
    if inspect.isclass(thing) and not issubclass(thing, Enum):
        for member, value in vars(thing).items():
            function = value.__func__ if isinstance(value, staticmethod) else value
            if not member.startswith("_") and (inspect.isfunction(function) or isinstance(value, property)):
                text += f"\n### {name}.{member}\n\n{_signature(f'{name}.{member}', function)}{_document(value)}"
    return text


def _signature(name: str, thing: Any) -> str:
    """The signature as a code block; empty for what has none."""
    if isinstance(thing, property) or (inspect.isclass(thing) and issubclass(thing, Exception | Enum)):
        return ""
    signature = inspect.signature(thing)
    parameters = [p.replace(annotation=p.empty) for n, p in signature.parameters.items() if n != "self"]
    shown = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    # A default that is an enumeration's member is shown by its value.
    shown = re.sub(r"<[^<>]*: (.*?)>", r"\1", shown)
    shown = re.sub(r"<function (\w+) at \w+>", r"\1", shown).replace("<factory>", "...")
    return f"```python\n{name}{shown}\n```\n\n"


def _document(thing: Any) -> str:
    """The docstring as Markdown: headings of numpy's convention become bold, parameters become a list."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", text, flags=re.MULTILINE)
    lines: list[str] = []
    for block in re.split(r"\n(?=\S)", text):
        head, _, body = block.partition("\n")
        indented = body.startswith("    ")
        lines.append(f"- `{head}`: {' '.join(textwrap.dedent(body).split())}" if indented else block)
    return "\n".join(lines).strip() + "\n"
