"""The index of watched files follows what people, editors and git do to them."""

import asyncio
import itertools
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_files import lose_words
from daemon_process import Daemon, wait_until
from shells import Shell

from thermocline.daemon.client import ApiError, Client
from thermocline.daemon.config.settings import IndexSettings
from thermocline.daemon.files.chunk_index import ChunkIndex

_agents = (f"reader-{number}" for number in itertools.count())


class Desk:
    """An agent that watches a folder.

    Attributes:
        docs: the folder.
        notes: the agent's own.
    """

    def __init__(self, daemon: Daemon, docs: Path) -> None:
        self.agent = next(_agents)
        self.daemon = daemon
        self.docs = docs
        self.notes = daemon.state / "agents" / self.agent / "memory"
        self.client = daemon.client(self.agent)
        docs.mkdir()
        self.client.files_add(str(docs))

    def write(self, name: str, text: str) -> Path:
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def found(self, query: str) -> list[str]:
        """The ids of the chunks that answer, below the folder."""
        hits = self.client.files_search(query).chunks
        return [hit.id.removeprefix(f"{self.docs}/") for hit in hits]

    def finds(self, query: str, *expected: str) -> None:
        """The first that answer are these; none, if nothing is expected."""

        def first() -> list[str]:
            return self.found(query)[: max(1, len(expected))]

        wait_until(lambda: first() == list(expected), f"{query}: {expected}")

    def index(self) -> dict[str, tuple[int, int, str]]:
        """Each file with the number of its lines and chunks, and the reason why it has none."""
        page = self.client.files_list(limit=500)
        assert page.total <= 500
        return {one.path: (one.lines, one.chunks, one.reason) for one in page.results}

    def names(self) -> set[str]:
        return {str(Path(path).relative_to(self.docs)) for path in self.index() if path[0] == "/"}


@pytest.fixture
def desk(shared_daemon: Daemon, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(shared_daemon, tmp_path / "docs")
    with desk.client:
        yield desk


def everything(client: Client, state: Path, agent: str) -> list[Any]:
    """All that the index of an agent holds, but for times and numbers of rows."""
    import sqlite3  # noqa: PLC0415

    client.files_stats()
    with sqlite3.connect(state / "agents" / agent / "index.db") as db:
        rows = db.execute(
            "SELECT path, title, lines, reason, position, first_line, last_line, heading, text"
            " FROM files LEFT JOIN chunks ON file = files.id ORDER BY path, position"
        ).fetchall()
        found = db.execute("SELECT count(*) FROM chunk_fts_terms").fetchone()
        sums = db.execute("SELECT texts FROM chunk_counts").fetchone()
        assert found == sums == (sum(row[4] is not None for row in rows),)
        db.execute("INSERT INTO chunk_fts(chunk_fts) VALUES ('integrity-check')")
        db.rollback()
    return rows


def test_a_saved_file_is_found_with_path_lines_and_headings(desk):
    desk.write("boats.md", "# Boats\n\nThe ketch.\n\n## Care\n\nScrape the hull in April.\n")
    desk.finds("when to scrape the hull", "boats.md:5-7")
    hit = desk.client.files_search("scrape the hull").chunks[0]
    assert (hit.start_line, hit.end_line, hit.heading) == (5, 7, "Boats › Care")
    assert hit.text == "## Care\n\nScrape the hull in April."
    assert 0 < hit.score <= 1
    lines = desk.client.files_get(hit.path, from_line=5, to_line=7)
    assert lines.text == "## Care\n\nScrape the hull in April.\n"
    assert lines.total_lines == 7


def test_recall_finds_chunks_beside_memories(desk):
    desk.client.store("Lena plays the oboe")
    desk.write("lena.md", "Lena's birthday is on 14 December.\n")
    desk.finds("Lena's birthday", "lena.md:1-1")
    answer = desk.client.recall("when is Lena's birthday?")
    [found] = [one for one in answer.results if one.source == "file"]
    assert (found.path, found.lines) == (str(desk.docs / "lena.md"), (1, 1))
    assert answer.searched["file"] == 1
    # A filter is about memories.
    assert desk.client.recall("when is Lena's birthday?", category="people").results == []


def test_the_agents_own_notes_are_found_and_its_section_of_memory_md_is_not(desk):
    desk.notes.mkdir(exist_ok=True)
    (desk.notes / "2026-01-02.md").write_text("Bought a walnut desk.\n")
    desk.client.request("PUT", "/api/hot/identity", body={"value": "likes sextants"})
    page = desk.notes.parent / "MEMORY.md"
    wait_until(lambda: page.exists() and "sextants" in page.read_text(), "the section is written")
    page.write_text(f"Collects barometers.\n\n{page.read_text()}\nAnd chronometers.\n")
    lines = page.read_text().count("\n")
    desk.finds("walnut desk", "memory/2026-01-02.md:1-1")
    desk.finds("barometers", f"MEMORY.md:1-{lines}")
    assert "sextants" not in desk.client.files_search("chronometers").chunks[0].text
    desk.finds("sextants")


def test_an_editor_that_replaces_a_file_changes_only_the_chunks_that_changed(desk):
    old = desk.write("a.md", "# One\n\nabout apples\n\n# Two\n\nabout pears\n")
    desk.finds("pears", "a.md:5-7")
    before = rows_of(desk)
    new = desk.write("a.md.tmp", "\n\n# One\n\nabout apples\n\n# Two\n\nabout quinces\n")
    new.replace(old)
    desk.finds("quinces", "a.md:7-9")
    desk.finds("pears")
    desk.finds("apples", "a.md:3-5")
    after = rows_of(desk)
    assert before["# One\n\nabout apples"] == after["# One\n\nabout apples"]


def rows_of(desk: Desk) -> dict[str, int]:
    import sqlite3  # noqa: PLC0415

    path = desk.daemon.state / "agents" / desk.agent / "index.db"
    with sqlite3.connect(path) as db:
        return dict(db.execute("SELECT text, row FROM chunks"))


def test_a_file_or_folder_that_is_renamed_keeps_its_chunks(desk):
    desk.write("one/a.md", "# A title\n\nabout apples\n")
    desk.finds("apples", "one/a.md:1-3")
    rows = rows_of(desk)
    (desk.docs / "one").rename(desk.docs / "two")
    desk.finds("apples", "two/a.md:1-3")
    (desk.docs / "two" / "a.md").rename(desk.docs / "b.md")
    desk.finds("apples", "b.md:1-3")
    assert rows_of(desk) == rows
    # A new file in a folder that has another name now is noticed.
    desk.write("two/c.md", "about cherries\n")
    desk.finds("cherries", "two/c.md:1-1")


def test_files_that_are_written_into_new_folders_at_once_are_all_found(desk):
    for number in range(40):
        desk.write(f"{number % 7}/{number % 3}/{number}.md", f"note number {number}\n")
    wait_until(lambda: len(desk.names()) == 40, "all are indexed")


def test_what_was_a_file_may_become_a_folder_or_a_link(desk, tmp_path):
    path = desk.write("x.md", "about apples\n")
    desk.finds("apples", "x.md:1-1")
    path.unlink()
    path.mkdir()
    desk.write("x.md/y.md", "about pears\n")
    desk.finds("pears", "x.md/y.md:1-1")
    desk.finds("apples")
    shutil.rmtree(path)
    (tmp_path / "apples.md").write_text("about apples\n")
    path.symlink_to(tmp_path / "apples.md")
    desk.finds("pears")
    desk.finds("apples")


def test_paths_are_added_listed_and_removed(desk, tmp_path):
    single = tmp_path / "single.org"
    single.write_text("a file of any name\n")
    client = desk.client
    assert client.files_add(str(single)).added
    assert not client.files_add(str(single)).added
    desk.finds("a file of any name", f"{single}:1-1")
    inner = desk.docs / "inner"
    inner.mkdir()
    client.files_add(str(inner))
    desk.write("inner/a.md", "about apples\n")
    desk.finds("apples", "inner/a.md:1-1")
    origins = {one.path: one.origin for one in client.files_stats().paths}
    assert origins[str(desk.docs)] == origins[str(single)] == "added"
    client.files_remove(str(desk.docs))
    desk.finds("apples", "inner/a.md:1-1")
    client.files_remove(str(inner))
    desk.finds("apples")
    with pytest.raises(ApiError, match="not a path that was added"):
        client.files_remove(str(inner))
    for path, why in {
        str(tmp_path / "nowhere"): "does not exist",
        "docs": "give the whole path",
        str(desk.daemon.state / "agents"): "part of the state folder",
        **dict.fromkeys(("/", "/..", "//"), "whole file system"),
        **dict.fromkeys(("/proc", "/proc/self/fd", "/sys/class"), "the system makes"),
    }.items():
        with pytest.raises(ApiError, match=why):
            client.files_add(path)
    with pytest.raises(ApiError, match="not a watched file"):
        client.files_get("/etc/hosts")


def test_the_lines_of_a_file_are_exact(desk):
    desk.write("a.md", "one\ntwo\nthree\nfour")
    path = str(desk.docs / "a.md")
    wait_until(lambda: path in desk.index(), "it is indexed")
    get = desk.client.files_get
    assert get(path).text == "one\ntwo\nthree\nfour"
    assert get(path, from_line=2, lines=2).text == "two\nthree\n"
    assert get(path, from_line=3, to_line=90).to_line == 4
    with pytest.raises(ApiError, match="has 4"):
        get(path, from_line=5)
    (desk.docs / "a.md").unlink()
    (desk.docs / "a.md").symlink_to("/etc/hostname")
    with pytest.raises(ApiError, match="cannot read"):
        get(path)


def test_the_chunks_of_a_file_are_listed_by_their_lines(desk):
    desk.write("a.md", "# Boats\n\n" + "some words about boats.\n" * 60 + "\n## Sails\n\nred\n")
    path = str(desk.docs / "a.md")
    wait_until(lambda: path in desk.index(), "it is indexed")
    chunks = desk.client.files_chunks(path).results
    assert len(chunks) == desk.index()[path][1] > 1
    assert chunks[0].start_line == 1
    assert all(a.start_line <= b.start_line for a, b in pairwise(chunks))
    assert "Sails" in chunks[-1].heading
    assert desk.found("red")[0].endswith(f":{chunks[-1].start_line}-{chunks[-1].end_line}")
    assert chunks[0].text.startswith("# Boats\n\nsome words")
    desk.write("a.md", "# Boats\n\nThe wheel stands.\n")
    desk.finds("wheel stands", "a.md:1-3")
    [after] = desk.client.files_chunks(path).results
    assert (len(after.hash), after.hash != chunks[0].hash) == (len(chunks[0].hash), True)
    with pytest.raises(ApiError, match="not a watched file"):
        desk.client.files_chunks("/nowhere.md")


def test_every_search_reads_a_changed_file_first_and_says_so(desk):
    """Each of them right after a write, as an agent asks that has just written."""
    searches: list[Callable[[str], Any]] = [
        lambda word: desk.client.recall(f"the {word} of the mill"),
        lambda word: desk.client.context(f"the {word} of the mill"),
        lambda word: desk.client.use_tool(
            "memory_search", {"query": f"{word} mill"}, tools="profclaw"
        ),
    ]
    waited = [0] * len(searches)
    for number, search in enumerate(searches * 5):
        word = f"sluice{'abcdefghijklmno'[number]}"
        desk.write(f"{word}.md", f"# Mill\n\nThe {word} of the mill is oiled on Mondays.\n")

        def is_current(search: Callable[[str], Any] = search, word: str = word) -> bool:
            nonlocal answer
            answer = msgspec.to_builtins(search(word))
            return answer.get("auto_synced", answer.get("autoSynced")) is not False

        # A search does not wait for ever: on a busy machine it says that it did not see everything.
        answer: dict[str, Any] = {}
        wait_until(is_current, "the index is up to date")
        assert f"The {word} of" in json.dumps(answer)
        waited[number % len(searches)] += (
            answer.get("auto_synced", answer.get("autoSynced")) is True
        )
    assert all(waited), waited
    assert msgspec.to_builtins(desk.client.recall("the mill")).get("auto_synced") is None


def test_a_search_beside_others_reads_a_changed_file_first(desk):
    """Another caller's search may have brought the index up to date while this one was reading."""
    over = threading.Event()

    def ask() -> None:
        with desk.daemon.client(agent=desk.agent) as other:
            while not over.is_set():
                other.recall("the mill")

    others = [threading.Thread(target=ask) for _ in range(12)]
    for other in others:
        other.start()
    try:
        for number in range(30):
            word = f"weir{''.join('abcdefghij'[int(digit)] for digit in str(number))}"
            desk.write("mill.md", f"# Mill\n\nThe {word} of the mill is oiled on Mondays.\n")
            answer = desk.client.recall(f"the {word} of the mill")
            texts = [result.text for result in answer.results]
            assert answer.auto_synced is False or f"The {word} of" in "".join(texts), number
    finally:
        over.set()
        for other in others:
            other.join()


def test_hidden_folders_are_left_out_and_a_hidden_folder_that_is_watched_is_not(desk, tmp_path):
    desk.write(".trash/x.md", "a giraffe\n")
    desk.write("a/.obsidian/y.md", "a giraffe\n")
    desk.write(".z.md", "a giraffe\n")
    desk.finds("giraffe", ".z.md:1-1")
    assert desk.names() == {".z.md"}
    hidden = tmp_path / ".notes"
    hidden.mkdir()
    (hidden / "n.md").write_text("an okapi\n")
    desk.client.files_add(str(hidden))
    desk.finds("okapi", f"{hidden}/n.md:1-1")


def test_status_counts_the_files_that_cannot_be_indexed(desk):
    desk.write("a.md", "words\n")
    (desk.docs / "latin.txt").write_bytes(b"caf\xe9\n")
    wait_until(lambda: len(desk.names()) == 2, "both are known")
    index = desk.client.status().agents[desk.agent].index
    assert (index.watched_files, index.left_out) == (2, 1)
    status = Shell(desk.daemon.socket).out("status")
    assert "2 (1 left out)" in status


def test_exclusions_gitignore_and_sizes_come_from_the_configuration(make_daemon, tmp_path):
    config = tmp_path / "config.json"
    docs = tmp_path / "docs"
    granted = tmp_path / "granted"
    granted.mkdir()
    (granted / "g.md").write_text("granted words\n")
    settings = {
        "index": {"gitignore": True, "exclude": ["drafts/**", "*.tmp.md"], "chunk_chars": 300,
                  "overlap_chars": 50},
        "agents": {"default": {"paths": [str(granted)]}},
    }  # fmt: skip
    config.write_text(json.dumps(settings))
    daemon = make_daemon(f"--config={config}", "--set=config.check_seconds=0.1").start()
    names = [".gitignore", "a.md", "b.tmp.md", "drafts/c.md", "x/drafts/d.md", "ignored/e.md"]
    names += ["x/.gitignore", "x/f.md", "x/kept.md", "node_modules/g.md", "h.rst"]
    for name in names:
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("some words. " * 60)
    (docs / ".gitignore").write_text("ignored/\nf.md\n")
    (docs / "x" / ".gitignore").write_text("*.md\n!kept.md\n")
    with daemon.client() as client:
        client.files_add(str(docs))

        def listed() -> dict[str, int]:
            results = client.files_list(limit=500).results
            return {one.path: one.chunks for one in results if one.path.startswith("/")}

        expected = {docs / "a.md", docs / "x/kept.md", docs / "node_modules/g.md", granted / "g.md"}
        wait_until(lambda: set(map(Path, listed())) == expected, "what is wanted")
        assert listed()[str(docs / "a.md")] == 3
        settings["index"] |= {"gitignore": False, "chunk_chars": 1_500}
        config.write_text(json.dumps(settings))
        expected |= {docs / "x/f.md", docs / "ignored/e.md"}
        wait_until(lambda: set(map(Path, listed())) == expected, "other settings are in force")
        wait_until(lambda: listed()[str(docs / "a.md")] == 1, "cut anew")
        assert client.files_search("granted words").chunks[0].path == str(granted / "g.md")


def test_a_name_that_is_not_utf8_stops_the_watching_only_while_it_changes(make_daemon, tmp_path):
    daemon, docs = make_daemon().start(), tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Penguins\n")
    with daemon.client() as client:

        def problems() -> dict[str, str]:
            return {problem.code: problem.hint for problem in client.status().problems}

        def reported() -> bool:
            # What changes before the folder is watched is not noticed.
            (docs / os.fsdecode(b"\xff.md")).write_text("# Ravens\n")
            return "files_not_watched" in problems()

        client.files_add(str(docs))
        wait_until(reported, "the name is reported")
        assert "rename it" in problems()["files_not_watched"]
        client.files_remove(str(docs))
        # For fifty times as long as looking at the files took, which others hold up.
        wait_until(lambda: problems() == {}, "nothing is to be watched", 180.0)


def pages_of_noise(index: Path) -> None:
    pages = bytearray(index.read_bytes())
    for place in range(4_096 + 200, len(pages), 4_096):
        pages[place : place + 3_000] = os.urandom(len(pages[place : place + 3_000]))
    index.write_bytes(pages)


@pytest.mark.parametrize(
    "damage", [pages_of_noise, lambda index: lose_words(index, "chunk_fts", "word77")]
)
def test_a_damaged_index_is_made_anew_and_the_memory_is_untouched(make_daemon, tmp_path, damage):
    daemon = make_daemon().start()
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(100):
        (docs / f"{number}.md").write_text(f"# Note {number}\n\n" + f"word{number} " * 100)
    with daemon.client() as client:
        client.store("The gate code is 4711")
        client.files_add(str(docs))
        wait_until(lambda: client.files_stats().files >= 100, "indexed")
    daemon.stop()
    index = daemon.state / "agents" / "default" / "index.db"
    damage(index)
    daemon.start()
    with daemon.client() as client:
        assert client.recall("gate code").results[0].text == "The gate code is 4711"
        wait_until(lambda: bool(client.files_search("word77").chunks), "indexed again")
        assert client.files_search("word77").chunks[0].path.endswith("/77.md")
        codes = {one.code for one in client.status().problems}
        assert "database_rebuilt" not in codes
        assert not list(index.parent.glob("memory.db.corrupt*"))


def churn(docs: Path, dice: random.Random, changes: int, pause: Callable[[], None]) -> None:
    """Do to files what people and programs do, at random."""
    names = [f"{folder}{name}.md" for folder in ("", "a/", "a/b/", "c/") for name in range(12)]
    for change in range(changes):
        path = docs / dice.choice(names)
        try:
            act(path, docs / dice.choice(names), dice, change)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError, OSError):
            continue
        finally:
            pause()


def act(path: Path, other: Path, dice: random.Random, number: int) -> None:
    text = (
        f"# Note {number}\n\n" + "words of no use. " * dice.randrange(200) + f"\n\n## B\n\n{number}"
    )
    match dice.randrange(9):
        case 0 | 1 | 2:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        case 3:
            with path.open("a") as file:
                file.write(f"\nmore {number}\n")
        case 4:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            new.write_text(text)
            new.replace(path)
        case 5:
            path.unlink()
        case 6:
            other.parent.mkdir(parents=True, exist_ok=True)
            path.rename(other)
        case 7:
            if path.parent.name in {"a", "b", "c"}:
                path.parent.rename(path.parents[1] / dice.choice(["a", "b", "c", "d"]))
        case _:
            shutil.rmtree(path.parent) if dice.randrange(
                4
            ) == 0 and path.parent.name != "docs" else os.utime(path)


def is_as_a_rescan(daemon: Daemon, docs: Path, agent: str, fresh: str) -> None:
    """What the index followed is what another agent finds that sees the files only now."""
    with daemon.client(agent) as client, daemon.client(fresh) as other:
        on_disk = {str(path) for path in docs.rglob("*.md") if path.is_file()}

        def listed(one: Client) -> set[str]:
            return {file.path for file in one.files_list(str(docs), limit=500).results}

        wait_until(lambda: listed(client) == on_disk, "the files that are there")
        wait_until(lambda: not client.files_stats().state.dirty, "in step")
        other.kv_set("here", "now")
        other.files_add(str(docs))
        other.files_sync()
        followed = everything(client, daemon.state, agent)
        seen = everything(other, daemon.state, fresh)
        below = [row for row in followed if row[0].startswith(str(docs))]
        assert below == [row for row in seen if row[0].startswith(str(docs))]


async def test_a_memory_that_closes_before_its_files_are_read_is_no_problem(
    open_store, threads, problems, tmp_path
):
    store, ended = await open_store(), asyncio.Event()
    index = ChunkIndex(
        store,
        IndexSettings,
        (),
        state_dir=tmp_path,
        thread=threads,
        publish=lambda _agent, _event: None,
        busy=lambda: False,
        brought=ended.set,
        problems=problems,
    )
    await store.close()
    index.begin()
    await ended.wait()
    assert problems.current() == []


def test_random_changes_end_as_a_full_rescan(desk):
    dice = random.Random(7)

    def pause() -> None:
        if dice.randrange(10) == 0:
            time.sleep(dice.random() / 20)

    churn(desk.docs, dice, 150, pause)
    is_as_a_rescan(desk.daemon, desk.docs, desk.agent, f"{desk.agent}-fresh")


SOAK = (pytest.mark.soak, pytest.mark.timeout(3_600))


@pytest.mark.parametrize(
    ("kills", "changes", "during"),
    [(2, 40, 0), pytest.param(20, 500, 5, marks=SOAK)],
)
def test_a_killed_daemon_has_each_file_old_or_new(make_daemon, tmp_path, kills, changes, during):
    daemon = make_daemon().start()
    docs = tmp_path / "docs"
    docs.mkdir()
    dice = random.Random(11)
    with daemon.client() as client:
        client.files_add(str(docs))
    for _ in range(kills):
        churn(docs, dice, changes, lambda: time.sleep(0.002 * (dice.randrange(5) == 0)))
        daemon.kill()
        churn(docs, dice, during, lambda: None)
        daemon.start()
    is_as_a_rescan(daemon, docs, "default", "fresh")


# The last: for some seconds after a name that is no UTF-8, changes are not told to the daemon.
def test_nothing_hangs_and_nothing_is_followed_out(desk, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("the password is xyzzy\n")
    (desk.docs / "in").symlink_to(outside)
    (desk.docs / "one.md").symlink_to(outside / "secret.md")
    (desk.docs / "loop").symlink_to(desk.docs)
    os.mkfifo(desk.docs / "pipe.md")
    desk.write("two\nlines.md", "a name in two lines\n")
    (desk.docs / "binary.md").write_bytes(b"a\0b")
    (desk.docs / "latin.md").write_bytes("café".encode("latin-1"))
    (desk.docs / "wide.md").write_bytes("café".encode("utf-16"))
    desk.write("large.md", "word " * 300_000)
    os.close(os.open(os.fsencode(desk.docs) + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
    desk.write("last.md", "written last\n")
    desk.finds("written last", "last.md:1-1")
    desk.finds("name in two lines", "two\nlines.md:1-1")
    desk.finds("xyzzy")
    page = desk.client.files_list(left_out=True, limit=500)
    reasons = {Path(one.path).name: one.reason for one in page.results}
    assert reasons.pop("\\udcff.md") == "its name is too long or not valid UTF-8"
    assert reasons == {
        "one.md": "a link",
        "pipe.md": "neither a file nor a folder",
        "binary.md": "it is not a text",
        "latin.md": "it is not valid UTF-8",
        "wide.md": "it is UTF-16: save it as UTF-8",
        "large.md": "it has 1464 KB, the limit is 1024 KB",
    }
    (outside / "more.md").write_text("plugh\n")
    desk.write("end.md", "zanzibar\n")
    desk.finds("zanzibar", "end.md:1-1")
    desk.finds("plugh")
