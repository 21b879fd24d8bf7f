"""Tasks that worker processes of the tests can import."""

import os

import numpy as np


def scaled(factor, offset, values):
    """A task: its shared values, then its piece."""
    values *= factor  # a worker's copy, and writable
    return values + offset


def failing(factor, offset, values):
    raise ArithmeticError(f"piece {values[0]:.0f}")


def dying(factor, offset, values):
    os._exit(3)


def drawn(seed):
    return np.random.default_rng(seed).random(3)
