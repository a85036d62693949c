"""The regret theorem, transcribed from the paper in multiple precision, and sums of its proof."""

import math

import mpmath
import numpy as np
from mpmath import ceil, e, ln, mpf, pi, sqrt

precisely = mpmath.workdps(40)


@precisely
def constants(S, A, gamma, T, delta):
    """u_T, m_T, 𝔗_T (twice: as stated, and without the factor γ), T̄ and M_T."""
    gamma, T, delta = mpf(gamma), mpf(T), mpf(delta)
    u = max(e, T / (1 - gamma) ** 2)
    m = ceil(1 / (1 - gamma) * (ln(u) + ln(ln(u)) + 2))
    fraktur_t = 4 * gamma / (1 - gamma) * (ln(u) + ln(ln(u)) + 4) ** 2
    T_bar = T + m
    M = 2 * (S + 1) * (T_bar + S * A) * sqrt(T_bar) / (S * A * delta * ln(2))
    return u, m, fraktur_t, T_bar, M


@precisely
def bayesian_regret(S, A, gamma, T, delta, floor):
    """The right-hand side of eq. main-order-proof-1."""
    _, m, fraktur_t, T_bar, M = constants(S, A, gamma, T, delta)
    gamma, T, delta, floor = mpf(gamma), mpf(T), mpf(delta), mpf(floor)
    first = sqrt(16 * S * A * T_bar * ln(1 / (1 - floor)))
    second = sqrt(16 * S * A * (T_bar + S**2 * A) * (ln(1 + S * A * M / (T_bar + S**2 * A)) + 2))
    third = sqrt(16 * S * A * T_bar * ln(2 * S * A * T**3 * m))
    return (
        gamma * m / (1 - gamma) * (first + second + third)
        + gamma * S * A / (1 - gamma) * m**2 * ceil(mpmath.log(m, 2))
        + pi**2 / (6 * (1 - gamma))
        + fraktur_t
        + 2 * delta * S * A * sqrt(T) * ln(2 * T) / (1 - gamma) ** 2
    )


@precisely
def bayesian_robust_regret(S, A, gamma, T, delta, floor):
    """The right-hand side of eq. main-order-proof-2."""
    _, m, fraktur_t, T_bar, M = constants(S, A, gamma, T, delta)
    gamma, T, delta, floor = mpf(gamma), mpf(T), mpf(delta), mpf(floor)
    first = sqrt(16 * S * A * T_bar * ln(1 / (1 - floor)))
    second = sqrt(16 * S * A * (T_bar + S**2 * A) * (ln(1 + S * A * M / (T_bar + S**2 * A)) + 2))
    third = sqrt(16 * S * A * T_bar * ln(1 / floor))
    fourth = 2 * sqrt(16 * S * A * T_bar * ln(2 * S * A * T**3 * m))
    return (
        gamma * m / (1 - gamma) * (first + second + third + fourth)
        + 2 * gamma * S * A / (1 - gamma) * m**2 * ceil(mpmath.log(m, 2))
        + pi**2 / (3 * (1 - gamma))
        + 2 * fraktur_t
    )


def informative_horizons(S, A, gamma, delta, floor, most):
    """All T ≤ most at which the bound on BR(T) is below T/(1 − γ), computed one by one."""
    T = np.arange(1, most + 1, dtype=np.float64)
    log_u = np.log(np.maximum(math.e, T / (1 - gamma) ** 2))
    m = np.ceil((log_u + np.log(log_u) + 2) / (1 - gamma))
    T_bar = T + m
    M = 2 * (S + 1) * (T_bar + S * A) * np.sqrt(T_bar) / (S * A * delta * math.log(2))
    total = np.sqrt(16 * S * A * T_bar * math.log(1 / (1 - floor)))
    total += np.sqrt(
        16 * S * A * (T_bar + S**2 * A) * (np.log(1 + S * A * M / (T_bar + S**2 * A)) + 2)
    )
    total += np.sqrt(16 * S * A * T_bar * np.log(2 * S * A * T**3 * m))
    total *= gamma * m / (1 - gamma)
    total += gamma * S * A / (1 - gamma) * m**2 * np.ceil(np.log2(m))
    total += (
        math.pi**2 / (6 * (1 - gamma)) + 4 * gamma / (1 - gamma) * (log_u + np.log(log_u) + 4) ** 2
    )
    total += 2 * delta * S * A * np.sqrt(T) * np.log(2 * T) / (1 - gamma) ** 2
    return np.flatnonzero(total < T / (1 - gamma)) + 1


# --- what the proof sums up -----------------------------------------------------------------------


@precisely
def long_episode_sum(gamma, T):
    """E[ 1/(1−γ) Σ_k Σ_i γ i 1{L_k > m} ] over T geometric lengths, exactly (lem:mk-constant)."""
    _, m, _, _, _ = constants(1, 1, gamma, T, 1)
    gamma, m = mpf(gamma), int(m)

    def weight(length):
        return (1 - gamma) * gamma ** (length - 1) * length * (length + 1) / 2

    return T * gamma / (1 - gamma) * mpmath.nsum(weight, [m + 1, mpmath.inf])


def proof_sums(visits, lengths, S, n_pairs, m, M):
    """The sums of the proof along a sequence of pairs.

    The sequence is cut into pseudo-episodes of the given lengths, with counts N' = N + S. Returns
    Σ 1/√N'_{t_k} and Σ √(ln₊(M/2N'_{t_k})/N'_{t_k}) over short pseudo-episodes that double no
    count, and the number of short ones that double one.
    """
    counts = [S] * n_pairs
    plain = weighted = 0.0
    doubled = 0
    begin = 0
    for length in lengths:
        episode = visits[begin : begin + length]
        begin += length
        at_start = list(counts)
        for pair in episode[:-1]:
            counts[pair] += 1
        doubles = any(now + 1 > 2 * before for now, before in zip(counts, at_start, strict=True))
        if episode:
            counts[episode[-1]] += 1
        if length > m:
            continue
        if doubles:
            doubled += 1
            continue
        for pair in episode:
            plain += 1 / math.sqrt(at_start[pair])
            weighted += math.sqrt(max(math.log(M / 2 / at_start[pair]), 0.0) / at_start[pair])
    return plain, weighted, doubled
