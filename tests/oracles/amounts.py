"""Oracles for amounts learned from a log: dense covariances and one draw at a time.

Nothing is imported from the package.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma


def chances(
    state: np.ndarray, amount: np.ndarray, strengths: np.ndarray, numbers: np.ndarray | None
) -> np.ndarray:
    """Posterior of (slope?, κ) of one action from the normal law of all amounts, lines × lines."""
    total = len(amount)
    states = sorted(set(state.tolist()))
    means = {s: amount[state == s].mean() for s in states}
    off = np.array([y - means[s] for s, y in zip(state, amount, strict=True)])
    if np.allclose(off, 0.0):
        off = amount - amount.mean()
    kurtosis = (off**4).mean() / (off**2).mean() ** 2
    flattened = min(1.0, 2.0 / (kurtosis - 1.0))
    logs = []
    for sloped in (False, True) if numbers is not None else (False,):
        for kappa in strengths:
            share = 1.0 / (1.0 + kappa)
            cov = np.empty((total, total))
            for i in range(total):
                for j in range(total):
                    cov[i, j] = share * (state[i] == state[j]) + (1.0 - share) * (i == j)
            if sloped:
                x = numbers[state].astype(float)
                cov += np.outer(x, x) / x.var()
            inverse = np.linalg.inv(cov)
            one = np.ones(total)
            inside = one @ inverse @ one
            middle = (one @ inverse @ amount) / inside
            left = (amount - middle) @ inverse @ (amount - middle)
            likelihood = (
                -0.5 * np.linalg.slogdet(cov)[1]
                - 0.5 * np.log(inside)
                - 0.5 * (total - 1) * np.log(left)
            )
            logs.append(np.log(share * (1.0 - share)) + flattened * likelihood)
    found = np.exp(np.array(logs) - max(logs))
    return found / found.sum()


def worth(kappa: float, n: int) -> float:
    return kappa * (digamma(kappa + n) - digamma(kappa)) if n else 0.0


def mean(
    state: np.ndarray,
    amount: np.ndarray,
    n_states: int,
    chances: np.ndarray,
    strengths: np.ndarray,
    high: float,
) -> np.ndarray:
    """Posterior means without a slope: the credibility formula, averaged over κ."""
    out = np.zeros(n_states)
    for chance, kappa in zip(chances, strengths, strict=True):
        weight, total = 0.5, 0.5 * high
        for s in range(n_states):
            own = amount[state == s]
            if own.size:
                weight += worth(kappa, own.size)
                total += worth(kappa, own.size) * own.mean()
        for s in range(n_states):
            own = amount[state == s]
            out[s] += chance * (kappa * total / weight + own.sum()) / (kappa + own.size)
    return out


def draw(
    state: np.ndarray,
    amount: np.ndarray,
    n_states: int,
    chances: np.ndarray,
    strengths: np.ndarray,
    high: float,
    borrowed: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """One draw of all means without a slope, from every single amount."""
    own = [amount[state == s] for s in range(n_states)]
    pooled, weights = [], []
    for values in own:
        for y in values:
            if values.size > 1:
                pooled.append((y - values.mean()) * np.sqrt(values.size / (values.size - 1)))
                weights.append(1.0 - 1.0 / values.size)
    for y in amount:
        pooled.append(y - amount.mean())
        weights.append(1.0 / amount.size)
    shares = np.array(weights) / sum(weights)
    residuals = np.array(pooled) - shares @ np.array(pooled)
    kappa = rng.choice(strengths, p=chances)
    values, law = [high], [0.5]
    for mine in own:
        for y in mine:
            values.append(y)
            law.append(worth(kappa, mine.size) / mine.size)
    law = rng.dirichlet(law)
    out = np.empty(n_states)
    for s in range(n_states):
        base = rng.gamma(kappa * law)
        total, weighted = base.sum(), base @ np.array(values)
        n = own[s].size
        if n:
            scale = np.sqrt((n + borrowed + 1.0) / n)
            one, two = rng.gamma(np.ones(n)), rng.gamma(borrowed * shares)
            off = one @ (own[s] - own[s].mean()) + two @ residuals
            centre = own[s].mean() + scale * off / (one.sum() + two.sum())
            times = rng.gamma(n)
            total, weighted = total + times, weighted + times * centre
        out[s] = weighted / total
    return out
