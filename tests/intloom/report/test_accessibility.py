"""Every page passes the rules of axe-core, with text contrast, in both themes, and fits into a narrow window."""

import json
import re
import subprocess
from html import escape
from importlib.resources import files
from urllib.parse import unquote

import pytest

from intloom.cli import main
from intloom.report import write_report
from intloom.report.compare import compare_runs, write_compare
from tests.intloom.report.pages import evaluation, memory, misplaced_values, reading, regression, with_scripts

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
AXE = pytest.importorskip("axe_core_python").__name__
# All rules in the light theme; in the dark one, whose only difference is colors, the rule for them.
SCRIPT = """
(async () => {
  const found = {};
  for (const theme of ["light", "dark"]) {
    document.documentElement.dataset.theme = theme;
    const result = await axe.run(theme === "light" ? {} : { runOnly: ["color-contrast"] });
    found[theme] = result.violations.map((v) => [v.id, v.help, v.nodes.map((n) => n.html.slice(0, 200))]);
    found[theme + "Passes"] = result.passes.map((p) => p.id);
  }
  found.text = document.body.innerText;
  found.wider = document.documentElement.scrollWidth - window.innerWidth;
  parent.postMessage(encodeURIComponent(JSON.stringify(found)), "*");
})();
"""
# Chromium has no window narrower than 500 pixels, but an element can be.
FRAME = """
<!doctype html><html lang="en"><title>frame</title><body style="margin:0">
<iframe src="driven.html" style="width:{width}px; height:900px; border:0"></iframe>
<script>onmessage = (e) => {{ document.title = "SEEN" + e.data; }};</script></body></html>
"""


def violations(page, width=1300):
    """Violations of each theme, the rules that were checked, and the page's text."""
    axe = (files(AXE) / "axe.min.js").read_text("utf-8")
    driven = page.with_name("driven.html")
    driven.write_text(with_scripts(page.read_text(), axe, SCRIPT))
    frame = page.with_name("frame.html")
    frame.write_text(FRAME.format(width=width))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    command += ["--window-size=1400,900", "--dump-dom", f"file://{frame}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(unquote(re.search(r"<title>SEEN(.*?)</title>", done.stdout).group(1)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory, quantized_models):
    """A run, and the same run with a difference."""
    folder = tmp_path_factory.mktemp("runs")
    loom = folder / "net.loom"
    assert main(["compile", str(quantized_models("c2f")), "--preset", "nano", "-o", str(loom), "-q"]) == 0
    assert main(["run", str(loom), "--backend", "rtl", "--check", "-o", str(folder / "a"), "-q"]) == 0
    record = json.loads((folder / "a/run.json").read_text())
    keys = ("against", "layer", "node", "tensor", "expected", "got", "region", "instruction", "text", "cycle", "waves")
    first = dict.fromkeys(keys, 1) | {"layer": "odd", "layer_index": 2, "coordinate": [0, 1, 2, 3], "waves": "intloom"}
    first["tensor"] = "/model.2" * 20
    record["checks"][0] |= {"mismatches": 3, "first": "[0, 0, 0, 0]: expected 1, got 2"}
    record["layers"][2]["mismatches"] = 3
    (folder / "b").mkdir()
    (folder / "b/run.json").write_text(json.dumps({**record, "mismatches": 3, "first_divergence": first}))
    (folder / "b/timeline.json").write_bytes((folder / "a/timeline.json").read_bytes())
    return folder


@pytest.mark.parametrize("width", [390, 1300])
@pytest.mark.parametrize("kind", ["equal", "different", "comparison", "regression", "evaluation", "memory", "reading"])
def test_no_rule_is_violated(kind, width, runs, tmp_path):
    pages = {
        "equal": lambda: write_report(runs / "a"),
        "different": lambda: write_report(runs / "b"),
        "comparison": lambda: write_compare(compare_runs(runs / "a", runs / "b"), tmp_path / "compare.html"),
        "regression": lambda: regression(tmp_path),
        "evaluation": lambda: evaluation(tmp_path),
        "memory": lambda: memory(tmp_path),
        "reading": lambda: reading(tmp_path),
    }
    page = pages[kind]() or tmp_path / "compare.html"
    found = violations(page, width)
    assert {"color-contrast", "html-has-lang", "landmark-one-main"} <= set(found["lightPasses"])
    assert found["darkPasses"] == ["color-contrast"]
    assert not found["light"] and not found["dark"]
    assert found["wider"] <= 0
    assert not misplaced_values(f"<p>{escape(found['text'])}</p>")


def test_a_violation_is_found(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<html><body><p style="color: #ccc">pale</p><img src="x.png"></body></html>')
    rules = {rule for rule, *_ in violations(page)["light"]}
    assert {"color-contrast", "image-alt", "html-has-lang"} <= rules
