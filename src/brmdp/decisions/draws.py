"""Values of policies in posterior draws of the kernel.

Kernels are drawn in blocks, all policies are evaluated in the same draws, and a block is forgotten
when its values are known: memory does not grow with the number of draws, except for what is asked
for. Only the rows that some policy uses are drawn; optimal values need all of them.

Every value comes with a bound on the error of the linear algebra: (residual + η)/(1 − γ), where η
bounds the rounding of the residual itself. What is proved with these values subtracts it.

**A finite horizon.** Each draw is one kernel that is held over all H steps: the values are those of
H steps in an unknown, but fixed world. They come from backward induction, and their rounding errors
add up over the steps. Policies may depend on the step; a policy that is itself drawn is held over
all steps, too.

**Without discounting** and horizon, every policy must surely end (:mod:`brmdp.planning.endings`).
The bound is then (residual + η)·max(ξ)/c, where ξ are expected times to the end in the drawn kernel
and c ≤ min(ξ − Pξ) is computed for them. Means of such values over draws may be infinite, however
many draws there are: an exit with probability p ~ Beta(1, b) takes 1/p steps, and E[1/p] = ∞. What
takes means must look at :func:`brmdp.decisions.exit_moments` first; quantiles need no such care.

How a policy is evaluated depends on the number of states. Up to :data:`DIRECT_STATES`: elimination,
draw by draw. Up to :data:`DENSE_STATES`: the values under the mean kernel are corrected with the
inverse of the mean system, for a block of draws at once; draws too far from the mean for that go on
with a Krylov method, and are left to elimination where it fails, too. Beyond: a Krylov method for
each draw, from the values under the mean kernel, then sweeps.

**Uncertain rewards** (:class:`brmdp.decisions.UncertainRewards`) are drawn once per kernel, from a
stream of their own: the kernels are the same as with known rewards.

Each block has a random stream of its own, so the draws depend on neither the number of threads nor
how many are asked for at a time.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, bicgstab

from brmdp._kernels import linear
from brmdp._validation import (
    SUM_TOLERANCE,
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_discount,
    as_float_array,
    as_positive_int,
    as_rng,
)
from brmdp.beliefs.base import Belief
from brmdp.beliefs.checked import (
    caveat_of,
    draws_of,
    is_builtin,
    learns_rewards,
    mean_of,
    method_of,
    require_belief,
    require_kernels,
    rewards_of,
)
from brmdp.decisions.hierarchical import HierarchicalBelief
from brmdp.decisions.policies import (
    Policies,
    as_start_weights,
    is_random,
    mean_policy,
    named_policies,
)
from brmdp.decisions.uncertain_rewards import (
    RewardsOrDoubt,
    UncertainRewards,
    caveat_about,
    drawn_rewards,
    is_uncertain,
    mean_rewards,
    refuse_endless,
)
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.planning.bellman import FLOOR, Bellman, solve_in_band
from brmdp.planning.endings import expected_times, require_endings, solve_linear
from brmdp.planning.finite_horizon import as_horizon, as_stages, as_terminal
from brmdp.planning.fixed_point import Accuracy, iterate
from brmdp.planning.planner import LARGEST_VALUE, Problem
from brmdp.planning.text import call_like
from brmdp.risk.base import FixedKernel
from brmdp.risk.monte_carlo import LARGEST_SAMPLE
from brmdp.risk.threads import MANY_STATES, one_blas_thread, thread_count

__all__ = [
    "Block",
    "Sampler",
    "ValueDraws",
    "independent_draws",
    "values_in_draws",
    "worth_of",
]

DIRECT_STATES = 96
"""Up to this many states, systems are solved by elimination, one draw after another."""

DENSE_STATES = 2_000
"""Up to this many states, the inverse of the mean system may be kept."""

INVERSE_NUMBERS = 50_000_000
"""Largest size of all inverses together, in numbers."""

BLOCK_NUMBERS = 2_000_000
"""Probabilities in a block of draws."""

LARGEST_BLOCK = 2_048
"""Largest number of draws in a block."""

ACCURACY = 1e-9
"""Error bound that iterations aim at, relative to max|V|."""

CORRECTIONS = 30
"""Largest number of corrections with the inverse of the mean system."""

SHRINKING = 0.5
"""A correction that leaves more than this share of the residual is followed by BiCGSTAB."""

ACCELERATED = 80
"""Largest number of steps of BiCGSTAB in a block of draws."""

SWEEPS = 2_000
"""Largest number of sweeps after the Krylov method."""

ITERATED_STATES = 600
"""Up to this many states, optima come from compiled policy iteration, all draws of a block at once.
"""

POLICY_ROUNDS = 200
"""Largest number of rounds of policy iteration in a drawn kernel."""

WORTH_A_THREAD = 2_000_000
"""Below this many drawn probabilities, a second thread costs more than it saves."""

PROGRESS_SECONDS = 5.0

logger = logging.getLogger("brmdp")


def independent_draws(belief: Any) -> float:
    """What a belief's draws are worth at most, in independent ones; infinite if all are fresh.

    Raises
    ------
    InvalidInputError
        If they are worth nothing, since the chains behind them disagree.
    """
    found = getattr(belief, "independent_draws", None)
    if found is None:
        return math.inf
    name = type(belief).__name__
    if isinstance(found, bool) or not isinstance(found, int | float | np.number) or found != found:
        raise InvalidInputError(f"{name}.independent_draws must be a number; got {found!r}")
    if found <= 0.0:
        raise InvalidInputError(
            f"belief must offer draws that can be relied on; those of this {name} cannot: its "
            "chains disagree. Learn the prior again with more draws (learn_prior: draws=…)"
        )
    return float(found)


def worth_of(draws: int, independent: float) -> int:
    """How many independent draws M draws are worth if the belief's are worth E: 1/(1/M + 1/E)."""
    if math.isinf(independent):
        return draws
    return max(int(1.0 / (1.0 / draws + 1.0 / independent)), 1)


class Block(NamedTuple):
    """Values in a block of n draws, with bounds on the error of each."""

    values: FloatArray
    """(n, K, S) values of the policies."""
    errors: FloatArray
    """(n, K)."""
    optimal: FloatArray | None
    """(n, S) optimal values, if asked for."""
    optimal_errors: FloatArray | None
    """(n,)."""
    kernels: FloatArray | None
    """(n, transitions) the draws themselves, if asked for."""
    rewards: FloatArray | None = None
    """(n, S·A) drawn rewards, if kernels are asked for and rewards are uncertain."""


@dataclass(frozen=True, eq=False, repr=False)
class ValueDraws:
    """Values of policies in common posterior draws; see :func:`values_in_draws`.

    Attributes
    ----------
    names : tuple of str
        The K policies.
    values : (n, K) array, or (n, K, S) without a start
        Value of each policy in each draw.
    errors : (n, K) array
        Bounds on the solver's error of these values.
    optimal : (n,) or (n, S) array, or None
        Optimal value of each drawn kernel.
    optimal_errors : (n,) array or None
    caveat : str
        What to know about the belief or the rewards, if they are only an approximation of a
        posterior; else empty.
    undiscounted : bool
        Whether the values are undiscounted ones without a horizon, whose means may be infinite.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.decisions import values_in_draws
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> values_in_draws(belief, [[0.0], [1.0]], 0.5, [[0, 0]], start=0, draws=100, rng=0)
    ValueDraws(100 draws, 1 policy, policy 0: mean 0.4885, error_bound=9e-15)
    """

    names: tuple[str, ...]
    values: FloatArray
    errors: FloatArray
    optimal: FloatArray | None
    optimal_errors: FloatArray | None
    caveat: str = ""
    undiscounted: bool = False

    def __repr__(self) -> str:
        n, k = self.errors.shape
        parts = [f"{n} draws", f"{k} {'policy' if k == 1 else 'policies'}"]
        # a mean that may not exist must not be shown
        what, middle = ("median", np.median) if self.undiscounted else ("mean", np.mean)
        for name, values in zip(self.names[:6], np.moveaxis(self.values, 1, 0), strict=False):
            parts.append(f"{name}: {what} {middle(values):.4g}")
        if k > 6:
            parts.append("…")
        if self.optimal is not None:
            parts.append(f"optimal: {what} {middle(self.optimal):.4g}")
        parts.append(f"error_bound={self.errors.max():.0g}")
        if self.caveat:
            parts.append("of an approximate belief (see caveat)")
        return call_like("ValueDraws", parts)


def values_in_draws(
    belief: Belief,
    rewards: RewardsOrDoubt,
    discount: float,
    policies: Policies,
    *,
    start: ArrayLike | None = None,
    draws: int = 1_000,
    optimal: bool = False,
    horizon: int | None = None,
    terminal: ArrayLike | None = None,
    rng: Seed = None,
) -> ValueDraws:
    """Values of one or several policies in posterior draws, the same draws for all of them.

    Parameters
    ----------
    belief, rewards, discount
        As in :func:`brmdp.plan`. The discount may be 1 with a horizon, or if every policy surely
        ends. Rewards may be :class:`UncertainRewards`, which are drawn with the kernel.
    policies : mapping or list of policies, or one (S,) policy
        Each has (S,) actions or (S, A) probabilities, or is drawn itself, such as a
        :class:`Practice`. With a horizon also (H, S) actions or (H, S, A) probabilities by step.
    start : int or (S,) probabilities, optional
        Where the policies begin. Without it, values of all states are returned.
    draws : int
        Number of draws n.
    optimal : bool
        Also compute the optimal values of each drawn kernel.
    horizon : int, optional
        Values of this number of steps, all in the same drawn kernel.
    terminal : (S,) array, optional
        Values after the last step of the horizon; zero by default.
    rng : numpy.random.Generator or seed, optional
        Random stream of the draws.

    Returns
    -------
    ValueDraws

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.decisions import values_in_draws
    >>> belief = brmdp.DirichletBelief([[[9, 1], [1, 9]], [[9, 1], [1, 9]]])
    >>> rewards = [[0.0, 0.0], [1.0, 1.0]]
    >>> found = values_in_draws(
    ...     belief, rewards, 0.5, {"go": [1, 1], "toss": [[0.5, 0.5], [0.5, 0.5]]}, start=0, rng=0
    ... )
    >>> found.values.mean(axis=0).round(2)
    array([0.9, 0.5])
    """
    n = as_positive_int(draws, "draws")
    sampler = Sampler(
        belief,
        rewards,
        discount,
        policies,
        optimal=optimal,
        horizon=horizon,
        terminal=terminal,
        rng=rng,
    )
    n_states, k = belief.pattern.n_states, len(sampler.names)
    begin = None if start is None else as_start_weights(start, n_states)
    numbers = n * (k + optimal) * (n_states if begin is None else 1)
    if numbers > LARGEST_SAMPLE:
        raise InvalidInputError(
            f"draws × policies{'' if begin is not None else ' × states'} must be at most "
            f"{LARGEST_SAMPLE:,}; got {numbers:,}"
            + ("" if begin is not None else "; give a start, which needs one number per draw")
        )
    values = np.empty((n, k, n_states) if begin is None else (n, k))
    errors = np.empty((n, k))
    best = np.empty((n, n_states) if begin is None else n) if optimal else None
    best_errors = np.empty(n) if optimal else None
    done = 0
    for block in sampler.blocks(n):
        here = slice(done, done + len(block.errors))
        values[here] = block.values if begin is None else block.values @ begin
        errors[here] = block.errors
        if best is not None and best_errors is not None:
            assert block.optimal is not None
            best[here] = block.optimal if begin is None else block.optimal @ begin
            best_errors[here] = block.optimal_errors
        done = here.stop
    endless = sampler.discount == 1.0 and horizon is None
    caveat = " ".join(filter(None, (caveat_of(belief), caveat_about(rewards))))
    return ValueDraws(sampler.names, values, errors, best, best_errors, caveat, endless)


class Sampler:
    """Draws kernels and evaluates policies in them, block by block.

    Parameters
    ----------
    belief, rewards, discount, policies, optimal, horizon, terminal, rng
        As in :func:`values_in_draws`.
    kernels : bool
        Keep the drawn kernels in the blocks.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp.decisions import Sampler
    >>> belief = brmdp.DirichletBelief.uniform(2, 1)
    >>> sampler = Sampler(belief, [[0.0], [1.0]], 0.5, [[0, 0]], rng=0)
    >>> [block.values.shape for block in sampler.blocks(100)]
    [(100, 1, 2)]
    """

    def __init__(
        self,
        belief: Belief,
        rewards: RewardsOrDoubt,
        discount: float,
        policies: Policies,
        *,
        optimal: bool = False,
        kernels: bool = False,
        horizon: int | None = None,
        terminal: ArrayLike | None = None,
        rng: Seed = None,
    ) -> None:
        require_belief(belief)
        # the outcomes of a belief that learns rewards may change, and the rows below would not
        self.belief: Belief = (
            method_of(belief, "copy", "to be drawn from")() if learns_rewards(belief) else belief
        )
        self.discount = as_discount(discount, one_allowed=True)
        self.rewards: FloatArray = np.array(rewards_of(belief, mean_rewards(belief, rewards)))
        refuse_endless(rewards, self.discount, horizon)
        self.doubt: UncertainRewards | None = rewards if is_uncertain(rewards) else None  # type: ignore[assignment]
        pattern = belief.pattern
        self.horizon = None if horizon is None else as_horizon(horizon, pattern.n_states)
        if horizon is None and terminal is not None:
            raise InvalidInputError("terminal must be given only together with a horizon")
        self.terminal = as_terminal(terminal, pattern.n_states)
        self._check_size()
        given = named_policies(policies)
        self.names = tuple(given)
        self.optimal = bool(optimal)
        self.keeps_kernels = bool(kernels)
        # with a horizon, a policy is a list of stages, most of which may be the same
        stages, self._stages = _stages_of(given, pattern.admissible, self.horizon)
        self.rows = _Rows.of(pattern, stages, self.rewards, all_rows=self.optimal or kernels)
        entropy = as_rng(rng).integers(0, 2**32, size=4, dtype=np.uint64)
        self._entropy = [int(word) for word in entropy]
        self._next_block = 0
        n, k = pattern.n_states, len(given)
        self._ends: BoolArray | None = None
        if self.horizon is not None:
            self._solve = self._induct
        elif self.discount == 1.0:
            self._ends = self._checked_ends(stages)
            self._solve = self._absorb
        elif n <= DIRECT_STATES:
            self._solve = self._eliminate
        elif n <= DENSE_STATES and k * n * n <= INVERSE_NUMBERS:
            self._solve = self._correct
        else:
            self._solve = self._iterate
        numbers = self.rows.size + 2 * k * n + self.rows.widest_policy
        self.block_size = max(1, min(LARGEST_BLOCK, BLOCK_NUMBERS // numbers))

    def _check_size(self) -> None:
        """Refuse values that might overflow."""
        paid, gamma = float(np.abs(self.rewards).max()), self.discount
        # value of a reward of one in every step, and what comes on top of it
        times, more = 1.0, 0.0
        if self.horizon is not None:
            times, more = float(self.horizon), float(np.abs(self.terminal).max())
            name = "rewards × horizon + terminal"
        elif gamma < 1.0:
            times, name = 1.0 / (1.0 - gamma), "rewards/(1 − discount)"
        else:
            name = "rewards"
        largest = paid * times + more
        self._largest_reward = (LARGEST_VALUE - more) / times
        if not largest <= LARGEST_VALUE:
            raise InvalidInputError(f"{name} must lie within ±{LARGEST_VALUE:g}; got {largest:g}")

    def _checked_ends(self, policies: dict[str, Any]) -> BoolArray:
        """The ends, if all policies surely reach them; with optimal values, all there are."""
        pattern = self.belief.pattern
        if self.optimal:
            return require_endings(pattern, self.rewards)
        for name, given in policies.items():
            used = np.flatnonzero(mean_policy(given, pattern.admissible, name) > 0.0)
            ends = require_endings(pattern, self.rewards, None, used)
        return ends

    # --- blocks -----------------------------------------------------------------------------------

    def blocks(self, n: int) -> Iterator[Block]:
        """Values in ``n`` new draws, in blocks; each call goes on with other draws."""
        return self._blocks(as_positive_int(n, "n"))

    def _blocks(self, n: int) -> Iterator[Block]:
        sizes = [self.block_size] * (n // self.block_size)
        if n % self.block_size:
            sizes.append(n % self.block_size)
        first = self._next_block
        self._next_block += len(sizes)
        jobs = list(enumerate(sizes, first))
        threads = min(thread_count(), len(jobs)) if self._worth_threads(n) else 1
        many = self.belief.pattern.n_states >= MANY_STATES
        told = began = time.monotonic()
        done = 0
        with one_blas_thread if many else nullcontext():
            self._prepare()
            for block in _in_order(self._block, jobs, threads):
                yield block
                done += len(block.errors)
                now = time.monotonic()
                if now - told >= PROGRESS_SECONDS:
                    told = now
                    logger.info(
                        "policies evaluated in %d of %d draws, %.0f s", done, n, now - began
                    )

    def evaluate(self, kernels: FloatArray, rewards: FloatArray | None = None) -> Block:
        """Values in given kernels, (n, transitions), in place of draws; random ones at their mean.

        All of them are held at once. So are ``rewards``, (n, S·A), if they are given.
        """
        pattern = self.belief.pattern
        rows = self.rows
        kernels = require_kernels(pattern, kernels)
        if rewards is not None:
            rewards = as_float_array(rewards, "rewards")
            if rewards.shape != (len(kernels), pattern.n_pairs):
                raise InvalidInputError(
                    f"rewards must have shape {(len(kernels), pattern.n_pairs)}, one number per "
                    f"kernel and pair; got {rewards.shape}"
                )
        entries = kernels if rows.pairs is None else pattern.take(kernels, rows.pairs)
        many = pattern.n_states >= MANY_STATES
        with one_blas_thread if many else nullcontext():
            self._prepare()
            paying = rows if rewards is None else rows.paying(rewards[:, self._drawn_pairs])
            values, errors = self._solve(paying, rows.entries(entries, None))
        return Block(values, errors, None, None, None)

    def visits(self, start: FloatArray) -> FloatArray:
        """(K, S) shares of discounted time, (1 − γ) Σ_t γ^t Pr(s_t = s), under the mean kernel.

        With a horizon they are those of H steps, and without discounting those until the end.
        """
        start = as_start_weights(start, self.belief.pattern.n_states)
        entries, gamma = self._mean_entries[0], self.discount
        if self.horizon is not None:
            by_step = self._visits_by_step(start)
            total: FloatArray = by_step.sum(axis=1)
            total /= total.sum(axis=1, keepdims=True)
            return total
        if self._ends is not None:
            going = np.flatnonzero(~self._ends)
            shares = np.zeros((len(self.names), start.size))
            for k in range(len(self.names)):
                kernel = self.rows.kernel(k, entries)[going][:, going]
                shares[k, going] = solve_linear(sparse.csr_array(kernel.T), start[going])
            shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            return shares
        found = np.empty((len(self.names), start.size))
        arriving = (1.0 - gamma) * start
        for k in range(len(self.names)):
            back = sparse.csr_array(self.rows.kernel(k, entries).T)
            if start.size <= DIRECT_STATES:
                found[k] = np.linalg.solve(np.eye(start.size) - gamma * back.toarray(), arriving)
            else:
                found[k] = self._krylov(back, arriving, start)
        return found

    def switch_gains(self, k: int, other: int) -> FloatArray:
        """(S,) gain of policy ``other`` over policy ``k`` for one step, under the mean kernel."""
        entries = self._mean_entries
        values = (
            self._absorb(self.rows, entries)[0][0, k]
            if self._ends is not None
            else self._mean_values[k]
        )
        paid = self.rows.expected(other, entries)[0]
        step = self.rows.kernel(other, entries[0]) @ values
        gains: FloatArray = paid + self.discount * step - values
        return gains

    def rough_worths(self, start: FloatArray) -> FloatArray:
        """(S,) about what it is worth to follow policy 1 instead of 0 in single states."""
        if self.horizon is None:
            rough: FloatArray = np.abs(self.visits(start)[0] * self.switch_gains(0, 1))
            return rough
        entries = self._mean_entries
        visits = self._visits_by_step(start)[0]
        values = np.array(self.terminal)
        worth = np.zeros(start.size)
        for h in range(self.horizon - 1, -1, -1):
            backups = []
            for k in (0, 1):
                stage = self._stages[k][h]
                paid = self.rows.expected(stage, entries)[0]
                step = self.rows.kernel(stage, entries[0]) @ values
                backups.append(paid + self.discount * step)
            values = backups[0]
            worth += visits[h] * (backups[1] - backups[0])
        return np.abs(worth)

    def _visits_by_step(self, start: FloatArray) -> FloatArray:
        """(K, H, S) γ^h Pr(s_h = s) under the mean kernel."""
        assert self.horizon is not None
        entries = self._mean_entries[0]
        found = np.empty((len(self.names), self.horizon, start.size))
        for k in range(len(self.names)):
            now = start
            for h in range(self.horizon):
                found[k, h] = now
                now = self.discount * (self.rows.kernel(self._stages[k][h], entries).T @ now)
        return found

    def _worth_threads(self, n: int) -> bool:
        # the methods of a belief from outside may not be safe in threads
        ours = is_builtin(self.belief) or type(self.belief) is HierarchicalBelief
        return ours and n * self.rows.size >= WORTH_A_THREAD

    def _block(self, index: int, size: int) -> Block:
        rng = np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(index,)))
        rows = self.rows
        draws = draws_of(self.belief, size, rng, rows.pairs)
        entries = rows.entries(draws, rng)
        rewards: FloatArray | None = None
        paid = self.rewards
        if self.doubt is not None:
            # a stream of their own leaves the kernels as they are with known rewards
            own = np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(index, 1)))
            pairs = self._drawn_pairs
            drawn = drawn_rewards(self.doubt, size, pairs, self._largest_reward, own)
            rows = rows.paying(drawn)
            if self.optimal:
                paid = np.ascontiguousarray(rows.rewards[:, : draws.shape[1]])
            if self.keeps_kernels:
                rewards = np.zeros((size, self.belief.pattern.n_pairs))
                rewards[:, pairs] = drawn
        values, errors = self._solve(rows, entries)
        optimal: FloatArray | None = None
        optimal_errors: FloatArray | None = None
        if self.optimal:
            optimal, optimal_errors = self._optima(np.ascontiguousarray(draws), paid)
        kept = draws if self.keeps_kernels else None
        return Block(values, errors, optimal, optimal_errors, kept, rewards)

    @property
    def _drawn_pairs(self) -> IntArray:
        """The pairs whose rows, and rewards, are drawn."""
        drawn = self.rows.pairs
        return self.belief.pattern.pairs if drawn is None else drawn

    def _prepare(self) -> None:
        """Compute what all blocks share before threads need it."""
        if self.horizon is not None or self._ends is not None:
            return
        if self._solve != self._eliminate:
            _ = self._mean_values
        if self._solve == self._correct:
            _ = self._inverses
        if self.optimal:
            _ = self._mean_optimum

    # --- the mean kernel --------------------------------------------------------------------------

    @cached_property
    def _mean_entries(self) -> FloatArray:
        pattern = self.belief.pattern
        mean = mean_of(self.belief)
        rows = mean if self.rows.pairs is None else pattern.take(mean, self.rows.pairs)
        return self.rows.entries(rows[None], None)

    @cached_property
    def _inverses(self) -> list[FloatArray]:
        """(I − γP̄)⁻¹ for each policy."""
        n = self.belief.pattern.n_states
        found = []
        for k in range(len(self.names)):
            kernel = self.rows.kernel(k, self._mean_entries[0]).toarray()
            found.append(np.linalg.inv(np.eye(n) - self.discount * kernel))
        return found

    @cached_property
    def _mean_values(self) -> FloatArray:
        """(K, S) values under the mean kernel."""
        entries = self._mean_entries
        found = np.empty((len(self.names), self.belief.pattern.n_states))
        for k in range(len(self.names)):
            paid = self.rows.expected(k, entries)[0]
            if self._solve == self._correct:
                found[k] = self._inverses[k] @ paid
            elif self._solve == self._eliminate:
                found[k] = self._eliminate(self.rows, entries)[0][0, k]
            else:
                start = np.zeros_like(paid)
                found[k] = self._krylov(self.rows.kernel(k, entries[0]), paid, start)
        return found

    @cached_property
    def _mean_optimum(self) -> FloatArray:
        """Optimal values under the mean kernel, to start policy iteration from."""
        start = np.zeros(self.belief.pattern.n_states)
        return self._optimum(np.array(mean_of(self.belief)), self.rewards, start)

    # --- values of policies -----------------------------------------------------------------------

    def _eliminate(self, rows: _Rows, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = np.empty((len(entries), *rows.chosen.shape))
        gaps, sizes = np.empty(values.shape[:2]), np.empty(values.shape[:2])
        linear.values_in_kernels(
            rows.chosen,
            rows.indptr,
            rows.next_states,
            entries,
            np.atleast_2d(rows.rewards),
            self.discount,
            values,
            gaps,
            sizes,
        )
        errors = np.empty_like(gaps)
        for k, taken in enumerate(rows.policies):
            errors[:, k] = self._bounds(taken.widest, gaps[:, k], sizes[:, k])
        return values, errors

    def _correct(self, rows: _Rows, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = len(entries)
        values = np.empty((n, *rows.chosen.shape))
        errors = np.empty(values.shape[:2])
        for k in range(len(self.names)):
            paid, kernels = rows.expected(k, entries), rows.block_kernel(k, entries)
            found = np.tile(self._mean_values[k], (n, 1))
            inverse = self._inverses[k].T
            aim = (1.0 - self.discount) * ACCURACY * float(np.abs(found).max())
            aim = max(aim, FLOOR * float(np.abs(found).max()))
            before = np.inf
            for _ in range(CORRECTIONS):
                residuals = self._residuals(kernels, paid, found)
                largest = float(np.abs(residuals).max())
                if largest <= aim or not largest <= SHRINKING * before:
                    break
                before = largest
                found += residuals @ inverse
            if largest > aim:
                self._accelerate(kernels, found, residuals, aim)
                residuals = self._residuals(kernels, paid, found)
            sizes = np.abs(residuals).max(axis=1)
            # what is left, such as long chains far from the mean
            for m in np.flatnonzero(~(sizes <= aim)):
                system = np.eye(found.shape[1])
                system -= self.discount * rows.kernel(k, entries[m]).toarray()
                found[m] = np.linalg.solve(system, paid[m])
            if (~(sizes <= aim)).any():
                sizes = np.abs(self._residuals(kernels, paid, found)).max(axis=1)
            values[:, k] = found
            errors[:, k] = self._bound(rows.policies[k], sizes, found)
        return values, errors

    def _accelerate(
        self, kernels: Any, found: FloatArray, residuals: FloatArray, aim: float
    ) -> None:
        """BiCGSTAB in all draws of a block at once.

        It improves the values ``found``, whose residuals are given, in place. The inverse of the
        mean system as a preconditioner would save few steps and double the price of each.
        """
        shadow, rest = residuals, residuals.copy()
        turned, step = np.zeros_like(rest), np.zeros_like(rest)
        rho, alpha, omega = (np.ones((len(rest), 1)) for _ in range(3))

        def applied(values: FloatArray) -> FloatArray:
            moved: FloatArray = (kernels @ values.reshape(-1)).reshape(values.shape)
            return values - self.discount * moved

        def products(a: FloatArray, b: FloatArray) -> FloatArray:
            summed: FloatArray = np.einsum("ns,ns->n", a, b)[:, None]
            return summed

        for _ in range(ACCELERATED):
            going = np.abs(rest).max(axis=1, keepdims=True) > 0.1 * aim
            if not going.any():
                break
            # a product of zero ends a draw's search; what is left is solved by elimination
            with np.errstate(all="ignore"):
                now = products(shadow, rest)
                step = rest + now / rho * alpha / omega * (step - omega * turned)
                step = np.where(going, step, 0.0)
                turned = applied(step)
                alpha = np.where(going, now / products(shadow, turned), 0.0)
                rest = rest - alpha * turned
                bent = applied(rest)
                omega = np.where(going, products(bent, rest) / products(bent, bent), 0.0)
                move = alpha * step + omega * rest
                good = np.isfinite(move).all(axis=1, keepdims=True)
                found += np.where(good, move, 0.0)
                rest = np.where(good, rest - omega * bent, 0.0)
                rho = now

    def _iterate(self, rows: _Rows, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = len(entries)
        values = np.empty((n, *rows.chosen.shape))
        errors = np.empty(values.shape[:2])
        for k in range(len(self.names)):
            paid = rows.expected(k, entries)
            sizes = np.empty(n)
            for m in range(n):
                kernel = rows.kernel(k, entries[m])
                values[m, k] = self._krylov(kernel, paid[m], self._mean_values[k])
                backup = paid[m] + self.discount * (kernel @ values[m, k])
                sizes[m] = np.abs(backup - values[m, k]).max()
            errors[:, k] = self._bound(rows.policies[k], sizes, values[:, k])
        return values, errors

    def _induct(self, rows: _Rows, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values of the first of H steps, by backward induction in all draws of the block."""
        assert self.horizon is not None
        n, gamma = len(entries), self.discount
        values = np.empty((n, len(self.names), self.terminal.size))
        errors = np.empty(values.shape[:2])
        epsilon = float(np.finfo(np.float64).eps)
        for k, stages in enumerate(self._stages):
            value, error = np.tile(self.terminal, (n, 1)), np.zeros(n)
            stage, here = -1, entries
            for h in range(self.horizon - 1, -1, -1):
                if stages[h] != stage:
                    stage = int(stages[h])
                    here = rows.taken(stage, entries)
                taken = rows.policies[stage]
                size = taken.largest + gamma * np.abs(value).max(axis=1)
                error = (taken.widest + 8) * epsilon * size + gamma * error
                targets = value[:, taken.next_states]
                targets *= gamma
                targets += taken.rewards
                targets *= here
                value = np.add.reduceat(targets, taken.begins, axis=1)
            values[:, k], errors[:, k] = value, error
        return values, errors

    def _absorb(self, rows: _Rows, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Undiscounted values until the end, and bounds by the expected times to it."""
        assert self._ends is not None
        n = len(entries)
        values = np.zeros((n, len(self.names), self._ends.size))
        errors = np.empty(values.shape[:2])
        going = np.flatnonzero(~self._ends)
        size = going.size
        found: tuple[FloatArray, Any]
        block = max(1, BLOCK_NUMBERS // (size * size + 1)) if size <= DIRECT_STATES else 0
        for k in range(len(self.names)):
            paid = rows.expected(k, entries)[:, going]
            taken = rows.policies[k]
            for first in range(0, n, block or 1):
                here = slice(first, min(first + (block or 1), n))
                if block:
                    kernels = rows.dense(k, entries[here], going)
                    found = _until_end(kernels, paid[here], taken)
                else:
                    kernel = rows.kernel(k, entries[first])[going][:, going]
                    found = _until_far_end(sparse.csr_array(kernel), paid[first], taken)
                values[here, k, going], errors[here, k] = found
        return values, errors

    def _residuals(self, kernels: Any, paid: FloatArray, values: FloatArray) -> FloatArray:
        moved = (kernels @ values.reshape(-1)).reshape(values.shape)
        residuals: FloatArray = paid + self.discount * moved - values
        return residuals

    def _bound(self, taken: _Taken, residuals: FloatArray, values: FloatArray) -> FloatArray:
        """Bounds on the distance from the exact values, from the residuals of a block."""
        sizes = taken.largest + self.discount * np.abs(values).max(axis=1)
        return self._bounds(taken.widest, residuals, sizes)

    def _bounds(self, widest: int, residuals: FloatArray, sizes: FloatArray) -> FloatArray:
        """The same for rows of at most ``widest`` entries and targets of these sizes."""
        rounding = (widest + 8) * float(np.finfo(np.float64).eps) * sizes
        bounds: FloatArray = (residuals + rounding) / (1.0 - self.discount)
        if not np.isfinite(bounds).all():
            raise InvalidInputError(
                "values are not finite in some draws: the belief's rows are not probabilities"
            )
        return bounds

    def _krylov(self, kernel: sparse.csr_array, paid: FloatArray, start: FloatArray) -> FloatArray:
        """Values of one policy in one large kernel, from ``start``."""
        gamma = self.discount
        n = paid.size
        gap = paid + gamma * (kernel @ start) - start
        scale = float(np.abs(gap).max())
        if scale == 0.0:
            return start
        system = LinearOperator((n, n), matvec=lambda x: x - gamma * (kernel @ x), dtype=np.float64)
        step, _ = bicgstab(system, gap / scale, rtol=1e-8, atol=0.0, maxiter=200)
        step = np.asarray(step) * scale
        values: FloatArray = start + step if np.isfinite(step).all() else start.copy()
        for sweep in range(SWEEPS):
            following = paid + gamma * (kernel @ values)
            change = float(np.abs(following - values).max())
            values = following
            if change <= max((1.0 - gamma) * ACCURACY, FLOOR) * float(np.abs(values).max()):
                break
            if sweep == 100:
                # most likely a long chain
                direct = solve_in_band(kernel, gamma, paid)
                values = values if direct is None else direct
        return values

    # --- optimal values ---------------------------------------------------------------------------

    def _optima(self, draws: FloatArray, rewards: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Optimal values in drawn kernels, (n, S), and bounds on their errors.

        Rewards are the same in all draws, (transitions,), or drawn, (n, transitions).
        """
        pattern, gamma = self.belief.pattern, self.discount
        if self.horizon is not None:
            return self._optima_over(draws, rewards)
        if self._ends is not None:
            return self._optima_until_end(draws)
        values = np.empty((len(draws), pattern.n_states))
        gaps = np.empty((len(draws), 2))
        paid = np.atleast_2d(rewards)
        if pattern.n_states <= ITERATED_STATES:
            linear.optima_in_kernels(
                pattern.pairs,
                pattern.indptr,
                pattern.next_states,
                draws,
                paid,
                gamma,
                pattern.n_actions,
                self._mean_optimum,
                POLICY_ROUNDS,
                FLOOR,
                values,
                gaps,
            )
            return values, self._bounds(pattern.widest, gaps[:, 0], gaps[:, 1])
        for m, draw in enumerate(draws):
            own = paid[m if len(paid) > 1 else 0]
            values[m] = self._optimum(draw, own, self._mean_optimum)
            last = Bellman(pattern, FixedKernel(pattern, draw), own, gamma).sweep(
                values[m], pattern.pairs
            )
            gaps[m] = last.residual, np.abs(last.targets).max()
        return values, self._bounds(pattern.widest, gaps[:, 0], gaps[:, 1])

    def _optima_over(self, draws: FloatArray, rewards: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same over H steps."""
        assert self.horizon is not None
        pattern, gamma = self.belief.pattern, self.discount
        begins = pattern.indptr[pattern.pairs]
        firsts = np.searchsorted(pattern.pairs // pattern.n_actions, np.arange(pattern.n_states))
        values = np.tile(self.terminal, (len(draws), 1))
        errors = np.zeros(len(draws))
        rounding = (pattern.widest + 8) * float(np.finfo(np.float64).eps)
        for _ in range(self.horizon):
            targets = rewards + gamma * values[:, pattern.next_states]
            errors = rounding * np.abs(targets).max(axis=1) + gamma * errors
            q = np.add.reduceat(draws * targets, begins, axis=1)
            values = np.maximum.reduceat(q, firsts, axis=1)
        return values, errors

    def _optima_until_end(self, draws: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same without discounting."""
        pattern = self.belief.pattern
        problem = Problem(pattern, self.rewards, 1.0, undiscounted=True)
        values = np.empty((len(draws), pattern.n_states))
        errors = np.empty(len(draws))
        for m, draw in enumerate(draws):
            found = problem.solve(self.belief, _Drawn(pattern, draw))
            values[m], errors[m] = found.values, found.error_bound
        return values, errors

    def _optimum(self, draw: FloatArray, rewards: FloatArray, start: FloatArray) -> FloatArray:
        pattern = self.belief.pattern
        if pattern.n_states <= ITERATED_STATES:
            found: tuple[FloatArray, int] = linear.policy_iteration(
                pattern.pairs,
                pattern.indptr,
                pattern.next_states,
                draw,
                rewards,
                self.discount,
                pattern.n_actions,
                start.copy(),
                POLICY_ROUNDS,
                FLOOR,
            )
            return found[0]
        bellman = Bellman(pattern, FixedKernel(pattern, draw), rewards, self.discount)
        return iterate(bellman, start.copy(), Accuracy(None, ACCURACY), "newton", 10_000).sweep.best


class _Drawn:
    """The expectation under one drawn kernel, as a measure."""

    def __init__(self, pattern: TransitionPattern, draw: FloatArray) -> None:
        self.kernel = FixedKernel(pattern, draw)

    def bind(self, belief: Belief) -> FixedKernel:
        """The kernel itself."""
        return self.kernel


TOO_FAR = (
    "in some draws the expected time to the end is so long that arithmetic cannot resolve it, or "
    "the end is not reached at all; give a horizon, or a discount below 1"
)


def _until_end(
    kernels: FloatArray, paid: FloatArray, taken: _Taken
) -> tuple[FloatArray, FloatArray]:
    """Undiscounted values of one policy in several kernels over the states that are no ends.

    Kernels are (n, m, m) and expected rewards (n, m); the second result bounds the errors, (n,).
    """
    n, m = paid.shape
    if m == 0:
        return paid, np.zeros(n)
    right = np.stack([paid, np.ones((n, m))], axis=2)
    try:
        solved: FloatArray = np.linalg.solve(np.eye(m) - kernels, right).astype(np.float64)
    except np.linalg.LinAlgError:
        raise ConvergenceError(TOO_FAR) from None
    values, times = solved[..., 0], solved[..., 1]
    residuals = np.abs(paid + np.einsum("nij,nj->ni", kernels, values) - values).max(axis=1)
    steps = times - np.einsum("nij,nj->ni", kernels, times)
    rounding = (max(m, taken.widest) + 8) * float(np.finfo(np.float64).eps)
    least = steps.min(axis=1) - rounding * np.abs(times).max(axis=1)
    if not ((times > 0.0).all() and (least >= 0.5).all()):
        raise ConvergenceError(TOO_FAR)
    sizes = taken.largest + np.abs(values).max(axis=1)
    errors: FloatArray = (residuals + rounding * sizes) * times.max(axis=1) / least
    return values, errors


def _until_far_end(
    kernel: sparse.csr_array, paid: FloatArray, taken: _Taken
) -> tuple[FloatArray, float]:
    """The same in one large kernel."""
    times, least = expected_times(kernel)
    if not least >= 0.5:
        raise ConvergenceError(TOO_FAR)
    values = solve_linear(kernel, paid)
    residual = float(np.abs(paid + kernel @ values - values).max())
    size = float(np.max(taken.largest)) + float(np.abs(values).max())
    rounding = (taken.widest + 8) * float(np.finfo(np.float64).eps) * size
    return values, (residual + rounding) * float(times.max()) / least


def _stages_of(
    policies: dict[str, Any], admissible: BoolArray, horizon: int | None
) -> tuple[dict[str, Any], list[IntArray]]:
    """Policies that do not depend on the step, and which of them each policy follows when.

    Without a horizon these are the policies themselves. With one, the second result holds (H,)
    numbers for each policy.
    """
    if horizon is None:
        return policies, []
    stages: dict[str, Any] = {}
    followed = []
    for name, given in policies.items():
        if is_random(given):
            followed.append(np.full(horizon, len(stages)))
            stages[name] = given
            continue
        by_step = as_stages(given, admissible, horizon, name)
        if by_step.strides[0] == 0:
            followed.append(np.full(horizon, len(stages)))
            stages[name] = by_step[0]
            continue
        flat = by_step.reshape(horizon, -1)
        _, first, which = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        followed.append(len(stages) + which.reshape(-1))
        for h in first.tolist():
            stages[f"{name}[{h}]"] = by_step[h]
    return stages, followed


def _in_order(run: Any, jobs: list[tuple[int, int]], threads: int) -> Iterator[Block]:
    """Results of all jobs in their order, with a few more of them under way in other threads."""
    if threads <= 1:
        for job in jobs:
            yield run(*job)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="brmdp") as pool:
        waiting: deque[Future[Block]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(run, *job))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


# --- the rows of policies -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Taken:
    """The entries of one policy: its S rows one after another.

    Attributes
    ----------
    where : (entries,) integers, or None
        Places in the entries of a block; None if these are all of them, in order.
    begins : (S,) integers
        Where each state's row begins.
    next_states : (entries,) integers
    rewards : (entries,) array, or (n, entries) if drawn
    widest : int
        Largest number of entries of a row.
    largest : float or (n,) array
        Largest absolute reward.
    """

    where: IntArray | None
    begins: IntArray
    next_states: IntArray
    rewards: FloatArray
    widest: int
    largest: float | FloatArray


@dataclass(frozen=True, eq=False)
class _Rows:
    """How the rows of several policies are made from the draws of the pairs that they use.

    The entries of a draw are those of the pairs, followed by rows that mix several pairs. A policy
    names one row per state.

    Attributes
    ----------
    pairs : (pairs,) integers, or None
        The pairs to draw; None means all admissible ones.
    indptr, next_states, rewards : arrays
        The rows. Drawn rewards are (n, entries).
    pair_of : (entries,) integers
        The position, among the drawn pairs, of the pair that each entry belongs to.
    chosen : (K, S) integers
        The row of each policy in each state.
    mixed : (mixed entries,) integers
        The drawn entry behind each entry of a mixed row.
    part_of : (mixed entries,) integers
        The part, a pair in a mixed row, that each of them belongs to.
    weights : (parts,) array
        Probability of each part.
    random : list
        Policies that are drawn: the policy, its parts as a slice, and their pairs.
    policies : list
        The entries of each policy.
    """

    pairs: IntArray | None
    indptr: IntArray
    next_states: IntArray
    rewards: FloatArray
    pair_of: IntArray
    chosen: IntArray
    mixed: IntArray
    part_of: IntArray
    weights: FloatArray
    random: list[tuple[Any, slice, IntArray]]
    policies: list[_Taken]
    admissible: Any

    @property
    def size(self) -> int:
        """Number of entries of a draw, mixed rows included."""
        return int(self.next_states.size)

    @property
    def widest_policy(self) -> int:
        """Largest number of entries of a policy."""
        return max(taken.next_states.size for taken in self.policies)

    @classmethod
    def of(
        cls, pattern: Any, policies: dict[str, Any], rewards: FloatArray, *, all_rows: bool
    ) -> _Rows:
        """Lay out the rows of ``policies``."""
        admissible = pattern.admissible
        means = [mean_policy(given, admissible, name) for name, given in policies.items()]
        used = pattern.pairs
        if not all_rows:
            needed = np.zeros(admissible.shape, dtype=bool)
            for weights in means:
                needed |= weights > 0.0
            used = np.flatnonzero(needed)
        everything = all_rows or used.size == pattern.pairs.size
        row_of = np.full(pattern.n_pairs, -1)
        row_of[used] = np.arange(used.size)
        widths = pattern.widths[used]
        begins = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
        states = np.arange(pattern.n_states)
        chosen = np.empty((len(means), pattern.n_states), dtype=np.int64)
        row_widths, parts, part_weights = [widths], [], []
        n_rows, n_parts = used.size, 0
        random: list[tuple[Any, slice, IntArray]] = []
        for k, (weights, given) in enumerate(zip(means, policies.values(), strict=True)):
            drawn = is_random(given)
            sure = ((weights > 0.0).sum(axis=1) == 1) & (not drawn)
            actions = weights.argmax(axis=1)
            chosen[k] = row_of[states * pattern.n_actions + actions]
            unsure = states[~sure]
            if unsure.size == 0:
                continue
            taken = (weights > 0.0) & ~sure[:, None]
            pairs = np.flatnonzero(taken)
            parts.append(row_of[pairs])
            part_weights.append(weights.reshape(-1)[pairs])
            chosen[k, unsure] = n_rows + np.arange(unsure.size)
            n_rows += unsure.size
            sums = np.bincount(pairs // pattern.n_actions, pattern.widths[pairs], states.size)
            row_widths.append(sums[unsure].astype(np.int64))
            if drawn:
                random.append((given, slice(n_parts, n_parts + pairs.size), pairs))
            n_parts += pairs.size
        part_rows = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        mixed = _ranges(begins[part_rows], widths[part_rows])
        part_of = np.repeat(np.arange(part_rows.size), widths[part_rows])
        indptr = np.concatenate(([0], np.cumsum(np.concatenate(row_widths)))).astype(np.int64)
        drawn_states = pattern.take(pattern.next_states, used)
        drawn_rewards = pattern.take(rewards, used)
        next_states = np.concatenate((drawn_states, drawn_states[mixed]))
        laid_out = np.concatenate((drawn_rewards, drawn_rewards[mixed]))
        owners = np.repeat(np.arange(used.size), widths)
        taken_rows = []
        for rows in chosen:
            where = _ranges(indptr[rows], np.diff(indptr)[rows])
            counts = np.diff(indptr)[rows]
            whole = where.size == indptr[-1] and bool((np.diff(where) == 1).all())
            taken_rows.append(
                _Taken(
                    None if whole else where,
                    np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64),
                    next_states[where],
                    laid_out[where],
                    int(counts.max()),
                    float(np.abs(laid_out[where]).max()),
                )
            )
        return cls(
            None if everything else used,
            indptr,
            next_states,
            laid_out,
            np.concatenate((owners, owners[mixed])),
            chosen,
            mixed,
            part_of,
            np.concatenate(part_weights) if part_weights else np.zeros(0),
            random,
            taken_rows,
            admissible,
        )

    def paying(self, drawn: FloatArray) -> _Rows:
        """The same rows with rewards that were drawn, (n, drawn pairs)."""
        rewards = np.take(drawn, self.pair_of, axis=1)
        policies = []
        for taken in self.policies:
            own = rewards if taken.where is None else np.take(rewards, taken.where, axis=1)
            policies.append(replace(taken, rewards=own, largest=np.abs(own).max(axis=1)))
        return replace(self, rewards=rewards, policies=policies)

    def entries(self, draws: FloatArray, rng: np.random.Generator | None) -> FloatArray:
        """Entries (n, size) of a block, from the draws of the pairs.

        Random policies are drawn, or have their mean if ``rng`` is None.
        """
        if self.mixed.size == 0:
            return np.require(draws, np.float64, ["C", "W"])
        n, drawn = draws.shape
        weights: FloatArray = self.weights
        if rng is not None and self.random:
            weights = np.tile(weights, (n, 1))
            known: dict[int, FloatArray] = {}
            for policy, parts, pairs in self.random:
                # one practice is one unknown, however often it is named
                if id(policy) not in known:
                    known[id(policy)] = self._drawn(policy, pairs, n, rng)
                weights[:, parts] = known[id(policy)]
        out = np.empty((n, drawn + self.mixed.size))
        out[:, :drawn] = draws
        np.take(draws, self.mixed, axis=1, out=out[:, drawn:])
        out[:, drawn:] *= weights[..., self.part_of]
        return out

    def _drawn(self, policy: Any, pairs: IntArray, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` draws of a random policy at the pairs that it uses, (n, pairs), checked."""
        name = f"{type(policy).__name__}.draw"
        found = as_float_array(policy.draw(n, rng=rng), name)
        if found.shape != (n, *self.admissible.shape):
            raise InvalidInputError(
                f"{name} must return policies of shape {(n, *self.admissible.shape)}; got "
                f"{found.shape}"
            )
        flat: FloatArray = found.reshape(n, -1)
        used = flat[:, pairs]
        states = pairs // self.admissible.shape[1]
        begins = np.searchsorted(states, np.unique(states))
        sums = np.add.reduceat(used, begins, axis=1)
        if (used < 0.0).any() or (np.abs(sums - 1.0) > SUM_TOLERANCE).any():
            raise InvalidInputError(
                f"{name} must return probabilities that sum to one in every state, over the "
                "actions that have a positive mean"
            )
        exact: FloatArray = used / np.repeat(sums, np.diff(np.append(begins, pairs.size)), axis=1)
        return exact

    def taken(self, k: int, entries: FloatArray) -> FloatArray:
        """The entries of policy ``k``, (n, its entries)."""
        where = self.policies[k].where
        return entries if where is None else np.take(entries, where, axis=1)

    def expected(self, k: int, entries: FloatArray) -> FloatArray:
        """Expected rewards of policy ``k``, (n, S)."""
        taken = self.policies[k]
        paid: FloatArray = np.add.reduceat(
            self.taken(k, entries) * taken.rewards, taken.begins, axis=1
        )
        return paid

    def kernel(self, k: int, entries: FloatArray) -> sparse.csr_array:
        """The kernel of policy ``k`` in one draw, (S, S)."""
        taken = self.policies[k]
        n = self.chosen.shape[1]
        data = entries if taken.where is None else entries[taken.where]
        pointers = np.append(taken.begins, taken.next_states.size)
        return sparse.csr_array((data, taken.next_states, pointers), shape=(n, n))

    def dense(self, k: int, entries: FloatArray, states: IntArray) -> FloatArray:
        """The kernels of policy ``k`` in all draws among ``states`` alone, (n, m, m)."""
        taken, m = self.policies[k], states.size
        number = np.full(self.chosen.shape[1], -1)
        number[states] = np.arange(m)
        widths = np.diff(np.append(taken.begins, taken.next_states.size))
        owners = np.repeat(number, widths)
        inside = (owners >= 0) & (number[taken.next_states] >= 0)
        where = owners[inside] * m + number[taken.next_states[inside]]
        here = self.taken(k, entries)[:, inside]
        order = np.argsort(where, kind="stable")
        places, firsts = np.unique(where[order], return_index=True)
        out = np.zeros((len(entries), m * m))
        if places.size:
            out[:, places] = np.add.reduceat(here[:, order], firsts, axis=1)
        return out.reshape(-1, m, m)

    def block_kernel(self, k: int, entries: FloatArray) -> sparse.csr_array:
        """The kernels of policy ``k`` in all draws of a block, one below another: (n·S, n·S)."""
        taken = self.policies[k]
        n, n_states = len(entries), self.chosen.shape[1]
        size = taken.next_states.size
        offsets = np.arange(n, dtype=np.int64)[:, None]
        columns = (taken.next_states + offsets * n_states).astype(np.int32)
        pointers = np.append((taken.begins + offsets * size).reshape(-1), n * size)
        return sparse.csr_array(
            (
                self.taken(k, entries).reshape(-1),
                columns.reshape(-1),
                pointers.astype(np.int32),
            ),
            shape=(n * n_states, n * n_states),
        )


def _ranges(begins: IntArray, widths: IntArray) -> IntArray:
    """The integers from each of ``begins`` on, as many as ``widths`` says, one after another."""
    if begins.size == 0:
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum(widths)
    return np.arange(int(ends[-1])) + np.repeat(begins - ends + widths, widths)
