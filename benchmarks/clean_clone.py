"""`make book` from a clean clone with empty caches: the whole way, and the engine build in it."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from processes import watched

ROOT = Path(__file__).resolve().parent.parent


def measure() -> list[dict[str, str]]:
    """Clone the committed state, run the README's first command, and return what it and its parts took."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SPECBOOK_", "VIRTUAL_ENV"))}
        env |= {"SPECBOOK_CACHE": str(Path(folder) / "cache"), "PIP_NO_CACHE_DIR": "1"}
        outcome = watched(["make", "book"], cwd=clone, env=env)
        engine = engine_seconds((clone / ".venv" / "make_env.log").read_text())
    return [
        {
            "quantity": "`make book` from a clean clone",
            "measured": f"{outcome.seconds / 60:.1f} min",
            "target": "≤ 20 min",
            "note": "no cache of pip's, no model",
        },
        {
            "quantity": "of which the engine build",
            "measured": f"{engine / 60:.1f} min",
            "target": "≤ 8 min",
            "note": "two compilers at a time",
        },
    ]


def engine_seconds(log: str) -> float:
    """Return how long the step that compiles the engine took."""
    found = re.search(r"^the engine.*: ([\d.]+) s$", log, re.MULTILINE)
    if not found:
        raise SystemExit("make_env.log does not say how long the engine took")
    return float(found[1])
