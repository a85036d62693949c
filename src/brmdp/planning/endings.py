"""Plans without discounting, where every policy surely comes to an end.

An *end* is a state that is never left and pays nothing. With γ = 1, (TV)(s) = max_a ρ[ r(s,a,s') +
V(s') ] with V = 0 at the ends. T is monotone and non-expansive, but no contraction, so the bounds
of discounted problems do not hold. What is used instead:

**Every policy ends.** Call a set U of states *closed* if every state of U is no end and has an
admissible action all of whose possible successors lie in U. If there is a closed set, a policy can
stay in it for ever, and the problem is refused with a state and an action of the set. A successor
is possible if the belief's pattern has it; if a measure looks at finitely many kernels (a known
one, scenarios, draws), each of these must rule out closed sets, whichever of them is met at each
pair.

**One solution.** Let there be no closed set, and let every pair's value q be *strict*: q(w) = q(w')
with w ≤ w' implies that w = w' on the successors of some row that the measure looks at. For
Dirichlet rows, quantiles at levels in (0, 1) and CVaR have this property with all possible
successors, because w·P has a positive density between its smallest and its largest value, and w'·P
− w·P > 0 almost surely unless w = w'. For finitely many kernels P_k it holds because if P_k(w' − w)
> 0 for all k, all values rise by a common amount, and so does q. Then

1. T has at most one fixed point. If V and V' are two and M = max(V − V') > 0 is attained on A, take
   s in A and the action that is best at V: q(r + V) = V(s) = V'(s) + M ≥ q(r + V') + M = q(r + V' +
   M) ≥ q(r + V). So these are equal although V ≤ V' + M, with equality only on A, and all
   successors of some row lie in A. A has no ends, where V = V' = 0: it is closed, a contradiction.
2. If there is a fixed point V*, then TⁿW → V* from every W, in particular from W = 0: V* is the
   limit of the values for a growing horizon. The orbit is bounded, since T is non-expansive, and
   M_n = max(TⁿW − V*) does not increase while it is positive. Suppose that its limit M is positive.
   On the set of limit points, which T maps onto itself, max(· − V*) = M throughout. So there are
   limit points W_0 = TW_1, W_1 = TW_2, …, and by the argument in 1, every state at which W_k − V*
   attains M has an action and a row whose successors are states where W_{k+1} − V* attains M. The
   union of these sets is closed, a contradiction. Likewise for max(V* − TⁿW), with the action that
   is best at V*.

**How far V is from the solution.** V comes from Newton's method, in which the problem is linearised
at V in all actions and solved by policy iteration. Let ξ ≥ 1 be about the longest expected time to
the end under the linearised rows. If, as computed, with the numerical error η of the backups on the
safe side,

    T(V + εξ) + η ≤ V + εξ    and    T(V − εξ) − η ≥ V − εξ,

then T maps the vectors between V − εξ and V + εξ to themselves. Monotone iteration from either side
leads to a fixed point, which by 1 is V*: |V − V*| ≤ εξ. This is checked for the very numbers that
are stored, so ξ needs no accuracy of its own; where the check fails (a tied action that takes
longer, a kink of the quantile), the rows found there are added to those whose longest time ξ is. If
it cannot be made to hold, the problem is refused.

The same check for the operator of a policy bounds what that policy loses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, bicgstab

from brmdp._kernels import linear
from brmdp._validation import BoolArray, FloatArray, IntArray
from brmdp.errors import InvalidInputError
from brmdp.pattern import TransitionPattern
from brmdp.planning.bellman import DENSE_STATES, FLOOR, Bellman, Sweep, solve_in_band
from brmdp.planning.fixed_point import RELATIVE, TINY, coarsest
from brmdp.planning.solution import CONVERGED, NOT_CONVERGED, Solution
from brmdp.risk.base import APPROXIMATE, EXACT, RiskOperator
from brmdp.risk.boundary import CheckedRisk
from brmdp.risk.dirichlet import DirichletMeasure
from brmdp.risk.monte_carlo import SampledQuantile
from brmdp.risk.scenarios import ScenarioMeasure

__all__ = [
    "absorbing_kernel",
    "ends_of",
    "expected_times",
    "require_endings",
    "solve_linear",
    "solve_with_ends",
]

ROUNDS = 200
"""Largest number of policies tried in a linear problem."""

ENCLOSING_ROUNDS = 24
"""Largest number of attempts to enclose the solution."""

KRYLOV_STEPS, REFINEMENTS, KRYLOV_ACCURACY = 500, 4, 1e-14
"""Iterations for large systems, how often they are repeated for what is left, and their aim."""

PRECISE = 1e-6
"""Residual, relative to max|V|, from which on rows are computed precisely."""


# --- ends, and whether they are reached -----------------------------------------------------------


def ends_of(pattern: TransitionPattern, rewards: FloatArray) -> BoolArray:
    """(S,) whether a state is never left, whatever is done, and pays nothing."""
    owner = pattern.pair_of_transition // pattern.n_actions
    ends = np.ones(pattern.n_states, dtype=bool)
    ends[owner[(pattern.next_states != owner) | (rewards != 0.0)]] = False
    return ends


def require_endings(
    pattern: TransitionPattern,
    rewards: FloatArray,
    alternatives: _Alternatives | None = None,
    pairs: IntArray | None = None,
) -> BoolArray:
    """The ends (S,), if every policy surely reaches one of them; otherwise raise an error.

    Parameters
    ----------
    pattern : TransitionPattern
    rewards : (transitions,) array
    alternatives : optional
        The rows that may be met at each pair; by default all possible successors of it.
    pairs : integers, optional
        The pairs that may be used: by default all. All of those given are used, as those of one
        policy are.
    """
    ends = ends_of(pattern, rewards)
    if not ends.any():
        raise InvalidInputError(
            "discount must be below 1 here: with discount 1, every policy must surely reach an "
            "end, a state that is never left and pays nothing, and there is no such state. Give a "
            "horizon, or a discount below 1"
        )
    rows = _Alternatives.of_pattern(pattern) if alternatives is None else alternatives
    stays = _closed(pattern, ends, rows, pairs)
    if stays.any():
        s = int(np.argmax(stays))
        a = _staying_action(pattern, rows, stays, s, pairs)
        listed = ", ".join(str(int(t)) for t in np.flatnonzero(stays)[:8])
        more = ", …" if np.count_nonzero(stays) > 8 else ""
        raise InvalidInputError(
            "discount must be below 1 here: with discount 1, every policy must surely reach an "
            f"end, but one that takes action {a} in state {s} can stay among the states "
            f"[{listed}{more}] for ever. Give a horizon, or a discount below 1"
        )
    return ends


@dataclass(frozen=True, eq=False)
class _Alternatives:
    """Rows that may be met at each pair: sets of successors, several per pair or one.

    Attributes
    ----------
    pairs : (rows,) integers
        The pair of each row.
    indptr, next_states : arrays
        The successors of the rows, one row after another.
    """

    pairs: IntArray
    indptr: IntArray
    next_states: IntArray

    @classmethod
    def of_pattern(cls, pattern: TransitionPattern) -> _Alternatives:
        """All possible successors of every pair."""
        indptr = np.concatenate(([0], np.cumsum(pattern.row_widths))).astype(np.int64)
        return cls(pattern.pairs, indptr, pattern.next_states)

    @classmethod
    def of_kernels(
        cls, pattern: TransitionPattern, by_pair: Iterable[tuple[int, BoolArray]]
    ) -> _Alternatives:
        """The distinct sets of successors of several kernels.

        ``by_pair`` holds each pair and, for each kernel, which of its entries are positive.
        """
        pairs: list[int] = []
        parts: list[IntArray] = []
        for pair, positive in by_pair:
            row = pattern.next_states[pattern.indptr[pair] : pattern.indptr[pair + 1]]
            distinct = positive[:1] if positive.all() else np.unique(positive, axis=0)
            for mask in distinct:
                pairs.append(pair)
                parts.append(row[mask])
        widths = [part.size for part in parts]
        indptr = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
        return cls(np.array(pairs, dtype=np.int64), indptr, np.concatenate(parts))

    @classmethod
    def of_measure(cls, pattern: TransitionPattern, risk: RiskOperator) -> _Alternatives:
        """The rows that a bound measure may meet; refuses a measure about which it is unknown."""
        fixed = risk.fixed_entries()
        if fixed is not None:
            return cls.of_entries(pattern, fixed[None])
        if isinstance(risk, DirichletMeasure) and risk.basis == EXACT:
            return cls.of_pattern(pattern)
        if isinstance(risk, ScenarioMeasure):
            return cls.of_entries(pattern, risk._entries[risk._weights > 0.0])
        if isinstance(risk, SampledQuantile):
            return cls.of_kernels(pattern, ((p, d > 0.0) for p, d in risk.draws.items()))
        what = (
            "an approximation without a bound (method='saddlepoint')"
            if risk.basis == APPROXIMATE
            else "a measure of this kind"
        )
        raise InvalidInputError(
            f"discount must be below 1 for {what}: with discount 1, nothing shows that its values "
            "are those of a growing horizon. Use Quantile(alpha), CVaR(alpha) or Mean(), a "
            "horizon, or a discount below 1"
        )

    @classmethod
    def of_entries(cls, pattern: TransitionPattern, kernels: FloatArray) -> _Alternatives:
        """The distinct rows of kernels (K, transitions)."""
        positive = kernels > 0.0
        if positive.all():
            return cls.of_pattern(pattern)
        indptr = pattern.indptr
        return cls.of_kernels(
            pattern, ((p, positive[:, indptr[p] : indptr[p + 1]]) for p in pattern.pairs.tolist())
        )


def _closed(
    pattern: TransitionPattern, ends: BoolArray, rows: _Alternatives, used: IntArray | None
) -> BoolArray:
    """(S,) the largest closed set: states are removed until every one left can stay."""
    n, n_actions = pattern.n_states, pattern.n_actions
    row_of_entry = np.repeat(np.arange(rows.pairs.size), np.diff(rows.indptr))
    order = np.argsort(rows.next_states, kind="stable")
    bounds = np.searchsorted(rows.next_states[order], np.arange(n + 1))
    left = np.zeros(rows.pairs.size, dtype=bool)
    # how many rows of a pair, and how many pairs of a state, still allow to stay
    rows_left = np.bincount(rows.pairs, minlength=pattern.n_pairs)
    considered = pattern.pairs if used is None else used
    is_used = np.zeros(pattern.n_pairs, dtype=bool)
    is_used[considered] = True
    pairs_left = np.bincount(considered // n_actions, minlength=n)
    # one action is enough to stay; but all actions of a policy must stay
    enough = np.ones(n, dtype=np.int64) if used is None else pairs_left.copy()
    inside = ~ends
    removed = np.flatnonzero(ends)
    while removed.size:
        entries = np.concatenate([order[bounds[t] : bounds[t + 1]] for t in removed.tolist()])
        hit = np.unique(row_of_entry[entries])
        hit = hit[~left[hit]]
        left[hit] = True
        pairs, counts = np.unique(rows.pairs[hit], return_counts=True)
        rows_left[pairs] -= counts
        done = pairs[(rows_left[pairs] == 0) & is_used[pairs]]
        states, counts = np.unique(done // n_actions, return_counts=True)
        pairs_left[states] -= counts
        removed = states[inside[states] & (pairs_left[states] < enough[states])]
        inside[removed] = False
    return inside


def _staying_action(
    pattern: TransitionPattern,
    rows: _Alternatives,
    stays: BoolArray,
    state: int,
    used: IntArray | None,
) -> int:
    """An action with which a policy can stay in the closed set."""
    for k in np.flatnonzero(rows.pairs // pattern.n_actions == state).tolist():
        pair = int(rows.pairs[k])
        inside = stays[rows.next_states[rows.indptr[k] : rows.indptr[k + 1]]].all()
        if inside and (used is None or pair in used):
            return pair % pattern.n_actions
    raise AssertionError("a closed set without an action")  # pragma: no cover


# --- linear problems without discounting ----------------------------------------------------------


def absorbing_kernel(
    pattern: TransitionPattern, rows: FloatArray, pairs: IntArray, ends: BoolArray
) -> sparse.csr_array:
    """Rows of ``pairs``, one after another in ``rows``, over the states that are no ends."""
    number = np.cumsum(~ends) - 1
    next_states = pattern.take(pattern.next_states, pairs)
    owners = np.repeat(np.arange(pairs.size), pattern.widths[pairs])
    goes_on = ~ends[next_states]
    shape = (pairs.size, int((~ends).sum()))
    return sparse.csr_array(
        (rows[goes_on], (owners[goes_on], number[next_states[goes_on]])), shape=shape
    )


def solve_linear(kernel: sparse.csr_array, right: FloatArray) -> FloatArray:
    """(I − kernel)⁻¹ right; not finite if the system is singular.

    Large systems are solved iteratively, or in a band; whoever uses the result checks it.
    """
    n = kernel.shape[0]
    if n <= DENSE_STATES:
        system = np.eye(n) - kernel.toarray()
        try:
            return np.asarray(np.linalg.solve(system, right))
        except np.linalg.LinAlgError:
            return np.full(right.shape, np.nan)
    operator = LinearOperator((n, n), matvec=lambda x: x - kernel @ x, dtype=np.float64)
    found = np.zeros(n)
    scale = float(np.abs(right).max())
    for _ in range(REFINEMENTS):
        gap = right - operator @ found
        size = float(np.abs(gap).max())
        if not size > KRYLOV_ACCURACY * scale:
            return found
        # on long chains the method carries information one state per iteration, or breaks down
        with np.errstate(all="ignore"):
            step, _ = bicgstab(operator, gap / size, rtol=1e-8, atol=0.0, maxiter=KRYLOV_STEPS)
            following = found + np.asarray(step) * size
            remaining = float(np.abs(right - operator @ following).max())
        if not remaining <= 1e-2 * size:
            direct = solve_in_band(kernel, 1.0, right)
            return found if direct is None else direct
        found = following
    return found


def expected_times(kernel: sparse.csr_array) -> tuple[FloatArray, float]:
    """Expected times to the end ξ under a kernel, and c with ξ − kernel·ξ ≥ c as computed.

    For any V with residual ρ, |V − V*| ≤ ρ·max(ξ)/c if ξ > 0 and c > 0: the kernel's monotone
    operator maps ξ at least c below itself. So c > 0 proves that the end is reached, too.
    """
    times = solve_linear(kernel, np.ones(kernel.shape[0]))
    if not (np.isfinite(times).all() and (times > 0.0).all()):
        return times, 0.0
    widest = int(np.diff(kernel.indptr).max(initial=0))
    rounding = (widest + 8) * float(np.finfo(np.float64).eps) * float(times.max(initial=0.0))
    return times, float((times - kernel @ times).min(initial=1.0)) - rounding


def _best_rows(
    rows: sparse.csr_array, owners: IntArray, paid: FloatArray, chosen: IntArray
) -> tuple[FloatArray, IntArray]:
    """Policy iteration: the largest V(s) = paid + row·V over the rows of each state.

    ``chosen`` are the rows to begin with; returns V and the rows that attain it.
    """
    n = rows.shape[1]
    order = np.argsort(owners, kind="stable")
    begins = np.searchsorted(owners[order], np.arange(n))
    values = np.full(n, np.nan)
    for _ in range(ROUNDS):
        values = solve_linear(sparse.csr_array(rows[chosen]), paid[chosen])
        if not np.isfinite(values).all():
            break
        q = paid + rows @ values
        best = np.maximum.reduceat(q[order], begins)
        better = best > q[chosen] + FLOOR * max(float(np.abs(values).max()), 1e-300)
        if not better.any():
            break
        attained = order[q[order] >= best[owners[order]]]
        first = np.full(n, -1)
        first[owners[attained][::-1]] = attained[::-1]
        chosen = np.where(better, first, chosen)
    return values, chosen


# --- the solver -----------------------------------------------------------------------------------


class _Undiscounted:
    """T without discounting, for all actions or for those of one policy."""

    def __init__(self, bellman: Bellman, ends: BoolArray) -> None:
        self.bellman = bellman
        self.pattern = bellman.pattern
        self.ends = ends
        self.going = np.flatnonzero(~ends)
        self.number = np.cumsum(~ends) - 1
        n_actions = self.pattern.n_actions
        # the pairs in states that are no ends, and the number of the state of each
        self.pairs = bellman.pairs[~ends[bellman.pairs // n_actions]]
        self.owners = self.number[self.pairs // n_actions]
        self.sweeps = 0

    def sweep(self, values: FloatArray) -> Sweep:
        """TV, with V = 0 at the ends."""
        self.sweeps += 1
        here = np.where(self.ends, 0.0, values)
        found = self.bellman.sweep(here, self.bellman.pairs)
        found.best[self.ends] = 0.0
        return found

    def rows(self, sweep: Sweep, pairs: IntArray, *, precise: bool = True) -> sparse.csr_array:
        """Risk-adjusted rows of ``pairs``, over the states that are no ends."""
        risk = self.bellman.risk
        rows = risk.rows(sweep.targets, sweep.q.reshape(-1), pairs, precise=precise)
        return absorbing_kernel(self.pattern, rows, pairs, self.ends)

    def newton(self, sweep: Sweep, *, precise: bool) -> FloatArray:
        """The solution of the problem that is linearised at V in all actions."""
        rows = self.rows(sweep, self.pairs, precise=precise)
        here = sweep.values[self.going]
        paid = sweep.q.reshape(-1)[self.pairs] - rows @ here
        chosen = np.searchsorted(self.pairs, sweep.pairs[self.going])
        found, _ = _best_rows(rows, self.owners, paid, chosen)
        values = np.zeros(self.pattern.n_states)
        values[self.going] = found
        return values

    def solve(self, initial: FloatArray, max_iterations: int) -> Sweep:
        """Newton's method down to rounding, with value iteration where it does not help."""
        now = self.sweep(initial)
        while self.sweeps < max_iterations and math.isfinite(now.residual):
            least = 0.25 * max(FLOOR * now.size, now.numerical_error)
            if now.residual <= least:
                break
            precise = now.residual <= PRECISE * now.size
            following = self.newton(now, precise=precise)
            if not np.isfinite(following).all():
                break  # the end is too far away for arithmetic
            tried = self.sweep(following)
            if tried.residual <= 0.5 * now.residual:
                now = tried
            elif now.residual <= 16.0 * least:
                break  # mere rounding
            else:
                now = self.sweep(now.best)
        return now

    def enclose(
        self, now: Sweep, residual: float, max_iterations: int, *, upper: bool, lower: bool
    ) -> tuple[FloatArray, FloatArray, float] | None:
        """Vectors below and above V* (those that are asked for), and the longest time ξ.

        None if there are none with V as their middle.
        """
        values = np.where(self.ends, 0.0, now.values)
        greedy = now.pairs[self.going]
        rows = self.rows(now, greedy)
        owners = self.number[greedy // self.pattern.n_actions]
        chosen = np.arange(self.going.size)
        scale: float = max(2.0 * (residual + now.numerical_error) + FLOOR * now.size, TINY)
        for attempt in range(ENCLOSING_ROUNDS):
            times, chosen = _best_rows(rows, owners, np.ones(rows.shape[0]), chosen)
            if not (np.isfinite(times).all() and (times > 0.0).all()):
                return None
            spread = np.zeros(values.size)
            spread[self.going] = scale * times
            fits = True
            extra: list[IntArray] = []
            sides = [(values + spread, 1.0)] * upper + [(values - spread, -1.0)] * lower
            for vector, sign in sides:
                if self.sweeps >= max_iterations:
                    return None
                there = self.sweep(vector)
                error = there.numerical_error
                if not math.isfinite(there.residual) or not math.isfinite(error):
                    return None
                room = sign * (vector - there.best) - error
                room[self.ends] = 0.0
                if (room < 0.0).any():
                    fits = False
                    scale = float(max(scale, 4.0 * error))
                    pairs = there.pairs[self.going]
                    rows = sparse.csr_array(sparse.vstack([rows, self.rows(there, pairs)]))
                    extra.append(self.number[pairs // self.pattern.n_actions])
            if fits:
                return values - spread, values + spread, float(times.max())
            owners = np.concatenate([owners, *extra])
            if attempt % 3 == 2:
                scale *= 4.0
        return None


def solve_with_ends(
    bellman: Bellman,
    initial: FloatArray | None,
    policy: IntArray | None,
    *,
    tolerance: float | None,
    relative: float = RELATIVE,
    max_iterations: int,
    all_actions: bool,
) -> tuple[Solution, float]:
    """Solve an undiscounted problem and enclose its solution.

    Arguments have been checked. The second result is the longest expected time to the end under
    the risk-adjusted rows, about; infinite if the solution could not be enclosed.
    """
    pattern, risk = bellman.pattern, bellman.risk
    ends = require_endings(
        pattern,
        bellman.rewards,
        _Alternatives.of_measure(pattern, risk),
        None if policy is None else bellman.pairs,
    )
    operator = _Undiscounted(bellman, ends)
    if not operator.going.size:
        initial = np.zeros(pattern.n_states)
    values = np.zeros(pattern.n_states) if initial is None else np.where(ends, 0.0, initial)
    cheaper = risk.approximation() if initial is None else None
    while cheaper is not None and cheaper.fixed_entries() is None:
        cheaper = cheaper.approximation()
    if cheaper is not None:
        start = Bellman(pattern, cheaper, bellman.rewards, 1.0, policy)
        near = _Undiscounted(start, ends).solve(values, max_iterations)
        if math.isfinite(near.residual):
            values = near.best
    last = operator.solve(values, max_iterations)
    error = last.numerical_error
    found = None
    if math.isfinite(last.residual) and math.isfinite(error):
        found = operator.enclose(last, last.residual, max_iterations, upper=True, lower=True)
    longest: float = math.inf
    bound: float = math.inf
    if found is not None:
        low, high, longest = found
        apart = np.maximum(high - last.values, last.values - low)
        bound = float((apart + np.abs(last.best - last.values)).max())
    if isinstance(risk, CheckedRisk) and np.isfinite(last.targets).all():
        risk.require_contraction(last.targets)
    largest = float(np.abs(last.best).max())
    required = _required(bellman, last, tolerance, relative, longest)
    converged = bound <= required
    noise = min(FLOOR * largest, error) * (longest if math.isfinite(longest) else 0.0)
    width = 2.0 * (error + noise)
    q = last.q
    gap: float = 0.0
    chosen, pairs, tied = last.policy, bellman.pairs, np.zeros(pattern.n_states, dtype=bool)
    if policy is None:
        chosen, pairs, tied, given_away = linear.lowest_tied(q, last.best, width)
        gap = math.inf
        if found is not None:
            own = _Undiscounted(Bellman(pattern, risk, bellman.rewards, 1.0, chosen), ends)
            own.sweeps = operator.sweeps
            below = own.enclose(
                own.sweep(last.values),
                last.residual + given_away,
                max_iterations,
                upper=False,
                lower=True,
            )
            operator.sweeps = own.sweeps
            if below is not None:
                gap = max(float((found[1] - below[0]).max()), 0.0)
    elif all_actions:
        q, _ = bellman.backup(last.targets, pattern.pairs)
    basis = risk.basis
    status = (CONVERGED if basis == EXACT else basis) if converged else NOT_CONVERGED
    arrays = (last.best, q, chosen, tied)
    for array in arrays:
        array.flags.writeable = False
    solution = Solution(
        *arrays,
        residual=last.residual,
        error_bound=bound,
        policy_gap=gap,
        iterations=operator.sweeps,
        status=status,
        basis=basis,
        tolerance=required,
        tie_width=width,
        _pattern=pattern,
        _rows=partial(risk.rows, last.targets, q.reshape(-1), pairs),
    )
    return solution, longest


def _required(
    bellman: Bellman, sweep: Sweep, tolerance: float | None, relative: float, longest: float
) -> float:
    """The error bound that is good enough; by default as for a discounted problem."""
    if tolerance is not None:
        return tolerance
    largest = float(np.abs(sweep.best).max())
    wanted = max(relative * largest, TINY)
    if not math.isfinite(longest):
        return wanted
    wanted = max(wanted, 64.0 * TINY * longest)
    resolved = 8.0 * (sweep.numerical_error + FLOOR * sweep.size) * longest
    if resolved <= wanted:
        return wanted
    return max(wanted, min(resolved, coarsest(bellman, sweep.pairs, largest)))


def failure_with_ends(solution: Solution, longest: float, max_iterations: int) -> str:
    """Say why an undiscounted plan failed and what to do."""
    text = (
        f"error bound {solution.error_bound:.3g} after {solution.iterations} sweeps, tolerance "
        f"{solution.tolerance:.3g} (residual {solution.residual:.3g}, discount 1): "
    )
    remedy = "give a horizon, or a discount below 1"
    if solution.iterations >= max_iterations:
        return text + f"raise max_iterations={max_iterations}, {remedy}"
    if not any(map(math.isfinite, (solution.error_bound, longest))):
        return text + (
            "the solution could not be enclosed, because the time to the end is too long under "
            f"the risk-adjusted rows, or arithmetic cannot resolve it; {remedy}"
        )
    return text + (
        f"arithmetic cannot resolve more with a time to the end of up to {longest:.3g} steps; "
        f"loosen tolerance, {remedy}"
    )
