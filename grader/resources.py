"""Where the data files are: at the top of a checkout, or inside the package of an installed wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from grader.errors import GraderError

_PACKAGE = Path(__file__).resolve().parent


def templates_dir() -> Path:
    """Return the folder of the report's templates; `GraderError` if this installation has none."""
    return _find("templates", "report.html.j2")


def assignments_dir() -> Path:
    """Return the folder of the course's assignments; `GraderError` if this installation has none."""
    return _find("assignments", "*/assignment.toml")


@cache
def _find(name: str, sign: str) -> Path:
    """Return the first folder called `name` that holds a file matching `sign`: a checkout's, then a wheel's.

    A neighbour called "templates" in site-packages is not ours, so a checkout is known by its pyproject.toml.
    """
    checkout = _PACKAGE.parent
    candidates = [_PACKAGE / "_data" / name]
    if (checkout / "pyproject.toml").is_file():
        candidates.insert(0, checkout / name)
    for folder in candidates:
        if any(folder.glob(sign)):
            return folder
    raise GraderError(
        f"the grader's {name} are missing: looked in " + " and ".join(map(str, candidates)),
        "install flashgrade again, or run it from a complete checkout",
    )
