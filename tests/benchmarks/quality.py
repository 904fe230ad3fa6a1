"""From the answers to the figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from collection import Question
from measuring import percentile


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The answer to a question.

    Attributes:
        keys: keys of the memories, the best first.
        sure: whether the first is said to be sure.
        confidence: of the whole answer: `sure`, `unsure`, `none`; empty where nothing says it.
        outdated: those of `keys` that are marked as overtaken.
    """

    question: Question
    keys: tuple[str, ...]
    milliseconds: float
    sure: bool = False
    confidence: str = ""
    outdated: frozenset[str] = frozenset()

    def ranks(self, keys: frozenset[str]) -> list[int]:
        """The places, from 1, of any of `keys`."""
        return [rank for rank, key in enumerate(self.keys, 1) if key in keys]

    def share(self, depth: int) -> float:
        """How much of what is right is among the first `depth`."""
        ranks = self.ranks(self.question.right)
        return sum(rank <= depth for rank in ranks) / len(self.question.right)

    def any(self, depth: int) -> bool:
        """Whether anything right is among the first `depth`."""
        return bool(self.share(depth))

    @property
    def reciprocal(self) -> float:
        """1 / the rank of the first right result, 0 without any."""
        return 1 / min(self.ranks(self.question.right), default=math.inf)

    @property
    def stale_first(self) -> bool:
        """Whether something overtaken stands above everything right."""
        missing = len(self.keys) + 1
        stale = min(self.ranks(self.question.stale), default=missing)
        return stale < min(self.ranks(self.question.right), default=missing)


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """P@1, R@5, R@10 and MRR; nDCG@10 where several are right, how often a stale one is first."""
    answered = [outcome for outcome in outcomes if outcome.question.right]
    rows = {
        "questions": len(answered),
        "P@1": fmean(outcome.any(1) for outcome in answered),
        "R@5": fmean(outcome.share(5) for outcome in answered),
        "R@10": fmean(outcome.share(10) for outcome in answered),
    }
    if any(len(outcome.question.right) > 1 for outcome in answered):
        rows["nDCG@10"] = fmean(_ndcg(outcome, 10) for outcome in answered)
    rows["MRR"] = fmean(outcome.reciprocal for outcome in answered)
    if overtaken := [outcome for outcome in answered if outcome.question.stale]:
        rows["stale first"] = fmean(outcome.stale_first for outcome in overtaken)
    return rows | {"p50 ms": times(answered)["p50"]}


def times(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Milliseconds for each question."""
    ordered = sorted(outcome.milliseconds for outcome in outcomes)
    return {"p50": percentile(ordered, 0.5), "p99": percentile(ordered, 0.99)}


def _ndcg(outcome: Outcome, depth: int) -> float:
    ranks = [rank for rank in outcome.ranks(outcome.question.right) if rank <= depth]
    ideal = range(1, 1 + min(depth, len(outcome.question.right)))
    return sum(map(_discount, ranks)) / sum(map(_discount, ideal))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)
