"""Run the benchmarks, record their results with the machine, and write the README's table from the records."""

import argparse
import importlib
import json
import sys
from pathlib import Path

from analysis.launch import read_host_state, read_machine
from analysis.measure.life import now
from analysis.measure.provenance import commit
from analysis.records.model import plain

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
QUICK = ("stream", "bootstrap", "pipeline", "ingest")
SLOW = ("clean_clone", "depth_table", "duel", "fuzz_headers", "fuzz_logs")


def run(name: str) -> None:
    """Run one benchmark and record what it returns: rows of quantity, measured, target and note."""
    before = read_host_state(None)
    rows = importlib.import_module(name).measure()
    head, dirty = commit()
    record = {
        "benchmark": name,
        "at": now(),
        "machine": plain(read_machine()),
        "commit": head,
        "dirty": dirty,
        "load_before": before.load1,
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    for row in rows:
        print(f"{name}: {row['quantity']}: {row['measured']} (target {row['target']})")


def table() -> str:
    """Return the README's table, made from the recorded results."""
    lines = ["| what | measured | target | how |", "|--|--|--|--|"]
    machines = []
    for name in (*SLOW, *QUICK):
        file = RESULTS / f"{name}.json"
        if not file.exists():
            continue
        record = json.loads(file.read_text())
        machine = record["machine"]
        machines.append(
            f"{machine['cpu']}, {machine['cores']} cores, {machine['memory'] / 2**30:.0f} GiB, {machine['os']}"
        )
        lines += [
            f"| {r['quantity']} | {_shown(r['measured'])} | {r['target']} | `{name}.py`: {r['note']} |"
            for r in record["rows"]
        ]
    where = "; ".join(dict.fromkeys(machines))
    return f"Measured on: {where}. `make bench` measures yours.\n\n" + "\n".join(lines)


def _shown(measured: str) -> str:
    """Return what a table shows: a record from before benchmarks gave the reason has limits that are no numbers."""
    return measured.replace(" [nan, nan]", ": no interval, the prompts do not differ")


def write_readme() -> None:
    """Replace the README's table between its two marks."""
    file = ROOT / "README.md"
    text = file.read_text()
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    file.write_text(f"{head}{BEGIN}\n{table()}\n{END}{tail}")


def main() -> None:
    """Run the named benchmarks, the quick ones by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*QUICK, *SLOW, []], help="which; default: the quick ones")
    parser.add_argument("--all", action="store_true", help="also those that take many minutes")
    parser.add_argument("--table", action="store_true", help="only write the README's table from what is recorded")
    options = parser.parse_args()
    if options.table:
        write_readme()
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    for name in options.names or (QUICK + SLOW if options.all else QUICK):
        run(name)
    write_readme()


if __name__ == "__main__":
    main()
