"""Compiled kernels: arrays and scalars in, arrays out. The caller allocates, validates and raises."""
