"""The quality gate of a changed file: its perplexity beside that of its reference, by `llama-perplexity`."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.launch.engine import FoundEngine, engine_environment, tool
from analysis.records import Problem

Z = 1.96  # 95 %, for means over thousands of tokens
TOLERANCE = 0.01
ATTEMPTS = 12
_ESTIMATE = r"Final estimate: PPL = (\S+) \+/-"
STORED = 0.01  # what storing logits in 16 bits may change of a perplexity
_LINES = {
    "changed": r"Mean PPL\(Q\) +: +(\S+) ± +(\S+)",
    "reference": r"Mean PPL\(base\) +: +(\S+) ± +(\S+)",
    "ratio": r"Mean PPL\(Q\)/PPL\(base\) +: +(\S+) ± +(\S+)",
    "divergence": r"Mean +KLD: +(\S+) ± +(\S+)",
    "same_top": r"Same top p: +(\S+) ± +(\S+) %",
}


@dataclass(frozen=True)
class Quality:
    """A changed file beside its reference over the same text, as the tool says it: value and standard error.

    `ratio` is paired token by token, so that it is known far better than either perplexity. `divergence` is the mean
    Kullback-Leibler divergence in nats, `same_top` the share (%) of tokens with the same favourite.
    """

    changed: tuple[float, float]
    reference: tuple[float, float]
    ratio: tuple[float, float]
    divergence: tuple[float, float]
    same_top: tuple[float, float]

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the ratio of perplexities."""
        value, error = self.ratio
        return value - Z * error, value + Z * error

    def verdict(self, tolerance: float = TOLERANCE) -> Literal["keeps", "loses", "undecided"]:
        """Return whether the changed file keeps the reference's perplexity up to a tolerance."""
        low, high = self.interval
        if high <= 1 + tolerance:
            return "keeps"
        return "loses" if low > 1 + tolerance else "undecided"

    def require(self, tolerance: float = TOLERANCE) -> None:
        """Refuse a changed file that is not shown to keep its quality.

        Raises:
            Problem: the upper end of the ratio's interval exceeds the tolerance.
        """
        if self.verdict(tolerance) != "keeps":
            low, high = self.interval
            raise Problem(
                f"perplexity is {self.ratio[0]:.4f} times the reference's [{low:.4f}, {high:.4f}]",
                expected=f"at most {1 + tolerance:.4f} at 95 %",
                remedy="choose a finer quantization, or a longer text if the interval is wide",
            )


def compare_perplexity(
    found: FoundEngine, reference: Path, changed: Path, text: str, *, context: int = 128, chunks: int = 8
) -> Quality:
    """Return the quality of a changed file over a text, with the engine's own tool.

    Args:
        found: a local build with its tools.
        reference: the file to compare with.
        changed: the file that was changed.
        text: what to predict; at least two contexts of tokens.
        context: tokens a chunk.
        chunks: how many chunks at most.

    Raises:
        Problem: the tool is missing or fails, the text is too short, or its tokens are too improbable to compare.
    """
    program = tool(found, "llama-perplexity")
    with tempfile.TemporaryDirectory(prefix="specbook-") as scratch:
        source, logits = Path(scratch) / "text", Path(scratch) / "logits"
        source.write_text(text, encoding="utf-8")
        common = ["--ctx-size", str(context), "--batch-size", str(context), "--chunks", str(chunks)]
        common += ["--kl-divergence-base", str(logits), "--flash-attn", "off", "--threads", "2"]
        alone = _run([str(program), "--model", str(reference), "--file", str(source), *common], _ESTIMATE)
        said = _run([str(program), "--model", str(changed), "--kl-divergence", *common], list(_LINES.values())[-1])
    quality = read_quality(said)
    _check_reference(alone, quality)
    return quality


def _check_reference(said: str, quality: Quality) -> None:
    """Refuse a comparison whose file of logits gives the reference another perplexity than it had when it was written.

    The file holds 16 bits a logit and cuts off what is less probable than e^-16.

    Raises:
        Problem: the two differ, or one was not said.
    """
    found = re.search(_ESTIMATE, said)
    if found is None:
        raise Problem("llama-perplexity did not say the reference's perplexity", expected="the bundled build's tool")
    if abs(quality.reference[0] / float(found[1]) - 1) > STORED:
        raise Problem(
            f"the reference's perplexity is {found[1]}, and {quality.reference[0]:g} by the file of its logits",
            expected="the same",
            remedy="take a text that the model finds less improbable",
        )


def read_quality(said: str) -> Quality:
    """Return what the tool said of a comparison.

    Raises:
        Problem: a line is missing, or holds no number.
    """
    values = {}
    for name, pattern in _LINES.items():
        match = re.search(pattern, said)
        if match is None:
            raise Problem(f"llama-perplexity did not say {name}", expected="the tool of the bundled build")
        values[name] = (float(match[1]), float(match[2]))
    return Quality(**values)


def _run(command: list[str], awaited: str) -> str:
    """Return what the tool printed, run again while the line that it ends with is missing.

    The tool prints from a thread of its own, and its exit may cut off the last lines: on a small model more than one
    run in three said nothing. It computes the same every time.
    """
    for _ in range(ATTEMPTS):
        said = _run_once(command)
        if re.search(awaited, said):
            break
    return said


def _run_once(command: list[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=engine_environment(),
        text=True,
        errors="replace",
        check=False,
    )
    short = re.search(r"you need at least (\d+) tokens", done.stdout)
    if short:
        raise Problem("the text is too short for a perplexity", expected=f"at least {short[1]} tokens")
    if done.returncode:
        last = [line for line in done.stdout.splitlines() if line.strip()][-1:] or ["no message"]
        raise Problem(
            f"llama-perplexity failed: {last[0]}",
            expected="a model that this build serves",
            remedy="`specbook check FILE` says what the file is",
        )
    return done.stdout
