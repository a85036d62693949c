"""The page in a real browser: Debian's chromium, without a screen."""

import pytest

from brmdp.models.page import page_of
from models import made_up as decisions
from models.chromium import Browser, find_chromium

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="chromium is not installed"),
    pytest.mark.long,
]


@pytest.fixture(scope="module")
def browser():
    with Browser() as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, make in decisions.EVERY.items():
        (folder / f"{name}.html").write_text(page_of(make()), encoding="utf-8")
    return folder


def part(name, dial="group-1-dial"):
    return f"""document.querySelector('#{dial} [data-part="{name}"]').textContent"""


FILLS = """Array.from(document.querySelectorAll("#group-1-dial .moving .cells rect"),
    cell => cell.getAttribute("fill") + " " + cell.getAttribute("width")).join()"""


@pytest.mark.parametrize("name", decisions.EVERY)
@pytest.mark.parametrize("width", [1280, 390])
def test_no_complaints_no_requests_nothing_wider_than_the_screen(browser, pages, name, width):
    browser.open(pages / f"{name}.html", width=width, dark=width == 390)
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.run("typeof window.broken") == "undefined"
    assert browser.run("getComputedStyle(document.querySelector('h1')).display") == "block"


def test_dial_moves_policy_values_and_words(browser, pages):
    browser.open(pages / "fleet.html")
    assert "level 0.172: recommended" in browser.run(part("where"))
    assert browser.run(part("mean")) == "153.8"
    before = browser.run(FILLS)
    browser.run("document.querySelector('#group-1-dial input').focus()")
    browser.press("ArrowRight", 5)
    assert "differs from the recommendation in 2 states" in browser.run(part("where"))
    assert browser.run(part("words")).startswith("Keep while miles is below 190,000")
    assert browser.run(part("mean")) == "152.0"
    assert browser.run(part("bound")) == "at most 165.5"
    assert browser.run(FILLS) != before
    assert "190,000" in browser.run(
        "document.querySelector('#group-1-dial .moving .labels').textContent"
    )
    assert browser.run("document.querySelector('#group-1-dial .cursor').getAttribute('x1')") == (
        browser.run("100 * document.querySelector('#group-1-dial input').value / 39 + '%'")
    )
    browser.press("End")
    assert "Stop 40 of 40" in browser.run(part("where"))
    assert "differs" in browser.run(
        "document.querySelector('input').getAttribute('aria-valuetext')"
    )
    browser.run("document.querySelector('.back').focus()")
    browser.press("Enter")
    assert browser.run(FILLS) == before
    assert browser.run(part("mean")) == "153.8"


def test_pictures_of_the_script_are_those_of_the_page(browser, pages):
    """At the recommended stop, the moved picture equals the one that was drawn beforehand."""
    first = "document.querySelector('#answer .policy .{0}, .group .policy .{0}').innerHTML"
    moved = "document.querySelector('#group-1-dial .moving .{}').innerHTML"
    for name, parts in (("fleet", ("cells", "labels")), ("hospital", ("cells",))):
        browser.open(pages / f"{name}.html")
        for each in parts:
            areas = """(text => {
                const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
                made.innerHTML = text;
                return Array.from(made.children, e => ["x", "width", "y", "fill"].map(
                    key => Math.round(100 * parseFloat(e.getAttribute(key))) / 100
                        || e.getAttribute(key)).join(" ") + e.textContent).join("\\n");
            })"""
            drawn = browser.run(areas + f"({first.format(each)})")
            assert drawn
            assert browser.run(areas + f"({moved.format(each)})") == drawn


def test_dials_of_groups_are_independent(browser, pages):
    browser.open(pages / "shops.html")
    before = browser.run(part("mean"))
    browser.run("document.querySelector('#group-2-dial input').focus()")
    browser.press("Home")
    assert "Stop 1 of 40" in browser.run(part("where", "group-2-dial"))
    assert browser.run(part("mean")) == before


def test_tiles_move_and_hostile_labels_stay_text(browser, pages):
    browser.open(pages / "hostile.html")
    actions = """Array.from(document.querySelectorAll("#group-1-dial .moving .action bdi"),
        e => e.textContent)"""
    before = browser.run(actions)
    assert len(before) == len(decisions.HOSTILE)
    browser.run("document.querySelector('#group-1-dial input').focus()")
    browser.press("Home")
    after = browser.run(actions)
    assert after != before
    assert after[0] == decisions.HOSTILE[0]
    assert after[1] == decisions.HOSTILE[1]
    assert browser.run("document.querySelectorAll('img, script').length") == 2
    assert browser.run("typeof window.broken") == "undefined"


def test_without_script_the_answer_and_all_stops_are_there(browser, pages):
    browser.open(pages / "fleet.html", scripts=False)
    tree = browser.call("DOM.getDocument", depth=-1)["root"]["nodeId"]

    def shown(selector):
        node = browser.call("DOM.querySelector", nodeId=tree, selector=selector)["nodeId"]
        try:
            box = browser.call("DOM.getBoxModel", nodeId=node)["model"]
        except RuntimeError:
            return False
        return box["height"] > 0

    assert shown("#answer .policy rect")
    assert shown("#group-1-dial .profile")
    assert shown("#group-1-dial details summary")
    assert not shown("#group-1-dial input")
    assert shown("#group-1-dial noscript p")


def test_keyboard_reaches_skip_link_first_and_links_unfold_checks(browser, pages):
    browser.open(pages / "stopped.html")
    browser.press("Tab")
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    assert browser.run("""new Promise(done => {
        const check = document.querySelector("details.check");
        addEventListener("hashchange", () => done(check.open));
        location.hash = check.id;
    })""")


def test_contrast_of_text(browser, pages):
    """All text stands out from the page by 4.5 to 1 or more, light and dark."""
    script = """(() => {
        const numbers = text => text.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(
            c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4
        ).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
        const ground = e => {
            for (; e; e = e.parentElement) {
                const found = numbers(getComputedStyle(e).backgroundColor);
                if (found.length === 3) return found;
            }
        };
        const poor = new Set();
        for (const e of document.querySelectorAll("main *, nav *")) {
            const own = Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim());
            if (!own || !e.getClientRects().length || e.closest("svg")) continue;
            const [a, b] = [light(numbers(getComputedStyle(e).color)), light(ground(e))];
            const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
            if (ratio < 4.5) poor.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
        }
        return Array.from(poor);
    })()"""
    for dark in (False, True):
        browser.open(pages / "stopped.html", dark=dark)
        assert browser.run(script) == []


def test_printing_unfolds_everything(browser, pages, tmp_path):
    browser.open(pages / "stopped.html")
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        assert browser.run("document.querySelectorAll('details:not([open])').length") == 0
        assert browser.run("document.querySelector('.slider').getClientRects().length") == 0
        browser.run("window.dispatchEvent(new Event('afterprint'))")
        assert browser.run("document.querySelectorAll('details[open]').length") == 0
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
    browser.print(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
