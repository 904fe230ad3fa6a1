"""What an agent has before it acts: whether the block and recall have what a request needs.

    python tests/benchmarks/acting.py

Each entry of `data/acting` is what somebody told, other messages of theirs, and a request
in other words, weeks later. All are in one memory, stored as they are and told in conversations, so
that the block cannot show everything. Beside recall stands FTS5. `held_out` has been read by nobody
who works on the ranking.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from asking import PlainFts5
from collection import Collection, Question
from report import table
from running import Running, Wire, with_query

_FOLDER = Path(__file__).with_name("data") / "acting"
_APART = 6 * 86_400.0
_LIMIT = 5


def messages(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The messages of all people in the order of telling, the oldest first."""
    told = [[entry["told"], *entry["others"]] for entry in entries]
    longest = max(map(len, told))
    return [texts[place] for place in range(longest) for texts in told if place < len(texts)]


def has(text: str, entry: dict[str, Any]) -> bool:
    """Whether a text has all that a request needs."""
    return all(word.lower() in text.lower() for word in entry["needs"])


def results(wire: Wire, agent: str, entry: dict[str, Any]) -> list[str]:
    """The texts that recall finds for a request."""
    body = {"query": entry["request"], "limit": _LIMIT, "reinforce": False}
    return [
        one["text"]
        for one in wire.post(with_query("/api/recall", {"agent": agent}), body)["results"]
    ]


def store(wire: Wire, agent: str, texts: Sequence[str]) -> None:
    path, begun = with_query("/api/memory", {"agent": agent}), time.time() - len(texts) * 600
    for number, text in enumerate(texts):
        wire.post(path, {"text": text, "created_at": begun + number * 600})


def tell(wire: Wire, agent: str, texts: Sequence[str]) -> None:
    path = with_query("/api/observe", {"agent": agent})
    for number, text in enumerate(texts):
        turns = [{"role": "user", "content": text}]
        wire.post(path, {"conversation": str(number), "messages": turns, "wait": True})


def measured(wire: Wire, entries: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """The counts of requests whose needs are met, by where."""
    texts = messages(entries)
    for agent, fill in (("stored", store), ("told", tell)):
        fill(wire, agent, texts)
        blocks = (wire.get("/api/context", agent=agent, query=one["request"]) for one in entries)
        yield f"{agent}: in the block", sum(map(has, (one["text"] for one in blocks), entries))
        found = [results(wire, agent, entry) for entry in entries]
        pairs = [*zip(found, entries, strict=True)]
        yield f"{agent}: first", sum(bool(of) and has(of[0], entry) for of, entry in pairs)
        yield f"{agent}: in five", sum(any(has(one, entry) for one in of) for of, entry in pairs)
    known = {str(number): {"text": text} for number, text in enumerate(texts)}
    baseline = PlainFts5(Collection(name="all", memories=known, questions=()), limit=_LIMIT)
    asked = [Question(text=entry["request"], right=frozenset(), kind="") for entry in entries]
    answers = [[known[key]["text"] for key in baseline.ask(one).keys] for one in asked]
    pairs = [*zip(answers, entries, strict=True)]
    yield "FTS5: first", sum(bool(of) and has(of[0], entry) for of, entry in pairs)
    yield "FTS5: in five", sum(any(has(one, entry) for one in of) for of, entry in pairs)


def main() -> None:
    columns: dict[str, dict[str, str]] = {}
    for file in sorted(_FOLDER.glob("*.json")):
        entries = json.loads(file.read_text("utf-8"))
        with (
            tempfile.TemporaryDirectory(prefix="thermocline-acting-") as folder,
            Running(Path(folder)) as daemon,
            closing(daemon.connect()) as wire,
        ):
            for name, count in measured(wire, entries):
                columns.setdefault(name, {})[file.stem] = f"{count} of {len(entries)}"
    table("what a request needs", columns)


if __name__ == "__main__":
    main()
