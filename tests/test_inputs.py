"""Input distributions have the properties that their names promise, and are reproducible."""

import numpy as np
import pytest

from grader import inputs, numerics
from grader.errors import GraderError
from grader.records import Parameter

QKV = tuple(Parameter(name, "in", "float32", ("N", "d")) for name in ("Q", "K", "V"))
O = Parameter("O", "out", "float32", ("N", "d"))  # noqa: E741  (the field's name)
SIZES = [(1, 1), (1, 64), (2, 1), (17, 40), (113, 64), (1000, 128)]


def made(distribution: str, n: int = 113, d: int = 64, seed: int = 0) -> dict[str, np.ndarray]:
    return inputs.make((*QKV, O), {"N": n, "d": d}, distribution, seed)


def logits(distribution: str, n: int, d: int, seed: int = 0) -> np.ndarray:
    arrays = made(distribution, n, d, seed)
    return numerics.scores(arrays["Q"], arrays["K"]).value


def float32_logits(distribution: str, n: int, d: int) -> np.ndarray:
    arrays = made(distribution, n, d)
    return (arrays["Q"] @ arrays["K"].T * np.float32(1 / np.sqrt(d))).astype(np.float32)


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("exactness", [logits, float32_logits])
class TestLogits:
    """Each holds in exact arithmetic on the float32 inputs, and in float32 arithmetic."""

    def test_increasing_scores_rise_over_400_in_every_row(self, exactness, n, d) -> None:
        rows = exactness("increasing", n, d)
        assert (np.diff(rows, axis=1) > 0).all()
        if n > 1:
            assert (np.ptp(rows, axis=1) > 399.9).all()
            assert (np.ptp(rows, axis=1) < 421).all()

    def test_decreasing_scores_fall_over_400_in_every_row(self, exactness, n, d) -> None:
        rows = exactness("decreasing", n, d)
        assert (np.diff(rows, axis=1) < 0).all()
        if n > 1:
            assert (np.ptp(rows, axis=1) > 399.9).all()

    @pytest.mark.parametrize(("name", "level"), [("low", -200), ("high", 200), ("very_low", -20000)])
    def test_levels_are_where_their_names_say(self, exactness, n, d, name, level) -> None:
        rows = exactness(name, n, d)
        assert (rows / level > 0.96).all()
        assert (rows / level < 1.1).all()
        if n > 16 and level != -20000:
            assert (np.ptp(rows, axis=1) > 1).all(), "scores must not all be equal"

    def test_equal_scores_are_exactly_equal(self, exactness, n, d) -> None:
        rows = exactness("equal", n, d)
        # NumPy's own products may take different routes for the columns of a tile and of its edge.
        assert (np.ptp(rows, axis=1) <= 1e-6 * np.abs(rows).max()).all()

    def test_a_sink_gets_nearly_all_the_weight(self, exactness, n, d) -> None:
        P = numerics.softmax_rows(exactness("sink", n, d)).value
        assert (P.max(axis=1) > 0.999).all()
        assert len(set(P.argmax(axis=1))) == 1

    def test_scaled_scores_are_spread_eight_times_as_wide(self, exactness, n, d) -> None:
        if n > 100:
            assert exactness("scaled", n, d).std() == pytest.approx(8, rel=0.2)

    def test_an_offset_moves_all_scores_up(self, exactness, n, d) -> None:
        if n > 100:
            assert exactness("offset", n, d).mean() == pytest.approx(16 * np.sqrt(d), rel=0.1)


def test_equal_keys_are_the_same_key() -> None:
    keys = made("equal")["K"]
    assert (keys == keys[0]).all()


def test_low_needs_a_maximum_that_does_not_start_at_zero() -> None:
    assert (np.exp(float32_logits("low", 113, 64)) == 0).all()


def test_high_needs_the_maximum_subtracted() -> None:
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(float32_logits("high", 113, 64))).all()


def test_very_low_is_below_the_sentinels_that_students_use() -> None:
    assert (logits("very_low", 113, 64) < -1e4).all()


def test_constant_values_make_a_constant_output_whatever_the_scores_are() -> None:
    arrays = made("constant_v")
    out = numerics.attention(*arrays.values()).value
    assert np.allclose(out, arrays["V"][0], rtol=1e-12, atol=0)
    assert len(np.unique(arrays["V"][0])) == 64, "columns differ, or swapped ones would not show"


def test_one_hot_values_reveal_the_probabilities() -> None:
    arrays = made("one_hot_v", n=64, d=64)
    P = numerics.softmax_rows(numerics.scores(arrays["Q"], arrays["K"]).value).value
    assert np.allclose(numerics.attention(*arrays.values()).value, P)


def test_uniform_and_normal_look_as_they_should() -> None:
    uniform = made("uniform", 1000, 64)["Q"]
    assert uniform.min() >= 0
    assert uniform.max() < 1.0001
    assert uniform.mean() == pytest.approx(0.5, abs=0.01)
    normal = made("normal", 1000, 64)["Q"]
    assert normal.mean() == pytest.approx(0, abs=0.02)
    assert normal.std() == pytest.approx(1, abs=0.02)
    assert abs(np.corrcoef(normal.ravel()[::2], normal.ravel()[1::2])[0, 1]) < 0.02


@pytest.mark.parametrize("name", sorted(inputs.DISTRIBUTIONS))
def test_every_distribution_is_finite_in_float32_and_described(name: str) -> None:
    parameters = (Parameter("X", "in", "float32", ("N", "N")), *QKV)
    for array in inputs.make(parameters, {"N": 33, "d": 40}, name, 1).values():
        assert array is not None
        assert not np.isnan(array).any()
        assert name.startswith("added") or np.isfinite(array).all()
    assert inputs.describe(name).endswith(".")
    assert len(inputs.describe(name)) <= 110


@pytest.mark.parametrize("name", sorted(inputs.DISTRIBUTIONS))
def test_every_distribution_says_what_it_exposes(name: str) -> None:
    doc = inputs.DISTRIBUTIONS[name].__doc__ or ""
    assert "Exposes" in doc or name in ("zeros", "ones", "added_mask", "added_masked_rows")


def test_the_same_seed_gives_the_same_numbers_in_any_order_of_parameters() -> None:
    forwards = inputs.make(QKV, {"N": 17, "d": 8}, "normal", 5)
    backwards = inputs.make(QKV[::-1], {"N": 17, "d": 8}, "normal", 5)
    assert all(np.array_equal(forwards[name], backwards[name]) for name in "QKV")


def test_the_prefix_of_a_device_pointer_does_not_matter() -> None:
    prefixed = [Parameter(f"d_{p.name}", p.role, p.dtype, p.dims) for p in QKV]
    assert np.array_equal(
        inputs.make(prefixed, {"N": 17, "d": 8}, "increasing", 5)["d_K"],
        inputs.make(QKV, {"N": 17, "d": 8}, "increasing", 5)["K"],
    )


def test_seeds_sizes_and_arrays_get_numbers_of_their_own() -> None:
    assert not np.array_equal(made("normal", seed=0)["Q"], made("normal", seed=1)["Q"])
    assert not np.array_equal(made("normal")["Q"], made("normal")["K"])
    assert not np.array_equal(made("normal", n=113)["Q"], made("normal", n=114)["Q"][:113])


def test_the_numbers_never_change() -> None:
    """A regrade years later, with another NumPy, sees the same inputs."""
    first = made("normal")["Q"][0, :3].astype(float).tolist()
    assert first == pytest.approx(FIRST_NORMAL, rel=1e-6)
    assert made("uniform")["V"][112, 63] == pytest.approx(LAST_UNIFORM, rel=1e-6)


FIRST_NORMAL = [-0.65124202, 0.18613198, 0.15751849]
LAST_UNIFORM = 0.42049199


def test_outputs_and_scalars_get_no_array_but_inout_does() -> None:
    parameters = (
        *QKV,
        O,
        Parameter("X", "inout", "float32", ("N",)),
        Parameter("N", "scalar", "int", value="N"),
        Parameter("stream", "stream", "stream"),
    )
    assert list(inputs.make(parameters, {"N": 4, "d": 2}, "normal", 0)) == ["Q", "K", "V", "X"]


def test_each_array_may_have_a_distribution_of_its_own() -> None:
    arrays = inputs.make(QKV, {"N": 33, "d": 8}, {"V": "constant_v", "K": "equal"}, 0)
    assert (arrays["V"] == arrays["V"][0]).all()
    assert (arrays["K"] == arrays["K"][0]).all()
    assert np.array_equal(arrays["Q"], made("normal", 33, 8)["Q"])


def test_null_passes_no_array_to_a_nullable_parameter() -> None:
    mask = Parameter("mask", "in", "uint8", ("N", "N"), nullable=True)
    assert inputs.make((*QKV, mask), {"N": 4, "d": 2}, {"mask": "null"}, 0)["mask"] is None
    visible = inputs.make((*QKV, mask), {"N": 4, "d": 2}, "normal", 0)["mask"]
    assert visible is not None
    assert visible.dtype == np.uint8
    assert set(np.unique(visible)) <= {0, 1}


def test_masks_leave_each_query_a_key_unless_their_name_says_otherwise() -> None:
    mask = Parameter("mask", "in", "float32", ("B", "N", "M"))
    dims = {"B": 3, "N": 40, "M": 7}
    visible = inputs.make([mask], dims, "added_mask", 0)["mask"]
    assert visible is not None
    assert np.isfinite(visible).any(axis=-1).all()
    assert np.isinf(visible).any()
    rows = inputs.make([mask], dims, "added_masked_rows", 0)["mask"]
    assert rows is not None
    assert not np.isfinite(rows[:, ::4]).any()
    assert np.isfinite(rows[:, 1::4]).any(axis=-1).all()


def test_lengths_are_between_one_and_the_number_of_keys() -> None:
    parameters = (
        Parameter("K", "in", "float32", ("B", "H", "Sk", "d")),
        Parameter("lengths", "in", "int32", ("B",)),
    )
    arrays = inputs.make(parameters, {"B": 50, "H": 2, "Sk": 9, "d": 4}, "normal", 0)
    assert arrays["lengths"].dtype == np.int32
    assert arrays["lengths"].min() >= 1
    assert arrays["lengths"].max() == arrays["lengths"][0] == 9


def test_scores_and_probabilities_come_from_the_same_queries_and_keys() -> None:
    dims = {"N": 33, "d": 8}
    S = inputs.make([Parameter("S", "in", "float32", ("N", "N"))], dims, "increasing", 0)["S"]
    assert S is not None
    assert (np.diff(S, axis=1) > 0).all()
    P = inputs.make([Parameter("P", "in", "float32", ("N", "N")), QKV[2]], dims, "increasing", 0)["P"]
    assert P is not None
    assert np.allclose(P.sum(axis=1), 1)


def test_heads_and_batch_elements_differ() -> None:
    parameters = [Parameter(name, "in", "float32", ("B", "H", "N", "d")) for name in "QKV"]
    for name in ("normal", "increasing", "constant_v"):
        values = inputs.make(parameters, {"B": 2, "H": 3, "N": 5, "d": 4}, name, 0)["V"]
        assert values is not None
        assert len(np.unique(values.reshape(6, -1)[:, 0])) == 6


def test_half_precision_inputs_keep_their_property() -> None:
    for dtype in ("float16", "bfloat16"):
        parameters = [Parameter(name, "in", dtype, ("N", "d")) for name in "QKV"]
        for name, level in (("very_low", -20000), ("low", -200)):
            arrays = inputs.make(parameters, {"N": 33, "d": 64}, name, 0)
            S = numerics.scores(arrays["Q"], arrays["K"]).value
            assert (np.abs(S / level - 1) < 0.15).all()


def test_an_unknown_distribution_names_those_that_exist() -> None:
    with pytest.raises(GraderError, match="unknown distribution 'gaussian'") as error:
        made("gaussian")
    assert "normal" in error.value.hint
    with pytest.raises(GraderError):
        inputs.describe("gaussian")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("N", 4),
        (" H * N ", 12),
        ("1/sqrt(d)", 0.125),
        ("(N + 31) // 32 * 32", 32),
        ("-N % 3", 2),
        ("max(N, d, 2**3)", 64),
        ("min(N, 2.5)", 2.5),
        ("True", True),
    ],
)
def test_expressions_are_arithmetic_over_the_dims(expression: str, value: float) -> None:
    assert inputs.evaluate(expression, {"N": 4, "H": 3, "d": 64}) == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("M * 2", "'M', which is not known"),
        ("floor(N)", "'floor', which is not known"),
        ("__import__('os')", "'__import__', which is not known|not arithmetic"),
        ("N.real", "not arithmetic"),
        ("'a' * N", "not arithmetic"),
        ("N +", "cannot evaluate the expression 'N \\+'"),
        ("", "cannot evaluate"),
        ("N / 0", "cannot evaluate"),
        ("sqrt(-N)", "cannot evaluate"),
        ("[N]", "not arithmetic"),
        ("N < 3", "not arithmetic"),
        ("N\x00", "cannot evaluate"),
    ],
)
def test_a_bad_expression_is_named_with_its_problem(expression: str, problem: str) -> None:
    with pytest.raises(GraderError, match=problem):
        inputs.evaluate(expression, {"N": 4})


def test_an_extent_must_be_a_whole_number() -> None:
    assert inputs.shape(Parameter("X", "in", "float32", ("N/2", "H*N")), {"N": 4, "H": 3}) == (2, 12)
    with pytest.raises(GraderError, match="extent 'N/3' of 'X'"):
        inputs.shape(Parameter("X", "in", "float32", ("N/3",)), {"N": 4})
