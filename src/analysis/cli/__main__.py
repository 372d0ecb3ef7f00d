"""`python -m analysis.cli` is `specbook`."""

from analysis.cli import main

main()
