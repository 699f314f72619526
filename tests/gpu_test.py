#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All that needs a GPU: judges candidates with `--backend cuda`, and looks at what is left behind.

  gpu_test.py --musacoder build/dev/bin/musacoder [--jobs 8] [--only PATTERN] [--sets gpu,honest]

The set gpu (tests/corpus/gpu) holds faults, cheats at timing, cheats about whose kernels do the
work, and their honest look-alikes; its expected.json is described in expectation.py. Any other set
of run_corpus.py can be judged too. Prints a line for each surprise and a summary for each set.
All inputs follow from a seed that is another in each run and is printed; `--seed N` repeats them.
Exits 0 when every set reaches its bar and nothing is left on the device, 77 without a GPU.

The set remoting holds attacks on the device process by somebody who had not seen its code; leavers
and readers among them (leaves_magic, reads_magic) meet in one process with --jobs 1.
"""

from __future__ import annotations

import argparse
import sys

from corpus_sets import SETS, cases_of
from gpu_use import left_in_the_end, num_gpus, use_now
from judging import Judge, end_with_children, run_set, seed_of

SKIPPED = 77


def set_names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in SETS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such set: {', '.join(unknown)}")
    return names


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--musacoder", required=True)
    parser.add_argument("--jobs", type=int, default=8, help="candidates compiled at once")
    parser.add_argument("--only", default="*", help="judge the cases whose name matches")
    parser.add_argument("--sets", type=set_names, default=["gpu", "honest"])
    parser.add_argument("--seed", type=int, help="of all inputs (default: another in each run)")
    parser.add_argument("--keep", help="append the results to this file")
    parser.add_argument("--option", action="append", default=[], help="passed on to eval")
    parser.add_argument("--limit", type=float, help="seconds for all sets together")
    arguments = parser.parse_args()
    end_with_children()
    if not num_gpus():
        print("skipped: nvidia-smi finds no GPU")
        return SKIPPED
    try:
        cases_by_set = cases_of(arguments.sets, arguments.only)
    except LookupError as error:
        parser.error(str(error))
    before = use_now()
    seed = seed_of(arguments.seed)
    options = ("--backend", "cuda", "--seed", seed, "--timeout", "20", *arguments.option)
    judge = Judge(arguments.musacoder, arguments.jobs, options, arguments.limit)
    reached = [run_set(name, cases, judge, arguments.keep) for name, cases in cases_by_set.items()]
    left = left_in_the_end(before)
    for one in left:
        print(f"  left on the device: {one}")
    print("the device is as it was before" if not left else f"{len(left)} things left behind")
    return 0 if all(reached) and not left else 1


if __name__ == "__main__":
    sys.exit(main())
