"""Upper bounds on a mean over compressed rows: L1 balls, and empirical Bernstein bounds."""

from __future__ import annotations

import numpy as np

from brmdp._kernels.compiled import kernel


@kernel
def best_in_ball(centre, targets, radius, row):
    """Write the row within L1 distance ``radius`` of ``centre`` with the largest Σ row · targets.

    Half of the radius is added to the best successor (the first of equals) and taken from the worst
    ones. Returns the sum.
    """
    best = 0
    for i in range(centre.shape[0]):
        row[i] = centre[i]
        if targets[i] > targets[best]:
            best = i
    moved = min(0.5 * radius, 1.0 - centre[best])
    row[best] += moved
    for i in np.argsort(targets):
        if moved <= 0.0:
            break
        if i != best:
            taken = min(row[i], moved)
            row[i] -= taken
            moved -= taken
    total = 0.0
    for i in range(centre.shape[0]):
        total += row[i] * targets[i]
    return total


@kernel
def ball_values(pairs, indptr, centre, radii, targets, out):
    """out[pair] = the largest mean of the targets in the pair's ball; returns the largest |w|."""
    largest = 0.0
    for pair in pairs:
        begin, end = indptr[pair], indptr[pair + 1]
        row = np.empty(end - begin)
        out[pair] = best_in_ball(centre[begin:end], targets[begin:end], radii[pair], row)
        for i in range(begin, end):
            largest = max(largest, abs(targets[i]))
    return largest


@kernel
def ball_rows(pairs, indptr, centre, radii, targets, out):
    """The rows that attain these values, one after another."""
    position = 0
    for pair in pairs:
        begin, end = indptr[pair], indptr[pair + 1]
        row = out[position : position + end - begin]
        best_in_ball(centre[begin:end], targets[begin:end], radii[pair], row)
        position += end - begin


@kernel
def moments(centre, targets):
    """Mean and variance of the targets."""
    mean = 0.0
    for i in range(centre.shape[0]):
        mean += centre[i] * targets[i]
    variance = 0.0
    for i in range(centre.shape[0]):
        variance += centre[i] * (targets[i] - mean) ** 2
    return mean, variance


@kernel
def bernstein_values(pairs, indptr, centre, slopes, least, targets, out):
    """out[pair] = mean + max{slope · deviation, least}; returns the largest |w|."""
    largest = 0.0
    for pair in pairs:
        begin, end = indptr[pair], indptr[pair + 1]
        mean, variance = moments(centre[begin:end], targets[begin:end])
        out[pair] = mean + max(slopes[pair] * np.sqrt(variance), least[pair])
        for i in range(begin, end):
            largest = max(largest, abs(targets[i]))
    return largest


@kernel
def bernstein_rows(pairs, indptr, centre, slopes, least, targets, out):
    """Their gradients, as probability vectors, one after another."""
    position = 0
    for pair in pairs:
        begin, end = indptr[pair], indptr[pair + 1]
        mean, variance = moments(centre[begin:end], targets[begin:end])
        deviation = np.sqrt(variance)
        tilt = slopes[pair] / deviation if slopes[pair] * deviation > least[pair] else 0.0
        total = 0.0
        for i in range(begin, end):
            # negative only for targets with a wider range than the bound allows for
            share = max(0.0, centre[i] * (1.0 + tilt * (targets[i] - mean)))
            out[position + i - begin] = share
            total += share
        for i in range(begin, end):
            out[position + i - begin] /= total
        position += end - begin
