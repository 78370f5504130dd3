"""Rewriting passes on the imported model and on the integer graph, one pass a file."""
