"""Benchmarks: how fast compiled programs are, as ratios to plain NumPy and to other compilers.

`python -m benchmarks` measures contestants in turn in one process and prints ratios, since only
these mean something on another machine. `pytest benchmarks` gives pytest-benchmark's view of each
contestant alone. Nothing here asserts a time.
"""
