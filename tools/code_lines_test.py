# SPDX-License-Identifier: Apache-2.0
"""Tests of the lines that count as code, and of budgets."""

from __future__ import annotations

import unittest

from code_lines import breaches, counts_of, in_cpp, in_python, room_of

CPP = '// One.\n\nint a;  // Two.\n/* Three.\nFour. */ int b;\nconst char* c = R"(\n)";\n'
PYTHON = '"""One.\n\nTwo."""\n\n# Three.\nA = """a\nb"""\n\n\ndef f() -> None:\n    """Four."""\n'


class CodeLines(unittest.TestCase):
    def test_comments_docstrings_and_blank_lines_are_no_code(self) -> None:
        self.assertEqual(in_cpp(CPP), 4)
        self.assertEqual(in_python(PYTHON), 3)

    def test_tests_and_experiments_are_not_counted(self) -> None:
        paths = ["src/core/a.cc", "src/core/a_test.cc", "lab/a.py", "python/report/tests/a.py"]
        counts = counts_of((path, "x = 1\n") for path in [*paths, "tools/a.py", "device/a.h"])
        self.assertEqual(counts["C++"], {"src/core": 1, "device": 1})
        self.assertEqual(counts["Python"], {"tools": 1})
        self.assertEqual(room_of("python/harness/judge/a.py"), "python/harness")

    def test_a_budget_is_neither_exceeded_nor_far_above(self) -> None:
        counts = counts_of([("src/core/a.cc", "int a;\n" * 100)])
        for budget, says in ((99, "more than its budget"), (100, ""), (206, "lower its budget")):
            found = list(breaches(counts, {"C++": {"src/core": budget}}))
            self.assertEqual(len(found), 1 if says else 0)
            self.assertTrue(all(says in one for one in found))
        self.assertEqual(len(list(breaches(counts, {}))), 1)


if __name__ == "__main__":
    unittest.main()
