# SPDX-License-Identifier: Apache-2.0
"""python -m report DOCUMENT.json [--out PAGE.html] [--markdown FILE] [--csv FILE] [--junit FILE]
[--inspect FILE]"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from report.document import BadDocument, Json, load
from report.html import render
from report.inspect_log import inspect_log
from report.junit import junit
from report.tables import markdown, samples_csv

USAGE_ERROR = 2


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="report", description="Report of benchmark runs.")
    parser.add_argument("document", type=Path, help="what musacoder report wrote")
    parser.add_argument("--out", metavar="PAGE.html", help="one self-contained page")
    parser.add_argument("--markdown", metavar="FILE", help="the tables of figures")
    parser.add_argument("--csv", metavar="FILE", help="a row a sample")
    parser.add_argument("--junit", metavar="FILE", help="a case a sample, as JUnit's XML")
    parser.add_argument("--inspect", metavar="FILE", help="of one run: a log of inspect-ai")
    options = parser.parse_args(arguments)
    formats: list[tuple[str | None, Callable[[Json], str]]] = [
        (options.out, render),
        (options.markdown, markdown),
        (options.csv, samples_csv),
        (options.junit, junit),
        (options.inspect, inspect_log),
    ]
    if not any(path for path, _ in formats):
        parser.error(
            "nothing to write: give --out, --markdown, --csv, --junit or --inspect (-: to stdout)"
        )
    try:
        document = load(options.document)
        for path, write in formats:
            if path == "-":
                sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
                sys.stdout.write(write(document))
            elif path:
                Path(path).write_text(write(document), encoding="utf-8")
    except BadDocument as error:
        print(f"error: {options.document}: {error}", file=sys.stderr)
        return USAGE_ERROR
    except OSError as error:
        print(f"error: {error.filename or path}: {error.strerror}", file=sys.stderr)
        return USAGE_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
