"""Weights: reading them, and choosing them on some conversations to judge them on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from quality import Outcome, figures

PARTS = ("match", "recency", "importance")
# Only the proportions count, so `match` stays 1.
_RECENCY = (0.0, 0.03, 0.1, 0.2, 0.35, 0.6, 1.0)
_IMPORTANCE = (0.0, 0.1, 0.35)
_DEPTH = 10

Weights = Mapping[str, float]
Ask = Callable[[str, Weights], Sequence[Outcome]]


@dataclass(frozen=True, kw_only=True)
class Fold:
    """The weights that were best on some conversations, and what they give on the others."""

    fitted_on: tuple[str, ...]
    reported_on: tuple[str, ...]
    weights: Weights
    fitted_recall: float
    outcomes: tuple[Outcome, ...]


def parse(text: str) -> dict[str, float]:
    """Weights out of `match=0.6,recency=0.2`.

    Raises:
        ValueError: a part is unknown, or its weight no number.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name.strip() not in PARTS:
            raise ValueError(f"there is no weight {name!r}; there are {', '.join(PARTS)}")
        weights[name.strip()] = float(value)
    return weights


def grid() -> list[dict[str, float]]:
    """The weights that are tried."""
    return [
        {"match": 1.0, "recency": recency, "importance": importance}
        for recency, importance in product(_RECENCY, _IMPORTANCE)
    ]


def folds(
    names: Sequence[str], fit_on: Sequence[str]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Pairs of names to fit on and to report on.

    Without `fit_on` each conversation is held out once.

    Raises:
        ValueError: one side would be empty, or a name is unknown.
    """
    if unknown := set(fit_on) - set(names):
        raise ValueError(f"there is no conversation {', '.join(sorted(unknown))}")
    held_out = [tuple(name for name in names if name not in fit_on)]
    if not fit_on:
        held_out = [(name,) for name in names]
    pairs = [(tuple(name for name in names if name not in out), out) for out in held_out]
    if not all(fitted and reported for fitted, reported in pairs):
        raise ValueError("a split needs a conversation to fit on and another to report on")
    return pairs


def fit(names: Sequence[str], fit_on: Sequence[str], ask: Ask) -> list[Fold]:
    """Try the whole grid on every conversation, then choose for each fold by recall@10.

    Of weights that are equally good, the first of the grid, which trusts the match most.
    """
    split = folds(names, fit_on)
    tried = [{name: tuple(ask(name, weights)) for name in names} for weights in grid()]
    return [_fold(fitted, reported, tried) for fitted, reported in split]


def _fold(
    fitted: tuple[str, ...],
    reported: tuple[str, ...],
    tried: Sequence[Mapping[str, tuple[Outcome, ...]]],
) -> Fold:
    recalls = [_recall(_of(fitted, outcomes)) for outcomes in tried]
    best = recalls.index(max(recalls))
    return Fold(
        fitted_on=fitted,
        reported_on=reported,
        weights=grid()[best],
        fitted_recall=recalls[best],
        outcomes=_of(reported, tried[best]),
    )


def _of(names: Sequence[str], outcomes: Mapping[str, tuple[Outcome, ...]]) -> tuple[Outcome, ...]:
    return tuple(one for name in names for one in outcomes[name])


def _recall(outcomes: Sequence[Outcome]) -> float:
    return figures(outcomes, (_DEPTH,))[f"recall@{_DEPTH}"]
