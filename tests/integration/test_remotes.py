"""One contract for every remote: a file, and a real server by either of its paths."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from thermocline.sync.failures import Refused, RowTooLarge, SchemaMissing
from thermocline.sync.file_remote import FileRemote
from thermocline.sync.ports import Remote, Result, SqlStatement
from thermocline.sync.row_format import Value
from thermocline.sync.turso import connect

TABLE = SqlStatement("CREATE TABLE t (id TEXT PRIMARY KEY, v, n INTEGER)")
UPSERT = (
    "INSERT INTO t (id, v, n) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE"
    " SET v = excluded.v, n = excluded.n WHERE excluded.n > t.n"
)
COUNT = SqlStatement("SELECT count(*) FROM t")


@pytest.fixture(params=["file", "v2", "v1"])
async def remote(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Remote]:
    """A remote with one empty table; a server knows only one of the paths."""
    made: Remote
    if request.param == "file":
        made = FileRemote(tmp_path / "replica.db")
    else:
        hidden = {"v1": "/v2/", "v2": "/v1/"}[request.param]
        made = await connect(request.getfixturevalue("make_sqld")(without_path=hidden).start().url)
    await made.batch([TABLE])
    yield made
    await made.close()


async def run(remote: Remote, sql: str, *args: Value) -> Result:
    [result] = await remote.batch([SqlStatement(sql, args)])
    return result


def insert(key: str, value: Value = None) -> SqlStatement:
    return SqlStatement("INSERT INTO t (id, v) VALUES (?, ?)", (key, value))


async def test_statements_run_in_order_and_see_what_went_before(remote):
    results = await remote.batch(
        [
            insert("a", 1), SqlStatement("UPDATE t SET v = v + 1"), SqlStatement("SELECT v FROM t"),
            SqlStatement("UPDATE t SET v = v * 10"), SqlStatement("SELECT v FROM t"),
        ]
    )  # fmt: skip
    assert [result.rows for result in results] == [(), (), ((2,),), (), ((20,),)]
    assert (await run(remote, "SELECT ?2, ?1, ?2", "a", "b")).rows == (("b", "a", "b"),)
    assert (await run(remote, "SELECT ?2", "a", "b")).rows == (("b",),)
    assert await remote.batch([]) == []


async def test_a_batch_that_fails_leaves_nothing_behind(remote):
    for failing in ("INSERT INTO t (id) VALUES ('a')", "SELECT * FROM nowhere", "SELEC 1"):
        with pytest.raises((Refused, SchemaMissing)):
            await remote.batch([insert("a"), insert("b"), SqlStatement(failing)])
        assert (await remote.batch([COUNT]))[0].rows == ((0,),), failing
    await remote.batch([insert("a")])
    assert (await remote.batch([COUNT]))[0].rows == ((1,),)


async def test_an_upsert_says_whether_its_condition_held(remote):
    calls = [("a", "x", 5), ("a", "y", 6), ("a", "z", 6), ("a", "w", 4)]
    assert [(await run(remote, UPSERT, *args)).affected for args in calls] == [1, 1, 0, 0]
    results = await remote.batch([SqlStatement(UPSERT, args) for args in [*calls, ("a", "v", 7)]])
    assert [result.affected for result in results] == [0, 0, 0, 0, 1]


async def test_only_changed_rows_count_as_affected(remote):
    results = await remote.batch(
        [
            SqlStatement(
                "WITH x (i) AS (VALUES ('a'), ('b'), ('c')) INSERT INTO t (id) SELECT i FROM x"
            ),
            SqlStatement("SELECT * FROM t"),
            SqlStatement("CREATE TABLE IF NOT EXISTS u (a)"),
            SqlStatement("UPDATE t SET n = 1 WHERE id > 'a' RETURNING id"),
            SqlStatement("DELETE FROM t WHERE id = 'nobody'"),
            SqlStatement("DELETE FROM t"),
        ]
    )
    assert [result.affected for result in results] == [3, 0, 0, 2, 0, 3]
    assert sorted(results[3].rows) == [("b",), ("c",)]


VALUES: list[Value] = [
    *(0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.1, 1.0, -0.0, 1e308, 5e-324, 123456789.123456789, 1 / 3),
    *(
        "", " ", "ä", "日本語", "👩‍👩‍👧", "\u202e", "'\"\\;--", "a\0b", "\0", "\r\n\t\x7f\x1b",
            "\ufeff", "äx\0" * 350_000,
    ),
    *("1", "1.0", "null", '{"type":"float","value":null}'),
    None,
]  # fmt: skip


async def test_every_value_comes_back_as_it_went(remote):
    await remote.batch([insert(f"{number:03}", value) for number, value in enumerate(VALUES)])
    rows = (await run(remote, "SELECT v FROM t ORDER BY id")).rows
    assert [repr(value) for (value,) in rows] == [repr(value) for value in VALUES]
    direct = await run(remote, "SELECT " + ", ".join("?" for _ in VALUES), *VALUES)
    assert repr(direct.rows) == repr((tuple(VALUES),))
    # What no value can be is read alike.
    result = await run(remote, "SELECT x'41ff42', x'', 9e999, -9e999")
    assert result.rows == (("A\ufffdB", "", None, None),)


async def test_a_value_that_cannot_be_kept_is_refused_before_anything_happens(remote):
    for value in (math.inf, math.nan, 2**63, -(2**63) - 1, "\ud800", b"bytes"):
        with pytest.raises(Refused) as refused:
            await remote.batch([insert("a"), insert("b", value)])
        assert refused.value.code == "bad_request", value
        assert (await remote.batch([COUNT]))[0].rows == ((0,),)


FAULTS = [
    ("INSERT INTO t (id) VALUES ('there')", Refused, "constraint"),
    ("INSERT INTO strict (a) VALUES (NULL)", Refused, "constraint"),
    ("SELEC 1", Refused, "sql"),
    ("SELECT 1; SELECT 2", Refused, "sql"),
    ("SELECT ?", Refused, "sql"),
    ("SELECT 1\0", Refused, "sql"),
    ("SELECT json_extract('{', '$.a')", Refused, "sql"),
    ("SELECT * FROM nowhere", SchemaMissing, "schema_missing"),
    ("INSERT INTO nowhere VALUES (1)", SchemaMissing, "schema_missing"),
    ("SELECT missing FROM t", SchemaMissing, "schema_missing"),
    ("INSERT INTO t (missing) VALUES (1)", SchemaMissing, "schema_missing"),
    ("SELECT CAST(x'ff41' AS TEXT)", Refused, "damaged"),
]


async def test_a_fault_has_the_same_name_everywhere(remote):
    await remote.batch([insert("there"), SqlStatement("CREATE TABLE strict (a NOT NULL)")])
    for sql, kind, code in FAULTS:
        for before in ([], [SqlStatement("SELECT 1")]):
            with pytest.raises(kind) as raised:
                await remote.batch([*before, SqlStatement(sql)])
            assert (type(raised.value), raised.value.code) == (kind, code), sql
            assert raised.value.hint
            assert raised.value.message.startswith("cannot ")


async def test_a_batch_of_five_hundred_is_one_transaction(remote):
    await remote.batch([insert(f"{number:03}", "x" * 1500) for number in range(500)])
    assert (await remote.batch([COUNT]))[0].rows == ((500,),)
    with pytest.raises(Refused):
        await remote.batch([insert(f"{number:03}") for number in reversed(range(499, 999))])
    assert (await remote.batch([COUNT]))[0].rows == ((500,),)


async def test_an_answer_beyond_ten_megabytes_is_too_large_and_changes_nothing(remote):
    await remote.batch([insert("a", "x" * 2_100_000)])
    large = "SELECT v FROM t, (VALUES (1), (2), (3), (4), (5))"
    for before in ([], [insert("b")]):
        with pytest.raises(RowTooLarge) as raised:
            await remote.batch([*before, SqlStatement(large)])
        assert raised.value.code == "too_large"
        assert (await remote.batch([COUNT]))[0].rows == ((1,),)
    smaller = await run(remote, f"{large} LIMIT 4")
    assert sum(len(str(value)) for (value,) in smaller.rows) == 8_400_000


async def test_a_value_beyond_five_megabytes_is_too_large(remote):
    with pytest.raises(RowTooLarge):
        await remote.batch([insert("a", "x" * 5_000_001)])
    with pytest.raises(RowTooLarge):
        await remote.batch([COUNT, insert("a", "x" * 5_000_001)])
    assert (await remote.batch([COUNT]))[0].rows == ((0,),)


async def test_batches_at_the_same_time_do_not_disturb_each_other(remote):
    await remote.batch([insert("sum", 0)])
    batch = [SqlStatement("UPDATE t SET v = v + 1"), SqlStatement("SELECT v FROM t")]
    found = await asyncio.gather(*[remote.batch(batch) for _ in range(30)])
    assert sorted(results[1].rows[0][0] for results in found) == list(range(1, 31))


async def test_a_cancelled_batch_leaves_the_remote_in_order(remote):
    for turns in range(6):
        task = asyncio.create_task(remote.batch([insert("a"), SqlStatement("DELETE FROM t")]))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (await remote.batch([COUNT]))[0].rows == ((0,),)


async def test_a_closed_remote_says_so_and_may_be_closed_again(remote):
    await remote.close()
    await remote.close()
    with pytest.raises(Refused) as refused:
        await remote.batch([COUNT])
    assert "closed" in refused.value.message
