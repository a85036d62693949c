"""The risk measures: posterior mean, one posterior draw, quantile and lower-tail CVaR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._kernels import dirichlet
from brmdp._streams import stream_from_state, stream_state, stream_checkpoint
from brmdp._validation import FloatArray, as_levels, as_rng
from brmdp.beliefs.base import Belief
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
"""Joint draws from which quantiles and CVaR are taken where a belief offers nothing but draws; for levels outside [0.01, 0.99]
more, so that at least 20 are expected in the smaller tail. One and the same stream, of seed :data:`DRAW_SEED`, begins anew at
every plan, so that a plan can be repeated; for other draws use ``Quantile(alpha, method=MonteCarlo(…, rng=…))``."""

DRAW_SEED = 2048

QuantileMethod: TypeAlias = Literal["exact", "saddlepoint"] | MonteCarlo
"""Ways to take the quantile."""


class Mean:
    """The posterior mean kernel: risk-neutral planning on what is believed on average."""

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply to a belief."""
        require_belief(belief)
        return FixedKernel(belief.pattern, mean_of(belief).copy())

    def __repr__(self) -> str:
        return "Mean()"


class PosteriorSample:
    """One kernel drawn from the posterior for each plan, as in posterior sampling (PSRL).

    The plan is that of the drawn kernel, and says so: its status is "sampled".

    Parameters
    ----------
    rng : numpy.random.Generator or seed
        Every plan takes a new draw from it.
    """

    def __init__(self, *, rng: Any = None) -> None:
        self.rng: np.random.Generator = as_rng(rng)

    def bind(self, belief: Belief) -> RiskOperator:
        """Draw one kernel."""
        require_belief(belief)
        return FixedKernel(belief.pattern, draws_of(belief, 1, self.rng)[0], SAMPLED)

    def memory(self) -> dict[str, NDArray[Any]]:
        """Where its random stream stands."""
        return {"stream": stream_state(self.rng)}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        self.rng = stream_from_state(memory["stream"])

    def checkpoint(self) -> Callable[[], None]:
        """A function that undoes what follows."""
        return stream_checkpoint(self.rng)

    def __repr__(self) -> str:
        return "PosteriorSample()"


class Quantile:
    """Posterior α-quantile of w·P: low levels are cautious, high levels curious.

    Parameters
    ----------
    alpha : float or (S, A) array in (0, 1)
        Level, for all pairs or for each.
    method : {"exact", "saddlepoint"} or MonteCarlo
        "exact": the quantile itself, to a relative error of 1e-9 in the tail probability.
        "saddlepoint": a fast approximation, not a risk measure; plans are marked *approximate* and
        carry no certificate. A :class:`MonteCarlo`: the paper's order statistic of posterior draws.

    Notes
    -----
    Left quantile inf{z: Pr(w·P ≤ z) ≥ α}. For scenarios it is attained by one of them, with the
    tolerance :data:`brmdp.risk.ATOM_TOLERANCE` at the atoms. A belief of one's own that offers
    nothing but draws is planned from :data:`DRAWS` of them: status "sampled".
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

    def at_level(self, alpha: Any) -> Quantile:
        """The same measure at another level, or levels."""
        return Quantile(alpha, self.method)

    def memory(self) -> dict[str, NDArray[Any]]:
        """What the method remembers from plan to plan."""
        return self.method.memory() if isinstance(self.method, MonteCarlo) else {}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        if isinstance(self.method, MonteCarlo):
            self.method.restore(memory)

    def checkpoint(self) -> Callable[[], None] | None:
        """A function that undoes what follows, if the method remembers anything."""
        return self.method.checkpoint() if isinstance(self.method, MonteCarlo) else None

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply to a belief."""
        require_belief(belief)
        levels = levels_by_pair(self.alpha, belief.pattern)
        if isinstance(self.method, MonteCarlo):
            return self.method.bind(belief, levels)
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
    """Lower-tail conditional value at risk E[w·P | w·P ≤ q_α].

    The mean of the worst α of the posterior.

    Parameters
    ----------
    alpha : float or (S, A) array in (0, 1]
        Level; 1 is the posterior mean. Exact, not sampled, except for a belief of one's own that
        offers nothing but draws (see :class:`Quantile`).
    """

    def __init__(self, alpha: Any) -> None:
        self.alpha = np.array(as_levels(alpha, one_allowed=True))

    def at_level(self, alpha: Any) -> CVaR:
        """The same measure at another level, or levels."""
        return CVaR(alpha)

    def bind(self, belief: Belief) -> RiskOperator:
        """Apply to a belief."""
        require_belief(belief)
        levels = levels_by_pair(self.alpha, belief.pattern)
        if has_dirichlet_rows(belief):
            return DirichletMeasure(belief, dirichlet.CVAR, levels)
        return _without_dirichlet_rows(belief, levels, lower_tail=True)

    def __repr__(self) -> str:
        alpha = float(self.alpha) if self.alpha.ndim == 0 else f"array{self.alpha.shape}"
        return f"CVaR({alpha})"


def has_exact_quantiles(belief: Belief) -> bool:
    """Whether quantiles of the belief are computed, not estimated from draws."""
    return isinstance(belief, ScenarioBelief) or has_dirichlet_rows(belief) or has_known_kernel(belief)


def _without_dirichlet_rows(
    belief: Belief, levels: FloatArray, *, lower_tail: bool
) -> RiskOperator:
    """Quantile or lower-tail mean over scenarios, of a known kernel, or over draws."""
    pattern = belief.pattern
    if isinstance(belief, ScenarioBelief):
        return ScenarioMeasure(pattern, *scenarios_of(belief), levels, lower_tail=lower_tail)
    if has_known_kernel(belief):
        return FixedKernel(pattern, mean_of(belief).copy())
    used = levels[pattern.pairs]
    least = float(used.min() if lower_tail else np.minimum(used, 1.0 - used).min())
    n = max(DRAWS, math.ceil(20.0 / least))
    if n * pattern.n_transitions > LARGEST_SAMPLE:
        raise InvalidInputError(
            f"alpha={least:.3g} of a {type(belief).__name__} needs {n} draws of "
            f"{pattern.n_transitions} transitions, more than {LARGEST_SAMPLE} numbers; use "
            "Quantile(alpha, method=brmdp.MonteCarlo(…)), or give the belief concentration_entries "
            "and concentration_offsets (Dirichlet rows)"
        )
    draws = draws_of(belief, n, np.random.default_rng(DRAW_SEED))
    return ScenarioMeasure(
        pattern, draws, np.full(n, 1.0 / n), levels, lower_tail=lower_tail, basis=SAMPLED
    )
