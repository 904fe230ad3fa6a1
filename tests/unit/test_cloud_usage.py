"""What the cloud was used for: counted by day, kept across restarts, and held back by a budget."""

import calendar
import logging
from pathlib import Path

import pytest

from thermocline.daemon.cloud.usage import FILE, UsageLog
from thermocline.daemon.config.settings import Prices
from thermocline.daemon.runtime import atomic
from thermocline.sync import Usage

URL = "https://db.example"
DAY = 86_400.0
NOON = float(calendar.timegm((2026, 3, 31, 12, 0, 0)))
FREE = Prices()


class Device:
    """A log of the use, and its clock."""

    def __init__(self, folder: Path) -> None:
        self.now = NOON
        self.writes = 0
        self.path = folder / FILE
        self.log = self.begin()

    def begin(self) -> UsageLog:
        return UsageLog(self.path, self._write, lambda: self.now)

    def _write(self, path: Path, content: bytes) -> None:
        atomic.write(path, content)
        self.writes += 1

    def hold(self, budget: int = 100) -> float:
        return self.log.hold_seconds(URL, budget)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path)


def test_today_and_the_month_are_counted_by_database_and_priced(device):
    device.log.count(URL, Usage(rows_read=1_000_000, rows_written=10_000, bytes_sent=10**9))
    device.now += DAY
    device.log.count(URL, Usage(rows_read=5, rows_written=2))
    device.log.count("https://other.example", Usage(rows_read=7))
    device.now += DAY
    device.log.count(URL, Usage(rows_read=3, bytes_received=4))
    used = device.log.of(URL, Prices(billion_reads=1, million_writes=2, gigabyte=0.5), 9)
    assert (used.today.rows_read, used.today.rows_written, used.today.bytes_received) == (3, 0, 4)
    assert (used.month.rows_read, used.month.rows_written) == (8, 2), "March is another month"
    assert used.budget == 9
    device.now = NOON
    march = device.log.of(URL, Prices(billion_reads=1, million_writes=2, gigabyte=0.5), 0).month
    assert march.cost == pytest.approx(0.001 + 0.02 + 0.5)
    assert device.log.of("https://unknown.example", FREE, 0).month.rows_read == 0


async def test_counts_survive_a_restart_and_are_seldom_written(device):
    for _ in range(100):
        device.now += 10.0
        device.log.count(URL, Usage(rows_read=1))
        await device.log.save()
    assert device.writes == 1
    await device.log.save(at_once=True)
    await device.log.save(at_once=True)
    assert device.writes == 2, "nothing is new"
    assert device.begin().of(URL, FREE, 0).month.rows_read == 100


async def test_what_another_process_has_counted_meanwhile_is_added(device):
    restore = device.begin()
    restore.count(URL, Usage(rows_read=100))
    device.log.count(URL, Usage(rows_read=1))
    await restore.save(at_once=True)
    device.log.count(URL, Usage(rows_read=2))
    await device.log.save(at_once=True)
    for log in (device.log, device.begin()):
        assert log.of(URL, FREE, 0).today.rows_read == 103


async def test_a_disk_that_refuses_loses_no_count(device):
    device.path.mkdir()
    device.log.count(URL, Usage(rows_read=1))
    await device.log.save(at_once=True)
    device.path.rmdir()
    await device.log.save(at_once=True)
    assert device.begin().of(URL, FREE, 0).today.rows_read == 1


def test_a_damaged_file_is_counted_from_zero(device, caplog):
    device.path.write_bytes(b'{"https://db.example": [')
    with caplog.at_level(logging.WARNING):
        log = device.begin()
    assert log.of(URL, FREE, 0).today.rows_read == 0
    assert "from zero" in caplog.text


async def test_two_months_are_kept(device):
    for _ in range(100):
        device.now += DAY
        device.log.count(URL, Usage(rows_read=1))
    await device.log.save(at_once=True)
    assert device.path.read_bytes().count(b"2026-") == 62


def test_half_of_the_budget_is_free_and_the_rest_is_spread_over_the_day(device):
    device.now = NOON - 0.4 * DAY
    for read, held in ((50, 0.0), (10, 0.5), (20, 0.7), (20, 0.9), (500, 0.9)):
        device.log.count(URL, Usage(rows_read=read - 5, rows_written=5))
        assert device.hold() == pytest.approx(held * DAY)
    assert device.hold(0) == 0.0
    assert device.hold(1_000_000) == 0.0
    device.now += 0.85 * DAY
    assert device.hold() == pytest.approx(0.05 * DAY)
    device.now += 0.05 * DAY
    assert device.hold() == 0.0, "a new day"
