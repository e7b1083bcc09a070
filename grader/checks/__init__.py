"""The checks: one file for each, discovered and not registered.

A check is a module with

* a docstring of `check` whose first line is what the report prints,
* `SCOPE`: what it looks at (`"build"`: a `Build`; `"case"`: a `CaseSubject`; `"submission"`: a
  `SubmissionSubject`),
* `AFTER`: the checks whose failure makes this one pointless, so that one cause is reported once,
* `def check(subject) -> Verdict`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from grader.checks._subjects import CaseSubject, Check, Scope, SubmissionSubject

__all__ = ["CaseSubject", "Check", "Scope", "SubmissionSubject", "discover"]


@cache
def discover() -> dict[str, Check]:
    """Return every check by name, each one after those that it depends on."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            found[module.name] = _load(module.name)
    ordered: dict[str, Check] = {}
    while len(ordered) < len(found):
        ready = [
            check
            for check in found.values()
            if check.name not in ordered and all(name in ordered for name in check.after)
        ]
        ordered.update((check.name, check) for check in ready)
    return ordered


def _load(name: str) -> Check:
    module = importlib.import_module(f"{__name__}.{name}")
    title = (module.check.__doc__ or name).strip().splitlines()[0].rstrip(".")
    return Check(name, title, module.SCOPE, tuple(module.AFTER), module.check)
