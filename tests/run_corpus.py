#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the corpus through the command line and compares outcomes with the expected ones.

  run_corpus.py --musacoder build/dev/bin/musacoder [--jobs 2] [--only PATTERN] SET…

SET is one of honest, mutants, answers, hostile, contest, forms, warp128, musa_programs, ptx,
races, triton, triton_mutants, kernelbench, kernelbench_mutants.  A GPU judges them with
--option=--backend=cuda.
Prints a line for each surprise and a summary for each set; exits 0 when every set reaches its bar,
77 when a set's tasks are not there.

$MC_CORPUS_SHARE judges a random share of each set (sharing.py). All inputs follow from a seed that
is another in each run and is printed; `--seed N`, or $MC_CORPUS_SEED, repeats them.

`--dialect musa` judges the ports of the candidates to MUSA (docs/musa.md).
"""

from __future__ import annotations

import argparse
import os
import sys

from corpus_sets import ON_DEVICE, SETS, Case, cases_of
from musa_cases import in_musa
from judging import Judge, end_with_children, run_set, seed_of
from sharing import share_of

SKIPPED = 77
MUSA_BAR = 0.98  # Share of the ported cases whose verdict is as that of the CUDA candidate.


def ported_cases(cases: list[Case], musacoder: str) -> list[Case]:
    """Those that have a port to MUSA; a line for each of the others."""
    ported, reasons = in_musa(cases, musacoder)
    for name, reason in reasons.items():
        print(f"  {name}: no port to MUSA: {reason}")
    return ported


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--musacoder", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="*", help="judge the cases whose name matches")
    parser.add_argument("--keep", help="append the results to this file")
    parser.add_argument("--seed", type=int, help="of all inputs (default: another in each run)")
    parser.add_argument(
        "--dialect",
        choices=("cuda", "musa"),
        default="cuda",
        help="musa: port each candidate by musify and judge it with --dialect musa",
    )
    parser.add_argument("--option", action="append", default=[], help="passed on to eval")
    parser.add_argument("sets", nargs="+", choices=[name for name in SETS if name not in ON_DEVICE])
    parser.add_argument("--limit", type=float, help="seconds for all sets together")
    arguments = parser.parse_args()
    end_with_children()
    if (
        any(name.startswith("kernelbench") for name in arguments.sets)
        and "MC_KERNELBENCH" not in os.environ
    ):
        print("kernelbench: skipped; give a copy's path in MC_KERNELBENCH")
        return SKIPPED
    options = ("--seed", seed_of(arguments.seed), "--timeout", "20", *arguments.option)
    try:
        cases_by_set = cases_of(arguments.sets, arguments.only)
    except LookupError as error:
        parser.error(str(error))
    bar_max = 1.0
    if arguments.dialect == "musa":
        options += ("--dialect", "musa")
        bar_max = MUSA_BAR
        cases_by_set = {
            name: ported_cases(cases, arguments.musacoder) for name, cases in cases_by_set.items()
        }
    judge = Judge(arguments.musacoder, arguments.jobs, options, arguments.limit)
    reached = [
        run_set(name, share_of(cases, "MC_CORPUS_SHARE"), judge, arguments.keep, bar_max)
        for name, cases in cases_by_set.items()
    ]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
