"""What checks look at, and what a check is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from grader.numerics import Expected
from grader.records import Assignment, Build, Case, CheckSpec, Entry, Run, Verdict

Scope = Literal["build", "case", "submission"]


@dataclass(frozen=True)
class CaseSubject:
    """One case that was run: `expected` maps each output to its float64 reference."""

    assignment: Assignment
    entry: Entry
    case: Case
    run: Run
    expected: Mapping[str, Expected]


@dataclass(frozen=True)
class SubmissionSubject:
    """Everything that was run. `examined` are the cases that the manifest names for this check.

    `close` are the names of the cases whose output is right.
    """

    assignment: Assignment
    build: Build
    spec: CheckSpec
    examined: tuple[CaseSubject, ...]
    close: frozenset[str]


@dataclass(frozen=True)
class Check:
    """A check, as discovered: `after` names those whose failure makes this one pointless."""

    name: str
    title: str
    scope: Scope
    after: tuple[str, ...]
    judge: Callable[..., Verdict]
