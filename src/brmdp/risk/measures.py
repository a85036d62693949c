"""The risk measures: posterior mean, one posterior draw, quantile and lower-tail CVaR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._kernels import dirichlet
from brmdp._streams import stream_checkpoint, stream_from_state, stream_state
from brmdp._validation import FloatArray, Seed, as_levels, as_rng
from brmdp.beliefs.base import Belief
from brmdp.beliefs.censored import CensoredDisturbanceBelief
from brmdp.beliefs.checked import draws_of, has_known_kernel, mean_of, require_belief, scenarios_of
from brmdp.beliefs.scenarios import ScenarioBelief
from brmdp.errors import InvalidInputError
from brmdp.risk.base import SAMPLED, FixedKernel, RiskOperator, levels_by_pair
from brmdp.risk.dirichlet import DirichletMeasure, has_dirichlet_rows
from brmdp.risk.monte_carlo import LARGEST_SAMPLE, MonteCarlo
from brmdp.risk.scenarios import ScenarioMeasure

__all__ = [
    "DRAWS",
    "DRAW_SEED",
    "CVaR",
    "Mean",
    "PosteriorSample",
    "Quantile",
    "has_exact_quantiles",
]

DRAWS = 2048
"""Number of joint draws behind quantiles and CVaR if a belief offers nothing but draws.

Levels outside [0.01, 0.99] take more, so that at least 20 draws are expected in the smaller tail.
Every plan starts the same random stream again, with seed :data:`DRAW_SEED`, so plans are
repeatable. For other draws use ``Quantile(alpha, method=MonteCarlo(…, rng=…))``.
"""

DRAW_SEED = 2048

QuantileMethod: TypeAlias = Literal["exact", "saddlepoint"] | MonteCarlo
"""Ways to compute a quantile."""


class Mean:
    """The expectation under the posterior mean kernel: risk-neutral planning.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=brmdp.Mean()).values.round(6)
    array([4.5, 5.5])
    """

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the measure to a belief."""
        require_belief(belief)
        return FixedKernel(belief.pattern, mean_of(belief).copy())

    def __repr__(self) -> str:
        return "Mean()"


class PosteriorSample:
    """The expectation under one posterior draw per plan, as in posterior sampling (PSRL).

    The plan is optimal for the drawn kernel, and its status says so: "sampled".

    Parameters
    ----------
    rng : numpy.random.Generator or seed, optional
        Random stream that every plan takes a new draw from.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=brmdp.PosteriorSample(rng=0)).status
    'sampled'
    """

    def __init__(self, *, rng: Seed = None) -> None:
        self.rng: np.random.Generator = as_rng(rng)

    def bind(self, belief: Belief) -> RiskOperator:
        """Draw one kernel."""
        require_belief(belief)
        return FixedKernel(belief.pattern, draws_of(belief, 1, self.rng)[0], SAMPLED)

    def memory(self) -> dict[str, NDArray[Any]]:
        """State of the random stream, as a named array."""
        return {"stream": stream_state(self.rng)}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Continue from a state that :meth:`memory` returned."""
        self.rng = stream_from_state(memory["stream"])

    def checkpoint(self) -> Callable[[], None]:
        """A function that resets the random stream to its current state."""
        return stream_checkpoint(self.rng)

    def __repr__(self) -> str:
        return "PosteriorSample()"


class Quantile:
    """Posterior α-quantile of w·P: low levels are cautious, high levels explore.

    Parameters
    ----------
    alpha : float or (S, A) array in (0, 1)
        One level for all pairs, or one for each.
    method : {"exact", "saddlepoint"} or MonteCarlo
        "exact": the quantile itself, to a relative error of 1e-9 in the tail probability.
        "saddlepoint": a fast approximation that is not itself a risk measure; plans are marked
        *approximate* and have no error bound. A :class:`MonteCarlo`: the paper's order statistic of
        posterior draws.

    Notes
    -----
    This is the left quantile inf{z: Pr(w·P ≤ z) ≥ α}. For scenarios it is the value of one of them:
    the lowest whose cumulative weight reaches α − :data:`brmdp.risk.ATOM_TOLERANCE`. For a belief
    that offers nothing but draws (a custom one, or a :class:`brmdp.CensoredDisturbanceBelief` that
    has learned from "at least"), the quantile is computed from max{2,048, ⌈20/tail⌉} draws, where
    tail is the smallest min{α, 1 − α} of any pair, and the plan's status is "sampled".

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> for alpha in (0.1, 0.5, 0.9):
    ...     plan = brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=brmdp.Quantile(alpha))
    ...     print(alpha, plan.values.round(6))
    0.1 [0.9 1.9]
    0.5 [4.5 5.5]
    0.9 [8.1 9.1]
    """

    def __init__(self, alpha: ArrayLike, method: QuantileMethod = "exact") -> None:
        self.alpha = np.array(as_levels(alpha))
        if not (
            isinstance(method, MonteCarlo)
            or (isinstance(method, str) and method in ("exact", "saddlepoint"))
        ):
            raise InvalidInputError(
                f"method must be 'exact', 'saddlepoint' or a brmdp.MonteCarlo; got {method!r}"
            )
        self.method: QuantileMethod = method

    def at_level(self, alpha: ArrayLike) -> Quantile:
        """The same measure at another level or levels."""
        return Quantile(alpha, self.method)

    def memory(self) -> dict[str, NDArray[Any]]:
        """What the method remembers from plan to plan, as named arrays."""
        return self.method.memory() if isinstance(self.method, MonteCarlo) else {}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Continue from a state that :meth:`memory` returned."""
        if isinstance(self.method, MonteCarlo):
            self.method.restore(memory)

    def checkpoint(self) -> Callable[[], None] | None:
        """A function that resets the method to its current state; None if it has no memory."""
        return self.method.checkpoint() if isinstance(self.method, MonteCarlo) else None

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the measure to a belief."""
        require_belief(belief)
        levels = levels_by_pair(self.alpha, belief.pattern)
        if isinstance(self.method, MonteCarlo):
            return self.method.bind(belief, levels)
        if self.method == "saddlepoint" and isinstance(belief, CensoredDisturbanceBelief):
            # refused from the first plan on, not in the middle of a run
            raise InvalidInputError(
                "method='saddlepoint' needs Dirichlet rows, which a CensoredDisturbanceBelief "
                "loses with the first 'at least'; use method='exact', which then takes draws"
            )
        if has_dirichlet_rows(belief):
            measure = dirichlet.EXACT if self.method == "exact" else dirichlet.SADDLEPOINT
            return DirichletMeasure(belief, measure, levels)
        if self.method == "saddlepoint" and not has_known_kernel(belief):
            raise InvalidInputError(
                f"method='saddlepoint' needs Dirichlet rows; got a {type(belief).__name__}"
            )
        return _without_dirichlet_rows(belief, levels, lower_tail=False)

    def __repr__(self) -> str:
        alpha = float(self.alpha) if self.alpha.ndim == 0 else f"array{self.alpha.shape}"
        return f"Quantile({alpha}, method={self.method!r})"


class CVaR:
    """Lower-tail conditional value at risk E[w·P | w·P ≤ q_α], the mean of the worst α.

    It is exact, not sampled, except for a custom belief that offers nothing but draws (see
    :class:`Quantile`; here the tail is α).

    Parameters
    ----------
    alpha : float or (S, A) array in (0, 1]
        One level for all pairs, or one for each; 1 gives the posterior mean.

    Examples
    --------
    >>> import brmdp
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> brmdp.plan(belief, [[0.0], [1.0]], 0.9, risk=brmdp.CVaR(0.2)).values.round(6)
    array([0.9, 1.9])
    """

    def __init__(self, alpha: ArrayLike) -> None:
        self.alpha = np.array(as_levels(alpha, one_allowed=True))

    def at_level(self, alpha: ArrayLike) -> CVaR:
        """The same measure at another level or levels."""
        return CVaR(alpha)

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply the measure to a belief."""
        require_belief(belief)
        levels = levels_by_pair(self.alpha, belief.pattern)
        if has_dirichlet_rows(belief):
            return DirichletMeasure(belief, dirichlet.CVAR, levels)
        return _without_dirichlet_rows(belief, levels, lower_tail=True)

    def __repr__(self) -> str:
        alpha = float(self.alpha) if self.alpha.ndim == 0 else f"array{self.alpha.shape}"
        return f"CVaR({alpha})"


def has_exact_quantiles(belief: Belief) -> bool:
    """Whether quantiles of the belief are computed exactly, not estimated from draws."""
    return (
        isinstance(belief, ScenarioBelief) or has_dirichlet_rows(belief) or has_known_kernel(belief)
    )


def _without_dirichlet_rows(
    belief: Belief, levels: FloatArray, *, lower_tail: bool
) -> RiskOperator:
    """Quantile or lower-tail mean of scenarios, of a known kernel, or of draws."""
    pattern = belief.pattern
    if isinstance(belief, ScenarioBelief):
        return ScenarioMeasure(pattern, *scenarios_of(belief), levels, lower_tail=lower_tail)
    if has_known_kernel(belief):
        return FixedKernel(pattern, mean_of(belief).copy())
    used = levels[pattern.pairs]
    tails = used if lower_tail else np.minimum(used, 1.0 - used)
    n = max(DRAWS, math.ceil(20.0 / float(tails.min())))
    if n * pattern.n_transitions > LARGEST_SAMPLE:
        extreme = float(used[tails.argmin()])
        raise InvalidInputError(
            f"alpha={extreme} is too {'small' if extreme < 0.5 else 'close to 1'} for a "
            f"{type(belief).__name__}, which offers only draws: {n:,} draws of "
            f"{pattern.n_transitions:,} transitions are more than {LARGEST_SAMPLE:,} numbers. Use "
            "Quantile(alpha, method=brmdp.MonteCarlo(…)), or give the belief concentration_entries "
            "and concentration_offsets if its rows are Dirichlet"
        )
    draws = draws_of(belief, n, np.random.default_rng(DRAW_SEED))
    return ScenarioMeasure(
        pattern, draws, np.full(n, 1.0 / n), levels, lower_tail=lower_tail, basis=SAMPLED
    )
