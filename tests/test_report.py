"""A result is told three times (JSON, terminal, HTML), each time safely, and the root problem first."""

from __future__ import annotations

import io
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from grader import resources
from grader.errors import GraderError
from grader.records import Diagnosis, ErrorMap, Result
from grader.report import (
    errormap,
    for_audience,
    from_json,
    json_schema,
    print_result,
    source,
    to_html,
    to_json,
    view,
    words,
)
from tests import sample_results
from tests.sample_results import SAMPLES

every_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
Sample = Callable[[], Result]


@cache
def page_of(sample: Sample, audience: view.Audience = "student") -> str:
    """Return the page of a sample, rendered once for all tests."""
    return to_html(sample(), audience)


def printed(result: Result, *, width: int = 80, encoding: str = "utf-8", **options: object) -> str:
    """Return what a pipe of that width and encoding would get."""
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding=encoding, newline="\n")
    print_result(result, Console(file=stream, width=width), **options)  # type: ignore[arg-type]
    stream.flush()
    return data.getvalue().decode(encoding)


def flat(text: str) -> str:
    """Return `text` as one line, so that a test does not depend on where it was wrapped."""
    return " ".join(text.split())


# --- JSON ---------------------------------------------------------------------------------------------


@every_sample
def test_a_result_survives_json(sample: Sample) -> None:
    result = sample()
    assert from_json(to_json(result)) == result


@every_sample
def test_json_satisfies_the_generated_schema(sample: Sample) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(to_json(sample())), schema, cls=jsonschema.Draft202012Validator)


def test_the_schema_refuses_unknown_keys_missing_keys_and_other_schemas() -> None:
    good = json.loads(to_json(sample_results.tiny()))
    validator = jsonschema.Draft202012Validator(json_schema())
    assert json_schema()["$id"] == "flashgrade/result/v1"
    for bad in (
        good | {"extra": 1},
        good | {"schema": "other/v2"},
        {k: good[k] for k in good if k != "score"},
    ):
        assert not validator.is_valid(bad)
    assert not validator.is_valid({k: good[k] for k in good if k != "schema"})


def test_json_is_indented_stable_and_starts_with_its_schema() -> None:
    first, again = to_json(sample_results.ragged_tail()), to_json(sample_results.ragged_tail())
    assert first == again
    assert first.startswith(b'{\n  "schema": "flashgrade/result/v1",\n  "assignment"')
    assert first.endswith(b"}\n")


def test_a_number_that_is_not_finite_becomes_null() -> None:
    """JSON has no NaN; records use None for it, and whatever slips through must not break a reader."""
    result = sample_results.tiny()
    finding = result.findings[-1]
    shown = replace(finding.comparisons[0], used=float("inf"))
    data = to_json(replace(result, findings=(replace(finding, comparisons=(shown,)),)))
    assert b"Infinity" not in data
    assert from_json(data).findings[0].comparisons[0].used is None


def test_a_file_name_that_is_not_utf8_can_be_stored() -> None:
    result = sample_results.tiny()
    name = b"fl\xe4sh.cu".decode("utf-8", "surrogateescape")
    data = to_json(replace(result, submission=replace(result.submission, name=name)))
    assert from_json(data).submission.name == "fl\\udce4sh.cu"


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema":"flashgrade/result/v2"}', b"[" * 100_000]
)
def test_a_file_that_is_no_result_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(GraderError, match=r"this is not a flashgrade/result/v1 file") as caught:
        from_json(data)
    assert "\n" not in caught.value.message
    assert caught.value.hint


# --- what comes first ---------------------------------------------------------------------------------


def test_failures_with_one_cause_are_one_problem() -> None:
    first, second = view.problems(sample_results.ragged_tail())
    assert first.cause == "Rows past N return before they load their share of the tile"
    assert first.line == sample_results.GUILTY
    assert len(first.also) == 7
    assert first.lost == 48
    assert second.finding.case == "equal scores"


def test_the_case_shown_is_the_smallest_one_that_is_partly_right() -> None:
    assert view.problems(sample_results.ragged_tail())[0].finding.case == "one row more than a tile"


def test_failures_that_differ_only_in_figures_are_one_problem() -> None:
    result = replace(sample_results.ragged_tail(), diagnoses=())
    assert sorted(len(problem.also) for problem in view.problems(result)) == [0, 7]


def test_what_a_device_saw_outranks_what_was_guessed() -> None:
    races, tail = sample_results.races(), sample_results.ragged_tail()
    both = replace(tail, findings=(*tail.findings, races.findings[1]), events=races.events)
    assert view.problems(both)[0].finding.check == "races"


def test_a_known_cause_outranks_a_symptom_without_one() -> None:
    tail = sample_results.ragged_tail()
    of_equal = Diagnosis("c", "A known cause", "", "", ("equal scores",))
    assert view.problems(replace(tail, diagnoses=(of_equal,)))[0].title == "A known cause"


def test_a_failure_that_follows_from_another_is_no_problem_of_its_own() -> None:
    for problem in view.problems(sample_results.crash()):
        assert not problem.finding.because


def test_every_assessed_point_that_is_lost_belongs_to_a_problem() -> None:
    for sample in (
        sample_results.ragged_tail,
        sample_results.crash,
        sample_results.races,
        sample_results.sixty_cases,
    ):
        result = sample()
        assert (
            sum(problem.lost for problem in view.problems(result))
            == result.score.assessed - result.score.earned
        )


def test_errors_of_the_grader_are_not_problems_of_the_student() -> None:
    result = sample_results.grader_error()
    assert view.problems(result) == ()
    assert view.headline(result).status == "error"


def test_points_that_were_not_assessed_add_up_and_have_reasons() -> None:
    for sample in (sample_results.all_pass, sample_results.needs_gpu, sample_results.grader_error):
        result = sample()
        items = view.not_assessed(result)
        assert sum(item.points for item in items) == result.score.total - result.score.assessed > 0
        assert all(item.why for item in items)


def test_notes_stand_at_the_lines_that_findings_events_and_compilers_name() -> None:
    assert set(view.notes(sample_results.ragged_tail())) == {16, 32, 36}
    assert set(view.notes(sample_results.races())) == {29, 36}
    assert set(view.notes(sample_results.compile_error())) == {15, 24, 40}
    assert view.notes(sample_results.all_pass()) == {}


# --- hidden cases -------------------------------------------------------------------------------------


def test_a_student_learns_a_hidden_cases_name_and_points_only() -> None:
    result = sample_results.hidden()
    shown = for_audience(result, "student")
    texts = (to_html(result), printed(result, width=200, verbose=True), to_json(shown).decode())
    for text in texts:
        assert "hidden tail" in text
        assert "SECRET-4242" not in text
        assert not re.search(r"N.{0,4}77\b", text)
    assert shown.score == result.score
    for case in shown.cases:
        if case.hidden:
            assert (case.dims, case.inputs, case.seed, case.stdout, case.launches) == ({}, "", 0, "", ())


def test_an_instructor_sees_hidden_cases_whole() -> None:
    result = sample_results.hidden()
    assert for_audience(result, "instructor") is result
    assert "SECRET-4242" in to_html(result, "instructor")
    assert "SECRET-4242" in printed(result, width=200, verbose=True, audience="instructor")


def test_a_visible_case_is_shown_before_a_hidden_one() -> None:
    problem = view.problems(for_audience(sample_results.hidden(), "student"))[0]
    assert problem.case is not None
    assert not problem.case.hidden


# --- the terminal -------------------------------------------------------------------------------------


@every_sample
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal_or_ends_in_blanks(sample: Sample, width: int) -> None:
    for verbose in (False, True):
        for line in printed(sample(), width=width, verbose=verbose).splitlines():
            assert len(line) <= width
            assert line == line.rstrip()


@every_sample
def test_a_terminal_gets_no_control_character_from_a_student(sample: Sample) -> None:
    text = printed(sample(), verbose=True)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", text)


@every_sample
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_without_unicode_gets_words_it_can_show(sample: Sample, encoding: str) -> None:
    text = printed(sample(), encoding=encoding, verbose=True)
    assert "\\xd7" not in text


def test_the_ascii_fallback_reads_well() -> None:
    assert "(91x the bound)" in flat(printed(sample_results.ragged_tail(), encoding="ascii"))


def test_the_terminal_tells_score_problem_checks_cases_output_time_in_this_order() -> None:
    text = printed(sample_results.ragged_tail())
    marks = [
        "42 of 94 points",
        "not assessed here",
        "Fix this first",
        "Checks",
        "Cases",
        "Output O of",
        "Time:",
        "Device:",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


def test_the_first_problem_has_its_check_case_cause_line_and_hint() -> None:
    text = flat(printed(sample_results.ragged_tail()).split("Then")[0])
    for part in (
        'FAIL close N=33 d=64 "one row more than a tile" 0 of 6 points',
        "64 of 2112 elements are outside the bound; worst O[32, 0]",
        "row 32, the last, partial tile of 32",
        "Cause: Rows past N return before they load",
        "Line 16: if (row >= N) return;",
        "Hint: Keep every thread alive until the last barrier",
        "The same in 7 more cases (48 points in all)",
    ):
        assert part in text


def test_passing_cases_are_folded_unless_asked_for() -> None:
    result = sample_results.ragged_tail()
    assert "PASS 4 cases" in flat(printed(result))
    assert "one key takes all" not in printed(result)
    assert "one key takes all" in printed(result, verbose=True)


def test_the_first_row_stands_under_its_columns_beside_the_references() -> None:
    text = printed(sample_results.all_pass())
    assert 'Output O of N=1000 d=64 "one thousand keys", shape (1000, 64)' in text
    yours, expected = (
        next(line for line in text.splitlines() if line.startswith(w)) for w in ("yours", "expected")
    )
    assert yours.split()[1:] == expected.split()[1:]
    assert yours.split()[1:3] == ["0.4100", "-0.1950"]
    assert "All 64,000 elements inside the bound; worst: 0.31 of the bound." in text


def test_a_compile_error_is_told_with_the_students_line() -> None:
    text = flat(printed(sample_results.compile_error()))
    assert "Line 24: float l_i = 0.0f" in text
    assert "line 40: 'l_i' was not declared in this scope" in text
    assert "SKIP 13 cases: because the file does not compile" in text


def test_what_needs_a_gpu_costs_nothing_and_says_so() -> None:
    text = flat(printed(sample_results.needs_gpu()))
    assert "SKIP Nothing assessed" in text
    assert "costs you nothing" in text
    assert "--on cuda" in text
    assert "Fix this first" not in text


def test_the_graders_fault_is_told_once_and_costs_nothing() -> None:
    text = flat(printed(sample_results.grader_error()))
    assert "needs an instructor" in text
    assert text.count("The grader's own fault") == 1
    assert "install g++ 9 or later" in text


def test_what_a_crashing_case_printed_is_shown() -> None:
    assert "CUDA error: an illegal memory access was encountered" in printed(sample_results.crash())


def test_colours_are_used_on_a_terminal_and_not_in_a_pipe() -> None:
    stream = io.StringIO()
    print_result(
        sample_results.ragged_tail(),
        Console(file=stream, force_terminal=True, width=80, color_system="standard"),
    )
    assert "\x1b[" in stream.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert plain == printed(sample_results.ragged_tail())


# --- HTML ---------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The tags of a page, its ids and links, and where its elements do not nest."""

    VOID = frozenset({"meta", "br", "img", "hr", "link", "input"})
    SELF_CLOSED = frozenset({"rect", "path", "circle"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(f"</{tag}> at {self.getpos()}")


@every_sample
def test_the_page_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(sample: Sample) -> None:
    page = Page(page_of(sample))
    assert page.wrong == []
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert {link for link in links if link and link.removeprefix("#") not in ids} == set()


@every_sample
def test_the_page_loads_and_runs_nothing(sample: Sample) -> None:
    page = Page(page_of(sample))
    assert {tag for tag, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
    } == set()
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name in ("style", "src", "srcset") for name in attributes), (
            tag
        )
        assert (attributes.get("href") or "#").startswith("#")


@every_sample
def test_nothing_that_a_student_wrote_becomes_markup(sample: Sample) -> None:
    html = page_of(sample, "instructor")
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("</style>") == 1
    assert html.count("{{") == html.count("{{ 7*7 }}")  # shown as it was written, never evaluated
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", html)


@every_sample
def test_headings_descend_one_level_at_a_time(sample: Sample) -> None:
    levels = [int(tag[1]) for tag, _ in Page(page_of(sample)).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_page_has_its_landmarks_and_every_table_its_caption() -> None:
    tags = [tag for tag, _ in Page(to_html(sample_results.ragged_tail())).tags]
    for landmark in ("header", "nav", "main", "footer"):
        assert tags.count(landmark) == 1
    assert tags.count("caption") == tags.count("table") > 4


def test_sixty_cases_stay_under_the_size_bound() -> None:
    assert len(to_html(sample_results.sixty_cases()).encode()) < 1_500_000


def test_the_guilty_line_is_marked_with_its_message_beside_it() -> None:
    html = to_html(sample_results.ragged_tail())
    at = html.index('class="line guilty error" id="L16"')
    assert "Rows past N return before they load their share of the tile" in html[at : at + 700]
    assert '<a href="#L16">line 16</a>' in html


def test_the_page_shows_score_bound_seed_hash_and_versions() -> None:
    html = to_html(sample_results.ragged_tail())
    for part in (
        "42",
        "94 points",
        "2^-24",
        "91× the bound",
        "5d41402abc4b2a76",
        "9f31c02a77de",
        "g++ 12.2.0",
        "numpy 2.3.5",
    ):
        assert part in html
    assert "speed is measured on a GPU" in html
    assert "<td>53</td>" in html  # the seed of N=33


def test_the_graders_fault_has_a_banner() -> None:
    html = to_html(sample_results.grader_error())
    assert "The grader failed, not your code" in html
    assert "costs you nothing" in html


def test_the_content_security_policy_allows_only_this_stylesheet() -> None:
    html = to_html(sample_results.all_pass())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]


# --- error maps ---------------------------------------------------------------------------------------


def cover(map_: ErrorMap) -> dict[str, float]:
    """Return the area that a drawing paints for each kind, as a share of the map."""
    drawing = errormap.draw(map_)
    areas = {}
    for layer in drawing.layers:
        boxes = re.findall(r"M([\d.e+]+) ([\d.e+]+)H([\d.e+]+)V([\d.e+]+)H", layer.path)
        total = sum(
            (float(right) - float(left)) * (float(bottom) - float(top)) for left, top, right, bottom in boxes
        )
        areas[layer.kind] = total / (drawing.width * drawing.height)
    return areas


def test_a_map_paints_each_kind_over_as_much_as_it_covers() -> None:
    map_ = sample_results.error_map(128, 64, sample_results.in_last_tile(127))
    assert cover(map_) == {"2": pytest.approx(0.25, abs=0.01)}
    quarters = sample_results.error_map(
        64, 64, lambda r, c: "n" if r < 32 and c < 32 else "u" if r >= 32 else "."
    )
    assert cover(quarters) == {"n": pytest.approx(0.25, abs=0.01), "u": pytest.approx(0.5, abs=0.01)}


def test_a_map_of_odd_size_is_painted_up_to_its_edges_and_not_beyond() -> None:
    for rows, columns in ((1, 1), (17, 40), (113, 64), (1000, 63)):
        assert cover(sample_results.error_map(rows, columns, lambda r, c: "1")) == {
            "1": pytest.approx(1, abs=0.01)
        }


def test_a_ragged_map_is_drawn_coarser_and_loses_no_error() -> None:
    map_ = sample_results.error_map(64, 64, lambda r, c: "3" if (r + c) % 2 else ".")
    drawing = errormap.draw(map_)
    assert sum(len(layer.path) for layer in drawing.layers) < 20_000
    assert cover(map_)["3"] >= 0.5
    alone = sample_results.error_map(64, 64, lambda r, c: "n" if (r, c) == (63, 63) else "12"[(r + c) % 2])
    assert "n" in cover(alone)


def test_a_map_says_in_words_what_it_shows() -> None:
    map_ = sample_results.error_map(113, 64, sample_results.in_last_tile(113, "u"), most=128)
    assert errormap.draw(map_).words == "never written in rows 96 to 112, columns 0 to 63"


# --- source -------------------------------------------------------------------------------------------


def text_of(html: str) -> str:
    """Return the text that a browser would show for a fragment."""
    parts: list[str] = []
    parser = HTMLParser()
    parser.handle_data = parts.append  # type: ignore[method-assign]
    parser.feed(html)
    parser.close()
    return "".join(parts)


@pytest.mark.parametrize(
    "text",
    [
        sample_results.SOURCE,
        "",
        "\n",
        "\n\nint x;",
        "a\n\n",
        'R"x(\n</span>\n)x"',
        "/* open\n",
        "\tint\tx; // ü 你好\n",
        "#define A \\\n  1\n",
    ],
)
def test_highlighting_keeps_every_line_and_character(text: str) -> None:
    assert [text_of(line) for line in source.highlighted(text)] == text.removesuffix("\n").split("\n")


def test_lines_are_counted_as_a_compiler_counts_them() -> None:
    """A form feed, a lone carriage return and U+2028 end lines for Python but not for a compiler."""
    text = "a\x0cb\u2028c\rd\r\ne"
    assert len(source.highlighted(text)) == 2
    result = sample_results.tiny()
    result = replace(result, submission=replace(result.submission, source=text))
    assert view.source_line(result, 2) == "e"


def test_silent_parts_are_folded_and_no_line_is_lost() -> None:
    html = source.highlighted(sample_results.SOURCE)
    note = view.Note("error", "cause", "here")
    for noted in ({}, {16: [note]}, {1: [note], 9: [note]}, {10_000: [note]}):
        found = source.chunks(html, noted)
        assert [line.number for chunk in found for line in chunk.lines] == list(range(1, len(html) + 1))
        shown = {line.number for chunk in found if not chunk.folded for line in chunk.lines}
        assert {line for line in noted if line <= len(html)} <= shown
    assert any(chunk.folded for chunk in source.chunks(html, {16: [note]}))


def test_a_huge_file_costs_no_huge_page() -> None:
    result = sample_results.tiny()
    big = replace(result, submission=replace(result.submission, source="float x = 1.0f;\n" * 60_000))
    assert len(to_html(big)) < 200_000


# --- words --------------------------------------------------------------------------------------------


def test_values_that_differ_are_shown_with_the_digits_that_differ() -> None:
    shown = sample_results.comparison(113, 64).worst
    assert shown is not None
    got, expected = words.pair(shown)
    assert got != expected


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\u202eb", "a\\u202eb"),
        ("\udce4", "\\udce4"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("π ≤ 你好", "π ≤ 你好"),
    ],
)
def test_only_what_acts_is_spelled_out(text: str, safe: str) -> None:
    assert words.visible(text) == safe


# --- the rest -----------------------------------------------------------------------------------------


def test_importing_the_report_loads_no_renderer() -> None:
    """`grader --help` starts in 0.3 s only if rich, jinja2 and pygments come when they are needed."""
    code = "import sys, grader.report; print(*sorted({'rich', 'jinja2', 'pygments'} & {*sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_renderings_are_pure() -> None:
    result = sample_results.ragged_tail()
    before = msgspec.json.encode(result)
    assert to_html(result) == to_html(result)
    assert printed(result) == printed(result)
    assert msgspec.json.encode(result) == before


def test_missing_data_files_are_told_in_one_line() -> None:
    with pytest.raises(GraderError, match=r"the grader's nonsense are missing: looked in "):
        resources._find("nonsense", "*.j2")
