"""How soon does a browser draw a page? Chromium, started afresh each time; and what its console says.

    python benchmarks/page.py results/goal2d/report.html [--turns 6] [--shots docs]

Chromium and its driver are those of the PATH. The first draw is when the first curves stand, counted from the
opening of the page. With --shots, pictures of it are written there: page.png, and page-phone.png in the dark.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import tyro
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)


def main(page: Annotated[Path, tyro.conf.Positional], turns: int = 6, shots: Path | None = None) -> None:
    """Open a page some times.

    Args:
        page: The page.
        turns: How often.
        shots: Where pictures of it go.
    """
    draws: list[float] = []
    said: list[str] = []
    for _ in range(turns):
        with opened(page) as browser:
            draws.append(browser.execute_script("return performance.getEntriesByName('drawn')[0].startTime"))
            for figure in browser.find_elements("css selector", ".figure"):  # drawn when they are looked at
                browser.execute_script("arguments[0].scrollIntoView()", figure)
            said += [entry["message"] for entry in browser.get_log("browser")]
    middle, worst = statistics.median(draws), max(draws)
    print(f"{page.stat().st_size / 1e6:.1f} MB, first draw {middle:,.0f} ms, {worst:,.0f} ms at the most")
    print("\n".join(dict.fromkeys(said)) or "nothing in the console")
    if shots is not None:
        for name, size, dark in (("page", (1300, 1300), False), ("page-phone", (390, 844), True)):
            with opened(page, size, dark) as browser:
                browser.save_screenshot(str(shots / f"{name}.png"))


@contextmanager
def opened(
    page: Path, size: tuple[int, int] = (1300, 1300), dark: bool = False
) -> Iterator[webdriver.Chrome]:
    """The page in a browser of its own, once its first curves are drawn."""
    options = webdriver.ChromeOptions()
    options.binary_location = found("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(found("chromedriver")))
        try:
            width, height = size
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            browser.get(page.resolve().as_uri())
            drawn = "return performance.getEntriesByName('drawn').length"
            WebDriverWait(browser, 60, poll_frequency=0.05).until(lambda _: browser.execute_script(drawn))
            yield browser
        finally:
            browser.quit()


def found(program: str) -> str:
    """Where a program is."""
    if (place := shutil.which(program)) is None:
        raise SystemExit(f"{program} is not installed")
    return place


if __name__ == "__main__":
    tyro.cli(main)
