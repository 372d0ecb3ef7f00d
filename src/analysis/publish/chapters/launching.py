"""Chapter 02: the machine, how the server is started, and one request step by step."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import altair as alt
import pandas as pd

from analysis.launch import Completion
from analysis.launch.doctor import Report
from analysis.measure.access import ServerAccess
from analysis.measure.first import FirstRequest, first_request
from analysis.publish.chart import Chart
from analysis.publish.style import HEIGHT, colour
from analysis.publish.tables import Html, Markdown, emitted, escape_text, table
from analysis.records.places import redact

MIB = 2**20
KINDS = ["without a draft", "drafted"]
# Chosen anew for every server: two pages would differ in them where nothing that was measured does.
ANEW = {"--port": "$PORT", "--api-key-file": "$KEY_FILE"}


@dataclass(frozen=True)
class LaunchPage:
    """The tables and the chart of the chapter."""

    report: Report
    request: FirstRequest

    @property
    def completion(self) -> Completion:
        """Return what the request gave."""
        return self.request.completion

    def doctor_table(self) -> Markdown:
        """Return what was found of engine and machine, worst first."""
        order = ["bad", "warning", "note", "ok"]
        found = sorted(self.report.findings, key=lambda finding: order.index(finding.level))
        frame = pd.DataFrame(
            {"level": f.level, "topic": f.topic, "seen": redact(f.seen), "matters": f.matters, "remedy": f.remedy}
            for f in found
        )
        headings = {
            "level": "level",
            "topic": "what",
            "seen": "seen",
            "matters": "why it matters",
            "remedy": "what to do",
        }
        return table(frame, "What the doctor found", "doctor", columns=headings)

    def command(self) -> Html | Markdown:
        """Return the server's command line."""
        if not self.request.argv:
            return Markdown("The server was started by somebody else; how is for them to say.")
        return emitted(shown_command(self.request.argv), label="the server's command line")

    def server_table(self) -> Markdown:
        """Return what the running server says of itself."""
        engine = self.report.engine
        memory = self.request.memory
        rows = [
            ("version", f"{engine.version}, commit {engine.commit or 'unknown'}" if engine else "unknown"),
            ("backend", engine.backend if engine else "unknown"),
            ("context of a slot", f"{self.request.context} tokens" if self.request.context else "not said"),
            ("memory after loading", f"{memory.loaded / MIB:.0f} MiB" if memory.loaded else "not known"),
            ("speculation", self.request.spec_type),
        ]
        return table(pd.DataFrame(rows, columns=["", "value"]), "The server, once it answered", "server")

    def emitted(self) -> Html:
        """Return the text that the request emitted."""
        return emitted(self.completion.text)

    def steps_chart(self) -> Chart:
        """Return the duration of every target evaluation, in order."""
        frame = self._steps()
        drawing = (
            alt.Chart(frame)
            .mark_bar()
            .encode(
                x=alt.X("step:O", title="target evaluation"),
                y=alt.Y("milliseconds:Q", title="ms"),
                color=colour("kind", KINDS),
                tooltip=["step", "drafted", "accepted", alt.Tooltip("milliseconds:Q", format=".2f")],
            )
            .properties(height=HEIGHT)
        )
        median = frame["milliseconds"].median()
        words = f"Duration of {len(frame)} target evaluations of one request; the median is {median:.1f} ms."
        return Chart(
            drawing,
            title="One request, evaluation by evaluation",
            alt=words,
            name="steps",
            note=f"Measured on {self.report.machine.cpu}; step costs do not carry over to other machines.",
        )

    def steps_table(self) -> Markdown:
        """Return every target evaluation, in order."""
        headings = {
            "step": "evaluation",
            "drafted": "drafted",
            "accepted": "accepted",
            "emitted": "emitted",
            "milliseconds": "ms",
        }
        return table(self._steps(), "Target evaluations of the request", "steps", columns=headings, digits=2)

    def sentence(self) -> Markdown:
        """Return what the request shows, in words."""
        done = self.completion
        evaluations = len(done.drafted)
        drafts = sum(drafted > 0 for drafted in done.drafted)
        accounts = "1 + " + " + ".join((f"{sum(done.accepted)} accepted", f"{evaluations} evaluations"))
        return Markdown(
            escape_text(
                f"{len(done.tokens)} tokens were emitted: {accounts}. {drafts} of these had a draft to verify. "
                f"The context of {done.cache_n + done.prompt_n} tokens was filled in {done.prompt_ms:.0f} ms, and the "
                f"first token arrived {done.ttft_ms:.0f} ms after the request was sent."
            )
        )

    def _steps(self) -> pd.DataFrame:
        done = self.completion
        frame = pd.DataFrame({"drafted": done.drafted, "accepted": done.accepted, "milliseconds": done.step_ms})
        frame["emitted"] = frame["accepted"] + 1
        frame["kind"] = frame["drafted"].gt(0).map({True: KINDS[1], False: KINDS[0]})
        return frame.assign(step=range(1, len(frame) + 1))


def shown_command(argv: Sequence[str]) -> str:
    """Return a server's command line, one option a line, without what is chosen anew for every server."""
    lines = [redact(argv[0]).rsplit("/", 1)[-1]]
    for before, word in pairwise(argv):
        shown = ANEW.get(before) or redact(word)
        if word.startswith("-") and not word.lstrip("-").isdigit():
            lines.append(shlex.quote(shown))
        else:
            lines[-1] += f" {shown if shown.startswith('$') else shlex.quote(shown)}"
    return " \\\n    ".join(lines)


def launch(
    pair: str,
    *,
    profile: str = "quick",
    serving: str = "",
    corpus: str = "",
    server_url: str = "",
    api_key_file: str = "",
    n_predict: int = 48,
) -> LaunchPage:
    """Examine engine and machine, start the pair's server, and make one request; the parameters are the notebook's.

    Raises:
        Problem: see `first_request`.
    """
    request = first_request(
        pair,
        profile=profile,
        serving=serving,
        corpus=corpus,
        server=ServerAccess(server_url, api_key_file),
        n_predict=n_predict,
    )
    return LaunchPage(request.report, request)
