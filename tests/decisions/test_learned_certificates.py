"""The certificate's claim where the prior itself was learned, by simulation of the whole hierarchy.

Hyperparameters, rows and log are drawn from the very hierarchy that ``learn_prior`` assumes: ln κ
uniform on its range, laws from their base, rows Dir(κ m_i). The prior is learned from that log, a
policy planned with it, and its true value compared with the certified one. A certificate at
confidence 1 − α is wrong in at most a share α of such worlds; the quantile itself, which gives
nothing away, is wrong in a share of α.
"""

import warnings

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.beliefs.gammas import dirichlet_rows
from brmdp.decisions import certify, learn_prior
from problems_of_priors import logged, simulated

ALPHA = 0.1
DISCOUNT = 0.9


def shared_world(shape, bounds, n, rng, *, n_states=4, n_actions=2, reach=None):
    """Counts, the true rows and the settings with which to learn."""
    strength = np.exp(rng.uniform(*np.log(bounds), n_actions))
    # one κ per action; in "actions" there is only one
    family, law, _, _ = simulated(shape, n_states, n_actions, 1.0, 1, rng, reach=reach)
    kappa = strength[: family.n_strengths][family.strength_of_kind]
    weight = np.maximum((kappa * family.shares(law))[family.kind_of_entry], 1e-30)
    rows = dirichlet_rows(weight, 1, rng, family.pattern.row_widths)[0]
    counts = family.pattern.dense(logged(family.pattern, rows, n, rng))
    settings = {"shape": shape, "strength_range": bounds, "reach": reach}
    return counts, family.pattern, rows, None, settings


def grouped_world(shape, bounds, n, rng, *, n_states=3, n_actions=2, n_groups=4):
    """The same for one of several groups, whose rows vary about common ones."""
    _, pattern, common, _, settings = shared_world(
        shape, bounds, 1, rng, n_states=n_states, n_actions=n_actions
    )
    counts = {}
    for group in range(n_groups):
        weight = np.maximum(np.exp(rng.uniform(*np.log(bounds))) * common, 1e-30)
        rows = dirichlet_rows(weight, 1, rng, pattern.row_widths)[0]
        counts[group] = pattern.dense(logged(pattern, rows, n, rng))
    settings = {**settings, "reach": None, "pooling": "partial"}
    return counts, pattern, rows, n_groups - 1, settings


WORLDS = {
    "one law, few data": lambda rng: shared_world("destinations", (1e3, 1e6), 2, rng),
    "destinations, any strength": lambda rng: shared_world("destinations", (1e-2, 1e6), 6, rng),
    "destinations, weak": lambda rng: shared_world("destinations", (0.1, 5.0), 6, rng),
    "increments, few data": lambda rng: shared_world("increments", (1.0, 1e4), 2, rng, n_states=6),
    "increments, much data": lambda rng: shared_world(
        "increments", (1.0, 100.0), 60, rng, n_states=5, reach=2
    ),
    "staying": lambda rng: shared_world("staying", (0.5, 1e3), 5, rng),
    "actions": lambda rng: shared_world("actions", (0.5, 1e3), 5, rng, n_actions=4),
    "uniform": lambda rng: shared_world("uniform", (0.1, 1e3), 4, rng),
    "groups, uniform": lambda rng: grouped_world("uniform", (0.5, 500.0), 5, rng),
    "groups, destinations": lambda rng: grouped_world("destinations", (0.5, 500.0), 5, rng),
}


def true_value(pattern, rows, rewards, policy):
    kernel = pattern.dense(rows)[np.arange(policy.size), policy]
    paid = rewards[np.arange(policy.size), policy]
    return np.linalg.solve(np.eye(policy.size) - DISCOUNT * kernel, paid)


def without_caveat(belief):
    """The same rows, as if their prior had been known."""
    return brmdp.DirichletBelief.from_arrays(belief.arrays(), "a test")


def outcomes(kind, n_worlds, rng, draws=400):
    """Shares of worlds in which bound and quantile exceed the true value at the start.

    "joint" is the belief with everything uncertain, "plug-in" the one at point hyperparameters.
    """
    wrong = {"joint": [], "joint, quantile": [], "plug-in": []}
    for _ in range(n_worlds):
        counts, pattern, rows, group, settings = WORLDS[kind](rng)
        learned = learn_prior(counts, draws=draws, rng=rng, **settings)
        rewards = rng.random((pattern.n_states, pattern.n_actions))
        for name, belief in (
            ("joint", learned.belief(group)),
            ("plug-in", without_caveat(learned.posterior(group))),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", brmdp.PriorWarning)
                plan = brmdp.plan(belief, rewards, DISCOUNT, risk=brmdp.Mean())
                found = certify(
                    belief,
                    rewards,
                    DISCOUNT,
                    1 - ALPHA,
                    policy=plan.policy,
                    start=0,
                    failure=1e-2,
                    draws=2000,
                    nested=False,
                    rng=rng,
                )
            value = true_value(pattern, rows, rewards, plan.policy)[0]
            wrong[name].append(value < found.value)
            if name == "joint":
                wrong["joint, quantile"].append(value < found.quantile)
    return {name: int(np.sum(values)) for name, values in wrong.items()}


def too_often(k, n):
    """p-value of k or more wrong certificates of n, if each is wrong with probability α."""
    return stats.binomtest(k, n, ALPHA, alternative="greater").pvalue


@pytest.mark.long
def test_certificates_hold_where_the_law_was_learned_and_the_plug_in_is_caught():
    n = 30
    found = outcomes("one law, few data", n, np.random.default_rng(2), draws=300)
    assert too_often(found["joint"], n) > 1e-3
    assert too_often(found["joint, quantile"], n) > 1e-3
    # the test can see a prior that is taken for known
    assert too_often(found["plug-in"], n) < 1e-3


@pytest.mark.slow
def test_certificates_of_learned_priors_hold_in_the_whole_hierarchy():
    n = 60
    found = {
        kind: outcomes(kind, n, np.random.default_rng([3, number]))
        for number, kind in enumerate(WORLDS)
    }
    print("", *(f"{kind}: {wrong} of {n}" for kind, wrong in found.items()), sep="\n")
    for kind, wrong in found.items():
        assert too_often(wrong["joint"], n) > 1e-4, kind
        # the quantile gives nothing away, so it is wrong just as often as it may be
        assert stats.binomtest(wrong["joint, quantile"], n, ALPHA).pvalue > 1e-4, kind
    total = {name: sum(wrong[name] for wrong in found.values()) for name in wrong}
    worlds = n * len(found)
    assert too_often(total["joint"], worlds) > 1e-2
    assert stats.binomtest(total["joint, quantile"], worlds, ALPHA).pvalue > 1e-2
    # what is taken for known is not: the test can tell
    assert too_often(found["one law, few data"]["plug-in"], n) < 1e-6
    assert too_often(total["plug-in"], worlds) < 1e-6
