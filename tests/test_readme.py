"""The README tells the truth: commands, options, checks and files that it names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader import authoring, checks, course

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EVERY_PAGE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "assignments").rglob("README.md")),
]


def help_of(*command):
    answer = subprocess.run(
        [sys.executable, "-m", "grader", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200", "PATH": ""},
    )
    return answer.stdout


def test_every_command_and_option_in_the_readme_exists():
    commands = help_of()
    options = {}
    for command, rest in re.findall(r"^\s*(?:`)?grader (\w+)([^`\n#]*)|", README, re.M):
        if not command:
            continue
        assert re.search(rf"\b{command}\b", commands), command
        text = options.setdefault(command, help_of(command))
        for option in re.findall(r"(?<=\s)-{1,2}[a-z]+", rest):
            assert option in text, f"grader {command} {option}"
    grade = help_of("grade")
    for option in re.findall(r"^\| `(--\w+)", README, re.M):
        assert option in grade


def test_the_table_of_checks_is_the_list_of_checks():
    assert set(re.findall(r"^\| `(\w+)` \|", README, re.M)) == set(checks.discover())


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_make_targets_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake ([a-z]+)\b(?= |`|$)", text, re.M):
        if target in ("grade", "test", "lint", "bench", "lock", "format", "clean"):
            assert re.search(rf"^{target}:", makefile, re.M)


def test_the_readme_of_every_assignment_has_each_todo_with_its_line_budget():
    for slug in course.slugs():
        folder = course.find(slug)
        budgets = authoring.todos((folder / course.load(folder).file).read_text())
        rows = re.findall(r"^\| (\d+) \|.*\| (\d+) lines? \|$", (folder / "README.md").read_text(), re.M)
        assert {int(number): int(lines) for number, lines in rows} == budgets, slug


def test_no_page_sends_its_reader_elsewhere_or_holds_a_placeholder():
    for page in EVERY_PAGE:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"https?://|FIGURES|TBD", text), page
