"""plan_many is plan, item by item: values within the error bounds, policies and ties the same."""

import warnings

import numpy as np
import pytest

import brmdp
from brmdp.planning import many
from brmdp.risk.dirichlet import has_dirichlet_rows
from problems import MEASURES, RANDOM, WORLDS, level_array, measure, problem

LEVELS = (0.9, 0.02, 0.5, 0.3, 0.1, 0.7)
KINDS = [*(f"{kind}-1" for kind in RANDOM), *WORLDS]


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.status == other.status
        assert one.basis == other.basis
        np.testing.assert_array_equal(one.policy, other.policy)
        np.testing.assert_array_equal(one.tied, other.tied)
        allowed = one.error_bound + other.error_bound
        if not np.isfinite(allowed):  # the saddlepoint has no bound, but both meet the tolerance
            allowed = one.tolerance + other.tolerance
        assert np.abs(one.values - other.values).max() <= allowed
        assert (one.prior is None) == (other.prior is None)
        if one.prior is not None:
            assert one.prior.share == other.prior.share


def one_by_one(beliefs, rewards, discounts, risks, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)
        return [
            brmdp.plan(belief, paid, gamma, risk=risk, **options)
            for belief, paid, gamma, risk in zip(beliefs, rewards, discounts, risks, strict=True)
        ]


@pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_levels_of_one_belief(kind):
    case = problem(kind)
    risks = [
        *(brmdp.Quantile(level) for level in LEVELS),
        brmdp.Mean(),
        *(measure(name, case.shape) for name in MEASURES),
        *(brmdp.CVaR(level) for level in LEVELS),
        brmdp.Quantile(level_array(case.shape)),
    ]
    if has_dirichlet_rows(case.belief):
        risks += [brmdp.Quantile(level, "saddlepoint") for level in LEVELS]
    again = [measure(name, case.shape) for name in MEASURES]
    n = len(LEVELS) + 1
    same = [*risks[:n], *again, *risks[n + len(again) :]]
    found = brmdp.plan_many(case.belief, case.rewards, case.discount, risk=risks)
    k = len(risks)
    wanted = one_by_one([case.belief] * k, [case.rewards] * k, [case.discount] * k, same)
    assert_same(found, wanted)


def learned(seed, shape=(7, 2)):
    rng = np.random.default_rng(seed)
    belief = brmdp.DirichletBelief.uniform(*shape)
    for _ in range(200):
        belief.observe(rng.integers(shape[0]), rng.integers(shape[1]), rng.integers(shape[0]))
    return belief


@pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")
def test_items_of_their_own():
    rng = np.random.default_rng(5)
    beliefs = [learned(seed) for seed in range(12)]
    rewards = tuple(rng.random((7, 2)) for _ in beliefs)
    discounts = rng.uniform(0.5, 0.95, size=12).tolist()
    risks = [brmdp.Quantile(level) for level in rng.uniform(0.05, 0.95, size=12)]
    assert_same(
        brmdp.plan_many(beliefs, rewards, discounts, risk=risks, tolerance=1e-9, start=0),
        one_by_one(beliefs, rewards, discounts, risks, tolerance=1e-9, start=0),
    )
    assert_same(
        brmdp.plan_many(beliefs, rewards[0], 0.9, risk=risks[0]),
        one_by_one(beliefs, [rewards[0]] * 12, [0.9] * 12, [risks[0]] * 12),
    )
    assert_same(
        brmdp.plan_many(beliefs[0], rewards[0], np.array(discounts), risk=risks[0]),
        one_by_one([beliefs[0]] * 12, [rewards[0]] * 12, discounts, [risks[0]] * 12),
    )
    assert_same(
        brmdp.plan_many(beliefs[0], rewards[0], 0.9, risk=risks[0]),
        one_by_one(beliefs[:1], rewards[:1], [0.9], risks[:1]),
    )


def test_the_uniform_prior_ties_everywhere():
    belief = brmdp.DirichletBelief.uniform(5, 3)
    paid = np.tile(np.arange(5.0)[:, None], 3)
    risks = [brmdp.Quantile(level) for level in np.linspace(0.05, 0.95, 25)]
    with pytest.warns(brmdp.PriorWarning) as told:
        found = brmdp.plan_many(belief, paid, 0.9, risk=risks)
    assert len(told) == 1
    assert told[0].filename == __file__
    for plan in found:
        assert plan.tied.all()
        assert (plan.policy == 0).all()


@pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")
@pytest.mark.parametrize("states", [7, pytest.param(80, marks=pytest.mark.long)])
def test_results_do_not_depend_on_the_number_of_threads(states, monkeypatch):
    beliefs = [learned(seed, (states, 2)) for seed in (1, 2)] * 15
    rewards = np.random.default_rng(3).random((states, 2))
    risks = [brmdp.Quantile(level) for level in np.linspace(0.9, 0.05, 30)]
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("BRMDP_NUM_THREADS", threads)
        found.append(brmdp.plan_many(beliefs, rewards, 0.9, risk=risks))
    for one, *others in zip(*found, strict=True):
        for other in others:
            np.testing.assert_array_equal(one.values, other.values)
            np.testing.assert_array_equal(one.q_values, other.q_values)
            np.testing.assert_array_equal(one.kernel(), other.kernel())


@pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")
def test_a_large_problem(monkeypatch):
    monkeypatch.setattr(many, "WORTH_SPLITTING", 10)
    belief = learned(4)
    rewards = np.random.default_rng(4).random((7, 2))
    risks = [brmdp.Quantile(level) for level in LEVELS]
    k = len(LEVELS)
    assert_same(
        brmdp.plan_many(belief, rewards, 0.9, risk=risks),
        one_by_one([belief] * k, [rewards] * k, [0.9] * k, risks),
    )


@pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")
def test_measures_that_draw_take_their_turns():
    belief = learned(6)
    rewards = np.random.default_rng(6).random((7, 2))

    def measures():
        stream = np.random.default_rng(7)
        return [
            brmdp.PosteriorSample(rng=stream),
            brmdp.Quantile(0.3),
            brmdp.Quantile(0.2, method=brmdp.MonteCarlo(samples=50, rng=stream)),
            brmdp.PosteriorSample(rng=stream),
        ]

    assert_same(
        brmdp.plan_many(belief, rewards, 0.9, risk=measures()),
        one_by_one([belief] * 4, [rewards] * 4, [0.9] * 4, measures()),
    )


def test_without_discounting():
    coin = brmdp.DirichletBelief([[[5.0, 5.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    paid = np.array([[-1.0, -3.0], [0.0, 0.0]])
    risks = [brmdp.Quantile(level) for level in LEVELS]
    k = len(LEVELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)
        found = brmdp.plan_many(coin, paid, 1.0, risk=risks)
    assert_same(found, one_by_one([coin] * k, [paid] * k, [1.0] * k, risks))


@pytest.mark.filterwarnings("ignore::brmdp.PriorWarning")
def test_a_failure_says_which_plan():
    belief = learned(8)
    rewards = np.random.default_rng(8).random((7, 2))
    risks = [brmdp.Quantile(0.9), brmdp.Mean(), brmdp.Quantile(0.1)]
    settings = {"tolerance": 1e-300, "max_iterations": 5}
    with pytest.raises(brmdp.ConvergenceError, match=r"plan 0 of 3: error bound") as failure:
        brmdp.plan_many(belief, rewards, 0.9, risk=risks, **settings)
    assert failure.value.solution.status == "not converged"
    found = brmdp.plan_many(belief, rewards, 0.9, risk=risks, raise_on_failure=False, **settings)
    assert [one.status for one in found] == ["not converged"] * 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"risk": [brmdp.Mean()] * 3}, r"risk must have as many items as beliefs.*3 and 2"),
        ({"discount": [0.5]}, r"discount must have as many items as beliefs.*1 and 2"),
        ({"rewards": ()}, r"rewards must have as many items as beliefs.*0 and 2"),
        ({"beliefs": []}, r"beliefs must have 1 to 100,000 items; got 0"),
        ({"beliefs": [3, 4]}, r"belief must be a brmdp belief.*int"),
        ({"risk": [0.1, 0.2]}, r"risk must be brmdp.Quantile.*0.1"),
        ({"risk": brmdp.Quantile}, r"risk must be brmdp.Quantile"),
        ({"discount": [0.5, 1.5]}, r"discount must .*1.5"),
        ({"discount": [0.5, np.nan]}, r"discount"),
        ({"rewards": ([[1.0, 2.0]], [[1.0, 2.0]])}, r"rewards must"),
        ({"method": "guess"}, r"method must be one of"),
        ({"tolerance": -1.0}, r"tolerance must"),
        ({"max_iterations": 0}, r"max_iterations must"),
        ({"start": 9}, r"start"),
    ],
)
def test_bad_input(changed, message):
    given = {
        "beliefs": [learned(1), learned(2)],
        "rewards": np.zeros((7, 2)),
        "discount": 0.9,
        "risk": brmdp.Mean(),
    } | changed
    beliefs, rewards, discount = (given.pop(name) for name in ("beliefs", "rewards", "discount"))
    with pytest.raises(brmdp.InvalidInputError, match=message):
        brmdp.plan_many(beliefs, rewards, discount, **given)
