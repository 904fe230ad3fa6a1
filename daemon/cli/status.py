"""`thermocline status` and `agents`: the state of the daemon, and its agents."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from .. import shapes
from ..client import Client, DaemonUnreachable
from ..client.wording import ago, moment, number_of, size
from .arguments import say
from .sync import phase_of
from .terminal import Shown, show_answer, show_rows, span, visible

_WATCH_SECONDS: Final = 2.0
_HEAD: Final = (
    "open agent", "memories", "warm", "cold", "hot state", "tree", "pairs", "files", "disk", "sync",
    "upkeep", "",
)  # fmt: skip


def add_status(parser: argparse.ArgumentParser) -> None:
    """Add the options of `status`."""
    parser.add_argument(
        "--watch", action="store_true", help="show it again every two seconds, until Ctrl-C"
    )


def run_status(args: argparse.Namespace, client: Client) -> None:
    """Show it on one page; with `--watch` repeatedly, even while no daemon answers."""
    if not args.watch:
        _show(client.status(), client.answered, args)
        return
    while True:
        found: shapes.status.Status | str
        try:
            found = client.status()
        except DaemonUnreachable as error:
            found = f"{error}; looking again every {_WATCH_SECONDS:g} seconds"
        if sys.stdout.isatty():
            sys.stdout.write("\x1b[H\x1b[J")
        if isinstance(found, str):
            print(visible(found))
        else:
            _show(found, client.answered, args)
        if not (sys.stdout.isatty() or args.json):
            print()
        sys.stdout.flush()
        time.sleep(_WATCH_SECONDS)


def _show(status: shapes.status.Status, answered: bytes, args: argparse.Namespace) -> None:
    if args.json:
        show_answer(answered, one_line=args.watch)
        return
    _show_problems(status.problems)
    _show_daemon(status)
    if status.agents:
        print()
        _show_agents(status.agents)


def _show_problems(problems: Sequence[shapes.status.Problem]) -> None:
    for problem in problems:
        since = f"(since {moment(problem.since)})"
        print(f"PROBLEM {visible(problem.code)}: {visible(problem.message)} {since}")
        if hint := problem.hint:
            print(f"  {visible(hint)}")
    if problems:
        print()


def _show_daemon(status: shapes.status.Status) -> None:
    state = "ready" if status.ready else "starting"
    up = span(status.uptime_seconds)
    show_rows(
        [
            ("thermocline", f"{status.version}, {state}, up {up}, process {status.pid}"),
            ("state", status.state_dir),
            ("socket", f"{status.socket}, {status.connections} connected"),
            ("device", status.device),
            ("model", _model(status.llm)),
        ]
    )


def _model(models: shapes.status.ModelStatus) -> str:
    if models.state == "off":
        return "none, rules only"
    names = ", ".join(dict.fromkeys(name for many in models.models.values() for name in many))
    today = models.today
    used = f"{today.calls:,.0f} calls, {today.tokens:,.0f} tokens today"
    cost = f", {dollars(today.cost)} dollars" if today.cost else ""
    states = {
        "failing": "failing, rules only until it answers",
        "spent": "budget spent, rules only",
        "missing": "litellm is not installed, rules only",
    }
    return f"{visible(names)}, {states.get(models.state, models.state)}; {used}{cost}"


def dollars(amount: float) -> str:
    """An amount with two digits: a day with a small model may cost less than a cent."""
    if amount >= 0.1:
        return f"{amount:,.2f}"
    return f"{amount:.2g}" if amount >= 0.0001 else "less than 0.0001"


def _show_agents(agents: Mapping[str, shapes.status.AgentStatus]) -> None:
    rows = [_HEAD]
    for name, agent in agents.items():
        rows.append(
            (
                name,
                f"{agent.memories:,}",
                f"{agent.warm:,} ({_share(agent.warm_bytes, agent.warm_max_bytes)})",
                f"{agent.cold:,}",
                _share(agent.hot_bytes, agent.hot_max_bytes),
                f"{agent.tree_nodes}",
                f"{agent.kv:,}",
                f"{agent.index.watched_files:,}" + " (behind)" * agent.index.dirty,
                size(agent.database_bytes),
                phase_of(agent.sync),
                _upkeep(agent.upkeep),
                _noted(agent),
            )
        )
    show_rows(rows)


def _noted(agent: shapes.status.AgentStatus) -> str:
    lost = agent.conflicts
    conflicts = f"{number_of(lost, 'conflict', 'conflicts')}: history --conflicts" if lost else ""
    return conflicts or ("writing files" if agent.faces_pending else "")


def _upkeep(brief: shapes.upkeep.UpkeepBrief) -> str:
    if brief.running:
        return f"{brief.running} now"
    if brief.error:
        return f"{brief.last} FAILED"
    if brief.last:
        return f"{brief.last}, {ago(brief.last_at)}"
    return f"{brief.next}, {ago(brief.next_at)}" if brief.next else "none"


def _share(used: float, limit: float) -> str:
    return f"{used / limit:.0%} full" if limit else size(used)


def run_agents(_: argparse.Namespace, client: Client) -> Shown:
    """List the agents."""
    agents = client.agents()
    return lambda: _show_list(agents)


def _show_list(agents: shapes.agents.AgentList) -> None:
    if not agents.results:
        say("no agent has a memory yet")
        return
    rows = [("agent", "memories", "size", "")]
    for agent in agents.results:
        memories = "-" if agent.memories is None else f"{agent.memories:,}"
        is_open = "open" if agent.open else ""
        rows.append((agent.id, memories, size(agent.size_bytes), is_open))
    show_rows(rows)
