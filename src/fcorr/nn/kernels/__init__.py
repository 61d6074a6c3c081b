"""Compiled kernels for single precision on the CPU; importing them needs numba."""
