"""`Result` to one self-contained HTML page: no script, no network, every student's word escaped."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from grader.records import Result, Score
from grader.report import errormap, source, view, words
from grader.resources import templates_dir

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_LOG = 20_000  # characters of the compiler's log
_MOST_PRINTED = 4_000  # characters of one program's output
_MOST_PRINTED_IN_ALL = 200_000
_MOST_EVENTS = 40


def to_html(result: Result, audience: view.Audience = "student") -> str:
    """Return the report as one HTML file that loads nothing and runs nothing.

    Its Content-Security-Policy allows exactly one thing, the stylesheet that it carries, by hash; so even
    markup that got past the escaping could not act. `audience` decides what of hidden cases is shown.
    """
    result = view.for_audience(result, audience)
    style = (templates_dir() / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = _environment().get_template("report.html.j2")
    return template.render(_variables(result), style=style, style_hash=digest, audience=audience)


def _variables(result: Result) -> dict[str, Any]:
    """Return what the template needs; it decides nothing that `view` could."""
    found = view.problems(result)
    notes = view.notes(result)
    html = source.highlighted(result.submission.source) if result.submission.source else []
    cases = view.case_rows(result)
    severity = ("error", "warning", "note").index
    return {
        "result": result,
        "headline": view.headline(result),
        "bar": _score_bar(result.score),
        "first": found[0] if found else None,
        "then": found[1:],
        "excerpt": source.excerpt(html, found[0].line) if found else [],
        "checks": view.check_rows(result),
        "cases": cases,
        "anchors": {row.case.name: f"case-{index}" for index, row in enumerate(cases, start=1)},
        "failures": [row for row in cases if any(c.outside for c in row.comparisons)],
        "opened": found[0].finding.case if found else "",
        "example": view.shown_comparison(result),
        "chunks": source.chunks(html, notes),
        "noted": notes,
        "lines": len(html),
        "faults": [finding for finding in result.findings if finding.status == "error"],
        "events": view.sightings(result.events)[:_MOST_EVENTS],
        "printed": _printed(result),
        "log": words.clip(result.build.log.strip(), _MOST_LOG),
        "messages": sorted(result.build.messages, key=lambda message: severity(message.severity)),
        "draw": errormap.draw,
    }


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(templates_dir()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_neutral,
    )
    for function in (
        words.number, words.shape, words.dims, words.ratio, words.value, words.row, words.pair, words.place,
        words.seconds,
        words.size, words.clip,
    ):  # fmt: skip
        environment.filters[function.__name__] = function
    environment.globals.update(count=words.count, listed=words.listed, STATUS=words.STATUS_WORDS)
    return environment


def _neutral(value: Any) -> Any:
    """Spell out control and bidirectional characters in whatever a template prints; escaping comes after."""
    return words.visible(value) if type(value) is str else value


@dataclass(frozen=True)
class ScoreBar:
    """The score as widths of a bar, in percent of the total."""

    earned: float
    lost: float
    not_assessed: float


def _score_bar(score: Score) -> ScoreBar:
    total = score.total or 1.0
    earned, assessed = 100 * score.earned / total, 100 * score.assessed / total
    return ScoreBar(round(earned, 2), round(assessed - earned, 2), round(100 - assessed, 2))


@dataclass(frozen=True)
class Printed:
    """What the student's code printed, and the cases in which it printed just that."""

    cases: tuple[str, ...]
    stdout: str
    stderr: str


def _printed(result: Result) -> tuple[Printed, ...]:
    alike: dict[tuple[str, str], list[str]] = {}
    for case in result.cases:
        if case.stdout.strip() or case.stderr.strip():
            alike.setdefault((case.stdout, case.stderr), []).append(case.name)
    room = _MOST_PRINTED_IN_ALL // max(len(alike), 1)
    most = min(room, _MOST_PRINTED)
    return tuple(
        Printed(tuple(cases), words.clip(stdout.rstrip(), most), words.clip(stderr.rstrip(), most))
        for (stdout, stderr), cases in alike.items()
    )
