"""A first model file for a log, to be edited: every guess in it has its reason beside it."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from brmdp._files import write_bytes
from brmdp.errors import InvalidInputError
from brmdp.models.survey import MOSTLY, Facts, Guess, Roles, Survey, guess_roles, survey, words_of
from brmdp.models.toml import shown, toml_key, toml_text

__all__ = ["Start", "starting_file", "write_starting_file"]

WIDTH = 100

MOST_CATEGORIES = 30
"""A numeric column with more values than this gets bins."""

FEW_LINES, FEWER_BINS, MORE_BINS, FEWEST_BINS = 5_000, 50, 100, 20

MOST_TABLES = 30
"""For more actions than these, amounts are better given as a table."""

PER_YEAR = {
    "second": 31_557_600.0,
    "minute": 525_960.0,
    "hour": 8_766.0,
    "day": 365.25,
    "week": 52.1786,
    "month": 12.0,
    "quarter": 4.0,
    "year": 1.0,
}
"""Time steps in a year."""


@dataclass(frozen=True)
class Start:
    """A first model file.

    Attributes
    ----------
    text : str
        The file.
    words : tuple of str
        What was guessed, one line for each part.
    """

    text: str
    words: tuple[str, ...]


def write_starting_file(
    log: str | os.PathLike[str], out: str | os.PathLike[str], *, replace: bool = False
) -> Start:
    """Look at a log and write a model file to edit.

    Parameters
    ----------
    log : str or path
        CSV (also .tsv, .txt and .gz) or Parquet file.
    out : str or path
        The model file.
    replace : bool
        Whether a file that is there already may be replaced; the log never is.

    Returns
    -------
    Start

    Raises
    ------
    InvalidInputError
        If the log cannot be read, or the model file is there already.
    """
    source, target = Path(log), Path(out)
    if target.suffix.lower() != ".toml":
        raise InvalidInputError(f"--out must name a file that ends in .toml; got {shown(str(out))}")
    if os.path.lexists(target) and not replace:
        raise InvalidInputError(f"{target} is there already; --force replaces it")
    if target.exists() and source.exists() and target.samefile(source):
        raise InvalidInputError(f"--out must not be the log itself; got {shown(str(out))}")
    if not target.parent.is_dir():
        raise InvalidInputError(f"--out must lie in a folder that exists; got {shown(str(out))}")
    start = starting_file(source, target.resolve().parent)
    write_bytes(target, start.text.encode())
    return start


def starting_file(log: Path, folder: Path) -> Start:
    """A first model file for a log, for a folder in which it will lie."""
    found = survey(log)
    roles = guess_roles(found)
    parts = [
        _beginning(found),
        _top(roles),
        _log_section(found, roles, folder),
        _state_section(found, roles),
        _action_section(found, roles),
        _dynamics_section(found, roles),
        _amounts(found, roles),
    ]
    text = "\n\n".join("\n".join(part).rstrip() for part in parts) + "\n"
    names = {
        "unit": roles.unit,
        "time": roles.time,
        "groups": roles.groups,
        "state": roles.state,
        "next state": roles.next_state,
        "action": roles.action,
        roles.word: roles.amount,
    }
    words = tuple(
        f"{part}: {', '.join(map(shown, guess.columns)) or 'none'} ({guess.reason})"
        for part, guess in names.items()
    )
    return Start(text, words)


# --- lines of text --------------------------------------------------------------------------------


def _comment(text: str) -> list[str]:
    """A comment over as many lines as it needs."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return textwrap.wrap(
        plain,
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _names(names: Iterable[str], most: int = 12) -> str:
    """Names as TOML writes them, for a comment."""
    every = list(names)
    text = ", ".join(toml_text(name[:60]) for name in every[:most])
    return f"{text} and {len(every) - most:,} more" if len(every) > most else text


def _number(value: float) -> str:
    """A number as TOML writes it."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _columns(names: Sequence[str]) -> str:
    texts = [toml_text(name) for name in names]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _guessed(key: str, guess: Guess, meaning: str, *, commented: bool = False) -> list[str]:
    """A key with the guessed column, the reason above it, and the alternatives."""
    lines = []
    others = f" Other columns that could be meant: {_names(guess.others)}." if guess.others else ""
    if guess.columns:
        lines += _comment(f"{meaning} A guess: {guess.reason}.{others}")
        lines.append(f"{'# ' * commented}{key} = {_columns(guess.columns)}")
    else:
        lines += _comment(f"{meaning} Not guessed: {guess.reason}.{others}")
        lines.append(f'# {key} = "…"')
    return lines


def _facts(found: Survey, guess: Guess) -> Facts | None:
    return next((facts for facts in found.facts if facts.name in guess.columns), None)


# --- sections -------------------------------------------------------------------------------------


def _beginning(found: Survey) -> list[str]:
    lines = _comment(
        f"A model of {shown(found.path.name)} ({found.n_lines:,} lines), begun by 'brmdp init'. "
        "Everything below was guessed from names and values: read it, correct it, and fill in what "
        "actions cost. Then: brmdp check, and brmdp decide."
    )
    lines += ["#", "# The columns:"]
    width = max(len(toml_text(facts.name[:40])) for facts in found.facts)
    for facts in found.facts:
        missing = found.n_lines - facts.present
        lacking = f", missing on {missing:,} lines" if missing else ""
        lines.append(f"#   {toml_text(facts.name[:40]):{width}}  {facts.in_words()}{lacking}")
    for note in found.notes:
        lines += _comment(note)
    return lines


def _top(roles: Roles) -> list[str]:
    words = roles.clock.words if roles.clock is not None else "one line of the log"
    number, _, unit = words.partition(" ")
    steps, condition = 0.0, ""
    if number.isdigit():
        steps = PER_YEAR.get(unit.removesuffix("s"), 0.0) / float(number)
        named = words_of(roles.time.columns[0]) & set(PER_YEAR)
        if not unit and named:  # numbers of months, say
            unit = sorted(named)[0]
            steps, condition = (
                PER_YEAR[unit] / float(number),
                f"If 1 in the time column is a {unit}: ",
            )
    discount = 0.95 if steps == 1.0 else 0.99
    lines = _comment(
        f"What an amount is worth one time step ({words}) later. Amounts much later than "
        "1 / (1 - discount) steps hardly count."
    )
    if steps:
        lines += _comment(
            f"{condition}{discount} means that an amount a year later counts "
            f"{100 * discount**steps:.3g} %. An interest of 5 % a year would be "
            f"{1.05 ** (-1 / steps):.6g}, of 20 % a year {1.2 ** (-1 / steps):.6g}."
        )
    else:
        lines += _comment(
            f"{discount} means that an amount 10 steps later counts {100 * discount**10:.3g} %, "
            f"one 100 steps later {100 * discount**100:.3g} %."
        )
    lines += [f"discount = {discount}", ""]
    lines += [*_comment("How sure the guarantee has to be."), "confidence = 0.9", ""]
    lines += _comment(
        "The state to judge from, as a label or a reading; without it, the states are weighted as "
        "in the log."
    )
    return [*lines, "# start = …"]


def _log_section(found: Survey, roles: Roles, folder: Path) -> list[str]:
    name = os.path.relpath(found.path.resolve(), folder).replace(os.sep, "/")
    lines = ["[log]", f"file = {toml_text(name)}  # relative to this file"]
    if found.delimiter not in (None, "\t" if ".tsv" in found.path.name.lower() else ","):
        lines.append(f"delimiter = {toml_text(str(found.delimiter))}")
    if found.decimal != ".":
        lines.append(f"decimal = {toml_text(found.decimal)}")
    if found.encoding != "utf-8":
        lines += _comment("The file is not in UTF-8; this is a common other encoding.")
        lines.append(f"encoding = {toml_text(found.encoding)}")
    lines += _guessed("unit", roles.unit, "Which bus, patient, … a line is about.")
    lines += _guessed("time", roles.time, "By which the lines of a unit are sorted.")
    if roles.clock is not None:
        lines += _comment(
            f"One time step is {roles.clock.words}, the commonest difference between lines of a "
            "unit. If it should be another, such as a week:"
        )
        lines.append('# step = "week"' if roles.clock.words[-1:].isalpha() else "# step = 7")
    lines += _guessed(
        "groups",
        roles.groups,
        "Units of one group share their dynamics. Without it, all units are taken to be alike.",
    )
    if roles.next_state.columns:
        lines += _guessed(
            "next_state",
            roles.next_state,
            "The state one step later. Without it, that is the state on the unit's next line.",
        )
    return lines


def _state_section(found: Survey, roles: Roles) -> list[str]:
    lines = ["[state]"]
    lines += _guessed("column", roles.state, "What the decision may depend on.")
    facts = _facts(found, roles.state)
    if facts is not None:
        lines += _levels(facts, found)
    lines += _comment(
        "A state of several columns: write [[state]] instead of [state], once for each column."
    )
    return lines


def _levels(facts: Facts, found: Survey) -> list[str]:
    """Bins for many numbers, labels for few; nothing for text."""
    if facts.numeric < MOSTLY:
        listed = f": {_names(facts.labels)}" if facts.distinct <= MOST_CATEGORIES else ""
        return _comment(f"Its {facts.distinct:,} labels are the states{listed}.")
    low, high = facts.quantile(0.0), facts.quantile(1.0)
    lines: list[str] = []
    if facts.whole and high - low < MOST_CATEGORIES:
        every = [_number(low + k) for k in range(int(high - low) + 1)]
        if facts.distinct == len(every):
            return _comment("Each of its numbers is a state.")
        lines += _comment("Each number is a state, also those between that were not seen.")
        if facts.column.is_text and any(label not in every for label in facts.labels):
            # as the log writes them, such as 01
            return _comment(f"Its labels are the states: {_names(facts.labels)}.")
        return [*lines, f"labels = [{', '.join(every)}]"]
    without = round((1.0 - facts.numeric) * facts.present)
    if without:
        has = "1 line has" if without == 1 else f"{without:,} lines have"
        lines += _comment(f"{has} no number here and will be dropped.")
    most = FEWER_BINS if found.n_lines < FEW_LINES else MORE_BINS
    bins = nice_bins(low, high, most, whole=facts.whole)
    if bins is None:
        lines += _comment(
            f"Its numbers go from {low:.6g} to {high:.6g}, too far for bins of one width. Give "
            "their edges:"
        )
        return [*lines, "# bins = { edges = [0, 1, 10, 100] }"]
    start, width, count = bins
    lines += _comment(
        f"Numbers from {low:.12g} to {high:.12g} in {count} bins: the state is the bin. Fewer bins "
        "need fewer data; more bins are finer."
    )
    lines.append(
        f"bins = {{ start = {_number(start)}, width = {_number(width)}, count = {count} }}"
    )
    usual_low, usual_high = facts.quantile(0.01), facts.quantile(0.99)
    if usual_high - usual_low < 0.25 * (high - low):
        narrow = nice_bins(usual_low, usual_high, most, whole=facts.whole)
        if narrow is not None:
            lines += _comment(
                f"Nearly all readings (98 %) lie between {usual_low:.6g} and {usual_high:.6g}. "
                "Finer bins for these, which take in readings outside them at their ends:"
            )
            lines.append(
                f"# bins = {{ start = {_number(narrow[0])}, width = {_number(narrow[1])}, "
                f"count = {narrow[2]} }}"
            )
            lines.append('# outside = "clip"')
    return lines


SMALLEST_SPREAD = 1e-290
"""Numbers that lie closer together cannot be divided into bins."""


def nice_bins(
    low: float, high: float, most: int, *, whole: bool
) -> tuple[float, float, int] | None:
    """Start, width and number of bins with round edges that hold both numbers and all between.

    None if the numbers lie too far apart, or too close beside their size.
    """
    if not math.isfinite(high - low):
        return None
    if high == low:
        return math.floor(low), 1.0, 1
    if high - low < SMALLEST_SPREAD:
        return None
    first, last = Decimal(repr(low)), Decimal(repr(high))
    exponent = math.floor(math.log10((high - low) / most))
    exponent = max(exponent, 0) if whole else exponent
    for step in (exponent, exponent + 1):
        for digits in ("1", "2", "2.5", "5"):
            width = Decimal(digits).scaleb(step)
            if whole and width != width.to_integral_value():
                continue
            start = (first / width).to_integral_value(rounding="ROUND_FLOOR") * width
            count = int((last - start) / width) + 1
            edges = float(start), float(start + width)
            if count <= most and edges[0] < edges[1] and float(last - width) < high:
                return float(start), float(width), count
    return None


def _action_section(found: Survey, roles: Roles) -> list[str]:
    lines = ["[action]"]
    lines += _guessed("column", roles.action, "What was decided.")
    facts = _facts(found, roles.action)
    if facts is not None and facts.distinct <= MOST_TABLES:
        lines += _comment("As found in the log; lines with another label would be dropped.")
        lines.append(f"labels = [{', '.join(map(toml_text, facts.labels))}]")
    lines += _comment('If what was never done in a state is not possible there: "observed".')
    return [*lines, '# admissible = "all"']


def _dynamics_section(found: Survey, roles: Roles) -> list[str]:
    facts = _facts(found, roles.action)
    few = facts is not None and facts.distinct <= MOST_TABLES
    action = toml_key(facts.labels[-1]) if facts is not None and few else "replace"
    state = _facts(found, roles.state)
    named = state is not None and state.numeric < MOSTLY  # by labels
    first = toml_text(state.labels[0]) if state is not None and named else "0"
    lines = ["[dynamics]"]
    lines += _comment("The prior is learned from the log: how alike its rows are.")
    lines.append('prior = "learned"')
    lines += _comment("If you know that an action surely leads to one state, say so:")
    lines.append(f"# reset = {{ {action} = {first} }}")
    lines += _comment("States where everything ends:")
    lines.append('# ends = ["…"]')
    if roles.stock is not None:
        lines += _comment(
            "State and action look like a stock and what is ordered for it: after "
            f"{_share(roles.stock.share)} steps, the stock was at most stock and order together. "
            "If the order comes before the demand, and only the demand is unknown, write this "
            "instead of the keys above; demand that an empty shelf could not serve is allowed for:"
        )
        lines += [
            '# kind = "stock"',
            f"# capacity = {roles.stock.capacity}",
            f"# largest_demand = {2 * roles.stock.capacity}",
        ]
    return lines


def _share(share: float) -> str:
    """A share in words; only all is called all."""
    return "all" if share == 1.0 else f"{min(100 * share, 99.9):.3g} % of"


def _amounts(found: Survey, roles: Roles) -> list[str]:
    """A table to fill in for each action."""
    word, verb = roles.word, "costs" if roles.word == "cost" else "earns"
    other = "reward" if word == "cost" else "cost"
    actions, state = _facts(found, roles.action), _facts(found, roles.state)
    by_number = state is not None and state.numeric >= MOSTLY
    formula = (
        ": base + per × the number of the state (the lower edge of its bin, or the number in its "
        "label)"
    )
    by_label = (
        f" If it depends on the state, write [{word}] instead of the tables below, and in it "
        'file = "amounts.csv", a table with the columns state, action and value.'
    )
    lines = _comment(
        f"What each action {verb} per time step{formula if by_number else ''}. Fill it in: remove "
        f"the # and write numbers in place of 0. Where you are not sure: base = {{ low = 1, high = "
        f"3 }}. If these are {other}s, write [{other}.…] throughout.{'' if by_number else by_label}"
    )
    lines.append("")
    if actions is None or actions.distinct > MOST_TABLES:
        lines += [f"[{word}]"]
        lines += _comment("A table with the columns state, action, next_state (optional), value:")
        lines.append('# file = "amounts.csv"')
    else:
        for label in actions.labels:
            lines += [f"[{word}.{toml_key(label)}]", "# base = 0"]
            lines += ["# per = 0"] if by_number else []
            lines.append("")
    if roles.stock is not None:
        lines += _comment(
            f'For kind = "stock", write this instead of the tables above: what a unit sold, a unit '
            f"ordered, an order, a unit left over and a unit of demand that was lost {verb}:"
        )
        lines.append(f"# [{word}]")
        lines += [f"# {price} = 0" for price in ("sold", "ordered", "order", "held", "lost")]
        lines.append("")
    amount = _facts(found, roles.amount)
    if amount is not None:
        lines += _comment(
            f"The column {_names([amount.name])} looks like a {word}: {roles.amount.reason}. To "
            "learn what is paid from it, write this instead of the tables above, with the lowest "
            "and the highest amount that is possible at all:"
        )
        lines += [
            f"# [{word}]",
            f"# column = {toml_text(amount.name)}",
            f"# low = {_number(amount.quantile(0.0))}",
            f"# high = {_number(amount.quantile(1.0))}",
        ]
    return lines
