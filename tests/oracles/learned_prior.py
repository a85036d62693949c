"""Slow and obvious counterparts of the learned prior: loops, products and grids."""

import itertools

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, gammaln


def image(shape, law, labels, state, n_states):
    """The law of the next state in one state, category by category."""
    row = np.zeros(n_states)
    for label, probability in zip(labels, law, strict=True):
        if shape == "increments":
            row[min(max(state + label, 0), n_states - 1)] += probability
        elif shape == "staying" and label == -1:
            row[state] += probability
        else:
            row[label] += probability
    return row


def sequential_log_evidence(priors, counts, rng):
    """Log probability of a log, one transition after another, in a random order.

    ``priors`` and ``counts`` have one row of concentrations, or counts, each.
    """
    log = [
        (i, j)
        for (i, j) in itertools.product(range(len(priors)), range(len(priors[0])))
        for _ in range(int(counts[i][j]))
    ]
    seen = np.zeros_like(np.asarray(priors, dtype=float))
    total = 0.0
    for k in rng.permutation(len(log)):
        i, j = log[k]
        total += np.log((priors[i][j] + seen[i, j]) / (np.sum(priors[i]) + seen[i].sum()))
        seen[i, j] += 1
    return total


def slow_mode(rows_of, counts, base, bounds, starts):
    """Mode of (ln κ, ln m) of one law, by a general optimiser.

    ``rows_of(law)`` gives the priors' means, one row each.
    """
    rng = np.random.default_rng(0)

    def unpacked(point):
        weight = np.exp(point[1:] - point[1:].max())
        return point[0], weight / weight.sum()

    def objective(point):
        x, law = unpacked(point)
        rows = np.exp(x) * rows_of(law)
        keep = rows > 0
        total = gammaln(np.exp(x)) - gammaln(np.exp(x) + counts.sum(axis=1))
        cells = gammaln(rows[keep] + counts[keep]) - gammaln(rows[keep])
        return -(total.sum() + cells.sum() + base @ np.log(law))

    best = None
    for start in starts:
        point = np.concatenate(([start], 0.1 * rng.standard_normal(base.size)))
        limits = [bounds] + [(-30.0, 30.0)] * base.size
        for method in ("L-BFGS-B", "Powell", "L-BFGS-B"):
            point = minimize(
                objective, point, method=method, bounds=limits, options={"maxiter": 5000}
            ).x
        if best is None or objective(point) < objective(best):
            best = point
    return *unpacked(best), -objective(best)


def two_category_posterior(counts, base, bounds, n=601):
    """Exact posterior for rows over two successors that share a law: a grid over (ln κ, m).

    The base is Beta(base, base) with base = ½, so that m = sin²u with u uniform.

    Returns
    -------
    dict
        Means of ln κ, of m and of the first row's first probability, their standard deviations, and
        the distribution of ln κ on its grid.
    """
    assert base == 0.5
    x = np.linspace(*bounds, n)[:, None]
    u = (np.arange(n) + 0.5) / n * np.pi / 2
    m = np.sin(u)[None, :] ** 2
    kappa = np.exp(x)
    logs = np.zeros((n, n))
    for first, second in counts:
        logs += betaln(kappa * m + first, kappa * (1 - m) + second)
        logs -= betaln(kappa * m, kappa * (1 - m))
    weight = np.exp(logs - logs.max())
    weight[[0, -1]] *= 0.5
    weight /= weight.sum()
    first, second = counts[0]
    row_mean = (kappa * m + first) / (kappa + first + second)
    row_square = row_mean * (kappa * m + first + 1) / (kappa + first + second + 1)

    def moments(value, square=None):
        mean = (weight * value).sum()
        return mean, np.sqrt((weight * (value**2 if square is None else square)).sum() - mean**2)

    return {
        "ln κ": moments(x + 0 * m),
        "m": moments(m + 0 * x),
        "row": moments(row_mean, row_square),
        "grid": x[:, 0],
        "cumulative": np.cumsum(weight.sum(axis=1)),
    }


def two_group_posterior(counts, bounds, n=121, fine=801):
    """Exact posterior of one row over two successors in several groups, by a grid.

    The row over groups is Q ~ Beta(κ/2, κ/2) and that of group g is P_g ~ Beta(κ_g Q, κ_g (1 − Q)),
    with ln κ and all ln κ_g flat.

    Returns
    -------
    dict
        Means and standard deviations of ln κ, of ln κ_0, of Q and of P_0.
    """
    x = np.linspace(*bounds, n)
    ends = np.ones(n)
    ends[[0, -1]] = 0.5
    u = (np.arange(fine) + 0.5) / fine * np.pi / 2
    q = np.sin(u) ** 2
    kappa = np.exp(x)[:, None]
    # by κ and q: density of Q, with the Jacobian of q = sin²u
    upper = (kappa / 2 - 0.5) * (np.log(q) + np.log1p(-q)) - betaln(kappa / 2, kappa / 2)
    upper = np.exp(upper) * ends[:, None]
    groups = []
    for first, second in counts:
        logs = betaln(kappa * q + first, kappa * (1 - q) + second)
        groups.append(np.exp(logs - betaln(kappa * q, kappa * (1 - q))) * ends[:, None])
    others = np.prod([group.sum(axis=0) for group in groups[1:]], axis=0)
    whole = upper.sum(axis=0) * groups[0].sum(axis=0) * others
    total = whole.sum()
    first, second = counts[0]
    mean = (kappa * q + first) / (kappa + first + second)
    square = mean * (kappa * q + first + 1) / (kappa + first + second + 1)
    above = upper.sum(axis=0) * others

    def spread(one, two):
        return one / total, np.sqrt(two / total - (one / total) ** 2)

    x = x[:, None]
    return {
        "ln κ": spread(
            ((upper * x).sum(axis=0) * groups[0].sum(axis=0) * others).sum(),
            ((upper * x**2).sum(axis=0) * groups[0].sum(axis=0) * others).sum(),
        ),
        "ln κ_0": spread(
            ((groups[0] * x).sum(axis=0) * above).sum(),
            ((groups[0] * x**2).sum(axis=0) * above).sum(),
        ),
        "Q": spread((whole * q).sum(), (whole * q**2).sum()),
        "P_0": spread(
            ((groups[0] * mean).sum(axis=0) * above).sum(),
            ((groups[0] * square).sum(axis=0) * above).sum(),
        ),
    }


def group_moments(family, counts, bounds, numbers, n, rng):
    """Posterior means in partially pooled groups, by importance sampling from the prior.

    ``numbers(upper, lower, law, rows)`` turns draws of ln κ (n, strengths), ln κ_g (n, groups), the
    laws (n, categories) and the rows over groups (n, transitions) into (n, k) numbers.

    Returns
    -------
    mean, error : (k,) arrays
    """
    n_groups = counts.shape[0]
    owners, pairs = family.pattern.pair_of_transition, family.pattern.n_pairs
    upper = rng.uniform(*bounds, (n, family.n_strengths))
    lower = rng.uniform(*bounds, (n, n_groups))
    law = np.concatenate(
        [np.zeros((n, 0))]
        + [
            rng.dirichlet(family.base[family.law_of_category == k], n)
            for k in range(family.law_sizes.size)
        ],
        axis=1,
    )
    weight = np.exp(upper)[:, family.strength_of_kind] * family.shares(law)
    gammas = rng.standard_gamma(weight[:, family.kind_of_entry])
    rows = np.concatenate(
        [
            gammas[:, owners == p] / gammas[:, owners == p].sum(axis=1)[:, None]
            for p in range(pairs)
        ],
        axis=1,
    )
    logs = np.zeros(n)
    for g in range(n_groups):
        kappa = np.exp(lower[:, [g]])
        theta = np.maximum(kappa * rows, 1e-30)
        logs += (gammaln(theta + counts[g]) - gammaln(theta)).sum(axis=1)
        totals = np.bincount(owners, counts[g], pairs)
        logs += (gammaln(kappa) - gammaln(kappa + totals)).sum(axis=1)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    found = numbers(upper, lower, law, rows)
    mean = share @ found
    return mean, np.sqrt(share**2 @ (found - mean) ** 2)
