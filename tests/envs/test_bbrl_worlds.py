"""The BBRL worlds by rule, against the published parameter files and what is known of these."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

import brmdp
from brmdp.envs import chain_worlds, double_loop_worlds, grid_worlds

WORLDS = {"GC": chain_worlds, "GDL": double_loop_worlds, "Grid": grid_worlds}
SIZES = {"GC": (5, 3), "GDL": (9, 2), "Grid": (25, 4)}
DIGESTS = {
    "GC": "11455cafa0901f8cdd7ff091133ca88d1caf467df44a6e300d5b5832aa2552db",
    "GDL": "404e1cfefb93eb702c3ff6053bb82752bdfb2dbc189f7d72f2819717b5f0533a",
    "Grid": "3b576c32e4271d2dc4808fdf3fe74e6fda279e8c1f7498fd8dae56fb5190896e",
}
"""SHA-256 of concentrations and rewards, (S, A, S) doubles, as read from the published files."""

FOLDER = "BRMDP_BBRL_FILES"


def folder():
    """The folder of the published files: the environment variable's, or one beside a checkout."""
    if FOLDER in os.environ:
        return Path(os.environ[FOLDER])
    places = [parent / "shared" / "bbrl" for parent in Path(__file__).resolve().parents]
    return next((place for place in places if place.is_dir()), None)


def digest(concentration, rewards):
    numbers = [
        np.ascontiguousarray(part, dtype="<f8").tobytes() for part in (concentration, rewards)
    ]
    return hashlib.sha256(b"".join(numbers)).hexdigest()


def read(path):
    """Concentrations, rewards and start: tables of one row per action and state, actions first."""
    lines = path.read_text().split("\n")
    at = lines.index("DirMultiDistribution") + 2
    n_states, n_actions, start = (int(line) for line in lines[at : at + 3])
    tables = []
    for begin in (at + 3, at + 4 + n_states * n_actions):
        rows = [line.split() for line in lines[begin : begin + n_states * n_actions]]
        table = np.array(rows, dtype=float).reshape(n_actions, n_states, n_states)
        tables.append(table.transpose(1, 0, 2))
    assert lines[at + 3 + n_states * n_actions].strip() == "0"  # a constant reward per transition
    return *tables, start


@pytest.mark.parametrize("name", WORLDS)
def test_rules_give_the_published_numbers(name):
    made = WORLDS[name]()
    assert digest(made.concentration, made.rewards) == DIGESTS[name]
    assert made.concentration.shape == (*SIZES[name], SIZES[name][0])
    assert made.start == 0


@pytest.mark.parametrize("name", WORLDS)
def test_rules_agree_with_the_files(name):
    place = folder()
    if place is None:
        pytest.skip(f"the published files are not here; set {FOLDER} to their folder")
    made = WORLDS[name]()
    concentration, rewards, start = read(place / f"{name}-distrib.dat")
    np.testing.assert_array_equal(made.concentration, concentration)
    np.testing.assert_array_equal(made.rewards, rewards)
    assert digest(concentration, rewards) == DIGESTS[name]
    assert start == made.start
    uniform, same_rewards, start = read(place / f"U{name}-distrib.dat")
    np.testing.assert_array_equal(uniform, np.ones_like(concentration))
    np.testing.assert_array_equal(same_rewards, rewards)


def test_every_row_has_a_successor_and_the_goal_is_next_to_two_cells():
    for make in WORLDS.values():
        assert (make().concentration.sum(axis=2) > 0).all()
    grid = grid_worlds()
    assert [tuple(found) for found in np.argwhere(grid.rewards)] == [(19, 3, 0), (23, 1, 0)]
    # nobody ever enters the last cell
    assert not grid.concentration[:24, :, 24].any()


def test_priors_of_a_drawn_world_are_the_distribution_and_the_uniform_one():
    from brmdp.runs import Case
    from brmdp.runs.catalogue import make_setting

    for known in (True, False):
        case = Case(
            "a",
            "bbrl",
            "posterior-mean",
            0.95,
            5,
            {"worlds": "grid"},
            prior={"known_successors": known},
        )
        setting = make_setting(case, 3)
        expected = grid_worlds().concentration if known else np.ones((25, 4, 25))
        np.testing.assert_array_equal(setting.belief.concentration(), expected)
        truth = setting.world.truth
        assert ((truth.kernel() > 0) == (grid_worlds().concentration > 0)).all()
        other = make_setting(case, 4).world.truth
        assert not np.array_equal(truth.kernel(), other.kernel())


def test_an_unknown_distribution_is_named():
    from brmdp.runs import Case, execute

    case = Case("a", "bbrl", "posterior-mean", 0.95, 5, {"worlds": "gcc"})
    with pytest.raises(brmdp.InvalidInputError, match=r"gcc.*'gc'.*gdl, grid"):
        execute(case, 1, 0)
