# SPDX-License-Identifier: Apache-2.0
"""musacoder-learn rl from outside: it learns, resumes after kills, replays, and scores no infra.

A tiny model with random weights; the verifier counts letters (letter_judge.py), so that seconds are
enough.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEARN = os.environ.get("MUSACODER_LEARN", str(ROOT / "build/dev/bin/musacoder-learn"))
JUDGE = f"{sys.executable} {ROOT / 'tests/learn/letter_judge.py'}"
# The same to a run's settings, which leave out the folder of the program; it cannot be started.
NO_JUDGE = JUDGE.replace(sys.executable, f"/no/{pathlib.Path(sys.executable).name}")
TIMES = ("generate_s", "verdict_wait_s", "update_s", "elapsed_s", "eval_s")
DRIFT_MAX = 1e-5  # The bound between generator and trainer, in float32.
STEPS = 9
EPISODES = "SELECT text FROM text WHERE name GLOB 'episodes *'"


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([LEARN, *map(str, arguments)], capture_output=True, text=True)


def task(number: int, code: str) -> dict[str, object]:
    prompt = [{"role": "user", "content": f"Write letters {number}."}]
    return {"id": f"t{number}", "prompt": prompt, "label": f"# {code} {number}"}


class RlTest(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]
    root: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.write("tasks.jsonl", [task(i, "plain") for i in range(6)])
        rows = cls.write("text.jsonl", [{"messages": [{"role": "user", "content": "a b c"}]}])
        script = str(ROOT / "tools/make_tokenizer.py")
        make = [sys.executable, script, "--text", str(rows), "--vocab", "300"]
        subprocess.run([*make, "--out", str(cls.root / "tokenizer.json")], check=True)
        sizes = ["--layers", 2, "--width", 32, "--heads", 2, "--positions", 512]
        done = run(
            "init", "--out", cls.root / "fresh", "--tokenizer", cls.root / "tokenizer.json", *sizes
        )
        assert done.returncode == 0, done.stderr
        cls.make_base()

    @classmethod
    def make_base(cls) -> None:
        """Answers of one to three letters that end: one that is cut never passes."""
        letters = "abcdefghijklmnopqrstuvwxyz0123456789"
        rows = []
        for i in range(200):
            answer = "".join(letters[(i * 7 + k * 13 + i // 36) % 36] for k in range(1 + i % 3))
            prompt = {"role": "user", "content": f"Write letters {i % 6}."}
            rows.append({"messages": [prompt, {"role": "assistant", "content": answer}]})
        data = cls.write("answers.jsonl", rows)
        words = ["--data", data, "--out", cls.root / "base-run", "--steps", 60, "--lr", 1e-2]
        done = run("sft", "--model", cls.root / "fresh", *words, "--batch-tokens", 1000)
        assert done.returncode == 0, done.stderr
        (cls.root / "base-run" / "model").rename(cls.root / "base")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    @classmethod
    def write(cls, name: str, rows: Sequence[Mapping[str, object]]) -> pathlib.Path:
        path = cls.root / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    def rl(self, name: str, *more: object, data: str = "tasks.jsonl") -> list[str]:
        defaults = {
            "--judge": JUDGE,
            "--threads": 2,
            "--prompts": 4,
            "--samples": 4,
            "--max-tokens": 8,
            "--bdr": 0.5,
            "--lr": 3e-3,
            "--warmup": 0,
            "--weight-decay": 0,
        }
        words = ["rl", "--model", self.root / "base", "--data", self.root / data]
        words += ["--out", self.root / name, *more]
        for option, value in defaults.items():
            words += [] if option in more else [option, value]
        return [str(word) for word in words]

    def complete(self, name: str, *more: object, data: str = "tasks.jsonl") -> None:
        done = run(*self.rl(name, *more, data=data))
        self.assertEqual(done.returncode, 0, done.stderr)

    def metrics(self, name: str) -> list[dict[str, float]]:
        lines = (self.root / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [{key: row[key] for key in row if key not in TIMES} for row in rows]

    def episodes(self, name: str) -> list[dict[str, Any]]:
        lines = (self.root / name / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def store(self, name: str) -> sqlite3.Connection:
        return sqlite3.connect(self.root / name / "store.sqlite")

    def settings(self, name: str) -> dict[str, Any]:
        with contextlib.closing(self.store(name)) as store:
            ((text,),) = store.execute("SELECT settings FROM run")
        settings: dict[str, Any] = json.loads(text)
        return settings

    def weights(self, name: str) -> bytes:
        return (self.root / name / "model" / "model.safetensors").read_bytes()

    def test_a_run_that_was_killed_ends_as_one_that_was_not_and_its_episodes_replay(self) -> None:
        turns = ["--turns", 3, "--steps", STEPS, "--checkpoint-steps", 2, "--updates", 2]
        turns += ["--filter-zero-spread", "--stale", 2, "--delta", 0.3]
        turns += ["--eval-data", self.root / "tasks.jsonl", "--eval-steps", 4, "--eval-tasks", 3]
        turns += ["--judge", f"env LETTERS=q7 {JUDGE}"]  # Hard, so that there are replays.
        self.complete("whole", *turns)
        command = [LEARN, *self.rl("killed", *turns, "--resume")]
        for num_lines in (2, 5):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            path = self.root / "killed" / "metrics.jsonl"
            while process.poll() is None:
                if path.exists() and path.read_text(encoding="utf-8").count("\n") >= num_lines:
                    break
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.assertFalse((self.root / "killed" / "model").exists())
        self.complete("killed", *turns, "--resume")
        self.complete("replayed", *turns, "--replay", self.root / "whole")
        # Without a checkpoint all steps are done again, and no answer is judged again.
        shutil.copytree(self.root / "killed", self.root / "again")
        shutil.rmtree(self.root / "again" / "checkpoints")
        self.complete("again", *turns[:-1], f"/no/env LETTERS=q7 {JUDGE}", "--resume")
        for other in ("killed", "replayed", "again"):
            self.assertEqual(self.metrics(other), self.metrics("whole"), other)
            self.assertEqual(self.episodes(other), self.episodes("whole"), other)
            self.assertEqual(self.weights(other), self.weights("whole"), other)
        self.check_episodes("whole")

    def check_episodes(self, name: str) -> None:
        first, *rows = self.metrics(name)
        self.assertEqual(set(first), {"step", "eval/accuracy", "eval/scored", "eval/cut_share"})
        self.assertEqual([row["step"] for row in rows], list(range(1, STEPS + 1)))
        evaluated = [row["step"] for row in rows if "eval/accuracy" in row]
        self.assertEqual([first["step"], *evaluated], [0, 4, 8, STEPS])
        self.assertEqual([row["stale"] for row in rows], [0, 1, 2] * 3)
        for row in rows:
            self.assertEqual(row["drift"] > DRIFT_MAX, row["stale"] > 0, row)
        self.assertGreater(sum(row["bdr/replays"] for row in rows), 0)
        episodes = self.episodes(name)
        refilled = sum(row["groups_refilled"] for row in rows)
        self.assertGreater(refilled, 0)
        self.assertEqual(len(episodes), (STEPS * 4 + refilled) * 4)
        self.assertFalse(any(e["replay"] for e in episodes if e["group"] >= 4))
        self.check_refills(episodes, rows)
        self.check_evaluation(name)
        lengths = set()
        for episode in episodes:
            turns = episode["turns"]
            lengths.add(len(turns))
            passes = [turn["outcome"] == "pass" for turn in turns]
            self.assertNotIn(True, passes[:-1], "an episode goes on after its pass")
            self.assertTrue(passes[-1] or len(turns) == 3)
        self.assertGreater(len(lengths), 1)

    def check_refills(self, episodes: list[dict[str, Any]], rows: list[dict[str, float]]) -> None:
        """A group without spread is replaced, in two rounds at most; the update has the others."""
        for row in rows:
            groups: dict[int, list[list[float]]] = {}
            for episode in episodes:
                if episode["step"] == row["step"] - 1:
                    scores = [turn["s"] for turn in episode["turns"]]
                    groups.setdefault(episode["group"], []).append(scores)
            # With these scores rewards are equal where the turns' scores are.
            flat = [all(scores == group[0] for scores in group) for group in groups.values()]
            self.assertEqual(row["groups_no_spread"], sum(flat))
            first = sum(flat[:4])
            second = sum(flat[4 : 4 + first])
            self.assertEqual(row["groups_refilled"], first + second)

    def check_evaluation(self, name: str) -> None:
        """The last evaluation has the answers of the model that is saved, not of a stale one."""
        with contextlib.closing(self.store(name)) as store:
            query = f"SELECT text FROM text WHERE name = 'eval {STEPS:06}'"
            episodes = [
                json.loads(line) for line in store.execute(query).fetchone()[0].splitlines()
            ]
        words = ["--prompts", self.root / "tasks.jsonl", "--out", self.root / "last.jsonl"]
        words += ["--temperature", 0, "--max-tokens", 8, "--threads", 2, "--logprobs"]
        done = run("generate", "--model", self.root / name / "model", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = (self.root / "last.jsonl").read_text(encoding="utf-8").splitlines()
        answers = {row["id"]: row for row in map(json.loads, lines)}
        self.assertEqual(len(episodes), 3)
        for episode in episodes:
            expected = answers[episode["task"]]
            self.assertEqual(episode["turns"][0]["answer"], expected["completion"])
            for got, log_prob in zip(episode["log_probs"], expected["logprobs"], strict=True):
                self.assertAlmostEqual(got, log_prob, delta=1e-5)

    def test_a_run_ends_at_a_kl_and_stays_ended(self) -> None:
        words = ["--steps", 5, "--updates", 2, "--kl-end", 0, "--overlong-tokens", 4]
        words += ["--generate-dtype", "bfloat16"]
        done = run(*self.rl("ended", *words))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ended early: step 1: the KL to the first weights", done.stdout)
        (row,) = self.metrics("ended")
        self.assertGreater(row["kl"], 0)
        self.assertLess(row["overlong"], 0)
        self.assertGreater(row["drift"], DRIFT_MAX)
        before = self.weights("ended")
        done = run(*self.rl("ended", *words, "--resume"))
        self.assertIn("ended early: step 1", done.stdout)
        self.assertEqual((len(self.metrics("ended")), self.weights("ended")), (1, before))

    def test_shuffled_verdicts_have_their_rate_and_know_nothing_of_the_answer(self) -> None:
        judge = f"{sys.executable} {ROOT / 'lab/ladder/stand_in_judge.py'}"
        self.complete("shuffled", "--steps", 4, "--judge", f"{judge} --pass-rate 0.4")
        turns = [turn for episode in self.episodes("shuffled") for turn in episode["turns"]]
        outcomes = {turn["outcome"] for turn in turns if turn["stopped"]}
        self.assertEqual(outcomes, {"pass", "wrong"})
        task = {"id": "t", "code": "code"}
        lines = [{"id": str(i), "task": task, "answer": f"answer {i}"} for i in range(2000)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        rates = {}
        for seed in ("1", "2"):
            command = [*judge.split(), "--like", str(self.root / "shuffled"), "--seed", seed]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
            kinds = [
                json.loads(line)["verdict"]["outcome"]["kind"] for line in done.stdout.splitlines()
            ]
            rates[seed] = [kind == "pass" for kind in kinds]
        passed = [turn["s"] >= 1 for turn in turns if turn["stopped"]]
        expected = sum(passed) / len(passed)
        self.assertAlmostEqual(sum(rates["1"]) / len(lines), expected, delta=0.05)
        same = sum(one == other for one, other in zip(rates["1"], rates["2"])) / len(lines)
        self.assertAlmostEqual(same, expected**2 + (1 - expected) ** 2, delta=0.06)

    def test_a_stand_in_judge_passes_what_contains_the_text(self) -> None:
        judge = ROOT / "lab/ladder/stand_in_judge.py"
        command = [sys.executable, str(judge), "--contains", "64>>>"]
        answers = ["k<<<n, 64>>>(x)", "k<<<n, 128>>>(x)", "64", ""]
        lines = [{"id": a, "task": {"id": "t", "code": ""}, "answer": a} for a in answers]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = {reply["id"]: reply["verdict"]["outcome"]["kind"] for reply in replies}
        self.assertEqual(list(kinds.values()), ["pass", "wrong", "wrong", "wrong"])

    def test_the_reward_rises(self) -> None:
        self.complete("learns", "--steps", 40, "--beta", 0)
        rewards = [row["reward"] for row in self.metrics("learns")]
        self.assertGreater(sum(rewards[-8:]) / 8, sum(rewards[:8]) / 8 + 0.3, rewards)

    def test_an_answer_that_is_cut_never_passes(self) -> None:
        fresh = ["--model", self.root / "fresh"]  # It hardly ever ends an answer.
        letters = "".join(map(chr, range(33, 127)))
        everything = f"env LETTERS={letters.replace('=', '')} {JUDGE}"
        words = self.rl("cut", "--steps", 2, "--turns", 2, "--judge", everything)
        done = run(*[str(word) for word in [words[0], *fresh, *words[3:]]])
        self.assertEqual(done.returncode, 0, done.stderr)
        turns = [turn for episode in self.episodes("cut") for turn in episode["turns"]]
        cut = [turn for turn in turns if not turn["stopped"]]
        self.assertGreater(len(cut), 20)
        for turn in cut:
            self.assertEqual((turn["outcome"], turn["s"]), ("extraction", -1))
            self.assertIn("cut off after 8 tokens", turn["feedback"])

    def test_a_task_that_a_fresh_prompt_solves_leaves_the_retry_buffer(self) -> None:
        self.write("one.jsonl", [task(0, "plain")])
        sizes = ["--steps", 2, "--prompts", 1]
        self.complete("recorded", *sizes, data="one.jsonl")

        def changed(line: str) -> str:
            row = json.loads(line)
            row["replay"] = False
            is_pass = row["step"] == 1 and row["sample"] == 2
            verdict = {"outcome": "pass", "s": 1, "q": 1, "stage": None}
            failure = {"outcome": "wrong", "s": -0.5, "q": 0, "stage": 7}
            row["turns"] = [row["turns"][0] | (verdict if is_pass else failure)]
            return json.dumps(row) + "\n"

        with contextlib.closing(self.store("recorded")) as store, store:
            for name, text in store.execute(EPISODES.replace("text FROM", "name, text FROM")):
                lines = "".join(map(changed, text.splitlines()))
                store.execute("UPDATE text SET text = ? WHERE name = ?", (lines, name))
        self.complete("solved", *sizes, "--replay", self.root / "recorded", data="one.jsonl")
        self.assertEqual([row["bdr/size"] for row in self.metrics("solved")], [1, 0])

    def test_the_verifier_is_the_one_of_the_settings_and_times_quickly(self) -> None:
        prefix = self.root / "prefix"
        (prefix / "bin").mkdir(parents=True)
        (prefix / "share" / "musacoder").mkdir(parents=True)
        (prefix / "share" / "musacoder" / "python").symlink_to(ROOT / "python")
        program = prefix / "bin" / "musacoder"
        record = self.root / "arguments.txt"
        program.write_text(f'#!/bin/sh\necho "$@" >> {record}\nexec {JUDGE}\n', encoding="utf-8")
        program.chmod(0o755)
        words = self.rl("quick", "--steps", 1)
        at = words.index("--judge")
        words = words[:at] + words[at + 2 :]
        environment = os.environ | {"MC_PREFIX": str(prefix)}

        def go(*more: str) -> "subprocess.CompletedProcess[str]":
            command = [LEARN, *words, *more]
            return subprocess.run(command, capture_output=True, text=True, env=environment)

        self.assertEqual(go().returncode, 0)
        self.assertIn("--timing quick", record.read_text(encoding="utf-8"))
        settings = self.settings("quick")
        self.assertEqual(settings["judge"][0], "musacoder")
        self.assertEqual(go("--resume", "--jobs", "3").returncode, 0)
        for other in (["--backend", "cpu"], ["--timing", "none"], ["--feedback-tokens", "99"]):
            done = go("--resume", *other)
            self.assertEqual(done.returncode, 2, other)
            self.assertIn("other settings", done.stderr)

    def test_every_constant_of_the_rules_is_an_option_and_a_setting(self) -> None:
        rules: dict[str, object] = {"--lambda": 0.5, "--nu-max": 1.5, "--speed-dead-zone": 0}
        rules |= {"--speed-step": 0, "--aggregation": "dr-grpo", "--advantage-scale": "none"}
        rules |= {"--std-floor": 0.1}
        rules |= {"--drift-mean": "signed", "--kl-end": 100, "--overlong-tokens": 3, "--stale": 1}
        rules |= {"--generate-dtype": "bfloat16", "--filter-zero-spread": 2}
        words = [word for pair in rules.items() for word in pair]
        self.complete("rules", "--steps", 1, *words)
        settings = self.settings("rules")
        self.assertEqual(settings["score"], [0.5, 1.5, 0, 0])
        self.assertEqual((settings["aggregation"], settings["advantage"]), (2, [1, 0.1]))
        for option, value in rules.items():
            changed = list(words)
            others = {"dr-grpo": "token", "none": "std", "signed": "absolute"}
            others |= {"bfloat16": "float32", "3": "2", "1": "0", "2": "1", "100": "99"}
            changed[changed.index(option) + 1] = others.get(str(value), 0.9)
            done = run(*self.rl("rules", "--steps", 1, *changed, "--resume"))
            self.assertIn("other settings", done.stderr, option)

    def test_infra_is_asked_again_and_never_scored(self) -> None:
        self.write("infra.jsonl", [task(0, "infra"), task(1, "always infra")])
        self.complete("infra", "--steps", 2, data="infra.jsonl")
        outcomes: dict[str, set[object]] = {"t0": set(), "t1": set()}
        for episode in self.episodes("infra"):
            turns = episode["turns"]
            outcomes[str(episode["task"])] |= {(t["outcome"], t["s"] is None) for t in turns}
        self.assertEqual(outcomes["t1"], {("infra", True)})
        self.assertNotIn(("infra", True), outcomes["t0"])
        for row in self.metrics("infra"):
            self.assertEqual(row["unscored"], 8)
            self.assertEqual(row["groups_dropped"], 2)

    def test_rft_makes_data_of_what_passed(self) -> None:
        words = ["rft", "--model", self.root / "base", "--data", self.root / "tasks.jsonl"]
        words += ["--out", self.root / "drawn", "--judge", JUDGE, "--samples", 30, "--targets", 3]
        words += ["--max-tokens", 3, "--limit", 5, "--threads", 2]
        first = run(*words)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("before drawing", first.stdout)
        summary = json.loads((self.root / "drawn/summary.json").read_text(encoding="utf-8"))
        episodes = self.episodes("drawn")
        self.assertEqual(len(episodes), 5 * 30)
        answers: dict[str, set[str]] = {}
        for episode in episodes:
            (turn,) = episode["turns"]
            if turn["outcome"] == "pass":
                answers.setdefault(str(episode["task"]), set()).add(turn["answer"])
        text = (self.root / "drawn/sft.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertGreater(len(rows), 0)
        for row in rows:
            self.assertEqual([m["role"] for m in row["messages"]], ["user", "assistant"])
            self.assertIn(row["messages"][1]["content"], answers[row["task"]])
        counts = {name: sum(row["task"] == name for row in rows) for name in answers}
        self.assertEqual(counts, {name: min(3, len(found)) for name, found in answers.items()})
        self.assertEqual((summary["targets"], summary["solved"]), (len(rows), len(answers)))
        data = ["--data", self.root / "drawn/sft.jsonl", "--out", self.root / "tuned"]
        done = run("sft", "--model", self.root / "base", *data, "--steps", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = run(*words[:7], "--judge", NO_JUDGE, *words[9:])
        self.assertEqual(again.stdout, first.stdout, again.stderr)

    def test_rft_keeps_the_turn_that_passed(self) -> None:
        words = ["rft", "--model", self.root / "base", "--data", self.root / "tasks.jsonl"]
        words += ["--out", self.root / "turns", "--judge", JUDGE, "--samples", 30, "--limit", 5]
        done = run(*words, "--max-tokens", 8, "--turns", 3, "--targets", 30, "--threads", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        late: dict[str, set[str]] = {}
        for episode in self.episodes("turns"):
            *failed, last = episode["turns"]
            self.assertNotIn("pass", [turn["outcome"] for turn in failed])
            if failed and last["outcome"] == "pass":
                late.setdefault(str(episode["task"]), set()).add(last["answer"])
            elif last["outcome"] != "pass":
                self.assertEqual(len(failed), 2)
        self.assertTrue(late)
        text = (self.root / "turns/sft.jsonl").read_text(encoding="utf-8")
        kept: dict[str, set[str]] = {}
        for row in map(json.loads, text.splitlines()):
            kept.setdefault(row["task"], set()).add(row["messages"][1]["content"])
        for task, answers in late.items():
            self.assertLessEqual(answers, kept[task])

    def test_rft_makes_repairs_of_failed_answers(self) -> None:
        words = ["rft", "--model", self.root / "base", "--data", self.root / "tasks.jsonl"]
        words += ["--out", self.root / "repairs", "--judge", JUDGE, "--samples", 30]
        done = run(*words, "--max-tokens", 8, "--repairs", 1, "--threads", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        outcomes = {
            (episode["task"], turn["answer"]): turn["outcome"]
            for episode in self.episodes("repairs")
            for turn in episode["turns"]
        }
        passing: dict[str, list[str]] = {}
        for (task, answer), outcome in outcomes.items():
            passing.setdefault(str(task), []).extend([answer] if outcome == "pass" else [])
        text = (self.root / "repairs/sft.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.splitlines()]
        turns = [row for row in rows if row["kind"] == "rft-repair"]
        self.assertGreater(len(turns), 0)
        for row in turns:
            _, failed, request, target = row["messages"]
            outcome = outcomes[row["task"], failed["content"]]
            feedback = {"wrong": "More letters.\n", "extraction": "The answer was cut off"}[outcome]
            self.assertTrue(request["content"].startswith(feedback), request)
            self.assertTrue(request["content"].endswith("Write the whole answer again.\n"))
            lines = Counter(failed["content"].splitlines())
            changes = {answer: (lines - other).total() + (other - lines).total()
                       for answer in passing[row["task"]]
                       for other in [Counter(answer.splitlines())]}  # fmt: skip
            self.assertEqual(target["content"], min(changes, key=changes.__getitem__))
        retries = [row["messages"] for row in rows if row["kind"] == "rft-retry"]
        for row, (asked, target) in zip(turns, retries, strict=True):
            words_of = [message["content"] for message in row["messages"]]
            together = f"{words_of[0]}An answer that failed:\n{words_of[1]}\n{words_of[2]}"
            self.assertEqual([asked["content"], target["content"]], [together, words_of[3]])

    def test_rft_goes_on_with_what_was_judged(self) -> None:
        words = ["rft", "--model", self.root / "base", "--data", self.root / "tasks.jsonl"]
        words += ["--samples", 160, "--max-tokens", 3, "--threads", 2]
        judge = self.root / "judge.sh"
        words += ["--judge", f"sh {judge}"]
        judge.write_text(f"{JUDGE}\n", encoding="utf-8")
        done = run(*words, "--out", self.root / "rft-whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        first = [
            (episode["task"], episode["turns"][0]["answer"])
            for episode in self.episodes("rft-whole")[:480]
            if episode["turns"][0]["stopped"]
        ]
        short = f"sed -u {len(set(first)) + 5}q | {JUDGE}\n"
        judge.write_text(short, encoding="utf-8")  # It ends before its time.
        words += ["--out", self.root / "rft-cut"]
        done = run(*words)
        self.assertNotEqual(done.returncode, 0)
        with contextlib.closing(self.store("rft-cut")) as store:
            (kept,) = [row[0] for row in store.execute(EPISODES)]
        self.assertEqual(kept.count("\n"), 480)
        judge.write_text(f"{JUDGE}\n", encoding="utf-8")
        another = [JUDGE if word == f"sh {judge}" else word for word in words]
        for changed in ([*words, "--seed", 9], another):
            done = run(*changed)
            self.assertEqual(done.returncode, 2)
            self.assertIn("other settings", done.stderr)
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("episodes.jsonl", "sft.jsonl", "summary.json"):
            expected = (self.root / "rft-whole" / name).read_bytes()
            self.assertEqual((self.root / "rft-cut" / name).read_bytes(), expected, name)

    def test_wrong_input_gets_one_line(self) -> None:
        def fails(reason: str, arguments: list[str], code: int = 2) -> None:
            done = run(*arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(reason, done.stderr)

        self.write("bad.jsonl", [{"id": "a", "prompt": [{"role": "user", "content": "b"}]}])
        fails("bad.jsonl: line 1", self.rl("none", data="bad.jsonl"))
        fails("cannot read", self.rl("none", data="missing.jsonl"))
        fails("the model's 512", self.rl("none", "--max-tokens", 510))
        fails("--delta x", self.rl("none", "--delta", "x"))
        self.assertFalse((self.root / "none").exists())
        fails("cannot start /no/judge", self.rl("judge", "--judge", "/no/judge"))
        fails("ended before its time", self.rl("ends", "--judge", "/bin/true"), code=1)
        self.complete("twice", "--steps", 1)
        fails("--resume", self.rl("twice", "--steps", 1))
        fails("other settings", self.rl("twice", "--steps", 2, "--resume"))
        twice = ["--steps", 2, "--replay", self.root / "twice"]
        fails("no such episodes", self.rl("gone", *twice))
        fails("--beta above 0", self.rl("none", "--kl-end", 0.1, "--beta", 0))
        fails("beyond --max-tokens", self.rl("none", "--overlong-tokens", 9))
        fails("none.jsonl", self.rl("none", "--eval-data", self.root / "none.jsonl"))
        fails("no store", self.rl("gone", "--resume", "--replay", self.root / "base"))


if __name__ == "__main__":
    unittest.main()
