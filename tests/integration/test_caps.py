"""The caps of warm, hot and tree: always kept, and nothing is dropped for them."""

import tempfile
from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from store_parts import Bench, add_memories

from thermocline.daemon.config.settings import Rules
from thermocline.daemon.memory import hot, tree_nodes
from thermocline.daemon.memory import tree as trees
from thermocline.daemon.memory.records import Memory
from thermocline.daemon.memory.scoring import DAY, WarmLimits
from thermocline.daemon.memory.tree_nodes import TreeLimits
from thermocline.daemon.store.database.transaction import Transaction
from thermocline.daemon.store.limits import archive_faded
from thermocline.daemon.store.records import (
    documents,
    key_values,
    memories,
    memory_rows,
    merging,
    tree_rows,
    uses,
)
from thermocline.daemon.store.records.merging import stranded

NOW = 1_790_000_000.0


async def test_what_has_faded_meanwhile_is_archived_by_itself(open_store, make_memory, wall):
    store = await open_store(now=wall)
    for number, uses_before in ((1, 0), (2, 30)):
        fields = {"importance": 0.3, "access_count": uses_before, "created_at": wall.seconds}
        memory = make_memory(number, **fields)
        await add_memories(store, memory)
    cold = "SELECT id FROM memories WHERE archived_at IS NOT NULL"
    for days, archived in ((1, []), (40, [("m00001",)])):
        wall.seconds += days * DAY
        await store.run_maintenance()
        assert await store.read(lambda db: db.execute(cold).fetchall()) == archived


SMALL = Rules(
    warm=WarmLimits(max_kb=2),
    tree=TreeLimits(max_nodes=6, max_depth=3, max_children=3, max_size_bytes=20),
)
NUMBERS = st.integers(min_value=0, max_value=30)
CATEGORIES = st.sampled_from(
    ["root", "general", "a", "a/b", "a/b/c", "a/x", "d/e", "f", "g/h/i", "g/h/j", "k", "l/m"]
)
WORDS = st.sampled_from(["apple", "pear", "plum", "Zürich", "東京都", "naïve", "running"])


class Operations(RuleBasedStateMachine):
    """Any mixture of operations, each in a settled commit, against recounts of the rows."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.bench = Bench(self.folder.name, NOW, SMALL)
        self.db = self.bench.db
        self.texts: dict[str, str] = {}
        self.dirty: set[tuple[str, str]] = set()

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()
            self.folder.cleanup()

    def commit(self, *operations: Callable[[Transaction], object]) -> None:
        self.bench.now += 3600.0
        self.bench.commit(*operations)

    @rule(number=NUMBERS, category=CATEGORIES, word=WORDS, importance=st.floats(0.0, 1.0))
    def store(self, number: int, category: str, word: str, importance: float) -> None:
        key = f"id{number:04d}"
        text = f"{word} of number{number}"
        if key in self.texts:
            old = memories.find(self.db, key)
            new = {"text": text, "category": category, "importance": importance}
            memory = Memory(id=key, created_at=old.created_at, updated_at=self.bench.now, **new)
            kept = {"archived_at": old.archived_at, "original_category": old.original_category}
            merged = {"merged_into": old.merged_into, "access_count": old.access_count}
            values = {name: getattr(memory, name) for name in memory.__struct_fields__}
            whole = Memory(**{**values, **kept, **merged})
            self.commit(lambda tx: memories.replace(tx, old, whole))
        else:
            memory = Memory(
                id=key,
                text=text,
                category=category,
                importance=importance,
                created_at=self.bench.now,
                updated_at=self.bench.now,
            )
            self.commit(lambda tx: memories.insert(tx, memory))
        self.texts[key] = text
        self.dirty.add(("memory", key))

    @rule(number=NUMBERS)
    def delete(self, number: int) -> None:
        key = f"id{number:04d}"
        if self.texts.pop(key, None) is not None:
            self.commit(lambda tx: memories.delete(tx, memories.find(tx.db, key)))
            self.dirty.add(("memory", key))

    @rule(number=NUMBERS)
    def archive(self, number: int) -> None:
        self.commit(lambda tx: memories.archive(tx, [f"id{number:04d}"]))

    @rule(number=NUMBERS, times=st.integers(1, 3))
    def use(self, number: int, times: int) -> None:
        self.commit(lambda tx: uses.count_answers(tx, [[f"id{number:04d}"]] * times))

    @rule(one=NUMBERS, other=NUMBERS)
    def merge(self, one: int, other: int) -> None:
        pair = [memory_rows.fetch(self.db, f"id{number:04d}") for number in (one, other)]
        older, newer = pair
        if one == other or older is None or newer is None:
            return
        if older.merged_into is None and newer.merged_into is None:
            self.commit(lambda tx: merging.merge(tx, older, newer))
            self.dirty |= {("memory", older.id), ("memory", newer.id)}

    @rule(number=NUMBERS)
    def unmerge(self, number: int) -> None:
        memory = memory_rows.fetch(self.db, f"id{number:04d}")
        if memory is not None and memory.merged_into is not None:
            self.commit(lambda tx: merging.unmerge(tx, memory))
            assert memories.find(self.db, memory.id).merged_into is None

    @rule(category=CATEGORIES)
    def prune_and_add(self, category: str) -> None:
        def change(tx: Transaction) -> None:
            before = tree_rows.load(tx.db)
            kept, _ = trees.prune(before, tx.now, 0.0)
            tree_rows.save(tx, before, kept)
            tree_rows.ensure(tx, category)
            archive_faded(tx)

        self.commit(change)

    @rule(number=NUMBERS)
    def pair(self, number: int) -> None:
        self.commit(lambda tx: key_values.put(tx, f"key{number}", "v"))
        self.dirty.add(("pair", f"key{number}"))

    @invariant()
    def every_memory_is_there_with_its_text(self) -> None:
        if hasattr(self, "db"):
            rows = self.db.execute("SELECT id, text FROM memories").fetchall()
            assert dict(rows) == self.texts

    @invariant()
    def the_counts_are_true(self) -> None:
        if not hasattr(self, "db"):
            return
        live = [
            (row[0], row[1] is None)
            for row in self.db.execute(
                "SELECT category, archived_at FROM memories WHERE merged_into IS NULL"
            )
        ]
        for path, node in tree_rows.load(self.db).items():
            assert node.warm_count == live.count((path, True)), path
            assert node.cold_count == live.count((path, False)), path
        warm = sum(is_warm for _, is_warm in live)
        assert tree_rows.totals(self.db) == (warm, len(live) - warm)
        assert tree_rows.total(self.db) == len(live)

    @invariant()
    def every_category_has_its_node_and_the_tree_is_within_limits(self) -> None:
        if not hasattr(self, "db"):
            return
        nodes = tree_rows.load(self.db)
        living = "SELECT DISTINCT category FROM memories WHERE merged_into IS NULL"
        filed = {row[0] for row in self.db.execute(living)}
        assert filed - {"root"} <= nodes.keys()
        assert len(nodes) + 1 <= SMALL.tree.max_nodes
        assert tree_nodes.size(nodes, SMALL.tree) <= SMALL.tree.max_size_bytes
        assert tree_nodes.with_parents(nodes).keys() == nodes.keys()

    @invariant()
    def every_merge_can_be_undone_and_hides_nothing_for_ever(self) -> None:
        if not hasattr(self, "db"):
            return
        merged = "SELECT id, merged_into FROM memories WHERE merged_into IS NOT NULL"
        pairs = set(self.db.execute(merged).fetchall())
        apart = merging.merge_exclusions(self.db)
        assert apart <= self.texts.keys() - dict(pairs).keys()
        assert stranded(dict(pairs), self.texts.keys() - dict(pairs).keys()) == []

    @invariant()
    def warm_is_within_its_cap(self) -> None:
        if hasattr(self, "db"):
            document = documents.warm_document(self.db, self.bench.now, SMALL)
            assert hot.document_size(document) <= SMALL.warm.max_bytes

    @invariant()
    def the_index_finds_each_text_and_nothing_else(self) -> None:
        if not hasattr(self, "db"):
            return
        for number in range(31):
            found = self.db.execute(
                "SELECT id FROM memory_fts JOIN memories ON row = memory_fts.rowid"
                " WHERE memory_fts MATCH ?",
                (f'"number{number}"',),
            ).fetchall()
            key = f"id{number:04d}"
            assert found == ([(key,)] if key in self.texts else [])
        indexed = self.db.execute("SELECT count(*) FROM memory_fts_terms").fetchone()[0]
        assert indexed == len(self.texts)

    @invariant()
    def the_outbox_names_all_that_changed(self) -> None:
        if hasattr(self, "db"):
            waiting = set(self.db.execute("SELECT kind, id FROM outbox").fetchall())
            assert self.dirty <= waiting
            assert {("category", path) for path in tree_rows.load(self.db)} <= waiting


TestOperations = Operations.TestCase
TestOperations.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
