"""The program: instructions, constants, tensors and what is known about them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.forecast import forecast
from intloom.compiler.program.memory import instruction_words, paired_name
from intloom.compiler.program.program import Layer, LocalTensor, MemoryTiming, Program, Residence, Role, TensorBuffer
from intloom.compiler.schedule.emit.dram import DramLayout, lay_out
from intloom.compiler.schedule.emit.emitter import Emitter, dispatch_order
from intloom.compiler.schedule.emit.order import interleave, slot_tasks
from intloom.compiler.schedule.emit.task_emitter import TaskEmitter
from intloom.compiler.schedule.plan import Plan
from intloom.compiler.schedule.plan.dataflow import Inside
from intloom.compiler.schedule.plan.residency import Slot
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Kind

Progress = Callable[[int, int], None]
"""Called with tasks emitted and tasks in all."""


@dataclass(frozen=True, eq=False)
class _Emitted:
    """What a program is assembled from."""

    graph: IntGraph
    """The graph before the passes, whose nodes are the program's layers."""
    plan: Plan
    dram: DramLayout
    emitter: Emitter
    tasks: TaskEmitter
    keep: bool
    """Every tensor is stored."""

    @property
    def tensors(self) -> list[str]:
        """The graph's tensors that are stored in their own shape, or with pairs of pixels."""
        stored = self.plan.stages.graph.tensors
        return [n for name in self.graph.tensors for n in (name, paired_name(name)) if n in stored]


def emit_program(
    graph: IntGraph, plan: Plan, memory: MemoryTiming, *, keep: bool, progress: Progress | None
) -> Program:
    """The program of a plan for the nodes of `graph`; with `keep`, every tensor is stored."""
    slots = slot_tasks(plan)
    order = interleave([task for slot in slots for task in slot.steps], plan.slots)
    dram = lay_out(plan, (block for slot in slots for block in slot.constants), order.first_writes)
    emitter = Emitter(plan.stages.params, dram.words)
    tasks = TaskEmitter(emitter, _layer_numbers(graph, plan.stages.graph), dram)
    emitter.begin()
    tasks.run(order.tasks, progress)
    emitter.end()
    dispatched = dispatch_order(emitter, len(graph.nodes), memory)
    emitter.reorder(dispatched)
    tasks.reorder(dispatched)
    return _program(_Emitted(graph, plan, dram, emitter, tasks, keep), memory)


def _layer_numbers(graph: IntGraph, scheduled: IntGraph) -> dict[str, int]:
    """Numbers of the nodes' layers; an added node belongs to the layer that reads it."""
    numbers = {n.name: k for k, n in enumerate(graph.nodes)}
    for node in scheduled.nodes:
        if node.name not in numbers:
            (reader,) = scheduled.consumers(node.output)
            numbers[node.name] = numbers[reader.name]
    return numbers


def _tensors(made: _Emitted) -> tuple[TensorBuffer, ...]:
    shared = [] if made.keep else [n for n in made.tensors if _is_stored(made, n)]
    names = made.tensors if made.keep else [*made.graph.inputs, *made.graph.outputs, *shared]
    buffers = []
    for name in dict.fromkeys(names):
        view, tensor = made.plan.stages.placement.view(name), made.plan.stages.graph.tensors[name]
        role = Role.INTERMEDIATE if made.keep else Role.SHARED
        role = Role.OUTPUT if name in made.graph.outputs else role
        role = Role.INPUT if name in made.graph.inputs else role
        buffer = view.buffer
        buffers.append(
            TensorBuffer(
                name=name,
                role=role,
                shape=tensor.shape,
                layout=buffer.layout,
                address=made.dram.buffers[buffer] + view.first_block * buffer.plane,
                words=view.blocks * buffer.plane if view.channels != buffer.channels else buffer.words,
                scale=tensor.scale,
                zero_point=tensor.zero_point,
                unsigned=tensor.unsigned,
                first_instruction=made.tasks.last_store.get(buffer),
            )
        )
    return tuple(buffers)


def _local_tensors(made: _Emitted, stored: set[str]) -> tuple[LocalTensor, ...]:
    """Tensors that are only in the scratchpad, complete and at whole words."""
    local = []
    for name in made.tensors:
        view = made.plan.stages.placement.view(name)
        number = made.tasks.local.number(view)
        if name not in stored and number is not None and view.aligned:
            shape = made.plan.stages.graph.tensors[name].shape
            local.append(LocalTensor(name=name, shape=shape, buffer=number, first_block=view.first_block))
    return tuple(local)


def _is_stored(made: _Emitted, tensor: str) -> bool:
    view = made.plan.stages.placement.view(tensor)
    buffer = view.buffer
    # Of a tensor that is partly stored, the rest was never in memory.
    return made.tasks.stored[buffer].issuperset(
        range(view.first_block, (view.channel + view.channels - 1) // made.plan.stages.params.rows + 1)
    )


def _dram_words(emitter: Emitter, count: int) -> list[int]:
    words = [0] * count
    for instruction, origin in zip(emitter.instructions, emitter.provenance, strict=True):
        if instruction.kind in (Kind.LOAD, Kind.STORE):
            words[origin.layer] += move_words(instruction)
    return words


def _layers(made: _Emitted, cycles: Sequence[int]) -> tuple[Layer, ...]:
    words = _dram_words(made.emitter, len(made.graph.nodes))
    # Layers that lead to no output have no instructions.
    used = {origin.layer for origin in made.emitter.provenance}
    issued = zip(made.emitter.instructions, made.emitter.provenance, strict=True)
    on_vector = {origin.layer for instruction, origin in issued if instruction.kind is Kind.VDEPTHWISE}
    macs = [node.macs(made.graph.tensors) if k in used else 0 for k, node in enumerate(made.graph.nodes)]
    return tuple(
        Layer(
            name=node.name,
            op=type(node).__name__,
            origin=node.origin,
            macs=0 if k in on_vector else macs[k],
            vector_macs=macs[k] if k in on_vector else 0,
            predicted_cycles=cycles[k],
            dram_words=words[k],
        )
        for k, node in enumerate(made.graph.nodes)
    )


def _program(made: _Emitted, memory: MemoryTiming) -> Program:
    stages, emitter = made.plan.stages, made.emitter
    params = stages.params
    expected = forecast(emitter.instructions, emitter.provenance, len(made.graph.nodes), params, memory)
    # Instructions start at a word that is a whole number of instructions, so that each lies in one piece.
    code_at = made.dram.words + -made.dram.words % instruction_words(1, params)
    tensors = _tensors(made)
    return Program(
        name=made.graph.name,
        params=params,
        instructions=tuple(emitter.instructions),
        provenance=tuple(emitter.provenance),
        instructions_at=code_at,
        image_at=0,
        image=made.dram.image,
        memory_words=code_at + instruction_words(len(emitter.instructions), params),
        tensors=tensors,
        residences=tuple(_residences(made.plan)),
        local_tensors=_local_tensors(made, {t.name for t in tensors}),
        local_results=tuple(made.tasks.local.results),
        layers=_layers(made, expected.layers),
        predicted_cycles=expected.cycles,
        memory=memory,
    )


def _residences(plan: Plan) -> Iterator[Residence]:
    """One entry for each buffer, in the order of first use."""
    slots = plan.slots
    for inside in plan.flow.inside(0, len(plan.flow.stages)):
        own = [s for s in slots if any(a.stage in s.stages for a in inside.accesses)]
        held = [s.local[inside.buffer] for s in own if inside.buffer in s.local]
        leaves = len(held) < len(own) or any(b.stored or b.loaded for b in held)
        between = slots[own[0].index : own[-1].index + 1]
        reason = _reason(inside, between, plan.stages.params.scratch_words) if leaves else ""
        yield Residence(
            tensor=inside.buffer.name,
            words=inside.buffer.words,
            rows=max((b.rows for b in held), default=0),
            height=inside.buffer.height,
            reason=reason,
        )


def _reason(inside: Inside, slots: Sequence[Slot], size: int) -> str:
    """Why a buffer leaves the chip during these slots."""
    buffer = inside.buffer
    if not inside.writes:
        return "the host writes this input into DRAM"
    if inside.pinned:
        return "the host reads this output in DRAM"
    if buffer.words > size:
        return (
            f"its {buffer.words:,} words are more than the scratchpad's {size:,}, and stripes across all readers do "
            "not fit or cost more"
        )
    fullest = max(slots, key=lambda s: _use(s, inside))
    layer, used = fullest.stages[-1].name, _use(fullest, inside)
    if used + buffer.words > size:
        return f"layer {layer} uses {used:,} of {size:,} words beside it, which leaves no room for its {buffer.words:,}"
    return "keeping it costs more cycles than it saves traffic"


def _use(slot: Slot, without: Inside) -> int:
    words = sum(b.words for b in slot.local.values() if b.buffer is not without.buffer)
    return words + (slot.tiling.scratch if slot.tiling is not None else 0)
