"""Write, train and evaluate on a tiny target with random weights. Needs torch, which the book does not."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

HOW = "needs torch: .venv/bin/pip install torch==2.13.0, then .venv/bin/python -m pytest tests/drafter/test_training.py"
torch = pytest.importorskip("torch", reason=HOW)

from analysis.drafter import export, generate, loss, model, replay, stages, target, train  # noqa: E402 (after the skip)
from analysis.drafter.shapes import Schedule  # noqa: E402


@pytest.fixture
def loaded(tiny_target):
    return target.load_target(tiny_target, "cpu")


@pytest.fixture
def trained(tiny_target, tiny_recipe, tiny_prompts, tmp_path):
    tiny_prompts.save(tmp_path / "prompts.npz")
    stages.write(tiny_target, tiny_recipe, tmp_path, print)
    stages.train(tiny_target, tiny_recipe, tmp_path, print)
    return tmp_path


def test_what_is_written_greedily_is_what_reading_it_says_comes_next(loaded):
    prompts = [(1, 40, 41, 42), (1, 50, 51), (60, 61, 62, 63, 64)]
    ids = generate.Writer(loaded, 3, 24, width=8).write(prompts, [0.0] * 3)

    _, last = target.forward(loaded, ids, (1,))
    said = loaded.logits(last.flatten(0, 1)).argmax(-1).unflatten(0, (3, 24))

    for row, prompt in enumerate(prompts):
        assert ids[row, : len(prompt)].tolist() == list(prompt)
        assert ids[row, len(prompt) :].tolist() == said[row, len(prompt) - 1 : -1].tolist()


def test_queries_and_keys_come_back_in_the_order_the_rotation_expects():
    heads, head_dim = 2, 8
    weight = np.arange(heads * head_dim * 3, dtype=np.float32).reshape(heads * head_dim, 3)
    permuted = weight.reshape(heads, 2, head_dim // 2, 3).swapaxes(1, 2).reshape(weight.shape)
    assert (target.unpermute(permuted, heads) == weight).all()


def test_a_text_is_cut_where_it_begins_to_loop():
    steady = list(range(4, 64))
    looping = [*range(4, 14), *([20, 21, 22] * 20)][:60]
    found = generate.loop_starts(torch.tensor([steady, looping])).tolist()
    assert found[0] == 60
    assert 10 + 30 <= found[1] <= 10 + 36


def test_drafting_from_a_place_sees_nothing_of_the_tokens_after_it(loaded, tiny_recipe):
    shape = tiny_recipe.shape
    weights = model.initial_weights(shape, loaded, 0)
    ids = torch.randint(4, 96, (1, 20))
    changed = ids.clone()
    changed[0, 9:] = 5
    anchors = torch.tensor([[8]])

    def states(text):
        features, _ = target.forward(loaded, text, shape.taps)
        return model.draft_states(weights, shape, loaded, text, features, anchors, shape.block)

    torch.testing.assert_close(states(ids), states(changed))
    changed[0, 7] = 6
    assert not torch.allclose(states(ids), states(changed))


def test_a_place_of_the_block_does_not_depend_on_how_many_follow(loaded, tiny_recipe):
    shape = tiny_recipe.shape
    weights, ids = model.initial_weights(shape, loaded, 0), torch.randint(4, 96, (1, 20))
    features, _ = target.forward(loaded, ids, shape.taps)
    anchors = torch.tensor([[8, 12]])
    short = model.draft_states(weights, shape, loaded, ids, features, anchors, 1)
    whole = model.draft_states(weights, shape, loaded, ids, features, anchors, 3)
    torch.testing.assert_close(short, whole[:, :, :1])


def test_the_gradient_of_the_head_is_that_of_its_loss():
    torch.manual_seed(0)
    schedule = replace(Schedule(), rows=6, floor=0.3)
    parts = {name: torch.randn(12, 8) for name in ("states", "teacher")}
    given = loss.HeadInput(
        **parts,
        markov=torch.randn(12, 4),
        valid=torch.tensor([1.0, 1, 1, 1, 1, 0] * 2),
        embed=torch.randn(20, 8),
        markov_out=torch.randn(20, 4),
        size=3,
    )
    found = loss.head_gradient(given, schedule)

    leaves = [x.clone().requires_grad_() for x in (given.states, given.markov, given.markov_out)]
    drafted = leaves[0] @ given.embed.t() + leaves[1] @ leaves[2].t()
    p = (given.teacher @ given.embed.t() / schedule.sharpness).softmax(-1)
    q = drafted.softmax(-1)
    cost = (1 - schedule.distance) * -(p * drafted.log_softmax(-1)).sum(-1)
    cost = cost + schedule.distance * (q - p).abs().sum(-1)
    (cost * found.weights).sum().backward()

    torch.testing.assert_close(found.loss, (cost * found.weights).sum().detach())
    for leaf, gradient in zip(leaves, (found.states, found.markov, found.markov_out), strict=True):
        torch.testing.assert_close(leaf.grad, gradient, rtol=1e-4, atol=1e-5)


def test_places_weigh_as_much_as_they_change_the_expected_length():
    chance = torch.tensor([0.8, 0.5, 0.25], dtype=torch.float64, requires_grad=True)
    chance.cumprod(0).sum().backward()
    weights = loss.place_weights(chance.detach(), torch.ones(3, dtype=torch.float64), 3, 0.0)
    torch.testing.assert_close(weights, chance.grad)


def test_the_drafter_learns_and_its_result_says_how_it_was_made(trained, tiny_target, tiny_recipe):
    summary = stages.evaluate(tiny_target, tiny_recipe, trained, print)
    result = json.loads((trained / "result.json").read_text())
    assert summary["all"]["texts"] == len(result["replay"]["texts"])
    assert 1 <= summary["all"]["mean_length"] <= 4
    assert result["recipe"]["seed"] == 1


def test_training_goes_on_where_it_stopped_and_ends_the_same(trained, tiny_target, tiny_recipe, tmp_path_factory):
    again = tmp_path_factory.mktemp("again")
    for name in ("short.npz", "long.npz"):
        (again / name).write_bytes((trained / name).read_bytes())
    loaded = target.load_target(tiny_target, "cpu")
    texts = [generate.Texts.load(again / f"{name}.npz") for name in ("short", "long")]
    feed = train.Feed(*texts, tiny_recipe, "cpu")
    stopping = _StopsAt(feed, step=6)
    with pytest.raises(KeyboardInterrupt):
        train.train(loaded, stopping, tiny_recipe, again, print)
    weights, _ = train.train(loaded, feed, tiny_recipe, again, print)

    whole, _ = export.load_checkpoint(trained / "hf")
    resumed = export.snapped({name: value.numpy() for name, value in weights.items()})
    assert all((resumed[name] == whole[name]).all() for name in whole)


def test_training_may_begin_with_another_drafter_of_the_same_shape(trained, tiny_target, tiny_recipe, tmp_path_factory):
    more = tmp_path_factory.mktemp("more")
    for name in ("short.npz", "long.npz"):
        (more / name).write_bytes((trained / name).read_bytes())
    still = replace(tiny_recipe, schedule=replace(tiny_recipe.schedule, rate=0.0))
    stages.train(tiny_target, still, more, print, start=trained / "hf")
    (kept, _), (first, _) = (export.load_checkpoint(folder / "hf") for folder in (more, trained))
    assert all((kept[name] == first[name]).all() for name in first)
    digest = hashlib.sha256((trained / "hf" / export.WEIGHTS).read_bytes()).hexdigest()
    assert json.loads((more / "result.json").read_text())["started_from"] == digest


class _StopsAt:
    def __init__(self, feed, step):
        self.feed, self.step = feed, step

    def batch(self, step):
        if step == self.step:
            raise KeyboardInterrupt
        return self.feed.batch(step)


def test_loss_falls_when_one_batch_is_seen_again_and_again(loaded, trained, tiny_recipe):
    texts = [generate.Texts.load(trained / f"{name}.npz") for name in ("short", "long")]
    batch = train.Feed(*texts, tiny_recipe, "cpu").batch(0)
    weights = {n: w.requires_grad_() for n, w in model.initial_weights(tiny_recipe.shape, loaded, 0).items()}
    optimiser = torch.optim.Adam(weights.values(), lr=3e-3)
    losses = []
    for _ in range(15):
        losses.append(float(train.train_step(weights, loaded, batch, tiny_recipe)["loss"]))
        optimiser.step()
        optimiser.zero_grad()
    assert losses[-1] < 0.8 * losses[0]


def test_walking_a_text_visits_the_places_a_server_would():
    runs = np.array([9, 9, 2, 9, 9, 0, 1, 9, 5])
    assert replay.walk(runs, start=2, end=9) == (2, 0, 1)
    lengths = [replay.Replay("code", 7, (2, 0, 1))]
    assert replay.mean_length(lengths) == 2.0
    assert replay.survival(lengths, 2) == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
