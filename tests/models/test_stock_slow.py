"""Stocks with lost sales, against many simulated shops whose demand is known."""

import numpy as np
import pytest
from tests.models.shops import DISCOUNT, LAW, lines, model_of, truth

import brmdp
from brmdp.decisions.certificate import sampled_certificate_of

pytestmark = pytest.mark.slow


def test_the_certificate_is_kept_as_promised_if_demands_come_from_the_prior():
    kept, logs = 0, 400
    for k in range(logs):
        rng = np.random.default_rng([1, k])
        law = rng.dirichlet(np.full(LAW.size, 1.0 / LAW.size))
        law = np.maximum(law, 1e-300) / np.maximum(law, 1e-300).sum()
        model = model_of(lines(law, days=25, rng=rng))
        belief = model.belief()
        policy = brmdp.plan(
            belief, model.rewards, DISCOUNT, risk=model.quantile(belief, 0.3)
        ).policy
        found = sampled_certificate_of(
            *(belief, model.rewards, DISCOUNT, 0.9),
            policy=policy,
            start=3,
            draws=2000,
            nested=False,
            rng=k,
        )
        kept += found.value <= brmdp.evaluate_in_mdp(truth(law).mdp, policy)[3] + 1e-9
    # three standard errors below 0.9
    assert kept / logs >= 0.9 - 3 * np.sqrt(0.09 / logs)


def test_recommendations_beat_practice_and_come_close_to_the_best():
    problem = truth(LAW)
    best = brmdp.solve(problem.mdp).values[3]
    shares, kept = [], 0
    for k in range(50):
        rng = np.random.default_rng([2, k])
        model = model_of(lines(LAW, days=100, rng=rng), seed=k)
        group = model.decide(levels=(0.1, 0.3, 0.5), draws=200, checks=False).groups[0]
        own = brmdp.evaluate_in_mdp(problem.mdp, group.policy)[3]
        practice = brmdp.evaluate_in_mdp(problem.mdp, model.practice().mean)[3]
        assert own > practice
        shares.append((own - practice) / (best - practice))
        kept += group.guarantee.value <= own
    assert np.mean(shares) > 0.9
    assert kept >= 40  # for this one law, nothing is promised


def test_checks_rarely_stop_a_right_model():
    stops, looks = 0, 0
    for k in range(100):
        rng = np.random.default_rng([3, k])
        rows = [row for u in range(4) for row in lines(LAW, days=60, unit=f"u{u}", rng=rng)]
        verdicts = [check.verdict for check in model_of(rows, seed=k).check()]
        stops += "stop" in verdicts
        looks += "look" in verdicts
    assert stops <= 8  # at most 3 expected
    assert looks <= 60
