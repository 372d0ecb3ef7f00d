"""An executed notebook as it is kept: two runs of it differ only where what they measured differs.

Gone are times, widget state, progress bars, memory addresses and the places of this machine. Execution counts stay:
in a fresh kernel they are the same on every run, and they are the sign that a cell was executed.
"""

import copy
import re
import tempfile
from pathlib import Path
from typing import Any

from analysis.records.places import cache_dir, redact, repo_dir

INJECTED = "injected-parameters"
WIDGET = "application/vnd.jupyter.widget-view+json"

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
_PROGRESS = re.compile(r"\d+%\|.*\||\d+(?:it|cell) \[\d|TqdmWarning|^\s*from \.autonotebook import tqdm")


def normalized(notebook: Any) -> Any:
    """Return a copy of an executed notebook (an nbformat node) in the form in which it is kept."""
    kept = copy.deepcopy(notebook)
    kept.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
    }
    for number, cell in enumerate(kept.cells):
        cell["id"] = f"cell-{number:02d}"
        tags = list(cell.metadata.get("tags", []))
        if INJECTED in tags:
            tags += ["hide-input"] * ("hide-input" not in tags)
            cell["source"] = redact(cell["source"])
        cell["metadata"] = {"tags": tags} if tags else {}
        if cell["cell_type"] == "code":
            cell["outputs"] = [output for raw in cell["outputs"] if (output := _output(raw)) is not None]
    return kept


def without_places(text: str) -> str:
    """Return text in which the folders of this machine carry the names that records give them."""
    for name, folder in _places():
        text = text.replace(folder, name)
    return text


def _places() -> list[tuple[str, str]]:
    roots = (
        ("$REPO", repo_dir()),
        ("$CACHE", cache_dir()),
        ("$HOME", Path.home()),
        ("$TMP", Path(tempfile.gettempdir())),
    )
    spellings = {(name, str(path)) for name, root in roots for path in (root, root.resolve()) if len(path.parts) > 1}
    return sorted(spellings, key=lambda place: (-len(place[1]), place[0]))


def _output(output: Any) -> Any:
    kind = output["output_type"]
    if kind == "stream":
        return _stream(output)
    if kind not in ("display_data", "execute_result"):
        return output
    if WIDGET in output["data"]:
        return None
    scrap = output["metadata"].get("scrapbook")
    output["metadata"] = {"scrapbook": scrap} if scrap else {}
    output["data"] = _data(output["data"])
    return output


def _stream(output: Any) -> Any:
    text = output["text"]
    if output["name"] == "stderr":
        lines = [line for line in re.split(r"[\r\n]+", text) if line.strip() and not _PROGRESS.search(line)]
        text = "".join(f"{line}\n" for line in lines)
    output["text"] = without_places(_ADDRESS.sub(" at 0x…", text))
    return output if text else None


def _data(data: Any) -> Any:
    rich = "text/html" in data or "text/markdown" in data
    kept = {}
    for kind, value in data.items():
        if not isinstance(value, str):
            kept[kind] = value
            continue
        if kind == "text/plain" and rich and (_ADDRESS.search(value) or value == data.get("text/markdown")):
            continue
        clean = without_places(_ADDRESS.sub(" at 0x…", value) if kind == "text/plain" else value)
        # A bare dollar would begin mathematics.
        kept[kind] = (
            re.sub(r"(?<!\\)\$(?=(?:REPO|CACHE|HOME|TMP)\b)", r"\\$", clean) if kind == "text/markdown" else clean
        )
    return kept
