"""Custom integer operations.

A custom operation is a node in the user's domain between a QuantizeLinear and a DequantizeLinear (`Q -> MyOp -> DQ`).
Its operands and its result are integers; it interprets their scales itself. Register its semantics in numpy and, if
operations of the accelerator can express it, a lowering to these:

    from intloom.compiler.custom import CustomOp, register

    register(CustomOp(domain="acme", op="Negate", meaning=negate, lower=lower_negate))
"""

from intloom.compiler.ir.ops.custom import AttributeValue, CustomOp, find, register, same_shape, unregister

__all__ = ["AttributeValue", "CustomOp", "find", "register", "same_shape", "unregister"]
