"""The one kind of error a user is meant to read."""


class Problem(Exception):
    """Something outside the program is not as it must be.

    The message is one line: what was seen, what was expected, what to do. The command line prints it and exits
    with 1; notebooks show it as the last line of the traceback.
    """

    def __init__(self, saw: str, *, expected: str = "", remedy: str = "") -> None:
        parts = [saw, f"expected {expected}" if expected else "", remedy]
        line = "; ".join(" ".join(part.split()) for part in parts if part)
        # A message may quote a server, a file or a model: what it quotes must not reach the terminal's controls.
        super().__init__("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line))
