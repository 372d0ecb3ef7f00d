"""Run the benchmarks, record their results with the machine, and write the README's table from the records."""

import argparse
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from analysis.launch import read_host_state, read_machine, resolve_engine
from analysis.measure.life import now
from analysis.measure.provenance import commit
from analysis.records.model import plain

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
QUICK = ("stream", "bootstrap", "pipeline", "ingest")
SLOW = ("clean_clone", "depth_table", "duel", "fuzz_headers", "fuzz_logs")


def run(name: str, code: tuple[str, bool]) -> None:
    """Run one benchmark and record what it returns: rows of quantity, measured, target and note.

    Args:
        name: a benchmark's file, without its ending.
        code: commit and dirtiness of the checkout before the first benchmark, whose record is a change of its own.
    """
    before, devices = read_host_state(None), list(resolve_engine().engine.devices)  # a fault here costs no measurement
    rows = importlib.import_module(name).measure()
    record = {
        "benchmark": name,
        "at": now(),
        "machine": plain(read_machine()),
        "devices": devices,
        "commit": code[0],
        "dirty": code[1],
        "load_before": before.load1,
        "rows": rows,
    }
    folder = RESULTS / record["machine"]["name"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    for row in rows:
        print(f"{name}: {row['quantity']}: {row['measured']} (target {row['target']})")


def recorded() -> dict[str, dict[str, Any]]:
    """Return what was recorded, by machine and benchmark: the machine with the most of it first, of two the later."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(RESULTS.glob("*/*.json")):
        record = json.loads(file.read_text())
        if "benchmark" in record:
            found.setdefault(file.parent.name, {})[record["benchmark"]] = record
    order = sorted(found, key=lambda name: max(record["at"] for record in found[name].values()), reverse=True)
    return {name: found[name] for name in sorted(order, key=lambda name: -len(found[name]))}


def table() -> str:
    """Return the README's table, made from the recorded results: a row a quantity, a column a machine."""
    by_machine = recorded()
    names = [_described(next(iter(records.values()))) for records in by_machine.values()]
    head = ["what", *(f"measured ({name})" for name, _ in names), "target", "how"]
    lines = [f"| {' | '.join(head)} |", f"|{'--|' * len(head)}"]
    for benchmark in (*SLOW, *QUICK):
        rows: dict[str, dict[str, str]] = {}
        cells: dict[str, dict[str, str]] = {}
        for machine, records in by_machine.items():
            for row in records.get(benchmark, {"rows": []})["rows"]:
                rows.setdefault(row["quantity"], row)
                cells.setdefault(row["quantity"], {})[machine] = _shown(row["measured"])
        for quantity, row in rows.items():
            measured = [cells[quantity].get(machine, "") for machine in by_machine]
            lines.append(f"| {' | '.join([quantity, *measured, row['target']])} | `{benchmark}.py`: {row['note']} |")
    where = "; ".join(whole for _, whole in names)
    return f"Measured on: {where}. `make bench` measures yours.\n\n" + "\n".join(lines)


def _described(record: dict[str, Any]) -> tuple[str, str]:
    """Return a record's machine in few words for the head of a column, and in more."""
    machine = record["machine"]
    cpu = re.sub(r"\((?:R|TM)\)| CPU| Processor", "", machine["cpu"])
    devices = ", ".join(device.rpartition(": ")[2] for device in record.get("devices", []))
    whole = f"{cpu}, {machine['cores']} cores, {machine['memory'] / 2**30:.0f} GiB, {machine['os']}"
    return devices or f"{cpu}, {machine['cores']} cores", f"{devices} beside {whole}" if devices else whole


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
    code = commit()
    for name in options.names or (QUICK + SLOW if options.all else QUICK):
        run(name, code)
    write_readme()


if __name__ == "__main__":
    main()
