# SPDX-License-Identifier: Apache-2.0
"""What the measurement scripts share: candidates of the corpus, judged on a GPU."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from corpus_sets import Case, case_named  # noqa: E402
from expectation import Json, told_by  # noqa: E402
from judging import Judge, end_with_children  # noqa: E402

# Correctness has tests of its own: one trial is enough to let a candidate be timed.
OPTIONS = ("--backend", "cuda", "--trials", "1", "--no-shapes")

__all__ = ["ROOT", "Case", "Json", "case_named", "cases_named"]


def parser(description: str, candidates: Sequence[str]) -> argparse.ArgumentParser:
    """With what every script takes."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--musacoder", default=str(ROOT / "build/dev/bin/musacoder"))
    made.add_argument("--jobs", type=int, default=4, help="candidates made ready at once")
    made.add_argument("--out", type=Path, help="write the figures as JSON to this file")
    made.add_argument("--option", action="append", default=[], help="passed on to eval")
    limit = "seconds for each process that measures; what it has not done by then is missing"
    made.add_argument("--limit", type=float, help=limit)
    names = "names in the corpus: family/name, kernelbench:1/19, or a case of tests/corpus/gpu"
    made.add_argument("candidates", nargs="*", default=list(candidates), help=names)
    return made


def cases_named(parser: argparse.ArgumentParser, names: Sequence[str]) -> list[Case]:
    """Ends the script with one line where there is no such candidate."""
    try:
        return [case_named(name) for name in names]
    except LookupError as error:
        parser.error(str(error))


def performances(
    arguments: argparse.Namespace, cases: Sequence[Case], options: Sequence[str] = ()
) -> list[Json | None]:
    """The verdict's `performance` of each; None where it has none, and a line that says why.

    Up to --jobs candidates are compiled, checked and started at once, but each is timed with the
    device to itself.
    """
    options = (*OPTIONS, *options, *arguments.option)
    end_with_children()
    judge = Judge(arguments.musacoder, arguments.jobs, options, arguments.limit)
    found: list[Json | None] = []
    for case, result in zip(cases, judge.results(cases), strict=True):
        if result is None:
            print(f"{case.name}: not measured within the limit")
            found.append(None)
            continue
        outcome = result["verdict"]["outcome"]
        performance = outcome.get("performance")
        if performance is None:
            print(f"{case.name}: not measured: {outcome['kind']} {told_by(outcome)}")
        found.append(performance)
    return found


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of tries or processes")
    return int(text)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def write(path: Path | None, figures: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(figures, indent=2) + "\n")
