from dataclasses import fields, replace

import pytest

from analysis.records import Pair, Source
from factories import make_cell

TARGET = Source(kind="path", file="target.gguf")


def test_the_id_of_a_cell_covers_every_factor():
    cell = make_cell()
    other = {
        str: "other",
        int: 7,
        float: 0.5,
        "Fill": "cold",
    }
    special = {"regime": "prose", "spec_type": "none", "fill": "cold", "pair": "other", "thinking": True}
    for field in fields(cell):
        value = special.get(field.name, other[type(getattr(cell, field.name))] if field.name not in special else None)
        changed = replace(cell, **{field.name: value})
        assert changed.id != cell.id, field.name
        assert cell.factors_that_differ(changed) == (field.name,)


def test_equal_cells_have_equal_ids():
    assert make_cell().id == make_cell().id
    assert len(make_cell().id) == 12


def test_a_drafter_type_without_a_drafter_is_refused():
    with pytest.raises(ValueError, match=r"draft-dspark needs a \[drafter\]"):
        Pair(name="p", title="p", target=TARGET, spec_type="draft-dspark", n_max=3)


def test_a_raw_pair_drafts_nothing():
    with pytest.raises(ValueError, match="drafts nothing"):
        Pair(name="p", title="p", target=TARGET, spec_type="none", n_max=3)
