# SPDX-License-Identifier: Apache-2.0
"""A child's report about its sandbox. Needs the library that $MC_SANDBOX_LIB names."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import HARNESS, Zygotes, empty_region, load_question  # noqa: E402
from harness.worker.zygote import COMPACTION_SPAWN  # noqa: E402

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
        """The name and reason of each protection that such a child lacks."""
        with self.zygote.spawn(role, profile) as child:
            answer, _ = child.ask({"op": "protections"})
            self.assertTrue(answer["ok"], str(answer))
            return {item["protection"]: item["why"] for item in answer["missing"]}

    def test_every_role_names_what_its_profile_switches_off(self) -> None:
        for role in ("inspector", "recorder", "judge", "baseline", "candidate"):
            missing = self.missing(role, {"off": ["uts_namespace", "seccomp"]})
            self.assertEqual(set(missing) - {"process_limit"}, {"uts_namespace", "seccomp"})
            self.assertEqual(missing["seccomp"], "switched off by the profile")

    def test_a_default_profile_lacks_at_most_what_it_makes_optional(self) -> None:
        self.assertLessEqual(set(self.missing("candidate", {})), {"process_limit"})

    def test_one_child_does_not_affect_the_next(self) -> None:
        self.missing("judge", {"off": ["uts_namespace"]})
        self.assertNotIn("uts_namespace", self.missing("judge", {}))

    def test_children_answer_before_and_after_their_zygote_compacts_its_memory(self) -> None:
        for _ in range(COMPACTION_SPAWN + 1):
            self.assertLessEqual(set(self.missing("recorder", {})), {"process_limit"})

    def test_a_child_in_no_sandbox_does_not_claim_to_lack_nothing(self) -> None:
        with self.zygote.spawn("judge", "off") as child:
            answer, _ = child.ask({"op": "protections"})
            self.assertFalse(answer["ok"])


LOOKS = """
import os, sys
def tried(path):
    try:
        return sorted(os.listdir(path)) if os.path.isdir(path) else open(path).read()
    except OSError:
        return None
import torch.distributions, numpy.fft, unittest.mock
try:
    import harness.judge.judge
    seen = ["judge"]
except ImportError:
    seen = []
seen += [path for path in PATHS if tried(path) is not None]
raise ValueError(repr((seen, tried("/artifacts"), tried(HARNESS))))
"""


@unittest.skipUnless(LIBRARY, "MC_SANDBOX_LIB is not set")
class ViewTest(unittest.TestCase):
    """The files of the machine that a candidate's code sees."""

    def look(self, role: str, paths: list[str], artifacts: str) -> Any:
        zygote = Zygotes("--sandbox-lib", LIBRARY).candidates
        self.addCleanup(zygote.close)
        files = zygote.ask({"op": "hello"})["files"]
        profile = {"only_visible": True, "visible": files, "artifacts": artifacts}
        source = f"PATHS = {paths!r}\nHARNESS = {str(HARNESS)!r}\n{LOOKS}"
        load = load_question(source)
        tree, empty = empty_region()
        record = {"op": "record", "source": source, "initials": [tree]}
        with zygote.spawn(role, profile) as child:
            child.ask({"op": "protections"})
            answer, _ = child.ask(load) if role == "candidate" else child.ask(record, empty)
        os.close(empty)
        self.assertEqual(answer["error"]["type"], "ValueError", str(answer))
        return eval(answer["error"]["message"])

    def test_a_candidate_sees_its_own_artifacts_and_nothing_of_the_project_or_its_user(
        self,
    ) -> None:
        root = HARNESS.parents[1]
        foreign = [str(root / "tests"), str(root / "data"), str(root / "README.md"), __file__]
        foreign += [str(HARNESS / "judge"), str(HARNESS / "timing"), "/etc/passwd", "/usr/bin"]
        with tempfile.TemporaryDirectory(dir=root / "python/harness/tests") as home:
            (Path(home) / "mine").mkdir()
            (Path(home) / "mine/own.so").touch()
            (Path(home) / "theirs.so").touch()
            foreign += [home, home + "/theirs.so"]
            for role in ("recorder", "candidate"):
                artifacts = home + "/mine" if role == "candidate" else ""
                seen, own, harness = self.look(role, foreign, artifacts)
                self.assertEqual(seen, [])
                self.assertEqual(own, ["own.so"] if artifacts else None)
                self.assertEqual(harness, ["__init__.py", "candidate", "worker"])


if __name__ == "__main__":
    unittest.main()
