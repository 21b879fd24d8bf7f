"""Timed comparisons: `make bench`, and `make bench-quick` for a few minutes of them. See docs/benchmarks.md."""
