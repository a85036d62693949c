"""The solver of small problems with Dirichlet rows, compiled as a whole.

:mod:`brmdp.planning.fixed_point` is the specification: ``iterate``, ``refine`` and ``settle`` do
what ``iterate``, ``_refine`` and ``settle_ties`` do there, in the same order and with the same
numbers, for Newton's method. What is unusual is left to it: if the steps do not halve the residual
for long, ``solve`` says so, and nothing of what it did counts.

**Sweeps that compute only what may matter.** If :class:`Knowledge` of the pairs is passed on from
an earlier plan, a sweep computes exactly the pairs of the latest policy, and of the others those
that are not known to be worse. Known of a pair are a number z, a level p and the targets w at which
ρ_p(w) ≤ z was found: its value there, or a point z at which its distribution function exceeds p.
Measures are monotone in the targets and in the level, and translate with the targets, so as long as
the concentrations of the pair stay the same and its level is at most p,

    ρ(w') ≤ z + max_i (w'_i − w_i).

A pair of which this bound lies below the best value of its state by more than ties and error bounds
can bridge needs no value. Residual, error bound, greedy actions and ties are then those of a full
sweep. What the sweep says of such a pair is only the bound, and ``exact`` tells which are values.

A pair whose level has risen above p gets a new bound first: the distribution function halfway
between its estimated quantile and what it must stay below. That costs no more than its quantile,
and holds until its level has risen, or the targets have moved, by a good deal.

**The start** takes the values of the last plan: those of unchanged pairs are extended to where
Newton's method leads, those of changed pairs are computed first. Rows along the way are estimates
(the saddlepoint's, which cost a tenth of a value) plus corrections, which are computed when a row
or its level has changed and kept until then, as they hardly depend on the targets. Such a start is
often good enough for the first sweep to be the last. Whether it is, that sweep decides: nothing
rests on rows being right. Where it is not, the next step is made in the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brmdp._kernels import dirichlet, linear
from brmdp._kernels.compiled import apart, kernel
from brmdp._kernels.dirichlet import CVAR, EXACT, SADDLEPOINT, Rows, workspace

__all__ = ["CONVERGED", "FALLBACK", "Knowledge", "Task", "solve"]

# Constants of ``planning.bellman`` and ``planning.fixed_point``, which check that they agree.
FLOOR = 16.0 * 2.220446049250313e-16
PATIENCE = 10
COARSEST = 1e-3
RELATIVE = 1e-8
TINY = 1e-280
FINE = 1e-6
SETTLING_STEPS = 6
UNSTATED = 1e-11
COARSE_SHARPNESS = 1e-5
SHARPNESS = 1e-10

# Results of ``solve``.
FAILED = 0
CONVERGED = 1
FALLBACK = 2

# What is known of a pair: a bound, or its value.
BOUND = 0.0
VALUE = 1.0
# A step that is shorter than this, relative to max|V|, needs no rows along the way.
NEARBY = 1e-6
# A correction of a row will do as long as its level has not changed by more than this.
LASTING = 0.02


class Task(NamedTuple):
    """The problem: a measure of Dirichlet rows, rewards, discount, and the pairs to choose from."""

    measure: int
    rows: Rows
    next_states: NDArray[np.int64]
    rewards: NDArray[np.float64]
    discount: float
    n_actions: int
    pairs: NDArray[np.int64]
    absolute: float
    """Largest error bound, or a negative number for the default."""
    relative: float
    """The default, relative to max|V|."""


class Knowledge(NamedTuple):
    """What is known of every pair."""

    facts: NDArray[np.float64]
    """(pairs, 5): z, its error, the level p up to which it is a bound, the kind of fact, and the
    level at which the correction of its row was computed, 0 if it has none."""
    targets: NDArray[np.float64]
    """(transitions,) targets at which each was found."""
    corrections: NDArray[np.float64]
    """(transitions,) by how much risk-adjusted rows differ from their cheap estimates; for CVaR,
    which has none, the rows themselves."""


class Sweep(NamedTuple):
    """One application of the operator, as in ``planning.bellman``, and what was computed."""

    values: NDArray[np.float64]
    targets: NDArray[np.float64]
    q: NDArray[np.float64]
    policy: NDArray[np.int64]
    chosen: NDArray[np.int64]
    best: NDArray[np.float64]
    exact: NDArray[np.bool_]
    numbers: NDArray[np.float64]
    """Residual, size, numerical error."""


@kernel
def new_sweep(task, n):
    transitions = task.rewards.shape[0]
    return Sweep(
        np.empty(n),
        np.empty(transitions),
        np.empty((n, task.n_actions)),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n * task.n_actions, np.bool_),
        np.empty(3),
    )


@kernel
def copy_into(entries, out):
    """``out[:] = entries``, for which the compiler takes a second: it prepares an error message."""
    for i in range(out.shape[0]):
        out[i] = entries[i]


@kernel
def same_entries(one, other):
    same = one.shape[0] == other.shape[0]
    for i in range(one.shape[0] if same else 0):
        same = same and one[i] == other[i]
    return same


@kernel
def bound_of(task, sweep):
    """Bound on max|TV − V*|."""
    return (task.discount * sweep.numbers[0] + sweep.numbers[2]) / (1.0 - task.discount)


@kernel
def enough(task, absolute, sweep):
    """The error bound required at this sweep; see ``Accuracy.enough``."""
    if absolute >= 0.0:
        return absolute
    largest = 0.0
    for value in sweep.best:
        largest = max(largest, abs(value))
    wanted = max(task.relative * largest, TINY)
    resolved = 4.0 * (sweep.numbers[2] + FLOOR * sweep.numbers[1]) / (1.0 - task.discount)
    if resolved <= wanted:
        return wanted
    paid = 0.0
    for pair in sweep.chosen:
        for i in range(task.rows.indptr[pair], task.rows.indptr[pair + 1]):
            paid = max(paid, abs(task.rewards[i]))
    coarsest = max(COARSEST * largest, RELATIVE * paid)
    if largest == 0.0 and paid == 0.0:
        least = np.inf
        for reward in task.rewards:
            if reward != 0.0:
                least = min(least, abs(reward))
        coarsest = COARSEST * least if least < np.inf else 0.0
    return max(wanted, min(resolved, coarsest))


@kernel
def tie_width(task, sweep):
    """See ``fixed_point.tie_width``."""
    largest = 0.0
    for value in sweep.best:
        largest = max(largest, abs(value))
    error = sweep.numbers[2]
    noise = UNSTATED * largest if task.measure == SADDLEPOINT else min(FLOOR * largest, error)
    return 2.0 * (error + task.discount * noise / (1.0 - task.discount))


@kernel
def finish(sweep):
    residual, size = linear.greedy(sweep.q, sweep.values, sweep.policy, sweep.chosen, sweep.best)
    sweep.numbers[0] = residual
    sweep.numbers[1] = size


@apart
def full_sweep(task, measure, sharpness, pairs, values, sweep):
    """Apply the operator at ``values``, restricted to ``pairs``."""
    copy_into(values, sweep.values)
    linear.targets_into(task.rewards, task.next_states, task.discount, values, sweep.targets)
    sweep.q[:] = -np.inf
    scratch = workspace(task.rows.widest)
    row = np.empty(task.rows.widest)
    extra = np.empty(task.rows.widest)
    q = sweep.q.reshape(-1)
    worst = 0.0
    for pair in pairs:
        q[pair], error = dirichlet.evaluate_pair(
            measure, pair, task.rows, sweep.targets, sharpness, scratch, row, extra
        )
        worst = max(worst, error)
    sweep.numbers[2] = worst
    finish(sweep)


@apart
def newton(task, measure, sweep, precise):
    """V + d with (I − γP̂_π) d = TV − V."""
    pairs = sweep.chosen
    pointers = np.empty(pairs.shape[0] + 1, np.int64)
    linear.row_pointers(pairs, task.rows.indptr, pointers)
    rows = np.empty(pointers[-1])
    dirichlet.rows_of_pairs(
        measure, precise, pairs, task.rows, sweep.targets, sweep.q.reshape(-1), pointers, rows
    )
    return linear.newton_step(
        pairs,
        task.rows.indptr,
        task.next_states,
        rows,
        True,
        task.discount,
        sweep.values,
        sweep.best,
    )


@apart
def refine(task, measure, sharpness, absolute, values, pairs, max_sweeps, sweep):
    """Newton on T^π for the policy of ``pairs``; see ``fixed_point._refine``."""
    last = np.inf
    for spent in range(max_sweeps):
        full_sweep(task, measure, sharpness, pairs, values, sweep)
        required = enough(task, absolute, sweep) * (1.0 - task.discount)
        residual = sweep.numbers[0]
        if not residual <= task.discount * last:
            return sweep.best.copy(), spent + 1
        if residual <= required or residual <= FLOOR * sweep.numbers[1]:
            return sweep.best.copy(), spent + 1
        last = residual
        values = newton(task, measure, sweep, False)
        if last * last <= 1e-2 * required * sweep.numbers[1]:
            return values, spent + 1
    return values, max(max_sweeps, 0)


# --- sweeps that compute only what may matter -----------------------------------------------------


@apart
def compute(task, pair, guess, knowledge, sweep, scratch, row, extra):
    """Compute the value of a pair at the sweep's targets, perhaps from a guess, and remember it."""
    value = guess
    error = -1.0
    if task.measure == EXACT and np.isfinite(guess):
        value, error = dirichlet.quantile_beside(pair, task.rows, sweep.targets, guess, scratch)
    if not error >= 0.0:
        value, error = dirichlet.evaluate_pair(
            task.measure, pair, task.rows, sweep.targets, SHARPNESS, scratch, row, extra
        )
    sweep.q[pair // task.n_actions, pair % task.n_actions] = value
    sweep.exact[pair] = True
    sweep.numbers[2] = max(sweep.numbers[2], error)
    facts = knowledge.facts[pair]
    facts[0] = value
    facts[1] = error
    facts[2] = task.rows.levels[pair]
    facts[3] = VALUE
    for i in range(task.rows.indptr[pair], task.rows.indptr[pair + 1]):
        knowledge.targets[i] = sweep.targets[i]


@kernel
def upper_bound(task, pair, knowledge, targets):
    """What is known to exceed the pair's value at these targets; infinite if nothing is."""
    facts = knowledge.facts[pair]
    if not task.rows.levels[pair] <= facts[2]:
        return np.inf
    moved = -np.inf
    for i in range(task.rows.indptr[pair], task.rows.indptr[pair + 1]):
        moved = max(moved, targets[i] - knowledge.targets[i])
    bound = facts[0] + facts[1] + moved
    return bound + 4.0 * dirichlet.EPS * (abs(bound) + abs(moved))


@apart
def bounded_halfway(task, pair, knowledge, sweep, limit, scratch):
    """Try to find a point below ``limit`` that the pair's quantile does not exceed.

    Returns whether there is one, which is then remembered.
    """
    z, level = dirichlet.halfway_below(pair, task.rows, sweep.targets, limit, scratch)
    if not level >= task.rows.levels[pair]:
        return False
    facts = knowledge.facts[pair]
    # its error stays: that of its value, which counts among the errors of a sweep
    facts[0] = z
    facts[2] = level
    facts[3] = BOUND
    for i in range(task.rows.indptr[pair], task.rows.indptr[pair + 1]):
        knowledge.targets[i] = sweep.targets[i]
    sweep.q[pair // task.n_actions, pair % task.n_actions] = z
    return True


@apart
def lazy_sweep(task, guess, knowledge, values, sweep):
    """Apply the operator at ``values``; ``guess`` is a pair of each state that may be best."""
    scratch = workspace(task.rows.widest)
    row = np.empty(task.rows.widest)
    extra = np.empty(task.rows.widest)
    copy_into(values, sweep.values)
    linear.targets_into(task.rewards, task.next_states, task.discount, values, sweep.targets)
    sweep.q[:] = -np.inf
    sweep.exact[:] = False
    sweep.numbers[2] = 0.0
    for pair in guess:
        # after a step of Newton's method, a pair is expected to keep its state's value
        value = values[pair // task.n_actions]
        compute(task, pair, value, knowledge, sweep, scratch, row, extra)
    # A full sweep's error is the largest of all pairs. Of those not computed, the last is known.
    for pair in task.pairs:
        if not sweep.exact[pair] and knowledge.facts[pair, 2] > 0.0:
            sweep.numbers[2] = max(sweep.numbers[2], knowledge.facts[pair, 1])
    finish(sweep)
    slack = 4.0 * (enough(task, task.absolute, sweep) + tie_width(task, sweep))
    compute_within(task, slack, knowledge, sweep, scratch, row, extra)


@apart
def compute_within(task, slack, knowledge, sweep, scratch, row, extra):
    """Compute all pairs that are not known to be worse than the best by more than ``slack``."""
    for pair in task.pairs:
        if sweep.exact[pair]:
            continue
        s = pair // task.n_actions
        a = pair % task.n_actions
        limit = sweep.best[s] - slack
        sweep.q[s, a] = upper_bound(task, pair, knowledge, sweep.targets)
        if sweep.q[s, a] < limit:
            continue
        facts = knowledge.facts[pair]
        risen = 0.0 < facts[2] < task.rows.levels[pair]
        if not (
            risen
            and task.measure == EXACT
            and bounded_halfway(task, pair, knowledge, sweep, limit, scratch)
        ):
            compute(task, pair, np.nan, knowledge, sweep, scratch, row, extra)
            sweep.best[s] = max(sweep.best[s], sweep.q[s, a])
    finish(sweep)


@apart
def cheap_rows(task, pairs, targets, q, out):
    """Estimates of rows, each at its own place in ``out``; nothing for CVaR."""
    if task.measure != CVAR:
        dirichlet.rows_of_pairs(
            task.measure, False, pairs, task.rows, targets, q, task.rows.indptr[pairs], out
        )


@kernel
def extended(task, guess, knowledge, slopes, targets, out):
    """Values of the pairs of ``guess``, extended linearly from what is known to ``targets``."""
    for pair in guess:
        total = knowledge.facts[pair, 0]
        for i in range(task.rows.indptr[pair], task.rows.indptr[pair + 1]):
            total += (slopes[i] + knowledge.corrections[i]) * (targets[i] - knowledge.targets[i])
        out[pair] = total


@kernel
def step_along(task, guess, knowledge, slopes, values, q):
    """Newton's step from ``values`` with the rows ``slopes`` + corrections."""
    best = np.empty(guess.shape[0])
    for s in range(guess.shape[0]):
        best[s] = q[guess[s]]
    return linear.newton_step(
        guess,
        task.rows.indptr,
        task.next_states,
        slopes + knowledge.corrections,
        False,
        task.discount,
        values,
        best,
    )


@apart
def know_better(task, guess, knowledge, sweep):
    """Make sure that the values of ``guess`` are known, and replace a pair that is worse now."""
    scratch = workspace(task.rows.widest)
    row = np.empty(task.rows.widest)
    extra = np.empty(task.rows.widest)
    chooses = task.pairs.shape[0] > guess.shape[0]
    for s in range(guess.shape[0]):
        facts = knowledge.facts[guess[s]]
        if facts[3] == VALUE and facts[2] == task.rows.levels[guess[s]]:
            continue
        compute(task, guess[s], np.nan, knowledge, sweep, scratch, row, extra)
        best = facts[0]
        for pair in range(s * task.n_actions, (s + 1) * task.n_actions):
            possible = chooses and task.rows.indptr[pair + 1] > task.rows.indptr[pair]
            if not possible or pair == guess[s]:
                continue
            bound = upper_bound(task, pair, knowledge, sweep.targets)
            if best < bound < np.inf:
                compute(task, pair, np.nan, knowledge, sweep, scratch, row, extra)
                if knowledge.facts[pair, 0] > best:
                    best = knowledge.facts[pair, 0]
                    guess[s] = pair


@apart
def predicted(task, guess, knowledge, values, fresh, sweep):
    """The values of the policy of ``guess``, from what is known of its rows, near ``values``.

    Rows are integrated along the way by the trapezoidal rule, so the error is of third order, apart
    from that of the corrections. ``fresh`` says that rows without cheap estimates must be computed
    again. ``guess`` may change; ``sweep`` only lends its memory.
    """
    slopes = np.zeros(task.rewards.shape[0])
    indptr = task.rows.indptr
    targets = sweep.targets
    q = sweep.q.reshape(-1)
    linear.targets_into(task.rewards, task.next_states, task.discount, values, targets)
    know_better(task, guess, knowledge, sweep)
    bare = np.empty(guess.shape[0], np.int64)
    count = 0
    for pair in guess:
        facts = knowledge.facts[pair]
        q[pair] = facts[0]
        lasting = abs(facts[4] - task.rows.levels[pair]) <= LASTING
        if not lasting or (fresh and task.measure == CVAR):
            bare[count] = pair
            count += 1
    bare = bare[:count]
    cheap_rows(task, guess, knowledge.targets, q, slopes)
    dirichlet.rows_of_pairs(
        task.measure,
        True,
        bare,
        task.rows,
        knowledge.targets,
        q,
        indptr[bare],
        knowledge.corrections,
    )
    for pair in bare:
        knowledge.facts[pair, 4] = task.rows.levels[pair]
        for i in range(indptr[pair], indptr[pair + 1]):
            knowledge.corrections[i] -= slopes[i]
    extended(task, guess, knowledge, slopes, targets, q)
    following = step_along(task, guess, knowledge, slopes, values, q)
    moved = 0.0
    size = 0.0
    for s in range(values.shape[0]):
        moved = max(moved, abs(following[s] - values[s]))
        size = max(size, abs(following[s]))
    if task.measure != CVAR and moved > NEARBY * size:
        linear.targets_into(task.rewards, task.next_states, task.discount, following, targets)
        extended(task, guess, knowledge, slopes, targets, q)
        there = np.zeros(slopes.shape[0])
        cheap_rows(task, guess, targets, q, there)
        for i in range(slopes.shape[0]):
            slopes[i] = 0.5 * (slopes[i] + there[i])
        extended(task, guess, knowledge, slopes, targets, q)
        following = step_along(task, guess, knowledge, there, following, q)
    for value in following:
        if not np.isfinite(value):
            return values
    return following


@kernel
def forget_changed(task, phi, knowledge):
    """Forget what is known of pairs with other concentrations."""
    rows = task.rows
    for pair in range(rows.levels.shape[0]):
        n = rows.indptr[pair + 1] - rows.indptr[pair]
        begin = rows.offsets[pair]
        for i in range(begin, begin + n):
            if rows.phi[i] != phi[i]:
                knowledge.facts[pair, 2] = 0.0
                knowledge.facts[pair, 3] = BOUND
                knowledge.facts[pair, 4] = 0.0
                break


# --- the iteration --------------------------------------------------------------------------------
# Without knowledge, ``knowledge`` is None. That is a type of its own, for which the compiler leaves
# out what follows "is not None": a plan that remembers nothing does not wait for lazy sweeps to be
# compiled.


@apart
def apply(task, measure, sharpness, knowledge, guess, values, sweep):
    if knowledge is None:
        full_sweep(task, measure, sharpness, task.pairs, values, sweep)
    else:
        lazy_sweep(task, guess, knowledge, values, sweep)


@apart
def iterate(
    task, measure, sharpness, absolute, knowledge, values, known, has_known, most, now, other
):
    """Iterate from ``values``; see ``fixed_point.iterate``.

    ``known`` are the pairs of a good policy, if there is one; with knowledge there always is.
    Returns the last accepted sweep, the other one, the number of sweeps, the required bound and
    CONVERGED, FAILED or FALLBACK.
    """
    discount = task.discount
    sweeps = 0
    guess = known
    if knowledge is None and has_known:
        values, sweeps = refine(task, measure, sharpness, absolute, values, known, most - 1, now)
    apply(task, measure, sharpness, knowledge, guess, values, now)
    sweeps += 1
    slow = 0
    while True:
        tolerance = enough(task, absolute, now)
        residual, size, error = now.numbers
        converged = bound_of(task, now) <= tolerance
        stuck = not np.isfinite(residual) or residual <= FLOOR * size
        hopeless = residual <= error and error > tolerance * (1.0 - discount)
        if converged or stuck or hopeless or sweeps >= most:
            return now, other, sweeps, tolerance, CONVERGED if converged else FAILED
        if slow >= PATIENCE:
            return now, other, sweeps, tolerance, FALLBACK
        guess = now.chosen.copy()
        if knowledge is None:
            values = newton(task, measure, now, False)
            if has_known and same_entries(known, now.chosen):
                values, spent = refine(
                    task,
                    measure,
                    sharpness,
                    absolute,
                    values,
                    guess,
                    most - sweeps - 1,
                    other,
                )
                sweeps += spent
            known = guess
            has_known = True
        else:
            values = predicted(task, guess, knowledge, now.values, True, other)
        apply(task, measure, sharpness, knowledge, guess, values, other)
        sweeps += 1
        last_chance = sweeps >= most
        slow += not other.numbers[0] <= 0.5 * residual
        if other.numbers[0] <= (1.0 if last_chance else discount) * residual:
            now, other = other, now
            continue
        if last_chance:
            return now, other, sweeps, tolerance, FAILED
        values = now.best.copy()
        apply(task, measure, sharpness, knowledge, guess, values, now)
        sweeps += 1


@apart
def settle(task, knowledge, now, other, sweeps, tolerance, most):
    """Newton down to rounding while ties are in doubt; see ``fixed_point.settle_ties``.

    Returns the sweep to keep and the number of sweeps.
    """
    discount = task.discount
    kept = now
    if tolerance > FINE * now.numbers[1]:
        return kept, sweeps
    for _ in range(min(SETTLING_STEPS, most - sweeps)):
        in_doubt = tie_width(task, now) + 2.0 * bound_of(task, now)
        if knowledge is not None:
            compute_unclear(task, in_doubt, knowledge, now)
        size = now.numbers[1]
        if now.numbers[0] <= 0.25 * FLOOR * size or not linear.any_rival(now.q, now.best, in_doubt):
            break
        values = newton(task, task.measure, now, True)
        moved = 0.0
        for s in range(values.shape[0]):
            moved = max(moved, abs(values[s] - now.values[s]))
        if moved <= 0.25 * FLOOR * size / (1.0 - discount):
            break
        guess = now.chosen.copy()
        # the other one is now or of no use any more
        apply(task, task.measure, SHARPNESS, knowledge, guess, values, other)
        sweeps += 1
        if bound_of(task, other) <= tolerance:
            kept, other = other, kept
            now = kept
        else:
            now = other
    return kept, sweeps


@kernel
def compute_unclear(task, slack, knowledge, sweep):
    """Compute the pairs whose bound, and nothing else, leaves them within ``slack`` of the best.

    Returns whether there were any.
    """
    unclear = False
    for pair in task.pairs:
        s = pair // task.n_actions
        if not sweep.exact[pair]:
            a = pair % task.n_actions
            unclear = unclear or sweep.q[s, a] >= sweep.best[s] - slack
    if unclear:
        widest = task.rows.widest
        compute_within(
            task,
            slack,
            knowledge,
            sweep,
            workspace(widest),
            np.empty(widest),
            np.empty(widest),
        )
    return unclear


@kernel
def near_best(sweep, slack):
    """The pairs whose values are within ``slack`` of the best."""
    q = sweep.q
    found = np.empty(q.size, np.int64)
    count = 0
    for s in range(q.shape[0]):
        for a in range(q.shape[1]):
            if q[s, a] >= sweep.best[s] - slack:
                found[count] = s * q.shape[1] + a
                count += 1
    return found[:count].copy()


@kernel
def solve(task, values, start, cheaper, coarse, coarse_sweeps, settles, most, phi, knowledge):
    """Solve a problem from ``values``.

    Parameters
    ----------
    task : Task
    values : (S,) array
    start : pairs
        With ``knowledge``, the policy of the last plan.
    cheaper : int
        The measure to solve first, to the error bound ``coarse`` or for ``coarse_sweeps``; negative
        for none. With ``knowledge``, that is not done.
    settles : bool
        Whether to settle ties and choose among tied actions; not for a policy's own pairs.
    most : int
        Largest number of sweeps.
    phi : array
        The concentrations of the last plan.
    knowledge : Knowledge or None
        What the last plan left behind, if anything. It is brought up to date.

    Returns
    -------
    (CONVERGED, FAILED or FALLBACK, number of sweeps, required bound, fields of the last Sweep,
    (lowest-index policy among ties, its pairs, tied states, largest loss), width of a tie)
    """
    n = values.shape[0]
    now = new_sweep(task, n)
    other = new_sweep(task, n)
    known = start
    has_known = False
    state = CONVERGED
    if knowledge is None:
        if cheaper >= 0:
            now, other, _, _, state = iterate(
                task,
                cheaper,
                COARSE_SHARPNESS,
                coarse,
                knowledge,
                values,
                start,
                has_known,
                coarse_sweeps,
                now,
                other,
            )
            if np.isfinite(now.numbers[0]):
                values = now.best.copy()
                known = near_best(now, coarse)
                has_known = True
    else:
        forget_changed(task, phi, knowledge)
        known = start.copy()
        has_known = True
        values = predicted(task, known, knowledge, values, False, other)
    sweeps = 0
    tolerance = 0.0
    if state != FALLBACK:
        now, other, sweeps, tolerance, state = iterate(
            task,
            task.measure,
            SHARPNESS,
            task.absolute,
            knowledge,
            values,
            known,
            has_known,
            most,
            now,
            other,
        )
    if state == CONVERGED and settles:
        now, sweeps = settle(task, knowledge, now, other, sweeps, tolerance, most)
    width = tie_width(task, now)
    if knowledge is not None:
        # what is computed may have a larger error, and make ties wider
        while compute_unclear(task, width, knowledge, now):
            width = tie_width(task, now)
        # only a plan that computes everything may fail
        if state == FAILED or not bound_of(task, now) <= tolerance:
            state = FALLBACK
    ties = linear.lowest_tied(now.q, now.best, width)
    # Not as a Sweep: numba calls Python to make one, and crashes if Ctrl-C arrives there.
    last = (
        now.values,
        now.targets,
        now.q,
        now.policy,
        now.chosen,
        now.best,
        now.exact,
        now.numbers,
    )
    return state, sweeps, tolerance, last, ties, width
