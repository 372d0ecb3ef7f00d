"""`specbook runs`: what has been recorded."""

from analysis.cli import app
from analysis.cli.show import console, harmless, table_with_whole
from analysis.records.store import list_runs, run_roots


@app.command()
def runs() -> None:
    """List the runs of this machine and the published ones."""
    found = list_runs()
    ids = [harmless(directory.run.id) for directory in found]
    table = table_with_whole("run", ids, (), ("where", "samples", "machine", "created"))
    local, _ = run_roots()
    for name, directory in zip(ids, found, strict=True):
        run = directory.run
        where = "local" if directory.path.is_relative_to(local) else "published"
        state = where if run.ended else f"{where}, can be resumed"
        created = run.created[: len("2026-01-01T00:00")].replace("T", " ")
        machine = harmless(run.machine.name)
        table.add_row(name, state, str(len(directory.samples())), machine, harmless(created))
    console.print(table if found else "No run has been recorded yet: `make book` measures one.", crop=False)
