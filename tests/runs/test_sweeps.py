"""Sweeps in TOML: what they mean, and what is said about mistakes."""

import sys
import textwrap

import pytest

import brmdp
import brmdp.runs.sweep as sweep_module
from brmdp.errors import InvalidInputError
from brmdp.runs import Case, Experiment, load_sweep, run_experiment
from brmdp.runs.execution import build

COMMON = 'name = "try"\nruns = 2\nsteps = 30\n'
RIVER = '[[environment]]\nname = "riverswim"\nn = 4\n'
PSRL = '[[agent]]\nname = "continuing-psrl"\n'


@pytest.fixture
def sweep(tmp_path):
    """Loads text as a file."""

    def load(text):
        path = tmp_path / "sweep.toml"
        path.write_text(text)
        return load_sweep(path)

    return load


FULL = """
name = "caution"
title = "How much caution?"
runs = 20
steps = 2000
seed = 1
discount = 0.9
robust_level = 0.2
quantile_level = 0.1

[[environment]]
name = "riverswim"
n = [6, 10]

[[environment]]
name = "FrozenLake-v1"
is_slippery = true
discount = 0.95

[[agent]]
name = "aq-brmdp"
delta = [5, 10]
method = "saddlepoint"

[[agent]]
name = "continuing-psrl"
"""


def test_everything_meets_everything(sweep):
    experiment = sweep(FULL)
    assert (experiment.name, experiment.title, experiment.runs, experiment.seed) == (
        "caution",
        "How much caution?",
        20,
        1,
    )
    assert [case.name for case in experiment.cases] == [
        f"{place}/{agent}"
        for place in ("riverswim-n6", "riverswim-n10", "FrozenLake-v1")
        for agent in ("aq-brmdp-delta5", "aq-brmdp-delta10", "continuing-psrl")
    ]
    case = experiment.case("FrozenLake-v1/aq-brmdp-delta10")
    assert case.environment_parameters == {"is_slippery": True}
    assert (case.discount, case.steps, case.reported_steps) == (0.95, 2000, 2000)
    assert (case.robust_level, case.quantile_level) == (0.2, 0.1)
    assert experiment.cases[0].discount == 0.9
    assert case.agent_parameters == {
        "delta": 10,
        "floor": 0.2,
        "method": "saddlepoint",
        "coefficient": 250.0,
        "restart": "geometric",
        "ties": "uniform",
    }


OWN_PARTS = """
class Weekly:
    def __init__(self, days):
        self.days = days
    def ends(self, progress, rng):
        return progress.steps_in_episode >= self.days
"""
OWN_AGENTS = """
class QLearning:
    def __init__(self, belief, rewards, discount, *, rate, rng):
        assert rate == 0.1
    def act(self, state):
        return 0
    def observe(self, state, action, next_state):
        pass
"""


def test_the_example_in_the_documentation_works(sweep, tmp_path, monkeypatch):
    for name, text in (("my_parts", OWN_PARTS), ("my_agents", OWN_AGENTS)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    documentation = sweep_module.__doc__
    example, _, after = documentation.partition("::\n")[2].partition("\nEvery agent is run")
    experiment = sweep(textwrap.dedent(example))
    assert "(2 + 1) × (2 + 1 + 1) cases of 20 runs" in after
    assert (len(experiment.cases), experiment.runs) == (3 * 4, 20)
    assert "``riverswim-n6/aq-brmdp-delta5``" in after
    assert experiment.cases[0].name == "riverswim-n6/aq-brmdp-delta5"
    assert {case.label for case in experiment.cases} == {
        *("riverswim-n6/CVaR", "riverswim-n10/CVaR", "FrozenLake-v1/CVaR", "")
    }
    assert [case.prior for case in experiment.cases[:1] + experiment.cases[-1:]] == [
        {"concentration": 0.5},
        {"concentration": 0.5, "known_successors": True},
    ]


def test_one_environment_is_left_out_of_the_names(sweep):
    experiment = sweep(COMMON + RIVER + PSRL + '[[agent]]\nname = "fixed-quantile"\nalpha = 0.1\n')
    assert [case.name for case in experiment.cases] == ["continuing-psrl", "fixed-quantile"]
    assert (experiment.title, experiment.seed, experiment.cases[0].robust_level) == (
        "try",
        2026,
        None,
    )


def test_tables_of_the_same_name_are_told_apart(sweep):
    agents = "".join(
        f'[[agent]]\nname = "fixed-quantile"\nalpha = {alpha}\n' for alpha in (0.1, 0.3, 0.3)
    )
    rules = '[[agent]]\nname = "continuing-psrl"\nrestart = ["every-step", 5]\n'
    assert [case.name for case in sweep(COMMON + RIVER + agents + rules).cases] == [
        "fixed-quantile-alpha0.1",
        "fixed-quantile-alpha0.3",
        "continuing-psrl-restartevery-step",
        "continuing-psrl-restart5",
    ]


def test_truth_values_and_numbers_are_different_cases(sweep):
    """Even deep inside a table; a whole number may be written either way."""
    river = """[[environment]]
name = "FrozenLake-v1"
is_slippery = [1, 1.0, true, false]
"""
    assert [case.name for case in sweep(COMMON + river + PSRL).cases] == [
        f"FrozenLake-v1-is_slippery{word}/continuing-psrl" for word in ("1", "True", "False")
    ]
    prior = "prior = [{concentration = 1, known_successors = true}, "
    prior += "{concentration = 1.0, known_successors = true}]\n"
    assert len(sweep(COMMON + RIVER + PSRL + prior).cases) == 1


def labels(experiment):
    return [case.label for case in experiment.cases]


def test_equal_labels_are_told_apart_by_what_varies(sweep):
    quantile = '[[agent]]\nname = "fixed-quantile"\nlabel = "FQ"\n'
    assert labels(sweep(COMMON + RIVER + PSRL + quantile + "alpha = [0.1, 0.5]\n")) == [
        *("", "FQ (alpha0.1)", "FQ (alpha0.5)")
    ]
    both = "alpha = [0.1, 0.5]\nties = ['uniform', 'lowest']\n"
    assert labels(sweep(COMMON + RIVER + quantile + both))[1] == "FQ (alpha0.1, tieslowest)"
    adaptive = '[[agent]]\nname = "aq-brmdp"\ndelta = 5\nlabel = "FQ"\n'
    assert labels(sweep(COMMON + RIVER + quantile + "alpha = 0.1\n" + adaptive)) == [
        *("FQ (fixed-quantile)", "FQ (aq-brmdp)")
    ]
    other = quantile.replace("FQ", "Bold") + "alpha = 0.9\n"
    assert labels(sweep(COMMON + RIVER + quantile + "alpha = 0.1\n" + other)) == ["FQ", "Bold"]


def test_equal_labels_of_environments_are_told_apart_by_what_varies(sweep):
    rivers = RIVER.replace("4", "[4, 5]") + 'label = "River"\n'
    assert labels(sweep(COMMON + rivers + PSRL)) == [
        *("River (n4)/continuing-psrl", "River (n5)/continuing-psrl")
    ]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("_hidden", "label must not begin with '_'; got '_hidden'"),
        ("fixed-quantile", "got 'fixed-quantile' for 'continuing-psrl' and 'fixed-quantile'"),
    ],
)
def test_labels_that_would_mislead_are_refused(sweep, label, message):
    agents = f'{PSRL}label = "{label}"\n[[agent]]\nname = "fixed-quantile"\nalpha = 0.1\n'
    with pytest.raises(InvalidInputError, match=message):
        sweep(COMMON + RIVER + agents)


def test_cases_in_one_environment_have_labels_of_their_own():
    def case(name, label, n=4):
        return Case(name, "riverswim", "continuing-psrl", 0.9, 5, {"n": n}, label=label)

    for first, second in [("A", "A"), ("b", ""), ("b", "B"), ("", "a")]:
        with pytest.raises(InvalidInputError, match="labels of cases in the same environment"):
            Experiment("x", "X", (case("a", first), case("b", second)))
    assert Experiment("x", "X", (case("a", "A"), case("b", "A", n=5)))
    assert Experiment("x", "X", (case("a", "a"), case("b", "B")))


def test_one_parameter_at_a_time_needs_no_other_in_the_names(sweep):
    agents = (
        '[[agent]]\nname = "aq-brmdp"\ndelta = 5\n'
        + '[[agent]]\nname = "aq-brmdp"\ndelta = 5\nfloor = [0.1, 0.3]\n'
    )
    cases = sweep(COMMON + RIVER + agents).cases
    assert [case.name for case in cases] == ["aq-brmdp", "aq-brmdp-floor0.1", "aq-brmdp-floor0.3"]
    assert [case.agent_parameters["floor"] for case in cases] == [0.2, 0.1, 0.3]


def test_a_former_name_is_mentioned_once_and_to_whoever_loads_the_sweep(tmp_path):
    agents = "".join(f'[[agent]]\nname = "brmdp"\nalpha = {alpha}\n' for alpha in (0.1, 0.3))
    path = tmp_path / "sweep.toml"
    path.write_text(COMMON + RIVER.replace("4", "[4, 5, 6]") + agents)
    with pytest.warns(FutureWarning) as caught:
        experiment = load_sweep(path)
    (warning,) = caught
    assert str(warning.message) == (
        f"{path}: the agent 'brmdp' is now called 'fixed-quantile'; the old name will be removed"
    )
    assert warning.filename == __file__
    assert {case.agent for case in experiment.cases} == {"fixed-quantile"}


def test_tables_can_be_swept(sweep):
    agent = '[[agent]]\nname = "agent"\nrisk = ["mean", {name = "cvar", alpha = 0.2}]\n'
    prior = "prior = [{concentration = 1}, {concentration = 1, known_successors = true}]\n"
    experiment = sweep(COMMON + RIVER + agent + prior)
    assert [case.name for case in experiment.cases] == [
        "agent-riskmean-priorconcentration1",
        "agent-riskmean-priorconcentration1-known_successorsTrue",
        "agent-riskcvar-alpha0.2-priorconcentration1",
        "agent-riskcvar-alpha0.2-priorconcentration1-known_successorsTrue",
    ]
    sizes = [build(case)[1].belief.pattern.n_transitions for case in experiment.cases]
    assert sizes[0] == sizes[2] > sizes[1] == sizes[3]


def test_names_of_long_lists_are_short_and_different(sweep, tmp_path):
    """They are made of the parameters, so nobody could choose shorter ones."""
    demand = [[0.005] * 200, [0.005] * 198 + [0.004, 0.006]]
    many = f'[[environment]]\nname = "inventory"\ncapacity = 3\nmax_order = 2\ndemand = {demand}\n'
    names = [case.name for case in sweep(COMMON + many + PSRL).cases]
    assert len(set(names)) == 2
    assert all(len(name) < 100 for name in names)


def test_a_parameter_that_is_a_list(sweep):
    store = (
        '[[environment]]\nname = "inventory"\ncapacity = 3\nmax_order = 2\ndemand = [[0.5, 0.5], '
        "[0.2, 0.8]]\n"
    )
    experiment = sweep(COMMON + store + PSRL)
    assert [case.environment_parameters["demand"] for case in experiment.cases] == [
        [0.5, 0.5],
        [0.2, 0.8],
    ]


LAKE = '[[environment]]\nname = "continuous-frozenlake"\n'


def test_the_continuous_lake_has_agents_with_parameters_of_their_own(sweep):
    adaptive = '[[agent]]\nname = "aq-brmdp"\ndelta = 5\n'
    experiment = sweep(
        COMMON
        + LAKE
        + PSRL
        + "learning_rate = [0.001, 0.003]\n"
        + adaptive
        + '[[agent]]\nname = "posterior-mean"\n'
    )
    assert [case.name for case in experiment.cases] == [
        "continuing-psrl-learning_rate0.001",
        "continuing-psrl-learning_rate0.003",
        "aq-brmdp",
        "posterior-mean",
    ]
    assert {case.environment for case in experiment.cases} == {"continuous-frozenlake"}
    first, _, third, _ = experiment.cases
    assert first.agent_parameters["learning_rate"] == 0.001
    assert (third.agent_parameters["delta"], third.agent_parameters["epsilon"]) == (5, 0.01)
    assert "method" not in third.agent_parameters


def test_finite_worlds_and_the_lake_in_one_sweep(sweep):
    experiment = sweep(COMMON + RIVER + LAKE + "discount = 0.8\n" + PSRL)
    river, lake = experiment.cases
    assert (river.name, lake.name) == (
        "riverswim/continuing-psrl",
        "continuous-frozenlake/continuing-psrl",
    )
    assert (river.discount, lake.discount) == (0.9, 0.8)
    assert set(river.agent_parameters) == {"restart", "ties"}
    assert "gradient_steps" in lake.agent_parameters


def test_the_tolerance_that_messages_advise_is_a_key(sweep):
    experiment = sweep(COMMON + RIVER + PSRL + "tolerance = [1e-3, 1e-6]\n")
    assert [case.agent_parameters["tolerance"] for case in experiment.cases] == [1e-3, 1e-6]
    assert [build(case)[1].tolerance for case in experiment.cases] == [1e-3, 1e-6]
    assert build(sweep(COMMON + RIVER + PSRL).cases[0])[1].tolerance is None


def test_discounts_can_be_swept(sweep):
    experiment = sweep(COMMON + RIVER + "discount = [0.5, 0.9]\n" + PSRL)
    assert [case.discount for case in experiment.cases] == [0.5, 0.9]
    assert [case.name for case in experiment.cases] == [
        "riverswim-discount0.5/continuing-psrl",
        "riverswim-discount0.9/continuing-psrl",
    ]


def test_a_sweep_runs(sweep, tmp_path):
    experiment = sweep(
        COMMON + RIVER + '[[environment]]\nname = "inventory"\ncapacity = 3\nmax_order = 2\n' + PSRL
    )
    store = run_experiment(experiment, tmp_path, workers=1)
    assert store.records("inventory/continuing-psrl").reward.shape == (2, 30)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = \n", r"is not valid TOML: Invalid value \(at line 1, column 8\)"),
        ('name = "x"\nruns == 3\n', r"at line 2, column"),
        ('name = "x"\nname = "y"\n', r"at line 2"),
        ("", "missing: name, runs, steps, environment, agent"),
        (COMMON + RIVER, "missing: agent"),
        (
            COMMON + "step = 3\n" + RIVER + PSRL,
            "unknown key 'step'; did you mean 'steps'[?] valid: name, title, runs",
        ),
        (COMMON.replace("30", "0") + RIVER + PSRL, "steps must be a positive integer; got 0"),
        (COMMON.replace("30", "1.5") + RIVER + PSRL, "steps must be a positive integer; got 1.5"),
        (
            COMMON.replace("30", "[1, 2]") + RIVER + PSRL,
            r"steps must be a positive integer; got \[1, 2\]",
        ),
        (COMMON.replace("= 2", "= 0") + RIVER + PSRL, "runs must be a positive integer; got 0"),
        (
            COMMON.replace("= 2", '= "many"') + RIVER + PSRL,
            "runs must be a positive integer; got 'many'",
        ),
        (
            COMMON.replace('"try"', "7") + RIVER + PSRL,
            "name of an experiment must consist of .*; got 7",
        ),
        (
            COMMON.replace('"try"', '"a/b"') + RIVER + PSRL,
            "name of an experiment must consist of .*; got 'a/b'",
        ),
        (COMMON + "seed = -1\n" + RIVER + PSRL, "seed must be a non-negative integer; got -1"),
        (COMMON + "discount = 1\n" + RIVER + PSRL, r"discount must lie in \[0, 1\); got 1"),
        (
            COMMON + "robust_level = 0\n" + RIVER + PSRL,
            "robust_level must lie strictly between 0 and 1; got 0",
        ),
        (
            COMMON + "environment = 3\n" + PSRL,
            r"environment must be one or more tables \[\[environment\]\]; got 3",
        ),
        (COMMON + "agent = []\n" + RIVER, r"agent must be one or more tables"),
        (
            COMMON + "[environment]\nname = 'riverswim'\n" + PSRL,
            r"environment must be one or more tables",
        ),
        (COMMON + "[[environment]]\nn = 3\n" + PSRL, r"each \[\[environment\]\] needs a name"),
        (
            COMMON + "[[environment]]\nname = ['riverswim']\n" + PSRL,
            r"each \[\[environment\]\] needs a name",
        ),
        (
            COMMON + RIVER.replace("n = 4", "m = 4") + PSRL,
            "unknown key of the environment riverswim 'm'; .*valid: name",
        ),
        (
            COMMON + RIVER.replace("4", "[]") + PSRL,
            r"n of \[\[environment\]\] riverswim must not be an empty list",
        ),
        (COMMON + RIVER.replace("4", "'wide'") + PSRL, "case 'continuing-psrl': n must be"),
        (
            COMMON + RIVER.replace("swim", "swin") + PSRL,
            "unknown environment 'riverswin'; did you mean 'riverswim'",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'continuing_psrl'\n",
            "unknown agent of riverswim 'continuing_psrl'; did you mean 'continuing-psrl'",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'posterior-men'\n",
            "unknown agent of riverswim 'posterior-men'; did you mean 'posterior-mean'",
        ),
        (
            COMMON + LAKE + PSRL + "restart = 5\n",
            "unknown key of the agent continuing-psrl 'restart'; .*valid: name, hidden, "
            "learning_rate",
        ),
        (
            COMMON + LAKE + PSRL + "iterations = 0\n",
            "case 'continuing-psrl': iterations must be a positive integer; got 0",
        ),
        (
            COMMON + LAKE + "n = 3\n" + PSRL,
            "unknown key of the environment continuous-frozenlake 'n'; .*valid: name, disc",
        ),
        (
            COMMON + "robust_level = 0.2\n" + LAKE + PSRL,
            "robust_level must be None in continuous-frozenlake",
        ),
        (
            COMMON + RIVER + PSRL + "delta = 3\n",
            "unknown key of the agent continuing-psrl 'delta'; valid: name, restart, ties, "
            "tolerance",
        ),
        (
            COMMON + RIVER + PSRL + "ties = 'first'\n",
            r"case 'continuing-psrl': ties must be one of .*; got 'first'",
        ),
        (
            COMMON + RIVER + PSRL + "tolerance = 0\n",
            "tolerance must be a positive finite number; got 0",
        ),
        (COMMON + RIVER + "[[agent]]\nname = 'aq-brmdp'\n", "aq-brmdp needs delta"),
        (
            COMMON + RIVER + "[[agent]]\nname = 'aq-brmdp'\ndleta = 5\n",
            "'dleta'; did you mean 'delta'",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'aq-brmdp'\ndelta = 0\n",
            "delta must be a positive finite number; got 0",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'aq-brmdp'\ndelta = [5, -1]\n",
            "case 'aq-brmdp-delta-1': delta must be a positive finite number; got -1",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'aq-brmdp'\ndelta = 5\nfloor = 1.2\n",
            "floor must lie strictly between 0 and 1; got 1.2",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'fixed-quantile'\nalpha = true\n",
            "alpha must be a number",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'fixed-quantile'\nalpha = 2000-01-01\n",
            "alpha must be a finite number, text",
        ),
        (
            COMMON + RIVER + "[[agent]]\nname = 'fixed-quantile'\nalpha = 0.1\nmethod = 'exct'\n",
            "unknown method 'exct'; did you mean 'exact'",
        ),
        (COMMON + RIVER + PSRL + "label = 3\n", "label must be printable text; got 3"),
        (COMMON + RIVER + "label = true\n" + PSRL, "label must be printable text; got True"),
        (COMMON + "prior = 3\n" + RIVER + PSRL, "prior must be a table or module:attribute; got 3"),
        (COMMON + RIVER + PSRL + "prior = {weight = 2}\n", "unknown key of prior 'weight'"),
        (
            COMMON + RIVER + "[[agent]]\nname = 'agent'\nrisk = 'cvr'\n",
            "unknown risk 'cvr'; did you mean 'cvar'",
        ),
    ],
)
def test_mistakes_are_named(sweep, text, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message) as caught:
        sweep(text)
    assert str(caught.value).startswith(str(tmp_path / "sweep.toml"))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidInputError, match=r"none\.toml cannot be read: No such file"):
        load_sweep(tmp_path / "none.toml")
    with pytest.raises(InvalidInputError, match="cannot be read: Is a directory"):
        load_sweep(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(InvalidInputError, match="is not text in UTF-8"):
        load_sweep(tmp_path / "latin.toml")


def test_a_file_without_end_is_refused(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(InvalidInputError, match="it must have at most 1,048,576 bytes"):
        load_sweep(path)


def test_a_number_of_very_many_digits_is_refused(sweep):
    with pytest.raises(InvalidInputError, match=r"sweep.toml cannot be read: .*digits"):
        sweep(f"seed = {'9' * 5000}\n{COMMON}{RIVER}{PSRL}")


FAILING = """
import gymnasium
from brmdp.envs import TabularEnv, riverswim

class Broken(TabularEnv):
    def __init__(self, render_mode=None, at="step"):
        super().__init__(riverswim(3))
        self.at = at
        if at == "start":
            raise FileNotFoundError(2, "No such file or directory", "map.csv")

    def step(self, action):
        raise RuntimeError("sensor broke")

gymnasium.register(f"{__name__}-v0", entry_point=Broken)
"""


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("step", r"run 0 of .* failed: RuntimeError\('sensor broke'\)"),
        ("start", r"FileNotFoundError: .*map\.csv"),
    ],
)
def test_errors_of_an_environment_are_named_as_its_own(at, message, tmp_path, monkeypatch):
    (tmp_path / f"broken_{at}.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "sweep.toml"
    path.write_text(
        f'''
        name = "broken"
        runs = 1
        steps = 5
        [[environment]]
        name = "broken_{at}:broken_{at}-v0"
        at = "{at}"
        [[agent]]
        name = "continuing-psrl"
        '''
    )
    with pytest.raises(brmdp.BrmdpError, match=message):
        run_experiment(load_sweep(path), tmp_path / "results", workers=1)


@pytest.mark.parametrize("place", ["seed = {}\n", "runs = {}\n", "title = [{}]\n"])
@pytest.mark.parametrize("number", ["0x" + 6000 * "f", "0o1" + 900 * "7", "0b1" + 2000 * "0"])
def test_huge_integers_are_refused_in_any_notation(sweep, place, number):
    line = place.format(number)
    common = COMMON.replace("runs = ", "# ") if line.startswith("runs") else COMMON
    with pytest.raises(
        InvalidInputError, match=r"integers must have at most 1,024 bits; got one of [\d,]+$"
    ):
        sweep(f"{line}{common}{RIVER}{PSRL}")


def test_a_byte_order_mark_is_no_content(sweep):
    assert sweep(f"\ufeff{COMMON}{RIVER}{PSRL}").cases


def test_close_values_have_names_of_their_own(sweep):
    agent = '[[agent]]\nname = "aq-brmdp"\ndelta = [0.12345671, 0.12345672, 10.0]\n'
    names = [case.name for case in sweep(f"{COMMON}{RIVER}{agent}").cases]
    assert names == ["aq-brmdp-delta0.12345671", "aq-brmdp-delta0.12345672", "aq-brmdp-delta10"]
