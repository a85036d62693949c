"""Reports and pictures: whole, readable, equal for equal data, drawn from the right numbers."""

import dataclasses
import io
import json
import os
import re
import textwrap

import numpy as np
import pytest
from PIL import Image
from test_analysis import records_of
from test_claims import ALL, LAKE, PAPER, RIVER, TABLE, told

from brmdp.envs import frozenlake, riverswim
from brmdp.errors import ExperimentError, InvalidInputError
from brmdp.report import cumulative_true_regret, moving_average_reward, occupancy, writing
from brmdp.report.layouts import draw_agents
from brmdp.report.panels import reward_panel
from brmdp.report.style import STYLE, STYLES, picture, styles_of
from brmdp.report.summary import agents_table
from brmdp.report.writing import write_figures, write_overview
from brmdp.runs import Experiment
from brmdp.studies import Study
from brmdp.studies.paper import STUDIES
from brmdp.studies.paper.figures import PANELS
from brmdp.studies.paper.schematics import (
    frozenlake_schematic,
    riverswim_schematic,
    schematics,
)

pytestmark = pytest.mark.long

SIZE_LIMIT = 200_000
STUDY = {study.name: study for study in STUDIES}


def story_of(experiment):
    return PAPER.get(experiment) or {case.name: {} for case in STUDY[experiment].experiment.cases}


def texts_in(figure):
    return [
        text.get_text()
        for text in figure.findobj(lambda item: hasattr(item, "get_text"))
        if text.get_text()
    ]


@pytest.fixture(autouse=True, scope="module")
def whole_fonts():
    """Fonts go into PDF files as outlines: to make a subset of each takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STYLE, "pdf.fonttype", 3)
        yield


@pytest.fixture(scope="module")
def reports(tmp_path_factory, whole_fonts):
    """A report of every experiment that is compared by regret, from made-up runs."""
    directory = tmp_path_factory.mktemp("reports")
    return {
        name: STUDY[name].report(told(name, story_of(name)), directory / name) for name in PANELS
    }


@pytest.mark.parametrize("name", PANELS)
def test_report_writes_all_files_and_nothing_else(reports, name):
    files = reports[name].files
    pictures = [f"{name}.png"]
    if name == "quantile-methods":
        pictures = ["quantile-methods-riverswim-6.png", "quantile-methods-frozenlake-0.7.png"]
    wanted = {"summary.json", "summary.md", "claims.json", "claims.md", *pictures}
    wanted |= {picture.replace(".png", ".pdf") for picture in pictures}
    assert {path.name for path in files} == wanted
    assert {path.name for path in files[0].parent.iterdir()} == wanted
    for path in files:
        if path.suffix == ".png":
            assert path.stat().st_size < SIZE_LIMIT
            with Image.open(path) as image:
                assert image.width >= 1000
                assert "Software" not in image.info
        elif path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF")
            assert b"CreationDate" not in path.read_bytes()


@pytest.mark.parametrize("name", PANELS)
def test_report_is_consistent_json_and_readable_text(reports, name):
    report = reports[name]
    by_name = {path.name: path for path in report.files}
    assert json.loads(by_name["summary.json"].read_text()) == json.loads(json.dumps(report.summary))
    claims = json.loads(by_name["claims.json"].read_text())
    assert [claim["verdict"] for claim in claims] == [str(claim.verdict) for claim in report.claims]
    assert max(map(len, report.text.splitlines())) <= 100
    for case in STUDY[name].experiment.cases:
        assert case.name in report.text
        assert case.name in by_name["summary.md"].read_text()


def test_equal_records_give_equal_bytes(tmp_path, monkeypatch):
    """With the fonts that users get."""
    monkeypatch.setitem(STYLE, "pdf.fonttype", 42)
    one, two = (
        STUDY["frozenlake-0.7"].report(told("frozenlake-0.7", LAKE), tmp_path / folder)
        for folder in ("one", "two")
    )
    for first, second in zip(one.files, two.files, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name
    (pdf,) = (path.read_bytes() for path in one.files if path.suffix == ".pdf")
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"CreationDate" not in pdf


@pytest.mark.parametrize("runs", [1, 2])
def test_one_or_two_runs_make_a_report(tmp_path, runs):
    report = STUDY["riverswim-6"].report(told("riverswim-6", RIVER, runs=runs), tmp_path)
    assert f"{runs} run{'s' if runs > 1 else ''}" in report.text
    assert report.summary["agents"]["aq-brmdp"]["true_regret"]["ci95"] is None
    for path in report.files:
        if path.suffix == ".json":
            assert "NaN" not in path.read_text()


def test_missing_cases_are_left_out(tmp_path):
    records = told("riverswim-6", RIVER)
    del records["brmdp-0.3"]
    report = STUDY["riverswim-6"].report(records, tmp_path)
    assert list(report.summary["agents"]) == [
        "aq-brmdp",
        "continuing-psrl",
        "brmdp-0.1",
        "brmdp-0.5",
    ]
    assert "no runs of brmdp-0.3" in report.text
    with pytest.raises(InvalidInputError, match="at least one run"):
        STUDY["riverswim-6"].report({}, tmp_path)


def test_an_experiment_of_ones_own_gets_a_figure_per_world(tmp_path):
    cases = {
        "small/care$ful": records_of("small/care$ful"),
        "small/bold": records_of("small/bold", seed=1),
        "large/careful": records_of("large/careful", n_states=20, robust_regret=None),
    }
    mine = Experiment("mine", "My sweep", tuple(found.case for found in cases.values()))
    report = Study(mine).report(cases, tmp_path)
    assert {path.name for path in report.files if path.suffix == ".png"} == {
        "mine-small.png",
        "mine-large.png",
    }
    assert report.claims == ()
    assert (tmp_path / "claims.json").read_text() == "[]\n"
    small, large = draw_agents(mine, cases).values()
    assert any("robust" in text for text in texts_in(small))
    assert not any("robust" in text for text in texts_in(large))


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["a/x", "a-3/y", "a/z"], ["mine-a", "mine-a-3", "mine-a-4"]),
        (["2/x", "y", "z"], ["mine-2", "mine-2-2", "mine-3"]),
        (["a/b/x", "a-b/y"], ["mine-a-b", "mine-a-b-2"]),
    ],
)
def test_every_world_has_a_figure_of_its_own(names, wanted):
    records = {
        name: records_of(name, n_states=size, steps=20, shown=20)
        for size, name in enumerate(names, start=3)
    }
    mine = Experiment("mine", "Mine", tuple(found.case for found in records.values()))
    figures = draw_agents(mine, records, (reward_panel,))
    assert list(figures) == wanted
    titles = [figure.legends[0].get_title().get_text() for figure in figures.values()]
    assert len(set(titles)) == len(names)


def test_every_curve_has_a_label_of_its_own():
    """Also those whose names end alike, or begin with what matplotlib hides."""
    names = ["a/aq-brmdp", "b/aq-brmdp", "c/continuing-psrl", "_mine"]
    styles = styles_of(names)
    assert [styles[name].label for name in names] == [
        *("a/aq-brmdp", "b/aq-brmdp", "Continuing PSRL", " _mine")
    ]
    assert styles["a/aq-brmdp"].colour == STYLES["aq-brmdp"].colour
    records = {name: records_of(name) for name in names}
    experiment = Experiment("x", "X", tuple(found.case for found in records.values()))
    (figure,) = draw_agents(experiment, records).values()
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == [styles[name].label for name in names]


def test_every_row_has_a_name_of_its_own():
    """Cases in different environments may have the same label."""
    records = {name: records_of(name, n_states=len(name)) for name in ("few", "many", "most of")}
    for name, label in (("few", "Bold"), ("many", "Bold"), ("most of", "Shy")):
        case = dataclasses.replace(records[name].case, label=label)
        records[name] = dataclasses.replace(records[name], case=case)
    assert [row[0] for row in agents_table(records).rows] == ["few", "many", "Shy"]


def test_labels_are_what_readers_see(tmp_path):
    found = records_of("aq-brmdp-delta0.5")
    found = dataclasses.replace(found, case=dataclasses.replace(found.case, label="Bold"))
    study = Study(Experiment("named", "Named", (found.case,), 5))
    records = {"aq-brmdp-delta0.5": found}
    (figure,) = study.draw(records).values()
    table = study.findings(records).table
    assert [row[0] for row in table.rows] == ["Bold"]
    assert "Bold" in texts_in(figure)
    assert "aq-brmdp-delta0.5" not in texts_in(figure)
    assert list(study.findings(records).summary["agents"]) == ["aq-brmdp-delta0.5"]


def test_agents_without_regret_are_drawn_by_their_rewards(tmp_path):
    nothing = {"true_regret": None, "robust_regret": None}
    nothing |= {"quantile_value": np.empty((5, 0)), "quantile_step": np.empty(0, dtype=int)}
    found = records_of("a", **nothing)
    study = Study(Experiment("rewards", "Rewards", (found.case,), 5))
    (figure,) = study.draw({"a": found}).values()
    titles = [axes.get_title() for axes in figure.get_axes()]
    assert len(titles) == 2
    assert not any("regret" in title.lower() for title in titles)
    report = study.report({"a": found}, tmp_path)
    assert report.summary["agents"]["a"]["true_regret"] is None
    assert "reward, total" in report.text


def test_losses_are_drawn_below_zero():
    found = records_of("a", reward=-np.ones((5, 700)))
    (figure,) = draw_agents(Experiment("mine", "Mine", (found.case,)), {"a": found}).values()
    (reward,) = (axes for axes in figure.get_axes() if "reward" in axes.get_title())
    assert reward.get_ylim()[0] < -1.0


def test_short_interactions_are_drawn(tmp_path):
    found = records_of("a", steps=30, shown=0)
    Study(Experiment("short", "Short", (found.case,))).report({"a": found}, tmp_path)


def test_overview_judges_over_all_experiments(reports, tmp_path):
    claims = write_overview([reports[name] for name in ALL], tmp_path)
    assert len(claims) == sum(len(reports[name].claims) for name in ALL) - 1
    assert {str(claim.verdict) for claim in claims} == {"reproduced"}
    assert len(json.loads((tmp_path / "claims.json").read_text())) == len(claims)
    assert (
        (tmp_path / "claims.md")
        .read_text()
        .startswith(f"{len(claims)} reproduced.\n\n| verdict | claim | found |\n")
    )


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    target = tmp_path / "summary.json"
    target.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ExperimentError, match=r"summary\.json cannot be written: disk full"):
        writing._write_all(tmp_path, {}, {target.name: b"new"})
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


# --- what is drawn --------------------------------------------------------------------------------


def lines_of(axes):
    return {
        line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")
    }


def test_curves_end_at_the_shown_step_with_the_right_values():
    records = told("riverswim-6", RIVER)
    (figure,) = STUDY["riverswim-6"].draw(records).values()
    regret, reward, share = figure.get_axes()
    for name, found in records.items():
        line = lines_of(regret)[STYLES[name].label]
        assert line.get_xdata()[-1] == 600
        assert line.get_ydata()[-1] == pytest.approx(
            cumulative_true_regret(found).after(600).mean()
        )
        line = lines_of(reward)[STYLES[name].label]
        assert line.get_xdata()[0] == 100
        assert line.get_ydata()[-1] == pytest.approx(moving_average_reward(found).after(600).mean())
    wanted = np.stack([occupancy(found).mean(axis=0) for found in records.values()])
    np.testing.assert_allclose(np.asarray(share.get_images()[0].get_array()), wanted)
    assert [label.get_text() for label in share.get_yticklabels()] == [
        STYLES[name].label for name in records
    ]


def test_bands_are_the_intervals():
    records = told("delta-sensitivity", TABLE)
    (figure,) = STUDY["delta-sensitivity"].draw(records).values()
    (axes,) = figure.get_axes()
    for band, found in zip(axes.collections, records.values(), strict=True):
        total = cumulative_true_regret(found).until(600).estimate().at(-1)
        heights = [y for path in band.get_paths() for x, y in path.vertices if x == 600]
        assert [min(heights), max(heights)] == pytest.approx([float(total.low), float(total.high)])


@pytest.mark.parametrize("name", PANELS)
def test_axes_say_what_they_show(name):
    for figure in STUDY[name].draw(told(name, story_of(name))).values():
        assert len(figure.get_axes()) == len(PANELS[name])
        for axes in figure.get_axes():
            assert axes.get_title()
            assert axes.get_xlabel()
            assert axes.get_ylabel() or axes.get_images()


@pytest.mark.parametrize(
    "name", ["riverswim-6", "frozenlake-0.7", "delta-sensitivity", "quantile-methods"]
)
def test_texts_do_not_overlap(name):
    for figure in STUDY[name].draw(told(name, story_of(name))).values():
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        (legend,) = figure.legends
        boxes = [legend.get_window_extent(renderer)]
        for axes in figure.get_axes():
            boxes += [
                text.get_window_extent(renderer)
                for text in (axes.title, axes.xaxis.label, axes.yaxis.label)
            ]
        boxes = [box for box in boxes if box.width]
        width, height = figure.canvas.get_width_height()
        for number, box in enumerate(boxes):
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= width + 1
            assert box.y1 <= height + 1
            assert not any(box.overlaps(other) for other in boxes[number + 1 :])


def test_agents_look_the_same_everywhere_and_differ_in_grey():
    names = ["aq-brmdp", "continuing-psrl", "brmdp-0.1", "brmdp-0.3", "brmdp-0.5"]
    styles = styles_of(names)
    assert styles == {name: styles_of([name])[name] for name in reversed(names)}
    for part in ("colour", "line", "marker", "label"):
        assert len({str(getattr(style, part)) for style in styles.values()}) == len(names)
    strangers = styles_of([f"agent {number}" for number in range(20)])
    assert len({(style.colour, str(style.line)) for style in strangers.values()}) == 20


def test_drawing_leaves_no_trace_in_matplotlib(forks):
    code = """
    import pathlib, sys, tempfile, matplotlib
    before = matplotlib.rcParams.copy()
    from brmdp.report.writing import write_figures
    from brmdp.studies.paper.schematics import schematics
    write_figures(schematics(), pathlib.Path(tempfile.mkdtemp()))
    after = matplotlib.rcParams.copy()
    before["backend"] = after["backend"]  # is chosen when it is first asked for
    print("matplotlib.pyplot" in sys.modules, after == before)
    """
    done = forks.run(textwrap.dedent(code))
    assert done.stdout.split() == ["False", "True"], done.stderr


# --- schematics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 6, 10])
def test_riverswim_schematic_shows_every_transition(n):
    world = riverswim(n)
    kernel = world.kernel()
    texts = " ".join(texts_in(riverswim_schematic(world)))
    shown = sorted(re.findall(r"\b\d\.\d\d\b(?!\d)", texts))
    assert shown == sorted(f"{p:.2f}" for p in kernel[kernel > 0] if p < 1)
    assert "pays 1" in texts
    assert "pays 0.005" in texts


@pytest.mark.parametrize("theta", [0.7, 0.9])
def test_frozenlake_schematic_shows_the_shortcut(theta):
    texts = texts_in(frozenlake_schematic(frozenlake(theta)))
    assert f"θ = {theta:g}" in texts
    assert f"1 − θ\n= {1 - theta:.1f}" in texts
    assert texts.count("hole") == 4
    assert {"start", "goal", *map(str, range(16))} <= set(texts)


def test_frozenlake_schematic_without_shortcut():
    assert not any("θ" in text for text in texts_in(frozenlake_schematic(frozenlake())))


def test_schematics_are_written(tmp_path):
    files = write_figures(schematics(), tmp_path)
    assert sorted(path.suffix for path in files) == [".pdf", ".pdf", ".png", ".png"]
    assert all(path.stat().st_size < SIZE_LIMIT for path in files)


def test_pictures_keep_their_colours():
    """The palette of 256 colours does not change what an agent's colour is."""
    (figure,) = STUDY["riverswim-6"].draw(told("riverswim-6", RIVER)).values()
    with Image.open(io.BytesIO(picture(figure, "png"))) as image:
        colours = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    for style in styles_of(RIVER).values():
        wanted = [int(style.colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert np.abs(colours - wanted).max(axis=1).min() <= 12


def test_different_numbers_of_runs_are_named():
    records = told("riverswim-6", RIVER)
    fewer = records["brmdp-0.1"]
    records["brmdp-0.1"] = dataclasses.replace(
        fewer,
        **{
            part: getattr(fewer, part)[:4]
            for part in ("run", "state", "reward", "true_regret", "seconds")
        },
    )
    (figure,) = STUDY["riverswim-6"].draw(records).values()
    assert any("4 to 60 runs" in text for text in texts_in(figure))


def test_names_of_figures_suit_every_file_system_and_differ():
    names = [
        "riverswim-6",
        "lake-my_module:Lake-v0",
        "lake-my_module-Lake-v0",
        "LAKE-MY_MODULE-lake-v0",
        'a<b>"c|d?*\\/e',
        ":",
    ]
    names += ["n" * 300, "n" * 299, "é" * 200]
    found = writing._file_names(names)
    assert found[0] == names[0]
    assert len({name.casefold() for name in found}) == len(names)
    for name in found:
        assert not set(name) & set('<>:"|?*\\/')
        assert 0 < len(name.encode()) <= 160
    with pytest.raises(InvalidInputError, match="names of figures must be text; got 3"):
        writing._file_names(["one", 3])


def test_worlds_whose_names_look_alike_have_figures_of_their_own():
    found = [records_of("a/b/x", n_states=6), records_of("a-b/x", n_states=7)]
    experiment = Experiment("alike", "", tuple(one.case for one in found), 5)
    assert len(draw_agents(experiment, {one.case.name: one for one in found})) == 2
