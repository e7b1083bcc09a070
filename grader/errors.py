"""The one exception that users are meant to see."""


class GraderError(Exception):
    """Something outside the student's kernel is wrong; shown as one line, never as a traceback.

    `message` says what is wrong and where; `hint` says what to do about it. `exit_code` is 2 where the
    caller can mend it (a wrong path, a broken option) and 3 where the grader or the machine is at fault.
    """

    exit_code = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(GraderError):
    """The command was called with something it cannot use: exit code 2."""

    exit_code = 2
