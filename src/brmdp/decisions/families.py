"""Which rows resemble each other, and how: the families behind a learned prior.

The rows of a family have priors Dir(κ m_i), where m_i is the image of one law m over *categories*
under a known map: every category leads to one successor in every row. The map is kept as *links*,
pairs (entry, category), one per row and category:

    m_entry = bincount(entry, weights=m[category]).

Several links may share an entry: near the ends of the scale, several increments are clipped to one
state. In a row with a single successor, such as that of a state where everything ends, all
categories lead there: it is known, and says nothing about what its family can do. Entries with the
same categories behave alike, so they are told apart only by their *kind*; there are few kinds even
if there are many rows.

======================  ====================  ============================  ========================
shape                   rows of a family      categories                    supports it can have
======================  ====================  ============================  ========================
``uniform``             one action            none: m_i is uniform          any
``increments``          one action            d, with s' = clip(s + d)      images of one set of d
``destinations``        one action            s'                            equal in all states
``staying``             one action            s', and "stay"                the same, plus s itself
``actions``             one state             s'                            equal for all actions
======================  ====================  ============================  ========================

What supports a shape can have is asked of the rows with several successors alone. Every family has
a law of its own, and every action a κ of its own; in ``actions`` the families are the states, which
share one κ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.errors import ImpossibleTransitionError, InvalidInputError
from brmdp.pattern import TransitionPattern

__all__ = ["SHAPES", "Family", "ShapeName", "family_of", "locate"]

ShapeName: TypeAlias = Literal["uniform", "increments", "destinations", "staying", "actions"]
SHAPES: tuple[ShapeName, ...] = get_args(ShapeName)

CATEGORY_WEIGHT, LARGEST_WEIGHT = 0.5, 5.0
"""Weight a₀m₀ of a category in the base Dir(a₀m₀) of a law, and the largest weight a₀ in all.

Up to ten categories this is Jeffreys' prior; the weight of more categories is spread thinner, so
that the base stays worth no more than five observations.
"""

LARGEST_LINKS = 30_000_000
"""Largest number of links (row, category) of a family."""


@dataclass(frozen=True, eq=False)
class Family:
    """The map from categories to entries, for all rows of a problem.

    Attributes
    ----------
    name : str
        Name of the shape.
    pattern : TransitionPattern
        Possible transitions.
    entry, category : (links,) integers
        The links.
    law_sizes : (laws,) integers
        Number of categories of each law; categories are numbered law by law.
    labels : (categories,) integers
        The increment or destination that a category stands for; −1 stands for staying in the shape
        "staying".
    kind_of_entry : (transitions,) integers
    kinds : sparse (kinds, categories)
        The categories of each kind.
    strength_of_kind : (kinds,) integers
        Which κ applies.
    strength_of_pair : (pairs,) integers
        Which κ applies; −1 for inadmissible actions.
    strength_names : tuple of str
    fixed : (kinds,) array or None
        Probability of each kind where the shape leaves nothing to learn but κ.
    weights : (categories,) array or None
        Weights a₀m₀ of the categories, if not by the rule.
    """

    name: str
    pattern: TransitionPattern
    entry: IntArray
    category: IntArray
    law_sizes: IntArray
    labels: IntArray
    kind_of_entry: IntArray
    kinds: sparse.csr_array
    strength_of_kind: IntArray
    strength_of_pair: IntArray
    strength_names: tuple[str, ...]
    fixed: FloatArray | None = None
    weights: FloatArray | None = None

    @property
    def n_categories(self) -> int:
        """Number of categories of all laws."""
        return int(self.labels.size)

    @property
    def n_kinds(self) -> int:
        """Number of kinds of entries."""
        return int(self.strength_of_kind.size)

    @property
    def n_strengths(self) -> int:
        """Number of κ."""
        return len(self.strength_names)

    @property
    def parameters(self) -> int:
        """Number of free parameters of all laws."""
        return int((self.law_sizes - 1).sum())

    @cached_property
    def base(self) -> FloatArray:
        """Weight a₀m₀ of every category."""
        if self.weights is not None:
            return self.weights
        weight = np.minimum(CATEGORY_WEIGHT * self.law_sizes, LARGEST_WEIGHT)
        return np.repeat(weight / np.maximum(self.law_sizes, 1), self.law_sizes)

    @cached_property
    def law_of_category(self) -> IntArray:
        """The law that each category belongs to."""
        return np.repeat(np.arange(self.law_sizes.size), self.law_sizes)

    @cached_property
    def uncertain(self) -> BoolArray:
        """Entries of rows with more than one successor; the other rows are known."""
        mask: BoolArray = (self.pattern.widths > 1)[self.pattern.pair_of_transition]
        return mask

    def shares(self, law: FloatArray) -> FloatArray:
        """Probability of every kind, (…, kinds), under laws (…, categories)."""
        if self.fixed is not None:
            return np.broadcast_to(self.fixed, (*law.shape[:-1], self.n_kinds))
        if law.ndim == 1:
            return np.asarray(self.kinds @ law)
        return np.ascontiguousarray((self.kinds @ law.reshape(-1, law.shape[-1]).T).T).reshape(
            *law.shape[:-1], self.n_kinds
        )

    def normalised(self, weights: FloatArray) -> FloatArray:
        """Weights (categories,) divided by their sum over each law."""
        sums = np.bincount(self.law_of_category, weights, self.law_sizes.size)
        result: FloatArray = weights / sums[self.law_of_category]
        return result


def condensed(family: Family, seen: IntArray) -> tuple[Family, IntArray]:
    """The family of the kinds ``seen`` (sorted), with the other categories of a law as one.

    Categories that belong to no kind seen share what the others leave, in proportions that follow
    the base and nothing else, so they need not be told apart while laws are drawn.

    Returns
    -------
    Family, (categories,) integers
        The smaller family, and the category there of each category here.
    """
    if family.fixed is not None:
        return family, np.zeros(0, dtype=np.int64)
    kinds = family.kinds[seen]
    law = family.law_of_category
    used = np.zeros(family.n_categories, dtype=bool)
    used[kinds.indices] = True
    n_laws = family.law_sizes.size
    n_used = np.bincount(law[used], minlength=n_laws)
    sizes = n_used + (n_used < family.law_sizes)
    starts = np.cumsum(sizes) - sizes
    rank = np.cumsum(used) - 1 - (np.cumsum(n_used) - n_used)[law]
    place = starts[law] + np.where(used, rank, n_used[law])
    n = int(sizes.sum())
    labels = np.zeros(n, dtype=np.int64)
    labels[place] = family.labels
    smaller = replace(
        family,
        law_sizes=sizes.astype(np.int64),
        labels=labels,
        kinds=sparse.csr_array(
            (kinds.data, place[kinds.indices], kinds.indptr), shape=(seen.size, n)
        ),
        strength_of_kind=family.strength_of_kind[seen],
        weights=np.bincount(place, family.base, n).astype(np.float64),
    )
    return smaller, place


def locate(pattern: TransitionPattern, pair: IntArray, next_state: IntArray) -> IntArray:
    """Entries of transitions; −1 for those that are not possible."""
    wanted = pair * pattern.n_states + next_state
    if pattern.is_full:
        return wanted
    keys = pattern.pair_of_transition * pattern.n_states + pattern.next_states
    entries = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[entries] == wanted, entries, -1).astype(np.int64)


def require_possible(pattern: TransitionPattern, pair: IntArray, next_state: IntArray) -> IntArray:
    """Entries of transitions; an error names the first impossible one."""
    entries = locate(pattern, pair, next_state)
    if (entries < 0).any():
        k = int(np.argmax(entries < 0))
        s, a = divmod(int(pair[k]), pattern.n_actions)
        raise ImpossibleTransitionError(
            f"counts must not contain the transition (state={s}, action={a}, "
            f"next_state={int(next_state[k])}), which possible, admissible or reach rules out"
        )
    return entries


def family_of(name: str, pattern: TransitionPattern) -> Family:
    """The family of a shape on a pattern.

    Raises
    ------
    InvalidInputError
        If the shape cannot have this support; see the table in :mod:`brmdp.decisions.families`.
    """
    if name == "uniform":
        return _uniform(pattern)
    states, actions = np.divmod(pattern.pair_of_transition, pattern.n_actions)
    if name == "actions":
        owners, n_laws = states, pattern.n_states
    else:
        owners, n_laws = actions, pattern.n_actions
    if name == "increments":
        links = _increments(pattern, states, actions)
    else:
        links = _destinations(name, pattern, states, owners, n_laws)
    return _assemble(name, pattern, n_laws, *_with_known_rows(name, pattern, owners, n_laws, links))


def _by_action(pattern: TransitionPattern) -> tuple[IntArray, tuple[str, ...]]:
    strength = np.where(pattern.widths > 0, np.arange(pattern.n_pairs) % pattern.n_actions, -1)
    return strength, tuple(f"action {a}" for a in range(pattern.n_actions))


def _uniform(pattern: TransitionPattern) -> Family:
    strength, names = _by_action(pattern)
    keys = strength * (pattern.widest + 1) + pattern.widths
    distinct, kind = np.unique(keys, return_inverse=True)
    kind_of_entry = kind.astype(np.int64)[pattern.pair_of_transition]
    which, widths = np.divmod(distinct, pattern.widest + 1)
    none = np.zeros(0, dtype=np.int64)
    return Family(
        name="uniform",
        pattern=pattern,
        entry=none,
        category=none,
        law_sizes=none,
        labels=none,
        kind_of_entry=kind_of_entry,
        kinds=sparse.csr_array((distinct.size, 0)),
        strength_of_kind=which,
        strength_of_pair=strength,
        strength_names=names,
        fixed=1.0 / np.maximum(widths, 1),
    )


def _open(pattern: TransitionPattern) -> tuple[IntArray, BoolArray]:
    """Pairs with several successors, and whether each entry belongs to one of them."""
    mask: BoolArray = pattern.widths > 1
    return np.flatnonzero(mask), mask[pattern.pair_of_transition]


def _with_known_rows(
    name: str,
    pattern: TransitionPattern,
    owners: IntArray,
    n_laws: int,
    links: tuple[IntArray, IntArray, IntArray],
) -> tuple[IntArray, IntArray, IntArray]:
    """The links of rows with one successor added: all categories of the law lead there."""
    entry, law, label = links
    known = np.flatnonzero(~_open(pattern)[1])
    low, high = int(label.min(initial=0)), int(label.max(initial=0))
    span = high - low + 1
    of_law, labels = np.divmod(np.unique(law * span + (label - low)), span)
    labels += low
    sizes = np.bincount(of_law, minlength=n_laws)
    starts = np.cumsum(sizes) - sizes
    learned = known[sizes[owners[known]] > 0]
    # a law without any other rows has one category
    alone = known[sizes[owners[known]] == 0]
    times = sizes[owners[learned]]
    _require_links(name, entry.size + int(times.sum()) + alone.size)
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    category = np.repeat(starts[owners[learned]], times) + within
    _, first = np.unique(owners[alone], return_index=True)
    named = np.zeros(n_laws, dtype=np.int64)
    if name != "increments":
        named[owners[alone[first]]] = pattern.next_states[alone[first]]
    return (
        np.concatenate((entry, np.repeat(learned, times), alone)),
        np.concatenate((law, of_law[category], owners[alone])),
        np.concatenate((label, labels[category], named[owners[alone]])),
    )


def _require_links(name: str, number: int) -> None:
    if number > LARGEST_LINKS:
        raise InvalidInputError(
            f"shape={name!r} needs a possible with fewer transitions: {number:,} are too many"
        )


def _destinations(
    name: str, pattern: TransitionPattern, states: IntArray, owners: IntArray, n_laws: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Links by destination: entry, law and label."""
    pairs, among = _open(pattern)
    rows = np.bincount(owners[pattern.indptr[pairs]], minlength=n_laws)
    keys = owners * pattern.n_states + pattern.next_states
    seen = np.bincount(keys[among], minlength=n_laws * pattern.n_states)
    common = among & (seen[keys] == rows[owners])
    staying = among & (pattern.next_states == states)
    covered = ~among | common | (staying if name == "staying" else False)
    if not covered.all():
        k = int(np.argmax(~covered))
        what = "actions of a state" if name == "actions" else "states"
        extra = ", apart from staying" if name == "staying" else ""
        raise InvalidInputError(
            f"shape={name!r} needs the same possible successors for all {what}{extra}, but "
            f"{_place(pattern, k)} is possible for some of them only"
        )
    entry = np.flatnonzero(common)
    law, label = owners[entry], pattern.next_states[entry]
    if name == "staying":
        itself = np.flatnonzero(staying)
        if itself.size < pairs.size:
            lacking = np.setdiff1d(pairs, pattern.pair_of_transition[itself])
            s, a = divmod(int(lacking[0]), pattern.n_actions)
            raise InvalidInputError(
                "shape='staying' needs every state to be a possible successor of itself; "
                f"state {s} is not under action {a}"
            )
        entry = np.concatenate((entry, itself))
        law = np.concatenate((law, owners[itself]))
        label = np.concatenate((label, np.full(itself.size, -1)))
    return entry, law, label


def _place(pattern: TransitionPattern, entry: int) -> str:
    s, a = divmod(int(pattern.pair_of_transition[entry]), pattern.n_actions)
    return f"(s={s}, a={a}, s'={int(pattern.next_states[entry])})"


def _increments(
    pattern: TransitionPattern, states: IntArray, actions: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Links by increment: entry, law and label."""
    n = pattern.n_states
    uncertain, among = _open(pattern)
    none = np.zeros(0, dtype=np.int64)
    found: list[tuple[IntArray, IntArray, IntArray]] = [(none, none, none)]
    total = 0
    for action in range(pattern.n_actions):
        pairs = uncertain[uncertain % pattern.n_actions == action]
        if not pairs.size:
            continue
        mine = among & (actions == action)
        # an increment that no row can make in full is always clipped to a smaller one
        steps = np.unique((pattern.next_states - states)[mine])
        total += steps.size * pairs.size
        if total > LARGEST_LINKS:
            raise InvalidInputError(
                f"shape='increments' needs reach, or a possible with fewer increments: {n:,} "
                f"states with {steps.size:,} increments per state are too many"
            )
        begin = pairs // pattern.n_actions
        arrival = np.clip(begin[:, None] + steps, 0, n - 1)
        entries = locate(pattern, np.repeat(pairs, steps.size), arrival.ravel())
        kept = (entries.reshape(arrival.shape) >= 0).all(axis=0)
        entries = entries.reshape(arrival.shape)[:, kept]
        covered = np.zeros(pattern.n_transitions, dtype=bool)
        covered[entries.ravel()] = True
        missing = mine & ~covered
        if missing.any():
            raise InvalidInputError(
                "shape='increments' needs a set of increments that is possible in all states under "
                f"an action; {_place(pattern, int(np.argmax(missing)))} belongs to none of those "
                f"of action {action}"
            )
        labels = np.broadcast_to(steps[kept], entries.shape).ravel()
        found.append((entries.ravel(), np.full(entries.size, action), labels))
    entry, law, label = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return entry, law.astype(np.int64), label


def _assemble(
    name: str,
    pattern: TransitionPattern,
    n_laws: int,
    entry: IntArray,
    law: IntArray,
    label: IntArray,
) -> Family:
    """Number the categories and group the entries by kind."""
    low = int(label.min())
    span = int(label.max()) - low + 1
    distinct, category = np.unique(law * span + (label - low), return_inverse=True)
    category = category.astype(np.int64)
    law_of_category = distinct // span
    sizes = np.bincount(law_of_category, minlength=n_laws).astype(np.int64)
    kind_of_entry, kinds = _kinds(entry, category, pattern.n_transitions, distinct.size)
    if name == "actions":
        strength = np.where(pattern.widths > 0, 0, -1)
        names: tuple[str, ...] = ("all states",)
        of_law = np.zeros(n_laws, dtype=np.int64)
    else:
        strength, names = _by_action(pattern)
        of_law = np.arange(n_laws)
    return Family(
        name=name,
        pattern=pattern,
        entry=entry,
        category=category,
        law_sizes=sizes,
        labels=distinct % span + low,
        kind_of_entry=kind_of_entry,
        kinds=kinds,
        strength_of_kind=of_law[law_of_category[kinds.indices[kinds.indptr[:-1]]]],
        strength_of_pair=strength,
        strength_names=names,
    )


def _kinds(
    entry: IntArray, category: IntArray, n_entries: int, n_categories: int
) -> tuple[IntArray, sparse.csr_array]:
    """The kind of every entry, and the categories of every kind."""
    links = np.bincount(entry, minlength=n_entries)
    kind_of_entry = np.full(n_entries, -1, dtype=np.int64)
    alone = links[entry] == 1
    kind_of_entry[entry[alone]] = category[alone]
    # entries with several categories are few, so they are compared one by one
    order = np.flatnonzero(~alone)
    order = order[np.lexsort((category[order], entry[order]))]
    shared, starts = np.unique(entry[order], return_index=True)
    known: dict[bytes, int] = {}
    sets: list[Any] = []
    parts = np.split(category[order], starts[1:]) if shared.size else []
    for e, members in zip(shared, parts, strict=True):
        key = members.tobytes()
        if key not in known:
            known[key] = n_categories + len(sets)
            sets.append(members)
        kind_of_entry[e] = known[key]
    columns = np.concatenate([np.arange(n_categories), *sets])
    widths = np.concatenate((np.ones(n_categories, dtype=np.int64), [len(s) for s in sets]))
    indptr = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
    matrix = sparse.csr_array(
        (np.ones(columns.size), columns, indptr), shape=(n_categories + len(sets), n_categories)
    )
    return kind_of_entry, matrix
