"""Reports of a regression: JUnit XML for build servers, JSON for scripts, HTML for people."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

import jinja2
from markupsafe import Markup

from intloom.common.atomic_write import write_bytes, write_text
from intloom.sim.regress.case import Outcome
from intloom.sim.regress.runner import Summary

_TEMPLATES = Path(__file__).parent / "templates"


def junit(summary: Summary) -> bytes:
    """The regression as JUnit XML, one test suite for each suite."""
    root = ET.Element("testsuites")
    for name in dict.fromkeys(r.suite for r in summary.results):
        results = [r for r in summary.results if r.suite == name]
        failures = sum(r.outcome is Outcome.FAIL for r in results)
        errors = sum(r.outcome is Outcome.ERROR for r in results)
        suite = ET.SubElement(root, "testsuite", name=name, time=_seconds(sum(r.seconds for r in results)))
        for key, count in (("tests", len(results)), ("failures", failures), ("errors", errors)):
            suite.set(key, str(count))
        for r in results:
            case = ET.SubElement(suite, "testcase", classname=name, name=r.name, time=_seconds(r.seconds))
            if r.outcome is not Outcome.PASS:
                kind = "failure" if r.outcome is Outcome.FAIL else "error"
                first_line = r.message.splitlines()[0] if r.message else ""
                detail = ET.SubElement(case, kind, message=_printable(first_line))
                detail.text = _printable(f"{r.message}\nreproduce: {r.reproduce}")
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _printable(text: str) -> str:
    """Text without the control characters that XML forbids."""
    return "".join(c for c in text if c in "\n\t" or ord(c) >= ord(" "))


def to_json(summary: Summary) -> str:
    """The regression as JSON."""
    counts = {o.value: sum(r.outcome is o for r in summary.results) for o in Outcome}
    cases = [asdict(r) for r in summary.results]
    return json.dumps({"ok": summary.ok, "counts": counts, "resumed": summary.resumed, "cases": cases}, indent=1)


_COLORS = {Outcome.PASS.value: "goodtext", Outcome.FAIL.value: "badtext", Outcome.ERROR.value: "badtext"}
"""Classes of the style sheet."""


def html(summary: Summary, css: str = "") -> str:
    """The regression as one HTML page that needs nothing else, with the style sheet `css`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    counts = {o.value: sum(r.outcome is o for r in summary.results) for o in Outcome}
    return environment.get_template("report.html.j2").render(
        results=summary.results, counts=counts, colors=_COLORS, css=Markup(css)
    )


def write_reports(summary: Summary, folder: Path, css: str = "") -> dict[str, Path]:
    """Write all three reports into `folder`, the page with the style sheet `css`; gives their paths by kind."""
    paths = {"junit": folder / "junit.xml", "json": folder / "results.json", "html": folder / "report.html"}
    write_bytes(paths["junit"], junit(summary))
    write_text(paths["json"], to_json(summary))
    write_text(paths["html"], html(summary, css))
    return paths
