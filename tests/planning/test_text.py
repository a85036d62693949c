"""Printed results fit a screen, whatever the number of states, and say what they promise."""

import warnings

import numpy as np
import pytest

import brmdp
from brmdp.planning import certify_nested
from brmdp.planning.text import call_like, extent

COLUMNS, LINES = 100, 12


def fits(text):
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    return True


@pytest.mark.long
@pytest.mark.parametrize("n_states", [1, 6, 90, 1000])
@pytest.mark.parametrize("observed", [False, True])
def test_results_fit_a_screen(n_states, observed):
    around = np.arange(n_states)
    possible = np.zeros((n_states, 2, n_states))
    for step in (-1, 0, 1):
        possible[around, :, (around + step) % n_states] = 1.0
    belief = brmdp.DirichletBelief.uniform(n_states, 2, possible=possible)
    if observed:
        states = np.repeat(around, 40)
        belief.observe(states, np.tile([0, 1], states.size // 2), states)
    rewards = np.random.default_rng(0).normal(0.0, 1e4, (n_states, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", brmdp.PriorWarning)
        plan = brmdp.plan(belief, rewards, 0.9, risk=brmdp.Quantile(0.1))
        certificate = certify_nested(belief, rewards, 0.9, coverage_samples=3, rng=0)
    value = brmdp.posterior_quantile_value(belief, rewards, 0.9, plan.policy, samples=3, rng=0)
    for result in (plan, plan.prior, certificate, certificate.prior, value):
        assert fits(repr(result))
        assert fits(str(result))
        assert repr(result).startswith(f"{type(result).__name__}(")


def test_a_certificate_says_what_it_promises():
    belief = brmdp.DirichletBelief([[[90, 10]], [[20, 80]]])
    certificate = certify_nested(belief, [[1.0], [0.0]], 0.5, 0.9, coverage_samples=0)
    text = " ".join(str(certificate).split())
    assert text.startswith(
        "With posterior probability at least 0.9, the true value of this policy is at least the "
        "certified value in every state at once."
    )
    assert all(f"{value:.4g}" in text for value in certificate.values)


def test_a_confidence_is_never_rounded_up():
    belief = brmdp.DirichletBelief([[[90, 10]], [[20, 80]]])
    problem = (belief, [[1.0], [0.0]], 0.5)
    with pytest.warns(brmdp.PriorWarning):
        certificate = certify_nested(*problem, 0.9996, coverage_samples=0)
    assert "probability at least 0.9996, the" in " ".join(str(certificate).split())
    assert "confidence=0.9996" in repr(certificate)
    value = brmdp.posterior_quantile_value(*problem, [0, 0], confidence=0.9996, rng=0)
    assert "of the 99.96 % intervals" in " ".join(str(value).split())


def test_few_values_are_listed_and_many_summarised():
    assert extent(np.array([1.0, -2.5])) == "1, -2.5"
    assert extent(np.arange(100.0)) == "from 0 (state 0) to 99 (state 99)"


def test_long_parts_go_to_lines_of_their_own():
    assert call_like("F", ["a=1", "b=2"]) == "F(a=1, b=2)"
    assert call_like("F", ["a" * 60, "b" * 60]) == f"F({'a' * 60},\n  {'b' * 60})"
