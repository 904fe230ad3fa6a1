"""Recall over long conversations: the turns that answer are to be among the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import fitting
import locomo
from asking import Asked, PlainFts5
from collection import Collection
from fitting import Weights
from quality import DEPTHS, Outcome, figures, grouped, times
from report import table
from running import Wire


def measure(
    wire: Wire, collections: Sequence[Collection], *, limit: int, dated: bool, weights: Weights
) -> dict[str, Any]:
    """Figures overall, by category and by conversation, beside those of plain FTS5."""
    asked = [Asked(wire, one, limit=limit, dated=dated) for one in collections]
    ours = [
        there.ask(question, weights)
        for one, there in zip(collections, asked, strict=True)
        for question in one.questions
    ]
    plain = [
        bare.ask(question)
        for one, bare in ((one, PlainFts5(one, limit=limit)) for one in collections)
        for question in one.questions
    ]
    return _left_out(collections) | {
        "thermocline": _figures(ours, limit),
        "plain_fts5": _figures(plain, limit),
        "milliseconds": times(ours),
    }


def show(made: Mapping[str, Any]) -> None:
    """Print what `measure` found."""
    ours, plain = made["thermocline"], made["plain_fts5"]
    table("conversations", {"thermocline": ours["overall"], "plain FTS5": plain["overall"]})
    table("by category", ours["categories"])
    table("by conversation", ours["conversations"])
    table("milliseconds", {"a question, over the socket": made["milliseconds"]})
    print(
        f"{made['unresolved_evidence']} references to evidence name no turn; "
        f"{made['questions_left_out']} questions are left without any and are not asked\n"
    )


def split(
    wire: Wire, collections: Sequence[Collection], fit_on: Sequence[str], *, limit: int, dated: bool
) -> dict[str, Any]:
    """Weights fitted on some conversations, reported on the others."""
    by_name = {one.name: one for one in collections}
    asked = {name: Asked(wire, one, limit=limit, dated=dated) for name, one in by_name.items()}

    def ask(name: str, weights: Weights) -> list[Outcome]:
        return [asked[name].ask(question, weights) for question in by_name[name].questions]

    folds = fitting.fit(list(by_name), fit_on, ask)
    everything = [one for fold in folds for one in fold.outcomes]
    return _left_out(collections) | {
        "folds": [
            {
                "fitted_on": fold.fitted_on,
                "reported_on": fold.reported_on,
                "weights": fold.weights,
                "fitted recall@10": fold.fitted_recall,
                "figures": figures(fold.outcomes, _depths(limit)),
            }
            for fold in folds
        ],
        "overall": figures(everything, _depths(limit)),
    }


def show_split(made: Mapping[str, Any]) -> None:
    """Print what `split` found."""
    rows = {
        ", ".join(fold["reported_on"]): fold["weights"]
        | {"fitted recall@10": fold["fitted recall@10"]}
        | fold["figures"]
        for fold in made["folds"]
    }
    table("reported on", rows | {"all of these": made["overall"]})


def _left_out(collections: Sequence[Collection]) -> dict[str, Any]:
    return {
        "unresolved_evidence": sum(one.unresolved for one in collections),
        "questions_left_out": sum(one.unanswerable for one in collections),
    }


def _figures(outcomes: Sequence[Outcome], limit: int) -> dict[str, Any]:
    categories = grouped(
        outcomes, lambda question: f"{question.kind} {locomo.CATEGORIES.get(question.kind, '')}"
    )
    conversations = grouped(outcomes, lambda question: question.origin)
    depths = _depths(limit)
    return {
        "overall": figures(outcomes, depths),
        "categories": {name: figures(part, depths) for name, part in categories.items()},
        "conversations": {name: figures(part, depths) for name, part in conversations.items()},
    }


def _depths(limit: int) -> list[int]:
    return [depth for depth in DEPTHS if depth <= limit] or [limit]
