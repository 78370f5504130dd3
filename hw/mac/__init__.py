"""The MAC unit: one instruction, CONV, at one input word against `rows` x `cols` weights a cycle."""
