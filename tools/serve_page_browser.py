# SPDX-License-Identifier: Apache-2.0
"""Opens the page of a live `musacoder serve` in headless Chromium and tries what a reader does.

usage: serve_page_browser.py [--screens FOLDER]

Needs what report_browser.py needs, and aiohttp for the service, whose verifier is the tests' own.
Fails on an error in the console, figures that do not move, hostile names that become markup, a page
wider than the window, and keys that do nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from report_browser import Failure, browser, check_width, expect, look, press
from report_browser import wait_for
from selenium.webdriver import Chrome, Keys

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from musacoder import Client  # noqa: E402

SERVER = [sys.executable, str(ROOT / "python/musacoder/server/__main__.py"), "--port", "0"]
JUDGE = [sys.executable, str(ROOT / "tests/serve/noop_judge.py")]
TOKEN = "sesame-sesame-sesame"
HOSTILE = "<img src=x onerror=document.title=1>"


def ask(client: Client, count: int) -> None:
    for i in range(count):
        task = {"id": f"reduction/row_{i % 7}" if i % 5 else HOSTILE, "code": "class Model: pass"}
        client.evaluate(task, ("yes", "fail", "unsupported", "yes")[i % 4])


def rows(driver: Chrome, table: str) -> list[str]:
    query = "return [...document.querySelectorAll(arguments[0])].map((row) => row.textContent)"
    found: list[str] = driver.execute_script(query, f"#{table} tbody tr")
    return found


def try_page(driver: Chrome, url: str, client: Client, screens: Path | None) -> None:
    look(driver, 1400, "light")
    driver.get(url)
    field = driver.find_element("id", "token")
    wait_for(field.is_displayed, "a service with tokens asks for one")
    field.send_keys("wrong-wrong-wrong" + Keys.ENTER)
    time.sleep(0.5)
    expect(field.is_displayed(), "a wrong token shows nothing")
    field.clear()
    field.send_keys(TOKEN + Keys.ENTER)
    wait_for(lambda: len(rows(driver, "recent")) > 0, "the right one shows recent verdicts")
    expect(any(HOSTILE in row for row in rows(driver, "recent")), "a hostile name is text")
    before = driver.find_element("id", "figures").text
    ask(client, 20)
    wait_for(lambda: driver.find_element("id", "figures").text != before, "figures move")
    for table in ("outcomes", "devices", "slowest", "accounts"):
        expect(rows(driver, table), f"{table} has rows")
    driver.execute_script("document.activeElement.blur()")
    press(driver, "p")
    pressed = driver.find_element("id", "pause").get_attribute("aria-pressed")
    expect(pressed == "true", "p pauses")
    before = driver.find_element("id", "figures").text
    ask(client, 10)
    time.sleep(2.5)
    expect(driver.find_element("id", "figures").text == before, "a paused page stays")
    press(driver, "p")
    wait_for(lambda: driver.find_element("id", "figures").text != before, "p goes on")
    time.sleep(8 if screens else 0)
    for width in (390, 1400):
        for theme in ("light", "dark"):
            look(driver, width, theme)
            check_width(driver, width)
            if screens:
                driver.save_screenshot(str(screens / f"serve-{width}-{theme}.png"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Tries the service's page in a browser.")
    parser.add_argument("--screens", type=Path, help="folder for pictures")
    options = parser.parse_args()
    if options.screens:
        options.screens.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "MUSACODER_TOKEN": TOKEN}
    command = [*SERVER, "--", *JUDGE]
    driver = browser()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            client = Client(url, token=TOKEN)
            ask(client, 40)
            try_page(driver, url, client, options.screens)
            entries = driver.get_log("browser")  # type: ignore[no-untyped-call]
            refused = [one for one in entries if "401" not in one["message"]]
            expect(not refused, f"nothing is wrong in the console {refused or ''}")
        except Failure:
            return 1
        finally:
            driver.quit()
            process.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
