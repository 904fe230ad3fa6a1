"""`thermocline daemon`: the one verb that is the daemon instead of asking it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    parser.add_argument("--state-dir", metavar="DIR", help="where the memories are kept")
    parser.add_argument("--config", metavar="FILE", help="a configuration over all others")
    parser.add_argument(
        "--set",
        dest="sets",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set one key, such as warm.max_kb=100; may be repeated",
    )
    parser.add_argument("--welcome", action="store_true", help="show what to try first")


def run(args: argparse.Namespace) -> int:
    """Run until a signal ends it."""
    from ..app import main  # noqa: PLC0415 - the other verbs must not load the daemon

    return main(
        state_dir=args.state_dir,
        socket=args.socket,
        config=args.config,
        sets=args.sets,
        welcome=args.welcome,
    )
