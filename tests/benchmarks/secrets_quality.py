"""How many secrets of talks are removed, and how much that is none.

    python tests/benchmarks/secrets_quality.py [FILE…]

`fit_secrets.py` fits the weights on `turns`, `homes`, `work` and `identifiers` of `data/secrets`.
`unseen` and `unseen_hard` were written by people who did not know the program; the latter were
asked to make it as hard as they could: a harmless number stands where a secret could, a secret is
named by nothing.
"""

import json
import sys
from pathlib import Path

from report import table

from thermocline.daemon.language.secrets import clear_turns

_FOLDER = Path(__file__).with_name("data") / "secrets"


def main() -> None:
    """Clear the talks of each file, and print what is left of them."""
    files = [Path(name) for name in sys.argv[1:]] or sorted(_FOLDER.glob("*.json"))
    table("talks", {path.stem: _figures(path) for path in files})


def _figures(path: Path) -> dict[str, str]:
    known = json.loads(path.read_text(encoding="utf-8"))
    secrets = removed = damaged = 0
    for entry in known["secret"]:
        cleared = _cleared(entry)
        secrets += len(entry["secrets"])
        removed += sum(secret not in cleared for secret in entry["secrets"])
    for entry in known["harmless"]:
        cleared = _cleared(entry)
        damaged += any(text not in cleared for text in entry["kept"]) or " removed]" in cleared
    return {
        "secrets removed": f"{removed} of {secrets}",
        "harmless talks damaged": f"{damaged} of {len(known['harmless'])}",
    }


def _cleared(entry: dict[str, list[list[str]]]) -> str:
    return "\n".join(clear_turns(text for _, text in entry["turns"]))


if __name__ == "__main__":
    main()
