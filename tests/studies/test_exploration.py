"""The study of exploration: its worlds and settings, its table, its verdicts, its figures."""

from dataclasses import replace

import numpy as np
import pytest

from brmdp.report.claims import Verdict
from brmdp.runs.catalogue import make_agent, make_setting
from brmdp.studies.exploration import STUDIES
from brmdp.studies.exploration.analysis import CLAIMS, analyse
from brmdp.studies.exploration.experiment import AGENTS, EXPERIMENT, FAMILIES, OPTIMISTS, WORLDS

pytestmark = pytest.mark.long

RUNS, STEPS = 4, 12
RUN = "riverswim-6"


def tiny():
    """One world with all methods; the records of others are made up from it."""
    cases = tuple(case for case in EXPERIMENT.cases if case.name.startswith(f"{RUN}/"))
    return replace(EXPERIMENT, cases=cases).adjusted(runs=RUNS, steps=STEPS)


def grown(found, world, agent, size, power=0.5):
    """Made-up records: regret of about size·T^power in every run, the powers a bit apart."""
    case = next(case for case in EXPERIMENT.cases if case.name == f"{world}/{agent}")
    rng = np.random.default_rng(list(case.name.encode()))
    powers = power + rng.uniform(-1e-3, 1e-3, (RUNS, 1))
    regret = np.diff(size * np.arange(STEPS + 1.0) ** powers, axis=1)
    return replace(found, case=replace(case, steps=STEPS, reported_steps=STEPS), true_regret=regret)


def everywhere(records, sizes, powers):
    """Records of every case; ``sizes`` and ``powers`` are for some agents, or (world, agent)."""
    made = {}
    for world in WORLDS:
        for agent in AGENTS:
            key = (world, agent)
            size = sizes.get(key, sizes.get(agent, 1.0)) * (2.0 if world == "deep-sea-8" else 1.0)
            power = powers.get(key, powers.get(agent, 0.5))
            made[f"{world}/{agent}"] = grown(records[f"{RUN}/{agent}"], world, agent, size, power)
    return made


def judged(records):
    found = analyse(EXPERIMENT, records)
    return {claim.identifier.partition("/")[2]: claim for claim in found.claims}


def test_every_method_meets_every_world_with_one_setting():
    assert len(EXPERIMENT.cases) == len(WORLDS) * len(AGENTS) == 135
    assert EXPERIMENT.runs >= 100
    assert {world for family in FAMILIES.values() for world in family} == set(WORLDS)
    for case in EXPERIMENT.cases:
        world, agent = case.name.split("/")
        assert case.prior == {"concentration": 1 / WORLDS[world].states, "known_successors": False}
        assert (case.discount, case.steps) == (0.95, WORLDS[world].steps)
        same = {
            key: value / WORLDS[world].largest if key in ("beta", "eta") else value
            for key, value in case.agent_parameters.items()
        }
        first = EXPERIMENT.cases[AGENTS.index(agent)]
        assert same == pytest.approx(first.agent_parameters) if agent in OPTIMISTS else True


@pytest.mark.parametrize("world", WORLDS)
def test_worlds_are_what_they_are_said_to_be(world):
    case = next(case for case in EXPERIMENT.cases if case.name.startswith(f"{world}/"))
    setting = make_setting(case, 0)
    assert setting.world.n_states == WORLDS[world].states
    largest = setting.world.truth.transition_rewards.max()
    assert largest == pytest.approx(WORLDS[world].largest, rel=0.003)  # a sea's moves cost
    assert make_agent(case, setting, 0).act(0) in range(setting.world.n_actions)


def test_records_of_every_method(stored):
    experiment, _, records = stored
    assert set(records) == {f"{RUN}/{agent}" for agent in AGENTS}
    for found in records.values():
        assert found.true_regret.shape == (RUNS, STEPS)
        assert (found.true_regret >= -1e-7).all()
    findings = analyse(experiment, records)
    assert findings.table.header == ("world, method", "regret", "late share", "s/run")
    assert {row[0] for row in findings.table.rows} == {
        f"{RUN}, {experiment.case(f'{RUN}/{agent}').label}" for agent in AGENTS
    }
    means = [float(row[1].split(" ")[0]) for row in findings.table.rows]
    assert means == sorted(means)
    unresolved = {
        claim.identifier for claim in findings.claims if claim.verdict.value != "measured"
    }
    assert len(unresolved) == 4


def test_cells_are_in_units_of_the_largest_reward(stored):
    _, _, records = stored
    made = everywhere(records, {("six-arms", "beb"): 6000.0}, {"beb": 1.0})
    found = analyse(EXPERIMENT, made)
    row = next(row for row in found.table.rows if row[0] == "six-arms, BEB")
    assert float(row[1].split(" ")[0]) == pytest.approx(STEPS, rel=1e-2)
    assert row[2] == "0.50"
    assert found.summary["late_share"]["chain/beb"]["mean"] == pytest.approx(0.5, abs=1e-3)
    assert len(found.table.rows) == len(made)
    some = {name: one for name, one in made.items() if "/beb" in name or name.startswith("chain")}
    assert len(analyse(EXPERIMENT, some).table.rows) == len(some)


def test_verdicts_follow_from_the_regrets(stored):
    _, _, records = stored
    sizes = {"aq-brmdp": 0.5, "visit-level": 0.5, "q-learning": 3.0}
    powers = {"q-learning": 1.0}
    found = judged(everywhere(records, sizes, powers))
    assert {name: claim.verdict for name, claim in found.items()} == {
        "not-above-sampling": Verdict.REPRODUCED,
        "depth-needs-curiosity": Verdict.REPRODUCED,
        "no-curiosity-no-treasure": Verdict.REPRODUCED,
        "visit-levels": Verdict.REPRODUCED,
        "against-the-paper": Verdict.MEASURED,
        "growth-with-size": Verdict.MEASURED,
    }
    growth = found["growth-with-size"].comparisons[AGENTS.index("beb")]
    assert growth.estimate.mean == pytest.approx(2.0, abs=0.01)
    sizes |= {("riverswim-15", "aq-brmdp"): 2.0, ("chain", "visit-level"): 2.0}
    sizes |= {("deep-sea-8", "r-max"): 99.0}
    found = judged(everywhere(records, sizes, {"q-learning": 0.5}))
    for name in list(found)[:4]:
        assert found[name].verdict is Verdict.CONTRADICTED
    assert len(found) == len(CLAIMS)


def test_one_figure_per_family_also_if_cases_are_missing(stored):
    _, _, records = stored
    assert set(STUDIES[0].draw(records)) == {"exploration-riverswim"}
    made = everywhere(records, {}, {})
    assert set(STUDIES[0].draw(made)) == {f"exploration-{family}" for family in FAMILIES}
