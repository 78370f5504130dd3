"""Planted bugs of counters: a bit too few, or a step that is lost as it meets another one."""

from __future__ import annotations

from tools.mutate.bug import Bug

_CONTROL, _MAC, _VECTOR = "tests/hw/control", "tests/hw/mac", "tests/hw/vector"
COUNTER_BUGS = (
    Bug(
        "an entry of a queue is lost that is committed as another unit's is freed",
        "hw/control/queue.py",
        "with m.If(filled & ~self._freed[u]):",
        "with m.If(filled & ~self._freed.any()):",
        f"{_CONTROL}/test_queue.py::test_instructions_come_whole_in_order_and_not_before_their_waits",
    ),
    Bug(
        "a block's space in the prefetch queue is lost that is read as the next one is asked for",
        "hw/control/fetch.py",
        "space.eq(space - issue + block_read)",
        "space.eq(space - issue + (block_read & ~issue))",
        f"{_CONTROL}/test_fetch.py::test_space_may_return_in_the_cycle_of_a_request",
    ),
    Bug(
        "the number of a burst's block carries through 24 bits",
        "hw/dma/bursts.py",
        "state.block.eq(state.block + 1)",
        "state.block.eq(Cat((state.block + 1)[:24], state.block[24:]))",
        "tests/hw/dma/test_bursts.py::test_the_number_of_a_block_carries_through_all_of_its_bits",
    ),
    Bug(
        "outstanding bursts of loads lose an end in the cycle of an issue",
        "hw/dma/load.py",
        "bursts.eq(bursts + front.issued - (beat_fire & self.r.payload.last))",
        "bursts.eq(bursts + front.issued - (beat_fire & self.r.payload.last & ~front.issued))",
        "tests/hw/dma/test_load.py::test_every_word_is_written_to_its_address_in_order",
    ),
    Bug(
        "beats of a store's burst are counted in 7 bits",
        "hw/dma/store.py",
        "beats_left = Signal(LENGTH_BITS)",
        "beats_left = Signal(LENGTH_BITS - 1)",
        "tests/hw/dma/test_store.py::test_the_longest_bursts_have_all_of_their_beats",
    ),
    Bug(
        "the release of an accumulator bank is lost as another one is taken",
        "hw/mac/issue/sequencer.py",
        "banks_in_use + (self.weights_taken & tile.first) - self.bank_released",
        "banks_in_use + (self.weights_taken & tile.first) - (self.bank_released & ~self.weights_taken)",
        f"{_MAC}/issue/test_sequencer.py::test_every_pixel_of_every_tile_issues_in_order",
    ),
    Bug(
        "output blocks whose weights are fetched are counted in 11 bits",
        "hw/mac/weights/fetcher.py",
        "blocks = Signal.like(descriptor.out_blocks, reset_less=True)",
        "blocks = Signal(len(descriptor.out_blocks) - 1, reset_less=True)",
        f"{_MAC}/weights/test_fetcher.py::test_all_bits_of_the_number_of_blocks_count",
    ),
    Bug(
        "results of depthwise convolutions take no credit",
        "hw/vector/unit.py",
        "(~tap.last | (may_complete & credit_available))",
        "(~tap.last | may_complete)",
        f"{_VECTOR}/test_unit.py::test_results_wait_for_their_writes",
    ),
    Bug(
        "results of depthwise convolutions do not wait for the scales",
        "hw/vector/unit.py",
        "may_complete.eq(constants.loaded & ~self._completes",
        "may_complete.eq(constants.weights_loaded & ~self._completes",
        f"{_VECTOR}/test_unit.py::test_cycles_of_a_depthwise_convolution",
    ),
    Bug(
        "sums of kernel columns lack their top bit",
        "hw/vector/depthwise_columns.py",
        "total = Signal(signed(sum_bits(kx + 1)),",
        "total = Signal(signed(sum_bits(kx + 1) - 1),",
        f"{_VECTOR}/test_depthwise_columns.py::test_the_largest_sums",
    ),
    Bug(
        "rows of a depthwise kernel's weights are counted in 3 bits",
        "hw/vector/depthwise_constants.py",
        'rows = DownCounter(KERNEL_BITS, "rows")',
        'rows = DownCounter(KERNEL_BITS - 1, "rows")',
        f"{_VECTOR}/test_depthwise_constants.py::test_every_word_has_its_destination",
    ),
)
