"""The report in a real browser: it loads alone, is accessible in light and dark, by keyboard and on paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.report import to_html
from tests.sample_results import SAMPLES

sync_api = pytest.importorskip("playwright.sync_api")
axe_api = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("/usr/bin/chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, which is not on PATH"),
]
every_sample = pytest.mark.parametrize("name", SAMPLES)


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a page for every sample."""
    folder = tmp_path_factory.mktemp("pages")
    for name, sample in SAMPLES.items():
        (folder / f"{name}.html").write_text(to_html(sample()), encoding="utf-8", newline="\n")
    return folder


class Opened:
    """A page with what its console said and what it asked the network for."""

    def __init__(self, browser: sync_api.Browser, file: Path, **context: object) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.console: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.console.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())


@pytest.fixture
def opened(browser: sync_api.Browser, pages: Path) -> Iterator[object]:
    """Return a function that opens the page of a sample."""
    contexts = []

    def open_(name: str, **context: object) -> Opened:
        found = Opened(browser, pages / f"{name}.html", **context)
        contexts.append(found.context)
        return found

    yield open_
    for context in contexts:
        context.close()


@every_sample
def test_the_page_asks_for_nothing_and_complains_of_nothing(opened, pages: Path, name: str) -> None:
    """The console would say so if the policy refused the page's own stylesheet, or a script tried to run."""
    shown = opened(name)
    assert shown.console == []
    assert shown.requests == [(pages / f"{name}.html").as_uri()]
    assert shown.page.evaluate("getComputedStyle(document.querySelector('h1')).fontWeight") == "650"


# axe takes seconds for each page; these have every part that a page can have, in both palettes.
@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("ragged_tail", "light"),
        ("ragged_tail", "dark"),
        ("compile_error", "light"),
        ("grader_error", "dark"),
        ("races", "light"),
        ("crash", "dark"),
    ],
)
def test_axe_finds_nothing_serious(opened, name: str, scheme: str) -> None:
    shown = opened(name, color_scheme=scheme)
    shown.page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    found = axe_api.Axe().run(shown.page, options={"resultTypes": ["violations"]}).response["violations"]
    grave = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]
    assert grave == []


@every_sample
def test_the_page_never_scrolls_sideways_on_a_phone(opened, name: str) -> None:
    shown = opened(name, viewport={"width": 360, "height": 740})
    shown.page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_light_and_dark_differ(opened) -> None:
    colours = {
        opened("ragged_tail", color_scheme=scheme).page.evaluate(
            "getComputedStyle(document.documentElement).backgroundColor"
        )
        for scheme in ("light", "dark")
    }
    assert len(colours) == 2


def test_the_first_tab_offers_to_skip_to_the_report_and_every_stop_is_visible(opened) -> None:
    page = opened("ragged_tail").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    stops = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        stops.add(page.evaluate("document.activeElement.tagName"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement === document.body")
    assert {"A", "SUMMARY", "DIV"} <= stops  # links, folded parts, and parts that scroll


def test_a_folded_part_opens_by_keyboard(opened) -> None:
    page = opened("ragged_tail").page
    folded = page.locator("details.failure:not([open])").first
    folded.locator("summary").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")


def test_a_link_to_a_line_leads_to_the_marked_line(opened) -> None:
    page = opened("ragged_tail").page
    page.locator(".where a[href='#L16']").first.click()
    assert page.url.endswith("#L16")
    sync_api.expect(page.locator("#L16")).to_be_in_viewport()


def test_the_map_has_a_name_and_its_wrong_tile_is_where_it_belongs(opened) -> None:
    page = opened("ragged_tail").page
    image = page.get_by_role("img", name="Error map of O, 33 by 64").first
    frame, wrong = image.locator(".frame").bounding_box(), image.locator(".e2").bounding_box()
    assert wrong["y"] > frame["y"] + 0.9 * frame["height"]
    assert wrong["width"] == pytest.approx(frame["width"], rel=0.02)


def test_paper_shows_what_the_screen_folds(opened) -> None:
    page = opened("ragged_tail").page
    folded = page.locator("details.failure:not([open]) .map").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.is_visible()
    assert not page.locator("nav").is_visible()
    assert page.pdf(format="A4")[:5] == b"%PDF-"


def test_hostile_text_is_shown_and_does_nothing(opened) -> None:
    shown = opened("hostile")
    assert shown.page.locator("script, img").count() == 0
    assert "<script>alert(1)</script>{{ 7*7 }}" in shown.page.locator(".file").first.inner_text()
    shown.page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert shown.console == []
