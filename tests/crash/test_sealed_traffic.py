"""What a sealed replica shows: its files, its log, and everything that passes on the way to it."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import wait_until
from device import Device, ending
from fault_proxy import FaultProxy
from sealing import give_keys

from thermocline.daemon.client.errors import AnswerLost

FEW_AND_MANY = [100, pytest.param(10_000, marks=pytest.mark.crash)]
AGENTS = [f"harbourmaster-{place}" for place in ("norddeich", "emden-west", "borkum")]
DEVICES = ["desktop-of-Otis", "seaside-of-Otis"]
SYLLABLES = ["ka", "lo", "mi", "ren", "tas", "vur", "pel", "dor", "sim", "gha", "zet", "bro", "fel"]
CATEGORIES = 15
AT_ONCE = 500
# Until a device has everything of an agent, however busy the machine is.
MOST_SECONDS = 900.0
# Every word of what is known is one of these, which encrypted bytes seldom have.
LONG = re.compile(rb"[a-z]{8,}")


class Known:
    """Texts, categories and names that no two runs of the program would contain by chance."""

    def __init__(self, number: int) -> None:
        chance = random.Random(24)

        def word() -> str:
            return "".join(chance.choices(SYLLABLES, k=4))

        self.categories = [f"{word()}/{word()}" for _ in range(CATEGORIES)]
        self.texts = [" ".join(word() for _ in range(8)) for _ in range(number)]
        self.names = [*AGENTS, *self.categories, *DEVICES]
        self.others = {kind: f"{word()} {word()}" for kind in ("pair", "note", "hot", "edited")}
        everything = [*self.texts, *self.names, *self.others.values()]
        self.words = {word[:8] for text in everything for word in LONG.findall(text.encode())}

    def of_agent(self, agent: str) -> list[str]:
        """The texts of an agent."""
        return self.texts[AGENTS.index(agent) :: len(AGENTS)]

    def shown(self, content: bytes) -> set[bytes]:
        """The beginnings of all words of it that appear in some bytes."""
        places = ((run, start) for run in LONG.findall(content) for start in range(len(run) - 7))
        return self.words & {run[start : start + 8] for run, start in places}


def in_files(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def devices(
    tmp_path: Path, fault_proxy: FaultProxy, request: pytest.FixtureRequest
) -> Iterator[list[Device]]:
    """Two devices that do not run yet; a proxy records what passes between them and the server."""
    sets = ("sync.seal=on",) if request.param == "sealed" else ("sync.seal=off",)
    made = [
        Device(
            tmp_path / name,
            *sets,
            f"sync.device_name={name}",
            url=fault_proxy.record().url,
        )
        for name in DEVICES
    ]
    for device in made:
        if request.param == "sealed":
            give_keys(device.state)
    with ending(*made):
        yield made


@pytest.mark.parametrize("number", FEW_AND_MANY)
@pytest.mark.parametrize(
    "devices", ["sealed", pytest.param("plain", marks=pytest.mark.plain)], indirect=True
)
@pytest.mark.timeout(1800)
def test_neither_the_server_nor_the_way_to_it_shows_any_known_text_unless_it_is_plain(
    devices, number, fault_proxy, sqld, request, figure
):
    known = Known(number)
    desk, sea = devices
    store(desk.start(), known)
    sea.start()
    for agent in AGENTS:
        sea.agent = agent
        number_of_texts = len(known.of_agent(agent))
        wait_until(
            lambda expected=number_of_texts: len(sea.texts()) == expected,
            "the other device has received the agent",
            MOST_SECONDS,
        )
        sync(sea)
        # Both devices change the same row, so that versions that were refused travel too.
        for device in (desk, sea):
            device.agent = agent
            device.edit(min(device.memories()), text=known.others["edited"], importance=0.7)
        sync(sea)
        sync(desk)
        assert desk.texts() == sea.texts()
    sea_id = next(each.id for each in desk.memory.devices().results if not each.this)
    # Sealed rows are sealed again with another key.
    desk.command("devices", "--retire", sea_id)
    desk.store("The last word")
    sync(desk)
    sqld.stop()
    content, traffic = in_files(sqld.log.parent), fault_proxy.recorded
    figure(f"{request.node.callspec.id}: MB of files, of traffic", (len(content), len(traffic)))
    # The same search finds each of them in a replica that is not sealed.
    expected = set() if "sealed" in request.node.callspec.id else known.words
    assert known.shown(content) == expected
    assert known.shown(traffic) == expected


def sync(device: Device) -> None:
    """Replicate, however busy the machine is: a call that got no answer is repeated."""

    def is_done() -> bool:
        try:
            return device.try_sync()
        except AnswerLost:
            return False

    wait_until(is_done, "the device has replicated", MOST_SECONDS)


def store(device: Device, known: Known) -> None:
    """Store the texts among the agents, and what else there is to store."""
    for agent in AGENTS:
        device.agent = agent
        memories = [
            {"text": text, "category": known.categories[place % CATEGORIES]}
            for place, text in enumerate(known.of_agent(agent))
        ]
        for start in range(0, len(memories), AT_ONCE):
            device.memory.batch(memories[start : start + AT_ONCE])
            sync(device)
        device.put_pair("harbour", known.others["pair"])
        device.put_hot("identity", {"name": known.others["hot"]})
        device.write_note("log.md", f"{known.others['note']}\n")
        sync(device)
