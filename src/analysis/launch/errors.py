"""What a server can do wrong while it is being talked to."""

from analysis.records import Problem


class ServerFailed(Problem):
    """A server refused, answered with an error, hung, or broke off; its process may still be there."""


class ServerDied(ServerFailed):
    """The process of a server that this program started has ended although nobody stopped it.

    `exit_status` is negative for a signal, as in `subprocess`; `log_lines` are the last lines of its log.
    """

    def __init__(self, saw: str, *, exit_status: int, log_lines: tuple[str, ...], remedy: str = "") -> None:
        super().__init__(saw, remedy=remedy)
        self.exit_status = exit_status
        self.log_lines = log_lines


class TokensLost(ServerFailed):
    """The stream withheld tokens of an unfinished character, and which ones could not be worked out."""
