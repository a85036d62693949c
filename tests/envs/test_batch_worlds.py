"""Worlds of the batch literature, against second constructions and cells by hand."""

import numpy as np
import pytest
from scipy import stats

import brmdp
from brmdp.envs import machine_replacement, population, tumour, wet_chicken

# --- Wet Chicken ----------------------------------------------------------------------------------


def chicken_by_scan(x, y, action, steps=70_000):
    """Frequencies of next states over an even grid of turbulences."""
    down, across = [(0, 0), (-1, 0), (-2, 0), (0, -1), (0, 1)][action]
    flow = 3 * y / 5
    noise = (np.arange(steps) + 0.5) / steps * 2.0 - 1.0
    reached = np.round(x + down + flow + noise * (3.5 - flow)).astype(int)
    beside = min(max(y + across, 0), 4)
    found = np.zeros(25)
    np.add.at(found, np.where(reached >= 5, 0, np.maximum(reached, 0) * 5 + beside), 1.0 / steps)
    return found


def test_wet_chicken_follows_its_rule():
    kernel = wet_chicken().kernel()
    for x, y, action in [(0, 0, 0), (2, 2, 2), (4, 4, 0), (4, 0, 1), (3, 4, 3), (1, 3, 4)]:
        np.testing.assert_allclose(
            kernel[x * 5 + y, action], chicken_by_scan(x, y, action), atol=1e-4
        )


def test_wet_chicken_by_hand():
    river = wet_chicken()
    # at (4, 4), drifting: 4 + 2.4 ± 1.1 is beyond the edge in all cases
    assert river.kernel()[24, 0, 0] == pytest.approx(1.0)
    # at (0, 0), holding: −1 ± 3.5 stays above 0.5 with probability 2/7
    assert river.kernel()[0, 1, 0] == pytest.approx(5.0 / 7.0)
    np.testing.assert_array_equal(river.rewards[3, 2], np.repeat(np.arange(5.0), 5))
    assert (river.discount, river.start, river.action_names[2]) == (0.95, 0, "back")


# --- machine replacement --------------------------------------------------------------------------


def test_machine_by_hand():
    machine = machine_replacement()
    kernel = machine.kernel()
    np.testing.assert_allclose(kernel[3, 0, [3, 4]], [0.2, 0.8])
    np.testing.assert_allclose(kernel[3, 1, [4, 9, 8]], [0.3, 0.6, 0.1])
    np.testing.assert_allclose(kernel[7, 1, [7, 9, 8]], [0.3, 0.6, 0.1])
    np.testing.assert_allclose(kernel[7, 0, 7], 1.0)
    np.testing.assert_allclose(kernel[8, 1, [9, 8]], [0.6, 0.4])
    np.testing.assert_allclose(kernel[9, 0, [9, 0]], [0.2, 0.8])
    assert kernel[8, 0, 8] == kernel[9, 1, 9] == 1.0
    np.testing.assert_array_equal(machine.rewards[0, 0], [0] * 7 + [-20, -10, -2])
    assert machine.pattern.n_transitions == 45


# --- population -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n", "action"), [(10, 0), (25, 1), (45, 3), (5, 4), (0, 2), (50, 1)])
def test_population_follows_the_published_simulation(n, action):
    draws, rng = 200_000, np.random.default_rng(n)
    mean = 2.0 if action == 0 else 0.2 + (n - 25) ** 2 / 625
    rate = np.maximum(rng.normal(mean, [0.6, 0.6, 0.5, 0.4, 0.3][action], draws), 0.0)
    grown = np.clip(np.floor(n + (rate - 1.0) * n * (50 - n) / 50 + 0.5), 0, 50)
    arrivals = np.maximum(rng.normal(3.0, 1.5, draws), 0.0)
    reached = np.clip(np.floor(grown + arrivals + 0.5), 0, 50).astype(int)
    seen, row = np.bincount(reached, minlength=51), population().kernel()[n, action]
    common = row * draws >= 5
    if common.sum() == 1:
        assert seen[common][0] > 0.999 * draws
        return
    expected = row[common] / row[common].sum() * seen[common].sum()
    assert stats.chisquare(seen[common], expected).pvalue > 1e-4
    assert seen[~common].sum() < 100


def test_population_by_hand():
    field = population()
    np.testing.assert_allclose(field.rewards[20], 1000 - 400 - np.array([0, 800, 840, 880, 920]))
    assert field.kernel()[50, 4, 50] == 1.0  # nothing changes at the capacity, as published
    arrives = stats.norm(3.0, 1.5)
    np.testing.assert_allclose(
        field.kernel()[0, 0, :2], [arrives.cdf(0.5), arrives.cdf(1.5) - arrives.cdf(0.5)]
    )
    # at 25 without spraying: 25 + 12.5(g − 1) < 24.5 needs g < 0.96
    assert field.kernel()[25, 0, :25].sum() < stats.norm(2.0, 0.6).cdf(0.96)


@pytest.mark.parametrize("bad", [0, 1, 501, 2.5])
def test_capacities_are_checked(bad):
    with pytest.raises(brmdp.InvalidInputError, match="capacity"):
        population(bad)


# --- tumour ---------------------------------------------------------------------------------------


def test_tumour_by_hand():
    patient = tumour()
    kernel, rewards = patient.kernel(), patient.rewards
    size = 100.0 * 1.5 ** np.arange(-9.0, 1.0)
    level = np.linspace(0.0, 0.76 / 0.24, 5)
    # without drug, the drug's concentration stays zero; the size follows the gamma law
    grown = size[7] * (1.0 + 0.121 * (1.0 - size[7] / 100.0))
    law = stats.gamma(25.0, scale=grown / 25.0)
    middles = np.sqrt(size[6:8] * size[7:9])
    stays = law.cdf(middles[1]) - law.cdf(middles[0])
    assert kernel[35, 0, 35] == pytest.approx(stays, abs=1e-8)
    assert kernel[35, 0].reshape(10, 5)[:, 1:].sum() == 0.0
    # a dose: the mean concentration is 0.76·(C + 1)
    after = kernel[36, 1].reshape(10, 5).sum(axis=0)
    assert after @ level == pytest.approx(0.76 * (level[1] + 1.0))
    assert (after > 0.0).sum() == 2
    assert rewards[35, 1, 31] == pytest.approx(size[7] - size[6] - level[1])
    assert patient.start == 35


def test_a_tumour_without_a_price_is_always_treated():
    assert brmdp.solve(tumour(dose_penalty=0.0)).policy.all()
    assert not brmdp.solve(tumour(dose_penalty=1e6)).policy.any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sizes": 1}, "sizes and concentrations"),
        ({"concentrations": 51}, "sizes and concentrations"),
        ({"sizes": 2.5}, "sizes"),
        ({"dose_penalty": -1.0}, "dose_penalty"),
        ({"dose_penalty": float("nan")}, "dose_penalty"),
        ({"dose_penalty": "1"}, "dose_penalty"),
    ],
)
def test_bad_tumours_are_refused(given, message):
    with pytest.raises(brmdp.InvalidInputError, match=message):
        tumour(**given)


# --- all ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2.5])
def test_rivers_are_checked(length):
    with pytest.raises(brmdp.InvalidInputError, match="length"):
        wet_chicken(length)
    with pytest.raises(brmdp.InvalidInputError, match="at most 2000"):
        wet_chicken(100, 100)


@pytest.mark.parametrize("make", [wet_chicken, machine_replacement, population, tumour])
def test_rows_are_proper(make):
    mdp = make(discount=0.5)
    assert mdp.discount == 0.5
    np.testing.assert_allclose(mdp.kernel().sum(axis=2), 1.0, rtol=0, atol=1e-12)
    assert (mdp.kernel() >= 0.0).all()


@pytest.mark.parametrize("name", ["wet-chicken", "machine-replacement", "population", "tumour"])
def test_sweeps_may_name_them(name):
    from brmdp.runs import Case
    from brmdp.runs.catalogue import make_setting

    case = Case("try", name, "posterior-mean", 0.9, 10)
    world = make_setting(case, 0).world
    assert world.discount == 0.9
