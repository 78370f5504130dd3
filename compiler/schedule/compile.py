"""From an integer graph to a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.forecast import forecast
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.memory_timing import MemoryTiming
from intloom.compiler.program.paired_pixels import paired_name
from intloom.compiler.program.program import Layer, LocalTensor, Program, Role, TensorBuffer
from intloom.compiler.schedule.emit.emitter import Emitter
from intloom.compiler.schedule.emit.order import Interleaved, dispatch_order, interleave
from intloom.compiler.schedule.emit.report import residences
from intloom.compiler.schedule.emit.stripe_tasks import schedule_slots, slot_tasks
from intloom.compiler.schedule.emit.task_emitter import TaskEmitter
from intloom.compiler.schedule.passes.blank_lanes import fill_blank_lanes
from intloom.compiler.schedule.passes.pixel_pairs import pair_pixels
from intloom.compiler.schedule.passes.selected_pixels import read_images
from intloom.compiler.schedule.plan.dataflow import Dataflow
from intloom.compiler.schedule.plan.fit import first_fit, live_ranges
from intloom.compiler.schedule.plan.groups import WORD_PRICE, Goal
from intloom.compiler.schedule.plan.residency import Slot
from intloom.compiler.schedule.plan.tiling import Space, choose_tiling, require_weight_memory, too_large
from intloom.compiler.schedule.stages.build import build_stages
from intloom.compiler.schedule.stages.placement import Buffer
from intloom.compiler.schedule.stages.stage import Stage
from intloom.compiler.schedule.stages.stage_list import StageList
from intloom.compiler.schedule.stages.weights import ConstantImage
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import HardwareParams

DEFAULT_MEMORY = MemoryTiming()
_PRICES: Mapping[int, tuple[float, ...]] = {0: (), 1: (1.0,), 2: (1.0, 2.0), 3: (1.0, 0.5, 2.0, 4.0)}
"""For each effort, the prices of a moved word that are searched with, in units of the usual one."""
Progress = Callable[[int, int], None]
"""Called with tasks emitted and tasks in all."""


@dataclass
class _Plan:
    """Intermediate results of a compilation."""

    graph: IntGraph
    params: HardwareParams
    image: ConstantImage
    stage_list: StageList
    keep: bool
    goal: Goal | None
    memory: MemoryTiming
    slots: list[Slot] = field(default_factory=list)

    @property
    def stages(self) -> list[Stage]:
        return self.stage_list.stages

    @property
    def tensors(self) -> list[str]:
        """The graph's tensors that are stored in their own shape, or with pairs of pixels."""
        stored = self.stage_list.graph.tensors
        return [n for name in self.graph.tensors for n in (name, paired_name(name)) if n in stored]

    @property
    def buffers(self) -> list[Buffer]:
        local = [b for slot in self.slots for b in slot.local.items()]
        inside = {b for b, held in local if not held.stored and not held.loaded}
        # A buffer that one group keeps in the scratchpad may be stored for another.
        inside -= {b for b, held in local if held.stored or held.loaded}
        return [b for b in self.stage_list.placement.buffers if b.stored and not b.constant and b not in inside]


def compile_graph(
    graph: IntGraph,
    params: HardwareParams,
    *,
    keep_intermediates: bool = False,
    effort: int = 1,
    memory: MemoryTiming = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Program:
    """Compile a graph for an accelerator.

    Parameters
    ----------
    graph
        The integer graph.
    params
        The accelerator; the graph's rounding mode must be the one that it was folded for.
    keep_intermediates
        Give every tensor its own memory, for debugging: nothing is fused or overwritten.
    effort
        How many schedules the search for fused groups tries: 1 to 3. With 0, every tensor goes through DRAM.
        Compile time is proportional to the number of searches: 1, 2 and 4.
    memory
        The memory that the schedule is made for; the program is right for every memory.
    progress
        Told how many tasks of how many have been emitted.

    Raises
    ------
    UnsupportedError
        A node that no instruction can express.
    CapacityError
        A node that does not fit the scratchpad or the weight memory; the message names sizes that do.
    """
    goals = [Goal(memory=memory, stripe_heights=effort, word_price=p * WORD_PRICE) for p in _PRICES[effort]]
    if keep_intermediates or effort == 0:
        return _compile(graph, params, keep_intermediates, None, memory, progress)
    # The estimate that a search uses is coarse, so the forecast decides between searches.
    programs = [_compile(graph, params, False, goal, memory, progress) for goal in goals]
    return min(programs, key=goals[0].score)


def _compile(
    graph: IntGraph,
    params: HardwareParams,
    keep: bool,
    goal: Goal | None,
    memory: MemoryTiming,
    progress: Progress | None,
) -> Program:
    image = ConstantImage(params)
    filled = fill_blank_lanes(graph, params)
    scheduled = filled if keep else pair_pixels(read_images(filled, params), params)
    stage_list = build_stages(scheduled, params, image, keep_intermediates=keep)
    plan = _Plan(graph, params, image, stage_list, keep, goal, memory)
    schedule = _cut(plan)
    # `_cut` adds weights and tables to the image, so the image's size is known only here.
    tensors_at = image.words
    tensor_words = _allocate_tensors(plan, tensors_at, schedule.first_writes)
    emitter = Emitter(params, tensors_at + tensor_words)
    layers = _layer_numbers(graph, scheduled)
    task_emitter = TaskEmitter(emitter, [layers[s.origin.name] for s in plan.stages], 0)
    emitter.begin()
    task_emitter.run(schedule.tasks, progress)
    emitter.end()
    order = dispatch_order(emitter, len(graph.nodes), memory)
    emitter.reorder(order)
    task_emitter.reorder(order)
    return _program(plan, emitter, task_emitter, tensors_at + tensor_words)


def _layer_numbers(graph: IntGraph, scheduled: IntGraph) -> dict[str, int]:
    """Numbers of the nodes' layers; an added node belongs to the layer that reads it."""
    numbers = {n.name: k for k, n in enumerate(graph.nodes)}
    for node in scheduled.nodes:
        if node.name not in numbers:
            (reader,) = scheduled.consumers(node.output)
            numbers[node.name] = numbers[reader.name]
    return numbers


def _cut(plan: _Plan) -> Interleaved:
    space = Space(plan.params.scratch_words, plan.params.weight_words)
    # Checked first, and for all stages: `choose_tiling` could not tell which of the two memories is too small.
    require_weight_memory(plan.stages, space)
    tilings = [(stage, choose_tiling(stage, space)) for stage in plan.stages]
    # All stages are cut before the error, so that its advice holds for the whole graph.
    if misfits := [stage for stage, tiling in tilings if tiling is None]:
        raise too_large(misfits)
    fitting = [t for _, t in tilings if t is not None]
    plan.slots = schedule_slots(plan.stages, plan.params, fitting, plan.goal)
    return interleave([task for slot in plan.slots for task in slot_tasks(slot, plan.image)], plan.slots)


def _allocate_tensors(plan: _Plan, first: int, first_writes: Mapping[Buffer, int]) -> int:
    """Give every stored buffer an address; buffers share memory if none is pinned and their live ranges are disjoint.

    Gives the words in all.
    """
    slot_of = [slot.index for slot in plan.slots for _ in slot.stages]
    live = live_ranges(plan.stages, slot_of, first_writes)
    buffers = plan.buffers
    end = len(plan.slots)
    # A pinned buffer overlaps every live range, so it shares memory with none.
    ranges = [(0, end + 1, b.words) if b.pinned else (*live[b], b.words) for b in buffers]
    starts, words = first_fit(ranges)
    for buffer, start in zip(buffers, starts, strict=True):
        buffer.address = first + start
    return words


def _tensors(plan: _Plan, task_emitter: TaskEmitter) -> tuple[TensorBuffer, ...]:
    shared = [] if plan.keep else [n for n in plan.tensors if _is_stored(plan, task_emitter, n)]
    names = plan.tensors if plan.keep else [*plan.graph.inputs, *plan.graph.outputs, *shared]
    found = []
    for name in dict.fromkeys(names):
        view, tensor = plan.stage_list.placement.view(name), plan.stage_list.graph.tensors[name]
        role = Role.INTERMEDIATE if plan.keep else Role.SHARED
        role = Role.OUTPUT if name in plan.graph.outputs else role
        role = Role.INPUT if name in plan.graph.inputs else role
        buffer = view.buffer
        found.append(
            TensorBuffer(
                name=name,
                role=role,
                shape=tensor.shape,
                layout=buffer.layout,
                address=buffer.address + view.first_block * buffer.plane,
                words=view.blocks * buffer.plane if view.channels != buffer.channels else buffer.words,
                scale=tensor.scale,
                zero_point=tensor.zero_point,
                unsigned=tensor.unsigned,
                first_instruction=task_emitter.last_store.get(id(buffer)),
            )
        )
    return tuple(found)


def _local_tensors(plan: _Plan, task_emitter: TaskEmitter, stored: set[str]) -> tuple[LocalTensor, ...]:
    """Tensors that are only in the scratchpad, complete and at whole words."""
    found = []
    for name in plan.tensors:
        view = plan.stage_list.placement.view(name)
        number = task_emitter.local.number(view)
        if name not in stored and number is not None and view.aligned:
            shape = plan.stage_list.graph.tensors[name].shape
            found.append(LocalTensor(name=name, shape=shape, buffer=number, first_block=view.first_block))
    return tuple(found)


def _is_stored(plan: _Plan, task_emitter: TaskEmitter, tensor: str) -> bool:
    view = plan.stage_list.placement.view(tensor)
    buffer = view.buffer
    # Of a tensor that is partly stored, the rest was never in memory.
    return task_emitter.stored[id(buffer)].issuperset(
        range(view.first_block, (view.channel + view.channels - 1) // plan.params.rows + 1)
    )


def _dram_words(emitter: Emitter, count: int) -> list[int]:
    words = [0] * count
    for instruction, origin in zip(emitter.instructions, emitter.provenance, strict=True):
        if instruction.kind in (Kind.LOAD, Kind.STORE):
            words[origin.layer] += move_words(instruction)
    return words


def _layers(plan: _Plan, emitter: Emitter, cycles: Sequence[int]) -> tuple[Layer, ...]:
    words = _dram_words(emitter, len(plan.graph.nodes))
    # Layers that lead to no output have no instructions.
    used = {origin.layer for origin in emitter.provenance}
    issued = zip(emitter.instructions, emitter.provenance, strict=True)
    on_vector = {origin.layer for instruction, origin in issued if instruction.kind is Kind.VDEPTHWISE}
    macs = [node.macs(plan.graph.tensors) if k in used else 0 for k, node in enumerate(plan.graph.nodes)]
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
        for k, node in enumerate(plan.graph.nodes)
    )


def _program(plan: _Plan, emitter: Emitter, task_emitter: TaskEmitter, code_at: int) -> Program:
    params = plan.params
    expected = forecast(emitter.instructions, emitter.provenance, len(plan.graph.nodes), params, plan.memory)
    # Instructions start at a word that is a whole number of instructions, so that each lies in one piece.
    step = instruction_words(1, params)
    code_at += -code_at % step
    tensors = _tensors(plan, task_emitter)
    return Program(
        name=plan.graph.name,
        params=params,
        instructions=tuple(emitter.instructions),
        provenance=tuple(emitter.provenance),
        instructions_at=code_at,
        image_at=0,
        image=plan.image.to_bytes(),
        memory_words=code_at + instruction_words(len(emitter.instructions), params),
        tensors=tensors,
        residences=tuple(residences(Dataflow(plan.stages), plan.slots, params)),
        local_tensors=_local_tensors(plan, task_emitter, {t.name for t in tensors}),
        local_results=tuple(task_emitter.local.results),
        layers=_layers(plan, emitter, expected.layers),
        predicted_cycles=expected.cycles,
        memory=plan.memory,
    )
