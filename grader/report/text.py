"""`Result` to a terminal: the score, what to fix first, then the tables; words before colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.records import CaseResult, Comparison, Result, Status
from grader.report import view, words

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_STYLES: dict[Status, str] = {"pass": "green", "fail": "bold red", "skip": "cyan", "error": "bold magenta"}
_WIDEST = 100  # columns; longer lines are tiring to read
_NARROW = 60  # columns; below, tables keep only what cannot be missed
_MORE_PROBLEMS = 3
_MORE_CASES = 12
_ADVICE = 5
_PRINTED = 2000  # characters of the student's own output


def print_result(
    result: Result, console: Console, *, verbose: bool = False, audience: view.Audience = "student"
) -> None:
    """Print a result: score, what to fix first, checks, cases, the output's first row, timing, device.

    Passing cases are folded into a count unless `verbose`. Student text is neutralised, and everything is
    spelled in what the console's encoding has.
    """
    result = view.for_audience(result, audience)
    page = _Page(console)
    found = view.problems(result)
    _score(page, result)
    _faults(page, result)
    if found:
        page.heading("Fix this first")
        _problem(page, result, found[0], whole=True)
    elif result.build.status != "ok" and not result.needs_instructor:
        _not_run(page, result)
    _then(page, result, found[1:], verbose=verbose)
    _advice(page, result, verbose=verbose)
    _checks(page, result)
    _cases(page, result, verbose=verbose)
    _first_row(page, result)
    _printed(page, result, verbose=verbose)
    _footer(page, result)


class _Page:
    """A console on which no text of a student's acts: everything goes through `text`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = min(console.width, _WIDEST)
        self.narrow = console.width < _NARROW

    def text(self, content: str, style: str = "") -> Text:
        """Return rich text, neutralised and spelled in what the console can encode."""
        from rich.text import Text

        return Text(words.encodable(words.visible(content), self.console.encoding), style, overflow="fold")

    def show(self, item: RenderableType, indent: int = 0) -> None:
        """Print something rich can draw, indented, without the blanks that rich fills lines with."""
        from rich.segment import Segment, Segments

        options = self.console.options.update(width=max(1, self.width - indent), height=None, highlight=False)
        for line in self.console.render_lines(item, options, pad=False):
            while line and not line[-1].text.strip() and not line[-1].control:
                line.pop()
            if line:
                line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
            segments = [Segment(" " * indent), *line] if line else []
            self.console.print(Segments([*segments, Segment.line()]), end="")

    def say(self, content: str, style: str = "", indent: int = 0) -> None:
        self.show(self.text(content, style), indent)

    def heading(self, title: str) -> None:
        self.console.print()
        self.say(title, "bold underline")

    def grid(self, *, spread: int = 1) -> Table:
        """Return an empty table without lines, whose column number `spread` takes the room that is left."""
        from rich.table import Table

        grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
        for column in range(spread):
            grid.add_column(no_wrap=column == 0)
        grid.add_column(ratio=1, overflow="fold")
        return grid

    def word(self, status: Status) -> Text:
        return self.text(words.STATUS_WORDS[status], _STYLES[status])

    def labelled(self, label: str, content: str, indent: int) -> None:
        """Print "Label: content", further lines standing under the content; nothing for no content."""
        if content:
            grid = self.grid()
            grid.add_row(self.text(label + ":", "bold"), self.text(words.one_line(content)))
            self.show(grid, indent)


# --- the verdict --------------------------------------------------------------------------------------


def _score(page: _Page, result: Result) -> None:
    head = view.headline(result)
    page.say(f"{result.assignment.title} ({result.assignment.slug})", "bold")
    page.say(f"{words.one_line(result.submission.name)} on {result.device.title}, {result.device.place}")
    page.console.print()
    grid = page.grid()
    grid.add_row(page.word(head.status), page.text(head.score, "bold"))
    if head.verdict:
        grid.add_row("", page.text(head.verdict))
    left = result.score.total - result.score.assessed
    if left > 0:
        total = words.number(result.score.total)
        grid.add_row(
            "", page.text(f"{words.number(left)} of the assignment's {total} points not assessed here:")
        )
        for item in head.not_assessed:
            grid.add_row("", page.text(f"  {item.what} ({words.count(item.points, 'point')}): {item.why}"))
    page.show(grid)


def _faults(page: _Page, result: Result) -> None:
    """Say what the grader did wrong, once for each fault."""
    said: set[str] = set()
    for finding in result.findings:
        if finding.status == "error" and finding.summary not in said:
            said.add(finding.summary)
            if len(said) == 1:
                page.heading("The grader's own fault")
            _row(page, "error", _subject(result, finding.check, finding.case), "costs nothing")
            page.say(words.one_line(finding.summary), indent=7)
            page.labelled("Hint", finding.hint, 7)


def _not_run(page: _Page, result: Result) -> None:
    page.heading("Not run")
    page.say(words.one_line(result.build.message))
    page.labelled("Hint", result.build.hint, 0)


# --- problems -----------------------------------------------------------------------------------------


def _then(page: _Page, result: Result, rest: tuple[view.Problem, ...], *, verbose: bool) -> None:
    if not rest:
        return
    page.heading("Then")
    shown = rest if verbose else rest[:_MORE_PROBLEMS]
    for problem in shown:
        _problem(page, result, problem, whole=False)
    if len(rest) > len(shown):
        page.say(
            f"... and {words.count(len(rest) - len(shown), 'more problem')} (--verbose shows all)", "dim"
        )


def _problem(page: _Page, result: Result, problem: view.Problem, *, whole: bool) -> None:
    finding = problem.finding
    if finding.max_points:
        points = f"{words.number(finding.points)} of {words.count(finding.max_points, 'point')}"
    else:
        points = ""
    _row(page, "fail", _subject(result, finding.check, finding.case), points)
    page.say(words.one_line(finding.summary), indent=7)
    comparison = problem.comparison
    if comparison and comparison.pattern and comparison.pattern.rstrip(".") not in finding.summary:
        page.say(words.one_line(comparison.pattern), indent=7)
    cause = f"{problem.cause.rstrip('.')}. {problem.evidence}" if problem.evidence else problem.cause
    page.labelled("Cause", cause, 7)
    source = view.source_line(result, problem.line)
    if source:
        page.labelled(f"Line {problem.line}", words.clip(source, 200), 7)
    if whole and finding.check == "compiles":
        _compiler(page, result)
    page.labelled("Hint", problem.hint, 7)
    if problem.also:
        others = words.count(len(problem.also), "more case")
        costs = f" ({words.count(problem.lost, 'point')} in all)" if problem.lost else ""
        page.say(f"The same in {others}{costs}: {words.listed(problem.also)}", indent=7)


def _compiler(page: _Page, result: Result) -> None:
    errors = [message for message in result.build.messages if message.severity == "error"]
    for message in errors[:5]:
        where = f"line {message.line}" if message.line else "elsewhere"
        page.labelled(where, message.text, 7)
        if message.line and message is not errors[0]:
            page.say(words.clip(view.source_line(result, message.line), 200), "dim", indent=9)
    if len(errors) > 5:
        page.say(f"... and {words.count(len(errors) - 5, 'more error')}", "dim", indent=7)


def _advice(page: _Page, result: Result, *, verbose: bool) -> None:
    """Say what the device saw beside the errors that findings already tell."""
    told = [finding.summary for finding in result.findings if finding.status == "fail"]
    seen = view.sightings(
        event
        for event in result.events
        if verbose or (event.severity != "error" and not any(event.message in summary for summary in told))
    )
    if not seen:
        return
    page.heading("Also seen")
    for sighting in seen if verbose else seen[:_ADVICE]:
        event = sighting.event
        where = f"line {event.where.line}: " if event.where and event.where.line else ""
        cases = f" (in {words.count(len(sighting.cases), 'case')})" if len(sighting.cases) > 1 else ""
        page.labelled(event.severity, f"{where}{event.message}{cases}", 0)
    if not verbose and len(seen) > _ADVICE:
        page.say(f"... and {len(seen) - _ADVICE} more (--verbose shows all)", "dim")


def _row(page: _Page, status: Status, what: str, right: str) -> None:
    grid = page.grid()
    if right:
        grid.add_column(justify="right", no_wrap=True)
    grid.columns[0].width = 5
    cells = [page.word(status), page.text(what, "bold")]
    grid.add_row(*cells, *([page.text(right)] if right else []))
    page.show(grid)


def _subject(result: Result, check: str, name: str) -> str:
    """Return 'close  N=113 d=64 "ragged tail"', or the check alone."""
    case = next((case for case in result.cases if case.name == name), None)
    return f"{check}  {_case(case)}" if case else check


def _case(case: CaseResult) -> str:
    hidden = " (hidden)" if case.hidden else ""
    return f'{words.dims(case.dims)} "{words.one_line(case.name)}"{hidden}'.strip()


# --- tables -------------------------------------------------------------------------------------------


def _checks(page: _Page, result: Result) -> None:
    page.heading("Checks")
    grid = page.grid(spread=1 if page.narrow else 2)
    for _ in range(2):
        grid.add_column(justify="right", no_wrap=True)
    for row in view.check_rows(result):
        title = row.why if row.why and row.status in ("skip", "error") else row.title
        middle = [row.check] if page.narrow else [row.check, words.one_line(title)]
        cells = [*middle, row.cases, _points(row.points, row.max_points, assessed=row.assessed)]
        grid.add_row(page.word(row.status), *(page.text(cell) for cell in cells))
    page.show(grid)


def _points(points: float, most: float, *, assessed: bool) -> str:
    if not most:
        return "-"
    return f"{words.number(points)} of {words.number(most)}" if assessed else f"({words.number(most)})"


def _cases(page: _Page, result: Result, *, verbose: bool) -> None:
    """List every case that does not pass, and all of them when `verbose`; the rest is a count."""
    rows = view.case_rows(result)
    open_rows = [row for row in rows if verbose or row.case.status in ("fail", "error")]
    shown = open_rows if verbose else open_rows[:_MORE_CASES]
    if not rows:
        return
    page.heading("Cases")
    grid = page.grid()
    if not page.narrow:
        grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    for row in shown:
        assessed = row.finding is None or row.finding.assessed
        points = _points(row.case.points, row.case.max_points, assessed=assessed)
        cells = [_case(row.case), *([] if page.narrow else [_reason(row)]), points]
        grid.add_row(page.word(row.case.status), *(page.text(cell) for cell in cells))
    if shown:
        page.show(grid)
    if len(open_rows) > len(shown):
        page.say(f"... and {len(open_rows) - len(shown)} more like these (--verbose lists all)", "dim")
    for status in ("pass", "skip"):
        folded = [row for row in rows if row.case.status == status and row not in shown]
        if folded:
            page.show(_folded(page, status, folded))


def _folded(page: _Page, status: Status, rows: list[view.CaseRow]) -> Table:
    """Return one line for many cases: "PASS  13 cases", or "SKIP  13 cases: " and why."""
    grid = page.grid()
    why = rows[0].finding.summary if status == "skip" and rows[0].finding else ""
    which = words.count(len(rows), "case")
    grid.add_row(page.word(status), page.text(f"{which}: {words.one_line(why)}" if why else which))
    return grid


def _reason(row: view.CaseRow) -> str:
    """Return why a case stands as it does, in a few words: "close: 91x the bound", "0.31 of the bound"."""
    finding = row.finding
    if finding is None:
        return "not run"
    if finding.status == "pass":
        return words.ratio(row.used) if row.comparisons else ""
    if finding.status == "fail" and row.case.run_status not in ("ok", "not_run"):
        return f"{finding.check}: {row.case.run_status.replace('_', ' ')}"
    if finding.status == "fail" and row.used is not None:
        return f"{finding.check}: {words.ratio(row.used)}"
    return f"because of {finding.because}" if finding.because else finding.check


def _first_row(page: _Page, result: Result) -> None:
    """Show the output's shape and first row beside the reference's, as the course's own program prints it."""
    shown = view.shown_comparison(result)
    if not shown:
        return
    row, comparison = shown
    page.heading(f"Output {comparison.output} of {_case(row.case)}, shape {words.shape(comparison.shape)}")
    fit = max(1, min(len(comparison.first_row_expected), (page.width - 10) // 11))
    page.show(_values(page, comparison, fit))
    if comparison.outside:
        share = f"{comparison.outside:,} of {comparison.elements:,} elements outside the bound"
        share += f"; worst: {words.ratio(comparison.used)}"
    else:
        share = (
            f"All {comparison.elements:,} elements inside the bound; worst: {words.ratio(comparison.used)}"
        )
    page.say(share + ".")


def _values(page: _Page, comparison: Comparison, fit: int) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in range(fit):
        table.add_column(justify="right", no_wrap=True)
    more = "..." if comparison.shape and comparison.shape[-1] > fit else ""
    for label, values in (("yours", comparison.first_row), ("expected", comparison.first_row_expected)):
        table.add_row(page.text(label), *map(page.text, words.row(values[:fit])), more)
    return table


# --- the rest -----------------------------------------------------------------------------------------


def _printed(page: _Page, result: Result, *, verbose: bool) -> None:
    """Show what the student's code printed: in the case to fix first, and in every case when `verbose`."""
    first = next(iter(view.problems(result)), None)
    for case in result.cases:
        printed = case.stdout + case.stderr
        if printed.strip() and (verbose or (first and first.case is case and case.run_status != "ok")):
            page.heading(f"Your code printed in {_case(case)}")
            page.say(words.clip(printed.rstrip(), _PRINTED), indent=2)


def _footer(page: _Page, result: Result) -> None:
    timings = ", ".join(f"{stage} {words.seconds(duration)}" for stage, duration in result.timings.items())
    page.console.print()
    build = result.build
    cached = " (from the cache)" if build.cached else ""
    page.labelled("Time", f"{timings}{cached}", 0)
    page.labelled("Device", f"{result.device.title}, {result.device.place}; {build.compiler}".rstrip("; "), 0)
