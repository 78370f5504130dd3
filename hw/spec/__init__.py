"""The specification: parameters, instructions, registers and the integer law, in plain Python.

It imports nothing else of the project. Hardware, compiler and simulator derive every width, code and rounding from it.
"""
