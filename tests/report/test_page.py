"""The report of a study: its page as a browser shows it, and its figures.

Without Chromium, its driver and Selenium, tests that look at a page are skipped, unless CI_BROWSER=required.
"""

import base64
import itertools
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import SubFigure
from matplotlib.image import imread

from augury.fleet import Result
from augury.report.figures import study_figure
from augury.report.page import write_page
from augury.report.page.origin import wall_time
from augury.runs.statistics import aggregate_curve, area
from augury.study.claims import Claim
from augury.study.record import Finished, Record

pytestmark = pytest.mark.slow

try:
    from selenium import webdriver
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.support.wait import WebDriverWait
except ModuleNotFoundError:
    webdriver = None

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = (1400, 900), (390, 844)

TASKS = ["goal2d", "panda-push"]
MARKUP = '<b>x</b>&"</script><!--%{x}$y$'
"""HTML, JSON, Plotly and Matplotlib would each read a part of this name as something else."""
ARMS = ["none", "translate", MARKUP]


def result(environment, end, seed, *, agents=8, evaluations=12, augments=True, **about) -> Result:
    """Curves that rise to `end`, each agent's at its own pace."""
    generator = np.random.default_rng(seed)
    pace = generator.uniform(0.2, 1.5, (agents, 1))
    curves = end * (1 - np.exp(-pace * np.arange(1, evaluations + 1)))
    steps = 10_000 * np.arange(1, evaluations + 1)
    shape = curves.shape
    return Result(
        {
            "environment": environment,
            "algorithm": "td3",
            "augmentation": "goal2d/translate" if augments else None,
            "ratio": 1.0,
            "update_ratio": 1.0,
            "policy_data": 1,
        },
        {
            "steps": steps,
            "updates": steps // 4 - 250,
            "seeds": np.arange(agents),
            "success": curves,
            "returns": 1_000 * curves,
            "diverged": np.zeros(shape, bool),
            "augmented_replay_ratio": np.full(shape, 0.25 if augments else np.nan),
            "observed_reward_density": np.full(shape, 0.0123),
            "augmented_reward_density": np.full(shape, 0.0456),
            "coverage": np.full(shape, 0.321),
        },
        **{"seconds": 90.0, "about": ABOUT} | about,
    )


ABOUT = {
    "finished": "2026-11-15T18:18:27+00:00",
    "versions": {"augury": "0.1.0", "jax": "0.11.2"},
    "hardware": {"platform": "gpu", "device": "NVIDIA H200", "devices": 2},
}


def three_arms() -> Record:
    return Record(
        name="three",
        title=f"Three arms {MARKUP}",
        about=f"About {MARKUP}",
        figure="6",
        x_axis="steps",
        tasks=TASKS,
        arms=ARMS,
        claims=[
            Claim(says=f"translation beats none {MARKUP}", better="translate", than="none"),
            Claim(says="none beats translation", better="none", than="translate", tasks=("goal2d",)),
            Claim(says="they are alike", alike=("translate", MARKUP), within=0.001, tasks=("goal2d",)),
        ],
        finished=[
            Finished(arm, task, result(task, end, 10 * row + column, augments=arm != "none"))
            for row, task in enumerate(TASKS)
            for column, (arm, end) in enumerate(zip(ARMS, (0.3, 0.95, 0.951), strict=True))
        ],
        command=f"augury study run three.toml --out '{MARKUP}'",
    )


def half_done() -> Record:
    return Record(
        name="half",
        title="Half done",
        about="",
        figure=None,
        x_axis="updates",
        tasks=["walker2d", "ant", "swimmer"],
        arms=["none", "reflect"],
        claims=[Claim(says="reflection helps", better="reflect", than="none", tasks=("ant",))],
        finished=[
            Finished("none", "walker2d", result("walker2d", 1.0, 0)),
            Finished("reflect", "walker2d", result("walker2d", 2.0, 1)),
            Finished("reflect", "ant", result("ant", 2.0, 2)),
        ],
        failed={("ant", "none"): "out of memory <i>here</i>"},
    )


def outcome(record, arm, task) -> Result:
    return next(one.result for one in record.on(task) if one.name == arm)


# ---- the page in a browser ----


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    lacking = [str(path) for path in (CHROMIUM, DRIVER) if not path.exists()]
    lacking += ["selenium"] if webdriver is None else []
    if lacking:
        reason = f"no browser to look at pages with: {', '.join(lacking)} not installed"
        (pytest.fail if os.environ.get("CI_BROWSER") == "required" else pytest.skip)(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_page([three_arms()], folder / "three.html")
    write_page([three_arms(), half_done()], folder / "both.html")
    return folder


class Page:
    """A page in the browser, and what can be seen of it."""

    def __init__(self, browser, path, size=DESKTOP):
        self.browser = browser
        self.size(*size)
        self.scheme("light")
        browser.get(path.as_uri())
        self.wait(lambda: self.run("return performance.getEntriesByName('drawn').length"))

    def wait(self, condition):
        return WebDriverWait(self.browser, 30, poll_frequency=0.05).until(lambda _: condition())

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def texts(self, selector):
        return [element.text for element in self.all(selector)]

    def one(self, selector, text=None):
        (found,) = [element for element in self.all(selector) if text in (None, element.text)]
        return found

    def size(self, width, height):
        phone = (width, height) == PHONE
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": phone})

    def tap(self, element):
        """With a finger, in its middle."""
        self.run("arguments[0].scrollIntoView({ block: 'center' })", element)
        box = self.run("return arguments[0].getBoundingClientRect().toJSON()", element)
        point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind, points in (("touchStart", [point]), ("touchEnd", [])):
            self.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def scheme(self, value):
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def lines(self):
        """Colours of the lines that are drawn, panel by panel."""
        return self.run("""
            return [...document.querySelectorAll("[data-panel]")].map((panel) =>
              [...panel.querySelectorAll("path.js-line")].map((path) => getComputedStyle(path))
                .filter((style) => parseFloat(style.strokeWidth) > 0).map((style) => style.stroke))""")

    def belts(self):
        """How many belts are drawn, panel by panel."""
        return self.run("""
            return [...document.querySelectorAll("[data-panel]")].map((panel) =>
              panel.querySelectorAll("path.js-fill").length)""")

    def data(self, panel, arm):
        """An arm's line, as given to Plotly."""
        found = self.run(
            """const { data } = document.querySelectorAll("[data-panel]")[arguments[0]];
               return data.filter((trace) => trace.meta?.place === arguments[1])
                 .map(({ x, y }) => ({ x: [...x], y: [...y] }))""",
            panel,
            arm,
        )
        return found[0]

    def background(self):
        return self.run("return getComputedStyle(document.body).backgroundColor")


@pytest.fixture
def page(browser, pages):
    yield Page(browser, pages / "three.html")
    assert browser.get_log("browser") == []


@pytest.fixture
def both(browser, pages):
    yield Page(browser, pages / "both.html")
    assert browser.get_log("browser") == []


BLACK, ORANGE, BLUE = "rgb(0, 0, 0)", "rgb(230, 159, 0)", "rgb(0, 114, 178)"


def test_every_arm_is_a_line_with_a_belt_in_every_panel(page):
    assert page.lines() == [[BLACK, ORANGE, BLUE]] * 2
    assert page.belts() == [3, 3]
    assert page.texts("figcaption") == TASKS
    assert page.texts(".xtitle") == ["environment steps"] * 2
    assert page.texts(".ytitle") == ["success rate (IQM)"] * 2
    assert page.texts(".legend button") == ARMS


def test_curves_are_those_of_the_record(page):
    record = three_arms()
    for panel, task in enumerate(TASKS):
        for arm, name in enumerate(ARMS):
            found, given = page.data(panel, arm), outcome(record, name, task)
            assert found["x"] == given.evaluations["steps"].tolist()
            np.testing.assert_allclose(found["y"], aggregate_curve(given.curves()).middle, rtol=1e-4)


def test_the_legend_hides_line_and_belt_in_every_panel_and_shows_them_again(page):
    button = page.one(".legend button", "translate")
    button.click()
    page.wait(lambda: page.lines() == [[BLACK, BLUE]] * 2)
    assert page.belts() == [2, 2]
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    page.wait(lambda: page.lines() == [[BLACK, ORANGE, BLUE]] * 2)
    assert page.belts() == [3, 3]
    assert button.get_attribute("aria-pressed") == "true"


def test_an_arm_pressed_twice_stands_alone_and_once_more_with_all(page):
    button = page.one(".legend button", "translate")
    ActionChains(page.browser).double_click(button).perform()
    page.wait(lambda: page.lines() == [[ORANGE]] * 2)
    ActionChains(page.browser).double_click(button).perform()
    page.wait(lambda: page.lines() == [[BLACK, ORANGE, BLUE]] * 2)


def test_the_horizontal_axis_can_be_updates(page):
    page.one("fieldset label", "updates").click()
    page.wait(lambda: page.texts(".xtitle") == ["updates"] * 2)
    given = outcome(three_arms(), "translate", "panda-push")
    assert page.data(1, 1)["x"] == given.evaluations["updates"].tolist()
    page.wait(lambda: page.texts(".xtick text")[-1] in ("25k", "30k"))
    page.one("fieldset label", "steps").click()
    page.wait(lambda: page.data(1, 1)["x"] == given.evaluations["steps"].tolist())


def test_the_statistic_can_be_the_mean(page):
    before = page.data(0, 1)["y"]
    page.one("fieldset label", "mean").click()
    page.wait(lambda: page.texts(".ytitle") == ["success rate (mean)"] * 2)
    mean = aggregate_curve(outcome(three_arms(), "translate", "goal2d").curves(), "mean")
    np.testing.assert_allclose(page.data(0, 1)["y"], mean.middle, rtol=1e-4)
    assert page.data(0, 1)["y"] != before
    assert "the mean over agents" in page.one(".panels + .hint").text


def test_what_is_chosen_survives_other_choices(page):
    page.one(".legend button", "none").click()
    page.one("fieldset label", "updates").click()
    page.one("fieldset label", "mean").click()
    page.wait(lambda: page.texts(".ytitle") == ["success rate (mean)"] * 2)
    assert page.lines() == [[ORANGE, BLUE]] * 2
    assert page.texts(".xtitle") == ["updates"] * 2


def test_a_panel_can_be_looked_at_closer(page):
    def shown():
        return page.run("return document.querySelector('[data-panel]')._fullLayout.xaxis.range")

    panel, everything = page.all("[data-panel]")[0], shown()
    drag = ActionChains(page.browser).move_to_element(panel).click_and_hold()
    drag.move_by_offset(60, 40).release().perform()
    page.wait(lambda: shown()[1] - shown()[0] < 0.5 * (everything[1] - everything[0]))
    closer = shown()
    page.one(".legend button", "none").click()
    page.wait(lambda: page.lines()[0] == [ORANGE, BLUE])
    assert shown() == closer
    ActionChains(page.browser).double_click(panel).perform()
    page.wait(lambda: shown() == everything)


def test_keys_do_what_the_pointer_does(page):
    page.one("fieldset input[value=steps]").send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page.texts(".xtitle") == ["updates"] * 2)
    page.one(".legend button", "translate").send_keys(Keys.SPACE)
    page.wait(lambda: page.lines() == [[BLACK, BLUE]] * 2)


def test_numbers_stand_beside_the_pointer(page):
    ActionChains(page.browser).move_to_element(page.all("[data-panel]")[0]).perform()
    page.wait(lambda: page.one(".reading").is_displayed())
    where, *rows = page.one(".reading").text.splitlines()
    x = int(re.fullmatch(r"([\d,]+) environment steps", where)[1].replace(",", ""))
    given = outcome(three_arms(), "translate", "goal2d")
    curve = aggregate_curve(given.curves())
    at = given.evaluations["steps"].tolist().index(x)
    wanted = f"translate {curve.middle[at]:.2f} [{curve.low[at]:.2f}, {curve.high[at]:.2f}]"
    assert wanted in rows
    assert any(row.startswith(MARKUP) for row in rows)
    assert rows[-1].startswith("none ")  # the lowest


def test_claims_have_verdicts_in_words_with_numbers_and_agents(page):
    assert page.texts(".says") == [
        f"“translation beats none {MARKUP}”",
        "“none beats translation”",
        "“they are alike”",
    ]
    assert page.texts(".verdict") == ["✓ supported"] * 2 + ["✗ contradicted", "? undecided"]
    assert page.texts(".verdicts .task") == [*TASKS, "goal2d", "goal2d"]
    supported, *_, undecided = page.texts(".verdicts .text")
    assert re.match(r"0\.\d+ \[0\.\d+, 0\.\d+\], asked for more than 0", supported)
    assert "agents an arm would decide it" in undecided
    assert page.texts(".verdicts .agents") == ["8 agents an arm"] * 4
    # A drawn interval that supports its claim lies within the shade, the one that contradicts it outside.
    inside = page.run("""
        return [...document.querySelectorAll(".interval")].map((drawn) => {
          const box = (part) => drawn.querySelector(part).getBoundingClientRect();
          const shade = box("rect"), bar = box("line:not(.zero)"), zero = box(".zero");
          return [
            bar.left >= shade.left && bar.right <= shade.right, bar.right < shade.left,
            shade.left < zero.left - 1,
          ];
        })""")
    assert inside[:3] == [[True, False, False], [True, False, False], [False, True, False]]
    assert inside[3][2]  # alike: less than none is as good as more


def test_the_table_has_the_numbers_of_every_arm(page):
    given = outcome(three_arms(), "translate", "goal2d")
    final = [f"{part[-1]:.2f}" for part in aggregate_curve(given.curves())]
    areas = [f"{part:.2f}" for part in aggregate_curve(area(given.evaluations["steps"], given.curves()))]
    assert page.texts("tr.task") == TASKS
    rows = page.texts("tbody tr:not(.task)")
    assert len(rows) == 6
    reached = r"\d+k \[\d+k, >?\d+k\]"
    wanted = f"translate 8 120k {final[0]} [{final[1]}, {final[2]}] {areas[0]} [{areas[1]}, {areas[2]}] "
    assert rows[1].startswith(wanted)
    assert re.fullmatch(rf"{reached} 0\.25 1\.23% 4\.56% 32\.1%", rows[1].removeprefix(wanted))
    assert rows[0].startswith("none 8 120k")
    assert rows[0].endswith(">120k – 1.23% – 32.1%")


def test_origin_and_command_are_told_and_the_command_can_be_copied(page):
    facts = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert facts == {
        "Hardware": "2 × NVIDIA H200 (gpu)",
        "Wall time": "2 min in 2 fleets",
        "Finished": "15 November 2026, 18:18 UTC",
        "Versions": "augury 0.1.0, jax 0.11.2",
    }
    assert page.one(".command code").text == three_arms().command
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    page.browser.execute_cdp_cmd("Browser.grantPermissions", grant)
    page.one(".copy").click()
    page.wait(lambda: page.one(".copy").text == "Copied")
    read = "navigator.clipboard.readText().then(arguments[0])"
    assert page.browser.execute_async_script(read) == three_arms().command


def test_wall_time_counts_once_what_went_on_at_the_same_time():
    def fleet(task, finished, seconds):
        about = ABOUT | {"finished": f"2026-11-15T{finished}:00+00:00"}
        return Finished("none", task, result(task, 1.0, 0, seconds=seconds, about=about))

    first = fleet("goal2d", "10:10", 600.0)
    assert wall_time([first]) == wall_time([first, first]) == "10 min in 1 fleet"
    inside, beyond = fleet("ant", "10:09", 60.0), fleet("ant", "10:15", 600.0)
    assert wall_time([first, inside]) == "10 min in 2 fleets"
    assert wall_time([beyond, inside, first]) == "15 min in 3 fleets"
    assert wall_time([first, fleet("ant", "12:00", 300.0)]) == "15 min in 2 fleets"
    assert wall_time([]) == ""


def test_names_are_text_everywhere(page):
    record = three_arms()
    assert page.browser.title == record.title
    assert page.one("h2").text == record.title
    assert page.one(".about").text == record.about
    assert not page.all("main b")
    assert [row for row in page.texts("tbody th") if row == MARKUP] == [MARKUP] * 2


def test_nothing_is_fetched(page):
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    policy = page.one("meta[http-equiv]").get_attribute("content")
    assert policy.startswith("default-src 'none'; ")


def test_dark_follows_the_reader_at_once_and_paper_is_light(page):
    light = page.background()
    page.scheme("dark")
    page.wait(lambda: page.lines()[0][0] != BLACK)
    assert page.lines() == [["rgb(242, 242, 242)", ORANGE, BLUE]] * 2
    dark = page.background()
    assert max(map(int, re.findall(r"\d+", dark)[:3])) < 50 < min(map(int, re.findall(r"\d+", light)[:3]))
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.wait(lambda: page.lines() == [[BLACK, ORANGE, BLUE]] * 2)
    page.run("dispatchEvent(new Event('afterprint'))")
    page.wait(lambda: page.lines()[0][0] != BLACK)
    page.scheme("light")
    page.wait(lambda: page.lines()[0][0] == BLACK)
    assert page.background() == light


def test_it_prints(page):
    paper = page.browser.execute_cdp_cmd("Page.printToPDF", {})
    assert base64.b64decode(paper["data"]).startswith(b"%PDF")


def test_it_fits_a_phone(both):
    both.size(*PHONE)
    both.wait(lambda: both.run("return innerWidth") == PHONE[0])
    both.wait(lambda: both.run("return document.querySelector('[data-panel]')._fullLayout.width") < PHONE[0])
    assert both.run("return document.documentElement.scrollWidth") <= PHONE[0]
    first, second = (panel.rect for panel in both.all("[data-panel]")[:2])
    assert first["x"] == second["x"]
    assert first["y"] + first["height"] <= second["y"]


def test_a_finger_reads_and_hides_on_a_phone(browser, pages):
    page = Page(browser, pages / "three.html", PHONE)
    page.tap(page.all("[data-panel]")[0])
    page.wait(lambda: page.one(".reading").is_displayed())
    assert "translate 0." in page.one(".reading").text
    box = page.one(".reading").rect
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE[0]
    page.tap(page.one(".legend button", "translate"))
    page.wait(lambda: page.lines()[0] == [BLACK, BLUE])
    assert not page.one(".reading").is_displayed()
    assert browser.get_log("browser") == []


def test_panels_stand_in_a_row_where_there_is_room(page):
    first, second = (panel.rect for panel in page.all("[data-panel]"))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]


def test_several_studies_are_listed_and_chosen_apart(both):
    assert both.texts("nav a") == [three_arms().title, "Half done"]
    counts = ["✓ 2 supported", "✗ 1 contradicted", "? 1 undecided"]
    assert both.texts("nav li:first-child .count") == counts
    both.one("nav a", "Half done").click()
    both.wait(lambda: len(both.lines()) == 4 and all(both.lines()))
    assert both.texts(".xtitle") == ["environment steps"] * 2 + ["updates"] * 2
    both.one("#study-1 .legend button", "none").click()
    both.wait(lambda: both.lines() == [[ORANGE, BLUE]] * 2 + [[BLACK, ORANGE], [ORANGE]])


def test_arms_that_are_not_there_are_told_with_the_reason(both):
    assert both.one("#study-2 .notice").text == "! 3 of 6 arms are missing: 1 failed, 2 not run yet"
    assert both.texts("#study-2 tr.absent th") == ["none", "none", "reflect"]
    reasons = ["failed: out of memory <i>here</i>", "not run yet", "not run yet"]
    assert both.texts("#study-2 tr.absent td") == reasons
    assert both.texts("#study-2 .plot.empty") == ["not run yet"]
    assert both.texts("#study-2 .verdict") == ["? undecided"]


def test_returns_have_an_axis_of_their_own(both):
    both.one("nav a", "Half done").click()
    both.wait(lambda: len(both.texts(".ytitle")) == 4)
    assert both.texts(".ytitle")[2:] == ["mean return (IQM)"] * 2
    _, high = both.run("return document.querySelectorAll('[data-panel]')[2]._fullLayout.yaxis.range")
    assert high > 1_900
    reflect = next(row for row in both.texts("#study-2 tbody tr") if row.startswith("reflect 8"))
    assert re.match(
        r"reflect 8 120k [\d,]{5} \[[\d,]+, [\d,]+\] [\d,]{5} \[[\d,]+, [\d,]+\] – 0\.25", reflect
    )


# ---- the page as a file ----


def data_of(path):
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text())
    return json.loads(embedded)


def test_the_same_studies_give_the_same_page_and_nothing_else(tmp_path):
    for name in ("one.html", "other.html"):
        write_page([three_arms(), half_done()], tmp_path / name)
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    assert one.read_bytes() == other.read_bytes()
    assert one.stat().st_size < 10e6
    assert {path.name for path in tmp_path.iterdir()} == {"one.html", "other.html"}


def test_scores_that_are_not_finite_are_left_out_of_curves(tmp_path):
    record = half_done()
    outcome(record, "none", "walker2d").evaluations["returns"][:5, 6:] = np.nan
    write_page([record], tmp_path / "page.html")
    arm = data_of(tmp_path / "page.html")["studies"][0]["panels"][0]["arms"][0]
    assert arm["iqm"]["middle"][6:] == [None] * 6
    assert None not in arm["iqm"]["middle"][:6]
    study_figure(record, tmp_path)


def test_a_study_that_has_not_been_run_has_a_page(tmp_path):
    record = Record("new", "New", "", None, "steps", ["goal2d"], ["none"], [], [])
    write_page([record], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "1 of 1 arms are missing: 1 not run yet" in page
    assert 'class="switches"' not in page


# ---- figures for papers ----


def colours_in(path) -> set[tuple[int, ...]]:
    pixels = (imread(path)[..., :3] * 255).round().astype(int)
    return {tuple(colour) for colour in np.unique(pixels.reshape(-1, 3), axis=0)}


def test_a_legend_fits_its_figure(tmp_path, monkeypatch):
    """Seven arms make columns of three, two and two, wherever the long names are."""
    widths = []
    drawn = SubFigure.legend

    def looked_at(place, *arguments, **options):
        legend = drawn(place, *arguments, **options)
        widths.append(lambda: (legend.get_window_extent(), place.bbox))
        return legend

    monkeypatch.setattr(SubFigure, "legend", looked_at)
    for long in itertools.combinations(range(7), 2):
        arms = [f"arm {place}" + " with a long name" * (place in long) for place in range(7)]
        finished = [Finished(arm, "goal2d", result("goal2d", 1.0, 0)) for arm in arms]
        study_figure(Record("seven", "", "", None, "steps", ["goal2d"], arms, [], finished), tmp_path)
    assert len(widths) == 21
    for extent, place in (look() for look in widths):
        assert place.x0 <= extent.x0 < extent.x1 <= place.x1


def test_a_figure_has_the_arms_of_its_study_and_is_the_same_each_time(tmp_path):
    first = study_figure(three_arms(), tmp_path)
    assert [path.name for path in first] == ["three.png", "three.pdf"]
    assert {(0, 0, 0), (0xE6, 0x9F, 0x00), (0x00, 0x72, 0xB2)} <= colours_in(first[0])
    assert (0x00, 0x9E, 0x73) not in colours_in(first[0])  # a fourth arm's colour
    again = tmp_path / "again"
    again.mkdir()
    for one, other in zip(first, study_figure(three_arms(), again), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_panels_of_a_figure_make_a_row_until_they_are_many(tmp_path):
    def shape(panels):
        tasks = [f"task {number}" for number in range(panels)]
        finished = [Finished("_none", task, result("goal2d", 1.0, 0)) for task in tasks]
        record = Record(f"of-{panels}", "", "", None, "updates", tasks, ["_none"], [], finished)
        height, width, _ = imread(study_figure(record, tmp_path)[0]).shape
        return width, height

    one, four, five, six = (shape(panels) for panels in (1, 4, 5, 6))
    assert one[0] < four[0] < five[0]
    assert four[1] == five[1] < six[1]
    assert six[0] < four[0]
