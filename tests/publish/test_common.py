"""What the measured chapters say of every frame of estimates."""

from pathlib import Path

import pandas as pd
import pytest

from analysis.measure.study import open_study
from analysis.publish.chapters.common import made_how, provenance
from analysis.records.store import RunDir
from factories import make_host, make_life, make_run, make_sample

FEW = "n below 8 is few"


@pytest.mark.parametrize(("n", "said"), [([8, 20], False), ([8, 7], True)])
def test_a_caption_says_when_intervals_stand_on_few_prompts(n: list[int], said: bool) -> None:
    frame = pd.DataFrame({"low": 0.4, "high": 0.6, "n": n, "method": "jackknife t (logit)"})
    assert (FEW in made_how(frame)) == said


def test_a_caption_without_intervals_says_why() -> None:
    frame = pd.DataFrame({"low": float("nan"), "high": float("nan"), "n": [1, 2], "method": ""})
    assert made_how(frame) == "95 %, too few prompts for an interval, over prompts"


def test_a_method_is_named_once_whatever_it_was_taken_for() -> None:
    methods = ["jackknife t (logit)", "exact", "exact, prompts all alike", ""]
    frame = pd.DataFrame({"low": 0.4, "high": 0.6, "n": 20, "method": methods})
    assert made_how(frame) == "95 %, jackknife t (logit), exact, over prompts"


def boxed(path: Path, load: float) -> str:
    directory = RunDir.create(path, make_run(host_before=make_host(load1=load)))
    with directory.writing() as writer:
        writer.append(make_sample())
        writer.append_life(make_life())
    return provenance(open_study(str(path)), "05_economics").text


def test_the_box_of_a_busy_machine_says_so(tmp_path: Path) -> None:
    text = boxed(tmp_path / "busy", 7.5)
    assert ": host-quiet: a load of 7.5 on 2 cores before the run; expected a load per core below 0.5" in text
    assert "enough-prompts" not in text  # that is about one cell, and stands there


def test_the_box_of_a_quiet_machine_says_so(tmp_path: Path) -> None:
    assert "gates warned\n: of nothing that concerns the whole run" in boxed(tmp_path / "quiet", 0.1)
