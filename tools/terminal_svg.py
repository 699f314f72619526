#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A picture of a terminal, made of what commands really print.

  tools/terminal_svg.py --out docs/race.svg --lines 12 'COMMAND' …

Runs each command by bash, takes the first lines of its standard output, and draws them as SVG.
Lines that are left out become one line `…`. The picture carries the same text as a `console`
block in its description, so tests/page_commands.py runs the commands again and compares.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

COLUMNS = 100
CHARACTER, LINE, MARGIN, BAR = 8.4, 19, 16, 34  # Pixels at a font size of 14.
BACKGROUND, TEXT = "#0d1117", "#e6edf3"

# The colour of what a line has; the first one that fits.
COLOURS = (
    (r"^\$ .*", "#7ee787"),
    (r"\b(shared|global|stream)_race\b|\bwrong\b", "#ff7b72"),
    (r"^> .*", "#79c0ff"),
    (r"^(Hint|    hint):.*", "#d2a8ff"),
)


def transcript(commands: list[str], lines_max: int) -> list[str]:
    """Each command behind "$ ", and the first lines that it prints."""
    shown = []
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, text=True, check=True
        )
        lines = done.stdout.rstrip("\n").split("\n")
        shown += [f"$ {command}", *lines[:lines_max], *(["…"] if len(lines) > lines_max else [])]
    return shown


def rows_of(lines: list[str]) -> list[tuple[str, str]]:
    """Rows of the screen with their colours: a long line is broken as a terminal does it."""
    rows = []
    for line in lines:
        colour = next((colour for rule, colour in COLOURS if re.search(rule, line)), TEXT)
        parts = textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""]
        rows += [(part, colour) for part in parts]
    return rows


def spaced(row: str) -> str:
    """Text for SVG, in which browsers join plain spaces."""
    return escape(row).replace(" ", "\u00a0")


def picture(lines: list[str]) -> str:
    rows = rows_of(lines)
    width, height = round(2 * MARGIN + COLUMNS * CHARACTER), BAR + MARGIN + LINE * len(rows)
    dots = "".join(
        f'<circle cx="{MARGIN + 6 + 18 * place}" cy="17" r="5.5" fill="{colour}"/>'
        for place, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    text = "\n".join(
        f'<text x="{MARGIN}" y="{BAR + LINE * place - 5}" fill="{colour}">{spaced(row)}</text>'
        for place, (row, colour) in enumerate(rows, 1)
        if row
    )
    block = "\n".join(["```console", *lines, "```"])
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>A terminal: {escape("; ".join(line[2:] for line in lines if line.startswith("$ ")))}</title>
<desc>
{escape(block)}
</desc>
<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>
{dots}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">
{text}
</g>
</svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=12, help="of each command, at most")
    parser.add_argument("commands", nargs="+")
    arguments = parser.parse_args()
    arguments.out.write_text(picture(transcript(arguments.commands, arguments.lines)))


if __name__ == "__main__":
    main()
