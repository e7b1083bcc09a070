"""The inputs of a case: named distributions, each of which exposes some bugs and hides others.

A *joint* distribution fills the query, key and value arrays of one call together, so that their scores
have the property that its name states, at scale 1/sqrt(d); arrays of scores (`S`) and of probabilities
(`P`), where an entry takes them, are computed from the same queries and keys. A *single* distribution fills
any array by itself. A distribution is a public function of this module that returns `Qkv` or `Values`; its
docstring says what it is good for, and the first line is what reports print.

The numbers depend on the seed, the distribution, the array's name and its shape, and on nothing else: not on
the order of parameters, and not on NumPy's version, since only the raw bits of PCG64, whose stream NumPy
guarantees, are used. bfloat16 arrays are uint16 arrays of bits (`grader.numerics.to_bfloat16`).
"""

from __future__ import annotations

import ast
import hashlib
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.errors import GraderError
from grader.numerics import softmax_rows, to_bfloat16
from grader.records import Parameter

Values = NDArray[np.float64]
Number = bool | int | float
Shape = tuple[int, ...]

NULL = "null"  # not a distribution: passes nullptr to a nullable parameter

_PREFIXES = ("d_", "h_", "dev_")
_FULL_NAMES = {
    "query": "q",
    "queries": "q",
    "key": "k",
    "keys": "k",
    "value": "v",
    "values": "v",
    "scores": "s",
    "probs": "p",
    "probabilities": "p",
}
_DEFAULT_WIDTH = 64  # head_dim behind an array of scores that comes without queries and keys


@dataclass(frozen=True)
class Sizes:
    """Shapes of the arrays of one call: queries [..., Sq, D], keys [..., Sk, D], values [..., Sk, Dv]."""

    q: Shape
    k: Shape
    v: Shape


@dataclass(frozen=True)
class Qkv:
    """Queries, keys and values, before they are rounded to their dtypes."""

    q: Values
    k: Values
    v: Values


class Random:
    """Reproducible numbers: what is drawn under a label depends on the content and the label alone."""

    def __init__(self, *content: object) -> None:
        self._content = repr(content)

    def uniform(self, label: str, shape: Shape) -> Values:
        """Return numbers in [0, 1), each a multiple of 2^-53."""
        digest = hashlib.sha256(f"{self._content}/{label}/{shape}".encode()).digest()
        words = np.frombuffer(digest, dtype="<u4").tolist()
        bits = np.random.PCG64(np.random.SeedSequence(words)).random_raw(prod(shape))
        return np.asarray((bits >> np.uint64(11)) * 2.0**-53, dtype=np.float64).reshape(shape)

    def normal(self, label: str, shape: Shape) -> Values:
        """Return standard normal numbers (Box and Muller's transform)."""
        count = prod(shape)
        half = (count + 1) // 2
        pairs = self.uniform(label, (2, half))
        radius, angle = np.sqrt(-2 * np.log1p(-pairs[0])), 2 * np.pi * pairs[1]
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count].reshape(shape)


# --- joint distributions ---------------------------------------------------------------------------


def normal(sizes: Sizes, random: Random) -> Qkv:
    """Q, K and V are standard normal.

    Exposes most bugs of indexing, scale and masking. Hides a missing maximum (scores stay within about 5),
    and at small N much of what only large scores show.
    """
    return Qkv(random.normal("q", sizes.q), random.normal("k", sizes.k), random.normal("v", sizes.v))


def uniform(sizes: Sizes, random: Random) -> Qkv:
    """Q, K and V are uniform in [0, 1), so that all scores and values are positive.

    Exposes a dropped or an invented key best (nothing cancels) and sums in too narrow a type. Hides a wrong
    scale from careless tolerances: the scores hardly differ.
    """
    return Qkv(random.uniform("q", sizes.q), random.uniform("k", sizes.k), random.uniform("v", sizes.v))


def increasing(sizes: Sizes, random: Random) -> Qkv:
    """Scores rise with the key over a range of 400, so that the running maximum changes all the time.

    Exposes a missing rescale of l or O, and a dropped last key or tile. Hides an unmasked tail, which
    weighs nothing beside the last keys when its score is 0, and everything about the first keys.
    """
    return _with_logits(sizes, random, np.linspace(-200.0, 200.0, sizes.k[-2]))


def decreasing(sizes: Sizes, random: Random) -> Qkv:
    """Scores fall with the key over a range of 400, so that the first tile holds the maximum.

    Exposes the tile's maximum taken for the running one (infinite rescale factors, then NaN). Hides a
    missing rescale, and everything about the last keys.
    """
    return _with_logits(sizes, random, np.linspace(200.0, -200.0, sizes.k[-2]))


def low(sizes: Sizes, random: Random) -> Qkv:
    """All scores are about -200.

    Exposes a running maximum that starts at 0 (every exp underflows: 0/0), and padded keys with score 0,
    which then win. Hides a missing rescale.
    """
    return _with_logits(sizes, random, -200.0 + random.normal("logits", _rows_of(sizes.k)))


def high(sizes: Sizes, random: Random) -> Qkv:
    """All scores are about +200.

    Exposes exp without the maximum subtracted (infinity, then NaN). Hides padded keys with score 0.
    """
    return _with_logits(sizes, random, 200.0 + random.normal("logits", _rows_of(sizes.k)))


def very_low(sizes: Sizes, random: Random) -> Qkv:
    """All scores are about -20000.

    Exposes a finite number such as -1e4 used for minus infinity. Float32 scores are only good to about
    0.002 here, so it hides what changes the output little.
    """
    return _with_logits(sizes, random, -20000.0 + random.normal("logits", _rows_of(sizes.k)))


def equal(sizes: Sizes, random: Random) -> Qkv:
    """All keys are the same, so that all scores of a query are equal and O is the mean of V.

    Exposes a dropped or invented key, and dividing by anything but N. Hides a wrong scale and a missing
    rescale.
    """
    key = random.normal("k", (*sizes.k[:-2], 1, sizes.k[-1]))
    return Qkv(random.normal("q", sizes.q), np.broadcast_to(key, sizes.k).copy(), random.normal("v", sizes.v))


def sink(sizes: Sizes, random: Random) -> Qkv:
    """One key gets nearly all the weight: its score is 30, the others are about 0.

    Exposes wrong key indices, a dropped tile when the sink is in it, a missing rescale when the sink is not
    in the first tile. Hides everything about the other keys.
    """
    logits = random.normal("logits", _rows_of(sizes.k))
    logits[..., int(random.uniform("sink", ()) * sizes.k[-2])] = 30.0
    return _with_logits(sizes, random, logits)


def constant_v(sizes: Sizes, random: Random) -> Qkv:
    """Q and K are normal; every value is the same, so that O must equal it whatever the scores are.

    Exposes weights that do not sum to 1. Hides everything else about the scores.
    """
    value = random.normal("v", (*sizes.v[:-2], 1, sizes.v[-1]))
    made = normal(sizes, random)
    return Qkv(made.q, made.k, np.broadcast_to(value, sizes.v).copy())


def one_hot_v(sizes: Sizes, random: Random) -> Qkv:
    """Q and K are normal; value j is 1 in column j mod d and 0 elsewhere, so that O shows P itself.

    Exposes which keys were dropped, repeated or swapped (for N up to d, O is P). Hides nothing in
    particular, but most elements of O are small.
    """
    made = normal(sizes, random)
    key, column = np.arange(sizes.v[-2])[:, None], np.arange(sizes.v[-1])
    return Qkv(made.q, made.k, np.broadcast_to(key % sizes.v[-1] == column, sizes.v).astype(np.float64))


def offset(sizes: Sizes, random: Random) -> Qkv:
    """Q and K are normal plus 4, so that scores are about 16 sqrt(d) and spread widely.

    Exposes a missing maximum, a wrong scale, and scores in too narrow a type. Hides little, but few keys
    carry the weight.
    """
    made = normal(sizes, random)
    return Qkv(made.q + 4.0, made.k + 4.0, made.v)


def scaled(sizes: Sizes, random: Random) -> Qkv:
    """Q is normal times 8, so that scores are spread over about plus or minus 30.

    Exposes a missing rescale (the maximum moves between tiles, in both directions) and too narrow a type.
    Hides what changes all weights a little.
    """
    made = normal(sizes, random)
    return Qkv(8.0 * made.q, made.k, made.v)


# --- single distributions --------------------------------------------------------------------------


def zeros(shape: Shape, random: Random, sizes: Sizes) -> Values:
    """All zeros: no bias, no mask to add, nothing visible."""
    return np.zeros(shape)


def ones(shape: Shape, random: Random, sizes: Sizes) -> Values:
    """All ones: everything visible."""
    return np.ones(shape)


def mask(shape: Shape, random: Random, sizes: Sizes) -> Values:
    """About two thirds of the keys are visible (1) and the others hidden (0); each query sees one at least.

    Exposes a mask that is ignored, transposed, or applied after the softmax. Hides what happens to a query
    that sees nothing.
    """
    visible = random.uniform("mask", shape) < 2 / 3
    grid = np.atleast_2d(visible)  # a view, also of a mask for one query
    query = np.arange(grid.shape[-2])
    if grid.size:
        grid[..., query, query % grid.shape[-1]] = True
    return visible.astype(np.float64)


def masked_rows(shape: Shape, random: Random, sizes: Sizes) -> Values:
    """As `mask`, but every fourth query sees no key at all, and must give 0.

    Exposes -inf minus -inf (NaN) and finite stand-ins for -inf (the mean of V).
    """
    visible = mask(shape, random, sizes)
    np.atleast_2d(visible)[..., ::4, :] = 0.0
    return visible


def added_mask(shape: Shape, random: Random, sizes: Sizes) -> Values:
    """As `mask`, but to be added to the scores: 0 where visible, minus infinity where hidden."""
    return np.where(mask(shape, random, sizes) > 0, 0.0, -np.inf)


def added_masked_rows(shape: Shape, random: Random, sizes: Sizes) -> Values:
    """As `masked_rows`, but to be added to the scores: 0 where visible, minus infinity where hidden."""
    return np.where(masked_rows(shape, random, sizes) > 0, 0.0, -np.inf)


def lengths(shape: Shape, random: Random, sizes: Sizes) -> Values:
    """Numbers of valid keys, from 1 to all of them; the first is all of them.

    Exposes lengths that are ignored, or read for the wrong batch element.
    """
    longest = max(1, sizes.k[-2])
    drawn = 1.0 + np.floor(random.uniform("lengths", shape) * longest)
    drawn.reshape(-1)[:1] = longest
    return drawn


DISTRIBUTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for name, function in list(globals().items())
    if not name.startswith("_")
    and getattr(function, "__annotations__", {}).get("return") in ("Qkv", "Values")
}


# --- making the arrays of a case -------------------------------------------------------------------


def make(
    parameters: Iterable[Parameter],
    dims: Mapping[str, int],
    distribution: str | Mapping[str, str],
    seed: int,
) -> dict[str, NDArray[Any] | None]:
    """Return the arrays that a call starts from, by parameter name; None stands for a null pointer.

    Arrays that are `in` or `inout` are made, in their dtype; outputs and scalars are not. `distribution` is
    one name for the whole case, or a name for each array (`normal` for those not named). A joint
    distribution of a whole case leaves arrays that are not Q, K, V, S or P to a default of their dtype:
    normal, or for int32 `lengths`, for uint8 `mask`. Raises `GraderError` for an unknown name.
    """
    arrays = [p for p in parameters if p.role in ("in", "inout")]
    shapes = {p.name: shape(p, dims) for p in arrays}
    sizes = _sizes({_plain(name): extents for name, extents in shapes.items()}, dims)
    made: dict[str, Qkv] = {}
    result: dict[str, NDArray[Any] | None] = {}
    for p in arrays:
        name = distribution if isinstance(distribution, str) else distribution.get(p.name, "normal")
        if name == NULL and p.nullable:
            result[p.name] = None
            continue
        name = _for_array(p, "normal" if name == NULL else name)
        if _is_joint(name):
            joint = made.setdefault(name, DISTRIBUTIONS[name](sizes, Random(seed, name)))
            values = _part(joint, _plain(p.name)) if _is_attention(p, shapes[p.name]) else None
            if values is None:
                values = Random(seed, name, _plain(p.name)).normal("other", shapes[p.name])
        else:
            values = DISTRIBUTIONS[name](shapes[p.name], Random(seed, name, _plain(p.name)), sizes)
        result[p.name] = quantise(values, p.dtype)
    return result


def describe(name: str) -> str:
    """Return the one line that says what a distribution is. Raises `GraderError` for an unknown name."""
    return (_find(name).__doc__ or "").partition("\n")[0]


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return what holds a dtype of a manifest in NumPy: itself, but uint16 for the bits of bfloat16."""
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def quantise(values: Values, dtype: str) -> NDArray[Any]:
    """Round to the dtype of a manifest, to nearest. bfloat16 becomes a uint16 array of bits."""
    if dtype == "bfloat16":
        return to_bfloat16(values)
    return values.astype(dtype)


def shape(parameter: Parameter, dims: Mapping[str, Number]) -> Shape:
    """Return the extents of an array parameter, whose dims are expressions over `dims`.

    Raises `GraderError` when an expression does not resolve to a whole number.
    """
    extents = []
    for expression in parameter.dims:
        value = evaluate(expression, dims)
        if value != int(value):
            raise GraderError(
                f"the extent '{expression}' of '{parameter.name}' is {value}, not a whole number"
            )
        extents.append(int(value))
    return tuple(extents)


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "sqrt": sqrt}


def evaluate(expression: str, names: Mapping[str, Number]) -> Number:
    """Return the value of an arithmetic expression such as `H * N` or `1/sqrt(d)`.

    Numbers, `names`, + - * / // % **, min, max and sqrt, and nothing else. Raises `GraderError` naming the
    expression, and the name when it is one that is not known.
    """
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body, names)
    except KeyError as error:
        known = ", ".join(names) or "none"
        message = f"the expression '{expression}' uses '{error.args[0]}', which is not known here"
        raise GraderError(message, f"known names: {known}; functions: {', '.join(_FUNCTIONS)}") from None
    except (SyntaxError, ArithmeticError, ValueError, TypeError) as error:
        raise GraderError(f"cannot evaluate the expression '{expression}': {error}") from None
    return value


def _value(node: ast.expr, names: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return number
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))  # type: ignore[no-any-return]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(operand, names))  # type: ignore[no-any-return]
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _FUNCTIONS[name](*(_value(argument, names) for argument in arguments))  # type: ignore[no-any-return]
    raise ValueError(f"'{ast.unparse(node)}' is not arithmetic")


def _find(name: str) -> Callable[..., Any]:
    if name not in DISTRIBUTIONS:
        raise GraderError(
            f"unknown distribution '{name}'", f"expected one of: {', '.join(sorted(DISTRIBUTIONS))}"
        )
    return DISTRIBUTIONS[name]


def _is_joint(name: str) -> bool:
    return bool(_find(name).__annotations__["return"] == "Qkv")


def _plain(name: str) -> str:
    """`d_Q`, `Q` and `query` are the same array."""
    lower = name.lower()
    for prefix in _PREFIXES:
        lower = lower.removeprefix(prefix)
    return _FULL_NAMES.get(lower, lower)


def _is_attention(parameter: Parameter, extents: Shape) -> bool:
    return _plain(parameter.name) in ("q", "k", "v", "s", "p") and len(extents) >= 2


def _for_array(parameter: Parameter, name: str) -> str:
    """A joint distribution means nothing for lengths and masks: those get the default of their dtype."""
    if _is_joint(name) and parameter.dtype in ("int32", "uint8"):
        return "mask" if parameter.dtype == "uint8" else "lengths"
    return name


def _sizes(shapes: Mapping[str, Shape], dims: Mapping[str, int]) -> Sizes:
    """Take the shapes of Q, K and V from those arrays that are there, and imagine the others."""
    known = {name: extents for name, extents in shapes.items() if name in "qkvsp" and len(extents) >= 2}
    width = next((dims[name] for name in ("d", "D", "head_dim") if name in dims), _DEFAULT_WIDTH)
    grid = known.get("s") or known.get("p")
    q = known.get("q") or (grid and (*grid[:-1], width))
    k = known.get("k") or (grid and (*grid[:-2], grid[-1], width)) or known.get("v") or q
    q = q or k or (1, width)
    k = k or q
    return Sizes(q, k, known.get("v") or k)


def _part(made: Qkv, name: str) -> Values | None:
    if name in ("q", "k", "v"):
        return {"q": made.q, "k": made.k, "v": made.v}[name]
    logits = made.q @ np.swapaxes(made.k, -1, -2) / sqrt(made.q.shape[-1])
    return logits if name == "s" else softmax_rows(logits).value


def _rows_of(extents: Shape) -> Shape:
    return extents[:-1]


def _with_logits(sizes: Sizes, random: Random, logits: Values) -> Qkv:
    """Make queries and keys with q_i k_j / sqrt(D) = c_i logits_j, where c_i is from 1 to 1.05.

    The factor c_i tells queries apart. Both are multiples of a direction with random signs and unequal
    components, so that every component counts and swapped ones show; and equally large, so that both fit
    into float16.
    """
    depth = sizes.k[-1]
    signs = np.where(random.uniform("signs", (depth,)) < 0.5, -1.0, 1.0)
    of_query = signs * (0.5 + random.uniform("query direction", (depth,)))
    of_key = signs * (0.5 + random.uniform("key direction", (depth,)))
    size = sqrt(float(np.abs(logits).max(initial=1.0)))
    of_query *= size * sqrt(depth) / float(of_query @ of_key)
    factors = 1.0 + 0.05 * random.uniform("factors", _rows_of(sizes.q))
    keys = np.broadcast_to(logits / size, _rows_of(sizes.k))
    return Qkv(factors[..., None] * of_query, keys[..., None] * of_key, random.normal("v", sizes.v))
