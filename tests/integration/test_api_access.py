"""Who may do what: the kernel vouches for the caller, the configuration decides."""

import contextlib
import json
import os
import pwd
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shells import run

from thermocline.daemon.cli.models import with_local_model
from thermocline.daemon.client import Client
from thermocline.daemon.config.settings import Access, Grant
from thermocline.daemon.errors import Forbidden
from thermocline.daemon.operations.access import Gate, Peer

READER, WRITER, ADMIN, MEMBER, STRANGER = 54_001, 54_002, 54_003, 54_004, 54_005
OWNER = 54_006
GROUP = 54_100
SAMPLES = Path(__file__).parents[1] / "fixtures" / "imports"
WITH_WORKSPACE = ("notes", "diary")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@contextlib.contextmanager
def user(uid: int, gid: int = 54_999) -> Iterator[None]:
    """Act as another user; a connection made meanwhile is theirs."""
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture(scope="module")
def open_daemon(shared_daemon: Any) -> Iterator[Any]:
    """A daemon whose socket others may connect to."""
    folder = Path(tempfile.mkdtemp(prefix="thermocline-access-"))
    folder.chmod(0o711)
    config = folder / "config.json"
    access = {
        "users": {
            str(READER): {"role": "read", "agents": ["notes"]},
            str(WRITER): {"role": "write", "agents": ["notes", "plans"]},
            str(ADMIN): "admin",
            str(OWNER): {"role": "admin", "agents": ["notes"]},
        },
        "groups": {str(GROUP): "read"},
    }
    agents: dict[str, Any] = {
        name: {"workspace": str(folder / f"workspace-{name}")} for name in WITH_WORKSPACE
    }
    for agent in agents.values():
        Path(agent["workspace"]).mkdir()
    (folder / "granted" / "below").mkdir(parents=True)
    agents["notes"]["paths"] = [str(folder / "granted")]
    config.write_text(
        json.dumps(
            {
                "access": access,
                "agents": agents,
                "socket": {"mode": "0666"},
                "sync": {"url": f"file:{folder}/replica.db"},
            }
        )
    )
    daemon = type(shared_daemon)(folder, f"--config={config}").start()
    yield daemon
    assert daemon.stop() == 0
    shutil.rmtree(folder)


@pytest.fixture
def ask(open_daemon: Any, calls_of: Any) -> Any:
    """`ask(uid, agent, method, target, body)` makes a call as another user."""

    def ask(
        uid: int, agent: str, method: str, target: str, body: Any = None, gid: int = 54_999
    ) -> Any:
        with user(uid, gid):
            return calls_of(open_daemon, agent)(method, target, body)

    return ask


@as_root
def test_only_an_admin_sends_the_daemon_to_another_database_or_retires_a_device(ask):
    ask(WRITER, "notes", "POST", "/api/memory", {"text": "x"})
    assert ask(READER, "notes", "GET", "/api/sync").status == 200
    assert ask(READER, "notes", "POST", "/api/sync").status == 403
    assert ask(WRITER, "notes", "POST", "/api/sync").status == 200
    elsewhere = {"url": "https://db.invalid", "token": "t", "critical": True}
    assert ask(WRITER, "notes", "POST", "/api/sync", elsewhere).status == 403
    assert ask(ADMIN, "notes", "POST", "/api/sync", elsewhere).status == 503
    search = {"url": "https://db.invalid", "token": "t", "query": "x"}
    assert ask(READER, "notes", "POST", "/api/cold/search", search).status == 403
    assert ask(READER, "notes", "POST", "/api/cold/search", {"query": "x"}).status == 200
    assert ask(WRITER, "notes", "POST", "/api/devices/abcdef/retire").status == 403
    assert ask(WRITER, "notes", "POST", "/api/devices/rejoin").status == 403
    assert ask(ADMIN, "notes", "POST", "/api/devices/rejoin").status == 200


@as_root
def test_a_path_outside_the_workspace_is_added_by_its_owner_alone(
    ask, open_daemon, calls_of, tmp_path
):
    inside = open_daemon.state.parent / "workspace-notes" / "more"
    inside.mkdir(exist_ok=True)
    paths = "/api/files/paths"
    ask(WRITER, "notes", "POST", "/api/memory", {"text": "x"})
    assert ask(WRITER, "notes", "POST", paths, {"path": str(tmp_path)}).status == 403
    for outside in ("/etc", "/etc/none"):
        assert ask(ADMIN, "notes", "POST", paths, {"path": outside}).status == 403
    assert ask(READER, "notes", "POST", paths, {"path": str(inside)}).status == 403
    assert ask(WRITER, "notes", "POST", paths, {"path": str(inside)}).status == 200
    (inside / "out").symlink_to("/etc")
    assert ask(WRITER, "notes", "POST", paths, {"path": f"{inside}/out"}).status == 403
    granted = open_daemon.state.parent / "granted"
    assert ask(WRITER, "notes", "POST", paths, {"path": f"{granted}/below"}).status == 200
    assert ask(WRITER, "plans", "POST", paths, {"path": str(granted)}).status == 403
    assert ask(STRANGER, "notes", "GET", "/api/files/search?query=x").status == 403
    own = calls_of(open_daemon, "notes")
    assert own("POST", paths, {"path": str(tmp_path)}).status == 200
    assert ask(READER, "notes", "DELETE", f"{paths}?path={tmp_path}").status == 403
    assert ask(WRITER, "notes", "DELETE", f"{paths}?path={tmp_path}").status == 200


@as_root
def test_only_an_admin_of_every_agent_sees_and_changes_the_configuration(ask):
    change = {"set": {"hot.max_tasks": 11}}
    for who in (READER, WRITER, OWNER, STRANGER):
        assert ask(who, "notes", "GET", "/api/config").status == 403
        assert ask(who, "notes", "PUT", "/api/config", change).status == 403
    assert ask(ADMIN, "notes", "GET", "/api/config").status == 200
    assert ask(ADMIN, "notes", "PUT", "/api/config", change).status == 200
    assert ask(ADMIN, "notes", "PUT", "/api/config", {"unset": ["hot.max_tasks"]}).status == 200


@as_root
@pytest.mark.parametrize(
    "change",
    [
        {"set": {"agents.x.workspace": "/etc"}}, {"set": {"agents": {"x": {"workspace": "/etc"}}}},
        {"set": {"access": {"users": {str(STRANGER): "admin"}}}},
        {"set": {"sync.token_file": "/etc/shadow"}},
        {"set": {"sync": {"url": "file:/elsewhere/x"}}},
        {"set": {"llm.api_base": "http://192.0.2.1"}}, {"set": {"socket": {"mode": "0666"}}},
        {"unset": ["access"]}, {"unset": ["sync"]},
    ],
)  # fmt: skip
def test_an_admin_who_is_not_the_owner_cannot_turn_the_daemon_on_its_owner(
    change, ask, open_daemon
):
    before = (open_daemon.socket.parent / "config.json").read_bytes()
    assert ask(ADMIN, "notes", "PUT", "/api/config", change).status == 403
    assert (open_daemon.socket.parent / "config.json").read_bytes() == before


@as_root
def test_importing_needs_the_role_for_what_is_imported(ask):
    entries = {"memories": [{"id": "e1", "text": "an entry of a writer", "writer": "uid:0"}]}
    assert ask(READER, "notes", "POST", "/api/import", entries).status == 403
    assert ask(WRITER, "notes", "POST", "/api/import", entries).body["stored"] == {"memory": 1}
    assert ask(READER, "notes", "GET", "/api/memory/e1").body["writer"] == f"uid:{WRITER}"
    elsewhere = {"url": "https://db.invalid", "token": "t"}
    assert ask(WRITER, "notes", "POST", "/api/import", elsewhere).status == 403
    fact = {"id": "f1", "text": "of a writer", "writer": "uid:0"}
    file = {"name": "warm-memory.json", "text": json.dumps([fact])}
    assert ask(READER, "notes", "POST", "/api/import", file).status == 403
    assert ask(WRITER, "notes", "POST", "/api/import", file).body["stored"] == {"memory": 1}
    stored = ask(READER, "notes", "GET", "/api/memory/f1").body
    assert stored["writer"] == f"uid:{WRITER}"
    row = {"kind": "pair", "id": "k", "data": {"value": "v"}, "clocks": {"at": [1, "d"]}}
    rows = {"text": json.dumps(row)}
    assert ask(WRITER, "notes", "POST", "/api/import", rows).status == 403
    assert ask(OWNER, "notes", "POST", "/api/import", rows).body["stored"] == {"pair": 1}


@as_root
def test_a_writer_imports_a_system_whose_database_also_has_rows(open_daemon):
    path = open_daemon.socket.parent / "scalyclaw.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript((SAMPLES / "scalyclaw.sql").read_text())
    path.chmod(0o644)
    words = (f"--socket={open_daemon.socket}", "--agent-id=plans", "--json", "import", path)
    # Loads the data files of the program, whose folder the writer may not be allowed to read.
    run(*words, "--dry-run")
    with user(WRITER):
        report = json.loads(run(*words).stdout)
    assert report["stored"]["memory"] == 2
    assert f"user {WRITER} has not the role admin" in str(report["left_out"])


@as_root
def test_who_was_granted_nothing_is_refused_everything(ask):
    for method, target, body in (
        ("GET", "/api/memory", None), ("POST", "/api/memory", {"text": "x"}),
        ("GET", "/api/status", None), ("GET", "/api/health", None), ("GET", "/api/events", None),
        ("GET", "/api/agents", None), ("GET", "/api/openapi.json", None),
        ("POST", "/api/metadata", {"text": "x"}), ("DELETE", "/api/kv/k", None),
    ):  # fmt: skip
        refused = ask(STRANGER, "notes", method, target, body)
        assert refused.refusal() == (403, "forbidden", None), target
        assert f"access.users.{STRANGER}" in refused.body["error"]["hint"]


@as_root
def test_a_reader_reads_and_a_writer_writes_what_they_were_granted(ask, calls_of, open_daemon):
    mine = calls_of(open_daemon, "notes").store("Ana prefers tea")
    stored = ask(WRITER, "notes", "POST", "/api/memory", {"text": "Bo prefers milk"})
    assert stored.status == 201
    assert stored.body["writer"] == f"uid:{WRITER}"
    assert mine["writer"] == f"uid:{os.getuid()}"
    target = f"/api/memory/{mine['id']}"
    assert ask(READER, "notes", "GET", target).status == 200
    recalled = ask(READER, "notes", "POST", "/api/recall", {"query": "tea"})
    assert mine["id"] in {result["id"] for result in recalled.body["results"]}
    for method, where, body in (
        ("POST", "/api/memory", {"text": "x"}),
        ("POST", "/api/memory/batch", {"memories": [{"text": "x"}]}),
        ("PUT", target, {"text": "x"}),
        ("DELETE", target, None),
        ("POST", f"{target}/reinforce", None),
        ("POST", f"{target}/merge", {"into": "x"}),
        ("POST", f"{target}/unmerge", None),
        ("POST", "/api/memory/tidy", {"dry_run": True}),
        ("PUT", "/api/hot/task", {"text": "x"}),
        ("DELETE", "/api/hot/task?name=x", None),
        ("POST", "/api/hot/rebuild", None),
        ("PUT", "/api/tree", {"path": "x"}),
        ("DELETE", "/api/tree?path=x", None),
        ("POST", "/api/tree/prune", None),
        ("PUT", "/api/kv/k", {"value": "x"}),
        ("DELETE", "/api/kv/k", None),
        ("POST", "/api/distill", {"text": "x"}),
        ("POST", "/api/observe", {"conversation": "c", "end": True}),
        ("POST", "/api/recall", {"query": "x", "mode": "llm", "llm_endpoint": "http://[::1]:1"}),
    ):
        refused = ask(READER, "notes", method, where, body)
        assert refused.refusal() == (403, "forbidden", None), where
    assert ask(WRITER, "notes", "PUT", target, {"subject": "s"}).body["writer"] == mine["writer"]


@as_root
def test_a_reader_who_asks_for_a_model_where_none_is_configured_goes_by_keywords(
    open_daemon, calls_of, model_server, capsys
):
    calls_of(open_daemon, "notes").store("Ana prefers oolong")
    env = {"THERMOCLINE_MODEL_PORTS": str(model_server.port)}

    def ask(more: dict[str, Any]) -> Any:
        with user(READER), Client(str(open_daemon.socket), "notes") as reader:
            return reader.recall("oolong", mode="llm", **more)

    with Client(str(open_daemon.socket), "notes") as client:
        found = with_local_model(client, ask, env)
    assert found.results[0].text == "Ana prefers oolong"
    assert model_server.heard == []
    assert "that model was not asked: " in capsys.readouterr().err


@as_root
def test_a_grant_ends_with_its_agents(ask, calls_of, open_daemon):
    for agent in ("notes", "plans", "diary"):
        calls_of(open_daemon, agent).store("x")
    assert ask(READER, "plans", "GET", "/api/memory").refusal()[:2] == (403, "forbidden")
    assert ask(WRITER, "diary", "POST", "/api/memory", {"text": "x"}).status == 403
    assert ask(WRITER, "new", "POST", "/api/memory", {"text": "x"}).status == 403
    assert ask(ADMIN, "diary", "POST", "/api/memory", {"text": "x"}).status == 201
    sneaky = ask(READER, "notes", "GET", "/api/memory?agent=diary")
    assert sneaky.refusal() == (400, "invalid", "agent")


@as_root
def test_status_agents_and_events_show_only_what_may_be_read(ask, calls_of, open_daemon, wire):
    for agent in ("notes", "plans", "diary"):
        calls_of(open_daemon, agent).store("x")
    assert set(ask(READER, "notes", "GET", "/api/status").body["agents"]) == {"notes"}
    listed = ask(WRITER, "notes", "GET", "/api/agents").body["results"]
    assert {agent["id"] for agent in listed} == {"notes", "plans"}
    everyone = ask(ADMIN, "notes", "GET", "/api/agents").body["results"]
    assert {agent["id"] for agent in everyone} >= {"notes", "plans", "diary", "default"}
    with user(READER):
        one = wire(open_daemon.socket)
    one.send(b"GET /api/events?types=memory.stored HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 0\r\n\r\n")
    seen = b""
    while b"the end" not in seen:
        if b"notes" in seen:
            calls_of(open_daemon, "diary").store("x", force=True)
            calls_of(open_daemon, "notes").store("x", event="the end", force=True)
        seen += one.socket.recv(65_536)
    assert b"diary" not in seen
    assert b"plans" not in seen


@as_root
def test_status_and_health_show_the_problems_of_agents_that_may_be_read(
    ask, calls_of, open_daemon, eventually
):
    folders = [open_daemon.state.parent / f"workspace-{name}" for name in WITH_WORKSPACE]
    for agent in WITH_WORKSPACE:
        # An agent that is opened makes its workspace: only one that is open can miss it.
        calls_of(open_daemon, agent).store("x")
    for folder in folders:
        folder.rename(folder.with_suffix(".away"))

    def problems_shown(uid: int, target: str) -> str:
        return str(ask(uid, "notes", "GET", target).body["problems"])

    try:
        for agent in WITH_WORKSPACE:
            # Its MEMORY.md, which is in the workspace, shows it.
            calls_of(open_daemon, agent).ok("PUT", "/api/hot/lesson", {"text": "Ask first"})
            eventually(
                lambda a=agent: f"'{a}'" in problems_shown(ADMIN, "/api/status"), "it is reported"
            )
        assert "'notes'" in problems_shown(READER, "/api/status")
        assert "'diary'" not in problems_shown(READER, "/api/status")
        assert ask(ADMIN, "notes", "GET", "/api/health").status == 503
        assert "'diary'" not in str(ask(READER, "notes", "GET", "/api/health").body)
        both = ask(ADMIN, "notes", "GET", "/api/metrics").body["daemon"]["problems"]
        one = ask(READER, "notes", "GET", "/api/metrics").body["daemon"]["problems"]
        assert one < both
    finally:
        for folder in folders:
            folder.with_suffix(".away").rename(folder)
    for agent in WITH_WORKSPACE:
        eventually(
            lambda a=agent: f"'{a}'" not in problems_shown(ADMIN, "/api/status"), "it is over"
        )


@as_root
def test_a_writer_forgets_memories_and_only_an_admin_an_agent(ask, calls_of, open_daemon):
    calls_of(open_daemon, "plans").store("Deploy on Friday")
    wish = {"query": "friday"}
    calls_of(open_daemon, "notes").store("Ana prefers tea on Friday")
    assert ask(READER, "notes", "POST", "/api/memory/forget", wish).status == 403
    assert ask(WRITER, "notes", "POST", "/api/memory/forget", wish).body["total"] == 1
    assert ask(ADMIN, "plans", "POST", "/api/memory/forget", wish | {"dry_run": True}).body["total"]
    for who in (READER, WRITER, STRANGER, OWNER):
        for query in ("", "?dry_run=true"):
            refused = ask(who, "notes", "DELETE", f"/api/agents/plans{query}")
            assert refused.refusal()[:2] == (403, "forbidden")
    assert ask(ADMIN, "notes", "DELETE", "/api/agents/plans").status == 200
    assert calls_of(open_daemon, "plans").total() == 0


@as_root
def test_forty_recalls_of_a_reader_change_nothing(ask, calls_of, open_daemon, eventually):
    mine = calls_of(open_daemon, "notes")
    stored = mine.store("Cleo prefers cocoa", importance=0.5)
    before = mine.ok("GET", "/api/metrics")
    for _ in range(40):
        found = ask(READER, "notes", "POST", "/api/recall", {"query": "Cleo cocoa"})
        assert found.body["results"][0]["id"] == stored["id"]
        assert ask(READER, "notes", "GET", "/api/hot").status == 200
        assert ask(READER, "notes", "GET", "/api/hot/markdown").status == 200
        block = ask(READER, "notes", "GET", "/api/context?query=Cleo+cocoa").body
        assert "Cleo prefers cocoa" in block["text"]
    assert not [*open_daemon.state.parent.rglob("knowledge.md")]
    # Uses are written in order: when the writer's own is counted, the reader's would be.
    assert ask(WRITER, "notes", "POST", "/api/recall", {"query": "Cleo cocoa"}).status == 200

    def uses() -> int:
        return int(mine.ok("GET", f"/api/memory/{stored['id']}")["access_count"])

    eventually(lambda: uses() > 0, "the writer's use is counted")
    assert uses() == 1
    after = mine.ok("GET", "/api/metrics")
    assert after["retrieval_count"] == before["retrieval_count"] + 1


@as_root
def test_a_group_is_granted_like_a_user(ask, calls_of, open_daemon):
    calls_of(open_daemon, "notes").store("x")
    assert ask(MEMBER, "notes", "GET", "/api/memory", gid=GROUP).status == 200
    assert ask(MEMBER, "notes", "POST", "/api/memory", {"text": "x"}, gid=GROUP).status == 403
    assert ask(MEMBER, "notes", "GET", "/api/memory").status == 403


@as_root
def test_nobody_else_can_connect_unless_the_socket_is_opened_to_them(calls_of, shared_daemon):
    folder = Path(tempfile.mkdtemp(prefix="thermocline-closed-"))
    folder.chmod(0o711)
    daemon = type(shared_daemon)(folder).start()
    try:
        with user(STRANGER), pytest.raises(PermissionError):
            calls_of(daemon)("GET", "/api/health")
    finally:
        daemon.stop()
        shutil.rmtree(folder)


# The decision by itself


def gate(users: dict[str, Grant] | None = None, groups: dict[str, Grant] | None = None) -> Gate:
    access = Access(users=users or {}, groups=groups or {})
    return Gate(lambda: access, own_uid=1000)


def peer(uid: int, gid: int = 54_999) -> Peer:
    return Peer(pid=1, uid=uid, gid=gid)


def test_the_highest_of_several_grants_holds_and_root_and_the_daemons_own_user_need_none():
    somebody = next(entry for entry in pwd.getpwall() if entry.pw_uid not in {0, 1000})
    decided = gate(
        users={
            str(MEMBER): Grant("read", ("*",)),
            # A name stands for its user.
            somebody.pw_name: Grant("write", ("*",)),
        },
        groups={str(GROUP): Grant("write", ("notes",))},
    )
    for who, agent, role in (
        (peer(0), "any", "admin"), (peer(1000), "any", "admin"), (peer(1001), "any", None),
        (peer(MEMBER, GROUP), "notes", "write"), (peer(MEMBER, GROUP), "plans", "read"),
        (peer(STRANGER, GROUP), "plans", None), (peer(STRANGER, GROUP), "*", "write"),
        (peer(somebody.pw_uid), "notes", "write"),
    ):  # fmt: skip
        assert decided.role(who, agent) == role
    decided.require(peer(MEMBER, GROUP), "notes", "read")
    with pytest.raises(Forbidden, match="has not the role admin"):
        decided.require(peer(MEMBER, GROUP), "notes", "admin")


def test_a_role_ends_with_its_grant_or_the_membership_of_its_group(monkeypatch):
    member = next(entry for entry in pwd.getpwall() if entry.pw_uid not in {0, 1000})
    groups = [member.pw_gid, GROUP]
    monkeypatch.setattr(os, "getgrouplist", lambda _name, _gid: groups)
    nothing = Access(users={}, groups={})
    now, access = [0.0], [nothing]
    decided = Gate(lambda: access[0], own_uid=1000, clock=lambda: now[0])
    assert decided.role(peer(MEMBER), "notes") is None
    access[0] = Access(
        users={str(MEMBER): Grant("read", ("*",))}, groups={str(GROUP): Grant("write", ("*",))}
    )
    assert decided.role(peer(MEMBER), "notes") == "read"
    assert decided.role(peer(member.pw_uid), "notes") == "write"
    groups.remove(GROUP)
    now[0] += 5.0
    assert decided.role(peer(member.pw_uid), "notes") is None
    access[0] = nothing
    assert decided.role(peer(MEMBER), "notes") is None
