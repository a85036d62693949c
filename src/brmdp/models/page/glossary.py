"""Terms of the page: what each means, and a link from where it is used first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from brmdp.models.page.svg import Drawing, join, tag
from brmdp.models.page.text import clean

__all__ = ["Glossary", "Term"]


@dataclass(frozen=True)
class Term:
    """A term, the forms in which it is found in sentences, and its meaning."""

    key: str
    name: str
    forms: tuple[str, ...]
    meaning: str


TERMS = (
    Term(
        "caution",
        "Caution",
        ("caution", "cautious"),
        "How much bad luck in what is not known a plan allows for. The dial goes from cautious "
        "plans (low quantile levels) to curious ones (high levels).",
    ),
    Term(
        "certificate",
        "Certificate, guarantee",
        ("certificates?", "guarantees?", "guaranteed"),
        "A bound on the discounted {word} from the start that holds with the stated posterior "
        "probability if the model is right. A certificate is proved with posterior draws of its "
        "own, which had no part in choosing the policy.",
    ),
    Term(
        "credible-interval",
        "Credible interval",
        ("credible intervals?",),
        "A range that holds the true value with the stated posterior probability. It says what is "
        "not known about the world, given the log and the prior.",
    ),
    Term(
        "discount",
        "Discount",
        ("discount", "discounted"),
        "Factor by which a {word} counts less for every step that it lies in the future. A "
        "discounted {word} is the sum over all steps with these weights.",
    ),
    Term(
        "drift",
        "Drift",
        ("drift", "drifts"),
        "A change over time in how states follow one another. The model knows none.",
    ),
    Term(
        "group",
        "Group",
        ("groups?",),
        "Units of one kind, which share how their states change. Each has a decision of its own.",
    ),
    Term(
        "held-out",
        "Held-out prediction",
        ("held-out predictions?", "held-out", "held out"),
        "Units are set aside, the model learns from the others, and it is judged by how probable "
        "it found what the units set aside then did.",
    ),
    Term(
        "information",
        "Perfect information",
        ("perfect information",),
        "Knowing all transition probabilities exactly. Its value is an upper limit for what any "
        "further observation can be worth.",
    ),
    Term(
        "level",
        "Quantile level",
        ("quantile levels?", "levels?"),
        "A plan at level 0.1 judges every action by the value that it reaches with posterior "
        "probability 90 %; in one case of ten it would be worse. A low level is cautious.",
    ),
    Term(
        "markov",
        "Markov",
        ("Markov",),
        "The next state depends on the present state and action alone, not on what was before.",
    ),
    Term(
        "memory",
        "Memory",
        ("memory",),
        "Dependence of the next state on earlier states than the present one. The model has none.",
    ),
    Term(
        "monte-carlo",
        "Monte Carlo error",
        ("Monte Carlo errors?", "simulation errors?", "Monte Carlo"),
        "The doubt that comes from computing with a limited number of posterior draws. More draws "
        "make it smaller; more data are not needed for that.",
    ),
    Term(
        "nested",
        "Nested bound",
        ("nested bounds?", "nested"),
        "An older and more cautious certificate (Proposition 1 of the paper), which allows for bad "
        "luck in every state at once.",
    ),
    Term(
        "pooled",
        "Partially pooled",
        ("partially pooled", "partial pooling"),
        "Groups learn from each other as far as the log shows them to be alike, and keep their own "
        "numbers as far as it does not.",
    ),
    Term(
        "policy",
        "Policy",
        ("policy", "policies"),
        "A rule that names an action for every state.",
    ),
    Term(
        "posterior",
        "Posterior",
        ("posterior draws?", "posterior probability", "posterior", "draws"),
        "What is held possible about the transition probabilities after the log has been seen, and "
        "how probable each possibility is. A posterior draw is one possible world from it.",
    ),
    Term(
        "practice",
        "Practice",
        ("practice",),
        "What was done so far, estimated from the decisions in the log, with its own doubt where "
        "little was logged.",
    ),
    Term(
        "prior",
        "Prior",
        ("priors?",),
        "What was held possible before the log was seen. A learned prior takes from the log how "
        "alike states and actions are.",
    ),
    Term(
        "sensitivity",
        "Sensitivity",
        ("sensitivity", "sensitivities"),
        "What happens to the recommendation if an assumption is replaced by another.",
    ),
    Term(
        "transition",
        "Transition",
        ("transitions?",),
        "One step of one unit: a state, the action taken there, and the state that followed.",
    ),
    Term(
        "unit",
        "Unit",
        ("units?",),
        "A thing or person that the log follows over time, such as a vehicle or a patient.",
    ),
)

_BY_KEY = {term.key: term for term in TERMS}
_FORMS = sorted(
    ((form, term.key) for term in TERMS for form in term.forms), key=lambda f: -len(f[0])
)
_PATTERN = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(f"(?P<f{i}>{form})" for i, (form, _) in enumerate(_FORMS))
    + r")(?![\w-])",
    re.IGNORECASE,
)


class Glossary:
    """Links terms at their first use on one page, and explains those that were used."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._used: dict[str, None] = {}
        self._linked: set[str] = set()

    def linked(self, text: str | Drawing) -> Drawing:
        """A sentence whose terms, where they are new to the page, lead to their meaning."""
        if isinstance(text, Drawing):
            return text
        text = clean(text)
        parts: list[Drawing] = []
        end = 0
        for found in _PATTERN.finditer(text):
            key = _FORMS[int(str(found.lastgroup)[1:])][1]
            self._used.setdefault(key)
            if key in self._linked:
                continue
            self._linked.add(key)
            parts.append(_plain(text[end : found.start()]))
            parts.append(tag("a", found[0], href=f"#term-{key}", class_="term"))
            end = found.end()
        parts.append(_plain(text[end:]))
        return join(parts)

    def entries(self) -> list[tuple[str, str, Drawing]]:
        """Id, name and meaning of every term that the page uses, in alphabetical order.

        Terms that only the meanings use are explained, too.
        """
        meanings: dict[str, str] = {}
        while missing := [key for key in self._used if key not in meanings]:
            for key in missing:
                meanings[key] = _BY_KEY[key].meaning.format(word=self._word)
                for found in _PATTERN.finditer(meanings[key]):
                    self._used.setdefault(_FORMS[int(str(found.lastgroup)[1:])][1])
        return [
            (f"term-{key}", _BY_KEY[key].name, _plain(meanings[key]))
            for key in sorted(meanings, key=lambda key: _BY_KEY[key].name)
        ]


def _plain(text: str) -> Drawing:
    bare = tag("i", text).text
    return Drawing(bare[len("<i>") : -len("</i>")])
