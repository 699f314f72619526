# SPDX-License-Identifier: Apache-2.0
"""Judge and candidate process through a zygote, with candidates that need no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import (  # noqa: E402
    Child,
    Zygotes,
    ZygoteTest,
    build_question,
    load_question,
    open_question,
)

import torch  # noqa: E402

from harness.candidate import extensions  # noqa: E402
from harness.candidate.process import copy_state, match_state  # noqa: E402

TASK = """
import torch
import torch.nn as nn
ROWS, COLS = 6, 40
class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.BatchNorm1d(cols)
        self.register_buffer("seen", torch.zeros(1))
    def forward(self, x, scale):
        self.seen += 1
        return self.norm(x) * scale, {"max": x.argmax(-1), "n": x.shape[0]}
def get_inputs():
    return [torch.randn(ROWS, COLS), 2.5]
def get_init_inputs():
    return [COLS]
"""
HONEST = TASK.replace("class Model(", "class ModelNew(")
IN_PLACE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.mul_(2)
def get_inputs():
    return [torch.randn(40, 3)]
def get_init_inputs():
    return []
"""


class RolesTest(ZygoteTest):
    def judge(self, task: str, candidate: str, **options: Any) -> Any:
        """(plan, checks) of a candidate, or (plan, the candidate process's error)."""
        with self.zygote.spawn("judge") as judge, self.zygote.spawn("candidate") as child:
            plan = self.begin(judge, task, 3, options)
            loaded, _ = child.ask(load_question(candidate))
            if not loaded["ok"]:
                return plan, loaded["error"]
            return plan, self.run_trials(plan, judge, child)

    def begin(self, judge: Child, task: str, seed: int, options: Any) -> Any:
        opened, _ = judge.ask(open_question(task, **options))
        self.assertTrue(opened["ok"], str(opened))
        begun, _ = judge.ask({"op": "begin", "seed": seed})
        self.assertTrue(begun["ok"], str(begun))
        return begun["plan"]

    def run_trials(self, plan: Any, judge: Child, child: Child) -> Any:
        checks = []
        for trial in plan["trials"]:
            init, regions = judge.ask({"op": "init", "shape": trial["shape"]})
            built, _ = child.ask(build_question(init, trial["shape"]), regions[0])
            if not built["ok"]:
                return built["error"]
            given, regions = judge.ask({"op": "trial", "index": trial["index"]})
            question = {"op": "run", "shape": trial["shape"]}
            question |= {"inputs": given["inputs"], "written": given["written"]}
            ran, outputs = child.ask(question, regions[0])
            if not ran["ok"]:
                return ran["error"]
            returned = {name: ran[name] for name in ("outputs", "buffers")}
            check, _ = judge.ask({"op": "check", "index": trial["index"], **returned}, outputs[0])
            self.assertTrue(check["ok"], str(check))
            checks.append(check)
        return checks

    def verdicts(self, task: str, candidate: str, **options: Any) -> list[bool]:
        _, checks = self.judge(task, candidate, **options)
        self.assertIsInstance(checks, list, str(checks))
        return [check["passed"] for check in checks]

    def problems(self, task: str, candidate: str) -> set[str]:
        _, checks = self.judge(task, candidate, shapes=False)
        self.assertIsInstance(checks, list, str(checks))
        return {found["problem"] for check in checks for found in check["checks"]}

    def test_the_reference_as_candidate_passes_every_trial(self) -> None:
        plan, checks = self.judge(TASK, HONEST)
        self.assertTrue(all(check["passed"] for check in checks), str(checks))
        labels = [shape["label"] for shape in plan["shapes"]]
        self.assertEqual(labels, ["native", "ragged", "small"])

    def test_the_same_seed_gives_the_same_inputs(self) -> None:
        digests = []
        for seeds in ((8,), (9, 8)):
            with self.zygote.spawn("judge") as judge:
                plan = self.begin(judge, TASK, seeds[0], {})
                for seed in seeds[1:]:  # The judge served another candidate before.
                    judge.ask({"op": "trial", "index": 0})
                    plan = judge.ask({"op": "begin", "seed": seed})[0]["plan"]
                digests.append((plan["trials"], self.digests(judge)))
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(len(set(digests[0][1])), 7)

    def test_a_judge_of_another_task_judges_as_a_new_one(self) -> None:
        other = "torch.set_default_dtype(torch.float64)\n".join(["import torch\n", IN_PLACE])
        found = []
        for before in ([], [other]):
            with self.zygote.spawn("judge") as judge:
                for task in before:
                    self.begin(judge, task, 9, {})
                plan = self.begin(judge, TASK, 3, {})
                given, descriptors = judge.ask({"op": "trial", "index": 0})
                for descriptor in descriptors:
                    os.close(descriptor)
                found.append((plan, given))
        self.assertEqual(found[0], found[1])

    def test_two_candidates_of_a_task_get_nothing_in_common(self) -> None:
        with self.zygote.spawn("judge") as judge:
            self.begin(judge, TASK, 8, {})
            first, seed = self.digests(judge), judge.ask({"op": "init", "shape": 0})[0]["init_seed"]
            judge.ask({"op": "trial", "index": 0})
            judge.ask({"op": "begin", "seed": 9})
            self.assertTrue(set(first).isdisjoint(self.digests(judge)))
            self.assertNotEqual(judge.ask({"op": "init", "shape": 0})[0]["init_seed"], seed)
            stale, _ = judge.ask({"op": "begin", "seed": 10})
            empty = os.memfd_create("empty")
            question = {"op": "check", "index": 0, "outputs": None, "buffers": []}
            stale, _ = judge.ask(question, empty)
            os.close(empty)
            self.assertEqual(stale["error"]["message"], "check before trial, or a second check")

    def digests(self, judge: Child) -> list[str]:
        return [judge.ask({"op": "trial", "index": i})[0]["digest"] for i in range(7)]

    def test_wrong_candidates_fail_every_trial(self) -> None:
        edits = {
            "no weight": ("self.norm(x)", "nn.functional.batch_norm(x, None, None, None,"
                          " self.norm.bias, True)"),
            "no bias": ("self.norm(x)", "(self.norm(x) - self.norm.bias)"),
            "no side effect": ("self.seen += 1", "pass"),
            "statistics left alone": ("self.norm(x)", "nn.functional.batch_norm(x, None, None,"
                                      " self.norm.weight, self.norm.bias, True)"),
            "shape": ("* scale,", "* scale[None],"),
            "container": ("return self.norm(x) * scale, ", "return self.norm(x) * scale, 1, "),
            "key": ('"max"', '"maximum"'),
            "index dtype": ("x.argmax(-1)", "x.argmax(-1).int()"),
            "index": ("x.argmax(-1)", "x.argmin(-1)"),
            "plain value": ('"n": x.shape[0]', '"n": x.shape[0] + 1'),
            "input overwritten": (
                "self.seen += 1",
                "self.seen += 1; y = x.clone(); x.zero_(); x = y",
            ),
            "half": ("self.norm(x) * scale", "(self.norm(x) * scale).half()"),
            "nan": ("self.norm(x) * scale", "(self.norm(x) * scale).index_fill(0,"
                    " torch.tensor([0]), float('nan'))"),
        }  # fmt: skip
        for name, (old, new) in edits.items():
            with self.subTest(name):
                self.assertIn(old, HONEST)
                candidate = HONEST.replace(old, new)
                if name == "shape":
                    candidate = candidate.replace("* scale[None]", "* torch.full((1, 1, 1), scale)")
                self.assertEqual(set(self.verdicts(TASK, candidate, shapes=False)), {False})

    def test_a_candidate_may_change_what_the_reference_changes(self) -> None:
        honest = IN_PLACE.replace("class Model(", "class ModelNew(")
        self.assertEqual(set(self.verdicts(IN_PLACE, honest)), {True})
        copies = honest.replace("x.mul_(2)", "x * 2")
        self.assertEqual(set(self.verdicts(IN_PLACE, copies)), {False})

    def test_a_counter_of_batches_decides_nothing(self) -> None:
        fused = HONEST.replace(
            "self.norm(x)",
            "nn.functional.batch_norm(x, self.norm.running_mean, self.norm.running_var,"
            " self.norm.weight, self.norm.bias, self.training)",
        )
        self.assertEqual(set(self.verdicts(TASK, fused, shapes=False)), {True})

    def test_trivial_answers_fail_where_native_values_would_pass_them(self) -> None:
        task = IN_PLACE.replace("x.mul_(2)", "torch.relu(x)").replace("randn", "rand")
        copy = task.replace("class Model(", "class ModelNew(").replace("torch.relu(x)", "x.clone()")
        self.assertEqual(set(self.verdicts(task, copy, shapes=False)), {False})

    def test_a_random_reference_is_judged_in_eval_mode(self) -> None:
        task = IN_PLACE.replace("x.mul_(2)", "torch.dropout(x, 0.5, self.training)")
        honest = task.replace("class Model(", "class ModelNew(")
        self.assertEqual(set(self.verdicts(task, honest)), {True})
        with self.zygote.spawn("judge") as judge:
            task = IN_PLACE.replace("x.mul_(2)", "torch.dropout(x, 0.5, True)")
            answer, _ = judge.ask(open_question(task))
            self.assertEqual(answer["error"]["kind"], "unsupported")

    def test_what_a_candidate_raises_is_reported_with_its_stage(self) -> None:
        head, model = "import torch\n", "class ModelNew(torch.nn.Module):\n"
        cases = {
            ("load", "ValueError"): head + "raise ValueError",
            ("load", "SystemExit"): head + "raise SystemExit(0)",
            ("load", "SyntaxError"): "if",
            ("init", "AttributeError"): head + "class Other: pass",
            ("init", "KeyboardInterrupt"): head + model
            + "    def __init__(self):\n        raise KeyboardInterrupt",
            ("forward", "RecursionError"): head + model
            + "    def forward(self, x):\n        return self.forward(x)",
            ("outputs", "Refusal"): head + model
            + "    def forward(self, x):\n        return object()",
        }  # fmt: skip
        for (stage, kind), candidate in cases.items():
            with self.subTest(stage + kind):
                _, error = self.judge(IN_PLACE, candidate, trials=1, shapes=False)
                self.assertEqual((error["stage"], error["type"]), (stage, kind))

    def test_source_that_was_not_recorded_finds_no_artifact(self) -> None:
        candidate = "from torch.utils.cpp_extension import load_inline\nload_inline('e', 'x')\n"
        _, error = self.judge(IN_PLACE, candidate)
        self.assertIn("not the one that was compiled", error["message"])

    def test_a_library_that_leaves_a_function_undefined_is_refused_by_its_name(self) -> None:
        candidate = "from torch.utils.cpp_extension import load_inline\nload_inline('e', 'x')\n"
        key = extensions.normal_form_inline(("e", "x"), {})["key"]
        with tempfile.TemporaryDirectory() as folder, self.zygote.spawn("candidate") as child:
            library = Path(folder) / "e.so"
            source = "void nobodys(void); void PyInit_e(void) { nobodys(); }"
            command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
            subprocess.run(command, input=source.encode(), check=True)
            artifacts = {key: {"module": "e", "path": str(library)}}
            answer, _ = child.ask(load_question(candidate, artifacts))
        self.assertEqual(answer["error"]["kind"], "link")
        self.assertEqual(answer["error"]["message"], "nobodys")
        self.assertEqual(answer["error"]["frames"][-1]["line"], 2)

    def test_patching_torch_does_not_reach_the_judge(self) -> None:
        candidate = IN_PLACE.replace("class Model(", "class ModelNew(").replace(
            "mul_(2)", "clone()"
        )
        candidate += "torch.allclose = torch.equal = lambda *a, **k: True\n"
        candidate += "torch.Tensor.__sub__ = lambda self, other: torch.zeros_like(self)\n"
        self.assertEqual(set(self.verdicts(IN_PLACE, candidate)), {False})

    def test_what_a_candidate_prints_stays_off_the_channel(self) -> None:
        candidate = "import os\nprint('{\"ok\": true}')\nos.write(1, b'raw')\n"
        candidate += IN_PLACE.replace("class Model(", "class ModelNew(")
        self.assertEqual(set(self.verdicts(IN_PLACE, candidate)), {True})

    def test_a_candidate_that_ends_the_process_ends_only_its_own(self) -> None:
        with self.zygote.spawn("candidate") as child:
            load = load_question("import os; os._exit(3)")
            self.assertRaises(EOFError, child.ask, load)
        self.assertTrue(self.zygote.candidates.ask({"op": "hello"})["ok"])

    def test_a_candidate_has_no_code_of_the_judge(self) -> None:
        names = "import sys\nraise ValueError([n for n in sys.modules if n.startswith('harness.')])"
        with self.zygote.spawn("candidate") as child:
            modules = child.ask(load_question(names))[0]["error"]["message"]
        self.assertIn("harness.candidate.process", modules)
        self.assertNotIn("harness.judge", modules)
        self.assertNotIn("harness.timing", modules)

    def test_a_candidate_refuses_an_unknown_member(self) -> None:
        with self.zygote.spawn("candidate") as child:
            answer, _ = child.ask({**load_question("x = 1"), "seed": 7})
            self.assertEqual((answer["ok"], answer["error"]["kind"]), (False, "protocol"))
            self.assertTrue(child.ask(load_question("x = 1"))[0]["ok"])

    def test_each_zygote_has_its_own_roles_only(self) -> None:
        for zygote, role in (
            (self.zygote.judges, "candidate"),
            (self.zygote.judges, "recorder"),
            (self.zygote.candidates, "judge"),
            (self.zygote.candidates, "baseline"),
            (self.zygote.candidates, "inspector"),
        ):
            with self.assertRaisesRegex(RuntimeError, "known role"):
                zygote.spawn(role)

    def test_a_child_sees_the_device_that_it_is_spawned_for(self) -> None:
        task = TASK + "import os\nprint(os.getenv('CUDA_VISIBLE_DEVICES'), flush=True)\n"
        for names in (["GPU-a=b"], ["GPU-b"], []):
            variables = tuple(f"CUDA_VISIBLE_DEVICES={name}" for name in names)
            with self.zygote.judges.spawn("judge", environment=variables) as judge:
                self.begin(judge, task, 3, {})
                seen = set(judge.printed().split())
            self.assertEqual(seen, set(names) or {str(os.getenv("CUDA_VISIBLE_DEVICES"))})

    def test_a_baseline_is_the_tasks_own_model(self) -> None:
        with self.zygote.spawn("judge") as judge, self.zygote.spawn("baseline") as baseline:
            self.begin(judge, TASK, 3, {})
            init, regions = judge.ask({"op": "init", "shape": 0})
            self.assertTrue(baseline.ask({"op": "load", "source": TASK, "tf32": False})[0]["ok"])
            del init["init_operators"]  # A baseline may call what the task calls.
            built, _ = baseline.ask(build_question(init, 0, compile=""), regions[0])
            self.assertEqual((built["missing"], built["unmatched"]), ([], []))

    def test_a_candidate_with_other_names_is_told_which(self) -> None:
        reference = {"a": torch.zeros(3), "b": torch.zeros(2), "c": torch.zeros(1)}
        model = torch.nn.Module()
        model.b = torch.nn.Parameter(torch.ones(5))
        model.w = torch.nn.Parameter(torch.ones(3))
        model.c = torch.nn.Parameter(torch.ones(1))
        self.assertEqual(
            match_state(reference, model),
            {
                "missing": ["a: float32 [3]"],
                "unmatched": ["b: float32 [5], in the reference float32 [2]"],
                "own": ["w: float32 [3]"],
            },
        )

    def test_a_bias_of_channels_may_lack_its_axes_of_length_1(self) -> None:
        reference = {"bias": torch.arange(3.0).reshape(3, 1, 1)}
        model = torch.nn.Module()
        model.bias = torch.nn.Parameter(torch.ones(3))
        self.assertEqual(match_state(reference, model)["unmatched"], [])
        copy_state(reference, model)
        self.assertEqual(model.bias.tolist(), [0.0, 1.0, 2.0])

    def test_a_malformed_answer_fails_the_trial_and_not_the_judge(self) -> None:
        with self.zygote.spawn("judge") as judge:
            self.begin(judge, IN_PLACE, 3, {})
            malformed: list[Any] = [None, [], {"t": "tensor"}, {"t": "list", "items": [{}]}]
            for outputs in malformed:
                judge.ask({"op": "trial", "index": 0})
                empty = os.memfd_create("empty")
                question = {"op": "check", "index": 0, "outputs": outputs, "buffers": []}
                answer, _ = judge.ask(question, empty)
                os.close(empty)
                self.assertEqual((answer["ok"], answer["passed"]), (True, False))
                self.assertEqual(answer["checks"][0]["problem"], "malformed")

    def test_a_region_that_cannot_be_read_is_malformed(self) -> None:
        tensor = {"t": "tensor", "dtype": "float32", "shape": [40, 3], "offset": 0, "nbytes": 480}
        readable = os.memfd_create("region")
        os.ftruncate(readable, 4096)
        path = f"/proc/self/fd/{readable}"
        read_end, write_end = os.pipe()
        regions = {
            "write only": os.open(path, os.O_WRONLY),
            "path only": os.open(path, os.O_PATH),
            "directory": os.open("/", os.O_RDONLY),
            "pipe": read_end,
        }
        with self.zygote.spawn("judge") as judge:
            self.begin(judge, IN_PLACE, 3, {})
            for name, descriptor in regions.items():
                with self.subTest(name):
                    judge.ask({"op": "trial", "index": 0})
                    question = {"op": "check", "index": 0, "outputs": tensor, "buffers": []}
                    answer, _ = judge.ask(question, descriptor)
                    self.assertEqual((answer["ok"], answer.get("passed")), (True, False))
                    self.assertEqual(answer["checks"][0]["problem"], "malformed")
        for descriptor in (readable, write_end, *regions.values()):
            os.close(descriptor)

    def test_children_leave_no_process_and_no_descriptor(self) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            with self.zygote.spawn("inspector") as child:
                answer, _ = child.ask({"op": "inspect", "source": "x = 1", "rules": {}})
                self.assertTrue(answer["ok"])
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)


class DeviceTest(unittest.TestCase):
    def test_a_child_answers_nothing_before_it_has_its_device(self) -> None:
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": ""}):
            zygote = Zygotes("--sandbox-lib", "off", "--device", "cuda")
        for role in ("judge", "baseline", "candidate"):
            with zygote.spawn(role) as child:
                with self.assertRaises((EOFError, ConnectionError)):
                    child.ask({"op": "protections"})
        zygote.close()


if __name__ == "__main__":
    unittest.main()
