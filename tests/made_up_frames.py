"""Small made-up tables with the columns of the real ones. Nothing here was measured."""

import pandas as pd

NAN = float("nan")
HEALTHY = {"invention": 0.62, "continuation": 0.72, "recall": 0.86, "prose": 0.55}


def acceptance(depths: tuple[int, ...] = (256, 2048)) -> pd.DataFrame:
    rows = []
    for depth in depths:
        for regime, rate in HEALTHY.items():
            for position in range(1, 6):
                for meaning in ("survival", "proposal rate", "conditional"):
                    value = rate if meaning == "conditional" else rate**position
                    value *= 1 if depth == depths[0] else 0.9
                    rows.append((regime, depth, meaning, position, value, value * 0.85, min(1, value * 1.1), 5, "t"))
    columns = ["regime", "depth", "meaning", "position", "estimate", "low", "high", "n", "method"]
    return pd.DataFrame(rows, columns=columns)


def lengths(depths: tuple[int, ...] = (256, 2048)) -> pd.DataFrame:
    rows = [
        (regime, depth, 1 + 3 * rate * (1 if depth == 256 else 0.9), 5)
        for depth in depths
        for regime, rate in HEALTHY.items()
    ]
    frame = pd.DataFrame(rows, columns=["regime", "depth", "estimate", "n"])
    return frame.assign(low=frame["estimate"] * 0.9, high=frame["estimate"] * 1.1, method="t")


def steps() -> pd.DataFrame:
    rows = [
        (f"depth {depth}", accepted, base + 1.7 * accepted)
        for depth, base in ((256, 14.0), (2048, 21.0))
        for accepted in range(6)
    ]
    frame = pd.DataFrame(rows, columns=["series", "accepted", "estimate"])
    return frame.assign(low=frame["estimate"] - 0.8, high=frame["estimate"] + 0.9, n=5, method="t")


def ratios() -> pd.DataFrame:
    rows = [
        ("recall", 256, 1.31, 1.12, 1.52, "pays"),
        ("recall", 2048, 1.08, 0.97, 1.20, "undecided"),
        ("prose", 256, 0.82, 0.71, 0.95, "loses"),
        ("prose", 2048, NAN, NAN, NAN, "undecided"),
    ]
    frame = pd.DataFrame(rows, columns=["regime", "depth", "estimate", "low", "high", "verdict"])
    return frame.assign(n=5, method="t", refused=["", "", "", "3 of 5 samples are loops"])


def rate_by_length() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "regime": list(HEALTHY),
            "depth": 256,
            "length": [2.4, 2.9, 3.6, 2.1],
            "estimate": [88.0, 101.0, 118.0, 79.0],
        }
    )
    return frame.assign(
        length_low=frame["length"] * 0.93,
        length_high=frame["length"] * 1.07,
        low=frame["estimate"] * 0.95,
        high=frame["estimate"] * 1.05,
        n=5,
        method="t",
    )


def rate_curve() -> pd.DataFrame:
    lengths_ = [1 + 0.25 * i for i in range(17)]
    rates = [1000 * length / (24 + 1.7 * length) for length in lengths_]
    return pd.DataFrame(
        {
            "length": lengths_,
            "estimate": rates,
            "low": [r * 0.95 for r in rates],
            "high": [r * 1.05 for r in rates],
        }
    )


def single(estimate: float, refused: str = "") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "estimate": [estimate],
            "low": [estimate * 0.95],
            "high": [estimate * 1.05],
            "n": [5],
            "refused": [refused],
        }
    )
