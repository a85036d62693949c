"""Sweeps over partially pooled groups; see :mod:`brmdp.decisions.partial`.

A chain's state are ln κ of the strengths and of the groups, the laws, and in every row over groups
the probabilities of the entries that some group observed (``rows``) and of all others together
(``rest``).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from brmdp._kernels.compiled import kernel
from brmdp._kernels.tables import (
    LARGE_WEIGHT,
    SMALLEST,
    add_cumulants,
    add_tables,
    drawn_sum,
    is_large,
    log_gamma,
    log_rise,
    opened,
)

# Standard deviations of the steps of ln κ when it moves together with the rows, and the share of
# these moves that exchange two groups' instead.
SHORT, MIDDLE, LONG = 0.3, 1.5, 6.0
EXCHANGES = 0.5
# Probabilities smaller than the largest of a row by this factor's exponential are taken for zero.
NEGLIGIBLE = 150.0


class Layout(NamedTuple):
    """What the data are, and which numbers they depend on.

    Attributes
    ----------
    group_cells, group_rows : (groups + 1,) integers
        Where the cells and the row totals of each group begin; both are sorted by group.
    cell_entry, cell_count, cell_total : (cells,) arrays
        Entry and count of each cell, and the total of its row in its group.
    total_count : (totals,) array
        All row totals.
    row_entries : (rows + 1,) integers
        Where the observed entries of each row begin.
    row_strength : (rows,) integers
    row_whole : (rows,) booleans
        Whether all possible entries of the row were observed.
    entry_row, entry_kind : (entries,) integers
    kind_strength : (kinds,) integers
    kind_members, members : integers
        The categories of each kind, as a sparse matrix.
    law_categories : (laws + 1,) integers
        Where the categories of each law begin.
    base : (categories,) array
    fixed : (kinds,) array
        Shares of the kinds, if there are no laws.
    """

    group_cells: Any
    group_rows: Any
    cell_entry: Any
    cell_count: Any
    cell_total: Any
    total_count: Any
    row_entries: Any
    row_strength: Any
    row_whole: Any
    entry_row: Any
    entry_kind: Any
    kind_strength: Any
    kind_members: Any
    members: Any
    law_categories: Any
    base: Any
    fixed: Any


@kernel
def shares_into(layout, law, share):
    """Probability of every kind."""
    if layout.base.size == 0:
        share[:] = layout.fixed
        return
    for k in range(share.size):
        share[k] = 0.0
        for m in range(layout.kind_members[k], layout.kind_members[k + 1]):
            share[k] += law[layout.members[m]]


@kernel
def prior_into(layout, upper, share, prior, left):
    """Concentrations κ m of the entries, and of the others in each row together."""
    for r in range(left.size):
        strength = math.exp(upper[layout.row_strength[r]])
        remaining = 1.0
        for e in range(layout.row_entries[r], layout.row_entries[r + 1]):
            part = share[layout.entry_kind[e]]
            remaining -= part
            prior[e] = max(strength * part, SMALLEST)
        left[r] = 0.0 if layout.row_whole[r] else max(strength * remaining, SMALLEST)


@kernel
def group_evidence(layout, g, x, rows):
    """Log likelihood of one group given ln κ_g and the rows over groups."""
    strength = math.exp(x)
    result = 0.0
    for c in range(layout.group_cells[g], layout.group_cells[g + 1]):
        weight = max(strength * rows[layout.cell_entry[c]], SMALLEST)
        result += log_rise(weight, layout.cell_count[c])
    return result - group_losses(layout, g, x)


@kernel
def group_losses(layout, g, x):
    """Σ_i lnΓ(κ_g + n_gi) − lnΓ(κ_g)."""
    strength = math.exp(x)
    result = 0.0
    for t in range(layout.group_rows[g], layout.group_rows[g + 1]):
        result += log_rise(strength, layout.total_count[t])
    return result


@kernel
def upper_evidence(x, share, customers, totals, entries, kinds, rows):
    """Log likelihood of the customers of the entries of one strength, given its ln κ."""
    strength = math.exp(x)
    result = 0.0
    for e in entries:
        result += log_rise(max(strength * share[kinds[e]], SMALLEST), customers[e])
    for r in rows:
        result -= log_rise(strength, totals[r])
    return result


@kernel
def interval(x, bounds, width, rng):
    """The interval that a slice step begins with."""
    low, high = bounds
    if width < high - low:
        left = x - width * rng.random()
        low, high = max(low, left), min(high, left + width)
    return low, high


@kernel
def slice_groups(layout, lower, rows, bounds, widths, rng):
    """A slice step for every ln κ_g, given the rows over groups."""
    for g in range(lower.size):
        x = lower[g]
        low, high = interval(x, bounds, widths[g], rng)
        level = group_evidence(layout, g, x, rows) - rng.standard_exponential()
        while high - low > 1e-12:
            tried = low + (high - low) * rng.random()
            if group_evidence(layout, g, tried, rows) >= level:
                lower[g] = tried
                break
            if tried < x:
                low = tried
            else:
                high = tried


@kernel
def slice_strength(x, share, customers, totals, entries, kinds, rows, bounds, width, rng):
    """A slice step for one ln κ, with the rows over groups integrated out."""
    low, high = interval(x, bounds, width, rng)
    level = upper_evidence(x, share, customers, totals, entries, kinds, rows)
    level -= rng.standard_exponential()
    while high - low > 1e-12:
        tried = low + (high - low) * rng.random()
        if upper_evidence(tried, share, customers, totals, entries, kinds, rows) >= level:
            return tried
        if tried < x:
            low = tried
        else:
            high = tried
    return x


@kernel
def draw_rows(layout, weight, left, rng, rows, rest):
    """Dirichlet rows, given the concentrations of the entries and of the others in each row."""
    for r in range(rest.size):
        begin, end = layout.row_entries[r], layout.row_entries[r + 1]
        log_rest = -np.inf
        if not layout.row_whole[r]:
            log_rest = draw_log_gamma(left[r], rng)
        most = log_rest
        for e in range(begin, end):
            rows[e] = draw_log_gamma(weight[e], rng)
            most = max(most, rows[e])
        rest[r] = math.exp(log_rest - most)
        total = rest[r]
        for e in range(begin, end):
            rows[e] = math.exp(rows[e] - most)
            total += rows[e]
        rest[r] /= total
        for e in range(begin, end):
            rows[e] /= total


@kernel
def draw_log_gamma(shape, rng):
    """The logarithm of a draw from Gamma(shape), for shapes however small."""
    if shape >= 1.0:
        return math.log(rng.standard_gamma(shape))
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@kernel
def worth_into(layout, lower, own):
    """What the groups' data are worth as observations of the rows over groups."""
    own[:] = 0.0
    for g in range(lower.size):
        strength = math.exp(lower[g])
        for c in range(layout.group_cells[g], layout.group_cells[g + 1]):
            part = strength / (strength + layout.cell_total[c])
            own[layout.cell_entry[c]] += layout.cell_count[c] * part


@kernel
def gains_into(layout, lower, rows, own, gains):
    """Log density of each row given every κ_g less that of proposing it, up to what is common.

    Left out is what depends on the prior, on ``own`` and on κ_g alone.
    """
    gains[:] = 0.0
    for e in range(rows.size):
        gains[layout.entry_row[e]] -= own[e] * math.log(max(rows[e], SMALLEST))
    for g in range(lower.size):
        strength = math.exp(lower[g])
        for c in range(layout.group_cells[g], layout.group_cells[g + 1]):
            e = layout.cell_entry[c]
            weight = max(strength * rows[e], SMALLEST)
            gains[layout.entry_row[e]] += log_rise(weight, layout.cell_count[c])


@kernel
def proposal_constant(layout, upper, prior, own):
    """Σ ln of the normalising constants of the proposals, less those of the prior."""
    result = 0.0
    for r in range(layout.row_strength.size):
        whole = 0.0
        for e in range(layout.row_entries[r], layout.row_entries[r + 1]):
            whole += own[e]
            result += log_gamma(prior[e] + own[e]) - log_gamma(prior[e])
        strength = math.exp(upper[layout.row_strength[r]])
        result -= log_gamma(strength + whole) - log_gamma(strength)
    return result


@kernel
def try_into(lower, bounds, rng, tried):
    """Another ln κ_g for one group, or two groups' exchanged; returns whether it is in range."""
    n = lower.size
    tried[:] = lower
    if n > 1 and rng.random() < EXCHANGES:
        one = min(int(rng.random() * n), n - 1)
        other = min(int(rng.random() * (n - 1)), n - 2)
        other += other >= one
        tried[one], tried[other] = lower[other], lower[one]
        return True
    g = min(int(rng.random() * n), n - 1)
    size = 3.0 * rng.random()
    size = SHORT if size < 1.0 else MIDDLE if size < 2.0 else LONG
    tried[g] += size * rng.standard_normal()
    return bounds[0] < tried[g] < bounds[1]


@kernel
def move_rows(layout, bounds, upper, lower, prior, left, rng, rows, rest):
    """Move κ of one group and all rows over groups at once, then every row on its own."""
    n_rows = rest.size
    own, weight, new_rows = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
    gains, new_gains, new_rest = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    worth_into(layout, lower, own)
    gains_into(layout, lower, rows, own, gains)
    tried = np.empty(lower.size)
    if try_into(lower, bounds, rng, tried):
        new_own = np.empty(rows.size)
        worth_into(layout, tried, new_own)
        weight[:] = prior + new_own
        draw_rows(layout, weight, left, rng, new_rows, new_rest)
        gains_into(layout, tried, new_rows, new_own, new_gains)
        gain = new_gains.sum() - gains.sum()
        gain += proposal_constant(layout, upper, prior, new_own)
        gain -= proposal_constant(layout, upper, prior, own)
        for g in range(lower.size):
            if tried[g] != lower[g]:
                gain -= group_losses(layout, g, tried[g]) - group_losses(layout, g, lower[g])
        if -rng.standard_exponential() < gain:
            lower[:], own[:], gains[:] = tried, new_own, new_gains
            rows[:], rest[:] = new_rows, new_rest
    weight[:] = prior + own
    draw_rows(layout, weight, left, rng, new_rows, new_rest)
    gains_into(layout, lower, new_rows, own, new_gains)
    for r in range(n_rows):
        if -rng.standard_exponential() < new_gains[r] - gains[r]:
            rest[r] = new_rest[r]
            for e in range(layout.row_entries[r], layout.row_entries[r + 1]):
                rows[e] = new_rows[e]


@kernel
def seat_customers(layout, lower, rows, rng, customers):
    """Draw the tables of the groups' rows, which are the customers of the rows over groups."""
    sums = np.zeros((rows.size, 4))
    most = np.zeros(rows.size)
    customers[:] = 0.0
    for g in range(lower.size):
        strength = math.exp(lower[g])
        for c in range(layout.group_cells[g], layout.group_cells[g + 1]):
            e = layout.cell_entry[c]
            customers[e] += 1.0
            weight = strength * rows[e]
            if weight >= LARGE_WEIGHT and layout.cell_count[c] > 1.0:
                add_cumulants(layout.cell_count[c], weight, sums[e])
                most[e] += layout.cell_count[c] - 1.0
    for g in range(lower.size):
        strength = math.exp(lower[g])
        for c in range(layout.group_cells[g], layout.group_cells[g + 1]):
            e = layout.cell_entry[c]
            weight = strength * rows[e]
            if weight < LARGE_WEIGHT or not is_large(sums[e]):
                weight = max(weight, SMALLEST)
                customers[e] += opened(layout.cell_count[c], weight, rng)
    for e in range(rows.size):
        if is_large(sums[e]):
            customers[e] += drawn_sum(sums[e], most[e], rng)


@kernel
def seat_kinds(layout, upper, share, customers, rng, tables):
    """Draw the tables of the rows over groups, by kind of entry."""
    weights = np.empty(share.size)
    for k in range(share.size):
        weights[k] = math.exp(upper[layout.kind_strength[k]]) * share[k]
    tables[:] = 0.0
    for e in range(customers.size):
        tables[layout.entry_kind[e]] += 1.0
    add_tables(layout.entry_kind, customers, np.ones(customers.size), weights, rng, tables)


@kernel
def draw_law(layout, tables, rng, law):
    """Draw the laws, given the tables of every kind and the last laws."""
    weight = layout.base.copy()
    for k in range(tables.size):
        begin, end = layout.kind_members[k], layout.kind_members[k + 1]
        if end == begin + 1:
            weight[layout.members[begin]] += tables[k]
            continue
        total = 0.0
        for m in range(begin, end):
            total += law[layout.members[m]]
        remaining = int(tables[k])
        for m in range(begin, end):
            if remaining == 0:
                break
            part = law[layout.members[m]]
            if m == end - 1 or part >= total:
                taken = remaining
            else:
                taken = rng.binomial(remaining, part / total)
            weight[layout.members[m]] += taken
            remaining -= taken
            total -= part
    for n in range(layout.law_categories.size - 1):
        begin, end = layout.law_categories[n], layout.law_categories[n + 1]
        if begin == end:
            continue
        most = -np.inf
        for c in range(begin, end):
            law[c] = draw_log_gamma(weight[c], rng)
            most = max(most, law[c])
        total = 0.0
        for c in range(begin, end):
            law[c] = math.exp(law[c] - most)
            total += law[c]
        for c in range(begin, end):
            law[c] = max(law[c] / total, SMALLEST)


@kernel
def sweep(
    layout, by_strength, bounds, lower_widths, upper_widths, upper, lower, law, rows, rest, rng
):
    """One round for every chain, in place.

    ``by_strength`` holds the entries and the rows in the order of their strengths, and where those
    of each strength begin.
    """
    entries, entries_begin, rows_of, rows_begin = by_strength
    share = np.empty(layout.kind_strength.size)
    tables = np.empty(share.size)
    prior, left = np.empty(rows.shape[1]), np.empty(rest.shape[1])
    customers, totals = np.empty(prior.size), np.empty(left.size)
    for chain in range(upper.shape[0]):
        x, y, q, remaining = upper[chain], lower[chain], rows[chain], rest[chain]
        shares_into(layout, law[chain], share)
        # κ of the groups with their tables integrated out, then the tables
        slice_groups(layout, y, q, bounds, lower_widths, rng)
        if q.size:
            prior_into(layout, x, share, prior, left)
            move_rows(layout, bounds, x, y, prior, left, rng, q, remaining)
        seat_customers(layout, y, q, rng, customers)
        totals[:] = 0.0
        for e in range(q.size):
            totals[layout.entry_row[e]] += customers[e]
        # the same one level up, with the rows over groups integrated out
        for k in range(x.size):
            mine = rows_of[rows_begin[k] : rows_begin[k + 1]]
            if mine.size == 0:
                x[k] = bounds[0] + (bounds[1] - bounds[0]) * rng.random()
                continue
            seen = entries[entries_begin[k] : entries_begin[k + 1]]
            x[k] = slice_strength(
                x[k],
                share,
                customers,
                totals,
                seen,
                layout.entry_kind,
                mine,
                bounds,
                upper_widths[k],
                rng,
            )
        if layout.base.size:
            seat_kinds(layout, x, share, customers, rng, tables)
            draw_law(layout, tables, rng, law[chain])
            shares_into(layout, law[chain], share)
        # and the rows over groups themselves
        prior_into(layout, x, share, prior, left)
        prior += customers
        draw_rows(layout, prior, left, rng, q, remaining)


@kernel
def spread(weights, kind_of_entry, entries, begins, shares, rng, rows):
    """Spread the share of each row that is left over its other entries, for one draw.

    Parameters
    ----------
    weights : (kinds,) array
        Concentrations κ m.
    kind_of_entry : (transitions,) integers
    entries : integers
        The entries that no group observed, row after row.
    begins : integers
        Where those of each row begin.
    shares : array
        What is left in each row.
    rng : numpy.random.Generator
    rows : (transitions,) array
        Where to write.
    """
    weights = np.maximum(weights, SMALLEST)
    inverse = 1.0 / weights
    for r in range(shares.size):
        begin, end = begins[r], begins[r + 1]
        most = -np.inf
        for i in range(begin, end):
            k = kind_of_entry[entries[i]]
            if weights[k] < 1.0:
                # the other factor of the gamma variable is drawn below, where it matters
                drawn = -rng.standard_exponential() * inverse[k]
            else:
                drawn = math.log(rng.standard_gamma(weights[k]))
            rows[entries[i]] = drawn
            most = max(most, drawn)
        total = 0.0
        for i in range(begin, end):
            e = entries[i]
            if rows[e] < most - NEGLIGIBLE:
                rows[e] = 0.0
                continue
            weight = weights[kind_of_entry[e]]
            rows[e] = math.exp(rows[e] - most)
            if weight < 1.0:
                rows[e] *= rng.standard_gamma(weight + 1.0)
            total += rows[e]
        if total > 0.0:
            for i in range(begin, end):
                rows[entries[i]] *= shares[r] / total
