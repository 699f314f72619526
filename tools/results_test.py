# SPDX-License-Identifier: Apache-2.0
"""Rows of results are refused where their form is wrong or their command is gone."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

import results

ROW: results.Row = {
    "claim": "Honest kernels pass",
    "value": 47,
    "unit": "of 47",
    "interval": None,
    "bar": "all",
    "machine": "two cores",
    "commit": "53938f2",
    "date": "2026-11-23",
    "command": "tests/run_corpus.py --musacoder build/dev/bin/musacoder honest",
    "kind": "cpu",
}

PROGRAM = """#!/bin/sh
case "$*" in
  --help) echo 'eval' ;;
  'eval --help') echo '--jobs' ;;
  *) exit 2 ;;
esac
"""

# A change of the row above, and words of the resulting finding.
FORMS: tuple[tuple[dict[str, object], str], ...] = (
    ({"value": "47"}, "value is a number"),
    ({"kind": "tpu"}, "kind: cpu or gpu"),
    ({"commit": "HEAD"}, "commit"),
    ({"date": "yesterday"}, "date"),
    ({"interval": [48, 50]}, "interval"),
    ({"note": "more"}, "members: note"),
)

COMMANDS = (
    ("musacoder eval --jobs 2", ""),
    ("musacoder eval --job 2", "no option --job"),
    ("musacoder fly", "no subcommand fly"),
    ("X=1 tests/run_corpus.py --dialect musa honest && ./run.sh learn --quick --seed 2", ""),
    ("tests/run_corpora.py honest", "there is no tests/run_corpora.py"),
    ("tests/run_corpus.py --fast honest", "run_corpus.py has no option --fast"),
    ("./run.sh learn --speedy 2", "run.sh has no option --speedy"),
    ("./run.sh fly", "run.sh has no command fly"),
    ("build/dev/bin/ptx_bench", ""),
    ("build/dev/bin/forge_test", ""),
    ("build/dev/bin/emu_rate", "there is no program emu_rate"),
    ("python3 tests/learn/tokenizer_test.py", ""),
    ("devices_rate.py --turns 2", "there is no devices_rate.py"),
)


class Results(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name) / "musacoder"
        self.program.write_text(PROGRAM)
        os.chmod(self.program, 0o755)

    def test_a_row_of_the_right_form_whose_command_exists_is_taken(self) -> None:
        self.assertEqual([*results.findings_of(ROW, self.program)], [])

    def test_a_wrong_form_is_refused(self) -> None:
        for change, words in FORMS:
            with self.subTest(change=change):
                found = [*results.findings_of({**ROW, **change}, self.program)]
                self.assertIn(words, " ".join(found))

    def test_a_command_that_is_gone_is_refused(self) -> None:
        for command, words in COMMANDS:
            with self.subTest(command=command):
                found = " ".join(results.command_findings(command, self.program))
                self.assertIn(words, found)
                self.assertEqual(found == "", words == "")

    def test_the_page_has_each_figure_with_its_interval_and_command(self) -> None:
        row = {**ROW, "value": 27.7, "unit": "points", "interval": [23.6, 31.6]}
        text = results.page({"verdicts": [row]})
        self.assertIn("| **27.7** points [23.6, 31.6] | all |", text)
        self.assertIn(f"| 1: `{ROW['command']}` | two cores | 2026-11-23, 53938f2 |", text)


if __name__ == "__main__":
    unittest.main()
