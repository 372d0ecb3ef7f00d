"""`specbook runs`: what has been recorded."""

from rich.table import Table

from analysis.cli import app
from analysis.cli.show import console, harmless
from analysis.records.store import list_runs, run_roots


@app.command()
def runs() -> None:
    """List the runs of this machine and the published ones."""
    table = Table("run", "where", "samples", "machine", "created", "state", box=None)
    local, _ = run_roots()
    for directory in list_runs():
        run = directory.run
        where = "local" if directory.path.is_relative_to(local) else "published"
        state = "finished" if run.ended else "can be resumed"
        table.add_row(
            harmless(run.id), where, str(len(directory.samples())), harmless(run.machine.name), run.created, state
        )
    console.print(table if table.row_count else "No run has been recorded yet: `make book` measures one.")
