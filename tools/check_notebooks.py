"""Check that notebooks carry no outputs, have a parameters cell that explains itself, and stay thin."""

import ast
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
LONGEST_CELL = 25


def complaints(path: Path) -> list[str]:
    """Return what is wrong with a notebook, a line each."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    found = [
        f"{path.name}: code cell {number} {text}"
        for number, cell in enumerate(cells, 1)
        for text in _cell_complaints(cell)
    ]
    parameters = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    if len(parameters) != 1:
        return [*found, f"{path.name}: {len(parameters)} cells tagged parameters, expected one"]
    return found + [f"{path.name}: {text}" for text in _parameter_complaints(parameters[0].source)]


def _cell_complaints(cell: nbformat.NotebookNode) -> list[str]:
    found = []
    if cell.outputs or cell.execution_count:
        found.append("has outputs; run nbstripout")
    if len(cell.source.splitlines()) > LONGEST_CELL:
        found.append(f"is longer than {LONGEST_CELL} lines; move logic into src/analysis")
    if any(
        isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While)
        for node in ast.walk(ast.parse(cell.source))
    ):
        found.append("holds logic (def, class or loop); move it into src/analysis")
    return found


def _parameter_complaints(source: str) -> list[str]:
    lines = source.splitlines()
    return [
        f"parameter {ast.unparse(node)} needs a type and a comment on its line"
        for node in ast.parse(source).body
        if not isinstance(node, ast.AnnAssign) or "#" not in lines[node.end_lineno - 1]
    ]


def main() -> int:
    """Check every notebook; return 1 if there is something to mend."""
    found = [text for path in sorted((ROOT / "notebooks").glob("*.ipynb")) for text in complaints(path)]
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
