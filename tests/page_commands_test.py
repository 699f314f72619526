# SPDX-License-Identifier: Apache-2.0
"""Blocks of pages become commands, and wrong commands and other outputs are findings.

usage: python3 -m unittest discover -s tests -p 'page_commands_test.py'
"""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

import page_commands
from page_commands import LONG, NEVER, Command

PAGE = """
```sh
first --a \\
  --b     # The end.

cat <<'END'
text
END
```
<!-- not run: it needs a GPU -->
```console
$ third
printed

printed too
$ fourth
```
<!-- run by --all: an hour -->
```sh
fifth
```
<!-- exits with 3 -->
```sh
sixth
seventh
```
```python
no_command()
```
"""

# The lines that a page shows, those that are printed, and the line that is missing.
OUTPUTS: tuple[tuple[list[str], str, str | None], ...] = (
    (["a", "c"], "a\nb\nc\n", None),
    (["a", "c"], "c\na\n", "c"),
    (["a"], "ab\n", "a"),
    (["a…"], "ab\n", None),
    (["…", "b"], "a\nb\n", None),
    (["1 of 8 in 2.5 s"], "3 of 8 in 11 s\n", None),
    (["pass  1.00"], "pass 1.00\n", None),
    (["wrong -1.00"], "wrong 1.00\n", "wrong -1.00"),
    (["written: /a/b.c"], "written: /tmp/x/y.c\n", None),
    (["written: a/b.c"], "written: a/c.c\n", "written: a/b.c"),
)

PROGRAM = """#!/bin/sh
case "$*" in
  --help) echo 'eval, serve, task; --version' ;;
  'eval --help') echo '--jobs --out' ;;
  'serve --help') echo '--port' ;;
  'task list --help') echo '--suite' ;;
  *) exit 2 ;;
esac
"""

# A command, and the words that a finding about it has; "" = no finding.
CALLS = (
    ("musacoder eval --jobs 2 | cut --bytes 3", ""),
    ("build/dev/bin/musacoder --version", ""),
    ("x=1 M eval --out f && time musacoder eval --job 2", "musacoder eval has no option --job"),
    ("musacoder \\\n  eval --port 1", "musacoder eval has no option --port"),
    ("musacoder serve --port 1 --jobs 2", ""),
    ("musacoder task list --suite x", ""),
    ("musacoder bench", "musacoder has no subcommand bench"),
    ("python3 tests/run_corpus.py --musacoder M honest", ""),
    ("tests/run_corpora.py honest", "there is no tests/run_corpora.py"),
)


class Pages(unittest.TestCase):
    def test_blocks_become_commands(self) -> None:
        commands, findings = page_commands.read_page(PAGE)
        self.assertEqual(findings, [])
        expected = [
            Command(3, "first --a \\\n  --b     # The end."),
            Command(6, "cat <<'END'\ntext\nEND"),
            Command(12, "third", ["printed", "printed too"], NEVER),
            Command(16, "fourth", [], NEVER),
            Command(20, "fifth", [], LONG),
            Command(24, "sixth"),
            Command(25, "seventh", code="3"),
        ]
        self.assertEqual(commands, expected)

    def test_a_block_without_a_language_is_a_finding(self) -> None:
        _, findings = page_commands.read_page("a\n```\nmusacoder eval\n```\n")
        self.assertEqual([line for line, _ in findings], [2])

    def test_shown_lines_are_printed_in_their_order(self) -> None:
        for shown, printed, missing in OUTPUTS:
            with self.subTest(shown=shown, printed=printed):
                self.assertEqual(page_commands.missing_line(shown, printed), missing)


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name) / "bin/musacoder"
        self.program.parent.mkdir()
        self.program.write_text(PROGRAM)
        os.chmod(self.program, 0o755)

    def findings(self, *commands: Command, seconds: int = 60) -> list[tuple[int, str]]:
        return list(page_commands.run_commands([*commands], self.program, seconds))

    def test_options_and_scripts_that_do_not_exist_are_findings(self) -> None:
        for text, finding in CALLS:
            with self.subTest(text=text):
                found = list(page_commands.scripts_and_options(text, self.program))
                self.assertEqual(found, [finding] if finding else [])

    def test_a_wrong_command_is_a_finding_and_the_next_one_runs(self) -> None:
        found = self.findings(Command(1, "musacoder bench"), Command(2, "echo a", ["b"]))
        self.assertEqual([line for line, _ in found], [1, 2])
        self.assertIn("exits with 2", found[0][1])
        self.assertIn("does not print 'b'", found[1][1])

    def test_a_page_says_how_a_command_ends(self) -> None:
        found = self.findings(Command(1, "(exit 3)", code="3"), Command(2, "true", code="3"))
        self.assertEqual([line for line, _ in found], [2])

    def test_the_block_of_a_picture_is_run(self) -> None:
        picture = page_commands.ROOT / "docs/race.svg"
        text, number = page_commands.check_page(picture, self.program, ("",))
        self.assertEqual(number, 2)
        self.assertIn("musacoder eval", text)  # The stand-in for the program prints no verdict.

    def test_commands_of_a_page_share_shell_and_folder(self) -> None:
        found = self.findings(
            Command(1, "export X=y; echo $X > made"),
            Command(2, "cat made && ls README.md", ["y", "README.md"]),
            Command(3, "musacoder --help", ["eval, serve, task; --version"]),
        )
        self.assertEqual(found, [])
        self.assertFalse((page_commands.ROOT / "made").exists())

    def test_a_command_that_does_not_end_is_a_finding(self) -> None:
        found = self.findings(Command(1, "true"), Command(2, "exec sleep 60"), seconds=1)
        self.assertEqual([line for line, _ in found], [2])
        self.assertIn("did not end", found[0][1])


if __name__ == "__main__":
    unittest.main()
