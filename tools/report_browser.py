# SPDX-License-Identifier: Apache-2.0
"""Opens a report in headless Chromium and tries what a reader does with it.

usage: report_browser.py PAGE.html [--screens FOLDER] [--seconds 2]

Needs the Debian packages chromium and chromium-driver, and selenium of PyPI. Fails on an error in
the console, on sorting, searching or keys that do nothing, and on a page that loads too slowly.
With --screens, FOLDER gets pictures at 390 and 1400 pixels, light and dark.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService, Keys

ROWS = "[...document.querySelectorAll('#samples tbody tr')].filter((row) => !row.hidden)"
IS_OPEN = "return document.getElementById('viewer').open"
WAIT_S = 10.0


class Failure(Exception):
    """A check that failed."""


def expect(holds: object, what: str) -> None:
    print(("ok      " if holds else "FAILED  ") + what)
    if not holds:
        raise Failure(what)


def wait_for(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    expect(condition(), what)


def browser() -> Chrome:
    options = ChromeOptions()
    arguments = ["--headless=new", "--hide-scrollbars", "--force-device-scale-factor=1"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses to run as root with it.
    for argument in arguments:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options, ChromeService("/usr/bin/chromedriver"))


def look(driver: Chrome, width: int, theme: str) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 800}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": theme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def press(driver: Chrome, *keys: str) -> None:
    for key in keys:
        driver.switch_to.active_element.send_keys(key)


def check_loading(driver: Chrome, url: str, seconds_max: float) -> None:
    begin = time.monotonic()
    driver.get(url)
    drawn = "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0](1)))"
    driver.execute_async_script(drawn)
    seconds = time.monotonic() - begin
    size = driver.execute_script("return document.querySelectorAll('*').length")
    expect(seconds < seconds_max, f"loaded and drawn in {seconds:.2f} s, {size} elements")


def check_sorting(driver: Chrome) -> None:
    first = f"return {ROWS}.map((row) => row.cells[0].textContent)"
    button = driver.find_element("css selector", "#samples thead th:first-child button")
    begin = time.monotonic()
    driver.execute_script("arguments[0].click(); document.body.offsetHeight", button)
    seconds = time.monotonic() - begin
    up = driver.execute_script(first)
    head = driver.find_element("css selector", "#samples thead th:first-child")
    expect(head.get_attribute("aria-sort") == "ascending", "the head says how it is sorted")
    button.click()
    down = driver.execute_script(first)
    expect(up[0] == down[-1] and up[0] != up[-1], f"rows are sorted ({seconds:.2f} s)")


def check_search(driver: Chrome) -> None:
    count = f"return {ROWS}.length"
    num_all = driver.execute_script(count)
    press(driver, "/")
    wanted = driver.execute_script(f"return {ROWS}[0].cells[0].textContent.trim().split(/\\s/)[0]")
    press(driver, wanted)
    wait_for(lambda: 0 < driver.execute_script(count) < num_all, "a search leaves fewer rows")
    all_match = f"return {ROWS}.every((row) => row.textContent.includes(arguments[0]))"
    expect(driver.execute_script(all_match, wanted), "all of them match")
    press(driver, Keys.CONTROL + "a", Keys.BACKSPACE)
    wait_for(lambda: driver.execute_script(count) == num_all, "an empty search shows all")
    press(driver, Keys.ESCAPE)
    outcomes = driver.find_element("css selector", "#filters select[name=outcome]")
    outcomes.send_keys(Keys.ARROW_DOWN)
    wait_for(lambda: driver.execute_script(count) < num_all, "an outcome leaves fewer rows")
    outcomes.send_keys(Keys.ARROW_UP)
    wait_for(lambda: driver.execute_script(count) == num_all, "all outcomes show all")


def check_keyboard(driver: Chrome, screens: Callable[[str], None]) -> None:
    driver.execute_script("document.activeElement.blur()")
    press(driver, "j", "j", "k")
    row = f"return {ROWS}.indexOf(document.activeElement.closest('tr'))"
    expect(driver.execute_script(row) == 0, "j and k move between rows")
    title = "return document.getElementById('viewer-title').textContent"
    press(driver, Keys.ENTER)
    wait_for(lambda: driver.execute_script(IS_OPEN), "Enter opens a sample")
    spans = "return document.querySelectorAll('#viewer pre.code span').length"
    wait_for(lambda: driver.execute_script(spans) > 0, "its source is highlighted")
    opened = driver.execute_script(title)
    screens("sample")
    press(driver, "j")
    wait_for(lambda: driver.execute_script(title) != opened, "j opens the next one")
    press(driver, Keys.ESCAPE)
    wait_for(lambda: not driver.execute_script(IS_OPEN), "Esc closes it")
    expect(driver.execute_script(row) == 1, "the focus is on the row of the sample")


def check_without_scripts(driver: Chrome, url: str, screens: Callable[[str], None]) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    driver.get("about:blank")
    driver.get(url)
    try:
        document = driver.execute_cdp_cmd("DOM.getDocument", {})["root"]["nodeId"]

        def box(selector: str) -> dict[str, object]:
            query = {"nodeId": document, "selector": selector}
            node = driver.execute_cdp_cmd("DOM.querySelector", query)["nodeId"]
            found: dict[str, object] = driver.execute_cdp_cmd("DOM.getBoxModel", {"nodeId": node})
            return found

        for selector in ("#runs table", "#samples tbody tr", "#sources details summary"):
            expect(box(selector), f"without JavaScript {selector} is there")
        screens("plain")
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def check_console(driver: Chrome) -> None:
    entries = [
        entry
        for entry in driver.get_log("browser")  # type: ignore[no-untyped-call]
        if entry["level"] != "INFO"
    ]
    expect(not entries, f"nothing is wrong in the console {entries or ''}")


def check_width(driver: Chrome, width: int) -> None:
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    expect(wide <= width, f"the page is not wider than {width} pixels ({wide})")


def try_all(driver: Chrome, options: argparse.Namespace) -> None:
    url = options.page.resolve().as_uri()

    def screens(name: str) -> None:
        if options.screens:
            driver.save_screenshot(str(options.screens / f"{name}.png"))

    look(driver, 1400, "light")
    check_loading(driver, url, options.seconds)
    check_sorting(driver)
    check_search(driver)
    check_keyboard(driver, screens)
    for width in (390, 1400):
        for theme in ("light", "dark"):
            look(driver, width, theme)
            driver.get(url)
            check_width(driver, width)
            sections = "return [...document.querySelectorAll('section[id]')].map((s) => s.id)"
            for section in driver.execute_script(sections) if options.screens else []:
                if section != "sources":
                    scroll = "document.getElementById(arguments[0]).scrollIntoView()"
                    driver.execute_script(
                        "scrollTo(0, 0)" if section == "runs" else scroll, section
                    )
                    time.sleep(0.1)
                    screens(f"{width}-{theme}-{section}")
    check_console(driver)
    look(driver, 1400, "light")
    check_without_scripts(driver, url, screens)
    check_console(driver)


def main() -> int:
    parser = argparse.ArgumentParser(description="Tries a report in a browser.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--screens", type=Path, help="folder for pictures")
    parser.add_argument("--seconds", type=float, default=2.0, help="the longest that it may load")
    options = parser.parse_args()
    if options.screens:
        options.screens.mkdir(parents=True, exist_ok=True)
    driver = browser()
    try:
        try_all(driver, options)
    except Failure:
        return 1
    finally:
        driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
