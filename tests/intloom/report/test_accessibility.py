"""Every page passes the rules of axe-core, with text contrast, in both themes, and fits into a narrow window."""

import json
import shutil
import subprocess
import sys
import threading
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import pytest

from intloom.report import write_report
from intloom.report.compare import compare_runs, write_compare
from tests.intloom.report.pages import browse, evaluation, memory, misplaced_values, reading, regression, with_scripts

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
ROOT = Path(__file__).parents[3]
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
# Chromium has no window narrower than 500 pixels, but an element can be. One browser sees all pages in turn.
FRAME = """
<!doctype html><html lang="en"><title>frame</title><body style="margin:0"><script>
const found = [], views = %s;
const next = () => {
  if (found.length === views.length) {
    document.title = "SEEN" + encodeURIComponent(JSON.stringify(found));
    return;
  }
  const [src, width] = views[found.length], frame = document.createElement("iframe");
  frame.style = `width:${width}px; height:900px; border:0`;
  frame.src = src;
  document.body.replaceChildren(frame);
};
onmessage = (e) => { found.push(JSON.parse(decodeURIComponent(e.data))); next(); };
next();
</script></body></html>
"""


def violations(pages, widths, *, quiet=True):
    """For each page in a window of each width: violations of each theme, the checked rules, and the page's text."""
    axe = (files(AXE) / "axe.min.js").read_text("utf-8")
    for page in pages:
        page.with_suffix(".driven.html").write_text(with_scripts(page.read_text(), axe, SCRIPT))
    views = [(page, width) for page in pages for width in widths]
    frame = pages[0].with_name("frame.html")
    frame.write_text(FRAME % json.dumps([(f"file://{page.with_suffix('.driven.html')}", n) for page, n in views]))
    return zip(views, browse(f"file://{frame}", milliseconds=20_000 * len(views), quiet=quiet), strict=True)


def require_accessible(pages, widths):
    """No rule is violated, nothing is said on the console, and each page fits into a window of each width."""
    for view, found in violations(pages, widths):
        assert {"color-contrast", "html-has-lang", "landmark-one-main"} <= set(found["lightPasses"]), view
        assert found["darkPasses"] == ["color-contrast"], view
        assert not found["light"] and not found["dark"] and found["wider"] <= 0, (view, found)
        assert not misplaced_values(f"<p>{escape(found['text'])}</p>"), view


@pytest.fixture(scope="module")
def runs(tmp_path_factory, rtl_run):
    """A run, and the same run with a difference."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(rtl_run, folder / "a")
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


def test_no_rule_is_violated(runs, tmp_path):
    write_compare(compare_runs(runs / "a", runs / "b"), tmp_path / "compare.html")
    pages = [write_report(runs / "a"), write_report(runs / "b"), tmp_path / "compare.html"]
    pages += [make(tmp_path) for make in (regression, evaluation, memory, reading)]
    require_accessible(pages, (390, 1300))


def test_a_violation_is_found(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<html><body><p style="color: #ccc">pale</p><script>console.error("x")</script><img></body></html>')
    ((_, found),) = violations([page], [1300], quiet=False)
    assert {"color-contrast", "image-alt", "html-has-lang"} <= {rule for rule, *_ in found["light"]}


SITE = """
<!doctype html><html lang="en"><title>site</title><body><iframe style="width:390px; height:900px"></iframe><script>
const frame = document.querySelector("iframe"), found = {};
const load = (page) => new Promise((done) => { frame.onload = done; frame.src = page; });
const add = (name, properties) => new Promise((done) => {
  const page = frame.contentDocument;
  page.head.append(Object.assign(page.createElement(name), properties, { onload: done }));
});
(async () => {
  for (const page of %s) {
    await load(page);
    // Colors change at once, not over time.
    await add("style", { textContent: "* { transition: none !important }" });
    await add("script", { src: "/axe.min.js" });
    const view = frame.contentWindow, seen = [];
    for (const scheme of ["default", "slate"]) {
      view.document.body.dataset.mdColorScheme = scheme;
      const result = await view.axe.run(scheme === "default" ? {} : { runOnly: ["color-contrast"] });
      seen.push(...result.violations.map((v) => [scheme, v.id, v.nodes[0].html.slice(0, 200)]));
      if (!result.passes.some((p) => p.id === "color-contrast")) seen.push([scheme, "no color was checked"]);
    }
    if (view.document.documentElement.scrollWidth > view.innerWidth) seen.push("wider than the window");
    found[page] = seen;
  }
  document.title = "SEEN" + encodeURIComponent(JSON.stringify(found));
})();
</script></body></html>
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_text):
        """Nothing: the test's output has no list of requests."""


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_site_builds_without_a_warning_and_no_rule_is_violated_on_it(step, tmp_path):
    """On every ninth page, and every night on all of them."""
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = sorted(str(page.relative_to(site)) for page in site.rglob("index.html"))
    assert len(pages) > 30
    pages = pages[::step]
    (site / "axe.min.js").write_text((files(AXE) / "axe.min.js").read_text("utf-8"))
    (site / "site.html").write_text(SITE % json.dumps(pages))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found = browse(f"http://127.0.0.1:{server.server_port}/site.html", milliseconds=900_000)
        server.shutdown()
    assert list(found) == pages
    assert not {page: seen for page, seen in found.items() if seen}
