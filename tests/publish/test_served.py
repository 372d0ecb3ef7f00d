"""What a card and a page say of servers that somebody else runs: what they told, and what nobody knows."""

from dataclasses import replace

import pytest

from analysis.measure.estimate import ratio_frame
from analysis.measure.study import open_study
from analysis.publish.card import CardOptions, card_text
from analysis.publish.card_audit import check_numbers, exact_card
from analysis.publish.chapters.common import provenance
from analysis.publish.chapters.economics import EconomicsPage
from analysis.publish.served import extended_sentence, started_sentence
from analysis.records import Engine
from analysis.records.store import RunDir
from factories import make_cell, make_life, make_run, make_sample

SERVED = Engine(source="url", version="b10300", build=10300, commit="0c1e570", backend="unknown", path="$URL")
RAW = make_cell(spec_type="none", n_max=0, pair="target-served")
DRAFTED = make_cell(spec_type="draft-dspark", n_max=5, pair="target-served")
UNTOLD = ("kv k", "kv v", "flash attn", "batch", "ubatch", "threads", "target sha256")


@pytest.fixture
def served(tmp_path):
    """A function that records a run of two servers that somebody else runs, with lives as given, and opens it."""

    def record(*lives, **changes):
        fields = {"profile": "decide", "engine": SERVED, "cells": (RAW, DRAFTED)} | changes
        directory = RunDir.create(tmp_path / "run", make_run(**fields))
        with directory.writing() as writer:
            for number in range(6):
                prompt = {"prompt_id": f"p-{number}", "prompt_sha256": f"{number:064x}"}
                none = {"drafted": (0,) * 7, "accepted": (0,) * 7, "step_ms": (10.0 + number,) * 7}
                none |= {"draft_n": 0, "draft_n_accepted": 0}
                writer.append(make_sample(cell=RAW.id, leg="raw", server="raw-0", **prompt, **none))
                writer.append(make_sample(cell=DRAFTED.id, server="drafted-1", **prompt))
            for life in lives or (make_life(id="raw-0"), make_life(id="drafted-1", method="told")):
                writer.append_life(life)
        return open_study(str(tmp_path / "run"))

    return record


def rows(card):
    cells = [[part.strip() for part in line.split("|")[1:-1]] for line in card.splitlines() if line.startswith("|")]
    return {row[0]: row[1] for row in cells if len(row) == 2}


def test_a_card_says_what_no_server_tells_and_holds_against_its_run(served):
    study = served()
    card = card_text(study)
    shown = rows(card)
    assert {shown[name] for name in UNTOLD} == {"not told by the server"}
    assert shown["devices"] == "not told by the server"
    assert shown["context"] == "4096"
    assert {one.outcome for one in check_numbers(card, exact_card(study, CardOptions()))} == {"follows"}


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("told", "told by the server"),
        ("given", "as given by the user"),
        ("assumed", "assumed"),
        ("", "as given by the user, or assumed"),
    ],
)
def test_a_card_says_who_says_how_the_server_drafts(served, method, said):
    study = served(make_life(id="raw-0"), make_life(id="drafted-1", method=method))
    shown = rows(card_text(study))["speculation"].replace("\\", "")
    assert shown.startswith(f"draft-dspark, {said}; n_max 5, longest draft seen 4; ")
    assert shown.endswith("n_min and p_min not told by the server")


def test_a_run_of_servers_of_our_own_keeps_its_settings(served):
    shown = rows(card_text(served(engine=make_run().engine)))
    assert shown["threads"] == "1"
    assert shown["devices"] == "none but the processor"
    assert shown["speculation"].replace("\\", "") == "draft-dspark, n_max 5, n_min 0, p_min 0"


def test_gates_do_not_pass_what_a_server_does_not_tell(served):
    found = {found.gate: (found.level, found.saw) for found in served().findings}
    assert found["pair-fits"] == ("unchecked", "the server does not tell its files; none was read")
    assert found["one-factor"] == ("unchecked", "the servers do not tell their cache types, threads and batches")


def in_two_calls(study):
    """The study with every other prompt measured on servers of a later call."""
    prompts = sorted({sample.prompt_id for sample in study.samples})
    later = {prompt: 2 * (place % 2) for place, prompt in enumerate(prompts)}
    number = {"raw": 0, "drafted": 1}
    samples = (replace(s, server=f"{s.leg}-{number[s.leg] + later[s.prompt_id]}") for s in study.samples)
    return replace(study, samples=tuple(samples))


def test_a_run_that_was_added_to_says_what_its_plain_intervals_assume(served):
    study = in_two_calls(served(*(make_life(id=name) for name in ("raw-0", "drafted-1", "raw-2", "drafted-3"))))
    said = "measured in 2 calls, and plain intervals, as here, assume that nobody went on or stopped on their account"
    card = card_text(study)
    assert said in card
    assert said in EconomicsPage(study, ratio_frame(study)).sentence().text
    assert {one.outcome for one in check_numbers(card, exact_card(study, CardOptions()))} == {"follows"}


def test_a_run_of_one_call_or_of_another_command_says_nothing_of_calls(served):
    study = served()
    idle = replace(study, lives=(*study.lives, make_life(id="raw-8"), make_life(id="raw-9")))
    other = RunDir(study.directory.path, replace(study.run, profile="quick"))
    assert extended_sentence(study) == extended_sentence(replace(in_two_calls(study), directory=other)) == ""
    assert extended_sentence(idle) == "", "a call that added nothing has given nobody a second look"
    assert extended_sentence(in_two_calls(study))


@pytest.mark.parametrize(
    ("continued", "alike", "said"),
    [
        (
            "restarted",
            True,
            "leg raw were started again before a later call; who measured said that drafter and settings",
        ),
        ("not told", True, "leg raw do not tell whether they were started again before a later call; who measured"),
        ("restarted", False, "started again before a later call; nobody said whether they are alike"),
    ],
)
def test_servers_that_were_started_again_are_named(served, continued, alike, said):
    study = served(
        make_life(id="raw-0", continued="first"),
        make_life(id="drafted-1", continued="first"),
        make_life(id="raw-2", continued=continued, said_alike=alike),
        make_life(id="drafted-3", continued="same", said_alike=alike),
    )
    assert said in rows(card_text(study))["servers"]
    assert said in provenance(study, "05_economics").text


def test_servers_that_stayed_the_same_are_no_news(served):
    study = served(make_life(id="raw-0", continued="first"), make_life(id="raw-1", continued="same", said_alike=True))
    assert started_sentence(study) == ""
