"""Where each tensor lies during a program, and why it leaves the chip if it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from intloom.compiler.program.program import Residence
from intloom.compiler.schedule.plan.dataflow import Dataflow, Inside
from intloom.compiler.schedule.plan.residency import Slot
from intloom.hw.spec.params import HardwareParams


def residences(flow: Dataflow, slots: Sequence[Slot], params: HardwareParams) -> Iterator[Residence]:
    """One entry for each buffer, in the order of first use."""
    for inside in flow.inside(0, len(flow.stages)):
        own = [s for s in slots if any(a.stage in s.stages for a in inside.accesses)]
        held = [s.local[inside.buffer] for s in own if inside.buffer in s.local]
        leaves = len(held) < len(own) or any(b.stored or b.loaded for b in held)
        yield Residence(
            tensor=inside.buffer.name,
            words=inside.buffer.words,
            rows=max((b.rows for b in held), default=0),
            height=inside.buffer.height,
            reason=_reason(inside, slots[own[0].index : own[-1].index + 1], params) if leaves else "",
        )


def _reason(inside: Inside, slots: Sequence[Slot], params: HardwareParams) -> str:
    """Why a buffer leaves the chip during these slots."""
    buffer, size = inside.buffer, params.scratch_words
    if not inside.writes:
        return "the host writes this input into DRAM"
    if buffer.pinned:
        return "the host reads this output in DRAM"
    if buffer.words > size:
        return (
            f"its {buffer.words:,} words are more than the scratchpad's {size:,}, and stripes across all readers do "
            "not fit or cost more"
        )
    fullest = max(slots, key=lambda s: _use(s, inside))
    layer, used = fullest.stages[-1].origin.name, _use(fullest, inside)
    if used + buffer.words > size:
        return f"layer {layer} uses {used:,} of {size:,} words beside it, which leaves no room for its {buffer.words:,}"
    return "keeping it costs more cycles than it saves traffic"


def _use(slot: Slot, without: Inside) -> int:
    words = sum(b.words for b in slot.local.values() if b.buffer is not without.buffer)
    return words + (slot.tiling.scratch if slot.tiling is not None else 0)
