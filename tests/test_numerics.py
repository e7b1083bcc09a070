"""The float64 references and their bound: honest float32 is always inside, the catalogue's bugs are not.

Beside each bug in `BUGS` stands a standard case that exposes it; some cases hide it, which is why there are
so many.
"""

import tracemalloc
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader import inputs, numerics
from grader.errors import GraderError
from grader.records import Parameter, ToleranceSpec

FLOAT32 = ToleranceSpec()
F = np.float32
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]
QKV = tuple(Parameter(name, "in", "float32", ("N", "d")) for name in "QKV")
TILE = 32

KINDS = [
    name for name in inputs.DISTRIBUTIONS if inputs.DISTRIBUTIONS[name].__annotations__["return"] == "Qkv"
]
CASES = [(kind, 113, 64) for kind in KINDS] + [("normal", 32, 64), ("uniform", 239, 40), ("normal", 1, 64)]


@cache
def case(kind: str, n: int, d: int, seed: int = 0) -> Arrays:
    return tuple(inputs.make(QKV, {"N": n, "d": d}, kind, seed).values())


def used(out: np.ndarray, expected: numerics.Expected, kappa: float = 2.0) -> float:
    """The worst error as a share of the bound; NaN and infinity count as infinite."""
    error = np.abs(out.astype(np.float64) - expected.value) / expected.bound(ToleranceSpec(kappa=kappa))
    return float(np.where(np.isfinite(error), error, np.inf).max())


# --- correct kernels in float32 -----------------------------------------------------------------------


def dot_by_dimension(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Q K^T as a thread computes it: one product after the other, without FMA."""
    total = np.zeros((len(q), len(k)), F)
    for dim in range(q.shape[1]):
        total += q[:, dim : dim + 1] * k[:, dim]
    return total


def dot_by_halves(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Q K^T as a warp computes it: products, then a tree of sums."""
    products = q[:, None, :] * k[None, :, :]
    while products.shape[-1] > 1:
        half = (products.shape[-1] + 1) // 2
        tail = products[..., half:]
        products = products[..., :half].copy()
        products[..., : tail.shape[-1]] += tail
    return products[..., 0]


def dot_by_library(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ k.T


DOTS = [dot_by_dimension, dot_by_halves, dot_by_library]


def two_passes(arrays: Arrays, dot: Callable = dot_by_library, order: np.ndarray | None = None) -> np.ndarray:
    q, k, v = arrays
    S = dot(q, k) * F(1 / np.sqrt(F(q.shape[1])))
    P = np.exp(S - S.max(axis=1, keepdims=True))
    out, total = np.zeros((len(q), v.shape[1]), F), np.zeros((len(q), 1), F)
    for key in np.arange(len(k)) if order is None else order:
        total += P[:, key : key + 1]
        out += P[:, key : key + 1] * v[key]
    return out / total


def online(
    arrays: Arrays,
    tile: int = TILE,
    dot: Callable = dot_by_library,
    order: np.ndarray | None = None,
    flush: bool = False,
) -> np.ndarray:
    """The online softmax over tiles of keys; `flush` zeroes what -use_fast_math would."""
    q, k, v = arrays if order is None else (arrays[0], arrays[1][order], arrays[2][order])
    scale = F(1) / np.sqrt(F(q.shape[1]))
    m = np.full((len(q), 1), -np.inf, F)
    total, out = np.zeros((len(q), 1), F), np.zeros((len(q), v.shape[1]), F)
    for start in range(0, len(k), tile):
        S = dot(q, k[start : start + tile]) * scale
        top = np.maximum(m, S.max(axis=1, keepdims=True))
        alpha, P = np.exp(m - top), np.exp(S - top)
        if flush:
            P[P < 2.0**-126] = 0
            alpha[alpha < 2.0**-126] = 0
        total = total * alpha + P.sum(axis=1, keepdims=True)
        out = out * alpha + P @ v[start : start + tile]
        m = top
    return out / total


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(KINDS),
    n=st.sampled_from([1, 2, 17, 31, 32, 33, 64, 113]),
    d=st.sampled_from([1, 2, 40, 64, 128]),
    seed=st.integers(0, 1000),
    dot=st.sampled_from(DOTS),
    tile=st.sampled_from([1, 7, 16, 32, 64, 200]),
    style=st.sampled_from(["two passes", "online", "online, denormals flushed"]),
    shuffled=st.booleans(),
)
def test_correct_float32_attention_is_always_inside(kind, n, d, seed, dot, tile, style, shuffled) -> None:
    """Whatever the order of keys, the size of tiles, and the way sums are made."""
    arrays = case(kind, n, d, seed)
    order = np.random.default_rng(seed).permutation(n) if shuffled else None
    if style == "two passes":
        out = two_passes(arrays, dot, order)
    else:
        out = online(arrays, tile, dot, order, flush="flushed" in style)
    assert used(out, numerics.attention(*arrays)) < 1


@pytest.mark.parametrize("kind", ["normal", "uniform", "increasing", "very_low", "equal"])
def test_correct_attention_over_a_thousand_keys_uses_less_than_half_of_the_bound(kind: str) -> None:
    arrays = case(kind, 1000, 64)
    expected = numerics.attention(*arrays)
    assert used(two_passes(arrays, dot_by_dimension), expected) < 0.5
    assert used(online(arrays), expected) < 0.5


def test_float16_tensor_core_arithmetic_is_inside_its_bound_and_outside_float32s() -> None:
    arrays = tuple(array.astype(np.float16) for array in case("normal", 239, 64))
    q, k, v = (array.astype(F) for array in arrays)
    S = q @ k.T / F(8)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    out = ((P.astype(np.float16).astype(F) @ v) / P.sum(axis=1, keepdims=True)).astype(np.float16)
    expected = numerics.attention(*arrays)
    assert (np.abs(out - expected.value) <= expected.bound(ToleranceSpec(arithmetic="float16"))).all()
    assert used(out, expected) > 10


def test_silent_tf32_is_outside_the_float32_bound_and_inside_its_own() -> None:
    def rounded(x: np.ndarray) -> np.ndarray:
        return ((x.view(np.uint32) + 0x1000) & np.uint32(0xFFFFE000)).view(F)

    q, k, v = (rounded(array) for array in case("normal", 239, 64))
    S = q @ k.T / F(8)
    P = np.exp(S - S.max(axis=1, keepdims=True))
    out = rounded(P) @ v / P.sum(axis=1, keepdims=True)
    expected = numerics.attention(*case("normal", 239, 64))
    assert used(out, expected) > 10
    assert (np.abs(out - expected.value) <= expected.bound(ToleranceSpec(arithmetic="tf32"))).all()


# --- the catalogue's numeric bugs -----------------------------------------------------------------------


def buggy(arrays: Arrays, bug: str) -> np.ndarray:
    """The online softmax in float32 with one bug of the catalogue in it."""
    q, k, v = arrays
    n, d = k.shape
    scale = {"missing scale": F(1), "scale 1/D": F(1 / d)}.get(bug, F(1 / np.sqrt(d)))
    if bug in ("unmasked tail", "dropped last key", "dropped last tile"):
        padding = np.zeros((-n % TILE, d), F)
        end = {"unmasked tail": n, "dropped last key": n - 1, "dropped last tile": n // TILE * TILE}[bug]
        k, v = k[:end], v[:end]
        if bug == "unmasked tail":
            k, v = np.concatenate([k, padding]), np.concatenate([v, padding])
    m = np.full((n, 1), {"m starts at 0": 0, "sentinel -1e4": -1e4}.get(bug, -np.inf), F)
    total, out = np.zeros((n, 1), F), np.zeros(q.shape, F)
    for start in range(0, len(k), TILE):
        S = q @ k[start : start + TILE].T * scale
        values = v[start : start + TILE]
        if bug == "transposed V" and len(values) == TILE:
            values = values.copy()
            values[:, :TILE] = values[:, :TILE].T
        top = S.max(axis=1, keepdims=True)
        top = top if bug == "tile maximum" else np.maximum(m, top)
        top = np.zeros_like(top) if bug == "no maximum" else top
        alpha, P = np.exp(m - top), np.exp(S - top)
        total = total * (1 if bug in ("l not rescaled", "neither rescaled") else alpha)
        total = total + P.sum(axis=1, keepdims=True)
        out = out * (1 if bug in ("O not rescaled", "neither rescaled") else alpha) + P @ values
        if bug == "divides in the loop":
            out = out / total
        m = top
    return {
        "zeros": np.zeros_like(out),
        "mean(V)": np.broadcast_to(arrays[2].mean(axis=0), out.shape),
        "never divides": out,
        "divides in the loop": out,
    }.get(bug, out / total if total.all() else out / np.where(total == 0, F(np.nan), total))


BUGS = {  # bug: a standard case that exposes it
    "missing scale": ("normal", 113, 64),
    "scale 1/D": ("normal", 113, 64),
    "l not rescaled": ("scaled", 113, 64),
    "O not rescaled": ("scaled", 113, 64),
    "neither rescaled": ("scaled", 113, 64),
    "divides in the loop": ("equal", 113, 64),
    "never divides": ("normal", 113, 64),
    "unmasked tail": ("low", 113, 64),
    "dropped last key": ("uniform", 113, 64),
    "dropped last tile": ("increasing", 113, 64),
    "tile maximum": ("decreasing", 113, 64),
    "no maximum": ("high", 113, 64),
    "m starts at 0": ("low", 113, 64),
    "sentinel -1e4": ("very_low", 113, 64),
    "mean(V)": ("normal", 113, 64),
    "zeros": ("uniform", 113, 64),
    "transposed V": ("normal", 32, 64),
}


def exposes(where: tuple[str, int, int], bug: str) -> bool:
    with np.errstate(all="ignore"):
        return used(buggy(case(*where), bug), expectation(*where)) > 1


@cache
def expectation(kind: str, n: int, d: int) -> numerics.Expected:
    return numerics.attention(*case(kind, n, d))


@pytest.mark.parametrize("where", CASES)
def test_the_buggy_kernel_without_a_bug_is_inside(where: tuple[str, int, int]) -> None:
    assert not exposes(where, "none")


@pytest.mark.parametrize("bug", BUGS)
def test_every_bug_is_outside_the_bound_on_the_case_that_is_meant_for_it(bug: str) -> None:
    assert exposes(BUGS[bug], bug)


@pytest.mark.parametrize(
    ("bug", "kind"),
    [
        ("missing scale", "equal"),
        ("l not rescaled", "decreasing"),
        ("m starts at 0", "high"),
        ("sentinel -1e4", "normal"),
        ("unmasked tail", "increasing"),
    ],
)
def test_each_kind_of_input_hides_some_bugs(bug: str, kind: str) -> None:
    """The reason why there are so many: what a docstring says is hidden is hidden."""
    assert not exposes((kind, 113, 64), bug)


def test_inputs_that_are_too_small_do_not_fool_the_bound() -> None:
    """With inputs of 0.01, an absolute tolerance of 5e-3 accepts zeros and mean(V); the bound does not."""
    arrays = tuple(F(0.01) * array for array in case("normal", 113, 64))
    expected = numerics.attention(*arrays)
    assert used(np.zeros((113, 64), F), expected) > 1000
    assert used(np.broadcast_to(arrays[2].mean(axis=0), (113, 64)), expected) > 10
    assert used(buggy(arrays, "dropped last key"), expected) > 100


@pytest.mark.parametrize(("tile", "times"), [(32, 25), (128, 125)])
def test_an_unmasked_tail_at_4097_keys_is_far_outside(tile: int, times: float) -> None:
    """A tile of 32 leaves 31 padded keys with score 0, which move the output by less than 1e-3."""
    q, k, v = case("normal", 4097, 64)
    queries, padding = q[:512], np.zeros((tile - 1, 64), F)
    expected = numerics.attention(queries, k, v)
    wrong = numerics.attention(queries, np.concatenate([k, padding]), np.concatenate([v, padding])).value
    assert np.abs(wrong - expected.value).max() < 1e-3 * tile / 32
    assert used(wrong, expected) > times


def test_a_dropped_last_tile_at_4097_keys_is_far_outside() -> None:
    q, k, v = case("normal", 4097, 64)
    expected = numerics.attention(q[:512], k, v)
    wrong = numerics.attention(q[:512], k[:4096], v[:4096]).value
    assert used(wrong, expected) > 125


def test_a_causal_mask_off_by_one_on_uniform_inputs_is_far_outside() -> None:
    q, k, v = case("uniform", 1000, 64)
    expected = numerics.attention(q, k, v, causal=True)
    off_by_one = np.tril(np.ones((1000, 1000), dtype=bool), 1)
    assert used(numerics.attention(q, k, v, mask=off_by_one).value, expected) > 125


def test_a_scale_of_one_over_d_on_uniform_inputs_is_far_outside() -> None:
    q, k, v = case("uniform", 1000, 64)
    expected = numerics.attention(q, k, v)
    assert used(numerics.attention(q, k, v, scale=1 / 64).value, expected) > 125


# --- what the references compute ------------------------------------------------------------------------


def plainly(q: np.ndarray, k: np.ndarray, v: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Attention as the definition says, one query at a time."""
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        keys = np.flatnonzero(visible[i])
        if len(keys):
            s = np.array([q[i].astype(float) @ k[j].astype(float) for j in keys]) / np.sqrt(q.shape[1])
            p = np.exp(s - s.max())
            out[i] = (p / p.sum()) @ v[keys].astype(float)
    return out


def random_arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [random.standard_normal(shape).astype(F) for shape in shapes]


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 1), (1, 9), (9, 1), (7, 12), (12, 7)])
def test_causal_attention_aligns_the_last_query_with_the_last_key(n_queries: int, n_keys: int) -> None:
    q, k, v = random_arrays((n_queries, 8), (n_keys, 8), (n_keys, 5))
    visible = np.arange(n_keys) <= np.arange(n_queries)[:, None] + n_keys - n_queries
    got = numerics.attention(q, k, v, causal=True).value
    assert np.allclose(got, plainly(q, k, v, visible), rtol=1e-12)
    assert visible[-1].all()


def test_a_query_that_sees_no_key_gives_zero_and_may_err_by_nothing() -> None:
    q, k, v = random_arrays((4, 8), (4, 8), (4, 8))
    for options in (
        {"mask": np.array([[0] * 4, [1] * 4, [1] * 4, [1] * 4], dtype=np.uint8)},
        {"mask": np.array([[-np.inf] * 4, [0] * 4, [0] * 4, [0] * 4], dtype=F)},
        {"bias": np.array([[-np.inf] * 4, [0] * 4, [0] * 4, [0] * 4], dtype=F)},
    ):
        expected = numerics.attention(q, k, v, **options)
        assert (expected.value[0] == 0).all()
        assert (expected.bound(FLOAT32)[0] < 1e-35).all()
        assert np.isfinite(expected.value).all()


def test_heads_batches_masks_and_lengths_broadcast() -> None:
    q, k, v = random_arrays((2, 3, 6, 8), (2, 3, 7, 8), (2, 3, 7, 4))
    mask = np.random.default_rng(1).random((2, 1, 6, 7)) < 0.7
    lengths = np.array([7, 3], dtype=np.int32)
    got = numerics.attention(q, k, v, mask=mask, lengths=lengths)
    assert got.value.shape == got.bound(FLOAT32).shape == (2, 3, 6, 4)
    for batch in range(2):
        for head in range(3):
            at = batch, head
            visible = mask[batch, 0] & (np.arange(7) < lengths[batch])
            assert np.allclose(got.value[at], plainly(q[at], k[at], v[at], visible), rtol=1e-12)


def test_a_bias_is_added_to_the_scores() -> None:
    q, k, v, bias = random_arrays((6, 8), (7, 8), (7, 4), (6, 7))
    S = numerics.scores(q, k).value + bias
    P = numerics.softmax_rows(S).value
    assert np.allclose(numerics.attention(q, k, v, bias=bias).value, P @ v)


def test_an_empty_batch_gives_an_empty_output() -> None:
    q, k, v = random_arrays((0, 2, 5, 8), (0, 2, 5, 8), (0, 2, 5, 8))
    expected = numerics.attention(q, k, v)
    assert expected.value.shape == expected.bound(FLOAT32).shape == (0, 2, 5, 8)
    assert "Allowed error" in expected.describe(FLOAT32)


def test_blocks_of_query_rows_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = case("normal", 113, 64)
    whole = numerics.attention(*arrays, causal=True)
    monkeypatch.setattr(numerics, "_BLOCK_ELEMENTS", 500)
    parts = numerics.attention(*arrays, causal=True)
    assert np.allclose(whole.value, parts.value, rtol=1e-13)
    assert np.allclose(whole.bound(FLOAT32), parts.bound(FLOAT32))


@pytest.mark.parametrize("kind", KINDS)
def test_the_stages_make_up_the_whole(kind: str) -> None:
    q, k, v = case(kind, 113, 64)
    P = numerics.softmax_rows(numerics.scores(q, k).value)
    assert np.allclose(numerics.matmul(P.value, v).value, numerics.attention(q, k, v).value, atol=1e-14)


@pytest.mark.parametrize("dot", DOTS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_stage_computed_in_float32_is_inside_its_own_bound(kind: str, dot: Callable) -> None:
    """On reference inputs of its own, with an exp as bad as the GPU's fast one."""
    q, k, v = case(kind, 113, 64)
    S = dot(q, k) * F(0.125)
    assert used(S, numerics.scores(q, k)) < 0.6
    x = S - S.max(axis=1, keepdims=True)
    P = np.exp(x.astype(float))
    P = (P * (1 + (2 + 1.17 * np.abs(x)) * 2.0**-23)).astype(F)  # every exp at the end of its error range
    P[P < 2.0**-126] = 0
    P /= P.sum(axis=1, keepdims=True)
    assert used(P, numerics.softmax_rows(S)) < 0.9
    assert used(dot(P, v.T.copy()), numerics.matmul(P, v)) < 0.6


def test_a_softmax_row_without_a_visible_score_is_zero() -> None:
    P = numerics.softmax_rows(np.array([[-np.inf, -np.inf], [0.0, -np.inf]])).value
    assert P.tolist() == [[0.0, 0.0], [1.0, 0.0]]


# --- the bound ---------------------------------------------------------------------------------------------


def test_the_bound_is_the_formula_of_the_module() -> None:
    q, k, v = (array.astype(float) for array in case("normal", 17, 40))
    S = q @ k.T / np.sqrt(40)
    P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
    O = P @ v  # noqa: E741
    B = np.abs(q) @ np.abs(k).T / np.sqrt(40)
    E = (P * B) @ np.abs(v) + (P * B).sum(axis=1, keepdims=True) * np.abs(O)
    A = P @ np.abs(v) + np.abs(O)
    u = 2.0**-24
    bound = 2 * ((np.sqrt(40) + 4) * u * E + (np.sqrt(17) + 8) * u * A)
    assert np.allclose(numerics.attention(q, k, v).bound(FLOAT32), bound, rtol=1e-9)
    half = ToleranceSpec(arithmetic="float16")
    wider = 2 * ((np.sqrt(40) + 4) * u * E + (2.0**-11 + (np.sqrt(17) + 8) * u) * A) + 2.0**-11 * np.abs(O)
    assert np.allclose(numerics.attention(q, k, v).bound(half), wider, rtol=5e-3)  # and its floor


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 33])
def test_the_bound_is_never_zero_and_never_absurd(kind: str, n: int) -> None:
    """A bound of zero fails right kernels; one as large as the values passes all."""
    arrays = case(kind, n, 64)
    bound = numerics.attention(*arrays).bound(FLOAT32)
    assert (bound > 0).all()
    assert np.median(bound) < 0.1 * np.abs(arrays[2]).max()


def test_a_single_key_must_return_its_value() -> None:
    q, k, v = case("normal", 1, 64)
    expected = numerics.attention(q, k, v)
    assert np.array_equal(expected.value, v.astype(float))
    assert used(v, expected) == 0
    assert used(v * F(1.001), expected) > 1


def test_tighter_arithmetic_has_the_tighter_bound() -> None:
    expected = numerics.attention(*case("normal", 113, 64))
    order = ["float32", "bf16x6", "tf32x3", "float16", "bfloat16"]
    medians = [float(np.median(expected.bound(ToleranceSpec(arithmetic=name)))) for name in order]
    assert medians == sorted(medians)


def test_atol_and_rtol_replace_the_derived_bound() -> None:
    expected = numerics.exact(np.array([2.0, -4.0]))
    assert expected.bound(ToleranceSpec(atol=0.5, rtol=0.25)).tolist() == [1.0, 1.5]
    assert expected.bound(ToleranceSpec(rtol=0.25)).tolist() == [0.5, 1.0]
    assert "0.5 + 0.25 x |expected|" in expected.describe(ToleranceSpec(atol=0.5, rtol=0.25))


def test_the_bound_is_described_with_its_figures() -> None:
    text = numerics.attention(*case("normal", 113, 64)).describe(FLOAT32)
    assert text.startswith("Allowed error: 2 x (7.2e-07 x E + 1.1e-06 x A)")
    assert "scores of 64 products" in text
    assert "sums of 113 terms" in text
    assert "exact" in numerics.exact(np.array([1.0])).describe(FLOAT32)


def test_an_unknown_arithmetic_names_those_that_exist() -> None:
    with pytest.raises(GraderError, match="unknown arithmetic 'float8'") as error:
        numerics.exact(np.array([1.0])).bound(ToleranceSpec(arithmetic="float8"))
    assert "float32, tf32, tf32x3" in error.value.hint


def test_bfloat16_rounds_to_nearest_even_and_keeps_nan() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, np.inf, np.nan, 3.4e38, 0.0])
    back = numerics.from_bfloat16(numerics.to_bfloat16(values))
    assert back[:5].tolist() == [1.0, 1.0, 1.015625, -2.5, np.inf]
    assert np.isnan(back[5])
    assert back[6] == np.inf
    assert back[7] == 0


def test_a_long_sequence_takes_little_memory() -> None:
    """The scores of 4097 x 4097 would be 134 MB; blocks of rows keep the peak far below."""
    q, k, v = case("normal", 4097, 16)
    tracemalloc.start()
    numerics.attention(q, k, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
