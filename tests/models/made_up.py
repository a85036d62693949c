"""Decisions made by hand, to be shown: everything that a page may meet, without any computing."""

from __future__ import annotations

import math

import numpy as np

from brmdp.logs import Bins, Categories, Dropped, ReadingReport, StateSpace
from brmdp.models.decision import Decision
from brmdp.models.results import (
    Amount,
    Caution,
    Check,
    Curve,
    Fingerprint,
    GroupDecision,
    Guarantee,
    MoreData,
    Picture,
    PolicyValue,
    Sensitivity,
    StateWorth,
    ThinPair,
)

HOSTILE = (
    "<script>window.broken=1</script>",
    "\"'><img src=x onerror=window.broken=1>",
    "&lt;b&gt; & </script><svg onload=window.broken=1>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnisrever\u202c \u2066x",
    "שלום עולם",
    "🚌🔥👩‍🔧",
    "long" * 50,
    "=cmd|' /C calc'!A0",
    "a\x00b\x1b[31m\ud800",
    "</title><style>*{display:none}</style>",
    "javascript:alert(1)",
)


REPORT = ReadingReport(
    16_012,
    15_981,
    166,
    15_800,
    (
        Dropped("last line", 166, "The last line of a unit has no next state.", line_kept=True),
        Dropped(
            "missing",
            31,
            "The state is missing.",
            ("line 17: miles is ''", "line 202: miles is 'NA'"),
        ),
        Dropped("gap", 15, "Months are missing before the next line.", line_kept=True),
    ),
    ("The time step is 1 month, the commonest difference (99.7 % of 15,846).",),
)

ASSUMPTIONS = (
    "The next state depends on the present state and action alone (Markov).",
    "Rows of one action share the law of their increments; its strength is learned.",
    "Costs are as the model file says; nothing about them is learned.",
)

FINGERPRINT = Fingerprint(
    data="9f" * 32,
    model="3c" * 32,
    command="brmdp decide model.toml --report page.html",
    versions={"brmdp": "0.5.0", "Python": "3.11.7", "numpy": "2.4.1"},
    seed=0,
    made="2026-11-18 20:15 UTC",
)


def decision(title, word, states, actions, groups, checks=(), **changes):
    """A decision with everything that a page needs."""
    settings = {
        "file": "model.toml",
        "discount": 0.99,
        "confidence": 0.9,
        "level": None,
        "assumptions": ASSUMPTIONS,
        "report": REPORT,
        "fingerprint": FINGERPRINT,
    }
    return Decision(
        title=title,
        word=word,
        states=states,
        actions=actions,
        groups=groups,
        checks=checks,
        **(settings | changes),
    )


def amount(mean, half, error=0.01):
    return Amount(mean, mean - half, mean + half, error)


def binned(count=90, width=5000, column="miles"):
    return StateSpace(Bins.regular(column, start=0, width=width, count=count))


def categories(labels, column="condition"):
    return StateSpace(Categories(column, tuple(labels)))


def threshold(states, place, actions=("keep", "replace")):
    policy = (np.arange(states.n_states) >= place).astype(int)
    edge, name = f"{states.numbers[place]:,.0f}", states.name
    first, second = actions
    return policy, (
        f"{first.capitalize()} while {name} is below {edge}; {second} where it is {edge} or more.",
    )


def group(
    states,
    actions,
    policies,
    *,
    name=None,
    word="cost",
    value=151.37,
    levels=40,
    recommended=None,
    rng=0,
    **changes,
):
    """A decision over some policies, given as (actions, words), from cautious to curious."""
    rng = np.random.default_rng(rng)
    sign = -1 if word == "cost" else 1
    n, k = states.n_states, len(policies)
    middle = k // 3 if recommended is None else recommended
    made = tuple(
        PolicyValue(
            f"level {0.01 + 0.49 * i / max(k - 1, 1):.2g}",
            np.asarray(policy),
            tuple(words),
            amount(value - sign * 0.004 * value * (i - middle - 2) ** 2, 0.058 * value),
            value - sign * (0.09 + 0.003 * (i - middle) ** 2) * value,
        )
        for i, (policy, words) in enumerate(policies)
    )
    stops = tuple(
        Caution(round(0.01 + 0.0125 * i, 4), min(i * k // levels, k - 1)) for i in range(levels)
    )
    visits = np.exp(-np.arange(n) / max(n / 3, 1))
    seen = rng.poisson(
        np.outer(2000 / n * np.exp(-np.arange(n) / max(n / 3, 1)), np.ones(len(actions)))
    )
    chosen = made[middle].actions
    worths = tuple(
        StateWorth(s, amount(3.2 / (i + 1), 2.6 / (i + 1)), 0.04 / (i + 1))
        for i, s in enumerate(rng.permutation(n)[: min(n, 8)].tolist())
    )
    thin = tuple(
        ThinPair(s, int(chosen[s]), int(seen[s, chosen[s]]), float(visits[s] / visits.sum()))
        for s in range(n)
        if seen[s, chosen[s]] < 3
    )[:12]
    settings = {
        "name": name,
        "units": 166,
        "transitions": 15_800,
        "policies": made,
        "recommended": middle,
        "dial": stops,
        "guarantee": Guarantee(
            0.9,
            value - sign * 0.0932 * value,
            value - sign * 0.31 * value,
            0.0061,
            (
                "With posterior probability at least 0.9, the true value of this policy from the "
                "start is within the bound.",
                "It assumes that the belief is right: its prior, that the next state depends on "
                "state and action alone, and that nothing changes over time.",
            ),
            "The nested bound, with its own policy, is more cautious: it allows for bad luck in "
            "every state at once.",
        ),
        "practice": amount(value - sign * 0.148 * value, 0.06 * value),
        "gain": amount(0.148 * value, 0.12 * value),
        "probability_better": (0.983, 0.9765, 0.9881),
        "units_interval": (0.02 * value, 0.27 * value),
        "worths": worths,
        "perfect_information": amount(0.7042, 0.1561),
        "more_data": tuple(
            MoreData(s, a % len(actions), 40, amount(0.3 / (a + 1), 0.11), 0.08)
            for a, s in enumerate(range(0, min(n, 6)))
        ),
        "sensitivities": (
            Sensitivity(
                "discount 0.98 instead of 0.99", 2, 91.2, 90.9, "The limit moves a little."
            ),
            Sensitivity("uniform prior", 0, 150.1, 150.1, "Nothing changes."),
            Sensitivity("replacing costs 20 % more", 5, 168.4, 166.9, "The limit rises by 25000."),
        )
        if word == "cost"
        else (Sensitivity("discount 0.98 instead of 0.99", 2, 91.2, 92.0, "A little changes."),),
        "thin": thin,
        "observations": seen,
        "visits": visits / visits.sum(),
        "start": (np.arange(n) == 0).astype(float),
        "notes": ("Of the discounted time, 0.4 % is spent in pairs that were never observed.",),
    }
    return GroupDecision(**(settings | changes))


def checks(group=None):
    """One check of every kind."""
    months = tuple(float(i) for i in range(24))
    return (
        Check(
            "coverage",
            "Has the log seen what the policy does?",
            "fine",
            "The policy spends 0.4 % of its time in pairs seen fewer than 5 times.",
            "At most 0.3 of the expected cost rests on the prior alone.",
            {"share of time": 0.0043, "pairs": 12},
            group=group,
        ),
        Check(
            "groups",
            "Do the units behave alike?",
            "stop",
            "A model per type predicts held-out units better by 41.5 ± 7.8.",
            "The pooled plan costs 18.2 more than a plan per type, 12 % of the expected cost.",
            {"difference": 41.5, "standard error": 7.8, "chosen": "by type"},
            "Name the column of the type under groups in the model file.",
            Picture(
                "points",
                "Types differ in how fast they wear",
                "type",
                "mean miles per month",
                (
                    Curve(
                        "mean",
                        ("type A", "type B", "an old type with quite a long name"),
                        (3100.0, 4200.0, 2400.0),
                        (2950.0, 4020.0, 2230.0),
                        (3250.0, 4385.0, 2571.0),
                    ),
                ),
            ),
            group,
        ),
        Check(
            "drift",
            "Has anything changed over time?",
            "look",
            "The second half of the log is predicted slightly worse (2.4 standard errors).",
            "A plan from the second half alone would save 0.9 (0.6 %).",
            {"standard errors": 2.4},
            "Compare with a model of the last two years.",
            Picture(
                "lines",
                "Wear per month has risen",
                "month",
                "miles per month",
                (
                    Curve(
                        "observed",
                        months,
                        tuple(3000 + 20 * i + 80 * math.sin(i) for i in months),
                        tuple(2900 + 20 * i + 80 * math.sin(i) for i in months),
                        tuple(3100 + 20 * i + 80 * math.sin(i) for i in months),
                    ),
                    Curve("simulated", months, tuple(3200 + 4 * math.cos(i) for i in months)),
                ),
            ),
            group,
        ),
        Check(
            "prediction",
            "Does the model reproduce what was logged?",
            "fine",
            "Times to the first replacement rank 41 of 100.",
            "No consequence for the decision.",
            {"rank": 41},
            picture=Picture(
                "bars",
                "Months to the first replacement",
                "months",
                "units",
                (
                    Curve("observed", ("0–20", "20–40", "40–60", "60+"), (4.0, 31.0, 80.0, 51.0)),
                    Curve(
                        "simulated",
                        ("0–20", "20–40", "40–60", "60+"),
                        (6.1, 33.5, 77.2, 49.2),
                        (2.0, 24.0, 66.0, 38.0),
                        (11.0, 43.0, 90.0, 61.0),
                    ),
                ),
            ),
            group=group,
        ),
        Check(
            "memory",
            "Does it matter what was before?",
            "fine",
            "Knowing the previous state does not predict better.",
            "No consequence.",
            {"difference": None, "share": float("nan")},
            picture=Picture(
                "bars",
                "Where the time is spent",
                "miles",
                "share of months",
                (
                    Curve(
                        "observed",
                        tuple(f"{5000 * i} to {5000 * (i + 1)}" for i in range(40)),
                        tuple(math.exp(-i / 15) for i in range(40)),
                        tuple(0.9 * math.exp(-i / 15) for i in range(40)),
                        tuple(1.1 * math.exp(-i / 15) for i in range(40)),
                    ),
                ),
            ),
            group=group,
        ),
    )


def fine_checks():
    return tuple(check for check in checks() if check.verdict == "fine")


def fleet(**changes):
    """Costs, no groups, ninety ordered states, threshold policies."""
    states, actions = binned(), ("keep", "replace")
    policies = [threshold(states, place) for place in range(30, 52, 2)]
    settings = {
        "title": "When should a bus get a new engine?",
        "word": "cost",
        "states": states,
        "actions": actions,
        "groups": (group(states, actions, policies),),
        "checks": fine_checks() + checks()[2:3],
    }
    return decision(**(settings | changes))


def stopped():
    """The same with checks that say stop."""
    return fleet(checks=checks())


def shops():
    """Rewards in three groups."""
    states, actions = binned(24, 1, "stock"), ("order nothing", "order 5", "order 10", "order 20")
    made = []
    for i, name in enumerate(("north", "south", "airport")):
        policies = []
        for place in range(3, 12):
            policy = np.select(
                [
                    states.numbers < place - 2,
                    states.numbers < place,
                    states.numbers < place + 4 + i,
                ],
                [3, 2, 1],
                0,
            )
            words = (
                f"Order 20 while stock is below {place - 2}; order 10 where it is from "
                f"{place - 2} to below {place}; order 5 where it is from {place} to below "
                f"{place + 4 + i}; order nothing where it is {place + 4 + i} or more.",
            )
            policies.append((policy, words))
        made.append(
            group(
                states,
                actions,
                policies,
                name=name,
                word="reward",
                value=2210.0 + 480 * i,
                recommended=3 + i,
                rng=i,
                units=7 + i,
                transitions=1234 + 300 * i,
            )
        )
    return decision(
        "How much should each shop order?",
        "reward",
        states,
        actions,
        tuple(made),
        (*fine_checks(), *checks("south")[1:3]),
    )


def hospital(groups=1, n=720, k=25, levels=40):
    """Many states and actions without order: the largest page."""
    rng = np.random.default_rng(3)
    states = categories((f"s{i}" for i in range(n)), "cluster")
    actions = tuple(f"fluids {i // 5}, pressor {i % 5}" for i in range(k))
    made = []
    for g in range(groups):
        base = rng.integers(0, k, n)
        policies = []
        for _ in range(levels):
            base = np.where(rng.random(n) < 0.1, rng.integers(0, k, n), base)
            words = tuple(
                f"{actions[a]}: in {(base == a).sum()} of {n} states "
                f"({', '.join(f's{i}' for i in np.flatnonzero(base == a)[:6])}, …)."
                for a in range(k)
            )
            policies.append((base, words))
        made.append(
            group(
                states,
                actions,
                policies,
                name=f"ward {g}" if groups > 1 else None,
                word="reward",
                value=0.8314,
                levels=levels,
                rng=g,
            )
        )
    return decision("Sepsis", "reward", states, actions, tuple(made), checks())


def hostile():
    """Labels, names and sentences that try to be more than text."""
    states = categories(HOSTILE, HOSTILE[0])
    actions = HOSTILE[:4]
    n = states.n_states
    policies = [
        (np.arange(n) % 4, tuple(f"{label} everywhere" for label in HOSTILE[:3])),
        (np.zeros(n, dtype=int), HOSTILE[4:8]),
        (np.ones(n, dtype=int), HOSTILE[8:]),
    ]
    found = Check(
        HOSTILE[0],
        HOSTILE[1],
        "stop",
        HOSTILE[2],
        HOSTILE[0],
        dict.fromkeys(HOSTILE, HOSTILE[0]),
        HOSTILE[3],
        Picture(
            "bars",
            HOSTILE[0],
            HOSTILE[1],
            HOSTILE[2],
            (Curve(HOSTILE[0], HOSTILE, tuple(map(float, range(n)))), Curve(HOSTILE[1], (), ())),
        ),
        HOSTILE[1],
    )
    return decision(
        HOSTILE[0],
        "cost",
        states,
        actions,
        tuple(
            group(states, actions, policies, name=HOSTILE[i], levels=5, notes=HOSTILE)
            for i in range(3)
        ),
        (found,),
        file=HOSTILE[1],
        report=ReadingReport(9, 5, 2, 3, (Dropped(HOSTILE[0], 4, HOSTILE[1], HOSTILE),), HOSTILE),
        assumptions=HOSTILE,
        fingerprint=Fingerprint(
            HOSTILE[0], HOSTILE[1], HOSTILE[2], {HOSTILE[0]: HOSTILE[1]}, 0, HOSTILE[3]
        ),
    )


def weather():
    """States over two columns, five actions, one group, a recommendation off the dial."""
    first = Categories("condition", ("new", "used", "worn", "broken"))
    second = Categories("weather", ("dry", "rain", "snow", "storm", "heat", "fog"))
    states = StateSpace((first, second))
    rng = np.random.default_rng(5)
    policies = [
        (np.sort(rng.integers(0, 5, 24)), (f"Plan {i} as in the picture.",)) for i in range(5)
    ]
    made = group(states, ("wait", "oil", "clean", "repair", "swap"), policies, recommended=4)
    return decision(
        "Two columns",
        "cost",
        states,
        ("wait", "oil", "clean", "repair", "swap"),
        (
            GroupDecision(
                **{
                    **vars(made),
                    "dial": tuple(Caution(c.level, min(c.policy, 3)) for c in made.dial),
                }
            ),
        ),
        fine_checks(),
    )


def smallest():
    """One state, one action, one policy, no checks, nothing known beyond that."""
    states = categories(("only",))
    unknown = Amount(math.nan, math.nan, math.nan)
    only = GroupDecision(
        name=None,
        units=1,
        transitions=0,
        policies=(PolicyValue("mean", np.zeros(1, dtype=int), (), unknown, math.nan),),
        recommended=0,
        dial=(),
        guarantee=Guarantee(0.9, -math.inf, None, math.nan, (), ""),
        practice=unknown,
        gain=unknown,
        probability_better=(math.nan, math.nan, math.nan),
        units_interval=None,
        worths=(),
        perfect_information=unknown,
        more_data=(),
        sensitivities=(),
        thin=(),
        observations=np.zeros((1, 1), dtype=int),
        visits=np.ones(1),
        start=np.ones(1),
    )
    return decision(
        "",
        "reward",
        states,
        ("wait",),
        (only,),
        discount=1.0,
        report=ReadingReport(0, 0, 0, 0),
        assumptions=(),
        fingerprint=Fingerprint("", "", "", {}, 0, ""),
    )


EVERY = {
    "fleet": fleet,
    "stopped": stopped,
    "shops": shops,
    "hospital": lambda: hospital(n=240),
    "hostile": hostile,
    "weather": weather,
    "smallest": smallest,
}
