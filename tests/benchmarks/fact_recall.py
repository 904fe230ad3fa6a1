"""Recall over short facts: the first is to be right, and nothing that was overtaken above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from asking import Asked, PlainFts5
from collection import Collection, Question
from fitting import Weights
from quality import Outcome, fact_figures, grouped, refusal_figures, times
from report import table
from running import Wire


def measure(wire: Wire, facts: Collection, *, limit: int, weights: Weights) -> dict[str, Any]:
    """Figures overall, by kind of question and by language, beside those of plain FTS5."""
    asked = Asked(wire, facts, limit=limit, dated=False)
    bare = PlainFts5(facts, limit=limit)
    ours = [asked.ask(question, weights) for question in facts.questions]
    plain = [bare.ask(question) for question in facts.questions]
    return {
        "thermocline": _figures(ours),
        "plain_fts5": _figures(plain),
        "milliseconds": times(ours),
        "missed": [_missed(one) for one in ours if one.question.right and not one.any(1)],
    }


def show(made: Mapping[str, Any]) -> None:
    """Print what `measure` found."""
    both = {"thermocline": made["thermocline"], "plain FTS5": made["plain_fts5"]}
    for part in ("overall", "unanswered"):
        if rows := {name: one[part] for name, one in both.items() if one.get(part)}:
            table("facts" if part == "overall" else "what has no answer", rows)
    for title, part in (("by kind", "kinds"), ("by language", "languages")):
        table(title, _beside(both, part))
    table("milliseconds", {"a question, over the socket": made["milliseconds"]})


def _beside(both: Mapping[str, Any], part: str) -> dict[str, dict[str, float]]:
    """Ours, with FTS5's precision and how often a stale one comes first as the last columns."""
    rows: dict[str, dict[str, float]] = {}
    for name, ours in both["thermocline"][part].items():
        plain = both["plain FTS5"][part][name]
        always = ("questions", "precision@1", "recall@5", "mrr")
        rows[name] = {column: ours[column] for column in always}
        rows[name]["FTS5's precision@1"] = plain["precision@1"]
        rows[name] |= {column: value for column, value in ours.items() if column not in always}
    return rows


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    answered = [one for one in outcomes if one.question.right]
    unanswered = [one for one in outcomes if not one.question.right]
    made: dict[str, Any] = {}
    if answered:
        made["overall"] = fact_figures(answered)
    if unanswered:
        made["unanswered"] = refusal_figures(unanswered, answered)
    made["kinds"] = _by(answered, lambda question: question.kind)
    made["languages"] = _by(answered, lambda question: question.origin)
    return made


def _by(
    outcomes: Sequence[Outcome], name: Callable[[Question], str]
) -> dict[str, dict[str, float]]:
    return {key: fact_figures(group) for key, group in grouped(outcomes, name).items()}


def _missed(one: Outcome) -> dict[str, Any]:
    """A question whose first hit is wrong, for whoever looks for the reason."""
    return {
        "question": one.question.text,
        "kind": one.question.kind,
        "right": sorted(one.question.right),
        "found": one.found[:5],
    }
