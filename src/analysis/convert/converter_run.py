"""Runs in the converter's environment, not in the book's: the standard library alone.

Starts llama.cpp's `convert_hf_to_gguf.py` unchanged, with one thing replaced: the file in which finished tensors wait.
The converter keeps its first 256 MiB in memory; here all of it is on the disk.

    python converter_run.py SCRIPT ARGUMENT...
"""

import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any


def on_disk(**settings: Any) -> Any:
    """Return a temporary file that is on the disk from its first byte; its caller closes it."""
    return tempfile.TemporaryFile(mode=settings.get("mode", "w+b"))


def main() -> None:
    """Run the script with its arguments as `python SCRIPT ARGUMENT...` would."""
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).resolve().parent)
    vars(tempfile)["SpooledTemporaryFile"] = on_disk
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
