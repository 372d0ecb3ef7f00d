"""A bar for a phase that a budget ends says how much of the budget is left, and fills with time."""

from analysis.measure.timebar import TimeBar


def test_what_is_left_is_the_budgets(capsys):
    now = [0.0]
    with TimeBar("measuring", 120.0, clock=lambda: now[0]) as bar:
        now[0] = 50.0
        bar.update(3)
        assert bar._said() == "measuring: 3 samples, 1:10 of the budget left"
        now[0] = 150.0
        bar.update(1)
    drawn = capsys.readouterr().err.splitlines()[-1].split("\r")[-1]
    assert drawn.startswith("measuring: 4 samples, the budget is spent |")
    assert "?" not in drawn
