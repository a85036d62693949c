"""The least mean over a weighted L1 ball: the inner problem of robust decision processes.

For one row with centre c, weights ω > 0, radius ψ and targets w,

    least = min { p·w : p ≥ 0, Σp = 1, Σ_j ω_j |p_j − c_j| ≤ ψ }
          = max_{λ ≥ 0} h(λ) − λψ,   h(λ) = Σ_j c_j min{ w_j, m(λ) + λω_j },
            m(λ) = min_k (w_k + λω_k).

At a price λ of moving, everything goes to one receiver k, the minimiser in m, and j gives away all
it has if w_j − λω_j > m(λ). h is concave and piecewise linear: a piece is the mean of such a
rearranged row plus λ times the distance that it was moved. The search begins with the two outermost
pieces, cuts where they meet, and goes on with the piece found there, until that one lies no lower:
so it ends after finitely many pieces, usually fewer than ten. The minimiser mixes the two rows that
meet; it lies in the ball, and its mean minus the dual value bounds the error.
"""

from __future__ import annotations

import numpy as np

from brmdp._kernels.compiled import kernel

MOST_PIECES = 200


@kernel
def rearranged(price, centre, weights, targets):
    """Receiver, threshold, mean and moved distance of the best row at a price of moving."""
    receiver = 0
    lowest = np.inf
    for k in range(targets.shape[0]):
        cost = targets[k] + price * weights[k]
        if cost < lowest or (cost == lowest and weights[k] < weights[receiver]):
            lowest = cost
            receiver = k
    mean = 0.0
    moved = 0.0
    for j in range(targets.shape[0]):
        if targets[j] - price * weights[j] > lowest:
            mean += centre[j] * targets[receiver]
            moved += centre[j] * (weights[j] + weights[receiver])
        else:
            mean += centre[j] * targets[j]
    return receiver, lowest, mean, moved


@kernel
def add_rearranged(share, price, centre, weights, targets, row):
    """Add ``share`` times the row behind :func:`rearranged` to ``row``."""
    receiver, lowest, _, _ = rearranged(price, centre, weights, targets)
    for j in range(targets.shape[0]):
        if targets[j] - price * weights[j] > lowest:
            row[receiver] += share * centre[j]
        else:
            row[j] += share * centre[j]


@kernel
def least_mean(centre, weights, radius, targets, row):
    """The least mean, written with its minimiser into ``row``; returns it and a bound on its error.

    The bound is the duality gap; rounding of the sums comes on top.
    """
    row[:] = 0.0
    _, _, mean, moved = rearranged(0.0, centre, weights, targets)
    if moved <= radius:
        add_rearranged(1.0, 0.0, centre, weights, targets, row)
        return mean, 0.0
    # far: the cheap end, with too much moved; near: the dear end, where nothing moves
    far, far_mean, far_moved = 0.0, mean, moved
    near = 1.0 + (np.max(targets) - np.min(targets)) / (2.0 * np.min(weights))
    _, _, near_mean, near_moved = rearranged(near, centre, weights, targets)
    dual = -np.inf
    for _ in range(MOST_PIECES):
        if far_moved <= near_moved:
            break
        price = max((near_mean - far_mean) / (far_moved - near_moved), 0.0)
        _, _, mean, moved = rearranged(price, centre, weights, targets)
        dual = max(dual, mean + price * (moved - radius))
        expected = far_mean + price * far_moved
        if mean + price * moved >= expected - 1e-15 * abs(expected):
            break
        if moved > radius:
            far, far_mean, far_moved = price, mean, moved
        else:
            near, near_mean, near_moved = price, mean, moved
    share = 0.0
    if far_moved > near_moved:
        share = min(max((radius - near_moved) / (far_moved - near_moved), 0.0), 1.0)
    add_rearranged(share, far, centre, weights, targets, row)
    add_rearranged(1.0 - share, near, centre, weights, targets, row)
    mean = share * far_mean + (1.0 - share) * near_mean
    return mean, max(mean - dual, 0.0)


@kernel
def least_means(pairs, indptr, centre, weights, radii, targets, out):
    """out[pair] = the least mean; returns the largest duality gap."""
    worst = 0.0
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        begin, end = indptr[pair], indptr[pair + 1]
        row = np.empty(end - begin)
        mean, gap = least_mean(
            centre[begin:end], weights[begin:end], radii[pair], targets[begin:end], row
        )
        out[pair] = mean
        worst = max(worst, gap)
    return worst


@kernel
def least_rows(pairs, indptr, centre, weights, radii, targets, out):
    """The minimisers of the given pairs, one after another."""
    position = 0
    for p in range(pairs.shape[0]):
        begin, end = indptr[pairs[p]], indptr[pairs[p] + 1]
        row = out[position : position + end - begin]
        least_mean(centre[begin:end], weights[begin:end], radii[pairs[p]], targets[begin:end], row)
        position += end - begin
