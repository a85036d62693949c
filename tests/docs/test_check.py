"""The check of the built site sees what is wrong; ``make docs`` runs it on the site itself."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def check():
    """The program docs/check.py."""
    spec = importlib.util.spec_from_file_location("docs_check", DOCS / "check.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def page(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_links_and_anchors_that_lead_nowhere_are_found(check, tmp_path):
    page(tmp_path, "one.html", '<a href="two.html#there"></a><a href="#here"></a><p id="here">')
    page(tmp_path, "two.html", '<p id="there"><a href="one.html"></a><a href="https://a.b/"></a>')
    assert list(check.broken(tmp_path)) == []
    page(tmp_path, "sub/three.html", '<a href="../one.html#where"></a><img src="no.png">')
    assert sorted(check.broken(tmp_path)) == [
        "sub/three.html: ../one.html#where: there is no such anchor",
        "sub/three.html: no.png does not exist",
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("one.html", '<script src="https://cdn.net/a.js"></script>'),
        ("one.html", '<link rel="stylesheet" href="//cdn.net/a.css">'),
        ("one.html", '<link rel="preconnect" href="https://fonts.net">'),
        ("one.html", '<img srcset="a.png 1x, https://cdn.net/b.png 2x">'),
        ("one.html", "<style>@import 'https://cdn.net/a.css'; p {}</style>"),
        ("one.html", '<p style="background: url(https://cdn.net/a.png)">'),
        ("one.css", "@font-face { src: url('https://fonts.net/a.woff2') }"),
        ("one.js", 'fetch("https://cdn.net/a.json")'),
        ("one.js", "script.src = 'https://cdn.net/a.js'"),
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(check, tmp_path, name, content):
    page(tmp_path, name, content)
    assert len(list(check.loaded_from_elsewhere(tmp_path))) == 1


def test_links_to_elsewhere_load_nothing(check, tmp_path):
    page(tmp_path, "one.html", '<a href="https://a.b"></a><link rel="author" href="https://a.b">')
    page(tmp_path, "one.css", "p { background: url(data:image/png;base64,AAAA) }")
    assert list(check.loaded_from_elsewhere(tmp_path)) == []


def test_the_search_is_asked_as_its_page_asks(check, tmp_path):
    pytest.importorskip("sphinx", reason="the site needs the extra docs")
    index = {
        "docnames": ["plan/one", "reference/two", "log/three"],
        "terms": {"certif": [0, 1], "bound": 0},
        "titleterms": {"drift": 2},
        "objects": {"brmdp": [[1, 0, 1, "", "value_of_information"]]},
    }
    page(tmp_path, "searchindex.js", f"Search.setIndex({json.dumps(index)})")
    search = check.Search(tmp_path)
    assert search.pages("certificates") == {"plan/one", "reference/two"}
    assert search.pages("certificates, bounds") == {"plan/one"}
    assert search.pages("the drift") == {"log/three"}
    assert search.pages("bound 1") == {"plan/one"}
    assert search.pages("value_of_information") == {"reference/two"}
    assert search.pages("unheard") == set()


def test_at_least_twenty_terms_are_looked_for(check):
    assert len(check.TERMS) >= 20


def test_traces_of_errors_are_found(check, tmp_path):
    page(tmp_path, "one.html", '<span class="problematic">?</span>')
    assert len(list(check.left_behind(tmp_path))) == 1
