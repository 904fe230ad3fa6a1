"""`thermocline status`: how the daemon is, problems first."""

from __future__ import annotations

import time

from ..client import Client
from .terminal import moment, show_json, show_rows, size, span, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ..status_answers import AgentStatus, Problem, Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This verb has no options of its own."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Show it on one page."""
    with Client(args.socket, args.agent) as client:
        status = client.status()
    if args.json:
        show_json(status)
        return 0
    _show_problems(status["problems"])
    _show_daemon(status)
    if status["agents"]:
        print()
        _show_agents(status["agents"])
    return 0


def _show_problems(problems: Sequence[Problem]) -> None:
    now = time.time()
    for problem in problems:
        since = problem.get("since")
        begun = f" (since {moment(since, now)})" if since is not None else ""
        print(f"PROBLEM {visible(problem['code'])}: {visible(problem['message'])}{begun}")
        if hint := problem.get("hint"):
            print(f"  {visible(hint)}")
    if problems:
        print()


def _show_daemon(status: Status) -> None:
    state = "ready" if status["ready"] else "starting"
    up = span(status["uptime_seconds"])
    show_rows(
        [
            ("thermocline", f"{status['version']}, {state}, up {up}, process {status['pid']}"),
            ("state", status["state_dir"]),
            ("socket", f"{status['socket']}, {status['connections']} connected"),
            ("device", status["device"]),
        ]
    )


def _show_agents(agents: Mapping[str, AgentStatus]) -> None:
    rows = [("open agent", "memories", "warm", "cold", "hot state", "tree", "pairs", "disk", "")]
    for name, agent in agents.items():
        rows.append(
            (
                name,
                f"{agent['memories']:,}",
                f"{agent['warm']:,} ({_share(agent['warm_bytes'], agent['warm_max_bytes'])})",
                f"{agent['cold']:,}",
                _share(agent["hot_bytes"], agent["hot_max_bytes"]),
                f"{agent['tree_nodes']}",
                f"{agent['kv']:,}",
                size(agent["database_bytes"]),
                "writing files" if agent["faces_pending"] else "",
            )
        )
    show_rows(rows)


def _share(used: float, limit: float) -> str:
    return f"{used / limit:.0%} full" if limit else size(used)
