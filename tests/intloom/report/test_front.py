"""The picture of fronts: well-formed, every label beside its line and none over another."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from intloom.report.front import front_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("ends", [[100.0] * 26, [1.0, 1.01, 800.0], [5.0], [1.0] * 9 + [1000.0] * 9])
def test_labels_do_not_overlap_and_stay_in_the_picture(ends):
    fronts = {f"network {n}": [(20_000.0, fps / 2), (50_000.0, fps)] for n, fps in enumerate(ends)}
    picture = ET.fromstring(front_svg(fronts, "LUT", "frames/s"))
    height = float(picture.get("viewBox").split()[3])
    labels = {text.text: float(text.get("y")) for text in picture.iter(f"{SVG}text") if text.text in fronts}
    ordered = sorted(labels.values())
    assert len(labels) == len(ends) and ordered[0] > 0 and ordered[-1] < height
    assert all(below - above >= 12 for above, below in pairwise(ordered))
    by_rate = sorted(fronts, key=lambda label: -fronts[label][-1][1])
    assert [labels[label] for label in by_rate] == ordered
    assert len(list(picture.iter(f"{SVG}circle"))) == 2 * len(ends)
