"""Loops over compressed rows: sums, greedy actions, linear systems, statistics of scenarios."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from brmdp._kernels.compiled import kernel


@kernel
def targets_into(rewards, next_states, discount, values, out):
    """Targets w = r + γV(s') of all possible transitions."""
    for i in range(rewards.shape[0]):
        out[i] = rewards[i] + discount * values[next_states[i]]


@kernel
def weighted_sums(pairs, indptr, probabilities, targets, out):
    """out[pair] = Σ probabilities · targets; returns the largest |target|."""
    largest = 0.0
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        total = 0.0
        for i in range(indptr[pair], indptr[pair + 1]):
            total += probabilities[i] * targets[i]
            largest = max(largest, abs(targets[i]))
        out[pair] = total
    return largest


@kernel
def greedy(q, values, policy, pairs, best):
    """Lowest-index maximiser of each row of q, its pair and its value.

    Returns max |best − values| and the largest of all |best| and |values|.
    """
    worst = 0.0
    size = 0.0
    for s in range(q.shape[0]):
        action = 0
        for a in range(1, q.shape[1]):
            if q[s, a] > q[s, action]:
                action = a
        policy[s] = action
        pairs[s] = s * q.shape[1] + action
        best[s] = q[s, action]
        gap = abs(best[s] - values[s])
        # written so that NaN is not lost
        worst = worst if gap <= worst else gap
        size = max(size, abs(best[s]), abs(values[s]))
    return worst, size


# LAPACK's dgesv as numba's own np.linalg.solve calls it. That takes three seconds to compile, most
# of them for the text of an error message that cannot occur here.
_GESV: Any = types.ExternalFunction(
    "numba_xgesv",
    types.intc(
        types.char,
        types.intp,
        types.intp,
        types.CPointer(types.float64),
        types.intp,
        types.CPointer(types.int64),
        types.CPointer(types.float64),
        types.intp,
    ),
)
_DOUBLE = ord("d")


def solve(matrix, right):
    """Solve matrix·x = right by LAPACK."""
    return np.linalg.solve(matrix, right)


@overload(solve)
def _compiled_solve(matrix, right):
    def call(matrix, right):
        n = right.shape[0]
        columns = np.empty((n, n))
        solution = np.empty(n)
        doubtful = 0.0
        for i in range(n):
            solution[i] = right[i]
            doubtful += 0.0 * right[i]
            for j in range(n):
                columns[j, i] = matrix[i, j]
                doubtful += 0.0 * matrix[i, j]
        if doubtful != 0.0:
            raise np.linalg.LinAlgError("the linear system has entries that are not finite")
        # room for pivots of either width
        pivots = np.empty(n, np.int64)
        status = _GESV(_DOUBLE, n, 1, columns.ctypes, n, pivots.ctypes, solution.ctypes, n)
        # the sizes keep numba from releasing the arrays before LAPACK has used them
        if status != 0 or pivots.size + columns.size < 0:
            raise np.linalg.LinAlgError("the linear system is singular")
        return solution

    return call


# Up to this size, plain elimination is faster than a call to LAPACK.
SMALL = 48


@kernel
def eliminate(matrix, right):
    """Solve matrix·x = right for a matrix I − γP; a small system is overwritten.

    The matrix is strictly diagonally dominant by rows, so no pivoting is needed.
    """
    n = right.shape[0]
    if n > SMALL:
        return solve(matrix, right)
    for k in range(n):
        inverse = 1.0 / matrix[k, k]
        for i in range(k + 1, n):
            factor = matrix[i, k] * inverse
            if factor != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= factor * matrix[k, j]
                right[i] -= factor * right[k]
    for k in range(n - 1, -1, -1):
        total = right[k]
        for j in range(k + 1, n):
            total -= matrix[k, j] * right[j]
        right[k] = total / matrix[k, k]
    return right


@kernel
def newton_step(pairs, indptr, next_states, rows, packed, discount, values, best):
    """Solve (I − γP̂) d = best − values for one pair per state; returns values + d.

    ``rows`` holds the rows of ``pairs`` one after another if ``packed``, else those of all pairs.
    """
    n = pairs.shape[0]
    matrix = np.zeros((n, n))
    gap = np.empty(n)
    position = 0
    for s in range(n):
        matrix[s, s] = 1.0
        gap[s] = best[s] - values[s]
        begin = indptr[pairs[s]]
        if not packed:
            position = begin
        for i in range(begin, indptr[pairs[s] + 1]):
            matrix[s, next_states[i]] -= discount * rows[position]
            position += 1
    return values + eliminate(matrix, gap)


@kernel
def policy_iteration(
    pairs, indptr, next_states, probabilities, rewards, discount, n_actions, values, most, floor
):
    """Policy iteration for one kernel, from ``values``.

    It ends when the policy repeats, when the residual is mere rounding, or after ``most`` rounds.
    ``pairs`` are the actions to choose from, state after state. Returns the values of the last
    policy and the number of rounds.
    """
    n = values.shape[0]
    chosen = np.full(n, -1)
    paid = np.empty(n)
    best = np.empty(n)
    for rounds in range(most):
        before = chosen.copy()
        best[:] = -np.inf
        for position in range(pairs.shape[0]):
            pair = pairs[position]
            expected = 0.0
            total = 0.0
            for i in range(indptr[pair], indptr[pair + 1]):
                expected += probabilities[i] * rewards[i]
                total += probabilities[i] * values[next_states[i]]
            total = expected + discount * total
            s = pair // n_actions
            if total > best[s]:
                best[s] = total
                chosen[s] = pair
                paid[s] = expected
        residual = 0.0
        size = 0.0
        same = True
        for s in range(n):
            residual = max(residual, abs(best[s] - values[s]))
            size = max(size, abs(best[s]))
            same = same and chosen[s] == before[s]
        if same or residual <= floor * size:
            return values, rounds
        matrix = np.zeros((n, n))
        for s in range(n):
            matrix[s, s] = 1.0
            for i in range(indptr[chosen[s]], indptr[chosen[s] + 1]):
                matrix[s, next_states[i]] -= discount * probabilities[i]
        values = eliminate(matrix, paid.copy())
    return values, most


@kernel
def constant_parts(pairs, indptr, next_states, rows, discount, values, q, out):
    """out[pair] = q[pair] − γ Σ rows · V: the immediate reward of the linearised backup."""
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        total = 0.0
        for i in range(indptr[pair], indptr[pair + 1]):
            total += rows[i] * values[next_states[i]]
        out[pair] = q[pair] - discount * total


@kernel
def solve_for_itself(pair, s, indptr, next_states, rows, paid, discount, values):
    """V(s) if this pair is used until the state is left, with all other values fixed."""
    own = 0.0
    total = 0.0
    for i in range(indptr[pair], indptr[pair + 1]):
        if next_states[i] == s:
            own += rows[i]
        else:
            total += rows[i] * values[next_states[i]]
    return (paid[pair] + discount * total) / (1.0 - discount * own)


@kernel
def relax(pairs, indptr, next_states, rows, paid, discount, n_actions, values, chosen, most):
    """Gauss–Seidel sweeps up and down the states, in place.

    They end when no state changes its action, or after ``most`` sweeps each way. In one sweep,
    information travels any distance along the order of the states or against it. ``pairs`` are
    sorted; ``chosen`` holds the pair of each state.
    """
    count = pairs.shape[0]
    for _ in range(most):
        changes = 0
        for direction in range(2):
            done = 0
            while done < count:
                first = pairs[done] if direction == 0 else pairs[count - 1 - done]
                s = first // n_actions
                best = -np.inf
                action = first
                while done < count:
                    pair = pairs[done] if direction == 0 else pairs[count - 1 - done]
                    if pair // n_actions != s:
                        break
                    done += 1
                    value = solve_for_itself(
                        pair, s, indptr, next_states, rows, paid, discount, values
                    )
                    if value > best:
                        best = value
                        action = pair
                values[s] = best
                if chosen[s] != action:
                    chosen[s] = action
                    changes += 1
        if changes == 0:
            return


@kernel
def best_pairs(pairs, indptr, next_states, rows, paid, discount, n_actions, values, chosen, best):
    """Greedy pairs and backups of a linear problem; returns max |best − values| and max |best|."""
    best[:] = -np.inf
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        total = 0.0
        for i in range(indptr[pair], indptr[pair + 1]):
            total += rows[i] * values[next_states[i]]
        total = paid[pair] + discount * total
        s = pair // n_actions
        if total > best[s]:
            best[s] = total
            chosen[s] = pair
    residual = 0.0
    size = 0.0
    for s in range(values.shape[0]):
        residual = max(residual, abs(best[s] - values[s]))
        size = max(size, abs(best[s]))
    return residual, size


@kernel
def policy_values(policies, indptr, next_states, probabilities, rewards, discount):
    """Values of policies, each given by its pairs: (n, S) in, (n, S) out."""
    count, n = policies.shape
    out = np.empty((count, n))
    paid = np.empty(n)
    matrix = np.empty((n, n))
    for k in range(count):
        matrix[:] = 0.0
        for s in range(n):
            matrix[s, s] = 1.0
            paid[s] = 0.0
            for i in range(indptr[policies[k, s]], indptr[policies[k, s] + 1]):
                matrix[s, next_states[i]] -= discount * probabilities[i]
                paid[s] += probabilities[i] * rewards[i]
        out[k] = eliminate(matrix, paid)
    return out


@kernel
def values_in_kernels(chosen, indptr, next_states, kernels, rewards, discount, out, gaps, sizes):
    """Values of policies in many kernels, (n, K, S), the residuals of each, and the sizes behind.

    Row ``chosen[k, s]`` is what policy k uses in state s. ``kernels`` are (n, entries), and
    ``rewards`` the same or (1, entries). ``gaps`` and ``sizes`` receive, (n, K), the largest
    |backup − value|, and the largest reward and value behind it, |r| + γ|V|.
    """
    count, n_policies, n = out.shape
    matrix = np.empty((n, n))
    right = np.empty(n)
    for m in range(count):
        drawn = kernels[m]
        paid = rewards[m if rewards.shape[0] > 1 else 0]
        for k in range(n_policies):
            largest = 0.0
            for s in range(n):
                for t in range(n):
                    matrix[s, t] = 0.0
                matrix[s, s] = 1.0
                right[s] = 0.0
                for i in range(indptr[chosen[k, s]], indptr[chosen[k, s] + 1]):
                    matrix[s, next_states[i]] -= discount * drawn[i]
                    right[s] += drawn[i] * paid[i]
                    largest = max(largest, abs(paid[i]))
            values = eliminate(matrix, right)
            gap = 0.0
            size = 0.0
            for s in range(n):
                backup = 0.0
                for i in range(indptr[chosen[k, s]], indptr[chosen[k, s] + 1]):
                    backup += drawn[i] * (paid[i] + discount * values[next_states[i]])
                out[m, k, s] = values[s]
                off = abs(backup - values[s])
                # written so that NaN is not lost
                gap = gap if off <= gap else off
                size = max(size, abs(values[s]))
            gaps[m, k] = gap
            sizes[m, k] = largest + discount * size


@kernel
def optima_in_kernels(
    pairs, indptr, next_states, kernels, rewards, discount, n_actions, start, most, floor, out, gaps
):
    """Optimal values in many kernels, (n, S), by policy iteration from ``start``.

    ``gaps`` receives, (n, 2), the largest |backup − value| and the largest target of each.
    """
    best = np.empty(start.shape[0])
    for m in range(kernels.shape[0]):
        drawn = kernels[m]
        paid = rewards[m if rewards.shape[0] > 1 else 0]
        values, _ = policy_iteration(
            pairs,
            indptr,
            next_states,
            drawn,
            paid,
            discount,
            n_actions,
            start.copy(),
            most,
            floor,
        )
        best[:] = -np.inf
        size = 0.0
        for position in range(pairs.shape[0]):
            pair = pairs[position]
            total = 0.0
            for i in range(indptr[pair], indptr[pair + 1]):
                target = paid[i] + discount * values[next_states[i]]
                total += drawn[i] * target
                size = max(size, abs(target))
            best[pair // n_actions] = max(best[pair // n_actions], total)
        gap = 0.0
        for s in range(best.shape[0]):
            out[m, s] = values[s]
            off = abs(best[s] - values[s])
            gap = gap if off <= gap else off
        gaps[m, 0] = gap
        gaps[m, 1] = size


@kernel
def any_rival(q, best, slack):
    """Whether some state has more than one action within ``slack`` of the best."""
    for s in range(q.shape[0]):
        near = 0
        for a in range(q.shape[1]):
            near += q[s, a] >= best[s] - slack
        if near > 1:
            return True
    return False


@kernel
def lowest_tied(q, best, slack):
    """Lowest-index action within ``slack`` of the best in each state.

    Returns these actions, their pairs, whether other actions are tied, and the largest loss.
    """
    n, actions = q.shape
    policy = np.empty(n, np.int64)
    pairs = np.empty(n, np.int64)
    tied = np.zeros(n, np.bool_)
    given_away = 0.0
    for s in range(n):
        found = -1
        for a in range(actions):
            if q[s, a] >= best[s] - slack:
                if found < 0:
                    found = a
                else:
                    tied[s] = True
        # no action compares as good only if the values are no longer finite
        found = max(found, 0)
        policy[s] = found
        pairs[s] = s * actions + found
        given_away = max(given_away, best[s] - q[s, found])
    return policy, pairs, tied, given_away


@kernel
def normalise_rows(entries, widths):
    """Divide consecutive rows of the given widths by their sums, in place, for (n, entries)."""
    for k in range(entries.shape[0]):
        begin = 0
        for width in widths:
            total = 0.0
            for i in range(begin, begin + width):
                total += entries[k, i]
            for i in range(begin, begin + width):
                entries[k, i] /= total
            begin += width


@kernel
def copy_rows(pairs, indptr, entries, out):
    """Entries of the given pairs, one after another."""
    position = 0
    for p in range(pairs.shape[0]):
        for i in range(indptr[pairs[p]], indptr[pairs[p] + 1]):
            out[position] = entries[i]
            position += 1


@kernel
def row_sums(indptr, entries, out):
    """Sum of the entries of every pair."""
    for pair in range(out.shape[0]):
        total = 0.0
        for i in range(indptr[pair], indptr[pair + 1]):
            total += entries[i]
        out[pair] = total


@kernel
def shares_of_rows(indptr, entries, out):
    """Entries divided by the sums of their rows."""
    for pair in range(indptr.shape[0] - 1):
        total = 0.0
        for i in range(indptr[pair], indptr[pair + 1]):
            total += entries[i]
        for i in range(indptr[pair], indptr[pair + 1]):
            out[i] = entries[i] / total


@kernel
def times_rows(first, last, pointers, columns, rows, x, out):
    """The product Px, in ``out``, for the states from ``first`` up to ``last``."""
    for s in range(first, last):
        total = 0.0
        for i in range(pointers[s], pointers[s + 1]):
            total += rows[i] * x[columns[i]]
        out[s] = total


@kernel
def row_pointers(pairs, indptr, out):
    """CSR pointers of the rows of the given pairs, one after another."""
    out[0] = 0
    for p in range(pairs.shape[0]):
        out[p + 1] = out[p] + indptr[pairs[p] + 1] - indptr[pairs[p]]


@kernel
def scenario_values(pair, indptr, entries, targets, out):
    """w·P^k for every scenario k at one pair."""
    for k in range(entries.shape[0]):
        total = 0.0
        for i in range(indptr[pair], indptr[pair + 1]):
            total += entries[k, i] * targets[i]
        out[k] = total


@kernel
def scenario_shares(values, weights, level, lower_tail, tolerance, shares):
    """Share of each scenario in the left quantile (one scenario) or in the lower-tail mean."""
    order = np.argsort(values)
    shares[:] = 0.0
    before = 0.0
    for position in range(order.shape[0]):
        k = order[position]
        if weights[k] <= 0.0:
            continue
        reached = before + weights[k] >= level - tolerance
        if lower_tail:
            shares[k] = min(weights[k], max(level - before, 0.0)) if reached else weights[k]
        elif reached:
            shares[k] = 1.0
        before += weights[k]
        if reached:
            break
    total = 0.0
    for k in range(shares.shape[0]):
        total += shares[k]
    for k in range(shares.shape[0]):
        shares[k] /= total


@kernel
def scenario_measure(pairs, indptr, entries, weights, targets, levels, lower_tail, tolerance, out):
    """Quantile or lower-tail mean over scenarios for each pair."""
    values = np.empty(weights.shape[0])
    shares = np.empty(weights.shape[0])
    for position in range(pairs.shape[0]):
        pair = pairs[position]
        scenario_values(pair, indptr, entries, targets, values)
        scenario_shares(values, weights, levels[pair], lower_tail, tolerance, shares)
        total = 0.0
        for k in range(shares.shape[0]):
            if shares[k] > 0.0:
                total += shares[k] * values[k]
        out[pair] = total


@kernel
def scenario_rows(pairs, indptr, entries, weights, targets, levels, lower_tail, tolerance, out):
    """Risk-adjusted rows over scenarios, one after another."""
    values = np.empty(weights.shape[0])
    shares = np.empty(weights.shape[0])
    position = 0
    for p in range(pairs.shape[0]):
        pair = pairs[p]
        scenario_values(pair, indptr, entries, targets, values)
        scenario_shares(values, weights, levels[pair], lower_tail, tolerance, shares)
        for i in range(indptr[pair], indptr[pair + 1]):
            out[position] = 0.0
            for k in range(shares.shape[0]):
                out[position] += shares[k] * entries[k, i]
            position += 1
