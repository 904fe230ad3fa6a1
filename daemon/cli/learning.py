"""What an agent learns: knowledge, reflections, episodes, skills, experiences, names, sessions."""

from __future__ import annotations

import json

from ..client.wording import ago, number_of
from .conversations import messages_in, say_skipped
from .options import PAGE
from .terminal import page, short, show_json, show_rows, show_text, visible, worded
from .usage import Form, Verb
from .values import refuse, say, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Answer, Args, Shown


def _show_knowledge(answer: Answer, _: Answer) -> None:
    if answer["text"].strip():
        show_text(answer["text"].rstrip("\n"))
    else:
        say("no knowledge yet: memory/knowledge.md holds it")


def _lesson(reflection: Answer) -> str:
    action = f" → {reflection['action']}" if reflection.get("action") else ""
    return worded("{context}: {lesson}", reflection) + action


def _summary(episode: Answer) -> str:
    tags = f" ({', '.join(episode['tags'])})" if episode.get("tags") else ""
    return f"{episode['summary']}{tags}"


def _skill_add(args: Args, client: Caller) -> Shown:
    fields = {"id": args.id, "description": args.description, "force": bool(args.force)}
    made = client.call("POST /api/skills", text=text_in(args.file), **fields)
    return f"{'added' if made['added'] else 'replaced'} {made['path']}"


def _intent(experience: Answer) -> str:
    """What was done, and how: the solution of an observed one may only repeat its intent."""
    solution = experience.get("solution")
    if isinstance(solution, dict) and [*solution.values()] == [experience["intent"]]:
        solution = None
    text = solution if isinstance(solution, str) else solution and json.dumps(solution)
    return f"{experience['intent']} → {text}" if text else str(experience["intent"])


_EXPERIENCE: Final = ("{id}", "{weight:share}", "{type}", "{last_used_at:ago}", _intent)
_show_experiences = page("experiences", *_EXPERIENCE, empty="no experiences")


def _show_pruned(answer: Answer, _: Answer) -> None:
    page("pruned", *_EXPERIENCE, empty="")(answer, {})
    count = number_of(len(answer["pruned"]), "experience", "experiences")
    print(f"{'pruned' if answer['done'] else 'would prune'} {count}, {answer['kept']} left")


def _show_counts(answer: Answer, _: Answer) -> None:
    total = number_of(answer["total"], "experience", "experiences")
    print(f"{total}, {answer['avgAge']:.1f} days old on average, {answer['faded']} faded")
    show_rows((name, str(count)) for name, count in answer["byType"].items())


def _observe_experiences(args: Args, client: Caller) -> Shown:
    fields = args.present("conversation") | messages_in(text_in(args.file))
    if args.user is not None:
        fields["user"] = args.user
    answer = client.call("POST /api/experiences/observe", **fields)

    def show() -> None:
        page("stored", *_EXPERIENCE, empty="")(answer, {})
        print(f"stored {len(answer['stored'])}, told again {len(answer['known'])}")
        say_skipped(answer)

    return show


def _graph(args: Args, client: Caller) -> Shown | int:
    changing = args.type is not None or args.alias or args.no_alias
    refuse(args.name is None and changing, "--type, --alias and --no-alias need a NAME")
    refuse(args.name is None and args.depth is not None, "--depth needs a NAME")
    refuse(args.name is not None and args.limit is not None, "--limit takes no NAME")
    if args.name is None:
        best = client.call("GET /api/graph", limit=args.limit or 20)
        show = page(
            "graph", "{name}", "{type}", "{mentionCount:memory memories}",
            lambda entity: ", ".join(
                worded("{relation} {target}", link) for link in entity["relations"][:3]
            ),
            empty="no names yet: texts such as 'my dog is called Rex' introduce them",
        )  # fmt: skip
        return lambda: show(best, {})
    if changing:
        changes: dict[str, Any] = args.present("type")
        if args.alias or args.no_alias:
            known = client.call("GET /api/graph", entity=args.name, depth=0).get("graph")
            without = {alias.casefold() for alias in args.no_alias}
            aliases = [
                alias for alias in (known[0]["aliases"] if known else ())
                if alias.casefold() not in without
            ]  # fmt: skip
            changes["aliases"] = [*aliases, *args.alias]
        client.call("PUT /api/graph/{name}", name=args.name, **changes)
        if args.json:
            return ""
    depth = 2 if args.depth is None else args.depth
    answer = client.call("GET /api/graph", entity=args.name, depth=depth)
    if not answer.get("graph"):
        show_json(answer) if args.json else say(visible(answer["message"]))
        return 1
    return lambda: _show_graph(answer["graph"])


def _show_graph(graph: list[Answer]) -> None:
    for entity in graph:
        aliases = entity.get("aliases")
        also = f", also {', '.join(aliases)}" if aliases else ""
        known = "{mentionCount:memory memories}, first named {firstSeen:ago}, last {lastSeen:ago}"
        print(visible(f"{entity['name']} ({entity['type']}{also}): {worded(known, entity)}"))
        if entity.get("memories"):
            print(f"  from {' '.join(map(short, entity['memories']))}")
        show_rows(
            (
                *("", link["relation"], link["target"], f"{link['strength']:g}"),
                f"first {ago(link['since'])}",
                " ".join(map(short, link["memories"])),
            )
            for link in entity["relations"]
        )


_TYPES: Final = "tool_chain|user_preference|task_solution|error_recovery"

VERBS: Final = {
    "knowledge": Verb(Form("", "GET /api/knowledge", _show_knowledge)),
    "reflect": Verb(
        Form(
            "list", "GET /api/reflections",
            page("results", "{ts:day}", "{type}", _lesson, empty="no reflections yet"),
            "type limit offset",
        ),
        Form(
            "add TEXT", "POST /api/reflections",
            lambda answer, _: print(visible(f"added: {_lesson(answer)}")), "type! context! action",
        ),
        options=f"""
        TEXT = lesson                   what was learned; - reads it from stdin
        --type failure|success|insight  its kind; narrows a list
        --context TEXT                  where it was learned
        --action TEXT                   what to do about it
        {PAGE}""",
        note=(
            "example:\n  thermocline reflect add 'run the migration before the restart'"
            " --type failure --context 'deploy of the API' --action 'put it into the script'"
        ),
    ),
    "episode": Verb(
        Form(
            "list", "GET /api/episodes",
            page("results", "{ts:day}", "{outcome}", _summary, empty="no episodes yet"),
            "outcome limit offset",
        ),
        Form("add TEXT", "POST /api/episodes", "added: {summary}", "outcome tags user"),
        options=f"""
        TEXT = summary          what it came to; - reads it from stdin
        --outcome resolved|unresolved|informational  with add informational if left out
        --tag TAG... = tags     may be repeated
        --user NAME             with whom it was
        {PAGE}""",
        note=(
            "example:\n  thermocline episode add 'Ana could not log in; her token was renewed.'"
            " --outcome resolved --tag login"
        ),
    ),
    "skill": Verb(
        Form(
            "list", "GET /api/skills",
            page("results", "{id}", "{description}", empty="no skills yet"), "limit offset",
        ),
        Form(
            "show ID", "GET /api/skills/{id}",
            lambda skill, _: show_text((skill.get("text") or "").rstrip("\n")), "",
        ),
        Form("add ID", _skill_add, options="description! file! force"),
        options=f"""
        ID                  the name of its file, without .md
        --description TEXT  when to use it
        --file FILE         its text in Markdown; - reads standard input
        --force             replace a skill of this name
        {PAGE}""",
        note=(
            "example:\n  thermocline skill add deploy --description 'how to deploy the API'"
            " --file deploy.md"
        ),
    ),
    "experiences": Verb(
        Form(
            "list", "GET /api/experiences", _show_experiences,
            "type user min_weight half_life_days limit offset",
        ),
        Form(
            "search TEXT", "GET /api/experiences/search", _show_experiences,
            "tags half_life_days limit",
        ),
        Form(
            "add INTENT", "POST /api/experiences", "added {id}",
            "type! solution! tags user success_score weight",
        ),
        Form("show ID", "GET /api/experiences/{id}", lambda answer, _: show_json(answer), ""),
        Form(
            "use ID", "POST /api/experiences/{id}/use",
            "used {use_count:time times}, weight {weight:share}", "",
        ),
        Form("delete ID", "DELETE /api/experiences/{id}", "deleted {deleted}", ""),
        Form(
            "prune", "POST /api/experiences/prune", _show_pruned,
            "min_weight half_life_days dry_run",
        ),
        Form("stats", "GET /api/experiences/stats", _show_counts, "half_life_days"),
        Form("observe FILE", _observe_experiences, options="conversation! user"),
        Form(
            "prefer CATEGORY VALUE", "POST /api/preferences",
            "{category}: {value} (confidence {confidence:share})", "user",
        ),
        Form(
            "preferences", "GET /api/preferences",
            page(
                "preferences", lambda entry: entry.get("user") or "-", "{category}", "{value}",
                "{confidence:share}", "{repeats}x",
            ),
            "user limit offset",
        ),
        options=f"""
        TEXT = q                what it is like
        --type {_TYPES}  its type; narrows a list
        --solution JSON|TEXT    what was done: JSON or plain text; - reads stdin
        --tag TAG... = tags     may be repeated
        --user NAME             whose it is
        --success 0-1 = success_score  how well it worked (default 1)
        --weight 0-1            what it is worth when used (default 1)
        --min-weight 0-1        prune below it (default 0.05); list from
        --half-life-days DAYS   in this call alone, weights halve in 1 to 365 days
        --conversation NAME     the conversation that the file holds
        --dry-run               only show what prune would take
        {PAGE}""",
        note=(
            "The weight of an experience halves every 30 days without a use, or as\n"
            "experiences.half_life_days says. `thermocline undo ID --kind experience` brings\n"
            "back what was pruned.\n\n"
            "examples:\n"
            "  thermocline experiences add 'the deploy hangs' --type error_recovery"
            " --solution 'restart the queue first' --tag deploy\n"
            "  thermocline experiences search 'deploy does not finish' --tag deploy"
        ),
    ),
    "graph": Verb(
        Form("[NAME]", _graph),
        options="""
        NAME                a person or thing; default: the best known
        --depth N           number of relations away, 0 to 5 (default 2)
        --limit N           how many of the best known (default 20)
        --type person|project|technology|place|organization|concept  set what it is
        --alias OTHER...    add another name; may be repeated
        --no-alias OTHER...  take a name off again""",
        note=(
            "Names come from observed conversations, with their relations, and from the text of\n"
            "stored memories. The strength of a relation is one for each memory that states it,\n"
            "halved every 90 days. What was observed once, and not for 90 days, is no longer\n"
            "listed. A name and its aliases count together; `thermocline undo NAME --kind entity`\n"
            "takes back a change of type or aliases.\n\n"
            "examples:\n"
            "  thermocline graph Ada\n"
            "  thermocline graph 'Ada Lovelace' --alias Ada --type person"
        ),
    ),
    "sessions": Verb(
        Form(
            "list", "GET /api/sessions",
            page(
                "sessions", "{id}", "{status}", "{updated_at:moment}",
                lambda session: session.get("name") or session.get("category") or "",
                empty="no sessions",
            ),
            "status limit offset",
        ),
        Form("start [NAME]", "POST /api/sessions", "{id}", "category paths conversation user"),
        Form("show ID", "GET /api/sessions/{id}", lambda answer, _: show_json(answer), ""),
        Form("archive ID", "POST /api/sessions/{id}/archive", "{status} {id}", ""),
        options=f"""
        --category PATH         it sees the memories below this category
        --path PATH... = paths  it sees the files below this path; may be repeated
        --conversation NAME     the conversation that it belongs to
        --user NAME             whose it is
        --status active|archived  list only these
        {PAGE}""",
        note=(
            "With a category or paths a session sees these, and nothing else. An archived one\n"
            "takes no question until `thermocline undo ID --kind session`.\n\n"
            "example:\n"
            "  S=$(thermocline sessions start release --category projects/site)\n"
            "  thermocline retrieve 'which server?' --session $S"
        ),
    ),
}  # fmt: skip
