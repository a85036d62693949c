"""The exact law of the number of tables of a Chinese restaurant."""

import numpy as np
from scipy.special import digamma, loggamma, polygamma


def stirling_law(n, weight):
    """By unsigned Stirling numbers of the first kind: P(t) ∝ |s(n, t)| θ^t, t = 0 … n."""
    numbers = [1]
    for m in range(n):
        shifted = [0, *numbers]
        numbers = [a + m * b for a, b in zip(shifted, [*numbers, 0], strict=True)]
    logs = np.array([np.log(float(x)) if x else -np.inf for x in numbers])
    logs = logs + np.arange(n + 1) * np.log(weight)
    law = np.exp(logs - logs.max())
    return law / law.sum()


def convolved_law(n, weight):
    """Seat by seat."""
    law = np.ones(1)
    for seat in range(n):
        chance = weight / (weight + seat)
        law = np.append(law * (1 - chance), 0.0) + np.append(0.0, law * chance)
    return law


def transformed_law(n, weight):
    """From E z^t = Γ(θz + n) Γ(θ)/(Γ(θz) Γ(θ + n)), by Fourier transforms.

    Returns
    -------
    first : int
    law : array
        P(t), t = first, first + 1, …; all others together are less than 1e-15.
    """
    mean = weight * (digamma(weight + n) - digamma(weight))
    variance = mean + weight**2 * (polygamma(1, weight + n) - polygamma(1, weight))
    size = int(2 ** np.ceil(np.log2(40.0 * np.sqrt(max(variance, 0.0)) + 120.0)))
    first = max(1, int(mean) - size // 2)
    angles = 2.0 * np.pi * np.arange(size) / size
    z = np.exp(1j * angles)
    # the first customer opens a table for certain
    logs = loggamma(weight * z + n) - loggamma(weight * z + 1.0)
    logs -= logs[0]
    law = np.fft.fft(np.exp(logs - 1j * angles * (first - 1))).real / size
    return first, np.maximum(law, 0.0)
