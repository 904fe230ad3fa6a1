"""What the sections of one context block share: the answer to its query, and its memories.

A memory that another one contradicts is left out; the newer one names it.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from ..config.settings import Rules
from ..language.secrets import holds_secret
from ..language.sentences import sentences
from ..language.standing import may_stand
from ..memory.checks import SOURCE_CHARS
from ..memory.records import DEFAULT_CATEGORY, USER_STATED, Memory
from ..memory.vectors import Nearness
from ..store.database.connection import derived
from ..store.records.memory_rows import SELECT, fetch, from_row
from ..store.records.selecting import Filters, at_rows, teach_score, where
from .answer import Answer, Hit
from .context_items import BlockItem, attribute, escaped
from .query import is_question, little
from .recall import Request, recall
from .sources import MEMORIES, telling

T = TypeVar("T")

# Of the memories: the results of a query, and those shown without one.
MOST_MEMORIES: Final = 10
# The sources whose results sections show.
_SHOWN: Final = frozenset({"memory", "pair", "file", "episode", "skill", "experience"})
# The results of all sources, and how many of them may be unsure; the least relevance of an unsure
# one in a block of results alone, which nobody has asked for.
_HITS: Final = 20
_UNSURE: Final = 3
_LEAST_UNASKED: Final = 0.3
_SENTENCES: Final = 6
# How long what needs no query is cached: ages and scores move by so much.
_CACHED_SECONDS: Final = 60.0
# What these actors say is not quoted, by its source; a whole turn may have a pasted page.
_OWN_VOICES: Final = {"": frozenset({"", "assistant"}), USER_STATED: frozenset({"", "user"})}
_ALWAYS: Final = 100
# The tokens of the shortest item, and the maximum number of characters of a token.
_LEAST_TOKENS: Final = 8
_CHARS_PER_TOKEN: Final = 4
_REPLACED_CHARS: Final = 110
_LONGEST_CHAIN: Final = 8
# The archived memories, which score less, follow by age.
_BY_SCORE: Final = {
    "archived_at IS NULL": (
        "pinned DESC, score(importance, created_at, access_count, pinned) DESC, row DESC"
    ),
    "archived_at IS NOT NULL": "created_at DESC, row DESC",
}


def quoted(memory: Memory, line: str) -> str:
    """A line about a memory; quoted with its source if that came from outside."""
    if not memory.is_outside:
        return line
    return f'<quote from="{attribute(memory.source, SOURCE_CHARS)}">{escaped(line)}</quote>'


def is_secret(memory: Memory) -> bool:
    """Whether a memory holds a secret, which only a sure result of the query may show."""
    return holds_secret(_text_of(memory))


def shown_hits(answer: Answer, most_unsure: int | None = None) -> list[Hit]:
    """The results that may be shown: of those that hold a secret only what surely answers.

    It must have most words of the query, too: no single word in common gives a password away.
    Secrets are searched in no more unsure ones than are needed. Beyond `most_unsure` are only
    memories that may stand: what a plan must respect is rarely what answers it.
    """
    telling = {word.text for word in answer.query.words if not word.is_grammar} - little()

    def may_show(hit: Hit) -> bool:
        met = telling & {*hit.words, *hit.meant}
        if hit.sure and 2 * len(met) > len(telling):
            return True
        is_memory = isinstance(hit.item, Memory)
        return not (is_secret(hit.memory) if is_memory else holds_secret(hit.text))

    def may_bind(hit: Hit) -> bool:
        item = hit.item
        return isinstance(item, Memory) and not item.is_outside and may_stand(item.text)

    shown: list[Hit] = []
    unsure = 0
    for hit in answer.hits:
        is_among = hit.sure or most_unsure is None or unsure < most_unsure
        if (is_among or may_bind(hit)) and may_show(hit):
            unsure += not hit.sure
            shown.append(hit)
    return shown


def _unasked_hits(answer: Answer, *, asks: bool) -> list[Hit]:
    """The results to add to a prompt: the sure ones; to a question also those about a topic of it.

    A frame such as "called" is met by chance; what is near in meaning has no words to meet.
    """
    topics = {word.text for word in answer.query.words if not word.is_grammar} - little()

    def answers(hit: Hit) -> bool:
        is_about = not topics.isdisjoint({*hit.words, *hit.meant})
        return asks and is_about and hit.relevance >= _LEAST_UNASKED

    return [hit for hit in answer.hits if hit.sure or hit.method == "meaning" or answers(hit)]


def _text_of(memory: Memory) -> str:
    return f"{memory.text} → {memory.outcome}" if memory.outcome else memory.text


class BlockRequest(msgspec.Struct, frozen=True):
    """The agent and the query that a context block is made for.

    `found`: include only results of the query. `isolated`: show nothing of what the filters leave
    out. `max_tokens` is the size of the sections. `nearness` is that to the query.
    """

    agent: str
    query: str
    now: float
    local: dt.tzinfo
    rules: Rules
    filters: Filters = Filters()
    found: bool = False
    isolated: bool = False
    max_tokens: int = 2_000
    format: str = "thermocline"
    nearness: Nearness | None = None

    @property
    def shown_at(self) -> float:
        """The time at which ages are shown: the last full minute."""
        return self.now // _CACHED_SECONDS * _CACHED_SECONDS


class BlockReading:
    """What the sections of one block share, each read once.

    Args:
        db: the snapshot that all is read from.
        request: what the block is made for.
        sources: the sources of recall that its query searches; None: all.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        request: BlockRequest,
        sources: frozenset[str] | None = None,
    ) -> None:
        self.db = db
        self.request = request
        self._sources = sources
        self._sees_memories = MEMORIES.passes(request.filters, request.now) is not None

    def cached(self, name: str, make: Callable[[], T]) -> T:
        """`make()`, which depends on no query, cached while database and minute are the same."""
        request = self.request
        if request.filters != Filters():
            return make()
        # A memory that expires must not be shown for the rest of the minute.
        (expired_at,) = self.db.execute(
            "SELECT max(expires_at) FROM memories WHERE expires_at IS NOT NULL AND expires_at <= ?",
            (request.now,),
        ).fetchone()
        state = (
            *(request.shown_at, expired_at),
            *(request.rules, request.local, request.agent, request.max_tokens, request.format),
        )
        return derived(self.db, name, state, make)

    @cached_property
    def answer(self) -> Answer | None:
        """The answer to the query; None if there is no query.

        Of a turn that finds nothing certain as a whole, each sentence is asked too. No hit gives a
        secret away that is not asked for.
        """
        if not self.request.query.strip():
            return None
        rules = self.request.rules
        request = Request(
            text=self.request.query,
            filters=self.request.filters,
            isolated=self.request.isolated,
            sources=self._sources,
            shown=_SHOWN,
            limit=_HITS,
            weights=rules.recall.weights,
            scoring=rules.scoring,
            now=self.request.now,
            local=self.request.local,
            nearness=self.request.nearness,
        )
        answer = recall(self.db, request, rules.recall)
        most_unsure = None if self.request.found else _UNSURE
        answer = replace(answer, hits=tuple(shown_hits(answer, most_unsure)))
        if not self.request.found:
            return answer
        parts = sentences(request.text)[:_SENTENCES]
        asks = any(map(is_question, parts))
        answer = replace(answer, hits=tuple(_unasked_hits(answer, asks=asks)))
        if answer.confidence == "sure":
            return answer
        if len(parts) < 2:
            return answer
        # The whole turn was encoded, not its sentences.
        words = replace(request, nearness=None)
        answers = [recall(self.db, replace(words, text=part), rules.recall) for part in parts]
        sure = [hit for partial in answers for hit in shown_hits(partial) if hit.sure]
        sure.sort(key=lambda hit: hit.relevance, reverse=True)
        hits = {(hit.source, hit.id): hit for hit in reversed((*sure, *answer.hits))}
        return replace(answer, hits=tuple(hits.values())[::-1])

    @cached_property
    def _hits(self) -> Sequence[Hit]:
        """The hits that are sure, and the first few others: nobody has asked for them."""
        if self.answer and not self.request.found:
            return self.answer.hits
        hits: list[Hit] = []
        unsure = 0
        for hit in self.answer.hits if self.answer else ():
            unsure += not hit.sure
            if hit.sure or unsure <= _UNSURE:
                hits.append(hit)
        return hits

    def hits(self, source: str, limit: int) -> Sequence[Hit]:
        """The best hits of a source of recall; none without a query."""
        return [hit for hit in self._hits if hit.source == source][:limit]

    @cached_property
    def memory_hits(self) -> Mapping[str, tuple[Memory, Hit]]:
        """The results by id, the newest statement in place of those that it replaces."""
        results: dict[str, tuple[Memory, Hit]] = {}
        for hit in self.hits(MEMORIES.name, MOST_MEMORIES):
            memory = self._latest(hit.memory)
            if memory is hit.memory or is_secret(hit.memory) or not is_secret(memory):
                results.setdefault(memory.id, (memory, hit))
        return results

    def _latest(self, memory: Memory) -> Memory:
        """The newest memory that replaces this one; itself without any to show."""
        for _ in range(_LONGEST_CHAIN):
            newer = memory.superseded_by and fetch(self.db, memory.superseded_by)
            if not newer or not self._passes(newer.id):
                break
            memory = newer
        return memory

    def _passes(self, key: str) -> bool:
        condition, arguments = where(self.request.filters, self.request.now)
        query = f"SELECT 1 FROM memories WHERE id = ? AND {condition}"
        return self.db.execute(query, (key, *arguments)).fetchone() is not None

    @cached_property
    def memories(self) -> Sequence[Memory]:
        """The memories that are results; without a query the first by score."""
        if self.answer is None:
            return self.by_score[:MOST_MEMORIES]
        return [memory for memory, _ in self.memory_hits.values()]

    @cached_property
    def by_score(self) -> Sequence[Memory]:
        """As many memories as fill a block, by score; if they do not, these are all there are.

        None of them holds a secret, nor does any of `always`: no question has asked for it.
        """
        request = self.request
        if not self._sees_memories:
            return ()
        teach_score(self.db, request.now, request.rules.scoring)
        condition, arguments = telling(request.filters, request.now)
        room, limit = request.max_tokens, request.max_tokens // _LEAST_TOKENS + 1
        rows: list[int] = []
        for archived, order in _BY_SCORE.items():
            for row, chars in self.db.execute(
                f"SELECT row, length(text) + length(outcome) FROM memories WHERE {condition}"
                f" AND superseded_by IS NULL AND {archived} ORDER BY {order} LIMIT ?",
                (*arguments, limit - len(rows)),
            ):
                if room < 0:
                    break
                rows.append(row)
                room -= _LEAST_TOKENS + chars // _CHARS_PER_TOKEN
        memories = at_rows(self.db, rows)
        return [memories[row] for row in rows if not is_secret(memories[row])]

    @cached_property
    def always(self) -> Sequence[Memory]:
        """The standing memories, the most important first; then the pinned ones."""
        request = self.request
        if not self._sees_memories:
            return ()
        wanted = replace(request.filters, standing=True, outside=False)
        condition, arguments = where(wanted, request.now)
        rows = self.db.execute(
            f"{SELECT} WHERE {condition} AND superseded_by IS NULL"
            " ORDER BY pinned DESC, importance DESC, created_at DESC LIMIT ?",
            (*arguments, _ALWAYS),
        )
        memories = map(from_row, rows)
        standing = {memory.id: memory for memory in memories if not is_secret(memory)}
        pinned = (memory for memory in self.by_score if memory.pinned and not memory.is_outside)
        standing |= {memory.id: memory for memory in pinned if memory.id not in standing}
        return [*standing.values()]

    def items(self, memories: Sequence[Memory]) -> list[BlockItem]:
        """Memories as items of the block, each with what it replaces."""
        replaced = self._replaced(memories)
        items: list[BlockItem] = []
        for memory in memories:
            text = _text_of(memory)
            category = "" if memory.category == DEFAULT_CATEGORY else memory.category
            replaces, replaces_quoted = replaced.get(memory.id, ("", False))
            item = BlockItem(
                f"(superseded) {text}" if memory.superseded_by is not None else text,
                memory.source if memory.is_outside else memory.actor or memory.source or category,
                memory.created_at,
                memory.id,
                quoted=self._is_quoted(memory.actor, memory.source, memory.position),
                replaces=replaces,
                replaces_quoted=replaces_quoted,
            )
            items.append(item)
        return items

    def _is_quoted(self, actor: str, source: str, position: int | None) -> bool:
        is_agent = actor == self.request.agent and not source
        is_own = is_agent or actor in _OWN_VOICES.get(source, ())
        return not is_own or (source == USER_STATED and position is not None)

    def _replaced(self, memories: Sequence[Memory]) -> dict[str, tuple[str, bool]]:
        """The beginning of the newest statement that each of these memories contradicts.

        And whether that is to be quoted. Nothing of what the newer repeats.
        """
        newer = {memory.id: memory.text for memory in memories}
        condition, arguments = where(replace(self.request.filters, expired=True), self.request.now)
        rows = self.db.execute(
            "SELECT superseded_by, text, actor, source, position FROM memories"
            " WHERE superseded_by IS NOT NULL"
            f" AND superseded_by IN (SELECT value FROM json_each(?)) AND {condition}"
            " ORDER BY created_at, row",
            (msgspec.json.encode([*newer]).decode(), *arguments),
        )
        result: dict[str, tuple[str, bool]] = {}
        for key, text, actor, source, position in rows:
            if holds_secret(text) or text.rstrip(".") in newer[key]:
                continue
            line = " ".join(text.split())
            line = line if len(line) <= _REPLACED_CHARS else f"{line[:_REPLACED_CHARS]}…"
            result[key] = line, self._is_quoted(actor, source, position)
        return result
