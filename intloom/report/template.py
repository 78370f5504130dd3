"""Templates of the pages, which share one style and the switch between light and dark.

Values come from files that may be hostile: templates escape all of them, and the pages' Content-Security-Policy lets a
browser run only the scripts of this package, and load nothing.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from markupsafe import Markup


def asset(name: str) -> str:
    """The text of a file of this package."""
    return (files("intloom.report") / name).read_text("utf-8")


def style() -> str:
    """The style sheet of all pages."""
    return asset("report.css")


def security_policy(scripts: Iterable[str]) -> str:
    """The Content-Security-Policy of a page that consists of these inline scripts."""
    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts if s)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src 'self' file: data:; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded(value: Any) -> Markup:
    """A value as JSON inside a script element."""
    # `</` would end the element; JSON allows `<` as an escape.
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def fill(template: str, script: str = "", **values: Any) -> str:
    """The page of a template; `script` is the asset with its script, if it has one.

    Raises
    ------
    LookupError
        The template asks for a value that is not given.
    """
    # It takes 15 ms to load, and few commands write pages.
    import jinja2

    theme, own = asset("theme.js"), asset(script) if script else ""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(asset)
    )
    try:
        return environment.get_template(template).render(
            version=version("intloom"),
            policy=security_policy((theme, own)),
            # These are files of this package.
            css=Markup(style()),
            theme=Markup(theme),
            js=Markup(own),
            **values,
        )
    except jinja2.UndefinedError as error:
        raise LookupError(str(error)) from error
