"""Templates of the pages, which share one style and the switch between light and dark."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup


def asset(name: str) -> str:
    """The text of a file of this package."""
    return (files("intloom.report") / name).read_text("utf-8")


def style() -> str:
    """The style sheet of all pages."""
    return asset("report.css")


def fill(template: str, **values: Any) -> str:
    """The page of a template."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FunctionLoader(asset)
    )
    return environment.get_template(template).render(
        version=version("intloom"),
        css=Markup(style()),  # our own file
        theme=Markup(asset("theme.js")),  # our own file
        **values,
    )
