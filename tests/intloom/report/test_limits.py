"""The opening of the report: what limits a run, and where."""

import pytest

from intloom.report.limits import limiting_cause

PARAMS = {"rows": 4, "cols": 4}


def record(busy=50, macs=800, **stalls):
    layers = [
        {"name": name, "macs": macs * share, "busy": {"MAC": busy * share}, "stalls": {}}
        for name, share in (("a", 0.2), ("b", 0.8))
    ]
    for cause, count in stalls.items():
        layers[0]["stalls"][f"MAC_STALL_{cause}"] = count
    units = [{"name": "load", "busy": 0, "stalls": {}}, {"name": "mac", "busy": busy, "stalls": stalls}]
    return {"cycles": 100, "macs": macs, "params": PARAMS, "units": units, "layers": layers}


@pytest.mark.parametrize(
    ("run", "said", "remedy"),
    [
        (record(WEIGHTS=30, WAIT=5), "in 30.0 % the array waits for weights, most of them in a.", "weight_kib"),
        (record(ACCUMULATORS=40), "in 40.0 % the array waits until sums are read out, most of them in a.", "lanes"),
        (
            record(busy=90, macs=160),
            "parts of the array have no channel to work on, most of them in b.",
            "rows",
        ),
        (record(busy=50), "in 50.0 % the program starts and ends.", "short"),
        (record(busy=100, macs=1600), "useful products in 100.0 % of the cycles.", "No cycle"),
    ],
)
def test_the_largest_loss_is_named_with_its_layer_and_a_remedy(run, said, remedy):
    found = limiting_cause(run)
    assert found.text.endswith(said) and remedy in found.remedy


def test_without_cycles_nothing_is_said():
    assert limiting_cause({**record(), "cycles": None}) is None
    assert limiting_cause({**record(), "units": []}) is None
