"""`specbook runs`: what has been recorded."""

from analysis.cli import app
from analysis.cli.show import console, harmless, table_with_whole
from analysis.records.store import list_runs, run_roots


@app.command()
def runs() -> None:
    """List the runs of this machine and then the published ones, the newest first."""
    local, _ = run_roots()
    found = sorted(list_runs(), key=lambda one: (one.path.is_relative_to(local), one.run.created), reverse=True)
    ids = [harmless(directory.run.id) for directory in found]
    table = table_with_whole("run", ids, (), ("began (UTC)", "samples", "where", "machine"), whole_too="began (UTC)")
    for name, directory in zip(ids, found, strict=True):
        run = directory.run
        where = "local" if directory.path.is_relative_to(local) else "published"
        state = where if run.ended else f"{where}, can be resumed"
        began = harmless(run.created[: len("2026-01-01T00:00")].replace("T", " "))
        table.add_row(name, began, str(len(directory.samples())), state, harmless(run.machine.name))
    console.print(table if found else "No run has been recorded yet: `make book` measures one.", crop=False)
