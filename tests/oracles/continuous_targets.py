"""Slow, obvious versions of fitting in the continuous part.

Reset, network, optimiser, fitted Q iteration and level schedule, in double precision, follow the
paper's appendix "Continuous-State FrozenLake Experiment". The law of the movements is in
``continuous_lake``.
"""

import itertools
import math

import numpy as np

from oracles.continuous_lake import LAKE, letter


def reset_mean(value, discount, points=12):
    """Mean of R + γ max Q over the eleven ordinary cells, by a product rule on their quarters."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    total = 0.0
    for cell in (cell for cell in range(16) if LAKE[cell] in "SF"):
        for corner in itertools.product((0.0, 0.5), repeat=2):
            places = (
                np.array(cell % 4 + corner[0] + 0.25 * (nodes + 1)),
                np.array(cell // 4 + corner[1] + 0.25 * (nodes + 1)),
            )
            states = np.array(list(itertools.product(*places)))
            total += np.outer(weights, weights).ravel() @ (discount * value(states)) / 16
    return total / 11


# --- network --------------------------------------------------------------------------------------


def lake_features(state):
    x, y = state
    one_hot = [
        float(min(int(x), 3) == column and min(int(y), 3) == row)
        for row in range(4)
        for column in range(4)
    ]
    return [x / 4, y / 4, *one_hot, float(letter(x, y) == "H"), float(letter(x, y) == "G")]


def network_values(network, features):
    """Q-values of a list of (weight, bias) with rectified hidden units."""
    signal = np.asarray(features, dtype=float)
    for weight, bias in network[:-1]:
        signal = np.maximum(signal @ weight + bias, 0.0)
    return signal @ network[-1][0] + network[-1][1]


def loss_and_gradient(network, features, wanted):
    """Mean squared error and its gradient, by hand-written backpropagation."""
    signals = [np.asarray(features, dtype=float)]
    for weight, bias in network[:-1]:
        signals.append(np.maximum(signals[-1] @ weight + bias, 0.0))
    difference = signals[-1] @ network[-1][0] + network[-1][1] - wanted
    upstream = 2.0 * difference / difference.size
    gradient = []
    for layer in reversed(range(len(network))):
        gradient.append((signals[layer].T @ upstream, upstream.sum(axis=0)))
        if layer:
            upstream = (upstream @ network[layer][0].T) * (signals[layer] > 0)
    return (difference**2).mean(), gradient[::-1]


class Adam:
    """Kingma and Ba's algorithm, array by array."""

    def __init__(self, network, rate, first=0.9, second=0.999, small=1e-8):
        self.rate, self.first, self.second, self.small = rate, first, second, small
        self.steps = 0
        self.moments = [
            [[np.zeros(part.shape), np.zeros(part.shape)] for part in layer] for layer in network
        ]

    def step(self, network, gradient):
        self.steps += 1
        updated = []
        for layer, slopes, moments in zip(network, gradient, self.moments, strict=True):
            parts = []
            for part, slope, moment in zip(layer, slopes, moments, strict=True):
                moment[0] = self.first * moment[0] + (1 - self.first) * slope
                moment[1] = self.second * moment[1] + (1 - self.second) * slope**2
                mean = moment[0] / (1 - self.first**self.steps)
                square = moment[1] / (1 - self.second**self.steps)
                parts.append(part - self.rate * mean / (np.sqrt(square) + self.small))
            updated.append(tuple(parts))
        return updated


def fitted_q(network, batches, all_targets, features, ranks, bounds, gradient_steps, adam):
    """Fitted Q iteration towards order statistics, or towards means if ``ranks`` is None.

    ``all_targets(network, state)`` is (A, B); ``ranks[i][n][a]`` is (rank, number of draws).
    """
    losses = []
    for i, states in enumerate(batches):
        wanted = []
        for n, state in enumerate(states):
            sampled = all_targets(network, state)
            row = []
            for a, draws in enumerate(sampled):
                if ranks is None:
                    row.append(np.mean(draws))
                else:
                    rank, count = ranks[i][n][a]
                    row.append(sorted(draws[:count])[rank - 1])
            wanted.append(np.clip(row, *bounds))
        looks = np.array([features(state) for state in states])
        for step in range(gradient_steps):
            loss, gradient = loss_and_gradient(network, looks, np.array(wanted))
            if step == 0:
                losses.append(loss)
            network = adam.step(network, gradient)
    return network, losses


# --- schedule -------------------------------------------------------------------------------------


def level(k, uncertainty, at_centres, known, delta, floor, ceiling, epsilon):
    """Level α_k of one pair; ``epsilon`` is a fraction of the mean uncertainty at the centres."""
    at_centres = [float(u) for row in at_centres for u in row]
    scale = epsilon * sum(at_centres) / len(at_centres)
    confidence = 1.0 / (uncertainty + scale)
    mean_confidence = sum(1.0 / (u + scale) for u in at_centres) / len(at_centres)
    ratio = 1.0 if known else confidence / mean_confidence
    return min(max(1.0 - delta * ratio * math.log(2 * k) / math.sqrt(k), floor), ceiling)
