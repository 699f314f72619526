# SPDX-License-Identifier: Apache-2.0
"""A picture shows what commands print."""

from __future__ import annotations

import unittest
import xml.etree.ElementTree as ElementTree

import terminal_svg

SVG = "{http://www.w3.org/2000/svg}"


class Picture(unittest.TestCase):
    def test_lines_are_those_that_the_command_prints(self) -> None:
        lines = terminal_svg.transcript(["seq 3", "echo '<a> & b'"], lines_max=2)
        self.assertEqual(lines, ["$ seq 3", "1", "2", "…", "$ echo '<a> & b'", "<a> & b"])

    def test_a_command_that_fails_is_not_drawn(self) -> None:
        with self.assertRaises(terminal_svg.subprocess.CalledProcessError):
            terminal_svg.transcript(["exit 3"], lines_max=2)

    def test_each_line_is_drawn_and_described(self) -> None:
        lines = ["$ x", "  <a> & b", "word " * 30, ""]
        root = ElementTree.fromstring(terminal_svg.picture(lines))
        drawn = [text.text for text in root.iter(f"{SVG}text")]
        self.assertEqual(drawn[:2], ["$\u00a0x", "\u00a0\u00a0<a>\u00a0&\u00a0b"])
        self.assertEqual(len(drawn), 4)  # A long line takes two rows, an empty one none.
        self.assertLessEqual(max(map(len, drawn)), terminal_svg.COLUMNS)
        described = root.findtext(f"{SVG}desc") or ""
        self.assertIn("```console\n$ x\n  <a> & b\n", described)


if __name__ == "__main__":
    unittest.main()
