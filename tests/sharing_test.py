# SPDX-License-Identifier: Apache-2.0
"""Tests of the random shares in sharing.py."""

from __future__ import annotations

import contextlib
import io
import os
import unittest
from unittest import mock

from sharing import share_of

THINGS = [*range(100)]


def drawn(things: list[int], share: str, draw: str = "7") -> list[int]:
    variables = {"MC_TEST_SHARE": share, "MC_SHARE_DRAW": draw}
    with mock.patch.dict(os.environ, variables), contextlib.redirect_stdout(io.StringIO()):
        return share_of(things, "MC_TEST_SHARE")


class Share(unittest.TestCase):
    def test_without_the_variable_all_are_there(self) -> None:
        self.assertEqual(share_of(THINGS, "MC_NO_SUCH_SHARE"), THINGS)
        self.assertEqual(drawn(THINGS, "1"), THINGS)

    def test_a_share_keeps_the_order_and_leaves_at_least_one(self) -> None:
        self.assertEqual(len(drawn(THINGS, "0.25")), 25)
        self.assertEqual(drawn(THINGS, "0.25"), sorted(drawn(THINGS, "0.25")))
        self.assertEqual(drawn([3], "0.001"), [3])
        self.assertEqual(drawn([], "0.5"), [])

    def test_the_draw_decides(self) -> None:
        self.assertEqual(drawn(THINGS, "0.1"), drawn(THINGS, "0.1"))
        self.assertNotEqual(drawn(THINGS, "0.1"), drawn(THINGS, "0.1", "8"))


if __name__ == "__main__":
    unittest.main()
