"""Mutation testing of RTL: it tells whether the tests of a component find small faults in it.

1. The component's bench runs once: every elaboration tells where faults can be planted (`sites`).
2. Faults are drawn. Each is planted at elaboration, and the bench runs in a copy of the process (`bench`).
3. A fault is found if a test of the bench fails.
4. Of the others, some are proved equivalent to the component without a fault (`equivalence`), and some are listed with
   a reason (`listed`). The rest are holes in the bench.
"""
