"""Sum of count * log(x) over patterns, vectorised.

The logarithm of the C library is called one number at a time and would take as long as the rest of a branch's likelihood;
this one is a polynomial on the mantissa that the compiler turns into vector code (relative error below 1e-15).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vaiphy.kernels.compile import inlined

LN2 = 0.6931471805599453
# Adding this to the bits carries into the exponent when the mantissa is above sqrt(2).
ABOVE_SQRT2 = np.int64(0x0010000000000000 - 0x0006A09E667F3BCD)
TINIEST = 2.2250738585072014e-308
# The type hints of an intrinsic are those of its typing stage, not those of a call.
instruction: Any = intrinsic


@instruction
def bits_of(typing_context: Any, value: Any) -> Any:
    """The bits of a float64 as int64."""
    return types.int64(types.float64), lambda context, builder, signature, args: builder.bitcast(args[0], ir.IntType(64))


@instruction
def float_of(typing_context: Any, value: Any) -> Any:
    """The float64 with the given bits."""
    return types.float64(types.int64), lambda context, builder, signature, args: builder.bitcast(args[0], ir.DoubleType())


@inlined
def quick_log(value):
    """log(value) for a normal positive float64."""
    bits = bits_of(value)
    biased = (bits + ABOVE_SQRT2) >> np.int64(52)  # exponent, one up where the mantissa is above sqrt(2)
    mantissa = float_of(bits - (biased << np.int64(52)) + np.int64(0x3FF0000000000000))
    exponent = np.float64(np.int32(biased - np.int64(1023)))  # 32 bits: AVX2 converts no 64-bit integers
    s = (mantissa - 1.0) / (mantissa + 1.0)
    t = s * s
    tail = t * (1.0 / 3.0 + t * (0.2 + t * (1.0 / 7.0 + t * (1.0 / 9.0 + t * (1.0 / 11.0 + t * (1.0 / 13.0 + t * (
        1.0 / 15.0 + t * (1.0 / 17.0 + t * (1.0 / 19.0 + t * (1.0 / 21.0))))))))))  # fmt: skip
    return exponent * LN2 + (s + s) * (1.0 + tail)


@inlined
def log_product(values, begin, end, least):
    """log of the product of values[begin:end], those below `least` (a normal positive number) taken as `least`.

    One logarithm for 512 numbers: their exponents are added, and their mantissas, between 1 and 2, multiplied.
    """
    total = 0.0
    for start in range(begin, end, 512):
        some = values[start : min(start + 512, end)]
        exponents = np.int64(0)
        product = 1.0
        for p in range(some.shape[0]):
            bits = bits_of(max(some[p], least))
            exponents += bits >> np.int64(52)
            product *= float_of((bits & np.int64(0x000FFFFFFFFFFFFF)) | np.int64(0x3FF0000000000000))
        total += np.float64(exponents - 1023 * some.shape[0]) * LN2 + np.log(product)
    return total


@inlined
def weighted_log_sum(values, counts, begin, width):
    """sum_p counts[begin + p] * log(values[p]) for p < width.

    If any value is zero, subnormal, negative, infinite or NaN, all take the exact, slow way, so that an impossible
    pattern gives -inf.
    """
    total = 0.0
    n_odd = 0
    for p in range(width):
        n_odd += (values[p] < TINIEST) | (values[p] == np.inf) | (values[p] != values[p])
    if n_odd > 0:
        for p in range(width):
            total += counts[begin + p] * np.log(values[p])
        return total
    for p in range(width):
        total += counts[begin + p] * quick_log(values[p])
    return total
