"""Write environment.yml from pyproject.toml with pyproject2conda (`make conda`).

Arguments: the file to write (default environment.yml). A test writes it again elsewhere and compares.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(output: str = "environment.yml") -> None:
    """Write the conda environment with the test requirements."""
    command = [
        *(sys.executable, "-m", "pyproject2conda", "yaml", "--pyproject", "pyproject.toml"),
        *("--python-include", "python>=3.11", "--extra", "test", "--name", "specbook"),
        *("--conda-dep", "cmake", "--conda-dep", "cxx-compiler", "--conda-dep", "make", "--conda-dep", "git"),
        *("--overwrite", "force", "--custom-command", "make conda", "--output", output),
    ]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
