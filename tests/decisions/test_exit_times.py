"""Finite and infinite posterior means of times to the end."""

import numpy as np
import pytest
from cases import Blend

import brmdp
from brmdp.decisions import exit_moments, values_in_draws
from oracles import exit_times as oracle


def belief_of(phi):
    """One action, and the last state is the end."""
    phi = np.array(phi, dtype=float)
    costs = np.append(np.full(len(phi) - 1, -1.0), 0.0)[:, None]
    return brmdp.DirichletBelief(phi[:, None, :]), costs


def moments(phi, start=0):
    belief, costs = belief_of(phi)
    return exit_moments(belief, costs, np.zeros(len(phi), dtype=int), start=start)


# --- by hand --------------------------------------------------------------------------------------


def test_one_exit():
    infinite = moments([[4.0, 1.0], [0.0, 1.0]])
    assert (infinite.outflow, infinite.finite(), infinite.trap.tolist()) == (1.0, False, [0])
    mean = moments([[4.0, 1.5], [0.0, 1.0]])
    assert (mean.outflow, mean.finite(), mean.finite(2.0)) == (1.5, True, False)
    both = moments([[4.0, 2.5], [0.0, 1.0]])
    assert (both.finite(), both.finite(2.0)) == (True, True)
    assert "no finite posterior mean" in str(infinite)
    assert "finite posterior mean, but no finite variance" in str(mean)
    assert "finite posterior mean and variance" in str(both)
    assert repr(mean) == "ExitMoments(outflow=1.5, trap of 1 states)"


def test_the_mean_is_what_it_should_be_where_it_is_finite():
    # E[1/p] = (a + b − 1)/(a − 1) for p ~ Beta(a, b)
    belief, costs = belief_of([[4.0, 3.5], [0.0, 1.0]])
    found = values_in_draws(belief, costs, 1.0, [[0, 0]], start=0, draws=20_000, rng=1)
    expected = (3.5 + 4.0 - 1.0) / (3.5 - 1.0)
    error = found.values.std() / np.sqrt(20_000)
    assert abs(-found.values.mean() - expected) < 5.0 * error
    assert "median" in repr(found)
    assert "mean" not in repr(found)


def test_two_states_that_send_each_other_back():
    # out of the pair lead 0.4 and 0.5: an outflow of 0.9, although each state has more
    pair = moments([[0.0, 3.0, 0.4], [2.0, 0.0, 0.5], [0.0, 0.0, 1.0]])
    assert (pair.outflow, pair.trap.tolist()) == (pytest.approx(0.9), [0, 1])
    assert not pair.finite()


def test_a_trap_on_the_way_counts_even_if_it_can_be_missed():
    # from 0 mostly to the end at once; a cut between 0 and the end would be 5 + 0.8
    phi = [[0.0, 0.5, 5.0], [2.0, 3.0, 0.8], [0.0, 0.0, 1.0]]
    phi[1][0] = 0.0
    assert moments(phi).outflow == pytest.approx(0.8)
    assert not moments(phi).finite()
    # from state 2 on, nothing is trapped
    assert moments(phi, start=2).outflow == np.inf


def test_a_state_that_cannot_stay_is_no_trap():
    # small concentrations, but every step leads on
    phi = [[0.0, 0.3, 0.3], [0.0, 0.0, 0.1], [0.0, 0.0, 1.0]]
    found = moments(phi)
    assert (found.outflow, found.trap.size) == (np.inf, 0)
    assert found.finite(100.0)
    assert "there is no trap" in str(found)


@pytest.mark.parametrize("seed", range(60))
def test_traps_agree_with_all_subsets(seed):
    rng = np.random.default_rng(seed)
    n = 6
    sizes = rng.choice([0.2, 0.5, 1.0, 2.0, 3.0], (n, n))
    phi = np.where(rng.random((n, n)) < 0.4, sizes, 0.0)
    phi[:, -1] += np.where(rng.random(n) < 0.5, 0.3, 0.0)
    phi[:, -1] += phi.sum(axis=1) == 0.0
    phi[-1] = np.eye(n)[-1]
    start = int(rng.integers(n - 1))
    if not all(n - 1 in oracle.reachable(phi > 0, s) for s in range(n)):
        with pytest.raises(brmdp.InvalidInputError, match="for ever"):
            moments(phi, start)
        return
    found = moments(phi, start)
    expected = oracle.least_outflow(phi, {n - 1}, start)
    assert found.outflow == pytest.approx(expected)
    if np.isfinite(expected):
        trap = found.trap.tolist()
        assert oracle.communicates(phi > 0, trap)
        assert set(trap) <= oracle.reachable(phi > 0, start)


@pytest.mark.slow
@pytest.mark.parametrize(("outflow", "grows"), [(0.5, True), (3.0, False)])
def test_tails_of_draws_are_as_heavy_as_the_outflow_says(outflow, grows):
    # Pr(T > t) falls like t to the power −outflow
    phi = [[1.0, 2.0, outflow / 2], [2.0, 1.0, outflow / 2], [0.0, 0.0, 1.0]]
    belief, costs = belief_of(phi)
    times = -values_in_draws(
        belief, costs, 1.0, [[0, 0, 0]], start=0, draws=40_000, rng=1
    ).values.ravel()
    low, high = np.quantile(times, (0.99, 0.999))
    power = np.log(10.0) / np.log(high / low)
    assert power == pytest.approx(outflow, rel=0.35)
    assert (high / low > 50.0) == grows


# --- other beliefs and policies -------------------------------------------------------------------


def test_scenarios_and_known_kernels():
    good = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    stuck = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    costs = [[-1.0], [0.0]]
    mdp = brmdp.TabularMDP(good, costs, 1.0)
    assert exit_moments(mdp, costs, [0, 0]).finite(50.0)
    fine = brmdp.ScenarioBelief([good, 0.5 * good + 0.5 * stuck], [0.5, 0.5])
    assert exit_moments(fine, costs, [0, 0]).finite(50.0)
    with pytest.raises(brmdp.InvalidInputError, match="in scenario 1 it never does from state 0"):
        exit_moments(brmdp.ScenarioBelief([good, stuck], [0.5, 0.5]), costs, [0, 0])


def test_what_is_unknown_is_refused():
    rng = np.random.default_rng(0)
    one, two = rng.dirichlet(np.ones(3), (2, 3, 1))
    one[-1] = two[-1] = [0.0, 0.0, 1.0]
    costs = [[-1.0], [-1.0], [0.0]]

    class Fixed(Blend):
        def __init__(self):
            super().__init__(one, two)
            from brmdp.pattern import TransitionPattern

            self.pattern = TransitionPattern(
                3, 1, np.array([0, 3, 6, 7]), np.array([0, 1, 2, 0, 1, 2, 2])
            )
            self._two = self._two[:, [0, 1, 2, 3, 4, 5, 8]]

    with pytest.raises(brmdp.InvalidInputError, match="is unknown for a Fixed"):
        exit_moments(Fixed(), costs, [0, 0, 0])
    belief, costs = belief_of([[4.0, 1.0], [0.0, 1.0]])
    with pytest.raises(brmdp.InvalidInputError, match="policy must hold one action per state"):
        exit_moments(belief, costs, [[1.0], [1.0]])
    with pytest.raises(brmdp.InvalidInputError, match="can stay among"):
        exit_moments(*belief_of([[1.0, 0.0], [0.0, 1.0]]), [0, 0])
