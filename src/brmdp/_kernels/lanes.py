"""Arithmetic on four numbers at once, and elementary functions made of it.

numba leaves it to LLVM to find operations that can share one vector instruction, and LLVM does not
find them across branches, let alone in calls of the C library's logarithm or arctangent. So kernels
that do the same at several nodes say so: they load LANES adjacent numbers of a matrix row, combine
them by + − * / and ``where_less``, and store them. The result is that of the same operations one by
one, to the last bit. Without compilation, lanes are NumPy arrays.

The elementary functions reduce their argument and evaluate polynomials that are the best of their
degree in Chebyshev's sense, to less than half a rounding error (EPS/2) of the function. With the
rounding of the operations, they err by less than LANES_ERROR relative to their value. Sine and
cosine err by as much relative to 1, and besides by the rounding of the angle itself.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_cast, models, register_model, type_callable

from brmdp._kernels.compiled import kernel

LANES = 4
LANES_ERROR = 5e-16

MANTISSA_BITS = 52
MANTISSA = (1 << MANTISSA_BITS) - 1
# Bits of √½: the significand that ``mantissa`` returns begins there.
ROOT = 0x3FE6A09E667F3BCD
# Adding and subtracting this rounds to an integer, whose lowest bits are then those of the sum.
ROUNDER = 1.5 * 2.0**52


# --- what a vector register can do ----------------------------------------------------------------


def every(number: float) -> Any:
    """The same number in every lane."""
    return np.full(LANES, number)


def load(matrix: Any, row: int) -> Any:
    """The first LANES entries of a row."""
    return matrix[row, :LANES].copy()


def store(matrix: Any, row: int, lanes: Any) -> None:
    """Overwrite the first LANES entries of a row."""
    matrix[row, :LANES] = lanes


def where_less(a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """``then`` in the lanes where a < b, else ``otherwise``."""
    return np.where(np.less(a, b), then, otherwise)


def exponent(lanes: Any) -> Any:
    """The power of 2 by which a number exceeds its ``mantissa``; for positive normal numbers."""
    return ((lanes.view(np.int64) - ROOT) >> MANTISSA_BITS).astype(float)


def mantissa(lanes: Any) -> Any:
    """The number divided by a power of 2, so that it lies between √½ and √2."""
    return (((lanes.view(np.int64) - ROOT) & MANTISSA) + ROOT).view(np.float64)


def square_root(lanes: Any) -> Any:
    """Square root."""
    return np.sqrt(lanes)


def times_power(lanes: Any, power: Any) -> Any:
    """The product with 2^power, for integers ``power`` and within the range of normal numbers."""
    shift = (power + ROUNDER).view(np.int64) << MANTISSA_BITS
    return (lanes.view(np.int64) + shift).view(np.float64)


class _Lanes(types.Type):
    """numba's type of four numbers in a register."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_TYPE = _Lanes()
_NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
_BITS = ir.VectorType(ir.IntType(64), LANES)


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _NUMBERS)


def _bits(number: int) -> Any:
    return ir.Constant(_BITS, [number] * LANES)


@lower_cast(types.Float, _Lanes)
def _spread(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    number = context.cast(builder, value, source, types.float64)
    first = builder.insert_element(
        ir.Constant(_NUMBERS, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
    )
    same = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(_NUMBERS, ir.Undefined), same)


def _all_lanes(context: Any, builder: Any, kinds: Any, values: Any) -> list[Any]:
    return [
        context.cast(builder, value, kind, _TYPE) for kind, value in zip(kinds, values, strict=True)
    ]


def _operator(symbol: Any, instruction: str) -> None:
    """Teach numba a binary operator on lanes, and on lanes and a number."""

    @infer_global(symbol)
    class Typing(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if _TYPE in args and all(kind in (_TYPE, types.float64) for kind in args):
                return signature(_TYPE, *args)
            return None

    def lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return getattr(builder, instruction)(*_all_lanes(context, builder, sig.args, values))

    for kinds in ((_Lanes, _Lanes), (_Lanes, types.Float), (types.Float, _Lanes)):
        lower_builtin(symbol, *kinds)(lower)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _operator(_symbol, _instruction)


@infer_global(abs)
class _AbsTyping(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(_TYPE, _TYPE) if args == (_TYPE,) else None


@lower_builtin(abs, _Lanes)
def _lower_abs(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    bits = builder.and_(builder.bitcast(values[0], _BITS), _bits((1 << 63) - 1))
    return builder.bitcast(bits, _NUMBERS)


@infer_global(operator.getitem)
class _ItemTyping(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if args[0] == _TYPE and isinstance(args[1], types.Integer):
            return signature(types.float64, _TYPE, types.intp)
        return None


@lower_builtin(operator.getitem, _Lanes, types.Integer)
def _lower_item(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    return builder.extract_element(*values)


@type_callable(every)
def _type_every(context: Any) -> Any:
    return lambda number: _TYPE if isinstance(number, types.Float) else None


@lower_builtin(every, types.Float)
def _lower_every(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    return context.cast(builder, values[0], sig.args[0], _TYPE)


def _row(context: Any, builder: Any, kind: Any, matrix: Any, row: Any) -> Any:
    array = context.make_array(kind)(context, builder, matrix)
    zero = context.get_constant(types.intp, 0)
    place = cgutils.get_item_pointer(
        context, builder, kind, array, [row, zero], wraparound=False, boundscheck=False
    )
    return builder.bitcast(place, _NUMBERS.as_pointer())


def _is_matrix(kind: Any) -> bool:
    return (
        isinstance(kind, types.Array)
        and kind.ndim == 2
        and kind.layout == "C"
        and kind.dtype == types.float64
    )


@type_callable(load)
def _type_load(context: Any) -> Any:
    def typer(matrix: Any, row: Any) -> Any:
        return _TYPE if _is_matrix(matrix) and isinstance(row, types.Integer) else None

    return typer


@lower_builtin(load, types.Array, types.Integer)
def _lower_load(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    row = context.cast(builder, values[1], sig.args[1], types.intp)
    return builder.load(_row(context, builder, sig.args[0], values[0], row), align=8)


@type_callable(store)
def _type_store(context: Any) -> Any:
    def typer(matrix: Any, row: Any, lanes: Any) -> Any:
        known = _is_matrix(matrix) and isinstance(row, types.Integer) and lanes == _TYPE
        return types.none if known else None

    return typer


@lower_builtin(store, types.Array, types.Integer, _Lanes)
def _lower_store(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    row = context.cast(builder, values[1], sig.args[1], types.intp)
    builder.store(values[2], _row(context, builder, sig.args[0], values[0], row), align=8)
    return context.get_dummy_value()


@type_callable(where_less)
def _type_where_less(context: Any) -> Any:
    return lambda a, b, then, otherwise: _TYPE


@lower_builtin(where_less, types.Any, types.Any, types.Any, types.Any)
def _lower_where_less(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    a, b, then, otherwise = _all_lanes(context, builder, sig.args, values)
    return builder.select(builder.fcmp_ordered("<", a, b), then, otherwise)


def _unary(function: Any, lower: Any) -> None:
    type_callable(function)(lambda context: lambda lanes: _TYPE)
    lower_builtin(function, _Lanes)(lower)


def _lower_exponent(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    # Made positive, so that the bits can be those of a number beyond 2^52: this needs no conversion
    # of integers, which not all machines can do for vectors.
    positive = builder.sub(builder.bitcast(values[0], _BITS), _bits(ROOT - (1 << 62)))
    number = builder.or_(
        builder.lshr(positive, _bits(MANTISSA_BITS)), _bits(0x433 << MANTISSA_BITS)
    )
    return builder.fsub(
        builder.bitcast(number, _NUMBERS),
        ir.Constant(_NUMBERS, [2.0**52 + (1 << 62 - MANTISSA_BITS)] * LANES),
    )


def _lower_mantissa(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    distance = builder.sub(builder.bitcast(values[0], _BITS), _bits(ROOT))
    return builder.bitcast(
        builder.add(builder.and_(distance, _bits(MANTISSA)), _bits(ROOT)), _NUMBERS
    )


def _lower_square_root(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    kind = ir.FunctionType(_NUMBERS, [_NUMBERS])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f64")
    return builder.call(function, values)


_unary(square_root, _lower_square_root)
_unary(exponent, _lower_exponent)
_unary(mantissa, _lower_mantissa)


@type_callable(times_power)
def _type_times_power(context: Any) -> Any:
    return lambda lanes, power: _TYPE


@lower_builtin(times_power, _Lanes, _Lanes)
def _lower_times_power(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    rounded = builder.fadd(values[1], ir.Constant(_NUMBERS, [ROUNDER] * LANES))
    shift = builder.shl(builder.bitcast(rounded, _BITS), _bits(MANTISSA_BITS))
    return builder.bitcast(builder.add(builder.bitcast(values[0], _BITS), shift), _NUMBERS)


# --- elementary functions -------------------------------------------------------------------------

# log 2 and π/2 as sums of two and three numbers, all but the last short enough for their products
# with integers below 2²⁰ to be exact.
LOG_2 = 0.6931471805599453
LOG_2_HIGH, LOG_2_LOW = 0.6931471803691238, 1.9082149292705877e-10
RIGHT_ANGLE = 1.5707963267948966
RIGHT_HIGH = 1.5707963267341256
RIGHT_MIDDLE = 6.077100506303966e-11
RIGHT_LOW = 2.0222662487959506e-21
TAN_PI_8 = 0.41421356237309503
# exp is taken within these limits, which keeps it and its inverse normal.
MOST_LOGARITHM = 700.0


@kernel
def log_of_one_plus(x):
    """log(1 + x), for 1 + x between the smallest and the largest normal number."""
    one = 1.0 + x
    k = exponent(one)
    # without an exponent, x is more accurate than its sum with 1
    f = where_less(abs(k), 0.5, x, mantissa(one) - 1.0)
    s = f / (2.0 + f)
    w = s * s
    p = 0.18182890556695602 + w * (0.1533167403016786 + w * 0.1461703754879165)
    p = 0.2857142862609589 + w * (0.2222221111514416 + w * p)
    p = 0.666666666666667 + w * (0.3999999999989924 + w * p)
    return k * LOG_2_HIGH + (2.0 * s + (s * (w * p) + k * LOG_2_LOW))


@kernel
def angle(x, y):
    """The angle of x + iy, from 0 to π, for y ≥ 0 that is not zero together with x."""
    width = abs(x)
    small = where_less(y, width, y, width)
    big = where_less(y, width, width, y)
    # beyond π/8, the distance from π/4
    limit = TAN_PI_8 * big
    t = where_less(limit, small, small - big, small) / where_less(limit, small, small + big, big)
    u = t * t
    p = 0.03923044778479309 + u * -0.019175404711104935
    p = 0.05858140904866328 + u * (-0.050854078345894844 + u * p)
    p = 0.07692183125376892 + u * (-0.06664510525508936 + u * p)
    p = 0.11111111015187018 + u * (-0.0909090457530649 + u * p)
    p = 0.19999999999995516 + u * (-0.14285714284665682 + u * p)
    p = -0.3333333333333333 + u * p
    found = (t + t * (u * p)) + where_less(limit, small, 0.5 * RIGHT_ANGLE, 0.0)
    found = where_less(width, y, RIGHT_ANGLE - found, found)
    return where_less(x, 0.0, 2.0 * RIGHT_ANGLE - found, found)


@kernel
def exponential(x):
    """exp(x); beyond ±MOST_LOGARITHM, its value there."""
    x = where_less(x, -MOST_LOGARITHM, -MOST_LOGARITHM, x)
    x = where_less(MOST_LOGARITHM, x, MOST_LOGARITHM, x)
    k = (x * (1.0 / LOG_2) + ROUNDER) - ROUNDER
    r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
    p = 2.7620088445409746e-07 + r * 2.510038549551032e-08
    p = 2.4801521295954376e-05 + r * (2.7557268459997064e-06 + r * p)
    p = 0.0013888888917213717 + r * (0.00019841269863053618 + r * p)
    p = 0.04166666666662413 + r * (0.008333333333330062 + r * p)
    p = 0.5 + r * (0.16666666666666669 + r * p)
    return times_power(1.0 + (r + r * (r * p)), k)


@kernel
def cos_and_sin(x):
    """Cosine and sine; bounded, but meaningless, for angles too large to have a direction."""
    k = (x * (1.0 / RIGHT_ANGLE) + ROUNDER) - ROUNDER
    r = ((x - k * RIGHT_HIGH) - k * RIGHT_MIDDLE) - k * RIGHT_LOW
    r = where_less(r, -0.79, -0.79, r)
    r = where_less(0.79, r, 0.79, r)
    u = r * r
    p = -2.505113165023518e-08 + u * 1.5918115263265974e-10
    p = -0.00019841269836756774 + u * (2.7557316101617874e-06 + u * p)
    p = -0.16666666666666666 + u * (0.008333333333330948 + u * p)
    sin = r + r * (u * p)
    p = 2.087614614655861e-09 + u * -1.1382623647474604e-11
    p = 2.480158729876456e-05 + u * (-2.7557317271145144e-07 + u * p)
    p = 0.041666666666666664 + u * (-0.0013888888888887398 + u * p)
    cos = (1.0 - 0.5 * u) + (u * u) * p
    # quarter turns, from −2 to 2
    q = k - 4.0 * ((0.25 * k + ROUNDER) - ROUNDER)
    odd = abs(abs(q) - 1.0)
    return (
        where_less(odd, 0.5, sin, cos) * where_less(abs(q + 0.5), 1.0, 1.0, -1.0),
        where_less(odd, 0.5, cos, sin) * where_less(abs(q - 0.5), 1.0, 1.0, -1.0),
    )
