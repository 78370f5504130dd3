"""The table of a folder of TFLite files, and its picture."""

from intloom.common.errors import ExitCode
from tests.support.tflite_maker import tflite_bytes
from tools import tflite_table


def test_picture_of_the_manual_has_a_point_for_each_pair():
    text = tflite_table.PAGE.read_text(encoding="utf-8")
    drawn = tflite_table.chart(text)
    assert drawn == tflite_table.CHART.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.count("|") == 9 and not line.endswith("|  |")]
    assert drawn.count("<circle") == len(rows) - 2  # without both lines of the head


def test_rows_and_refusals(tmp_path, capsys, monkeypatch):
    (tmp_path / "owner+repository__network.tflite").write_bytes(tflite_bytes("network"))
    (tmp_path / "broken.tflite").write_bytes(tflite_bytes("network")[:300])
    monkeypatch.setattr("sys.argv", ["tflite_table", str(tmp_path)])
    assert tflite_table.main() == ExitCode.OK
    *_, row, empty, refused = capsys.readouterr().out.splitlines()
    assert row.startswith("| network | owner/repository | 13 | 1 | 0 | ") and row.endswith(" |  |") and not empty
    assert refused.startswith("broken.tflite: broken.tflite is not a valid TFLite file")
