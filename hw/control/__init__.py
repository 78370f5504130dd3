"""Control: fetch, dispatch, instruction queues, wait checks, run control, registers, counters, faults."""
