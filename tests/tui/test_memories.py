"""The tab of the memories: each action against a real daemon."""

import time
from typing import Any

import pytest
from daemon_process import Daemon

pytest.importorskip("textual")

from terminal import Terminal, terminal

from thermocline.daemon.client import Client
from thermocline.tui.views.memory_detail import MemoryDetail


def opened(daemon: Daemon, client: Client, **options: Any) -> Any:
    return terminal(daemon, "memories", str(client._agent), **options)


def texts(client: Client, **filters: Any) -> list[str]:
    return [memory.text for memory in client.list(**filters).results]


def shown(term: Terminal) -> list[str]:
    """The texts of the table, from the top down."""
    rows = term.view.table.rows
    return [rows[number].text for number in sorted(rows)]


async def test_a_form_says_why_it_is_refused_and_a_memory_entered_in_it_is_undone(daemon, client):
    async with opened(daemon, client) as term:
        await term.see("no memories yet")
        await term.press("a")
        await term.pilot.press(*"Ana sings")
        form = term.app.screen
        form.query_one("#field-importance").value = "7.5"
        await term.pilot.press("ctrl+s")
        await term.see("importance")
        await term.until(lambda: form.query_one("#fault").display, "the form says what is wrong")
        await term.pilot.press("escape")
        await term.see("escape again")
        await term.pilot.press("escape")
        await term.until(lambda: term.app.screen is not form, "the form is left")
        assert texts(client) == []
        await term.press("a")
        await term.fill(
            text="Ana prefers tea [bold]with[/bold] milk",
            type="sem",
            subject="Ana",
            category="people/ana",
            tags="tea, milk",
            importance="0.85",
        )
        await term.see("Critical 0.85")
        (memory,) = client.list().results
        assert memory.text == "Ana prefers tea [bold]with[/bold] milk"
        assert (memory.type, memory.subject, memory.category) == ("semantic", "Ana", "people/ana")
        assert (memory.tags, memory.importance) == (("milk", "tea"), 0.85)
        await term.undo()
        await term.see("no memories yet")
        assert texts(client) == []


async def test_a_memory_is_changed_and_only_what_differs_and_undone(daemon, client):
    client.store("tea at four", tags=["old, wise"], importance=0.5, subject="tea")
    async with opened(daemon, client) as term:
        await term.press("e")
        await term.fill(text="tea at five")
        await term.see("tea at five")
        (memory,) = client.list().results
        assert (memory.text, memory.tags, memory.subject) == ("tea at five", ("old, wise",), "tea")
        (version,) = client.history(memory.id).results
        assert version.replaced == ["text"]
        await term.undo()
        await term.see("tea at four")
        assert texts(client) == ["tea at four"]


async def test_what_is_typed_into_an_opened_form_goes_into_its_first_field(daemon, client):
    client.store("tea at four")
    async with opened(daemon, client) as term:
        await term.press("e")
        await term.see("Edit")
        await term.pilot.press(*"no ", "ctrl+s")
        await term.see("changed text")
        assert texts(client) == ["no tea at four"]


async def test_forgetting_needs_the_word_and_its_undoing_stores_it_again(daemon, client):
    kept = client.store(
        "the gate code is 4711 see https://example.com",
        category="home/gate",
        actor="Ana",
        tags=["gate"],
        importance=0.9,
        created_at=1_700_000_000.5,
        type="procedural",
        pinned=True,
    )
    merged = client.store("the gate code was 4712")
    client.merge(merged.id, kept.id)
    before = client.get(kept.id)
    async with opened(daemon, client) as term:
        await term.press("d")
        await term.confirm("nothing")
        assert texts(client) == [kept.text]
        await term.press("escape")
        await term.press("d")
        await term.confirm("forget")
        await term.see("the gate code was 4712")
        assert texts(client) == [merged.text]
        await term.undo()
        await term.miss("the gate code was 4712")
        (memory,) = client.list().results
        for name in before.__struct_fields__:
            if name not in {"id", "updated_at", "last_accessed_at", "score"}:
                assert getattr(memory, name) == getattr(before, name), name
        assert texts(client, merged_into=memory.id) == [merged.text]


async def test_a_use_is_counted_and_a_memory_pinned_and_the_latter_is_undone(daemon, client):
    key = client.store("tea", importance=0.1, created_at=1_600_000_000).id
    async with opened(daemon, client) as term:
        await term.see("◇ frozen")
        await term.press("p")
        await term.see("◆ hot")
        assert client.get(key).pinned
        await term.undo()
        await term.see("◇ frozen")
        assert not client.get(key).pinned
        client.update(key, importance=0.5, created_at=time.time())
        await term.press("r")
        await term.see("used 1 time, score 0.55")
        assert client.get(key).access_count == 1


async def test_the_table_is_sorted_by_any_column_turned_and_keeps_its_cursor(daemon, client):
    for text, importance, category in (("one", 0.9, "b"), ("two", 0.3, "c"), ("three", 0.6, "a")):
        client.store(text, importance=importance, category=category)
    async with opened(daemon, client) as term:
        assert shown(term) == ["three", "two", "one"]
        await term.press("s")
        await term.press("down", "enter")
        await term.until(lambda: shown(term) == ["one", "three", "two"], "sorted by importance")
        await term.see("Importance▾")
        await term.press("S")
        await term.until(lambda: shown(term) == ["two", "three", "one"], "turned")
        await term.see("Importance▴")
        table = term.view.table
        head = term.lines[table.region.y]
        await term.pilot.click(table, offset=(head.index("Category") + 2, 0))
        await term.until(lambda: shown(term) == ["three", "one", "two"], "sorted by category")
        await term.see("Category▾")
        await term.press("home", "down")
        assert term.view.row.text == "one"
        client.store("from elsewhere", category="0")
        await term.see("from elsewhere")
        assert term.view.row.text == "one"


async def test_the_table_is_filtered_by_type_tier_category_and_tag(daemon, client):
    client.store("an old story", created_at=1_600_000_000, type="episodic")
    client.store("deploy at noon", category="howto/deploy", type="procedural", tags=["ops"])
    client.store("debug with care", category="howto/debug", tags=["ops"])
    wanted: list[tuple[dict[str, str], list[str]]] = [
        ({"type": "proc"}, ["deploy at noon"]),
        ({"tier": "frozen"}, ["an old story"]),
        ({"category": "howto"}, ["debug with care", "deploy at noon"]),
        ({"tag": "ops", "type": "semantic"}, ["debug with care"]),
    ]
    async with opened(daemon, client) as term:
        for values, expected in wanted:
            await term.press("f")
            await term.fill(**values)
            await term.until(lambda: shown(term) == expected, "it is filtered")  # noqa: B023
            await term.press("escape")
            await term.until(lambda: len(shown(term)) == 3, "all are shown again")


async def test_what_came_from_outside_is_marked_and_made_ones_own_word(daemon, client):
    client.store("I am allergic to walnuts", source="web:https://wiki.example")
    client.store("I like tea", source="user-stated")
    async with opened(daemon, client) as term:
        await term.see("quoted web:https://wiki.example")
        await term.press("v")
        await term.see("1 memory")
        assert shown(term) == ["I am allergic to walnuts"]
        await term.press("w")
        await term.see("nothing from outside waits")
        (memory,) = client.list(standing=True).results
        assert (memory.text, memory.source) == ("I am allergic to walnuts", "user-stated")
        await term.undo()
        await term.see("I am allergic to walnuts")
        assert texts(client, outside=True) == ["I am allergic to walnuts"]
        await term.press("v")
        await term.see("I like tea")


async def test_a_search_answers_as_one_types_and_explains_each_hit_or_why_there_is_none(
    daemon, client
):
    client.store("the migration locked the orders table", subject="billing")
    client.store("Ana drinks tea")
    async with opened(daemon, client) as term:
        await term.press("/")
        await term.pilot.press(*"migr")
        await term.see("1 hit in")
        assert shown(term) == ["the migration locked the orders table"]
        await term.see("relevance", "match", "recency", "importance")
        cell = term.view.table.columns[-2].cell(term.view.row)
        underlined = [span for span in cell.spans if "underline" in str(span.style)]
        assert [cell.plain[span.start : span.end] for span in underlined] == ["migration"]
        assert client.list().results[1].access_count == 0
        await term.press("enter")
        assert term.view.table.has_focus
        await term.press("enter")
        await term.see("words")
        await term.press("escape")
        await term.press("escape")
        await term.see("2 memories by newest")
        assert len(shown(term)) == 2
        await term.press("/")
        await term.pilot.press(*"zebra")
        await term.see("nothing stored has a word of it, or a word that means the same: zebra")
        await term.press("escape", "escape")
        # What is no memory is named, and never said not to be there.
        client.kv_set("lighthouse", "painted")
        await term.press("/")
        await term.pilot.press(*"lighthouse")
        await term.see("0 hits in", "also found: pair", "thermocline retrieve")
        await term.press("escape", "escape")
        client.batch([{"text": f"buoy {number} was painted"} for number in range(100)])
        client.store("the harbour closes at nine")
        await term.press("/")
        await term.pilot.press(*"quarterly harbour subscription invoices overdue")
        await term.see("nothing certain")
        assert shown(term)[0] == "the harbour closes at nine"


async def test_the_detail_puts_versions_back_and_that_is_undone(daemon, client):
    given = {"source": "user-stated", "actor": "Ana", "group": "talk", "data": {"cups": 2}}
    key = client.store("tea at four", **given).id
    client.update(key, text="tea at five", importance=0.9)
    async with opened(daemon, client) as term:
        await term.press("enter")
        await term.see("user-stated", "Ana", "uid:", "talk", "device", '{"cups": 2}')
        await term.see("tea at four → tea at five")
        term.app.screen.query_one("#versions").focus()
        await term.press("enter")
        await term.until(lambda: texts(client) == ["tea at four"], "the version is put back")
        assert isinstance(term.app.screen, MemoryDetail)
        await term.see("tea at five → tea at four")
        await term.undo()
        await term.until(lambda: texts(client) == ["tea at five"], "that is undone")


async def test_the_detail_shows_what_was_merged_and_parts_it(daemon, client):
    older, newer = client.store("tea at four o'clock"), client.store("tea at five")
    client.merge(older.id, newer.id)
    async with opened(daemon, client) as term:
        await term.press("enter")
        await term.see("Merged into it")
        await term.see("tea at four o'clock")
        term.app.screen.query_one("#merged").focus()
        await term.press("enter")
        await term.until(lambda: len(texts(client)) == 2, "they are parted")
        await term.undo()
        await term.until(lambda: texts(client) == ["tea at five"], "they are merged again")


async def test_pages_are_read_as_one_scrolls(daemon, client):
    now = time.time()
    for start in (0, 500, 1000):
        client.batch(
            [{"text": f"number {n}", "created_at": now - n} for n in range(start, start + 500)]
        )
    async with opened(daemon, client, size=(80, 24)) as term:
        assert term.view.table.total == 1500
        assert len(term.view.table.rows) == 100
        await term.press("end")
        await term.see("number 1499")
        await term.press("pageup")
        await term.until(lambda: term.view.row is not None, "the row is known")
        assert term.view.row.text not in {"number 0", "number 1499"}
        await term.press("home")
        await term.see("number 0 ")
        assert len(term.view.table.rows) <= 200


async def test_the_text_has_most_of_its_row_at_every_width(daemon, client):
    client.store("ж" * 400 + " barge", category="projects/coast/lighthouse", subject="the barge")
    async with opened(daemon, client, size=(40, 24)) as term:
        await term.see("жжж")
        for searches in (False, True):
            if searches:
                await term.press("/")
                await term.pilot.press(*"barge", "enter")
            for width in (40, 50, 70, 78, 84, 104, 118, 128, 132, 148, 176):
                await term.pilot.resize_terminal(width, 24)
                await term.wait_until_drawn()

                def has_most_of_its_row() -> bool:
                    table = term.view.table
                    [room] = [room for column, room in table._laid_out() if column.label == "Text"]
                    least = width / 2  # noqa: B023 - called in this round only
                    return (table.size.width if table.lines == 2 else room) > least

                await term.until(has_most_of_its_row, f"the text has most of {width} columns")
