"""The page of an exploration in a real browser: the plot, its axes, and rows and points that choose each other."""

import pytest

from intloom.exploration.device import Device
from intloom.exploration.energy import choose_technology
from intloom.exploration.explore import Budget, explore
from intloom.exploration.space import Space
from intloom.hw.spec.params import preset
from intloom.report.exploration import write_exploration
from tests.intloom.report.pages import misplaced_values
from tests.intloom.report.test_accessibility import require_accessible
from tests.intloom.report.test_browser import drive

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
SCRIPT = """
const seen = {}, all = (s) => [...document.querySelectorAll(s)], one = (s) => document.querySelector(s);
seen.kinds = ["front", "fits", "misses"].map((kind) => all(`#plot circle.${kind}`).length);
seen.rows = all("#points tbody tr").length;
seen.axes = all("#across option").map((o) => o.value);
seen.labels = all("#plot text").length;
seen.ticks = [ticks(35400, 48900), ticks(24.7, 31.4), ticks(3, 5), ticks(9, 240)];
seen.first = one("#point").textContent;
all("#points tbody tr")[2].click();
seen.chosen = all("#plot circle.chosen").map((c) => c.dataset.point);
all("#plot circle.front")[1].dispatchEvent(new Event("click"));
seen.row = all("#points tr.chosen").map((r) => r.dataset.point);
const x = () => all("#plot circle").map((c) => c.getAttribute("cx")).join();
const before = x();
one("#across").value = "dram_bytes";
one("#across").dispatchEvent(new Event("change"));
seen.moved = before !== x();
document.title = "SEEN" + encodeURIComponent(JSON.stringify(seen));
"""


@pytest.fixture(scope="module")
def done(quantized_models):
    device = Device("small", "ecp5", {"LUT": 21_000.0, "FF": 21_000.0})
    asked = Budget(device=device, technology=choose_technology("45nm"))
    space = Space(preset("nano"), {"cols": [4, 16, 64], "scratch_kib": [16, 64]})
    return explore([(quantized_models("c2f"), 1.0)], space, asked)


@pytest.mark.parametrize("width", [1400, 500])
def test_points_and_rows_choose_each_other(tmp_path, done, width):
    page = write_exploration({**done.to_dict(), "verified": []}, tmp_path)
    assert not misplaced_values(page.read_text())
    seen = drive(page, tmp_path, width, SCRIPT)
    fits = sum(point.fits for point in done.points)
    assert len(done.front) > 1 and fits < len(done.points) == seen["rows"]
    assert seen["kinds"] == [len(done.front), fits - len(done.front), len(done.points) - fits]
    assert seen["axes"] == ["fps", "LUT", "FF", "DSP", "RAM", "memory_kib", "dram_bytes", "energy_uj"]
    best = done.front[0]
    assert all(said in seen["first"] for said in (done.name(best), best.clock.source, done.why(best)))
    assert (seen["chosen"], seen["row"]) == (["2"], ["1"])
    assert seen["moved"]
    assert seen["ticks"] == [[40000, 45000], [26, 28, 30], [3, 3.5, 4, 4.5, 5], [10, 20, 50, 100, 200]]
    assert seen["labels"] >= 4
    require_accessible([page], [390 if width == 500 else width])
