"""The report in headless Chromium: it opens, sorts, finds, and says nothing on the console."""

import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the report of a posterior; at the end, nothing must have gone wrong."""
    troubles, pages = [], []

    def open_(posterior, **options):
        tab = browser.new_page(**options)
        pages.append(tab)
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("request", lambda request: _note(request, troubles))
        tab.goto(posterior.report(tmp_path / "fit.html").as_uri())
        return tab

    yield open_
    for tab in pages:
        tab.close()
    assert troubles == []


def _note(request, troubles):
    if not request.url.startswith("file:"):
        troubles.append(request.url)


def shown(tab):
    return [body.inner_text() for body in tab.locator("#paths .open").all() if body.is_visible()]


def test_rows_open_and_close(opened, fitted):
    tab = opened(fitted)
    details = tab.locator("#paths .details").first
    assert not details.is_visible()
    tab.locator("#paths .open").first.click()
    assert details.is_visible() and "level" in details.inner_text()
    tab.locator("#paths .open").first.click()
    assert not details.is_visible()


def test_columns_sort_both_ways(opened, fitted):
    tab = opened(fitted)
    before = shown(tab)
    assert len(before) == 2
    head = tab.locator("#paths thead button", has_text="weight")
    head.click()
    assert shown(tab) == before  # the heaviest first, as it was
    head.click()
    assert shown(tab) == before[::-1]
    tab.locator("#paths thead button", has_text="path").click()
    assert shown(tab) == sorted(before)


def test_many_paths(opened, crowded):
    tab = opened(crowded)
    assert len(shown(tab)) == 50
    tab.locator("#filter").fill("which=69")
    assert shown(tab) == ["which=69"]
    tab.locator("#filter").fill("")
    tab.locator("#all").click()
    assert len(shown(tab)) == 70
    tab.locator("#paths thead button", has_text="path").click()
    assert shown(tab)[:3] == ["which=0", "which=1", "which=2"]  # as numbers, not as texts


def test_light_and_dark(opened, fitted):
    paper = "getComputedStyle(document.body).backgroundColor"
    dark, light = opened(fitted, color_scheme="dark"), opened(fitted, color_scheme="light")
    assert dark.evaluate(paper) == "rgb(20, 23, 27)" and light.evaluate(paper) == "rgb(255, 255, 255)"
    light.locator("#theme").click()
    assert light.evaluate(paper) == "rgb(20, 23, 27)"
    text = light.locator("figure svg text").first
    assert text.evaluate("element => getComputedStyle(element).fill") == "rgb(230, 233, 237)"


def test_on_a_phone(opened, fitted):
    tab = opened(fitted, viewport={"width": 360, "height": 740})
    tab.locator("#paths .open").first.click()
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert tab.locator("#paths").evaluate("element => element.scrollWidth") <= 360
