"""`thermocline status`, `agents`, `metrics` and `events`: what the daemon does."""

from __future__ import annotations

import json
import sys
import time

from ..client import wording
from ..client.caller import Caller
from .terminal import AnswerFields, cut, show_json, show_rows, visible, width, worded
from .usage import Form, Verb
from .values import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from .usage import Answer, Args, Shown

# A narrow terminal cuts lines at their end: what may need somebody comes first.
_HEAD: Final = (
    "open agent", "memories", "sync", "upkeep", "", "disk", "files", "warm", "archived",
    "hot state", "tree", "pairs",
)  # fmt: skip
_BAR_CELLS: Final = 10
# The exit code of every verb when no daemon answers.
_UNREACHABLE: Final = 3


def _show_status(status: Answer, _: Answer) -> None:
    problems = status.get("problems") or ()
    for problem in problems:
        print(visible(worded("PROBLEM {code}: {message} (since {since:moment})", problem)))
        if hint := problem.get("hint"):
            print(f"  {visible(hint)}")
    if problems:
        print()
    up, state = wording.span(status["uptime_seconds"]), "ready" if status["ready"] else "starting"
    show_rows(
        [
            ("thermocline", worded(f"{{version}}, {state}, up {up}, process {{pid}}", status)),
            ("state", status["state_dir"]),
            ("socket", worded("{socket}, {connections} connected", status)),
            ("device", status["device"]),
            ("model", _model(status["llm"])),
            *_cloud(status.get("agents") or {}),
            *([("encoder", _encoder(encoder))] if (encoder := status.get("encoder")) else ()),
        ]
    )
    if agents := status.get("agents"):
        print()
        show_rows([_HEAD, *(_agent(name, agent) for name, agent in agents.items())])


def _model(models: Answer) -> str:
    state, today = models["state"], models["today"]
    if state == "off":
        return wording.MODEL_STATES["off"]
    names = ", ".join(dict.fromkeys(name for many in models["models"].values() for name in many))
    used = f"{today['calls']:,.0f} calls, {today['tokens']:,.0f} tokens today"
    cost = f", {wording.dollars(today['cost'])} dollars" if today["cost"] else ""
    return f"{visible(names)}, {wording.MODEL_STATES.get(state, state)}; {used}{cost}"


def _cloud(agents: Answer) -> Iterator[tuple[str, str]]:
    """The use of each database; agents may share one."""
    used = {agent["sync"]["url"]: agent["sync"].get("usage") for agent in agents.values()}
    for url, usage in used.items():
        if usage is not None:
            today, month = (AnswerFields.of(usage[name]) for name in ("today", "month"))
            yield "cloud", f"{url}: today {wording.usage_of(today, usage.get('budget', 0))}"
            yield "", f"this month {wording.usage_of(month)}"


def _encoder(encoder: Answer) -> str:
    state = f"{encoder['state']}: {encoder['why']}" if encoder["why"] else encoder["state"]
    process = f"; {wording.size(encoder['memory_bytes'])} of memory" if encoder["pid"] else ""
    return f"{encoder['model']}, {state}{process}"


def _agent(name: str, agent: Answer) -> tuple[str, ...]:
    lost = agent.get("conflicts")
    conflicts = (
        f"{wording.number_of(lost, 'conflict', 'conflicts')}: history --conflicts" if lost else ""
    )
    index = agent["index"]
    left_out = f" ({index['left_out']:,} left out)" if index["left_out"] else ""
    files = f"{index['watched_files']:,}{left_out}" + " (behind)" * index["dirty"]
    return (
        name,
        f"{agent['memories']:,}",
        wording.phase_of(AnswerFields.of(agent["sync"])),
        _upkeep(agent["upkeep"]),
        conflicts or ("writing files" if agent.get("state_files_pending") else _encoding(agent)),
        wording.size(agent["size_bytes"]),
        files,
        f"{agent['warm']:,} ({_share(agent['warm_bytes'], agent['warm_max_bytes'])})",
        f"{agent['cold']:,}",
        _share(agent["hot_bytes"], agent["hot_max_bytes"]),
        f"{agent['tree_nodes']}",
        f"{agent['kv']:,}",
    )


def _encoding(agent: Answer) -> str:
    if left := agent.get("unindexed"):
        return f"indexing, {left:,} left"
    vectors = agent.get("vectors")
    return wording.encoded_of(AnswerFields.of(vectors)) if vectors and vectors["left"] else ""


def _share(used: float, limit: float) -> str:
    return f"{used / limit:.0%} full" if limit else wording.size(used)


def _upkeep(brief: Answer) -> str:
    if brief.get("running"):
        return f"{brief['running']} now"
    if brief.get("error"):
        return f"{brief['last']} FAILED"
    if brief.get("last"):
        return worded("{last}, {last_at:ago}", brief)
    return worded("{next}, {next_at:ago}", brief) if brief.get("next") else "none"


def _show_agents(answer: Answer, _: Answer) -> None:
    rows = [("agent", "memories", "size", "")]
    for agent in answer["results"]:
        count = agent.get("memories")
        memories = "-" if count is None else f"{count:,}"
        rows.append(
            (agent["id"], memories, wording.size(agent["size_bytes"]), "open" * agent["open"])
        )
    if answer["results"]:
        show_rows(rows)
    else:
        say("no agent has a memory yet")


def _metrics(args: Args, client: Caller) -> Shown:
    if args.report:
        stats = client.call("GET /api/memory/stats")
        return lambda: _show_report(stats)
    if args.trend:
        trend = client.call("GET /api/metrics/history")["trend"]
        client.answer = trend
        return lambda: _show_trend(trend)
    metrics = client.call("GET /api/metrics")
    return lambda: show_rows(_metric_rows(metrics, ""))


def _metric_rows(metrics: Answer, prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in metrics.items():
        if name.startswith("_"):
            continue
        if isinstance(value, dict):
            yield from _metric_rows(value, f"{prefix}{name}.")
        elif name == "last_consolidation" and isinstance(value, (int, float)):
            yield prefix + name, wording.moment(value) if value else "never"
        elif isinstance(value, float) and not value.is_integer():
            yield prefix + name, f"{value:.6g}"
        else:
            yield prefix + name, value if isinstance(value, str) else json.dumps(value)


def _show_report(stats: Answer) -> None:
    hot, warm, tree = stats["hot"], stats["warm"], stats["tree"]
    show_rows(
        [
            _bar("hot state", hot["size_bytes"], hot["max_bytes"]),
            _bar("warm", warm["size_bytes"], warm["max_kb"] * 1024),
            _bar("tree", tree["nodes"], tree["max_nodes"], unit="nodes"),
        ]
    )
    print()
    counted = stats["metrics"]
    rows = [
        ("warm memories", f"{warm['count']:,}"),
        ("archived", f"{stats['cold']['count']:,}"),
        ("stored so far", f"{counted['total_stored']:,}"),
        ("archived so far", f"{counted['total_evicted']:,}"),
        ("recalled so far", f"{counted['total_retrieved']:,}"),
    ]
    tops = [worded("{category} ({count:count})", top) for top in warm["top_categories"]]
    show_rows([*rows, *zip(["most in", *[""] * len(tops)], tops, strict=False)])


def _show_trend(trend: Answer | None) -> None:
    if trend is None:
        print("nothing is recorded yet: upkeep records each day")
        return
    print(worded("the week until {until}: {days} of 7 days are recorded", trend))
    rows = (_compared(name, compared) for name, compared in trend["numbers"].items())
    show_rows([("", "average", "before", "change"), *rows])


def _compared(name: str, compared: Answer) -> tuple[str, ...]:
    before, delta = compared.get("before"), compared.get("delta")
    sign = "" if not delta else "+" if delta > 0 else "-"
    return (
        name.replace("_", " "),
        _amount(name, compared["average"]),
        "" if before is None else _amount(name, before),
        "" if delta is None else sign + _amount(name, abs(delta)),
    )


def _amount(name: str, value: float) -> str:
    return wording.size(value) if name in ("hot_bytes", "warm_bytes") else f"{value:,.6g}"


def _bar(name: str, value: int, limit: int, unit: str = "") -> tuple[str, str, str]:
    share = min(1.0, value / limit) if limit else 0.0
    full = round(share * _BAR_CELLS)
    amounts = (
        f"{value:,} of {limit:,} {unit}"
        if unit
        else f"{wording.size(value)} of {wording.size(limit)}"
    )
    return name, "█" * full + "░" * (_BAR_CELLS - full), f"{share:>4.0%}  {amounts}"


def _events(args: Args, client: Caller) -> int:
    query = {"types": ",".join(args.types) or None}
    for event_id, kind, data in client.stream("/api/events", query, args.after):
        if args.json:
            show_json({"id": event_id, "type": kind, "data": data}, one_line=True)
        else:
            line = f"{time.strftime('%H:%M:%S')}  {kind}  {_fields(data)}"
            print(cut(visible(line.rstrip()), width()))
        sys.stdout.flush()
    say("the daemon ended the stream")
    return _UNREACHABLE


def _fields(data: Any) -> str:
    if not isinstance(data, dict):
        return json.dumps(data, ensure_ascii=False)
    return "  ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in data.items()
    )


VERBS: Final = {
    "status": Verb(Form("", "GET /api/status", _show_status)),
    "agents": Verb(Form("", "GET /api/agents", _show_agents)),
    "metrics": Verb(
        Form("", _metrics),
        options="""
        --report  show as bars how full everything is
        --trend   compare the last seven days with the seven before""",
        exclusive="report trend",
    ),
    "events": Verb(
        Form("", _events),
        options="""
        --type TYPE... = types  only these, such as memory.stored; may be repeated
        --after ID              start after this event""",
        note="With --json each line is an object with id, type and data.",
    ),
}
