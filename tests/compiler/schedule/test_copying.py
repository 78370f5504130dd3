"""Segments move exactly the channels that they should, byte by byte."""

from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.schedule.stages.stage import segments


@given(st.sampled_from([4, 8, 16, 32]), st.integers(0, 70), st.integers(1, 90), st.integers(0, 70))
def test_segments_move_every_channel_once(rows, start, count, to):
    moved = {}
    rotate = (to - start) % rows
    for s in segments(start, start + count, to, rows):
        for block in range(s.count):
            for byte in range(rows):
                position = (byte + rotate) % rows
                if s.first <= position < s.first + s.width:
                    target = (s.target + block) * rows + position
                    assert target not in moved
                    moved[target] = (s.source + block) * rows + byte
    assert moved == {to + k: start + k for k in range(count)}


@given(st.sampled_from([4, 8, 16, 32]), st.integers(0, 9), st.integers(1, 9))
def test_aligned_channels_move_in_one_segment_and_a_rest(rows, first, blocks):
    assert len(segments(first * rows, (first + blocks) * rows, 0, rows)) == 1
    assert len(segments(first * rows, (first + blocks) * rows + 1, 0, rows)) == 2


def test_shifted_channels_take_two_segments_whatever_their_number():
    assert len(segments(5, 5 + 16 * 20, 16, 16)) <= 4
