"""Control: fetch, dispatch, semaphores, registers, counters, faults."""
