"""What the measured chapters say of every frame of estimates."""

import pandas as pd
import pytest

from analysis.publish.chapters.common import made_how

FEW = "n below 8 is few"


@pytest.mark.parametrize(("n", "said"), [([8, 20], False), ([8, 7], True)])
def test_a_caption_says_when_intervals_stand_on_few_prompts(n: list[int], said: bool) -> None:
    frame = pd.DataFrame({"low": 0.4, "high": 0.6, "n": n, "method": "jackknife t (logit)"})
    assert (FEW in made_how(frame)) == said


def test_a_caption_without_intervals_says_why() -> None:
    frame = pd.DataFrame({"low": float("nan"), "high": float("nan"), "n": [1, 2], "method": ""})
    assert made_how(frame) == "95 %, too few prompts for an interval, over prompts"
