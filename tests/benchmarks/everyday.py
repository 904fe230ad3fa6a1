"""What people tell an assistant and ask it later, measured as they do it: over the socket.

A file of `data/everyday/` is one invented person: `facts` told during six weeks before `now`;
`questions` in other words (kinds `same`, `across` and `across-more` languages, `date`,
`unanswered`, `unknown-of-known`); `corrections` with a question for what is true and for what was
true `before`; `look_alikes`, which are both true; and `contexts`, requests whose context must have
some facts. The person `sealed` is read only for a final figure: nothing of it is ever shown.
The people of `data/corrections/` have only facts, corrections and look-alikes.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from asking import load, rankers
from collection import Collection, Question
from corpus import Corpus
from quality import Outcome, times
from report import table
from running import Wire, request, with_query

FOLDER = Path(__file__).with_name("data") / "everyday"
SEALED = "sealed"
_OURS = "thermocline"
_LIMIT = 20
_SHOWN = 3
_HOUR, _DAY = 3_600.0, 86_400.0
_GAPS = {"0 s": 0.0, "30 s": 30.0, "1 h": _HOUR, "1 d": _DAY, "30 d": 30 * _DAY}
_CORRECTED_AGO = _HOUR
OTHERS = 2_000
_UNANSWERED = {"unanswered": "unanswered", "unknown-of-known": "unknown of a known"}

Count = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person as agents of a daemon.

    Attributes:
        facts: what was told, with the questions about it.
        corrected: the same with the corrections, the newer that long after the older, by the gap.
        alike: the same with statements that look alike.
        contexts: requests, each with the texts that its context needs.
    """

    facts: Collection
    corrected: Mapping[str, Collection]
    alike: Collection
    contexts: Sequence[tuple[str, tuple[str, ...]]]

    @property
    def is_sealed(self) -> bool:
        """Whether only figures may be shown."""
        return self.facts.name == SEALED


@dataclass
class Measured:
    """How many were right, of how many, by row and ranker; the answers; and what went wrong."""

    counts: dict[str, dict[str, Count]] = field(default_factory=lambda: defaultdict(dict))
    outcomes: dict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)

    def add(self, other: Measured) -> None:
        """Count what another person gave."""
        for row, by_ranker in other.counts.items():
            for ranker, (right, total) in by_ranker.items():
                before = self.counts[row].get(ranker, (0, 0))
                self.counts[row][ranker] = (before[0] + right, before[1] + total)
        for ranker, outcomes in other.outcomes.items():
            self.outcomes[ranker] += outcomes

    def count(self, row: str, ranker: str, results: Iterable[bool]) -> None:
        """Count what is true; of nothing there is no row."""
        if values := list(results):
            self.counts[row][ranker] = (sum(values), len(values))

    def milliseconds(self) -> dict[str, dict[str, float]]:
        """Of each question, by the ranker."""
        return {ranker: times(outcomes) for ranker, outcomes in self.outcomes.items() if outcomes}


def names(folder: Path) -> list[str]:
    """The people of a folder that are not sealed."""
    return sorted({path.stem for path in folder.glob("*.json")} - {SEALED})


def read(path: Path) -> Person:
    """The person of a file, under the file's name.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON, or something names a fact that is not there.
        KeyError: it is not in the format.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    now = _seconds(document["now"])
    memories = {
        fact["id"]: {"text": fact["text"], "created_at": _seconds(fact["told"])}
        for fact in document["facts"]
    }
    for place, entry in enumerate(document["questions"]):
        if not set(entry["right"]) <= set(memories):
            raise ValueError(f"question {place + 1} names a fact that is not there")
    facts = Collection(
        name=path.stem,
        memories=memories,
        questions=tuple(
            Question(
                text=entry["text"],
                right=frozenset(entry["right"]),
                kind=entry["kind"],
            )
            for entry in document["questions"]
        ),
        asked_at=now,
    )
    corrected = {
        gap: _corrected(facts, document["corrections"], gap, now - _CORRECTED_AGO) for gap in _GAPS
    }
    contexts = [
        (entry["request"], tuple(memories[key]["text"] for key in entry["needs"]))
        for entry in document["contexts"]
    ]
    alike = _alike(facts, document["look_alikes"], now)
    return Person(facts=facts, corrected=corrected, alike=alike, contexts=contexts)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _corrected(
    facts: Collection, entries: Sequence[Mapping[str, str]], gap: str, at: float
) -> Collection:
    memories, questions = dict(facts.memories), []
    for place, entry in enumerate(entries):
        older, newer = f"older {place}", f"newer {place}"
        memories[older] = {"text": entry["older"], "created_at": at - _GAPS[gap]}
        memories[newer] = {"text": entry["newer"], "created_at": at}
        questions += [
            _question(entry["question"], "now", right={newer}, stale={older}),
            _question(entry["before"], "before", right={older}, stale={newer}),
        ]
    name = f"{facts.name} corrected after {gap}"
    return replace(facts, name=name, memories=memories, questions=tuple(questions))


def _alike(facts: Collection, entries: Sequence[Mapping[str, str]], now: float) -> Collection:
    memories, questions = dict(facts.memories), []
    for place, entry in enumerate(entries):
        first, second = f"first {place}", f"second {place}"
        memories[first] = {"text": entry["first"], "created_at": now - 2 * _DAY}
        memories[second] = {"text": entry["second"], "created_at": now - _DAY}
        questions.append(_question(entry["question"], "look-alikes", right={first, second}))
    name = f"{facts.name} look-alikes"
    return replace(facts, name=name, memories=memories, questions=tuple(questions))


def _question(text: str, kind: str, right: set[str], stale: Iterable[str] = ()) -> Question:
    return Question(text=text, right=frozenset(right), stale=frozenset(stale), kind=kind)


def measure(wire: Wire, person: Person, others: int = OTHERS) -> Measured:
    """All figures of a person, each part in an agent of its own."""
    measured = Measured()
    answers = _answers(wire, person.facts)
    measured.outcomes.update(answers)
    for ranker, outcomes in answers.items():
        _count_answers(measured, ranker, outcomes)
    _count_certainty(measured, answers[_OURS])
    _note_answers(measured, person.facts, answers[_OURS])
    for gap, corrected in person.corrected.items():
        _count_corrections(measured, gap, corrected, _answers(wire, corrected))
    _count_alike(measured, person.alike, _answers(wire, person.alike))
    _count_contexts(measured, wire, person, others)
    if person.is_sealed:
        measured.failures.clear()
    return measured


def _answers(wire: Wire, collection: Collection) -> dict[str, list[Outcome]]:
    by_ranker = rankers(wire, collection, limit=_LIMIT, apart=True)
    return {ranker: list(map(ask, collection.questions)) for ranker, ask in by_ranker.items()}


def _count_answers(measured: Measured, ranker: str, outcomes: Sequence[Outcome]) -> None:
    main, across, date = (
        _of(outcomes, *kinds)
        for kinds in (("same", "across"), ("across", "across-more"), ("date",))
    )
    measured.count("first right", ranker, (outcome.any(1) for outcome in main))
    measured.count("among five", ranker, (outcome.any(5) for outcome in main))
    measured.count("across languages among five", ranker, (outcome.any(5) for outcome in across))
    measured.count("dates first", ranker, (outcome.any(1) for outcome in date))
    measured.count("dates among five", ranker, (outcome.any(5) for outcome in date))
    answerable = (outcome for outcome in outcomes if outcome.question.right)
    measured.count("answers without a result", ranker, (not outcome.keys for outcome in answerable))


def _count_certainty(measured: Measured, outcomes: Sequence[Outcome]) -> None:
    answerable = [outcome for outcome in outcomes if outcome.question.right]
    measured.count("first said to be sure", _OURS, (outcome.sure for outcome in answerable))
    sure = (outcome for outcome in answerable if outcome.sure)
    measured.count("of these right", _OURS, (outcome.any(1) for outcome in sure))
    for kind, title in _UNANSWERED.items():
        of_kind = (outcome.sure for outcome in _of(outcomes, kind))
        measured.count(f"{title}, said to be sure", _OURS, of_kind)
    for confidence in ("sure", "unsure", "none"):
        of_answers = (outcome.confidence == confidence for outcome in answerable)
        measured.count(f"answers of confidence {confidence}", _OURS, of_answers)


def _note_answers(measured: Measured, facts: Collection, outcomes: Sequence[Outcome]) -> None:
    answerable = [outcome for outcome in outcomes if outcome.question.right]
    in_five = [outcome for outcome in answerable if outcome.any(5)]
    _note(measured, facts, answerable, lambda outcome: outcome.any(5), "not in five")
    _note(measured, facts, in_five, lambda outcome: outcome.any(1), "not first")
    unanswerable = _of(outcomes, *_UNANSWERED)
    _note(measured, facts, unanswerable, lambda outcome: not outcome.sure, "said to be sure")


def _count_corrections(
    measured: Measured, gap: str, corrected: Collection, answers: Mapping[str, list[Outcome]]
) -> None:
    for kind in ("now", "before"):
        row = f"corrected after {gap}, {kind}"
        for ranker, outcomes in answers.items():
            measured.count(row, ranker, map(_is_better, _of(outcomes, kind)))
        _note(measured, corrected, _of(answers[_OURS], kind), _is_better, row)


def _is_better(outcome: Outcome) -> bool:
    """Whether the right one of the two is there, and above the other."""
    return outcome.any(_LIMIT) and not outcome.stale_first


def _count_alike(
    measured: Measured, alike: Collection, answers: Mapping[str, list[Outcome]]
) -> None:
    for ranker, outcomes in answers.items():
        both = (outcome.share(5) == 1 for outcome in outcomes)
        measured.count("look-alikes both among five", ranker, both)
    measured.count("and none marked outdated", _OURS, map(_is_both, answers[_OURS]))
    _note(measured, alike, answers[_OURS], _is_both, "look-alikes")


def _is_both(outcome: Outcome) -> bool:
    return outcome.share(5) == 1 and outcome.outdated.isdisjoint(outcome.question.right)


def _count_contexts(measured: Measured, wire: Wire, person: Person, count: int) -> None:
    """A context is read at the daemon's own time, so all was told as long before that."""
    if not person.contexts:
        return
    now = time.time()
    later = now - (person.facts.asked_at or now)
    facts = {
        key: body | {"created_at": body["created_at"] + later}
        for key, body in person.facts.memories.items()
    }
    others = {str(place): body for place, body in enumerate(Corpus().memories(count, now))}
    alone = replace(person.facts, name=f"{person.facts.name} alone", memories=facts)
    crowd = replace(person.facts, name=f"{person.facts.name} among others", memories=others)
    load(wire, crowd)
    load(wire, replace(crowd, memories=facts), apart=True)
    load(wire, alone, apart=True)
    titles = {alone.agent: "contexts", crowd.agent: f"contexts among {count:,} others"}
    for agent, title in titles.items():
        complete: list[bool] = []
        for text, needs in person.contexts:
            missing = _missing(wire, agent, text, needs)
            complete.append(not missing)
            measured.failures += [f"{title}: {text}\n    = {need}" for need in missing]
        measured.count(title, _OURS, complete)


def _missing(wire: Wire, agent: str, text: str, needs: Sequence[str]) -> list[str]:
    path = with_query("/api/context", {"agent": agent})
    reply = wire.send(request("POST", path, {"query": text, "format": "json"})).decode()
    return [need for need in needs if json.dumps(need, ensure_ascii=False)[1:-1] not in reply]


def _of(outcomes: Iterable[Outcome], *kinds: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.question.kind in kinds]


def _note(
    measured: Measured,
    collection: Collection,
    outcomes: Iterable[Outcome],
    is_right: Callable[[Outcome], bool],
    why: str,
) -> None:
    """Keep what went wrong, with the texts that came first and should have."""
    for outcome in outcomes:
        question = outcome.question
        if is_right(outcome):
            continue
        wanted = (collection.memories[key]["text"] for key in sorted(question.right))
        first = (collection.memories[key]["text"] for key in outcome.keys[:_SHOWN])
        label = why if question.kind in why else f"{why}, {question.kind}"
        lines = [f"{label}: {question.text}", *(f"    = {text}" for text in wanted)]
        measured.failures.append("\n".join([*lines, *(f"    {text}" for text in first)]))


def show(name: str, measured: Measured) -> None:
    """Print the figures of a person, or of all."""
    rows: dict[str, dict[str, float | str]] = {
        row: {ranker: f"{right} of {total}" for ranker, (right, total) in by_ranker.items()}
        for row, by_ranker in measured.counts.items()
    }
    by_ranker = measured.milliseconds()
    for part in ("p50", "p99") if by_ranker else ():
        rows[f"{part} ms"] = {ranker: figures[part] for ranker, figures in by_ranker.items()}
    table(name, rows)


def figures(measured: Measured) -> dict[str, Any]:
    """The same for JSON."""
    return {"counts": measured.counts, "milliseconds": measured.milliseconds()}
