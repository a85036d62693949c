"""DirichletBelief against textbook formulas, SciPy's distributions and counts by hand."""

import numpy as np
import pytest
from scipy import sparse, stats

import brmdp

S, A = 4, 3


def random_concentration(seed, zeros=0.4):
    rng = np.random.default_rng(seed)
    concentration = rng.gamma(1.0, 2.0, size=(S, A, S)) + 0.01
    concentration[rng.random(concentration.shape) < zeros] = 0.0
    concentration[..., seed % S] += 0.5
    return concentration


def random_data(seed, concentration, n):
    """Random possible transitions, with repeats."""
    rng = np.random.default_rng(seed)
    possible = np.argwhere(concentration > 0)
    return possible[rng.integers(len(possible), size=n)].T


def state_of(belief):
    """Everything that observing may change, as bytes."""
    return (
        belief.concentration("flat").tobytes(),
        belief.counts("flat").tobytes(),
        belief.mean("flat").tobytes(),
        belief.effective_sample_size().tobytes(),
    )


# --- priors ---------------------------------------------------------------------------------------


def test_uniform_and_jeffreys_priors():
    np.testing.assert_array_equal(
        brmdp.DirichletBelief.uniform(S, A).concentration(), np.ones((S, A, S))
    )
    np.testing.assert_array_equal(
        brmdp.DirichletBelief.uniform(S, A, concentration=0.3).concentration(),
        np.full((S, A, S), 0.3),
    )
    np.testing.assert_array_equal(
        brmdp.DirichletBelief.jeffreys(S, A).concentration(), np.full((S, A, S), 0.5)
    )


def test_informative_prior_is_centred_at_the_kernel_with_the_given_strength():
    mdp = brmdp.envs.riverswim(5)
    for kernel in (mdp, mdp.kernel(), mdp.kernel("csr")):
        belief = brmdp.DirichletBelief.informative(kernel, 12.5)
        np.testing.assert_allclose(belief.mean(), mdp.kernel(), atol=1e-15)
        np.testing.assert_allclose(belief.effective_sample_size(), 12.5, rtol=1e-15)
        np.testing.assert_allclose(belief.concentration(), 12.5 * mdp.kernel(), rtol=1e-14)
        assert belief.counts().sum() == 0


@pytest.mark.parametrize("make", [np.asarray, lambda c: sparse.csr_array(c.reshape(S * A, S))])
def test_structural_zeros_take_no_memory_and_stay_zero(make):
    concentration = random_concentration(1)
    belief = brmdp.DirichletBelief(make(concentration))
    assert (
        belief.pattern.n_transitions
        == belief.concentration("flat").size
        == np.count_nonzero(concentration)
    )
    impossible = concentration == 0
    np.testing.assert_array_equal(belief.concentration(), concentration)
    for array in (
        belief.mean(),
        belief.variance(),
        belief.sample(7, rng=0),
        belief.counts(),
    ):
        assert (array[..., impossible] == 0).all()


@pytest.mark.parametrize("prior", ["uniform", "jeffreys"])
def test_possible_transitions_may_be_given_in_any_form(prior):
    mdp = brmdp.envs.frozenlake(0.7)
    mask = mdp.kernel() > 0
    make = getattr(brmdp.DirichletBelief, prior)
    value = {"uniform": 1.0, "jeffreys": 0.5}[prior]
    for possible in (mdp, mask, mask.astype(int), mdp.kernel(), mdp.kernel("csr")):
        np.testing.assert_array_equal(
            make(16, 4, possible=possible).concentration(), np.where(mask, value, 0.0)
        )


def test_the_prior_is_copied():
    concentration = random_concentration(2, zeros=0.0)
    belief = brmdp.DirichletBelief(concentration)
    before = concentration.copy()
    concentration[:] = 9.0
    np.testing.assert_array_equal(belief.concentration(), before)
    belief.concentration()[:] = 3.0
    belief.concentration("flat")[:] = 3.0
    np.testing.assert_array_equal(belief.concentration(), before)


def test_inadmissible_actions():
    concentration = random_concentration(3)
    admissible = np.ones((S, A), dtype=bool)
    admissible[1, 2] = admissible[3, 0] = False
    concentration[1, 2] = 0.0
    belief = brmdp.DirichletBelief(concentration, admissible=admissible)
    np.testing.assert_array_equal(belief.pattern.admissible, admissible)
    np.testing.assert_array_equal(belief.effective_sample_size() == 0, ~admissible)
    assert (belief.mean()[~admissible] == 0).all()
    np.testing.assert_allclose(
        belief.sample(5, rng=1).sum(axis=-1), np.broadcast_to(admissible, (5, S, A))
    )
    with pytest.raises(brmdp.InvalidInputError, match="action 2 is not admissible in state 1"):
        belief.observe(1, 2, 0)
    with pytest.raises(brmdp.InvalidInputError, match="action 2 is not admissible in state 1"):
        belief.observe([0, 1], [0, 2], [int(np.argmax(concentration[0, 0])), 0])


# --- data -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_one_by_one_and_batch_observation_are_identical(zeros):
    concentration = random_concentration(4, zeros)
    s, a, t = random_data(4, concentration, 500)
    singly, batch, chunks = (brmdp.DirichletBelief(concentration) for _ in range(3))
    for item in zip(s, a, t, strict=True):
        assert singly.observe(*item) is None
    assert batch.observe(s, a, t) is None
    chunks.observe(s[:123].tolist(), a[:123].tolist(), t[:123].tolist())
    chunks.observe(s[123:499].reshape(4, 94), a[123:499].reshape(4, 94), t[123:499].reshape(4, 94))
    chunks.observe(int(s[499]), int(a[499]), int(t[499]))
    assert state_of(singly) == state_of(batch) == state_of(chunks)
    counts = np.zeros((S, A, S), dtype=int)
    for item in zip(s, a, t, strict=True):
        counts[item] += 1
    np.testing.assert_array_equal(batch.counts(), counts)
    np.testing.assert_array_equal(batch.concentration(), concentration + counts)
    assert batch.counts().dtype.kind == "i"


def test_observing_changes_only_its_pair():
    belief = brmdp.DirichletBelief(random_concentration(5, 0.0))
    before = belief.mean()
    belief.observe(2, 1, 3)
    changed = (belief.mean() != before).any(axis=2)
    np.testing.assert_array_equal(np.argwhere(changed), [[2, 1]])


def test_an_empty_batch_changes_nothing():
    belief = brmdp.DirichletBelief(random_concentration(5))
    before = state_of(belief)
    belief.observe([], [], [])
    belief.observe(
        np.zeros((0, 2), dtype=int), np.zeros((0, 2), dtype=int), np.zeros((0, 2), dtype=int)
    )
    assert state_of(belief) == before


def test_a_copy_is_independent_both_ways():
    original = brmdp.DirichletBelief(random_concentration(6, 0.0))
    original.observe(0, 0, 1)
    twin = original.copy()
    assert state_of(twin) == state_of(original)
    before = state_of(original)
    twin.observe(1, 1, 1)
    assert state_of(original) == before
    after = state_of(twin)
    original.observe([2, 2], [0, 0], [3, 3])
    assert state_of(twin) == after
    assert twin.counts().sum() == 2
    assert original.counts().sum() == 3


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("bad", ["state", "action", "next_state", "negative", "shape", "float"])
def test_a_failed_batch_leaves_the_posterior_unchanged(zeros, bad):
    concentration = random_concentration(7, zeros)
    belief = brmdp.DirichletBelief(concentration)
    belief.observe(*random_data(1, concentration, 50))
    before = state_of(belief)
    batch = dict(
        zip(("state", "action", "next_state"), random_data(2, concentration, 20), strict=True)
    )
    if bad in batch:
        batch[bad][13] = 17
        message = rf"{bad} must lie in.*17.*13"
    elif bad == "negative":
        batch["state"][13] = -1
        message = "state must lie in.*-1"
    elif bad == "float":
        batch["state"] = batch["state"].astype(float)
        message = "state must be integers.*float"
    else:
        batch["action"] = batch["action"][:-1]
        message = r"same shape.*\(20,\).*\(19,\)"
    with pytest.raises(brmdp.InvalidInputError, match=message):
        belief.observe(**batch)
    assert state_of(belief) == before


def test_impossible_transitions_are_refused_and_change_nothing():
    concentration = random_concentration(8)
    belief = brmdp.DirichletBelief(concentration)
    before = state_of(belief)
    for s, a, t in np.argwhere(concentration == 0):
        with pytest.raises(
            brmdp.ImpossibleTransitionError, match=rf"state={s}, action={a}, next_state={t}\b"
        ):
            belief.observe(s, a, t)
        good = np.argwhere(concentration > 0)[:9]
        batch = np.vstack([good, [[s, a, t]], good]).T
        with pytest.raises(
            brmdp.ImpossibleTransitionError, match=rf"state={s}, action={a}, next_state={t}\b"
        ):
            belief.observe(*batch)
    assert state_of(belief) == before


# --- summaries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_mean_variance_and_sample_size_follow_the_formulas(seed):
    concentration = random_concentration(seed)
    belief = brmdp.DirichletBelief(concentration)
    data = random_data(seed, concentration, 100)
    belief.observe(*data)
    phi = concentration.copy()
    np.add.at(phi, tuple(data), 1.0)
    total = phi.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(belief.effective_sample_size(), total[..., 0], rtol=1e-14)
    np.testing.assert_allclose(belief.mean(), phi / total, rtol=1e-14)
    np.testing.assert_allclose(
        belief.variance(), phi * (total - phi) / (total**2 * (total + 1)), rtol=1e-12
    )
    np.testing.assert_allclose(belief.mean().sum(axis=2), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(belief.mean("csr").toarray().reshape(S, A, S), belief.mean())
    np.testing.assert_array_equal(belief.variance("flat"), belief.variance()[phi > 0])


@pytest.mark.parametrize("seed", range(2))
def test_draws_have_the_posterior_moments(seed):
    concentration = random_concentration(seed)
    belief = brmdp.DirichletBelief(concentration)
    n = 20_000
    draws = belief.sample(n, rng=np.random.default_rng(seed))
    assert draws.shape == (n, S, A, S)
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0, rtol=0, atol=1e-14)
    error = draws.std(axis=0) / np.sqrt(n)
    assert (np.abs(draws.mean(axis=0) - belief.mean()) <= 4.5 * error + 1e-15).all()
    squares = (draws - belief.mean()) ** 2
    error = squares.std(axis=0) / np.sqrt(n)
    assert (np.abs(squares.mean(axis=0) - belief.variance()) <= 4.5 * error + 1e-15).all()
    # different pairs are independent
    flat = draws.reshape(n, S * A, S)[:, :, seed % S]
    free = flat.std(axis=0) > 1e-12
    correlation = np.corrcoef(flat[:, free], rowvar=False)
    off = correlation[~np.eye(int(free.sum()), dtype=bool)]
    assert np.abs(off).max() < 4.5 / np.sqrt(n)


def test_draws_are_reproducible_and_move_on():
    belief = brmdp.DirichletBelief(random_concentration(1))
    np.testing.assert_array_equal(
        belief.sample(3, rng=5), belief.sample(3, rng=np.random.default_rng(5))
    )
    rng = np.random.default_rng(5)
    first, second = belief.sample(3, rng=rng), belief.sample(3, rng=rng)
    assert (first != second).any()
    before = state_of(belief)
    belief.sample(2, rng=1)
    assert state_of(belief) == before


@pytest.mark.parametrize("size", [1e-3, 3e-3, 1e-2])
@pytest.mark.parametrize("width", [2, 5])
def test_tiny_concentrations_are_drawn_from_the_right_law(size, width):
    """A Dirichlet coordinate has a Beta law; with φ ≪ 1, naive gammas would all underflow."""
    belief = brmdp.DirichletBelief.uniform(width, 1, concentration=size)
    n = 4000
    draws = belief.sample(n, rng=np.random.default_rng(int(size * 1e4) + width))
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0, rtol=0, atol=1e-14)
    assert draws.min() >= 0.0
    law = stats.beta(size, size * (width - 1))
    marginal = draws[:, 0, 0, 0]
    # Most of the mass lies below the smallest double (drawn as zero) or within an ulp of one, so
    # the laws are compared where doubles resolve them: at points between 1e-290 and 0.99.
    points = np.concatenate([10.0 ** np.arange(-290.0, -1, 24), [0.05, 0.3, 0.5, 0.7, 0.95, 0.99]])
    expected = law.cdf(points)
    found = (marginal[:, None] <= points).mean(axis=0)
    error = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs(found - expected) <= 4.5 * error).all()


@pytest.mark.parametrize("size", [5e-3, 1e-2])
def test_marginals_of_small_concentrations_pass_kolmogorov_smirnov(size):
    """All coordinates but one are tiny.

    The complement of the heavy one resolves the law of the light ones in full.
    """
    belief = brmdp.DirichletBelief(np.array([[[size, size]], [[1.0, 1.0]]]))
    draws = belief.sample(20_000, rng=np.random.default_rng(11))[:, 0, 0]
    inside = draws[(draws[:, 0] > 1e-250) & (draws[:, 0] < 0.9)][:, 0]
    law = stats.beta(size, size)
    low, high = law.cdf(1e-250), law.cdf(0.9)
    assert inside.size > 1000
    result = stats.kstest(inside, lambda x: (law.cdf(x) - low) / (high - low))
    assert result.pvalue > 1e-3


@pytest.mark.parametrize("row", [(1e-3, 2.0), (1e-2, 0.3, 40.0), (0.7, 1.3, 2.0, 0.9)])
def test_marginals_match_beta_by_kolmogorov_smirnov(row):
    width = len(row)
    concentration = np.ones((width, 1, width))
    concentration[0, 0] = row
    draws = brmdp.DirichletBelief(concentration).sample(3000, rng=np.random.default_rng(5))[:, 0, 0]
    low, high = 1e-300, 1.0 - 1e-9  # beyond these, doubles do not resolve the law
    for i, size in enumerate(row):
        law = stats.beta(size, sum(row) - size)
        resolved = draws[(draws[:, i] > low) & (draws[:, i] < high), i]
        below, above = float(law.cdf(low)), float(law.sf(high))
        share = 1.0 - below - above
        assert (
            abs(resolved.size / 3000 - share) <= 4.5 * np.sqrt(share * (1 - share) / 3000) + 1e-12
        )
        result = stats.kstest(
            resolved, lambda x, law=law, below=below, share=share: (law.cdf(x) - below) / share
        )
        assert result.pvalue > 1e-3


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e6, 1e12])
def test_extreme_concentrations_give_probability_vectors(size):
    belief = brmdp.DirichletBelief.uniform(3, 2, concentration=size)
    np.testing.assert_allclose(belief.mean(), 1 / 3, rtol=1e-14)
    draws = belief.sample(200, rng=2)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0, rtol=0, atol=1e-14)
    if size > 1e5:
        np.testing.assert_allclose(draws, 1 / 3, atol=0.01)
    else:  # a corner every time, and every corner equally often
        assert np.allclose(draws.max(axis=-1), 1.0)
        corners = np.bincount(draws.argmax(axis=-1).ravel(), minlength=3)
        assert stats.chisquare(corners).pvalue > 1e-3


def test_posterior_quantile_plan_uses_the_current_counts():
    """One state, and one action per reward.

    The plan's value is a Beta quantile of the observed frequencies.
    """
    concentration = np.zeros((3, 1, 3))
    concentration[0, 0, [1, 2]] = 2.0, 3.0
    concentration[1, 0, 1] = concentration[2, 0, 2] = 1.0
    rewards = np.zeros((3, 1, 3))
    rewards[0, 0, 1] = 1.0
    belief = brmdp.DirichletBelief(concentration)
    belief.observe([0] * 7, [0] * 7, [1, 1, 2, 1, 1, 2, 1])
    value = brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.2)).values[0]
    assert value == pytest.approx(stats.beta(2 + 5, 3 + 2).ppf(0.2), abs=1e-9)


# --- forms of observations ------------------------------------------------------------------------


class Column:
    """A column of a table, as NumPy sees those of pandas or polars."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class Count:
    """A number that can serve as an index without being an int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def jax_array(values):
    return pytest.importorskip("jax.numpy").asarray(values)


KINDS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "small integers": lambda values: np.array(values, dtype=np.uint8),
    "column": Column,
    "column of objects": lambda values: Column(np.array([int(v) for v in values], dtype=object)),
    "jax": jax_array,
}

POSTERIORS = {
    "dirichlet": lambda: brmdp.DirichletBelief.uniform(3, 2),
    "disturbance": lambda: brmdp.DisturbanceBelief([[[0, 1, 2]] * 2] * 3),
    "censored": lambda: brmdp.CensoredDisturbanceBelief([[[2, 1, 0, 0]] * 2] * 3),
    "scenario": lambda: brmdp.ScenarioBelief(
        np.random.default_rng(0).dirichlet(np.ones(3), (2, 3, 2)), [0.5, 0.5]
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POSTERIORS)
def test_observations_of_any_kind_count_alike(name, kind):
    columns = [0, 1, 2, 0], [0, 1, 1, 1], [2, 1, 0, 1]
    wanted, got, alone = (POSTERIORS[name]() for _ in range(3))
    wanted.observe(*columns)
    got.observe(*map(KINDS[kind], columns))
    assert got.mean("flat").tobytes() == wanted.mean("flat").tobytes()
    for s, a, t in zip(*columns, strict=True):
        alone.observe(
            *(KINDS[kind]([v]) for v in (s, a, t))
        )  # one transition in arrays of length one
    np.testing.assert_allclose(alone.mean("flat"), wanted.mean("flat"), rtol=1e-14)


@pytest.mark.parametrize(
    "make", [int, np.int32, np.array, Count, Column, jax_array], ids=lambda make: make.__name__
)
@pytest.mark.parametrize("name", POSTERIORS)
def test_single_numbers_of_any_kind_count_alike(name, make):
    wanted, got = POSTERIORS[name](), POSTERIORS[name]()
    wanted.observe(2, 1, 0)
    got.observe(make(2), make(1), make(0))
    assert got.mean("flat").tobytes() == wanted.mean("flat").tobytes()


@pytest.mark.parametrize("name", POSTERIORS)
def test_booleans_are_the_two_actions_where_there_are_two(name):
    wanted, got = POSTERIORS[name](), POSTERIORS[name]()
    wanted.observe([0, 1, 2], [1, 0, 1], [0, 1, 2])
    got.observe([0, 1, 2], np.array([True, False, True]), [0, 1, 2])
    assert got.mean("flat").tobytes() == wanted.mean("flat").tobytes()
    wanted.observe(0, 1, 2)
    got.observe(0, True, 2)
    assert got.mean("flat").tobytes() == wanted.mean("flat").tobytes()


@pytest.mark.parametrize("bad", [True, [True, False], np.array([True, False])])
def test_booleans_are_no_indices_elsewhere(bad):
    three = brmdp.DirichletBelief.uniform(3, 3)
    zeros = [0, 0] if np.ndim(bad) else 0
    with pytest.raises(brmdp.InvalidInputError, match="action must be"):
        three.observe(zeros, bad, zeros)
    with pytest.raises(brmdp.InvalidInputError, match="state must be"):
        brmdp.DirichletBelief.uniform(2, 2).observe(bad, zeros, zeros)
    assert three.counts().sum() == 0


# --- priors with inadmissible actions, kernels in single precision --------------------------------


@pytest.mark.parametrize(
    "possible", [None, np.ones((S, A, S)), sparse.csr_array(np.ones((S * A, S))), "mdp"]
)
def test_uniform_and_jeffreys_leave_inadmissible_actions_out(possible):
    if isinstance(possible, str):
        possible = brmdp.TabularMDP(np.full((S, A, S), 1.0 / S), np.zeros((S, A)), 0.9)
    admissible = np.ones((S, A), dtype=bool)
    admissible[1, 2] = admissible[3, 0] = False
    wanted = np.where(admissible[:, :, None], 1.0, 0.0) * np.ones(S)
    uniform = brmdp.DirichletBelief.uniform(S, A, possible=possible, admissible=admissible)
    np.testing.assert_array_equal(uniform.concentration(), wanted)
    jeffreys = brmdp.DirichletBelief.jeffreys(S, A, possible=possible, admissible=admissible)
    np.testing.assert_array_equal(jeffreys.concentration(), 0.5 * wanted)
    with pytest.raises(brmdp.InvalidInputError, match="admissible must be booleans"):
        brmdp.DirichletBelief.uniform(S, A, possible=possible, admissible=np.ones((S, A)))


def test_the_advice_of_an_empty_row_can_be_followed():
    possible = np.ones((S, A, S))
    possible[2, 1] = 0.0
    with pytest.raises(brmdp.InvalidInputError, match=r"possible.*s=2, a=1.*pass admissible="):
        brmdp.DirichletBelief.uniform(S, A, possible=possible)
    belief = brmdp.DirichletBelief.uniform(S, A, possible=possible, admissible=possible.any(axis=2))
    np.testing.assert_array_equal(belief.concentration(), possible)


def test_an_informative_prior_obeys_the_limits_of_concentrations():
    kernel = np.array([[[1e-25, 1.0 - 1e-25]], [[0.5, 0.5]]])
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"concentration must be 0 or lie in \[1e-30, 1e\+12\]; got .*e-3[56]",
    ):
        brmdp.DirichletBelief.informative(kernel, 1e-10)


def test_a_missing_number_in_a_column_is_named():
    belief = brmdp.DirichletBelief.uniform(3, 2)
    for column in (np.array([0, None], dtype=object), [0, np.nan]):
        with pytest.raises(
            brmdp.InvalidInputError,
            match=r"state must be integers in 0\.\.2; got a missing value, the first at index 1",
        ):
            belief.observe(column, [0, 0], [1, 1])
    with pytest.raises(
        brmdp.InvalidInputError, match=r"action must be integers in .*; got a missing value"
    ):
        belief.observe([0, 0], np.array([True, None], dtype=object), [1, 1])


def test_what_is_no_integer_is_shown_as_it_is():
    belief = brmdp.DirichletBelief.uniform(3, 2)
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"state must be integers in 0\.\.2; got dtype <U1, such as '0'",
    ):
        belief.observe(["0", "1"], [0, 0], [1, 1])
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.array([0, 1]), np.array([2])]
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"state must be integers in .* got dtype object, such as array",
    ):
        belief.observe(ragged, [0, 0], [1, 1])


def test_an_integer_beside_columns_stands_for_all_rows():
    belief, twin = (brmdp.DirichletBelief.uniform(3, 2) for _ in range(2))
    belief.observe([0, 1, 2], 1, [1, 1, 0])
    twin.observe([0, 1, 2], [1, 1, 1], [1, 1, 0])
    assert state_of(belief) == state_of(twin)


@pytest.mark.parametrize(
    "shapes", [((4, 1), (4,), (4,)), ((4, 1), (1, 4), ()), ((0, 1), (4,), (4,)), ((1,), (4,), ())]
)
def test_columns_are_never_multiplied(shapes):
    """A table of one column next to a plain column, of which NumPy would make n² rows, or none."""
    kernel = np.full((3, 2, 3), 1 / 3)
    beliefs = (
        brmdp.DirichletBelief.uniform(3, 2),
        brmdp.ScenarioBelief([kernel, kernel], [0.5, 0.5]),
        brmdp.DisturbanceBelief(np.zeros((3, 2, 2), dtype=int)),
        brmdp.CensoredDisturbanceBelief(np.zeros((3, 2, 2), dtype=int)),
    )
    for belief in beliefs:
        with pytest.raises(brmdp.InvalidInputError, match="must have the same shape"):
            belief.observe(*(np.zeros(shape, dtype=int) for shape in shapes))


def test_columns_of_different_shapes_are_named():
    one, two = np.zeros(1, dtype=int), np.zeros(2, dtype=int)
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"^state, action and next_state must have the same shape; got \(1,\), \(2,\), \(2,",
    ):
        brmdp.DirichletBelief.uniform(3, 2).observe(one, two, two)
    with pytest.raises(
        brmdp.InvalidInputError,
        match=r"^state, action, next_state and disturbance must have the same shape; got",
    ):
        brmdp.DisturbanceBelief(np.zeros((3, 2, 2), dtype=int)).observe(
            two, two, two, disturbance=one
        )


def test_an_informative_prior_takes_the_actions_of_a_known_mdp():
    river = brmdp.envs.riverswim(3)
    with pytest.raises(
        brmdp.InvalidInputError, match="admissible must not be given if kernel is a TabularMDP"
    ):
        brmdp.DirichletBelief.informative(river, 5.0, admissible=np.ones((3, 2), dtype=bool))
    belief = brmdp.DirichletBelief.informative(river, 5.0)
    assert belief.pattern is river.pattern


def test_one_of_a_kind_is_singular():
    one = np.ones((1, 1, 1))
    assert repr(brmdp.DirichletBelief(one)) == (
        "DirichletBelief(1 state, 1 action, 1 possible transition, 0 observed)"
    )
    assert repr(brmdp.DisturbanceBelief(np.zeros((1, 1, 1), dtype=int))) == (
        "DisturbanceBelief(1 state, 1 action, 1 disturbance, 0 observed)"
    )
    assert repr(brmdp.ScenarioBelief([one], [1.0])) == "ScenarioBelief(1 kernel, 1 state, 1 action)"
    assert repr(brmdp.TabularMDP(one, np.ones((1, 1)), 0.5)) == (
        "TabularMDP(1 state, 1 action, 1 possible transition, discount=0.5)"
    )


@pytest.mark.parametrize("wrong", [{"prior": [0.0, 1.0]}, {"counts": [1]}])
def test_arrays_of_a_file_must_fit(wrong):
    belief = brmdp.DirichletBelief([[[1.0, 1.0]], [[0.0, 1.0]]])
    arrays = belief.arrays() | {name: np.array(value) for name, value in wrong.items()}
    with pytest.raises(
        brmdp.CorruptFileError, match="prior must be positive and counts not negative, one per"
    ):
        brmdp.DirichletBelief.from_arrays(arrays, "file")
