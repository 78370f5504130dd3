"""Instruction streams: constants, waits derived from conflicts, and the proof that a program is sound."""

from intloom.compiler.emit.check import check_program

__all__ = ["check_program"]
