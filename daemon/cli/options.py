"""Options that several verbs share; and what a database named for one call needs."""

from __future__ import annotations

from ..client.errors import ClientError
from .terminal import visible
from .usage import PATIENT_SECONDS, USUAL_SECONDS
from .values import WrongUsage, say, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from ..client.caller import Caller
    from .usage import Args

# What is known about a memory beside its text; `urls`, `commands` and `paths` are its metadata.
FIELDS: Final = """
--category PATH                         category, such as projects/x
--importance 0-1                        how much it matters
--[no-]pin = pinned                     keep it hot whatever its score
--[no-]standing                         show it before every turn; by default as its text reads
--type semantic|episodic|procedural     kind of memory
--event NAME                            what caused it, such as correction
--subject TEXT                          what it is about
--outcome TEXT                          how it ended
--tag TAG... = tags                     a tag; may be repeated
--source TEXT                           where it comes from
--actor TEXT                            who said it
--group TEXT                            its conversation
--position N                            its place there, as a turn
--url URL... = urls                     may be repeated
--cmd, --command COMMAND... = commands  may be repeated
--path PATH... = paths                  may be repeated
--expires WHEN                          7d, an ISO 8601 time, or never
--data JSON                             any other data; - reads standard input
"""

# Conditions of `list` and `retrieve`.
FILTERS: Final = """
--type semantic|episodic|procedural...  one of these types; may be repeated
--event NAME...             one of these events; may be repeated
--tag TAG...                all of these tags; may be repeated
--category PATH             this category and those below it
--tier hot|warm|cold|frozen  its temperature, which its score decides
--standing                  what is shown before every turn
--source TEXT               where it comes from
--actor TEXT                who said it
--group TEXT                its conversation
--since TIME                stored since 7d, yesterday, or a date and time
--until TIME                stored at or before this time
--min-importance 0-1        at least this important
--include merged|expired...  include memories that are otherwise left out; may be repeated
"""
PAGE: Final = """
--limit N                   maximum number of results
--offset N                  number of results to skip
"""
DATABASE: Final = """
a database for this call:
--db-url URL                libsql:// or https://; default: as configured
--token-file FILE           file that holds only its token; - reads stdin
--auth-token TOKEN          the token itself, visible to other users
"""


def fields_of(args: Args) -> dict[str, Any]:
    """The fields of a memory that were given, as the API takes them."""
    names = (
        *("category", "importance", "pinned", "standing", "type", "event", "subject", "outcome"),
        *("tags", "source", "actor", "group", "position", "expires", "data"),
    )
    fields = args.present(*names)
    if metadata := args.present(*("urls", "commands", "paths")):
        fields["metadata"] = metadata
    if fields.get("expires") == "never":
        fields["expires"] = None
    return fields


def database_of(args: Args) -> dict[str, str]:
    """The database of the options, as the API takes it; an empty value counts as left out."""
    values = {"url": args.db_url, "token": token_of(args)}
    database = {name: value for name, value in values.items() if value}
    if "token" in database and "url" not in database:
        raise WrongUsage("db-url and auth-token required: a token was given without --db-url")
    return database


def token_of(args: Args) -> str | None:
    """The token of the options; an empty value counts as left out."""
    if args.auth_token and args.token_file:
        raise WrongUsage("give the token once: with --token-file, or with --auth-token")
    if args.token_file:
        return token_in(args.token_file)
    if args.auth_token:
        say("every user of this machine can see --auth-token; --token-file FILE hides the token")
    return args.auth_token or None


def token_in(file: str) -> str:
    """The token that is all of a file; `WrongUsage` if it holds something else."""
    token = text_in(file).strip()
    if len(token.split()) != 1:
        raise WrongUsage(f"cannot use {file}: expected a token and nothing else")
    return token


def patience(database: dict[str, str]) -> float:
    """The seconds to wait for the daemon: longer where it calls a database first."""
    return PATIENT_SECONDS if database else USUAL_SECONDS


def synced(
    client: Caller,
    database: dict[str, str],
    *,
    critical: bool = False,
    memories: Sequence[str] = (),
) -> bool:
    """Send the changes to the named database now; whether that was done.

    The agent's replica gets all of them. Another database gets the `memories`, or the hot state and
    the tree if they are `critical`; else it is left alone, with a warning. The answer that the
    client got before stays its last one.
    """
    if not database:
        return False
    answer = client.answer
    try:
        status = client.call("GET /api/sync")
        replica = status["url"]
        body: dict[str, Any] = {"critical": critical}
        if not replica or _plain(replica) != _plain(database["url"]):
            if not (memories or critical):
                say(
                    "--db-url names another database than the agent's replica, and is left alone"
                    f" here: change {visible(status['configured_by'])} to replicate there"
                )
                return False
            body |= {"memories": [*memories], **database}
        return bool(client.call("POST /api/sync", **body)["synced"])
    except ClientError as error:
        say(visible(f"done here, but not in the database: {error}"))
        return False
    finally:
        client.answer = answer


def _plain(url: str) -> str:
    """A URL in a form that is equal for all spellings of one database."""
    return url.strip().rstrip("/").replace("libsql://", "https://", 1).lower()
