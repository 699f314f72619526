#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the scenarios of a file of tests/e2e, or the random share $MC_SCENARIO_SHARE of them.

scenarios.py bench_test.py
"""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

from sharing import share_of


def cases_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases_of(one)
        else:
            yield one


def main() -> int:
    loader = unittest.TestLoader()
    found = loader.discover(str(Path(__file__).resolve().parent / "e2e"), sys.argv[1])
    if loader.errors or not found.countTestCases():
        print(*loader.errors, f"no scenario of {sys.argv[1]} can be run", file=sys.stderr)
        return 1
    chosen = share_of([*cases_of(found)], "MC_SCENARIO_SHARE")
    return 0 if unittest.TextTestRunner().run(unittest.TestSuite(chosen)).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
