"""Footprints against a slow reading of the manual: every word touched, and for dense windows no other."""

import numpy as np

from intloom.compiler.program.footprint import ADDRESS_SPACE, Access, Memory, footprint
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import ConvMode, Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.random_programs.words import words_of
from tests.support.random_graph import random_graph


def words(access: Access) -> set[int]:
    found = np.asarray([access.base])
    for count, step in access.dims:
        found = (found[:, None] + np.arange(count) * step).reshape(-1)
    return set(found.tolist())


def conv_reads(i: Instruction, params: HardwareParams) -> set[int]:
    """Input words of a CONV, tap by tap, as the architecture describes them."""
    found = set()
    group = params.pixels_per_word if i["mode"] == ConvMode.PACKED else 1
    for ob in range(i["out_blocks"]):
        for b in range(i["in_blocks"]):
            for oy in range(i["out_h"]):
                for ky in range(i["kernel_h"]):
                    step = oy * i["stride_h"] + ky * i["dilation_h"]
                    if not 0 <= i["iy0"] + step < i["in_h"]:
                        continue
                    offset = (i["in_row_off"] + step * i["in_row"]) % (i["in_ring"] or ADDRESS_SPACE)
                    for ox in range(i["out_w"]):
                        for kx in range(i["kernel_w"]):
                            for pixel in range(group):
                                ix = i["ix0"] + ox * i["stride_w"] + kx * i["dilation_w"] * group + pixel
                                if 0 <= ix < i["in_w"]:
                                    plane = ob * i["in_block_step"] + b * i["in_plane"]
                                    found.add((i["in_base"] + plane + offset + ix // group) % ADDRESS_SPACE)
    return found


def test_conv_input_footprint_covers_exactly_what_dense_convolutions_read():
    params = preset("base")
    seen = 0
    for seed in range(25):
        graph, _ = random_graph(seed, nodes=4)
        for i in compile_graph(graph, params).instructions:
            if i.kind is not Kind.CONV or i["out_h"] * i["out_w"] * i["out_blocks"] * i["in_blocks"] > 1500:
                continue
            accesses = footprint(i, params)
            reads = [a for a in accesses if a.memory is Memory.SCRATCH and not a.write]
            claimed = set().union(*(words(a) for a in reads[: len(reads) - i["residual"]]))
            exact = conv_reads(i, params)
            assert exact <= claimed, i
            dense = (
                i["stride_h"] <= i["kernel_h"] and i["stride_w"] <= i["kernel_w"]
                and i["dilation_h"] == i["dilation_w"] == 1
            )  # fmt: skip
            if dense:
                assert claimed == exact, i
            seen += 1
    assert seen > 20


def test_row_ring_wraps():
    params = preset("base")
    i = make(
        Kind.CONV, in_base=100, in_row_off=15, in_ring=20, in_plane=20, in_row=5, in_h=9, in_w=5, iy0=-1, ix0=0,
        kernel_h=3, in_blocks=2, out_h=3, out_w=5, out_row=5, out_plane=15, out_base=500,
    )  # fmt: skip
    reads = [a for a in footprint(i, params) if a.memory is Memory.SCRATCH and not a.write]
    assert set().union(*(words(a) for a in reads)) == conv_reads(i, params)
    assert min(min(words(a)) for a in reads) == 100


def test_output_footprint_of_a_convolution_with_a_lane():
    params = preset("base").replace(rows=32, axi_data_bits=256, lut_products=0)
    fields = {"out_base": 7, "out_plane": 50, "out_row": 10, "out_h": 2, "out_w": 3, "out_x": 2}
    i = make(Kind.CONV, out_lane=16, out_blocks=2, **fields)
    write = footprint(i, params)[-1]
    expected = {7 + b * 50 + y * 10 + x * 2 for b in range(2) for y in range(2) for x in range(3)}
    assert (write.write, words(write)) == (True, expected)


def test_moves_and_copies():
    params = preset("base")
    load = make(Kind.LOAD, dram=9, local=3, n0=2, n1=2, n2=2, dram_s1=10, dram_s2=100, local_s1=2, local_s2=4)
    dram, local = footprint(load, params)
    assert words(dram) == {9, 10, 19, 20, 109, 110, 119, 120}
    assert words(local) == set(range(3, 11))
    copy = make(Kind.VCOPY, a_base=8, a_row=2, a_x=1, out_h=5, out_w=3, up_h=2, up_w=2, out_row=3, out_base=50)
    source, target = footprint(copy, params)
    assert words(source) == {8, 9, 10, 11, 12, 13}
    assert words(target) == set(range(50, 65))


def test_depthwise_convolutions_on_the_vector_unit(rng):
    """With and without a ring, against the words counted one by one."""
    params = preset("base")
    seen = {0: 0, 1: 0}
    while min(seen.values()) < 40:
        row = rng.randint(1, 30)
        ring = row * rng.randint(1, 6) * rng.randrange(2)
        fields = {"a_base": rng.randint(500, 900), "a_row": row, "a_ring": ring, "a_row_off": rng.randrange(ring or 99)}
        fields |= {"in_h": rng.randint(1, 9), "in_w": rng.randint(1, 12)}
        fields |= {"iy0": rng.randint(-9, 9), "ix0": rng.randint(-9, 12), "kernel_h": rng.randint(1, 5)}
        fields |= {"stride_h": rng.randint(1, 4), "stride_w": rng.randint(1, 4)}
        fields |= {"out_h": rng.randint(1, 4), "out_w": rng.randint(1, 5), "out_row": 20, "out_x": rng.randint(1, 3)}
        i = make(Kind.VDEPTHWISE, **fields, b_base=2000, out_base=3000)
        *reads, write = footprint(i, params)
        expected = words_of(i, params)
        assert write.write
        assert words(write) == set(expected.written.tolist())
        assert not any(a.write for a in reads)
        assert set().union(*(words(a) for a in reads)) == set(expected.reads["scratch"].tolist()), i
        seen[ring > 0] += 1


def test_in_a_ring_each_row_of_a_depthwise_convolution_is_an_access_of_its_own():
    """So that a hazard with another row of the buffer is none."""
    fields = {"a_base": 100, "a_row": 5, "a_ring": 20, "a_row_off": 15, "in_h": 9, "in_w": 5, "out_w": 3}
    kernel = {"kernel_h": 3, "kernel_w": 3}
    *rows, constants, _ = footprint(make(Kind.VDEPTHWISE, **fields, **kernel, b_base=700, out_base=900), preset("base"))
    assert [words(a) for a in rows] == [set(range(n, n + 5)) for n in (115, 100, 105)]
    assert words(constants) == set(range(700, 717))
