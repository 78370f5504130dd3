"""Folding: passes that turn a quantised model into the integer graph, one a file."""
