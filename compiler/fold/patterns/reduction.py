"""Axes of operators that reduce several values to one."""

from intloom.compiler.importer import Model, OnnxNode


def reduced_axes(model: Model, node: OnnxNode, rank: int) -> tuple[int, ...]:
    """The axes, ascending, over which a reduction or GlobalAveragePool reduces a value of this rank."""
    if node.op == "GlobalAveragePool":
        return tuple(range(2, rank))
    axes = node.integers("axes", ())
    # The axes are an input from opset 18 on.
    given = model.constant(node.input(1)) if node.input(1) else None
    if given is not None:
        axes = tuple(int(a) for a in given.ravel())
    if not axes and node.integer("noop_with_empty_axes", 0):
        return ()
    return tuple(sorted(a % rank for a in axes)) or tuple(range(rank))
