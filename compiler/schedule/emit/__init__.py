"""Emission: from a plan to the program, its constant image, and what is known about its tensors."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.constant_check import add_crcs
from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.forecast import forecast, remember_forecast
from intloom.compiler.program.memory import instruction_words, paired_name
from intloom.compiler.program.program import Layer, LocalTensor, MemoryTiming, Program, Residence, Role, TensorBuffer
from intloom.compiler.schedule.emit.dram import lay_out
from intloom.compiler.schedule.emit.emitter import Emitter, dispatch_order
from intloom.compiler.schedule.emit.order import image_constants, interleave, slot_tasks
from intloom.compiler.schedule.emit.task_emitter import TaskEmitter
from intloom.compiler.schedule.emit.tasks import Step
from intloom.compiler.schedule.plan.dataflow import Dataflow, Inside
from intloom.compiler.schedule.plan.residency import Slot
from intloom.compiler.schedule.stages.stage_list import Stages
from intloom.hw.spec.formats import memory_words
from intloom.hw.spec.isa import Kind

Progress = Callable[[int, int], None]
"""Called with tasks emitted and tasks in all."""


def emit_program(
    graph: IntGraph,
    stages: Stages,
    slots: Sequence[Slot],
    memory: MemoryTiming,
    *,
    keep: bool,
    progress: Progress | None,
) -> Program:
    """The program of the slots for the nodes of `graph`; with `keep`, every tensor is stored."""
    params, tasks = stages.params, slot_tasks(slots, stages.needed)
    constants = image_constants(stages.stages, tasks)
    tasks, first_writes = interleave(tasks, slots)
    dram = lay_out(stages, slots, constants, first_writes, _whole_weights(tasks))
    emitter = Emitter(params, dram.words)
    emission = TaskEmitter(emitter, _layer_numbers(graph, stages.graph), dram)
    emission.run(tasks, progress)
    emitter.end()
    dispatched = dispatch_order(emitter, memory)
    emitter.reorder(dispatched)
    emission.reorder(dispatched)
    expected = forecast(emitter.instructions, emitter.provenance, len(graph.nodes), params, memory)
    # Instructions start at a word that is a whole number of instructions, so that each lies in one piece.
    code_at = dram.words + -dram.words % instruction_words(1, params)
    tensors = _tensors(graph, stages, emission, keep)
    program = Program(
        name=graph.name,
        params=params,
        instructions=tuple(add_crcs(emitter.instructions, dram.image, 0, params)),
        provenance=tuple(emitter.provenance),
        instructions_at=code_at,
        image_at=0,
        image=dram.image,
        memory_words=code_at + instruction_words(len(emitter.instructions), params),
        tensors=tensors,
        residences=tuple(_residences(stages, slots)),
        local_tensors=_local_tensors(graph, stages, emission, {t.name for t in tensors}),
        local_results=tuple(emission.results),
        layers=_layers(graph, emitter, expected.layers),
        predicted_cycles=expected.cycles,
        memory=memory,
    )
    remember_forecast(program, expected)
    return program


def _whole_weights(tasks: Iterable[Step]) -> list[bytes]:
    """Weights that are loaded as a whole, in order; of others, parts are read with strides."""
    contents = [r.content for task in tasks for r in task.requests(Memory.WEIGHT)]
    parts = {part.source for content in contents if isinstance(content, tuple) for part in content}
    return list(dict.fromkeys(c for c in contents if isinstance(c, bytes) and c not in parts))


def _layer_numbers(graph: IntGraph, scheduled: IntGraph) -> dict[str, int]:
    """Numbers of the nodes' layers; an added node belongs to the layer that reads it."""
    numbers = {n.name: k for k, n in enumerate(graph.nodes)}
    for node in scheduled.nodes:
        if node.name not in numbers:
            (reader,) = scheduled.consumers(node.output)
            numbers[node.name] = numbers[reader.name]
    return numbers


def _own_tensors(graph: IntGraph, stages: Stages) -> list[str]:
    """The graph's tensors that are stored in their own shape, or with pairs of pixels."""
    stored = stages.graph.tensors
    return [n for name in graph.tensors for n in (name, paired_name(name)) if n in stored]


def _tensors(graph: IntGraph, stages: Stages, emission: TaskEmitter, keep: bool) -> tuple[TensorBuffer, ...]:
    own = _own_tensors(graph, stages)
    names = own if keep else [*graph.inputs, *graph.outputs, *(n for n in own if _is_stored(stages, emission, n))]
    buffers = []
    for name in dict.fromkeys(names):
        view, tensor = stages.placement.view(name), stages.graph.tensors[name]
        role = Role.INTERMEDIATE if keep else Role.SHARED
        role = Role.OUTPUT if name in graph.outputs else role
        role = Role.INPUT if name in graph.inputs else role
        buffer = view.buffer
        buffers.append(
            TensorBuffer(
                name=name,
                role=role,
                shape=tensor.shape,
                layout=buffer.layout,
                address=emission.dram.buffers[buffer] + view.first_block * buffer.plane,
                words=view.blocks * buffer.plane if view.channels != buffer.channels else buffer.words,
                scale=tensor.scale,
                zero_point=tensor.zero_point,
                unsigned=tensor.unsigned,
                first_instruction=emission.last_store.get(buffer),
            )
        )
    return tuple(buffers)


def _local_tensors(graph: IntGraph, stages: Stages, emission: TaskEmitter, stored: set[str]) -> tuple[LocalTensor, ...]:
    """Tensors that are only in the scratchpad, complete and at whole words."""
    local = []
    for name in _own_tensors(graph, stages):
        view = stages.placement.view(name)
        number = emission.local_number(view)
        if name not in stored and number is not None and view.aligned:
            shape = stages.graph.tensors[name].shape
            local.append(LocalTensor(name=name, shape=shape, buffer=number, first_block=view.first_block))
    return tuple(local)


def _is_stored(stages: Stages, emission: TaskEmitter, tensor: str) -> bool:
    # Of a tensor that is partly stored, the rest was never in memory.
    view = stages.placement.view(tensor)
    return emission.stored[view.buffer].issuperset(view.touched_blocks)


def _layers(graph: IntGraph, emitter: Emitter, cycles: Sequence[int]) -> tuple[Layer, ...]:
    words, used, on_vector = [0] * len(graph.nodes), set[int](), set[int]()
    for instruction, origin in zip(emitter.instructions, emitter.provenance, strict=True):
        used.add(origin.layer)
        if instruction.kind is Kind.VDEPTHWISE:
            on_vector.add(origin.layer)
        elif instruction.kind in (Kind.LOAD, Kind.STORE):
            words[origin.layer] += memory_words(instruction)
    # Layers that lead to no output have no instructions.
    macs = [node.macs(graph.tensors) if k in used else 0 for k, node in enumerate(graph.nodes)]
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
        for k, node in enumerate(graph.nodes)
    )


def _residences(stages: Stages, slots: Sequence[Slot]) -> Iterator[Residence]:
    """One entry for each buffer, in the order of first use."""
    slot_of = [slot.index for slot in slots for _ in slot.stages]
    for inside in Dataflow(stages).inside(0, len(stages.stages)).values():
        own = [slots[k] for k in sorted({slot_of[a.index] for a in inside.accesses})]
        held = [s.local[inside.buffer] for s in own if inside.buffer in s.local]
        leaves = len(held) < len(own) or any(b.inside.stored or b.inside.loaded for b in held)
        between = slots[own[0].index : own[-1].index + 1]
        reason = _reason(inside, between, stages.params.scratch_words) if leaves else ""
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
