"""`thermocline status`: how the daemon is, problems first."""

from __future__ import annotations

import time

from ..client import Client
from .sync import phase_of
from .terminal import ago, moment, number_of, show_json, show_rows, size, span, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Final

    from ..status_answers import AgentStatus, Models, Problem, Status, UpkeepBrief


_HEAD: Final = (
    "open agent", "memories", "warm", "cold", "hot state", "tree", "pairs", "disk", "sync",
    "upkeep", "",
)  # fmt: skip


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
            ("model", _model(status["llm"])),
        ]
    )


def _model(models: Models) -> str:
    if models["state"] == "off":
        return "none: by rules"
    names = ", ".join(dict.fromkeys(name for many in models["models"].values() for name in many))
    today = models["today"]
    used = f"{today['calls']:,.0f} calls, {today['tokens']:,.0f} tokens today"
    cost = f", {dollars(today['cost'])} dollars" if today["cost"] else ""
    states = {
        "failing": "failing: by rules until it answers",
        "spent": "budget spent: by rules",
        "missing": "litellm is missing: by rules",
    }
    return f"{visible(names)}, {states.get(models['state'], models['state'])}; {used}{cost}"


def dollars(amount: float) -> str:
    """Cents, and of less than ten of them two digits: a day with a small model may cost less."""
    if amount >= 0.1:
        return f"{amount:,.2f}"
    return f"{amount:.2g}" if amount >= 0.0001 else "less than 0.0001"


def _show_agents(agents: Mapping[str, AgentStatus]) -> None:
    now = time.time()
    rows = [_HEAD]
    for name, agent in agents.items():
        rows.append(
            (
                name,
                f"{agent['memories']:,}",
                f"{agent['warm']:,} ({_share(agent['warm_bytes'], agent['warm_max_bytes'])})",
                _cold(agent),
                _share(agent["hot_bytes"], agent["hot_max_bytes"]),
                f"{agent['tree_nodes']}",
                f"{agent['kv']:,}",
                size(agent["database_bytes"]),
                phase_of(agent["sync"], now),
                _upkeep(agent["upkeep"], now),
                _noted(agent),
            )
        )
    show_rows(rows)


def _noted(agent: AgentStatus) -> str:
    lost = agent["conflicts"]
    conflicts = f"{number_of(lost, 'conflict', 'conflicts')}: history --conflicts" if lost else ""
    return conflicts or ("writing files" if agent["faces_pending"] else "")


def _upkeep(brief: UpkeepBrief, now: float) -> str:
    if brief["running"]:
        return f"{brief['running']} now"
    if brief["error"]:
        return f"{brief['last']} FAILED"
    if brief["last"]:
        return f"{brief['last']}, {ago(brief['last_at'], now)}"
    return f"{brief['next']}, {ago(brief['next_at'], now)}" if brief["next"] else "none"


def _cold(agent: AgentStatus) -> str:
    return f"{agent['cold']:,}"


def _share(used: float, limit: float) -> str:
    return f"{used / limit:.0%} full" if limit else size(used)
