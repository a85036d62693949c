"""The public door of certificates: which method is taken, and what each accepts."""

import math
import warnings

import numpy as np
import pytest
from cases import KINDS

import brmdp
from brmdp.decisions import certificate as module
from brmdp.planning import certify_nested
from foreign import Jittered


def problem(kind="dense", seed=3):
    case = KINDS[kind](seed)
    return case.belief, case.rewards, case.discount


def test_sampled_is_the_default_and_says_so():
    found = brmdp.certify(*problem(), start=0, draws=2000, rng=0)
    assert isinstance(found, brmdp.SampledCertificate)
    assert found.method == "sampled"
    assert found.values is None
    everywhere = brmdp.certify(*problem(), rng=0)
    assert everywhere.method == "sampled"
    assert everywhere.value is None


def test_nested_is_what_it_was():
    got = brmdp.certify(*problem(), 0.8, method="nested", coverage_samples=50, rng=1)
    plain = certify_nested(*problem(), 0.8, coverage_samples=50, rng=1)
    assert got.method == "nested"
    assert got.coverage == plain.coverage
    np.testing.assert_array_equal(got.values, plain.values)
    assert got.value is None
    begin = np.arange(1.0, got.values.size + 1)
    begin /= begin.sum()
    there = brmdp.certify(*problem(), 0.8, method="nested", start=begin, coverage_samples=0)
    mean = math.fsum(v * w for v, w in zip(plain.values, begin, strict=True))
    assert there.value <= mean
    assert there.value == pytest.approx(mean, rel=1e-13)
    assert "From the start" in str(there)
    at = brmdp.certify(*problem(), 0.8, method="nested", start=1, horizon=3, coverage_samples=0)
    assert at.value == pytest.approx(at.values[1], rel=1e-13)


def test_a_given_policy_is_certified_by_both():
    belief, rewards, discount = problem()
    policy = np.ones((belief.pattern.n_states, belief.pattern.n_actions))
    policy /= policy.sum(axis=1, keepdims=True)
    both = [
        brmdp.certify(belief, rewards, discount, method=method, policy=policy, start=0, rng=2)
        for method in ("sampled", "nested")
    ]
    assert both[0].value > both[1].value
    for found in both:
        np.testing.assert_allclose(found.policy, policy)


def test_nested_takes_over_where_draws_would_take_too_long(monkeypatch):
    sure = 1.0 - 1e-9
    assert brmdp.certify(*problem(), sure, coverage_samples=0).method == "nested"
    with pytest.raises(brmdp.InvalidInputError, match="use a lower confidence"):
        brmdp.certify(*problem(), sure, method="sampled")
    monkeypatch.setattr(module, "BUDGET_NUMBERS", 1_000)
    assert brmdp.certify(*problem()).method == "nested"
    # where nested bounds do not exist, or sampled ones are asked for, nothing takes over
    belief, rewards, discount = problem()
    assert brmdp.certify(belief, rewards, discount, start=0, draws=200, rng=0).method == "sampled"
    own = Jittered(np.full((3, 2, 3), 4.0))
    assert brmdp.certify(own, np.eye(3)[:, :2], 0.5, start=0, rng=0).method == "sampled"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "exact"}, 'method must be "sampled" or "nested"; got \'exact\''),
        ({"method": "sampled", "coverage_samples": 5}, 'setting of method="nested"'),
        ({"tolerance": 1e-6}, 'tolerance is a setting of method="nested".*by default'),
        ({"method": "nested", "draws": 500}, 'draws is a setting of method="sampled"'),
        ({"method": "nested", "policy": [0, 0, 0], "horizon": 2}, "policy cannot be given"),
        ({"policy": [0], "start": 0}, "policy"),
        ({"start": 99}, "start"),
        ({"gap": 0.0}, "gap"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_errors_name_the_culprit(arguments, words):
    with pytest.raises(brmdp.InvalidInputError, match=words):
        brmdp.certify(*problem(), **arguments)


def test_a_misspelt_setting_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'drawz'"):
        brmdp.certify(*problem(), drawz=5)


@pytest.mark.parametrize("method", ["sampled", "nested"])
def test_the_warning_points_to_the_caller(method):
    belief = brmdp.DirichletBelief.uniform(3, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        brmdp.certify(belief, np.eye(3)[:, :2], 0.5, method=method, rng=0)
    (only,) = (w for w in caught if w.category is brmdp.PriorWarning)
    assert only.filename == __file__


def test_the_same_seed_gives_each_function_draws_of_its_own():
    """Whoever selects by ``values_in_draws`` with rng=0 must not certify with the same draws."""
    belief, rewards, discount = problem()
    policy = [0] * belief.pattern.n_states
    values = brmdp.values_in_draws(belief, rewards, discount, [policy], start=0, draws=1000, rng=0)
    one = brmdp.certify(
        belief, rewards, discount, policy=policy, start=0, draws=1000, nested=False, rng=0
    )
    assert np.abs(values.values[:, 0] - one.value).min() > 1e-9 * abs(one.value)
    gain = brmdp.compare(
        belief, rewards, discount, policy, [1] * len(policy), start=0, draws=1000, rng=0
    ).gain.mean
    other = brmdp.values_in_draws(
        belief, rewards, discount, [policy, [1] * len(policy)], start=0, draws=1000, rng=0
    ).values
    assert abs((other[:, 0] - other[:, 1]).mean() - gain) > 1e-9
    # a generator is taken as it is, and a seed always gives the same
    again = brmdp.certify(
        belief, rewards, discount, policy=policy, start=0, draws=1000, nested=False, rng=0
    )
    assert again.value == one.value


def test_a_rare_loss_gets_no_interval():
    """Three losses in a thousand draws say little of how large the mean is."""
    values = np.zeros(1000)
    values[:3] = 5.0
    rare = brmdp.decisions.Estimate.of(values)
    assert str(rare) == "0.015 (not zero in only 3 of 1000 draws, too few for an interval)"
    assert "interval -" not in str(rare)
    often = brmdp.decisions.Estimate.of(np.repeat([0.0, 1.0], 500))
    assert "95 % Monte Carlo interval 0.469 to 0.531" in str(often)


def test_comparisons_and_information_say_what_rests_on_the_prior():
    belief = brmdp.DirichletBelief.uniform(2, 2)
    for action in (0, 1):
        belief.observe(0, action, [0] * 400 + [1] * 2)
    rewards = [[0.0, 0.0], [1.0, 1.0]]
    found = brmdp.compare(belief, rewards, 0.5, [1, 1], [0, 0], start=0, draws=100, rng=0)
    assert found.prior.never_observed.size == 1
    assert not found.prior.outweighs
    assert "there, the value of the policy rests on the prior alone" in " ".join(str(found).split())
    for state, action in np.ndindex(2, 2):
        belief.observe(state, action, [0] * 40 + [1] * 40)
    found = brmdp.compare(belief, rewards, 0.9, [1, 1], [0, 0], start=0, draws=100, rng=0)
    assert "prior" not in str(found)
    assert "prior" not in repr(found)
    bare = brmdp.DirichletBelief.uniform(2, 2)
    known = brmdp.value_of_information(bare, rewards, 0.9, start=0, draws=100, rng=0)
    assert "The value of today's policy rests heavily on the prior" in str(known)
    assert "rests on the prior" in repr(known)


@pytest.mark.parametrize("method", ["sampled", "nested"])
def test_a_learned_prior_that_is_taken_for_known_gets_no_certificate(method):
    counts = np.random.default_rng(0).multinomial(20, [0.1, 0.6, 0.3], size=(3, 2))
    learned = brmdp.learn_prior(counts, shape="destinations", draws=300, rng=0)
    rewards = np.eye(3)[:, :2]
    for belief in (learned.posterior(), learned.posterior().copy()):
        with pytest.raises(brmdp.InvalidInputError, match=r"taken|takes the prior .* for known"):
            brmdp.certify(belief, rewards, 0.5, method=method)
    found = brmdp.compare(learned.posterior(), rewards, 0.5, [0] * 3, [1] * 3, draws=100, rng=0)
    assert "so it is too sure" in " ".join(str(found).split())
    assert brmdp.certify(learned.belief(), rewards, 0.5, start=0, failure=1e-2, rng=0).value > 0
