"""The specification in plain Python: parameters, instructions, registers, fixed-point arithmetic, formats and timing.

It imports only `intloom.common`. Hardware, compiler and simulator derive every width, opcode, rounding rule, memory
format and latency from it.
"""
