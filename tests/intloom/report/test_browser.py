"""The report in a real browser: it draws, sorts, searches, links layers to instructions, and changes its colors."""

import json

import pytest

from intloom.exploration.device import clock_of
from intloom.hw.spec.params import preset
from intloom.report import write_report
from tests.intloom.report.pages import browse, with_scripts

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
SCRIPT = """
const seen = {}, all = (s) => [...document.querySelectorAll(s)], one = (s) => document.querySelector(s);
seen.rows = all("#layers tbody tr").length;
seen.units = all("#units .unit").length;
seen.skyline = all("#skyline g.layer").length;
seen.traffic = all("#traffic g.layer").length;
seen.comparison = all("#comparison .cells i.equal, #comparison .cells i.inside").length;
one('th[data-column="4"] button').click();
const cycles = all("#layers tbody tr td:nth-child(5)").map((e) => +e.textContent.replace(/,/g, "") || 0);
one('th[data-column="3"] button').click();
const macs = () => all("#layers tbody tr td:nth-child(4)").map((e) => e.textContent);
const blanksLast = (list) => list.includes("") && list.slice(list.indexOf("")).every((t) => t === "");
seen.blanks = blanksLast(macs());
one('th[data-column="3"] button').click();
seen.blanks = seen.blanks && blanksLast(macs());
seen.focus = document.activeElement === one('th[data-column="3"] button');
one("#clock").value = "1000";
const before = one("#latency").textContent;
one("#clock").dispatchEvent(new Event("input"));
seen.clock = [before, one("#latency").textContent];
one("#timeline").dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
seen.zoomed = view[1] - view[0] < run.cycles;
one("#timeline").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
one("#timeline").dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
seen.whole = view[1] - view[0] === run.cycles;
const arrow = (id, key) => one(id).dispatchEvent(new KeyboardEvent("keydown", { key }));
const before_arrow = chosen;
arrow("#skyline", before_arrow ? "ArrowLeft" : "ArrowRight");
seen.arrow = Math.abs(chosen - before_arrow);
arrow("#traffic", before_arrow ? "ArrowRight" : "ArrowLeft");
seen.arrow += chosen === before_arrow ? 1 : 0;
one("#layers tbody tr td:nth-child(2) button").click();
seen.row = one("#listing-name").textContent === one("#layers tbody tr td:nth-child(2)").textContent;
seen.sorted = cycles.every((v, i) => i === 0 || cycles[i - 1] >= v) && cycles[0] > cycles[cycles.length - 1];
one("#search").value = "concat";
one("#search").dispatchEvent(new Event("input"));
seen.found = all("#layers tbody tr td:nth-child(2)").map((e) => e.textContent);
all("#comparison .cells i")[0].click();
seen.listing = one("#listing").textContent.split("\\n").length;
seen.chosen = one("#listing-name").textContent;
one("#theme").click();
const first = getComputedStyle(document.body).backgroundColor;
one("#theme").click();
seen.colors = first !== getComputedStyle(document.body).backgroundColor;
location.hash = "#layer-1";
setTimeout(() => {
  seen.linked = one("#listing-name").textContent;
  document.title = "SEEN" + encodeURIComponent(JSON.stringify(seen));
}, 300);
"""


def drive(page, folder, width, script=SCRIPT, *, quiet=True):
    """What the script saw in a window of this width."""
    (folder / "drive.html").write_text(with_scripts(page.read_text(), script))
    return browse(f"file://{folder / 'drive.html'}", width=width, quiet=quiet)


@pytest.mark.parametrize("width", [1400, 500])
def test_everything_on_the_page_works(rtl_run, width):
    page = write_report(rtl_run)
    record = json.loads((rtl_run / "run.json").read_text())
    layers = record["layers"]
    seen = drive(page, rtl_run, width)
    assert seen["rows"] == seen["skyline"] == seen["traffic"] == seen["comparison"] == len(layers)
    assert seen["units"] == 4
    assert seen["sorted"] and seen["blanks"] and seen["focus"]
    slow, fast = (float(text) for text in seen["clock"])
    assert slow == pytest.approx(record["cycles"] / (1000 * clock_of(preset("nano").macs).mhz), abs=0.01)
    assert fast == pytest.approx(record["cycles"] / 1e6, abs=0.01)
    assert seen["zoomed"] and seen["whole"] and seen["row"]
    assert seen["found"] and all("oncat" in name for name in seen["found"])
    assert seen["listing"] == layers[0]["instructions"]
    assert (seen["chosen"], seen["linked"]) == (layers[0]["name"], layers[1]["name"])
    assert seen["arrow"] == 2, "arrow keys select the neighbor in both charts"
    assert seen["colors"]


ATTACK = (
    '<img src=x onerror="window.attacked=1"></script><script>window.attacked=2</script>'
    "\"'><svg onload=window.attacked=3>"
)
LOOK = """
setTimeout(() => {
  const seen = { attacked: window.attacked ?? 0, rows: document.querySelectorAll("#layers tbody tr").length };
  seen.markup = document.querySelectorAll("main img, main script, main svg[onload]").length;
  seen.listing = document.querySelector("#listing").textContent.includes("onerror");
  const probe = document.createElement("div");
  probe.innerHTML = '<img src=x onerror="window.inline=1">';
  document.body.append(probe);
  const tell = () => ({ ...seen, inline: window.inline ?? 0 });
  setTimeout(() => { document.title = "SEEN" + encodeURIComponent(JSON.stringify(tell())); }, 300);
}, 300);
"""


def _poisoned(value):
    """The same record with an attack in every string, and in place of some numbers."""
    if isinstance(value, dict):
        return {key: _poisoned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_poisoned(item) for item in value]
    return value + ATTACK if isinstance(value, str) else value


def test_a_hostile_record_runs_no_script(rtl_run, tmp_path):
    record, timeline = (json.loads((rtl_run / f"{name}.json").read_text()) for name in ("run", "timeline"))
    hostile = _poisoned({**record, "hardware": "x", "created": "x"})
    # Values that the page's script writes: tile and index numbers, names of units, texts of instructions.
    times = [[t[0], t[1], ATTACK, t[3], t[4], f"{t[5]}  # {ATTACK}"] for t in timeline["timeline"]]
    (tmp_path / "run.json").write_text(json.dumps(hostile))
    (tmp_path / "timeline.json").write_text(json.dumps({**_poisoned(timeline), "timeline": times}))
    page = write_report(tmp_path)
    # The browser tells that it refused the handler of the probe.
    seen = drive(page, tmp_path, 1400, LOOK, quiet=False)
    assert seen["rows"] == len(record["layers"]) and seen["listing"], "the page shows the values as text"
    assert (seen["attacked"], seen["markup"]) == (0, 0)
    # Even markup that would reach the page cannot run: the policy forbids handlers inside of it.
    assert seen["inline"] == 0
