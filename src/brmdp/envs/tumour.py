"""A tumour and a drug: simplified from a model of low-grade glioma.

Ribba and others (2012) model a tumour of three kinds of tissue under chemotherapy; Gottesman and
others (2020) made a decision problem of it, which the robust literature calls *cancer*. Here the
tissue is one quantity, sizes and concentrations lie on grids, and the law is computed. So numbers
published for *cancer* are not comparable.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc

from brmdp._validation import FloatArray, as_positive_int
from brmdp.envs.rendering import GridPainter
from brmdp.envs.tabular_env import RenderMode, TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.mdp import TabularMDP

__all__ = ["TumourEnv", "tumour"]

DECAY, GROWTH, EFFECT = 0.24, 0.121, 0.729
"""Elimination of the drug k_DE, growth λ and efficacy γ of Ribba and others, per month."""

LARGEST, FIRST = 100.0, 48.33
"""Largest size of the tumour, and that of the patient at first, in millimetres."""

RATIO, NOISE = 1.5, 0.2
"""Ratio of neighbouring sizes, and the relative standard deviation of growth."""

SMALLEST = 1e-9
"""Less likely transitions are left out."""


def tumour(
    sizes: int = 10, concentrations: int = 5, *, dose_penalty: float = 1.0, discount: float = 0.9
) -> TabularMDP:
    """A tumour that grows logistically and shrinks with the concentration of a drug.

    State i·concentrations + c: size x_i = 100·1.5^(i − sizes + 1), and the concentration C on an
    even grid from 0 to (1 − k)/k, k = 0.24, which a dose in every month would reach. Action 1 gives
    a dose: C' = (1 − k)(C + dose), spread over the two nearest concentrations so that the mean is
    kept. Then x' = x·(1 + 0.121·(1 − x/100) − 0.729·k·C')·G with G gamma distributed, mean 1 and
    standard deviation 0.2, moved to the nearest size by ratio. The reward is x − x' − penalty·C'.

    Parameters
    ----------
    sizes, concentrations : int
        Size of the grids, at least 2 each.
    dose_penalty : float
        Price of the drug's presence for a month.
    discount : float in [0, 1]
        γ.

    Returns
    -------
    TabularMDP

    Examples
    --------
    >>> import brmdp
    >>> patient = brmdp.envs.tumour()
    >>> patient.n_states, patient.n_actions, patient.start
    (50, 2, 35)
    """
    n_sizes = as_positive_int(sizes, "sizes")
    n_levels = as_positive_int(concentrations, "concentrations")
    if not (2 <= n_sizes <= 50 and 2 <= n_levels <= 50):
        raise InvalidInputError(
            f"sizes and concentrations must lie between 2 and 50; got {n_sizes} and {n_levels}"
        )
    if not (isinstance(dose_penalty, int | float) and 0.0 <= dose_penalty < np.inf):
        raise InvalidInputError(
            f"dose_penalty must be a finite number, not negative; got {dose_penalty!r}"
        )
    size = LARGEST * RATIO ** np.arange(1.0 - n_sizes, 1.0)
    level = np.linspace(0.0, (1.0 - DECAY) / DECAY, n_levels)
    n = n_sizes * n_levels
    kernel, rewards = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    for i in range(n_sizes):
        for c in range(n_levels):
            for dose in (0, 1):
                after = (1.0 - DECAY) * (level[c] + dose)
                for reached, share in _shared(after, level):
                    columns = reached + n_levels * np.arange(n_sizes)
                    row = share * _sizes_after(size, i, level[reached])
                    kernel[i * n_levels + c, dose, columns] += row
                    rewards[i * n_levels + c, dose, columns] = (
                        size[i] - size - dose_penalty * level[reached]
                    )
    kernel[kernel < SMALLEST] = 0.0
    kernel /= kernel.sum(axis=2, keepdims=True)
    first = int(np.abs(np.log(size / FIRST)).argmin()) * n_levels
    return TabularMDP(kernel, rewards, discount, start=first, action_names=("wait", "dose"))


def _shared(value: float, grid: FloatArray) -> list[tuple[int, float]]:
    """The grid points around a value, with shares that keep its mean."""
    position = min(value / grid[1], grid.size - 1.0)
    below = min(int(position), grid.size - 2)
    above = position - below
    return [(k, share) for k, share in ((below, 1.0 - above), (below + 1, above)) if share > 0.0]


def _sizes_after(size: FloatArray, i: int, concentration: float) -> FloatArray:
    """Probabilities of the next size."""
    growth = 1.0 + GROWTH * (1.0 - size[i] / LARGEST) - EFFECT * DECAY * concentration
    middles = np.sqrt(size[:-1] * size[1:])
    shape = 1.0 / NOISE**2
    below = gammainc(shape, shape * middles / (size[i] * growth))
    after: FloatArray = np.diff(below, prepend=0.0, append=1.0)
    return after


class TumourEnv(TabularEnv):
    """The tumour as an environment.

    Drawn with one row per size, the smallest first, and one column per concentration; the patient's
    first state is S.

    Parameters
    ----------
    sizes, concentrations, dose_penalty, discount
        As in :func:`brmdp.envs.tumour`.
    render_mode : {None, "ansi", "rgb_array"}
        As in :class:`TabularEnv`.

    Examples
    --------
    >>> import brmdp
    >>> env = brmdp.envs.TumourEnv(3, 2, render_mode="ansi")
    >>> state, _ = env.reset(seed=1)
    >>> env.render().splitlines()[:2]
    ['state 0', '[S] . ']
    """

    def __init__(
        self,
        sizes: int = 10,
        concentrations: int = 5,
        *,
        dose_penalty: float = 1.0,
        discount: float = 0.9,
        render_mode: RenderMode | None = None,
    ) -> None:
        mdp = tumour(sizes, concentrations, dose_penalty=dose_penalty, discount=discount)
        cells = ["."] * mdp.n_states
        cells[int(np.asarray(mdp.start))] = "S"
        letters, width = "".join(cells), concentrations
        rows = tuple(letters[begin : begin + width] for begin in range(0, mdp.n_states, width))
        super().__init__(mdp, render_mode, GridPainter(rows))
