# SPDX-License-Identifier: Apache-2.0
"""The reference says what --help, schemas, docstrings and headers say."""

from __future__ import annotations

import unittest

import reference

HELP = """Judge candidates
Usage: /opt/bin/musacoder eval [OPTIONS] [candidate...]

Positionals:
  candidate TEXT ...          A module, or lines of {task, answer}

Options:
  -h,--help                   Print this help message and exit
  --jobs NUMBER=1             Judged at once,
                              at most one a core
  --inputs varied|native=varied
                              Values | sizes


Timing (on a device):
  --no-timing                 Correctness alone

Subcommands:
  list                        The suites
  check                       Their grades

Examples:
  musacoder eval --jobs 2
"""


class Reference(unittest.TestCase):
    def test_help_becomes_a_table_for_each_section(self) -> None:
        page = reference.help_as_markdown(HELP)
        self.assertIn("```text\nmusacoder eval [OPTIONS] [candidate...]\n```", page)
        self.assertIn("| `candidate` | `TEXT ...` A module, or lines of {task, answer} |", page)
        self.assertIn("| `--jobs` | `NUMBER=1` Judged at once, at most one a core |", page)
        self.assertIn(r"| `--inputs` | `varied\|native=varied` Values \| sizes |", page)
        self.assertIn("**Timing (on a device)**\n\n| option | means |", page)
        self.assertIn("```text\nExamples:\n  musacoder eval --jobs 2\n```", page)
        self.assertNotIn("--help", page)
        self.assertNotIn("Their grades", page)

    def test_subcommands_are_found(self) -> None:
        self.assertEqual(reference.subcommands_of(HELP), ["list", "check"])

    def test_a_schema_becomes_a_table_of_members(self) -> None:
        schema = {
            "properties": {
                "kind": {"const": "wrong"},
                "trials": {"type": "array", "items": {"$ref": "#/$defs/Trial"}},
                "note": {"type": ["string", "null"], "description": "a | b"},
            }
        }
        self.assertEqual(
            reference.members(schema).splitlines()[2:],
            [
                '| `kind` | `"wrong"`. |',
                "| `trials` | list of [Trial](#trial). |",
                r"| `note` | string or null. a \| b |",
            ],
        )

    def test_public_docstrings_are_listed_with_their_signatures(self) -> None:
        source = (
            'def public(a: int, b: str = "") -> None:\n    """Says."""\n'
            'def _hidden() -> None:\n    """Not."""\n'
            'class Kind:\n    """One."""\n    def method(self) -> int:\n        """Two."""\n'
        )
        listed = "\n".join(reference.documented(reference.ast.parse(source).body))
        self.assertIn("**`public(a: int, b: str='') -> None`**\n\n```text\nSays.\n```", listed)
        self.assertIn("**`Kind.method(self) -> int`**", listed)
        self.assertNotIn("hidden", listed)

    def test_the_comment_at_the_top_of_a_header_becomes_a_page(self) -> None:
        header = "// SPDX\n//\n// Words:\n//\n// - `a`: one,\n//   two.\n#ifndef X\n// Other.\n"
        page = reference.header_page("Title", header)
        self.assertEqual(page, "# Title\n\n\nWords:\n\n- `a`: one,\n  two.")

    def test_tables_and_lists_stand_apart(self) -> None:
        written = "text\n| a |\n|---|\n| `b\\|c` \\| |\n- one\n  more\n- two\n"
        written += "```sh\nx\n- no list\n```"
        self.assertEqual(
            reference.separated(written),
            "text\n\n| a |\n|---|\n| `b|c` \\| |\n\n- one\n  more\n- two\n```sh\nx\n- no list\n```",
        )


if __name__ == "__main__":
    unittest.main()
