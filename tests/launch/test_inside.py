"""Models and contexts in process: what they refuse, and that they are numbers one can trust."""

import numpy as np
import pytest

from analysis.launch.inside import Context, Model
from analysis.records import Problem


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF and nothing else")
    with pytest.raises(Problem, match="the engine cannot load"):
        Model(tmp_path / "m.gguf")
    with pytest.raises(Problem, match="cannot be read"):
        Model(tmp_path / "absent.gguf")


def test_the_same_batches_give_the_same_bits(dsv4_target):
    with Model(dsv4_target) as model, Context(model, size=256) as one, Context(model, size=256) as other:
        rows = one.decode([40, 41, 42])
        assert rows.shape == (3, model.vocabulary)
        assert np.array_equal(rows, other.decode([40, 41, 42]))
        assert one.length == 3
        assert np.array_equal(one.fill([50] * 70), other.fill([50] * 70))
        one.clear()
        assert one.length == 0


def test_a_batch_that_does_not_fit(dsv4_target):
    with Model(dsv4_target) as model, Context(model, size=256) as context:
        with pytest.raises(Problem, match="a batch of 0 rows; expected 1 to 256"):
            context.decode([])
        with pytest.raises(Problem, match="a batch of 300 rows"):
            context.decode([40] * 300)
        context.fill([40] * 250)
        with pytest.raises(Problem, match="10 rows at position 250; expected room for them in a context of 256"):
            context.decode([40] * 10)
        with pytest.raises(Problem, match=r"the engine refuses 1 tokens at 252 \(status -1\)"):
            context.decode([40], 252)
