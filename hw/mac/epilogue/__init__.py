"""From accumulator to int8: requantizers, lookup table and residual adder."""
