"""The risk measures: posterior mean, one posterior draw, quantile and lower-tail CVaR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brmdp._kernels import dirichlet
from brmdp._streams import stream_from_state, stream_state, way_back
from brmdp._validation import as_levels, as_rng
from brmdp.errors import InvalidInputError
from brmdp.posterior.base import Belief
from brmdp.posterior.scenarios import ScenarioPosterior
from brmdp.risk.base import BoundRisk, FixedKernel, levels_by_pair
from brmdp.risk.dirichlet import DirichletMeasure, has_dirichlet_rows
from brmdp.risk.monte_carlo import MonteCarlo
from brmdp.risk.scenarios import ScenarioMeasure

__all__ = ["CVaR", "Mean", "PosteriorSample", "Quantile"]


class Mean:
    """The posterior mean kernel: risk-neutral planning on what is believed on average."""

    def bind(self, belief: Belief) -> BoundRisk:
        """Apply to a belief."""
        return FixedKernel(belief.pattern, belief.mean_entries().copy())

    def __repr__(self) -> str:
        return "Mean()"


class PosteriorSample:
    """One kernel drawn from the posterior for each plan, as in posterior sampling (PSRL).

    Parameters
    ----------
    rng : numpy.random.Generator or seed
        Every plan takes a new draw from it.
    """

    def __init__(self, *, rng: Any = None) -> None:
        self.rng: np.random.Generator = as_rng(rng)

    def bind(self, belief: Belief) -> BoundRisk:
        """Draw one kernel."""
        return FixedKernel(belief.pattern, belief.sample_entries(1, self.rng)[0])

    def memory(self) -> dict[str, NDArray[Any]]:
        """Where its random stream stands."""
        return {"stream": stream_state(self.rng)}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        self.rng = stream_from_state(memory["stream"])

    def checkpoint(self) -> Callable[[], None]:
        """A function that undoes what follows."""
        return way_back(self.rng)

    def __repr__(self) -> str:
        return "PosteriorSample()"


class Quantile:
    """Posterior α-quantile of w·P: low levels are cautious, high levels curious.

    Parameters
    ----------
    alpha : float or (S, A) array in (0, 1)
        Level, for all pairs or for each.
    method : {"exact", "saddlepoint"} or MonteCarlo
        "exact": the quantile itself, to a relative error of 1e-9 in the tail probability. "saddlepoint": a fast
        approximation, not a risk measure; plans are marked *approximate* and carry no certificate. A
        :class:`MonteCarlo`: the paper's order statistic of posterior draws.

    Notes
    -----
    Left quantile inf{z: Pr(w·P ≤ z) ≥ α}. For scenarios it is attained by one of them, with the tolerance
    :data:`brmdp.risk.ATOM_TOLERANCE` at the atoms.
    """

    def __init__(self, alpha: Any, method: Any = "exact") -> None:
        self.alpha = np.array(as_levels(alpha))
        if not (isinstance(method, MonteCarlo) or (isinstance(method, str) and method in ("exact", "saddlepoint"))):
            raise InvalidInputError(f"method must be 'exact', 'saddlepoint' or a brmdp.MonteCarlo; got {method!r}")
        self.method = method

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

    def bind(self, belief: Belief) -> BoundRisk:
        """Apply to a belief."""
        levels = levels_by_pair(self.alpha, belief.pattern)
        if isinstance(self.method, MonteCarlo):
            return self.method.bind(belief, levels)
        if isinstance(belief, ScenarioPosterior):
            if self.method == "saddlepoint":
                raise InvalidInputError("method='saddlepoint' needs Dirichlet rows; scenarios have exact quantiles")
            return ScenarioMeasure(belief, levels, lower_tail=False)
        if has_dirichlet_rows(belief):
            measure = dirichlet.EXACT if self.method == "exact" else dirichlet.SADDLEPOINT
            return DirichletMeasure(belief, measure, levels)
        return FixedKernel(belief.pattern, belief.mean_entries().copy())

    def __repr__(self) -> str:
        alpha = float(self.alpha) if self.alpha.ndim == 0 else f"array{self.alpha.shape}"
        return f"Quantile({alpha}, method={self.method!r})"


class CVaR:
    """Lower-tail conditional value at risk E[w·P | w·P ≤ q_α]: the mean of the worst α of the posterior.

    Parameters
    ----------
    alpha : float or (S, A) array in (0, 1]
        Level; 1 is the posterior mean. Exact, not sampled.
    """

    def __init__(self, alpha: Any) -> None:
        self.alpha = np.array(as_levels(alpha, one_allowed=True))

    def at_level(self, alpha: Any) -> CVaR:
        """The same measure at another level, or levels."""
        return CVaR(alpha)

    def bind(self, belief: Belief) -> BoundRisk:
        """Apply to a belief."""
        levels = levels_by_pair(self.alpha, belief.pattern)
        if isinstance(belief, ScenarioPosterior):
            return ScenarioMeasure(belief, levels, lower_tail=True)
        if has_dirichlet_rows(belief):
            return DirichletMeasure(belief, dirichlet.CVAR, levels)
        return FixedKernel(belief.pattern, belief.mean_entries().copy())

    def __repr__(self) -> str:
        alpha = float(self.alpha) if self.alpha.ndim == 0 else f"array{self.alpha.shape}"
        return f"CVaR({alpha})"
