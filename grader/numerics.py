"""Float64 references of attention and of its stages, and the error that honest arithmetic may make.

Every reference returns an `Expected`: the value in float64, computed from the inputs exactly as they are
stored in their dtype, and the two error terms from which `Expected.bound` derives a componentwise bound.

The bound. With S = scale Q K^T (+ bias), P = softmax(S), O = P V, D = head_dim, N keys, u = 2^-24:

    B = |scale| |Q| |K|^T (+ |bias|)              how large the terms of a score are
    E = (P o B) |V| + rowsum(P o B) |O|           what relative errors in the scores do to O
    A = P |V| + |O|                               what relative errors in P, l and the sums do to O
    bound = kappa { [2 u_in + (sqrt(D) + 4) u] E + [u_in + u_P + (sqrt(N) + 8) u] A } + u_out |O| + floor

A score carries a relative error of about (sqrt(D) + 4) u of B: D roundings that add up like a random walk,
and a few more for the scale, the subtraction of the maximum and exp. To first order it moves O by
P_j ds_j (V_j - O), hence E. The weights, the sum l and the accumulation of O over N keys add A. Inputs that
an arithmetic rounds first (TF32 ...) add u_in, probabilities stored in a narrower type u_P, outputs u_out.
kappa = 2 leaves a margin of 3.5 over the worst that correct float32 kernels showed on an H200.

`floor` is the only absolute part: arithmetic may flush what falls below its smallest normal number to zero
(`-use_fast_math` does), so a weight or a product may be off by that much whatever its relative accuracy.
It keeps the bound above zero where everything underflows, and is far below anything a bug produces.

Half-precision arrays: float16 is NumPy's; bfloat16, which NumPy lacks, is a uint16 array of the same bits
(`to_bfloat16`, `from_bfloat16`). `as_float64` reads any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.errors import GraderError
from grader.records import ToleranceSpec

Float64 = NDArray[np.float64]
Array = NDArray[Any]

UNIT_ROUNDOFF = 2.0**-24  # of float32, in which every arithmetic below accumulates
_SMALLEST_NORMAL = 2.0**-126  # of float32, TF32 and bfloat16
_BLOCK_ELEMENTS = 2**18  # of the scores held at once: 2 MB an array


@dataclass(frozen=True)
class Arithmetic:
    """How exact a way of computing is: relative roundings of inputs, probabilities and outputs.

    `tiny` is the absolute error that its smallest weights may have.
    """

    title: str
    u_in: float
    u_p: float
    u_out: float
    tiny: float = _SMALLEST_NORMAL


ARITHMETICS: dict[str, Arithmetic] = {
    "float32": Arithmetic("float32", 0.0, 0.0, 0.0),
    "tf32": Arithmetic("TF32 tensor cores", 2.0**-11, 2.0**-11, 0.0),
    "tf32x3": Arithmetic("three TF32 products", 2.0**-21, 2.0**-21, 0.0),
    "fp16x3": Arithmetic("three float16 products", 2.0**-21, 2.0**-21, 0.0, tiny=2.0**-36),
    "bf16x6": Arithmetic("six bfloat16 products", 2.0**-23, 2.0**-23, 0.0),
    "float16": Arithmetic("float16 with float32 sums", 0.0, 2.0**-11, 2.0**-11, tiny=2.0**-25),
    "bfloat16": Arithmetic("bfloat16 with float32 sums", 0.0, 2.0**-8, 2.0**-8),
}


@dataclass(frozen=True)
class Expected:
    """A reference value and the terms of its error bound (module docstring).

    `value`, `score_error` (E) and `sum_error` (A) have the shape of the output. `depth` is the number of
    products in a score (D), `terms` the number of terms in the last sum (N). `reach` times the arithmetic's
    `tiny` is the floor; it broadcasts against `value`.
    """

    value: Float64
    score_error: Float64
    sum_error: Float64
    depth: int
    terms: int
    reach: Float64

    def bound(self, tolerance: ToleranceSpec) -> Float64:
        """Return the largest error allowed in each element, in the shape of `value`.

        Raises `GraderError` when the tolerance names an arithmetic that is not in `ARITHMETICS`.
        """
        if tolerance.atol is not None or tolerance.rtol is not None:
            return (tolerance.atol or 0.0) + (tolerance.rtol or 0.0) * np.abs(self.value)
        arithmetic = _arithmetic(tolerance)
        of_scores, of_sums = self._coefficients(arithmetic)
        bound = tolerance.kappa * (of_scores * self.score_error + of_sums * self.sum_error)
        if arithmetic.u_out:
            bound += arithmetic.u_out * np.abs(self.value)
        bound += arithmetic.tiny * self.reach
        return bound

    def describe(self, tolerance: ToleranceSpec) -> str:
        """Say in a sentence or two how the bound came about, with its figures."""
        if tolerance.atol is not None or tolerance.rtol is not None:
            atol, rtol = tolerance.atol or 0.0, tolerance.rtol or 0.0
            return f"The assignment allows an error of {atol:.2g} + {rtol:.2g} x |expected| in each element."
        if self.terms == 0:
            return "The values are exact, so no error is allowed."
        arithmetic = _arithmetic(tolerance)
        of_scores, of_sums = self._coefficients(arithmetic)
        allowed = self.bound(tolerance)
        text = (
            f"Allowed error: {tolerance.kappa:g} x ({of_scores:.1e} x E + {of_sums:.1e} x A), what the "
            f"roundings of {arithmetic.title} can do in scores of {self.depth} products (E) and in sums of "
            f"{self.terms} terms (A)."
        )
        if not allowed.size:
            return text
        return f"{text} In this output that is {allowed.min():.1e} to {allowed.max():.1e}."

    def _coefficients(self, arithmetic: Arithmetic) -> tuple[float, float]:
        of_scores = 2 * arithmetic.u_in + (sqrt(self.depth) + 4) * UNIT_ROUNDOFF
        of_sums = arithmetic.u_in + arithmetic.u_p + (sqrt(self.terms) + 8) * UNIT_ROUNDOFF
        return of_scores, of_sums


def attention(
    Q: Array,
    K: Array,
    V: Array,
    *,
    scale: float | None = None,
    causal: bool = False,
    mask: Array | None = None,
    bias: Array | None = None,
    lengths: Array | None = None,
) -> Expected:
    """Return O = softmax(scale Q K^T + bias) V and its bound (module docstring).

    Q [..., Sq, D], K [..., Sk, D], V [..., Sk, Dv] give O [..., Sq, Dv]; the leading dims (batch, head)
    broadcast. `scale` is 1/sqrt(D) when None. `causal` aligns the last query with the last key (bottom
    right): query i sees keys j <= i + Sk - Sq. `mask` broadcasts to [..., Sq, Sk]: integers and bools say
    which keys may be seen (nonzero: visible), floats are added to the scores (-inf: hidden). `bias` is
    added too. `lengths` holds the number of valid keys for the leading dims, left-aligned: [B] fits [B, H].
    A query that sees no key at all gives O = 0.
    """
    q, k, v = as_float64(Q), as_float64(K), as_float64(V)
    leading = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    n_queries, depth = q.shape[-2:]
    n_keys, width = v.shape[-2:]
    q, k, v = (np.broadcast_to(x, leading + x.shape[-2:]) for x in (q, k, v))
    visibility = _Visibility(leading, n_queries, n_keys, causal, mask, bias, lengths)
    factor = 1 / sqrt(depth) if scale is None else float(scale)

    value, score_error, sum_error = (np.zeros((*leading, n_queries, width)) for _ in range(3))
    for head in np.ndindex(leading):
        keys, values = k[head], v[head]
        key_sizes, value_sizes = np.abs(keys.T), np.abs(values)
        for rows in _blocks(n_queries, n_keys):
            queries, at = q[head][rows], (*head, rows)
            added = visibility.added(head, rows)
            S = factor * (queries @ keys.T)
            B = abs(factor) * (np.abs(queries) @ key_sizes)
            if added is not None:
                S += added
                B += np.abs(np.where(np.isfinite(added), added, 0.0))
            P = _softmax(S)
            value[at] = P @ values
            sum_error[at] = P @ value_sizes + np.abs(value[at])
            np.multiply(P, B, out=B)
            score_error[at] = B @ value_sizes + B.sum(axis=-1, keepdims=True) * np.abs(value[at])
    # A weight flushed to zero costs tiny |V|; a product or an output, tiny.
    reach = np.abs(v).sum(axis=-2, keepdims=True) + (n_keys + 1)
    return Expected(value, score_error, sum_error, depth, n_keys, reach)


def scores(Q: Array, K: Array, *, scale: float | None = None) -> Expected:
    """Return S = scale Q K^T, for Q [..., Sq, D] and K [..., Sk, D]; `scale` is 1/sqrt(D) when None.

    The bound is that of `matmul` with |scale| |Q| |K|^T for the size of the terms: one more rounding, for
    the scale, is within its constant.
    """
    q, k = as_float64(Q), as_float64(K)
    factor = 1 / sqrt(q.shape[-1]) if scale is None else float(scale)
    return matmul(factor * q, np.swapaxes(k, -1, -2))


def softmax_rows(S: Array) -> Expected:
    """Return P = softmax(S) over the last axis; a row that is -inf throughout gives 0.

    S - m is rounded once, and exp(x) of the GPU's fast intrinsic has a relative error that grows with |x|
    (about (4 + 2.4 |x|) u), so a weight errs by a few u |S - m|, and the row's sum by the mean of that. This
    is the bound of `attention` with B = |S - m|, D = 1 and V the identity:

        E = P o B + rowsum(P o B) P,    A = 2 P
    """
    s = as_float64(S)
    P = _softmax(s)
    with np.errstate(invalid="ignore"):
        B = np.where(P > 0, np.abs(s - s.max(axis=-1, keepdims=True, initial=-np.inf)), 0.0)
    np.multiply(P, B, out=B)
    score_error = B + B.sum(axis=-1, keepdims=True) * P
    return Expected(P, score_error, 2 * P, 1, s.shape[-1], np.full((1,) * s.ndim, 2.0))


def matmul(A: Array, B: Array) -> Expected:
    """Return C = A B for A [..., M, K] and B [..., K, N].

    Rounding K products and sums errs by about sqrt(K) u |A| |B|, and by twice that where all terms have one
    sign, since roundings at the same magnitude then pull the same way: E and A of the bound are both
    |A| |B|, with D = N = K.
    """
    a, b = as_float64(A), as_float64(B)
    sizes = np.abs(a) @ np.abs(b)
    inner = a.shape[-1]
    return Expected(a @ b, sizes, sizes, inner, inner, np.full((1,) * sizes.ndim, inner + 1.0))


def exact(value: Array) -> Expected:
    """Return `value` as an expectation that allows no error: integers, copies, masks."""
    v = as_float64(value)
    nothing = np.zeros((1,) * v.ndim)
    return Expected(v, np.zeros_like(v), np.zeros_like(v), 0, 0, nothing)


def as_float64(array: Array) -> Float64:
    """Return the exact values of an array of any dtype that an assignment can name, in float64."""
    if array.dtype == np.uint16:
        return from_bfloat16(array)
    return np.asarray(array, dtype=np.float64)


def from_bfloat16(bits: NDArray[np.uint16]) -> Float64:
    """Return the values of bfloat16 numbers given as their bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def to_bfloat16(values: Array) -> NDArray[np.uint16]:
    """Return the bits of `values` rounded to bfloat16, ties to even. A NaN stays a NaN."""
    single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    # Adding the rounding bias to a NaN could carry it over into a zero.
    return np.where(np.isnan(single), 0x7FC0, rounded).astype(np.uint16)


class _Visibility:
    """What is added to the scores: biases, and -inf where a key is hidden."""

    def __init__(
        self,
        leading: tuple[int, ...],
        n_queries: int,
        n_keys: int,
        causal: bool,
        mask: Array | None,
        bias: Array | None,
        lengths: Array | None,
    ) -> None:
        shape = (*leading, n_queries, n_keys)
        self.additive = [
            np.broadcast_to(part, shape) for part in (_as_additive(mask), bias) if part is not None
        ]
        self.diagonal = n_keys - n_queries if causal else None
        self.lengths = None
        if lengths is not None:
            padded = lengths.reshape(lengths.shape + (1,) * (len(leading) - lengths.ndim))
            self.lengths = np.broadcast_to(padded, leading)
        self.shape = shape

    def added(self, head: tuple[int, ...], rows: slice) -> Float64 | None:
        """Return what is added to the scores of these query rows, [rows, Sk]; None: nothing."""
        if not self.additive and self.diagonal is None and self.lengths is None:
            return None
        total = np.zeros((len(range(*rows.indices(self.shape[-2]))), self.shape[-1]))
        for part in self.additive:
            total += as_float64(part[head][rows])
        key = np.arange(self.shape[-1])
        if self.diagonal is not None:
            query = np.arange(rows.start, rows.stop)[:, None]
            total[key > query + self.diagonal] = -np.inf
        if self.lengths is not None:
            total[:, key >= self.lengths[head]] = -np.inf
        return total


def _as_additive(mask: Array | None) -> Array | None:
    """Turn a mask of bools or integers (nonzero: visible) into one that is added (hidden: -inf)."""
    if mask is None or mask.dtype.kind == "f" or mask.dtype == np.uint16:
        return mask
    return np.where(mask != 0, 0.0, -np.inf)


def _softmax(S: Float64) -> Float64:
    top = S.max(axis=-1, keepdims=True, initial=-np.inf)
    P = S - np.where(np.isfinite(top), top, 0.0)  # -inf - -inf would be NaN
    np.exp(P, out=P)
    total = P.sum(axis=-1, keepdims=True)
    P /= np.where(total > 0, total, 1.0)  # a row without a visible key stays 0
    return P


def _blocks(n_queries: int, n_keys: int) -> Iterator[slice]:
    """Cut the query rows so that a block of scores stays small whatever N is."""
    step = max(1, _BLOCK_ELEMENTS // max(1, n_keys))
    for start in range(0, n_queries, step):
        yield slice(start, min(start + step, n_queries))


def _arithmetic(tolerance: ToleranceSpec) -> Arithmetic:
    try:
        return ARITHMETICS[tolerance.arithmetic]
    except KeyError:
        raise GraderError(
            f"unknown arithmetic '{tolerance.arithmetic}' in [tolerance]",
            f"expected one of: {', '.join(ARITHMETICS)}; or give atol and rtol",
        ) from None
