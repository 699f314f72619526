# SPDX-License-Identifier: Apache-2.0
"""What a child tells of its sandbox. Needs the library that $MC_SANDBOX_LIB names."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import Zygotes  # noqa: E402

LIBRARY = os.environ.get("MC_SANDBOX_LIB", "")


@unittest.skipUnless(LIBRARY, "MC_SANDBOX_LIB is not set")
class SandboxTest(unittest.TestCase):
    zygote: Zygotes

    @classmethod
    def setUpClass(cls) -> None:
        cls.zygote = Zygotes("--sandbox-lib", LIBRARY)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.zygote.close()

    def missing(self, role: str, profile: Any) -> dict[str, str]:
        """Name and reason of each protection that such a child goes without."""
        with self.zygote.spawn(role, profile) as child:
            answer, _ = child.ask({"op": "protections"})
            self.assertTrue(answer["ok"], str(answer))
            return {item["protection"]: item["why"] for item in answer["missing"]}

    def test_every_role_names_what_its_profile_switches_off(self) -> None:
        for role in ("inspector", "recorder", "judge", "baseline", "contestant"):
            missing = self.missing(role, {"off": ["uts_namespace", "seccomp"]})
            self.assertEqual(set(missing) - {"process_limit"}, {"uts_namespace", "seccomp"})
            self.assertEqual(missing["seccomp"], "switched off by the profile")

    def test_a_default_profile_lacks_at_most_what_it_makes_optional(self) -> None:
        self.assertLessEqual(set(self.missing("contestant", {})), {"process_limit"})

    def test_one_child_says_nothing_of_the_next(self) -> None:
        self.missing("judge", {"off": ["uts_namespace"]})
        self.assertNotIn("uts_namespace", self.missing("judge", {}))

    def test_a_child_in_no_sandbox_does_not_claim_to_lack_nothing(self) -> None:
        with self.zygote.spawn("judge", "off") as child:
            answer, _ = child.ask({"op": "protections"})
            self.assertFalse(answer["ok"])


if __name__ == "__main__":
    unittest.main()
