"""The continuous-state agent: a belief, a risk measure, a level schedule and a restart rule.

At the start of each pseudo-episode it updates its belief, draws parameters from it, fixes the rule
that gives every state its levels, and fits the network to the risk-adjusted targets, starting from
the last fit. Until the pseudo-episode ends, it takes greedy actions for that network (the paper's
algorithm "Continuous-State AQ-BRMDP with Neural Fitted Q Approximation"). Every method is a choice
of parts; see :mod:`brmdp.continuous.presets`.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import os
from dataclasses import dataclass
from typing import Any, Self

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from brmdp._streams import independent_streams, stream_from_state, stream_state
from brmdp._validation import (
    FloatArray,
    IntArray,
    Seed,
    as_discount,
    as_float_array,
    as_index,
    as_json,
    as_level,
    as_number,
)
from brmdp.agents import Progress, RestartRule
from brmdp.agents.episodic import (
    MAX_PARTS_LENGTH,
    EpisodicAgent,
    Record,
    Working,
    arrays_with_prefix,
    check_restart,
    corrupt_if_undecodable,
    make_record,
)
from brmdp.agents.parts import build_part, describe_belief, describe_part, require_foreign_parts
from brmdp.beliefs.storage import corrupt_if_invalid, load_arrays
from brmdp.continuous.belief import LakeBelief
from brmdp.continuous.fitted_q import (
    Learner,
    Ranks,
    fit,
    initial_learner,
    q_values,
    targets,
    uncertainty,
)
from brmdp.continuous.lake_model import LakeModel
from brmdp.continuous.model import ParametricBelief, ParametricModel
from brmdp.continuous.network import Network, initial_network
from brmdp.continuous.schedule import UncertaintyLevel
from brmdp.continuous.settings import FittedQ
from brmdp.errors import ConvergenceError, InvalidInputError
from brmdp.risk import Mean, MonteCarlo, PosteriorSample, Quantile
from brmdp.risk.monte_carlo import order_statistic_rank

__all__ = ["ContinuousActionReport", "ContinuousAgent", "ContinuousReport", "NetworkPolicy"]

SingleArray = NDArray[np.float32]


@dataclass(frozen=True)
class ContinuousActionReport:
    """How the current plan evaluates one action; see :meth:`ContinuousAgent.explain`.

    Attributes
    ----------
    action : int
        The action.
    value : float
        The network's Q(s,a).
    chosen : bool
        Whether the plan takes it.
    level : float or None
        Its level in the plan; None for measures without levels.
    mean, uncertainty : float
        Mean and standard deviation of the target E[r + γ max Q(s', ·)] over the plan's posterior
        draws, where Q is the plan's network.
    quantile : float
        Quantile of the target over all draws, at ``quantile_level``.
    quantile_level : float
        The level passed to :meth:`ContinuousAgent.explain`; otherwise ``level``, or 0.1 for
        measures without levels.

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.aq_brmdp(belief, model, 0.9, rng=1)
    >>> reports = agent.explain([0.5, 0.5])  # doctest: +SKIP
    >>> [report.action for report in reports]  # doctest: +SKIP
    [0, 1, 2, 3]
    """

    action: int
    value: float
    chosen: bool
    level: float | None
    mean: float
    uncertainty: float
    quantile: float
    quantile_level: float


@dataclass(frozen=True, eq=False)
class ContinuousReport:
    """How the current pseudo-episode was planned.

    Attributes
    ----------
    episode : int
        Number k of the pseudo-episode.
    first_step : int
        Number of transitions observed before it.
    iterations : int
        Number of fitted Q iterations.
    residual : float
        Root mean square difference between the network and its targets at the training states of
        the last iteration, before its gradient steps.
    levels : (C, A) array or None
        α_k at the model's centres; None for measures without levels.
    uncertainty : (C, A) array or None
        u_k at the model's centres; None without a schedule, since nothing else uses u_k.

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.fixed_quantile(belief, model, 0.9, alpha=0.2, rng=1)
    >>> action = agent.act([0.5, 0.5])  # doctest: +SKIP
    >>> agent.report.episode, agent.report.iterations  # doctest: +SKIP
    (1, 120)
    """

    episode: int
    first_step: int
    iterations: int
    residual: float
    levels: FloatArray | None
    uncertainty: FloatArray | None


@dataclass(frozen=True, eq=False)
class _Plan:
    """What defines the levels of a pseudo-episode, and how its fit went."""

    episode: int
    first_step: int
    previous: Network
    draws: Any
    uncertainty: FloatArray | None
    residual: float


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The network and its optimiser, and the plan they belong to (None before the first)."""

    learner: Learner
    plan: _Plan | None


@dataclass(frozen=True, eq=False)
class NetworkPolicy:
    """The greedy policy of a network, as a function from states (n, D) to action values (n, A).

    Attributes
    ----------
    model : ParametricModel
        The model, which gives the features of a state.
    network : Network
        The network.

    Examples
    --------
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> agent = continuous.aq_brmdp(belief, model, 0.9, rng=1)
    >>> policy = agent.policy_preferences()  # doctest: +SKIP
    >>> policy([[0.5, 0.5], [2.5, 0.5]]).shape  # doctest: +SKIP
    (2, 4)
    """

    model: ParametricModel
    network: Network

    def __call__(self, states: ArrayLike) -> FloatArray:
        """(n, A) action values of states (n, D)."""
        checked = _single(self.model.as_states(states, "states"))
        return np.asarray(q_values(self.model, self.network, _padded(checked)), dtype=np.float64)[
            : len(checked)
        ]

    def actions(self, states: ArrayLike) -> IntArray:
        """(n,) best action in each state; the first if there are several."""
        best: IntArray = self(states).argmax(axis=1)
        return best


class ContinuousAgent(EpisodicAgent):
    """An agent that learns online in a continuous state space.

    Parameters
    ----------
    belief : LakeBelief or another ParametricBelief
        The belief before the first step. The agent keeps a copy.
    model : ParametricModel
        The model that the belief's parameters belong to.
    discount : float in [0, 1)
        Discount factor γ.
    risk : Quantile with a MonteCarlo method, Mean or PosteriorSample
        How uncertainty about the parameter is turned into a value. All pairs share one set of draws
        per pseudo-episode, drawn from the measure's own stream if it has one. A quantile uses as
        many of the draws as its budget rule says.
    restart : RestartRule
        When to update the belief and plan again. Visits are counted by action.
    schedule : UncertaintyLevel, optional
        Levels for ``risk``; by default the measure's own level.
    fitting : FittedQ, optional
        How the network is fitted.
    rng : numpy.random.Generator or seed, optional
        Source of the agent's four streams: for the first network, the training states, the restart
        rule, and the draws of a measure without a stream; or a list of these four streams.

    Notes
    -----
    ``agent.act(state)`` returns an action. Report what happened with ``agent.observe(state, action,
    next_state, primitives)``. Several threads may share an agent: calls take turns. A call that is
    interrupted takes effect completely or not at all.

    Examples
    --------
    >>> import brmdp
    >>> from brmdp import continuous
    >>> belief, model = continuous.LakeBelief(), continuous.LakeModel()
    >>> restart = brmdp.agents.FixedLength(20)
    >>> agent = continuous.ContinuousAgent(
    ...     belief, model, 0.9, risk=brmdp.Mean(), restart=restart, rng=1
    ... )
    >>> agent.episode, agent.progress.steps
    (0, 0)
    """

    schedule: UncertaintyLevel | None

    def __init__(
        self,
        belief: ParametricBelief,
        model: ParametricModel,
        discount: float,
        *,
        risk: Quantile | Mean | PosteriorSample,
        restart: RestartRule,
        schedule: UncertaintyLevel | None = None,
        fitting: FittedQ | None = None,
        rng: Seed | list[np.random.Generator] = None,
    ) -> None:
        self.fitting = FittedQ() if fitting is None else fitting
        _check_parts(belief, model, risk, schedule, restart, self.fitting)
        self.model = model
        self.discount = as_discount(discount)
        first, training_stream, restart_stream, own_draws = independent_streams(rng, 4)
        centres = _single(model.centres)
        _check_shapes(belief, model, centres, self.discount)
        n_features = jax.eval_shape(model.features, centres).shape[-1]
        network = initial_network((n_features, *self.fitting.hidden, model.n_actions), rng=first)
        super().__init__(
            belief,
            risk=risk,
            schedule=schedule,
            restart=restart,
            admissible=np.ones((1, model.n_actions), dtype=np.bool_),
            streams={
                "training": training_stream,
                "restart": restart_stream,
                "own draws": own_draws,
            },
            plan=_Fitted(initial_learner(self.fitting, network), None),
        )
        self._visited: SingleArray = np.empty(
            (self.fitting.replay_capacity, centres.shape[1]), dtype=np.float32
        )

    # --- acting and learning ----------------------------------------------------------------------

    def act(self, state: ArrayLike) -> int:
        """The greedy action for ``state``; plans first if a new pseudo-episode begins.

        If planning fails or is interrupted, the agent is unchanged, including its random streams.
        """
        return int(self.greedy(self._one_state(state))[0])

    def observe(
        self, state: ArrayLike, action: int, next_state: ArrayLike, primitives: Any = None
    ) -> None:
        """Learn from a transition, whoever chose the action.

        Parameters
        ----------
        state, next_state : (D,) numbers
            The states before and after the transition.
        action : int
            The action.
        primitives : optional
            What the belief learns from; for the lake, the environment's ``info``.

        Raises
        ------
        InvalidInputError
            If an argument is not what the model or the belief expects. The agent is then unchanged,
            as it is if the call is interrupted.
        """
        self._one_state(state)
        action = as_index(action, self.model.n_actions, "action")
        self._one_state(next_state, "next_state")
        # copies, because the world may reuse these objects
        self._learn(copy.deepcopy((state, action, next_state, primitives)))

    def _take_in(self, working: Working, transition: tuple[Any, ...]) -> None:
        working.latest.observe(*transition)
        working.progress.add(0, transition[1])
        self._ask_restart(working)

    def _start_journal(self, record: Record, working: Working) -> None:
        self._remember(record)
        super()._start_journal(record, working)

    def _remember(self, record: Record) -> None:
        """Store the states of the journal in the replay memory; doing so twice is harmless."""
        for number, (state, *_) in enumerate(record.journal, record.progress.steps):
            self._visited[number % len(self._visited)] = self._one_state(state)[0]

    def _make_plan(
        self, belief: Any, record: Record, working: Working
    ) -> tuple[_Fitted, tuple[str, ...]]:
        """Draw parameters, fix the rule for the levels, and fit the network."""
        self._remember(record)
        episode, steps = working.progress.episode + 1, working.progress.steps
        draws = self._sampled(belief, working.streams)
        learner = record.plan.learner
        previous = learner.network
        at_centres = None
        if self.schedule is not None:
            centres = _single(self.model.centres)
            at_centres = self._uncertainty(previous, draws, _padded(centres), episode)[
                : len(centres)
            ]
        plan = _Plan(episode, steps, previous, draws, at_centres, np.nan)
        for _ in range(self._rounds(episode)):
            states = self._training_states(steps, working.streams["training"])
            learner, losses = fit(
                self.model,
                self.fitting,
                learner,
                states,
                draws,
                self._ranks(plan, states),
                self.discount,
            )
            self._require_finite(learner, episode)
        plan = dataclasses.replace(plan, residual=float(np.sqrt(losses[-1])))
        return _Fitted(learner, plan), ("training", "own draws")

    def _sampled(self, belief: Any, streams: dict[str, np.random.Generator]) -> Any:
        """As many parameters as the measure needs, from its own stream if it has one."""
        n = self._n_draws
        stream = getattr(getattr(self.risk, "method", self.risk), "rng", streams["own draws"])
        draws = jax.tree.map(_single, belief.sample(n, rng=stream))
        lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(draws)}
        if lengths != {(n,)}:
            raise InvalidInputError(
                f"belief.sample({n}) must return {n} draws; got {_listed(lengths)}"
            )
        return draws

    def _rounds(self, episode: int) -> int:
        """How many times the iterations of a fit are repeated."""
        return math.ceil(self.fitting.first_rounds / episode)

    def _training_states(self, steps: int, rng: np.random.Generator) -> SingleArray:
        """(iterations, n, D) training states: some visited ones, and some from everywhere."""
        fitting = self.fitting
        states = self.model.sample_states(fitting.iterations * fitting.states, rng=rng)
        states = states.reshape(fitting.iterations, fitting.states, -1)
        visited = min(steps, len(self._visited))
        if visited:
            replayed = round(fitting.replay_share * fitting.states)
            states[:, :replayed] = self._visited[
                rng.integers(visited, size=(fitting.iterations, replayed))
            ]
        return _single(states)

    def _ranks(self, plan: _Plan, states: SingleArray) -> Ranks | None:
        """The order statistic for each training pair; None for a mean."""
        levels = self._levels(plan, states.reshape(-1, states.shape[-1]))
        if levels is None:
            return None
        counts = self.risk.method.budget(levels)
        shape = (*states.shape[:-1], self.model.n_actions)
        return Ranks(
            *(
                n.reshape(shape).astype(np.int32)
                for n in (order_statistic_rank(counts, levels), counts)
            )
        )

    def _levels(
        self, plan: _Plan, states: SingleArray, unsure: FloatArray | None = None
    ) -> FloatArray | None:
        """(n, A) levels of any states, by the rule of ``plan``; None for measures without levels.

        ``unsure`` is their u_k, if it is known already.
        """
        if not isinstance(self.risk, Quantile):
            return None
        if self.schedule is None:
            return np.full((len(states), self.model.n_actions), float(self.risk.alpha))
        assert plan.uncertainty is not None
        if unsure is None:
            unsure = self._uncertainty(plan.previous, plan.draws, states, plan.episode)
        return self.schedule.levels(
            plan.episode, unsure, plan.uncertainty, self.model.known(states)
        )

    def _uncertainty(
        self, network: Network, draws: Any, states: SingleArray, episode: int
    ) -> FloatArray:
        found = np.asarray(
            uncertainty(self.model, network, states, draws, self.discount), dtype=np.float64
        )
        if not np.isfinite(found).all():
            raise ConvergenceError(
                f"training stopped because the targets became infinite or NaN in pseudo-episode "
                f"{episode}. Look for infinite features or targets in the model, or lower the "
                f"learning_rate of FittedQ (now {self.fitting.learning_rate:g})"
            )
        return found

    def _require_finite(self, learner: Learner, episode: int) -> None:
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner.network)):
            raise ConvergenceError(
                f"training stopped because the network became infinite or NaN in pseudo-episode "
                f"{episode}. Lower the learning_rate (now {self.fitting.learning_rate:g}) or "
                f"gradient_steps (now {self.fitting.gradient_steps}) of FittedQ, or look for "
                "infinite features or targets in the model"
            )

    @property
    def _n_draws(self) -> int:
        return 1 if isinstance(self.risk, PosteriorSample) else self.fitting.draws

    def _one_state(self, state: ArrayLike, name: str = "state") -> SingleArray:
        """(1, D) one checked state."""
        given = as_float_array(state, name)
        size = self._visited.shape[1]
        if given.shape != (size,):
            raise InvalidInputError(
                f"{name} must be one state of {size} numbers; got shape {given.shape}"
            )
        return _single(self.model.as_states(given[None], name))

    # --- what it thinks ---------------------------------------------------------------------------

    def policy_preferences(self) -> NetworkPolicy:
        """The current plan's action values as a function of states; plans first if there is none.

        Unlike :meth:`q_values`, the function does not change when the agent goes on learning.
        """
        return NetworkPolicy(self.model, self._planned().plan.learner.network)

    def q_values(self, states: ArrayLike) -> FloatArray:
        """(n, A) action values of the current plan at states (n, D); plans first if needed."""
        checked = self.model.as_states(states, "states")
        return self.policy_preferences()(checked)

    def greedy(self, states: ArrayLike) -> IntArray:
        """(n,) actions of the current plan at states (n, D); plans first if needed."""
        actions: IntArray = self.q_values(states).argmax(axis=1)
        return actions

    def levels(self, states: ArrayLike) -> FloatArray | None:
        """(n, A) levels of the current plan at states (n, D); plans first if needed.

        None for measures without levels.
        """
        checked = _single(self.model.as_states(states, "states"))
        found = self._levels(self._planned().plan.plan, _padded(checked))
        return None if found is None else found[: len(checked)]

    @property
    def report(self) -> ContinuousReport:
        """How the current plan was made.

        Raises
        ------
        InvalidInputError
            If the agent has not planned yet.
        """
        plan = self._record.plan.plan
        if plan is None:
            raise InvalidInputError("the agent has not planned yet, so it has no report; call act")
        levels = self._levels(plan, _single(self.model.centres), plan.uncertainty)
        iterations = self.fitting.iterations * self._rounds(plan.episode)
        return ContinuousReport(
            plan.episode, plan.first_step, iterations, plan.residual, levels, plan.uncertainty
        )

    def explain(
        self, state: ArrayLike, *, quantile_level: float | None = None
    ) -> list[ContinuousActionReport]:
        """How the current plan evaluates each action in ``state``; plans first if needed.

        Parameters
        ----------
        state : (D,) numbers
            The state.
        quantile_level : float in (0, 1), optional
            Level of the reported quantile; by default that of the plan, or 0.1 for measures without
            levels.

        Returns
        -------
        list of ContinuousActionReport
        """
        here = self._one_state(state)
        fitted = self._planned().plan
        plan, network = fitted.plan, fitted.learner.network
        levels = self._levels(plan, _padded(here))
        shown = np.full(
            self.model.n_actions,
            0.1 if quantile_level is None else as_level(quantile_level, "quantile_level"),
        )
        if quantile_level is None and levels is not None:
            shown = levels[0]
        values = NetworkPolicy(self.model, network)(here)[0]
        sampled = np.asarray(
            targets(self.model, network, _padded(here), plan.draws, self.discount)
        )[0]
        ranked = np.sort(sampled, axis=1)
        ranks = order_statistic_rank(ranked.shape[1], shown)
        return [
            ContinuousActionReport(
                action=a,
                value=float(values[a]),
                chosen=a == int(values.argmax()),
                level=None if levels is None else float(levels[0, a]),
                mean=float(sampled[a].mean()),
                uncertainty=float(sampled[a].std()),
                quantile=float(ranked[a, ranks[a] - 1]),
                quantile_level=float(shown[a]),
            )
            for a in range(self.model.n_actions)
        ]

    # --- files ------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that future steps depend on, as named arrays, for :meth:`save`.

        Raises
        ------
        InvalidInputError
            If the belief is not one of the library's and has no ``arrays`` or ``from_arrays``.
        """
        with self._lock:
            record, working = self._settled()
            self._remember(record)
            describe_belief(working.latest, _KNOWN)  # raises if it cannot be written
            parts = {
                "belief": _described(working.latest),
                "model": _described(self.model),
                "risk": describe_part(self.risk),
                "schedule": _described(self.schedule),
                "restart": describe_part(self.restart),
                "fitting": dataclasses.asdict(self.fitting),
            }
            content: dict[str, NDArray[Any]] = {
                "parts": np.array(json.dumps(parts)),
                "discount": np.array(self.discount),
                "visited": self._visited[: working.progress.steps].copy(),
                "training_stream": stream_state(working.streams["training"]),
                "own_draws": stream_state(working.streams["own draws"]),
            }
            content |= self._common_arrays(record, working)
        content |= _leaves("learner", record.plan.learner)
        plan = record.plan.plan
        if plan is not None:
            content |= _leaves("previous", plan.previous) | _leaves("draws", plan.draws)
            content |= {
                "first_step": np.array(plan.first_step),
                "residual": np.array(plan.residual),
            }
            if plan.uncertainty is not None:
                content["uncertainty"] = plan.uncertainty
        return content

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        belief: type[Any] | None = None,
        model: ParametricModel | None = None,
        risk: Quantile | Mean | PosteriorSample | None = None,
        schedule: UncertaintyLevel | None = None,
        restart: RestartRule | None = None,
    ) -> Self:
        """Load an agent that :meth:`save` wrote; it continues exactly as the saved one would have.

        Parameters
        ----------
        path : path
            The file.
        belief : type, optional
            The class of the belief, if it is not one of the library's. Its ``from_arrays`` must
            read what its ``arrays`` wrote.
        model, risk, schedule, restart : optional
            Parts that are not the library's; files cannot store these. Parts of the library are
            rebuilt from the file.

        Raises
        ------
        CorruptFileError
            If the file is truncated, altered, of another kind or of an unknown version.
        InvalidInputError
            If a part that is not the library's is not passed.
        """
        given = {
            "belief": belief,
            "model": model,
            "risk": risk,
            "schedule": schedule,
            "restart": restart,
        }
        return cls.from_arrays(load_arrays(path, cls.__name__), path, **given)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], source: Any, **given: Any) -> Self:
        """The agent that :meth:`arrays` described; ``given`` as in :meth:`load`."""
        given = dict.fromkeys(("belief", "model", "risk", "schedule", "restart")) | given
        with corrupt_if_undecodable(source):
            with corrupt_if_invalid(source):
                parts = as_json(arrays["parts"], "parts", MAX_PARTS_LENGTH)
            require_foreign_parts({role: parts[role] for role in given}, given)
            with corrupt_if_invalid(source):
                fitting = FittedQ(**parts["fitting"])
                _check_network(fitting, arrays_with_prefix(arrays, "learner."))
                chosen = {
                    role: build_part(parts[role], given[role]) for role in ("risk", "restart")
                }
                chosen |= {role: _built(parts[role], given[role]) for role in ("model", "schedule")}
                belief_type = LakeBelief if given["belief"] is None else given["belief"]
                latest = belief_type.from_arrays(arrays_with_prefix(arrays, "latest."), source)
            _check_parts(latest, fitting=fitting, **chosen)
            with corrupt_if_invalid(source):
                model, discount = chosen.pop("model"), float(arrays["discount"])
                agent = cls(latest, model, discount, fitting=fitting, rng=0, **chosen)
                agent._resume(arrays, source)
        return agent

    def _resume(self, arrays: dict[str, NDArray[Any]], source: Any) -> None:
        """Check the state that ``arrays`` describe and take it over."""
        streams = {
            "training": stream_from_state(arrays["training_stream"]),
            "own draws": stream_from_state(arrays["own_draws"]),
        }
        belief, working = self._resumed(arrays, source, streams)
        kept = self._visited[: working.progress.steps]
        if arrays["visited"].shape != kept.shape:
            raise InvalidInputError(
                f"visited must have shape {kept.shape}; got {arrays['visited'].shape}"
            )
        kept[:] = self.model.as_states(arrays["visited"], "visited")
        learner = _tree("learner", arrays, self._record.plan.learner)
        plan = None
        if working.progress.episode > 0:
            plan = self._resumed_plan(arrays, belief, working.progress, learner)
        self._record = make_record(belief, _Fitted(learner, plan), working, working.latest.copy())

    def _resumed_plan(
        self, arrays: dict[str, NDArray[Any]], belief: Any, progress: Progress, learner: Learner
    ) -> _Plan:
        stored = arrays_with_prefix(arrays, "draws.").values()
        # checked before as many are drawn
        if not any(leaf.shape[:1] == (self._n_draws,) for leaf in stored):
            raise InvalidInputError(
                f"draws must hold {self._n_draws} models; got the shapes "
                f"{[leaf.shape for leaf in stored]}"
            )
        like = belief.sample(self._n_draws, rng=np.random.default_rng(0))
        unsure = None
        if self.schedule is not None:
            unsure = as_float_array(arrays["uncertainty"], "uncertainty")
            shape = (len(self.model.centres), self.model.n_actions)
            if unsure.shape != shape or (unsure < 0.0).any():
                raise InvalidInputError(
                    f"uncertainty must not be negative and have shape {shape}; got {unsure.shape}"
                )
        return _Plan(
            progress.episode,
            as_index(arrays["first_step"], progress.steps + 1, "first_step"),
            _tree("previous", arrays, learner.network),
            _tree("draws", arrays, jax.tree.map(_single, like)),
            unsure,
            as_number(arrays["residual"], "residual", "a number"),
        )

    def __repr__(self) -> str:
        return (
            f"ContinuousAgent({type(self.belief).__name__}, {self.model!r}, risk={self.risk!r}, "
            f"schedule={self.schedule!r}, restart={self.restart!r}, pseudo-episode {self.episode}, "
            f"{self.progress.steps} steps observed)"
        )


def _check_parts(
    belief: Any, model: Any, risk: Any, schedule: Any, restart: Any, fitting: Any
) -> None:
    if isinstance(belief, type) or not all(
        hasattr(belief, name) for name in ("observe", "sample", "copy")
    ):
        raise InvalidInputError(
            f"belief must have the methods of a ParametricBelief; got {belief!r}"
        )
    wanted = (
        "n_actions",
        "centres",
        "as_states",
        "known",
        "sample_states",
        "bounds",
        "features",
        "targets",
    )
    missing = [name for name in wanted if not hasattr(model, name)]
    if isinstance(model, type) or missing:
        raise InvalidInputError(
            f"model must have the members of a ParametricModel; got {model!r}"
            + (f", which lacks {', '.join(missing)}" if missing else ", which is a class")
        )
    if type(model).__hash__ is None:
        raise InvalidInputError(f"model must be hashable, as a frozen dataclass is; got {model!r}")
    if not isinstance(fitting, FittedQ):
        raise InvalidInputError(f"fitting must be a FittedQ; got {fitting!r}")
    if isinstance(risk, Quantile):
        _check_quantile(risk, fitting)
    elif not isinstance(risk, Mean | PosteriorSample):
        raise InvalidInputError(
            f"risk must be a Quantile, Mean() or PosteriorSample(); got {risk!r}"
        )
    if schedule is not None and not (
        isinstance(schedule, UncertaintyLevel) and isinstance(risk, Quantile)
    ):
        raise InvalidInputError(
            f"schedule must be an UncertaintyLevel, and risk a Quantile; got {schedule!r} and "
            f"{risk!r}"
        )
    check_restart(restart)


def _check_network(fitting: FittedQ, stored: dict[str, NDArray[Any]]) -> None:
    """Raise if layers of these sizes are not stored, before a network of that size is made."""
    shapes = {array.shape for array in stored.values()}
    layers = [(units,) for units in fitting.hidden] + list(itertools.pairwise(fitting.hidden))
    if not shapes.issuperset(layers):
        raise InvalidInputError(
            f"the network must have hidden layers of the sizes described, {fitting.hidden}"
        )


def _check_shapes(
    belief: Any, model: ParametricModel, centres: SingleArray, discount: float
) -> None:
    """Raise if the targets do not have shape (n, A, B)."""
    draws = jax.tree.map(_single, belief.sample(2, rng=np.random.default_rng(0)))

    def at_centres(states: jax.Array, draws: Any) -> jax.Array:
        return model.targets(lambda reached: reached[..., 0], states, draws, discount)

    found = jax.eval_shape(at_centres, centres, draws).shape
    wanted = (len(centres), model.n_actions, 2)
    if found != wanted:
        raise InvalidInputError(
            f"model.targets must have shape {wanted} for {len(centres)} states and 2 draws; got "
            f"{found}"
        )


def _listed(lengths: set[tuple[int, ...]]) -> str:
    return (
        ", ".join(sorted(str(length[0]) if length else "a single one" for length in lengths))
        or "none"
    )


def _single(array: Any) -> SingleArray:
    """In single precision, as for the network, so that NumPy and JAX agree on a state's cell."""
    return np.asarray(array, dtype=np.float32)


def _padded(states: SingleArray) -> SingleArray:
    """The states, repeated up to the next power of two, at least 16.

    Otherwise functions would be compiled again for every new number of states.
    """
    wanted = 1 << max(len(states) - 1, 15).bit_length()
    return np.resize(states, (wanted, states.shape[1]))


def _check_quantile(risk: Quantile, fitting: FittedQ) -> None:
    if risk.alpha.ndim:
        raise InvalidInputError(
            f"risk must have a single level for all pairs; got an array of shape {risk.alpha.shape}"
        )
    method = risk.method
    if not isinstance(method, MonteCarlo) or method.reuse:
        raise InvalidInputError(
            f"risk must use the method MonteCarlo() without reuse; got {method!r}"
        )
    most = method.cap if method.samples is None else method.samples
    if most > fitting.draws:
        raise InvalidInputError(
            f"risk must not need more than the {fitting.draws} draws that all pairs share "
            f"(FittedQ.draws); got up to {most}"
        )


_KNOWN = {part.__name__: part for part in (LakeBelief, LakeModel, UncertaintyLevel)}


def _described(part: Any) -> Any:
    """Type and parameters of a part of the library; only the type's name for any other."""
    kind = type(part).__name__
    if part is None or _KNOWN.get(kind) is not type(part):
        return None if part is None else {"foreign": kind}
    return {"type": kind} | (dataclasses.asdict(part) if dataclasses.is_dataclass(part) else {})


def _built(description: Any, given: Any) -> Any:
    """Rebuild the part that :func:`_described` described, unless one is ``given``."""
    if given is not None or description is None:
        return given
    return _KNOWN[description["type"]](
        **{name: value for name, value in description.items() if name != "type"}
    )


def _leaves(name: str, tree: Any) -> dict[str, NDArray[Any]]:
    return {f"{name}.{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def _tree(name: str, arrays: dict[str, NDArray[Any]], like: Any) -> Any:
    """The tree whose leaves are stored, checked against one ``like`` it."""
    expected, structure = jax.tree.flatten(like)
    leaves = []
    for i, leaf in enumerate(expected):
        stored = arrays[f"{name}.{i}"]
        if (
            stored.shape != leaf.shape
            or stored.dtype != leaf.dtype
            or not np.isfinite(stored).all()
        ):
            raise InvalidInputError(
                f"{name}.{i} must be finite, {leaf.dtype} of shape {leaf.shape}; got "
                f"{stored.dtype} of shape {stored.shape}"
            )
        leaves.append(jax.numpy.asarray(stored))
    return jax.tree.unflatten(structure, leaves)
