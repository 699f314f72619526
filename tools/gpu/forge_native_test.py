# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import unittest
from typing import Any

from forge_native import taken, variants_of


def row(template: str, source: str = "torch.randn(N)", size: str = "large") -> dict[str, Any]:
    return {"provenance": {"template": template}, "source": source, "size": size}


class Taken(unittest.TestCase):
    def test_each_variant_is_there_as_often_as_wanted(self) -> None:
        rows = [row("thread"), row("thread"), row("thread"), row("thread+tile")]
        self.assertEqual(len(taken(rows, 2)), 3)

    def test_sizes_and_halves_are_variants_of_their_own(self) -> None:
        half = row("thread", "torch.randn(N, dtype=torch.float16)")
        self.assertEqual(variants_of(half), [("large", "thread"), ("large", "float16")])
        self.assertEqual(len(taken([row("thread"), half, row("thread", size="native")], 1)), 3)


if __name__ == "__main__":
    unittest.main()
