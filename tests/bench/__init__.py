"""Benchmarks of the grader itself: `make bench`. Figures and ratios, never a pass or a fail."""
