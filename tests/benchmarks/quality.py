"""From the answers to the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from collection import Question
from measuring import percentile

DEPTHS = (5, 10, 20)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came back for a question.

    Attributes:
        found: keys of the memories, the best first.
        top: the relevance of the first, 0 if nothing came.
        sure: whether the first is said to be sure.
    """

    question: Question
    found: tuple[str, ...]
    top: float
    milliseconds: float
    sure: bool = False

    def ranks(self, keys: frozenset[str]) -> list[int]:
        """At which places, from 1, any of `keys` came."""
        return [rank for rank, key in enumerate(self.found, 1) if key in keys]

    def share(self, depth: int) -> float:
        """How much of what is right is among the first `depth`."""
        found = self.ranks(self.question.right)
        return sum(rank <= depth for rank in found) / len(self.question.right)

    def any(self, depth: int) -> bool:
        """Whether anything right is among the first `depth`."""
        return bool(self.share(depth))

    @property
    def reciprocal(self) -> float:
        """1 / the rank of the first right one, 0 if none came."""
        return 1 / min(self.ranks(self.question.right), default=float("inf"))

    @property
    def stale_first(self) -> bool:
        """Whether something overtaken stands above everything right."""
        missing = len(self.found) + 1
        stale = min(self.ranks(self.question.stale), default=missing)
        return stale < min(self.ranks(self.question.right), default=missing)


def figures(outcomes: Sequence[Outcome], depths: Iterable[int] = DEPTHS) -> dict[str, float]:
    """Recall as the mean share of what is right and as "anything right", and MRR."""
    made: dict[str, float] = {"questions": len(outcomes)}
    for depth in depths:
        made[f"recall@{depth}"] = fmean(one.share(depth) for one in outcomes)
    for depth in depths:
        made[f"any@{depth}"] = fmean(one.any(depth) for one in outcomes)
    return made | {"mrr": fmean(one.reciprocal for one in outcomes)}


def fact_figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """How often the first is right, recall in five, and how often a stale one comes first."""
    made: dict[str, float] = {
        "questions": len(outcomes),
        "precision@1": fmean(one.any(1) for one in outcomes),
        "recall@5": fmean(one.share(5) for one in outcomes),
        "mrr": fmean(one.reciprocal for one in outcomes),
    }
    overtaken = [one for one in outcomes if one.question.stale]
    if overtaken:
        made["overtaken"] = len(overtaken)
        made["stale first"] = fmean(one.stale_first for one in overtaken)
    return made


def refusal_figures(unanswered: Sequence[Outcome], answered: Sequence[Outcome]) -> dict[str, float]:
    """How well what has no answer can be told from what has one.

    `told apart` is how often a question with an answer has the higher first relevance of the two,
    over all pairs, where both kinds were asked; a tie counts half, so that 0.5 is chance.
    """
    made = {
        "questions": len(unanswered),
        "empty": fmean(not one.found for one in unanswered),
        "first relevance": median(one.top for one in unanswered),
    }
    if answered:
        pairs = ((yes.top, no.top) for no in unanswered for yes in answered)
        made["where answered"] = median(one.top for one in answered)
        made["told apart"] = fmean((yes > no) + (yes == no) / 2 for yes, no in pairs)
    return made


def times(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Milliseconds for each question."""
    ordered = sorted(one.milliseconds for one in outcomes)
    return {"p50": percentile(ordered, 0.5), "p99": percentile(ordered, 0.99)}


def grouped(
    outcomes: Iterable[Outcome], name: Callable[[Question], str]
) -> dict[str, list[Outcome]]:
    """The outcomes by what `name` says of their questions, in order of the names."""
    groups: dict[str, list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault(name(one.question), []).append(one)
    return dict(sorted(groups.items()))
