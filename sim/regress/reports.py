"""Reports of a regression: JUnit XML for build servers, JSON for scripts."""

import json
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

from intloom.common.atomic_write import write_bytes, write_text
from intloom.sim.regress.case import Outcome
from intloom.sim.regress.runner import Summary


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


def counts(summary: Summary) -> dict[str, int]:
    """Number of cases by outcome."""
    return {o.value: sum(r.outcome is o for r in summary.results) for o in Outcome}


def to_json(summary: Summary) -> str:
    """The regression as JSON."""
    cases = [asdict(r) for r in summary.results]
    return json.dumps(
        {"ok": summary.ok, "counts": counts(summary), "resumed": summary.resumed, "cases": cases}, indent=1
    )


def write_reports(summary: Summary, folder: Path) -> dict[str, Path]:
    """Write both reports into `folder`; gives their paths by kind."""
    paths = {"junit": folder / "junit.xml", "json": folder / "results.json"}
    write_bytes(paths["junit"], junit(summary))
    write_text(paths["json"], to_json(summary))
    return paths
