"""Check the built site; ``make docs`` ends with this.

``python docs/check.py build/docs`` checks that

- every link and picture within the site leads to something that is there, anchors included;
- nothing is loaded from elsewhere: no script, style, font, picture or frame has another address;
- every public name of the library has its entry;
- the search, asked as its page would ask, finds the terms in ``TERMS``;
- no page shows what a build leaves behind when something went wrong.

It ends with 1 if something is wrong.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

TERMS = {
    # a newcomer's words
    "install": "log/index",
    "csv": "log/",
    "maintenance": "index",
    "inventory": "reference/api/brmdp.envs.inventory",
    "spreadsheet": "reference/files",
    "confidence": "log/caution",
    "guarantee": "log/guarantee",
    "regret": "explain/regret",
    "save and resume": "online/saving",
    "docker": "online/deployment",
    "gymnasium": "online/worlds",
    "prior": "plan/beliefs",
    "finite horizon": "plan/horizon",
    "bandit": "generated/gallery/learn/plot_bandit",
    "lost sales": "log/lost-sales",
    "drift": "log/checks",
    "exit code": "reference/command-line",
    "jupyter": "notebooks/index",
    "cite": "index",
    "own agent": "extend/agent",
    # names, keys, options and columns
    "quantile": "reference/api/brmdp.Quantile",
    "certify": "reference/api/brmdp.certify",
    "DirichletBelief": "reference/api/brmdp.DirichletBelief",
    "value_of_information": "reference/api/brmdp.value_of_information",
    "ConvergenceError": "reference/errors",
    "PriorWarning": "reference/errors",
    "discount": "reference/model-toml",
    "largest_demand": "reference/model-toml",
    "pooling": "reference/model-toml",
    "warm_up": "reference/command-line",
    "accept-other-code": "reference/command-line",
    "shortcut_risk": "reference/sweeps",
    "true_regret": "reference/records",
    "fingerprint": "reference/files",
    # the paper's words
    "coverage": "reproduce/coverage",
    "RiverSwim": "reproduce/reproduction",
    "FrozenLake": "reproduce/reproduction",
    "optimism": "reproduce/optimism",
    "Thompson": "reproduce/unknown-rewards",
    "proposition 1": "explain/certificate",
    "saddlepoint": "explain/exact-law",
    "Dirichlet": "explain/exact-law",
}
"""What readers look for, and where the search must lead them, among other places."""

LOADED = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "input": "src",
    "object": "data",
    "script": "src",
    "source": "src",
    "track": "src",
    "video": "src",
}
"""Attributes with addresses from which browsers load something by themselves."""

LINKS = ("alternate", "author", "canonical", "license", "next", "prev", "search", "index")
"""Relations of a ``<link>`` that load nothing."""

IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
IN_SCRIPT = re.compile(
    r"(?:(?:fetch|importScripts|import)\(|\.(?:src|href)\s*=)\s*['\"`]((?:https?:)?//[^'\"`]+)"
)
LEFT_BEHIND = (
    'class="problematic"',
    'class="system-message"',
    "&lt;Figure size",
    "/ipykernel_",
    str(Path(__file__).resolve().parents[1]),
)


@dataclass
class Page:
    """What a page has and wants."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """Collects anchors and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names and loads."""
        given = {name: value or "" for name, value in attrs}
        self.in_style = tag == "style"
        self.page.anchors.update(given[key] for key in ("id", "name") if key in given)
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        if tag == "link" and not set(given.get("rel", "").split()).intersection(LINKS):
            self.page.loaded.append(given.get("href", ""))
        if tag in LOADED and LOADED[tag] in given:
            self.page.loaded.append(given[LOADED[tag]])
        for part in given.get("srcset", "").split(","):
            if part.strip():
                self.page.loaded.append(part.split()[0])
        self.page.loaded += _in_style(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        """Note what a style loads."""
        if self.in_style:
            self.page.loaded += _in_style(data)


def _in_style(text: str) -> list[str]:
    return [one or other for one, other in IN_STYLE.findall(text)]


@cache
def read(path: Path) -> Page:
    """The anchors and addresses of a page."""
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def elsewhere(address: str) -> bool:
    """Whether an address is not within the site."""
    return address.startswith("//") or urlsplit(address).scheme not in ("", "data")


def pages_of(site: Path) -> list[Path]:
    """All pages; the theme's folder also has a template."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def broken(site: Path) -> Iterator[str]:
    """Links within the site that lead nowhere."""
    for path in pages_of(site):
        page = read(path)
        for address in {*page.links, *page.loaded}:
            if elsewhere(address) or address.startswith("data:"):
                continue
            parts = urlsplit(address)
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            where = f"{path.relative_to(site)}: {address}"
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{where} does not exist"
            elif (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in read(target).anchors
            ):
                yield f"{where}: there is no such anchor"


def loaded_from_elsewhere(site: Path) -> Iterator[str]:
    """What a browser would ask the network for."""
    for path in [*pages_of(site), *sorted(site.rglob("*.css")), *sorted(site.rglob("*.js"))]:
        if path.suffix == ".html":
            found = read(path).loaded
        elif path.suffix == ".css":
            found = _in_style(path.read_text(encoding="utf-8"))
        else:
            found = IN_SCRIPT.findall(path.read_text(encoding="utf-8"))
        for address in found:
            if elsewhere(address):
                yield f"{path.relative_to(site)} loads {address}"


def without_entry(site: Path) -> Iterator[str]:
    """Public names that the reference does not describe."""
    from public_names import file_names, public_names

    files = file_names()
    for name in sorted(set(public_names().values())):
        path = site / "reference" / "api" / f"{files.get(name, name)}.html"
        if not path.exists():
            yield f"{name} has no page"
        elif name not in read(path).anchors:
            yield f"{path.relative_to(site)} does not describe {name}"


class Search:
    """The index of the search, asked as the search page asks it."""

    def __init__(self, site: Path) -> None:
        text = (site / "searchindex.js").read_text(encoding="utf-8")
        self.index = json.loads(text[text.index("(") + 1 : text.rindex(")")])

    def pages(self, words: str) -> set[str]:
        """Pages with all these words, in the text, a title or the name of an object."""
        from sphinx.search.en import SearchEnglish

        english = SearchEnglish({})
        found = []
        for word in english.split(words.lower()):
            if word in english.stopwords or word.isdigit():
                continue
            stem = english.stem(word)
            hits: set[int] = set()
            for part in ("terms", "titleterms"):
                for key in (stem, word):
                    entry = self.index[part].get(key, [])
                    hits.update(entry if isinstance(entry, list) else [entry])
            for entries in self.index["objects"].values():
                hits.update(number for number, *_, name in entries if word in name.lower())
            found.append(hits)
        common = set.intersection(*found) if found else set()
        return {self.index["docnames"][number] for number in common}


def not_found(site: Path) -> Iterator[str]:
    """Terms that the search does not find, or not where they belong."""
    search = Search(site)
    for words, place in TERMS.items():
        pages = search.pages(words)
        if not any(page.startswith(place) for page in pages):
            yield f"the search for {words!r} finds {len(pages)} pages, none of them {place}"


def left_behind(site: Path) -> Iterator[str]:
    """Traces of errors in pages."""
    for path in pages_of(site):
        text = path.read_text(encoding="utf-8")
        for trace in LEFT_BEHIND:
            if trace in text:
                yield f"{path.relative_to(site)} contains {trace}"


def main(site: Path) -> int:
    """Check the site and say what is wrong."""
    wrong = [
        line
        for check in (broken, loaded_from_elsewhere, without_entry, not_found, left_behind)
        for line in check(site)
    ]
    pages = len(pages_of(site))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print("\n".join([*wrong, f"{pages} pages, {size / 1e6:.0f} MB, {len(wrong)} faults"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs").resolve()))
