"""Tuning on one's own belief: which agent does best in the worlds that one believes in.

Worlds are drawn from the belief, candidates act in them, all with the same luck, and their returns
are compared world by world. Nothing but the belief is used, so tuning before the first step costs
no data. The answer is as good as the belief: a choice that is best on average over the worlds of a
wrong prior may be bad in the true one.

**The race.** Worlds are drawn in stages, each as many as all before it. After a stage, a candidate
is stopped if it is worse than another one beyond doubt. With C candidates and at most k stages,
every comparison has the confidence 1 − (1 − ``confidence``)/m:

- for the mean return, the t interval of the paired difference decides, and m = k·C(C − 1)/2;
- for a quantile of the return, each candidate has an interval between order statistics, which
  needs no assumption but is not paired, and m = k·C.

By the union bound, all intervals of a race then hold jointly with probability ``confidence``, as
far as the t interval holds for the mean; so the best candidate is stopped with at most the
remaining probability, whatever the stage and whoever leads. With ``halve_from``, the lower half of
those left is set aside after every later stage, to save time: that half is not worse beyond doubt,
its intervals say by how much it may be better, and nothing limits how often the best is among it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from brmdp._streams import independent_streams
from brmdp._validation import (
    FloatArray,
    Seed,
    as_discount,
    as_level,
    as_number,
    as_positive_int,
)
from brmdp.agents import EveryStep, fixed_quantile, posterior_mean
from brmdp.beliefs.base import Belief
from brmdp.envs import TabularEnv
from brmdp.errors import InvalidInputError
from brmdp.runs.catalogue import named_agent
from brmdp.simulation import Actor, Diagnostics, World, draw_world, simulate
from brmdp.simulation.actor import require_actor

__all__ = ["Entrant", "Make", "Tuning", "levels", "tune"]

Make: TypeAlias = Callable[..., Actor]
"""Makes an agent as the presets do: ``make(belief, rewards, discount, rng=…)``."""

Candidate: TypeAlias = Make | str | Mapping[str, Any]
"""A function that makes an agent; or its name in sweeps, or a table with that name."""

FIRST = 20
"""Worlds of the first stage."""


def levels(*alphas: float) -> dict[str, Make]:
    """Candidates that plan at every step: at each of these levels, and for the posterior mean.

    Examples
    --------
    >>> from brmdp.runs import levels
    >>> list(levels(0.3, 0.7))
    ['posterior mean', 'level 0.3', 'level 0.7']
    """
    found: dict[str, Make] = {"posterior mean": partial(posterior_mean, restart=EveryStep())}
    for alpha in alphas:
        level = as_level(alpha)
        found[f"level {level:g}"] = partial(fixed_quantile, alpha=level, restart=EveryStep())
    return found


@dataclass(frozen=True, eq=False)
class Entrant:
    """One candidate of a race.

    Attributes
    ----------
    name : str
    returns : (n,) array
        Its discounted return in each world it was tried in; world i is the same for all.
    value : float
        Mean or quantile of these returns.
    difference : float
        Value of the choice minus that of this candidate, over the worlds that both were tried in.
    low, high : float
        Interval of that difference; all of a race hold jointly.
    stopped_by : str
        The candidate that was better beyond doubt when this one was stopped; "" if it was not.
    set_aside : bool
        Whether it was in the lower half after a stage (``halve_from``), which is no proof.

    Examples
    --------
    >>> import brmdp
    >>> belief, river = brmdp.DirichletBelief.uniform(3, 2), brmdp.envs.riverswim(3)
    >>> found = brmdp.tune(belief, river.rewards, 0.9, 20, worlds=20, rng=1)
    >>> found.entrants[0].name, found.entrants[0].returns.shape
    ('posterior mean', (20,))
    """

    name: str
    returns: FloatArray
    value: float
    difference: float
    low: float
    high: float
    stopped_by: str = ""
    set_aside: bool = False

    @property
    def worlds(self) -> int:
        """Number of worlds it was tried in."""
        return self.returns.size


@dataclass(frozen=True, eq=False)
class Tuning:
    """The choice of :func:`brmdp.tune`, with its evidence.

    Attributes
    ----------
    choice : str
        The candidate with the best value among those that stayed to the end.
    entrants : tuple of Entrant
        All candidates, in the order given.
    objective : "mean" or float
    confidence : float
        Probability with which all intervals hold jointly.
    make : function
        Makes the chosen agent: ``make(belief, rewards, discount, rng=…)``.
    belief, rewards, discount, steps
        What was tuned on: a copy of the belief, and nothing else about the world.

    Examples
    --------
    >>> import brmdp
    >>> belief, river = brmdp.DirichletBelief.uniform(3, 2), brmdp.envs.riverswim(3)
    >>> found = brmdp.tune(belief, river.rewards, 0.9, 20, worlds=20, rng=1)
    >>> agent = found.agent(rng=2)
    >>> agent.act(0) in (0, 1)
    True
    """

    choice: str
    entrants: tuple[Entrant, ...]
    objective: Literal["mean"] | float
    confidence: float
    make: Make
    belief: Belief
    rewards: Any
    discount: float
    steps: int

    def agent(self, *, rng: Seed = None) -> Actor:
        """The chosen agent, with the belief, rewards and discount that it was chosen for.

        Examples
        --------
        >>> import brmdp
        >>> belief, river = brmdp.DirichletBelief.uniform(3, 2), brmdp.envs.riverswim(3)
        >>> race = brmdp.tune(belief, river.rewards, 0.9, 20, worlds=20, rng=1)
        >>> race.agent(rng=2).act(0) in (0, 1)
        True
        """
        return self.make(self.belief, self.rewards, self.discount, rng=rng)

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Candidates that may be as good as the choice: their interval reaches zero."""
        return tuple(
            one.name for one in self.entrants if one.name != self.choice and not one.low > 0.0
        )

    def __str__(self) -> str:
        what = "mean return" if self.objective == "mean" else f"{self.objective:g}-quantile"
        width = max(len(one.name) for one in self.entrants)
        lines = [
            f"{self.choice} has the best {what} of {self.steps} steps, γ = {self.discount:g}, in "
            "worlds drawn from the belief alone"
        ]
        for one in self.entrants:
            line = f"  {one.name:{width}}  {one.value:.4g} in {one.worlds} worlds"
            if one.name != self.choice:
                line += f", {one.difference:.3g} less [{one.low:.3g}, {one.high:.3g}]"
            if one.stopped_by:
                line += f", stopped: worse than {one.stopped_by}"
            if one.set_aside:
                line += ", set aside: in the lower half"
            lines.append(line)
        if self.unresolved:
            lines.append(f"not told apart from the choice: {', '.join(self.unresolved)}")
        return "\n".join(lines)


def tune(
    belief: Belief,
    rewards: Any,
    discount: float,
    steps: int,
    *,
    candidates: Mapping[str, Candidate] | None = None,
    objective: Literal["mean"] | float = "mean",
    start: ArrayLike = 0,
    worlds: int = 320,
    halve_from: int | None = None,
    confidence: float = 0.95,
    rng: Seed = None,
) -> Tuning:
    """Choose an agent by how it does in worlds drawn from a belief.

    Parameters
    ----------
    belief : DirichletBelief, ScenarioBelief or another belief about a kernel
        A prior, or today's posterior. Worlds are drawn from it, and every agent begins with it.
    rewards : (S, A) or (S, A, S) array, or sparse (S·A, S)
        Known rewards.
    discount : float in [0, 1)
        γ.
    steps : int
        Steps in every world. What is compared is the discounted return Σ γ^t r_t over them.
    candidates : mapping, optional
        What to race, each under a name of your choice. A candidate is a function that makes an
        agent as the presets do, ``make(belief, rewards, discount, rng=…)``; or an agent's name in a
        sweep, such as ``"posterior-mean"``; or that name with parameters, such as
        ``{"name": "beb", "beta": 2.0}``, as in an ``[[agent]]`` table of a sweep. By default the
        posterior mean and the levels 0.3, 0.5, 0.6, 0.7, 0.8 and 0.9, all with a plan for every
        step (:func:`brmdp.runs.levels`).
    objective : "mean" or float in (0, 1)
        What to maximise: the mean of the return, or a quantile of it, such as 0.1.
    start : int or (S,) probabilities
        Where worlds begin: today's state if the belief is today's posterior.
    worlds : int
        The most worlds to draw, at least 4.
    halve_from : int, optional
        From this number of worlds on, set the lower half aside after every stage (20, 40, 80, …
        worlds), until two are left. It saves time, and the best may be lost: ``unresolved`` tells.
    confidence : float in (0, 1)
        Probability with which all comparisons hold jointly.
    rng : numpy.random.Generator or seed, optional
        Source of the worlds, of their luck and of the agents' streams.

    Returns
    -------
    Tuning
        The choice and its evidence. A choice is always made; ``unresolved`` names the candidates
        that it was not told apart from.

    Notes
    -----
    The value of the choice is the largest of several, so it is somewhat too high; its differences
    from the others have intervals that allow for all comparisons.

    A quantile needs many worlds before any candidate can be stopped: with 320 worlds and seven
    candidates, the interval of a 0.1-quantile reaches from the 5 % to the 16 % point of the
    returns.

    Examples
    --------
    >>> import brmdp
    >>> belief, river = brmdp.DirichletBelief.uniform(3, 2), brmdp.envs.riverswim(3)
    >>> found = brmdp.tune(
    ...     belief, river.rewards, 0.9, 30, candidates=brmdp.runs.levels(0.1, 0.6),
    ...     worlds=40, rng=1,
    ... )
    >>> found.choice in ("posterior mean", "level 0.1", "level 0.6")
    True

    Agents by name, as in sweeps:

    >>> found = brmdp.tune(
    ...     belief, river.rewards, 0.9, 30, worlds=20, rng=1,
    ...     candidates={"mean": "posterior-mean", "BEB, 2": {"name": "beb", "beta": 2.0}},
    ... )
    >>> [one.name for one in found.entrants]
    ['mean', 'BEB, 2']
    """
    discount = as_discount(discount)
    steps = as_positive_int(steps, "steps")
    worlds = as_positive_int(worlds, "worlds")
    if worlds < 4:
        raise InvalidInputError(f"worlds must be at least 4; got {worlds}")
    if isinstance(objective, str) and objective != "mean":
        raise InvalidInputError(f"objective must be 'mean' or a level in (0, 1); got {objective!r}")
    aim: Literal["mean"] | float = (
        "mean" if isinstance(objective, str) else as_level(objective, "objective")
    )
    confidence = as_number(confidence, "confidence", "a number in (0, 1)")
    if not 0.0 < confidence < 1.0:
        raise InvalidInputError(f"confidence must lie in (0, 1); got {confidence!r}")
    if halve_from is not None:
        halve_from = as_positive_int(halve_from, "halve_from")
    if candidates is None:
        candidates = levels(0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
    made = _makers(candidates)
    kept = copy.deepcopy(belief)  # as it is now, whatever is observed later
    draw_world(belief, rewards, discount, start=start, rng=0)  # what is wrong here is named first
    for name, given in candidates.items():
        if not callable(given):  # before any time is spent on others
            made[name](belief, rewards, discount, rng=0)
    weights = discount ** np.arange(steps)
    sizes = _stages(worlds)
    race = _Race(list(made), aim, confidence, len(sizes))
    streams = independent_streams(rng, 3)
    for size in sizes:
        for _ in range(size - race.worlds):
            drawn = draw_world(belief, rewards, discount, start=start, rng=streams[0])
            luck, agents = (int(stream.integers(2**63)) for stream in streams[1:])
            returns = {}
            for name in race.alive:
                agent = made[name](belief, rewards, discount, rng=agents)
                require_actor(agent)
                world = World(TabularEnv(drawn), discount)
                history = simulate(agent, world, steps, seed=luck, diagnostics=UNMEASURED)
                returns[name] = float(history.reward @ weights)
            race.add(returns)
        race.stop_losers()
        if len(race.alive) == 1:
            break
        if halve_from is not None and halve_from <= race.worlds < worlds:
            race.halve()
    choice = race.leader()
    asked = (kept, rewards, discount, steps)
    return Tuning(choice, race.entrants(choice), aim, confidence, made[choice], *asked)


def _makers(candidates: Any) -> dict[str, Make]:
    """All candidates as functions that make agents."""
    if not (
        isinstance(candidates, Mapping)
        and len(candidates) >= 2
        and all(isinstance(name, str) for name in candidates)
    ):
        raise InvalidInputError(
            "candidates must map at least two names to agents: functions that make them, or what "
            f"sweeps call them; got {candidates!r:.80}"
        )
    return {name: _maker(name, given) for name, given in candidates.items()}


def _maker(name: str, given: Candidate) -> Make:
    if callable(given):
        return given
    table = {"name": given} if isinstance(given, str) else given
    if not (isinstance(table, Mapping) and isinstance(table.get("name"), str)):
        raise InvalidInputError(
            f"candidates[{name!r}] must be a function that makes an agent, the name of one in "
            f"sweeps, or a table with that name; got {given!r:.80}"
        )
    parameters = {key: value for key, value in table.items() if key != "name"}

    def make(belief: Belief, rewards: Any, discount: float, *, rng: Seed = None) -> Actor:
        try:
            return named_agent(table["name"], parameters, belief, rewards, discount, rng=rng)
        except InvalidInputError as error:
            raise InvalidInputError(f"candidates[{name!r}]: {error}") from error

    return make


UNMEASURED = Diagnostics(true_regret=False)


def _stages(worlds: int) -> list[int]:
    """How many worlds there are after each stage: 20, 40, 80, … up to ``worlds``."""
    sizes = []
    size = min(FIRST, worlds)
    while size < worlds:
        sizes.append(size)
        size *= 2
    return [*sizes, worlds]


class _Race:
    """Returns so far, and who is still in the race."""

    def __init__(
        self, names: list[str], objective: Literal["mean"] | float, confidence: float, stages: int
    ) -> None:
        self.objective = objective
        self.alive = list(names)
        self.worlds = 0
        self.returns: dict[str, list[float]] = {name: [] for name in names}
        self.stopped_by = dict.fromkeys(names, "")
        self.set_aside: set[str] = set()
        count = len(names)
        intervals = count * (count - 1) // 2 if objective == "mean" else count
        self.error = (1.0 - confidence) / (stages * intervals)

    def add(self, returns: Mapping[str, float]) -> None:
        """The returns of all that are alive in one more world."""
        self.worlds += 1
        for name, found in returns.items():
            self.returns[name].append(found)

    def value(self, name: str, worlds: int) -> float:
        """Mean or quantile of the returns in the first ``worlds`` worlds."""
        found = np.array(self.returns[name][:worlds])
        if self.objective == "mean":
            return float(found.mean())
        return float(np.sort(found)[max(math.ceil(self.objective * worlds - 1e-9), 1) - 1])

    def difference(self, first: str, second: str) -> tuple[float, float, float]:
        """Value of ``first`` minus that of ``second`` in their common worlds, and its interval."""
        worlds = min(len(self.returns[first]), len(self.returns[second]))
        between = self.value(first, worlds) - self.value(second, worlds)
        if first == second:
            return 0.0, 0.0, 0.0
        if self.objective == "mean":
            paired = np.subtract(self.returns[first][:worlds], self.returns[second][:worlds])
            spread = float(paired.std(ddof=1)) / math.sqrt(worlds)
            reach = _t_quantile(worlds - 1, 1.0 - 0.5 * self.error) * spread
            return between, between - reach, between + reach
        low, high = self._ends(first, worlds)
        least, most = self._ends(second, worlds)
        # two infinite ends say nothing
        return between, low - most, high - least

    def _ends(self, name: str, worlds: int) -> tuple[float, float]:
        """Interval of a quantile between two order statistics, by the binomial distribution."""
        from scipy.special import bdtr  # scipy.stats takes a second to import

        assert self.objective != "mean"
        ordered = np.sort(self.returns[name][:worlds])
        below = bdtr(np.arange(worlds), worlds, self.objective)  # Pr(at most k returns below)
        half = 0.5 * self.error
        ranks_low = np.flatnonzero(below <= half)
        ranks_high = np.flatnonzero(below >= 1.0 - half)
        low = float(ordered[ranks_low[-1]]) if ranks_low.size else -math.inf
        high = float(ordered[ranks_high[0]]) if ranks_high.size else math.inf
        return low, high

    def stop_losers(self) -> None:
        """Stop whoever is worse than somebody else beyond doubt."""
        for name in list(self.alive):
            rivals = [other for other in self.alive if other != name]
            better = [other for other in rivals if self.difference(other, name)[1] > 0.0]
            if better:
                self.stopped_by[name] = max(better, key=lambda one: self.value(one, self.worlds))
                self.alive.remove(name)

    def halve(self) -> None:
        """Set the lower half aside; two stay at least."""
        ranked = sorted(self.alive, key=lambda name: -self.value(name, self.worlds))
        self.set_aside.update(ranked[max(2, -(-len(ranked) // 2)) :])
        self.alive = [name for name in self.alive if name not in self.set_aside]

    def leader(self) -> str:
        """The best of those still in the race; the first given if several are equal."""
        return max(self.alive, key=lambda name: self.value(name, self.worlds))

    def entrants(self, choice: str) -> tuple[Entrant, ...]:
        return tuple(
            Entrant(
                name,
                np.array(found),
                self.value(name, len(found)),
                *self.difference(choice, name),
                self.stopped_by[name],
                name in self.set_aside,
            )
            for name, found in self.returns.items()
        )


def _t_quantile(freedom: int, level: float) -> float:
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(freedom, level))
