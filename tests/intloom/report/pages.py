"""Pages of made-up results, and a check of the text that they show."""

import html
import json
import re
import subprocess
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import unquote

from PIL import Image

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.report.evaluation import write_evaluation
from intloom.report.memory_page import write_memory_page
from intloom.report.reading import write_reading
from intloom.report.regression import write_regression
from intloom.report.template import security_policy
from intloom.sim.regress.case import CaseResult, Outcome
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.regress.runner import Summary


def with_scripts(text, *scripts):
    """A page with scripts of a test at its end, which its Content-Security-Policy then allows."""
    allowed = "script-src "
    hashes = security_policy(scripts).split(allowed)[1].split(";")[0]
    assert text.count(allowed) <= 1
    inline = "".join(f"<script>{script}</script>" for script in scripts)
    return text.replace(allowed, f"{allowed}{html.escape(hashes)} ").replace("</body>", f"{inline}</body>")


def browse(address, *, width=1400, milliseconds=4000, quiet=True):
    """What a page's scripts leave in its title: SEEN and JSON, encoded; `quiet`: no message on the console."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    command += [f"--virtual-time-budget={milliseconds}", f"--window-size={width},900", address]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert (not said) == quiet, said
    return json.loads(unquote(re.search(r"<title>SEEN(.*?)</title>", done.stdout).group(1)))


_MISPLACED = re.compile(
    r"built-in|object at 0x|\[object |\{[{%]|[%}]\}"
    r"|(?<![\w./-])(?:None|nan|NaN|inf|Infinity|undefined|null)(?![\w/-])"
)


class _Text(HTMLParser):
    """Collects the text and the attributes that a page shows or a screen reader speaks."""

    def __init__(self):
        super().__init__()
        self.seen, self._inside = [], ""

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        if tag not in ("script", "style"):
            self.seen += [value or "" for key, value in attrs if key in ("title", "aria-label", "alt", "href", "value")]

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.seen.append(data)


def misplaced_values(page):
    """Texts of a page that show an object, a missing value or a template's syntax where a value belongs."""
    text = _Text()
    text.feed(re.sub(r"<title>SEEN.*?</title>", "", page))
    return [seen for seen in text.seen if _MISPLACED.search(seen)]


def regression(folder):
    def case(name, outcome, message=""):
        return CaseResult(
            suite="smoke", name=name, key=name, outcome=outcome, seconds=0.5, message=message,
            reproduce=f"intloom regress smoke --case {name}", version="v", cycles=12345, compared_bytes=6,
        )  # fmt: skip

    cases = (case("good", Outcome.PASS), case("bad", Outcome.FAIL, "differs"), case("odd", Outcome.ERROR, "died"))
    return write_regression(Summary(cases, 1), folder)


def evaluation(folder):
    figures = {"mAP50-95": 0.5, "mAP50": 0.7}
    engine = {"figures": figures, "classes": {"cat": figures, "dog": figures}}
    scores = dict.fromkeys(("float", "quantized", "accelerator"), engine)
    layers = [{"layer": f"/model.{i}/conv/Conv", "share": 0.1 * i} for i in range(5)]
    extra = {"rtl": {"images": 1, "equal": True}, "layers": layers, "worst": ["worst-1.png"]}
    return write_evaluation(
        "net",
        {"task": "detect", "images": 4, "labeled": True, "scores": scores, "suggestions": ["more images"], **extra},
        folder,
    )


def reading(folder):
    record = {"hardware": "base", "backend": "rtl", "cycles": 3_215_410, "mac_use": 0.794}
    record |= {"compared_bytes": 12345, "mismatches": 0}
    lines = [
        SimpleNamespace(marked=[("Bread ", "Bread ", False), ("2.40", "2.4O", True)], record=record),
        SimpleNamespace(marked=[("tea", "tea", False), ("", ".", True)], record=record),
    ]
    Image.new("RGB", (960, 720), "gray").save(folder / "picture.png")
    return write_reading(folder, lines, 0.98, record, (1, 3, 480, 640))


def memory(folder):
    maker = GraphMaker(2)
    x = maker.conv(maker.input(4, 20, 20), 8, 3)
    program = compile_graph(maker.graph(maker.max_pool(x, 3, pad=1)), preset("nano"))
    write_memory_page([program], folder / "memory.html")
    return folder / "memory.html"
