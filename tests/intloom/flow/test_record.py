"""Files of a run folder: names that cannot collide, and tables that add up."""

import csv
import io

from intloom.flow.record import _array_file, layers_csv


def test_output_names_become_different_safe_file_names():
    taken = set()
    names = ["1", "10", "/a/b", "_a_b", "a:b", "../../etc/passwd", "", "output0", "output0"]
    for name in names:
        file = _array_file(name, taken)
        assert "/" not in file
        assert not file.startswith(".")
        taken.add(file)
    assert len(taken) == len(names)


def test_the_table_has_a_column_for_every_stall_cause():
    base = dict.fromkeys(("op", "macs", "vector_macs", "mac_use", "predicted_cycles", "dram_bytes", "instructions"), 0)
    base |= {"compared_bytes": 0, "mismatches": 0}
    layers = [
        {**base, "index": 0, "name": "a", "cycles": 5, "stalls": {"MAC_STALL_WAIT": 2}},
        {**base, "index": 1, "name": "b", "cycles": 7, "stalls": {"VEC_STALL_MEMORY": 3}},
    ]
    rows = list(csv.DictReader(io.StringIO(layers_csv({"layers": layers}))))
    assert [(r["MAC_STALL_WAIT"], r["VEC_STALL_MEMORY"]) for r in rows] == [("2", "0"), ("0", "3")]
    assert sum(int(r["cycles"]) for r in rows) == 12
