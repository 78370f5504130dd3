"""Scheduling: from an integer graph to a program."""

from intloom.compiler.schedule.compile import compile_graph

__all__ = ["compile_graph"]
