"""What command line and Python API share: compile a model, find its parts again, feed, run, compare, record."""
