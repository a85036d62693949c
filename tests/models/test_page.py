"""The page: valid, safe, small, and saying what it should."""

import base64
import dataclasses
import hashlib
import json
import math
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brmdp.errors import InvalidInputError
from brmdp.models.page import page_of, write_page
from brmdp.models.page.glossary import Glossary
from brmdp.models.page.numbers import (
    amount,
    decimals_for,
    exact_percent,
    number,
    percent,
    probability,
)
from brmdp.models.page.page import LARGEST
from brmdp.models.page.policies import lay_out, runs
from brmdp.models.page.sentences import Language, discount_in_words
from brmdp.models.page.svg import Charts, ticks
from brmdp.models.page.text import clean, shorten
from brmdp.models.results import Amount, Caution, Curve, Picture
from models import made_up as decisions

VOID = {"meta", "br", "input", "link", "img", "hr"}
INLINE = {"a", "bdi", "strong", "i"}


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed where it should be."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag, (tag, self.getpos())
        if tag not in INLINE:
            self.texts.append((("p",), " "))

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def inside(self, tag):
        return [text for path, text in self.texts if path and path[-1] == tag]

    @property
    def words(self):
        parts = [text for path, text in self.texts if not {"script", "style"} & set(path)]
        return " ".join("".join(parts).split())

    def having(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    @property
    def data(self):
        return json.loads(self.inside("script")[0])


@cache
def page(name):
    return page_of(decisions.EVERY[name]())


@cache
def read(name):
    return Reader(page(name))


every = pytest.mark.parametrize("name", decisions.EVERY)


# --- the file -------------------------------------------------------------------------------------


@every
def test_page_is_valid_and_all_references_lead_somewhere(name):
    reader = read(name)
    ids = reader.having("id")
    assert len(ids) == len(set(ids))
    references = [href.removeprefix("#") for href in reader.having("href")]
    for attribute in ("aria-labelledby", "aria-describedby", "for"):
        references += [part for value in reader.having(attribute) for part in value.split()]
    references += re.findall(r'"url\(#([^)]*)\)"', page(name))
    assert set(references) <= set(ids)
    headings = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch("h[1-6]", tag)]
    assert headings.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))


@every
def test_page_loads_nothing_and_runs_nothing_but_its_own_script(name):
    reader = read(name)
    assert not {tag for tag, _ in reader.elements} & {"link", "img", "iframe", "object", "embed"}
    assert all(href.startswith("#") for href in reader.having("href"))
    for _, attributes in reader.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "style")]
    assert "@import" not in page(name)
    assert "url(http" not in page(name)
    (policy,) = [a["content"] for _, a in reader.elements if "http-equiv" in a]
    (style,), (data, script) = reader.inside("style"), reader.inside("script")
    for text in (style, script):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "<" not in data
    json.loads(data)


@every
def test_size_of_a_page(name):
    assert len(page(name).encode()) < LARGEST


@pytest.mark.long
def test_the_largest_pages_stay_below_the_limit():
    assert len(page_of(decisions.hospital(3)).encode()) < LARGEST
    states = decisions.binned(4, 1)
    policies = [decisions.threshold(states, k) for k in (1, 2)]
    many = decisions.fleet(
        states=states,
        groups=tuple(
            decisions.group(states, ("keep", "replace"), policies, name=f"clinic {i}")
            for i in range(120)
        ),
    )
    text = page_of(many)
    assert len(text.encode()) < LARGEST
    reader = Reader(text)
    assert "96 more groups can be found in decision.json" in reader.words
    assert all(f"clinic {i}" in reader.words for i in range(120))


@pytest.mark.long
def test_very_many_states_are_merged_and_cut():
    rng = np.random.default_rng(0)
    states = decisions.categories(f"place {i}" for i in range(20_000))
    policies = [(rng.integers(0, 3, 20_000), ("By place.",)) for _ in range(6)]
    made = decisions.group(states, ("a", "b", "c"), policies)
    text = page_of(decisions.fleet(states=states, actions=("a", "b", "c"), groups=(made,)))
    assert len(text.encode()) < LARGEST
    words = Reader(text).words
    assert re.search(r"Every cell stands for \d+ states", words)
    assert "2,200 of 20,000 states are shown. The policy as a CSV file" in words


def test_writing_a_file(tmp_path):
    path = tmp_path / "page.html"
    decision = decisions.smallest()
    write_page(decision, path)
    assert path.read_text(encoding="utf-8") == page_of(decision)
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_decision_without_groups_is_refused():
    with pytest.raises(InvalidInputError, match=r"decision\.groups must have at least one"):
        page_of(decisions.fleet(groups=()))


# --- what it says ---------------------------------------------------------------------------------


def test_first_screen_in_words_and_numbers():
    words = read("fleet").words
    for expected in (
        "When should a bus get a new engine?",
        "Which of 2 actions (keep, replace) should be taken in each of 90 states of miles?",
        "The answer comes from 166 units and 15,800 transitions. Values are costs; lower is",
        "The discount is 0.99 per step: a cost that lies 69 steps ahead counts half.",
        "Keep while miles is below 180,000; replace where it is 180,000 or more.",
        "Very probably better than today's practice.",
        "posterior probability, the discounted cost from the start is at most 165.5, if the model",
        "Expected cost 153.8 95 % credible interval 145.0 to 162.6",
        "One check asks for a look",
    ):
        assert expected in words.replace("\u00a0", " "), expected
    assert "under reservation" not in words
    assert words.index("Answer") < words.index("How cautious") < words.index("Checks of the model")
    assert words.index("Against today") < words.index("What would change") < words.index("What was")


def test_checks_that_say_stop_qualify_the_answer():
    reader = read("stopped")
    words = reader.words
    banner = words.index("A check says stop: do not rely on this answer yet.")
    assert banner < words.rindex("When should a bus")
    assert "The pooled plan costs 18.2 more than a plan per type" in words[banner : banner + 200]
    for expected in (
        "Answer, under reservation",
        "Take what follows as a calculation, not as a recommendation",
        "If the model were right: very probably better",
        "not to be quoted, a check says stop",
    ):
        assert expected in words
    assert "statement doubtful" in reader.having("class")
    order = [a["class"] for _, a in reader.elements if a.get("class", "").startswith("check ")]
    assert order == ["check stop", "check look"] + 3 * ["check fine"]
    folded = [tag for tag, a in reader.elements if a.get("class") == "check fine"]
    assert folded == 3 * ["details"]


def test_only_the_group_with_a_stop_is_qualified():
    reader = read("shops")
    assert reader.having("class").count("statement doubtful") == 1
    assert reader.having("class").count("statement") == 2
    words = reader.words.replace("\u00a0", " ")
    assert "south a check says stop" in words
    assert "north a check says stop" not in words
    assert "That all 3 hold at once has a posterior probability of at least 70 %." in words
    assert "Gained against practice" in words
    assert "higher is better" in words
    assert len(reader.data["dials"]) == 3


def test_no_checks_are_said():
    words = read("smallest").words
    assert "No check was run: the model was not compared with the log" in words
    assert "No guarantee could be given." in words
    assert "nan" not in words.lower().split()
    assert "None" not in words


def test_everything_asked_for_is_there():
    words = read("fleet").words.replace("\u00a0", " ")
    for expected in (
        "The recommendation saves 22 (95 % credible interval 4 to 41)",
        "Of 3 changed assumptions, 2 would change the plan somewhere. The largest loss from "
        "keeping the recommended policy is 1.5 (replacing costs 20 % more).",
        "Perfect information would save 0.70 on average",
        "16,012 lines were read and 15,981 kept (99.8 %).",
        "line 17: miles is ''; line 202: miles is 'NA'",
        "Only the certificate of the recommended policy has a proof, from draws of its own.",
        "9f9f9f",
        "brmdp decide model.toml --report page.html",
        "brmdp 0.5.0, Python 3.11.7",
        "The nested bound",
        "Rows of one action share the law of their increments",
        "recommended",
    ):
        assert expected in words, expected


def test_terms_lead_to_the_glossary_once():
    reader = read("fleet")
    links = [a["href"] for _, a in reader.elements if a.get("class") == "term"]
    assert len(links) == len(set(links))
    entries = [i for i in reader.having("id") if i.startswith("term-")]
    assert {link[1:] for link in links} <= set(entries)
    assert {"term-posterior", "term-practice", "term-discount", "term-level"} <= set(entries)


def test_glossary_explains_what_its_meanings_use():
    glossary = Glossary("cost")
    linked = glossary.linked("A <b>held-out prediction</b> and another held-out prediction.")
    assert linked.text == (
        'A &lt;b&gt;<a href="#term-held-out" class="term">held-out prediction</a>&lt;/b&gt; and '
        "another held-out prediction."
    )
    assert [name for _, name, _ in glossary.entries()] == ["Held-out prediction", "Unit"]


# --- text from outside ----------------------------------------------------------------------------


def test_hostile_text_is_shown_as_text():
    reader = read("hostile")
    known = {tag for name in ("stopped", "shops") for tag, _ in read(name).elements} | {"h4"}
    assert {tag for tag, _ in reader.elements} <= known
    assert reader.words.count("7 * 7") > 3
    assert " 49 " not in reader.words
    tags = [tag for tag, _ in reader.elements]
    assert (tags.count("script"), tags.count("style"), tags.count("title")) == (
        2,
        1,
        1 + tags.count("desc"),
    )
    for text in decisions.HOSTILE:
        assert " ".join(clean(text).split()) in reader.words
    assert reader.inside("title")[0] == decisions.HOSTILE[0]
    forbidden = "\u202e\u2066\x00\x1b\ud800"
    assert not set(forbidden) & set(page("hostile"))
    page("hostile").encode()
    texts = [text for policy in reader.data["dials"][0]["policies"] for text in [policy["words"]]]
    assert not set(forbidden) & set("".join(texts))


def test_clean_and_shorten():
    assert clean("a\x00\u202eb\ud83d") == "a\ufffd\ufffdb\ufffd"
    assert clean("שלום 🚌") == "שלום 🚌"
    assert clean("10 % of 5 %s") == "10\u00a0% of 5\u00a0%s"
    assert shorten("  a\n b ", 9) == "a b"
    assert shorten("abcdef", 4) == "abc…"


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "decimals", "direction", "text"),
    [
        (165.4802, 1, "up", "165.5"),
        (165.5, 1, "up", "165.5"),
        (0.1, 1, "up", "0.1"),
        (-71.681, 1, "down", "−71.7"),
        (-71.681, 1, "up", "−71.6"),
        (-0.04, 1, "nearest", "0.0"),
        (1234567.0, 0, "nearest", "1,234,567"),
        (12.0, None, "nearest", "12"),
        (0.0123456, None, "nearest", "0.01235"),
        (3.2e12, None, "up", "3.200×10¹²"),
        (-4.56789e-12, 2, "down", "−4.568×10⁻¹²"),
        (math.nan, 2, "up", "unknown"),
        (None, 2, "up", "unknown"),
        (-math.inf, 2, "up", "−∞"),
    ],
)
def test_numbers(value, decimals, direction, text):
    assert number(value, decimals, direction) == text


def parsed(text):
    mantissa, _, power = text.replace("−", "-").replace(",", "").partition("×10")
    power = power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or "0"
    return float(f"{mantissa}e{power}")


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-1e12, 1e12, allow_nan=False),
    st.one_of(st.none(), st.integers(0, 8)),
    st.sampled_from(["down", "up"]),
)
def test_bounds_are_rounded_in_the_safe_direction(value, decimals, direction):
    shown = parsed(number(value, decimals, direction))
    assert shown >= value if direction == "up" else shown <= value


def test_decimals_follow_the_interval():
    assert decimals_for(Amount(151.37, 142.52, 160.22)) == 1
    assert decimals_for(Amount(151.37, 51.37, 251.37)) == 0
    assert decimals_for(Amount(0.7042, 0.6, 0.8), Amount(5, 1, 9)) == 2
    assert decimals_for(Amount(12.3456, math.nan, math.nan)) == 2
    assert decimals_for(Amount(12.0, 12.0, 12.0)) == 2
    # rounding is no interval
    assert decimals_for(Amount(100.0, 100.0 - 3e-13, 100.0 + 3e-13)) == 1
    assert amount(Amount(151.37, 142.52, 160.22)) == ("151.4", "142.5 to 160.3")
    assert amount(Amount(1.0, math.nan, math.inf))[1] == ""


@pytest.mark.parametrize(
    ("share", "direction", "text"),
    [
        (0.983, "nearest", "98.3 %"),
        (0.07, "up", "7 %"),
        (1.0, "nearest", "100 %"),
        (0.0, "nearest", "0 %"),
        (0.99996, "nearest", "over 99.9 %"),
        (0.99996, "down", "99.9 %"),
        (3e-6, "nearest", "under 0.01 %"),
        (0.00432, "nearest", "0.43 %"),
        (math.nan, "nearest", "unknown"),
    ],
)
def test_percent(share, direction, text):
    assert percent(share, direction).replace("\u00a0", " ") == text


def test_draws_that_all_agree_do_not_make_certain():
    assert probability(1.0, 0.9942, 1.0) == "over 99.4\u00a0%"
    assert probability(0.0, 0.0, 0.0058) == "under 0.58\u00a0%"
    assert probability(0.983, 0.97, 0.99) == "98.3\u00a0%"


def test_confidence_keeps_its_digits():
    assert exact_percent(0.9999) == "99.99\u00a0%"
    assert exact_percent(0.9) == "90\u00a0%"


# --- sentences ------------------------------------------------------------------------------------


def changed(**changes):
    (made,) = decisions.fleet().groups
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.97, "Very probably better"),
        (0.85, "Probably better than today's practice, but"),
        (0.5, "The log does not tell"),
        (0.1, "Probably worse"),
        (math.nan, "was not computed"),
    ],
)
def test_opinion(share, said):
    made = changed(probability_better=(share, share - 0.01, share + 0.01))
    assert said in Language("cost").opinion(made, False)


def test_nothing_to_change_and_losses_are_said():
    same = changed(gain=Amount(0.0, 0.0, 0.0), worths=(), followed=True)
    assert Language("cost").opinion(same, False) == (
        "This is what was done so far, wherever anything was logged."
    )
    assert "wherever anything was logged" in Language("cost").comparison(same)[0]
    worse = changed(gain=Amount(-3.0, -5.0, -1.0))
    said = " ".join(Language("cost").comparison(worse)).replace("\u00a0", " ")
    assert "The recommendation loses 3.0 (95 % credible interval 1.0 to 5.0)" in said
    assert "practice is better" in Language("cost").figures(worse, False)[1].note


def test_units_drawn_again_are_told_apart():
    said = Language("cost").comparison(changed(units_interval=(56.2247, 56.2281)))[-1]
    assert "varies from 56.2 to 56.3" in said
    assert "Steps of one unit" not in " ".join(
        Language("cost").comparison(changed(units_interval=None))
    )


def test_values_side_by_side_have_like_decimals():
    (made,) = decisions.fleet().groups

    def valued(half):
        policies = list(made.policies)
        middle = policies[made.recommended]
        policies[made.recommended] = dataclasses.replace(
            middle, mean=Amount(44.637, 44.637 - half, 44.637 + half)
        )
        return dataclasses.replace(made, policies=tuple(policies))

    groups = [valued(1.08), valued(0.98), valued(0.0098)]
    language = Language.of("cost", groups)
    assert [language.value_decimals(group) for group in groups] == [1, 1, 4]


def test_the_same_plan_at_all_levels_needs_no_dial():
    made = changed(dial=tuple(Caution(i / 100, 4) for i in range(1, 42)))
    reader = Reader(page_of(decisions.fleet(groups=(made,))))
    assert "The plan is the same at all 41 levels from 0.01 to 0.41" in reader.words
    assert "input" not in {tag for tag, _ in reader.elements}
    assert reader.data["dials"] == []


def test_bounds_of_costs_and_rewards():
    assert Language("cost").guaranteed(165.41, 1) == "at most 165.5"
    assert Language("reward").guaranteed(165.49, 1) == "at least 165.4"
    assert Language("cost").loss(3.0, 2.0) == Language("reward").loss(2.0, 3.0) == 1.0


def test_discounts_in_words():
    assert discount_in_words(0.9, "cost").endswith("a cost that lies 7 steps ahead counts half.")
    assert discount_in_words(0.2, "cost") == "The discount is 0.2 per step."
    assert "no discount" in discount_in_words(1.0, "reward")


# --- pictures -------------------------------------------------------------------------------------


def test_runs():
    assert list(runs(np.array([0, 0, 2, 2, 2, 1]))) == [(0, 2, 0), (2, 5, 2), (5, 6, 1)]
    assert list(runs(np.array([], dtype=int))) == []


def test_layouts():
    strip = lay_out(decisions.binned(90), 1440)
    assert (strip.kind, strip.cells, strip.merged) == ("strip", 90, 1)
    assert strip.encode((np.arange(90) >= 36).astype(int)) == "36x0 54x1"
    merged = lay_out(decisions.binned(90), 40)
    assert (merged.cells, merged.merged) == (30, 3)
    assert merged.fill((np.arange(90) >= 35).astype(int)).sum() == 18  # 33, 34 | 35: most are 0
    assert lay_out(decisions.categories("abc"), 1440).kind == "tiles"
    grid = lay_out(decisions.categories(f"s{i}" for i in range(720)), 1440)
    assert (grid.kind, grid.columns, grid.rows) == ("grid", 48, 15)
    two = lay_out(decisions.weather().states, 1440)
    assert (two.kind, two.columns, two.rows) == ("grid", 6, 4)


def test_states_are_shown_in_the_order_of_their_numbers():
    layout = lay_out(decisions.categories(("10", "2", "7")), 1440)
    assert layout.kind == "strip"
    assert layout.encode(np.array([1, 0, 1])) == "0 2x1"


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (1e-9, 3e-9), (1e8, 4e8), (0.1, 0.13)])
def test_ticks_are_few_round_and_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert low - 1e-9 * abs(low) <= found[0]
    assert found[-1] <= high * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["bars", "points", "lines"])
@pytest.mark.parametrize(
    "curves",
    [
        (),
        (Curve("none", (), ()),),
        (Curve("one", (1.0,), (2.0,)),),
        (Curve("unknown", (1.0, 2.0, 3.0), (math.nan, math.inf, 1e308)),),
        (Curve("words", ("a", "b"), (0.0, 0.0), (0.0, math.nan), (0.0, 1.0)),),
        (Curve("mixed", ("a", 2.0), (-1.0, 1.0)), Curve("other", ("a",), (5.0,))),
        (Curve("long", tuple(map(float, range(1000))), tuple(map(float, range(1000)))),),
        tuple(Curve(f"{i}", ("a",), (float(i),)) for i in range(12)),
    ],
)
def test_pictures_of_all_kinds_can_be_drawn(kind, curves):
    drawn = Charts().picture(Picture(kind, "A title", "x", "y", curves)).text
    Reader(drawn)
    assert not re.search(r'"[^"]*\b(nan|inf)\b[^"]*%?"', re.sub(r"<desc.*?</desc>", "", drawn))
    assert len(drawn) < 120_000
