"""The terminal view's frame, against a real daemon."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from daemon_process import until

pytest.importorskip("textual")

from terminal import connector
from textual.pilot import Pilot
from textual.widgets import Input, Static

from thermocline.daemon.client import ApiError, AsyncClient
from thermocline.tui.app import ThermoclineApp
from thermocline.tui.dialogs import ConfirmScreen, Field, FormScreen
from thermocline.tui.feed import Done, ReadOnlyClient
from thermocline.tui.frame import Absent, Head, Keys
from thermocline.tui.session import Flash, Remembered, recalled, remember
from thermocline.tui.table import PagedTable

SIZE = (100, 30)


def row_of(app: ThermoclineApp, kind: type[Head | Keys]) -> str:
    return app.screen_stack[0].query_one(kind).render().plain


def flashed(app: ThermoclineApp) -> str:
    return app.screen_stack[0].query_one(Flash).line


async def ready(app: ThermoclineApp) -> None:
    await until(lambda: app.is_idle, "the tab is drawn")


@asynccontextmanager
async def opened(app: ThermoclineApp) -> AsyncIterator[Pilot[Any]]:
    async with app.run_test(size=SIZE) as pilot:
        await ready(app)
        yield pilot


# Opening


async def test_without_a_daemon_it_says_how_to_start_one_and_connects_when_it_comes(make_daemon):
    late = make_daemon()
    app = ThermoclineApp(connector(late))
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: app.snapshot.trouble, "it is found that no daemon answers")
        await pilot.pause()
        page = app.query_one("#absent Static", Static)
        assert "thermocline daemon" in str(page.content)
        assert "no daemon" in row_of(app, Head)
        late.start()
        await ready(app)
        assert not app.query_one(Absent).display
        await until(lambda: "healthy" in row_of(app, Head), "the head shows it")


async def test_a_daemon_killed_and_restarted_is_followed_again(make_daemon):
    killed = make_daemon().start()
    app = ThermoclineApp(connector(killed), tab="log")
    async with opened(app) as pilot:
        killed.kill()
        await until(lambda: not app.snapshot.connected, "the daemon is missed")
        await pilot.pause()
        assert "no daemon, as of" in row_of(app, Head)
        assert app.snapshot.status is not None, "what was known is still shown"
        assert app.screen.has_class("-stale"), "and dim"
        await pilot.press("2", "9")
        await until(lambda: app.is_idle, "the tabs are drawn")
        assert flashed(app) == "", "the head says it, once"
        killed.start()
        await until(lambda: app.snapshot.connected, "it is there again")
        await until(lambda: flashed(app) == "the daemon is there again", "which is told")
        assert not app.screen.has_class("-stale")
        with killed.client() as client:
            stored = client.store("seen by the new stream")
        await until(
            lambda: any(one.data.get("id") == stored.id for one in app.events),
            "its events are followed",
        )


async def test_theme_and_tab_are_those_of_the_last_time_unless_the_file_is_damaged(
    daemon, tmp_path
):
    file = tmp_path / "state" / "tui.json"
    app = ThermoclineApp(connector(daemon), state=file)
    async with opened(app) as pilot:
        await pilot.press("9")
        app.theme = "nord"
    assert recalled(file) == Remembered(theme="nord", tab="log")
    again = ThermoclineApp(connector(daemon), state=file)
    async with again.run_test(size=SIZE):
        assert (again.theme, again.tab.name) == ("nord", "log")
    for damaged in (b"", b"{", b'{"theme": 3}', b"\xff\xfe", b"[]"):
        file.write_bytes(damaged)
        assert recalled(file) == Remembered()
    file.write_text('{"theme": "no such", "tab": "no such"}')
    app = ThermoclineApp(lambda agent: AsyncClient("/nowhere", agent), state=file)
    assert app.tab.name == "overview"
    remember(file / "below a file", Remembered())


# Caution


async def test_a_typed_word_is_asked_for_and_nothing_else_confirms(daemon):
    app = ThermoclineApp(connector(daemon))
    answers: list[bool] = []

    async def ask() -> None:
        answers.append(await app.confirm("Forget", "it will be gone", word="forget"))

    async with opened(app) as pilot:
        app.run_worker(ask())
        await until(lambda: isinstance(app.focused, Input), "it asks")
        await pilot.press("enter", "y", "enter", *"forge", "enter")
        assert isinstance(app.screen, ConfirmScreen)
        await pilot.press("escape")
        await until(lambda: answers == [False], "it is left")
        app.run_worker(ask())
        await until(lambda: isinstance(app.focused, Input), "it asks again")
        await pilot.press(*"forget", "enter")
        await until(lambda: answers == [False, True], "it is confirmed")


@pytest.mark.parametrize(("keys", "after"), [(["ctrl+s", "enter"], []), ([], ["escape"] * 2)])
async def test_a_form_is_saved_once_also_if_it_is_left_meanwhile(daemon, keys, after):
    app = ThermoclineApp(connector(daemon))
    begun, saved = 0, 0
    answered = asyncio.Event()

    async def change(_client: AsyncClient) -> None:
        nonlocal begun, saved
        begun += 1
        await answered.wait()
        saved += 1

    async with opened(app) as pilot:
        app.push_screen(
            FormScreen("Pilot", [Field("name", "Name")], lambda _: app.calls.run(change))
        )
        await until(lambda: isinstance(app.focused, Input), "it asks")
        await pilot.press("O", "enter", *keys)
        await until(lambda: begun, "it is being saved")
        await pilot.press(*after)
        assert isinstance(app.screen, FormScreen) == (not after)
        answered.set()
        await until(lambda: saved and not isinstance(app.screen, FormScreen), "it is saved")
    assert (begun, saved) == (1, 1)


async def test_undo_is_offered_for_a_minute(daemon):
    clock = [1_000_000.0]
    app = ThermoclineApp(connector(daemon), now=lambda: clock[0])
    with daemon.client() as client:
        kept = client.store("to be undone").id
    async with opened(app) as pilot:
        app.did(Done("stored it", lambda client: client.forget(kept)))
        await pilot.pause()
        assert "u Undo" in row_of(app, Keys)
        await pilot.press("u")
        await until(lambda: flashed(app) == "undone: stored it", "it is undone")
        with daemon.client() as client, pytest.raises(ApiError, match="no memory"):
            client.get(kept)
        app.did(Done("did more", lambda client: client.status()))
        clock[0] += 61
        app.forget_undo()
        await pilot.pause()
        assert "u Undo" not in row_of(app, Keys)


# Settings


async def test_a_setting_is_edited_live_and_its_faults_are_shown_before_it_is_written(make_daemon):
    own = make_daemon().start()
    app = ThermoclineApp(connector(own), tab="settings")

    def value() -> object:
        with own.client() as client:
            return next(one.value for one in client.config().results if one.key == "hot.max_bytes")

    async with opened(app) as pilot:
        await pilot.press("e")
        await until(lambda: isinstance(app.focused, Input), "the line is open")
        line = app.screen.query_one(Input)
        line.value = "12"
        await pilot.press("enter")
        fault = app.screen.query_one("#fault", Static)
        await until(lambda: "expected an integer 512 to 1048576" in str(fault.content), "a fault")
        assert value() == 5120
        line.value = "4096"
        await pilot.press("enter")
        await until(lambda: value() == 4096, "it is written")
        await until(lambda: not isinstance(app.screen, FormScreen), "the line is closed")
        await pilot.press("u")
        await until(lambda: value() == 5120, "it is undone")


async def test_settings_are_filtered_as_it_is_typed_and_the_selected_one_is_copied(daemon):
    app = ThermoclineApp(connector(daemon), tab="settings")
    async with opened(app) as pilot:
        await pilot.press("y")
        assert app.clipboard == "hot.max_bytes=5120"
        table = app.screen.query_one("SettingsView PagedTable", PagedTable)
        everything = table.total
        await pilot.press("slash", *"half_life")
        await until(lambda: 0 < table.total < everything, "few are left")
        await pilot.press("enter", "escape")
        await until(lambda: table.total == everything, "all are back")


# The log


async def test_the_log_shows_what_happens_pauses_and_filters(daemon):
    app = ThermoclineApp(connector(daemon), tab="log")
    async with opened(app) as pilot:
        table = app.screen.query_one("LogView PagedTable", PagedTable)
        state = app.screen.query_one("LogView #line", Static)
        with daemon.client() as client:
            first = client.store("seen at once")
            await until(lambda: first.id in (app.view.copied() if app.view else ""), "it is there")
            await pilot.press("space")
            second = client.store("seen after the pause")
        await until(lambda: "1 waiting" in str(state.content), "it waits")
        await pilot.press("space")
        await until(lambda: second.id in (app.view.copied() if app.view else ""), "it is there")
        await pilot.press("slash", *second.id)
        await until(lambda: table.total == 1, "one fits")
        await pilot.press("enter", "escape", "l", "l", "l")
        await until(lambda: "only failures" in str(state.content), "the level is told")


# Any keys, any size


async def press_anything(app: ThermoclineApp, presses: int, seed: int) -> None:
    rng = random.Random(seed)
    keys = [
        *"123456789:/?mulfcdrsnea", "enter", "escape", "tab", "shift+tab", "up", "down", "left",
        "right", "pageup", "pagedown", "home", "end", "space", "backspace", "ctrl+f", "ctrl+p",
        "ctrl+a", "ctrl+t",
    ]  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(app)
        for number in range(presses):
            await pilot.press(rng.choice(keys))
            if number % 25 == 0:
                await pilot.resize_terminal(rng.randrange(20, 140), rng.randrange(8, 50))
        # As a person leaves them: what the palette still looks up ends with it.
        while len(app.screen_stack) > 1:
            await pilot.press("escape")
        await pilot.press("1")
        await ready(app)


@pytest.mark.usefixtures("drawn")
async def test_a_hundred_random_keys_break_nothing(daemon):
    app = ThermoclineApp(lambda agent: ReadOnlyClient(str(daemon.socket), agent))
    await press_anything(app, 100, seed=13)


@pytest.mark.usefixtures("drawn")
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
async def test_a_thousand_random_keys_break_nothing(make_daemon, seed):
    own = make_daemon().start()
    with own.client() as client:
        client.batch([{"text": f"memory {number}"} for number in range(50)])
    await press_anything(ThermoclineApp(connector(own)), 1000, seed)
