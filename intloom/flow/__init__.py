"""Functions that the command line and the Python interface share: compile, load, run, compare, record."""
