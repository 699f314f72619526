# SPDX-License-Identifier: Apache-2.0
"""musacoder-learn from outside: init, sft and generate on a few rows, killed and resumed."""

import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEARN = os.environ.get("MUSACODER_LEARN", str(ROOT / "build/dev/bin/musacoder-learn"))
STEPS = 30


def run(*arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
    command = [LEARN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore


def write_rows(path: pathlib.Path, rows: list[dict[str, object]]) -> pathlib.Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def question(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Spell {number}: {'x' * (number % 7)}"}]


def answer(number: int) -> dict[str, str]:
    return {"role": "assistant", "content": " ".join(str(number)) + "."}


class LearnTest(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]
    root: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        rows = [
            {"id": f"s{i}", "messages": [*question(i), answer(i)], "kind": "generation"}
            for i in range(200)
        ]
        data = write_rows(cls.root / "sft.jsonl", rows)
        prompts = [{"id": f"t{i}", "prompt": question(i)} for i in range(20)]
        write_rows(cls.root / "test.jsonl", prompts)
        make = [sys.executable, ROOT / "tools/make_tokenizer.py", "--text", data]
        tokenizer = cls.root / "tokenizer.json"
        subprocess.run([*make, "--vocab", "300", "--out", tokenizer], check=True)
        sizes = ["--layers", 2, "--width", 48, "--heads", 4, "--kv-heads", 2]
        done = run("init", "--out", cls.root / "base", "--tokenizer", tokenizer, *sizes)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def sft(self, name: str) -> list[str]:
        paths = ["--model", self.root / "base", "--data", self.root / "sft.jsonl"]
        rest = ["--out", self.root / name, "--steps", STEPS, "--batch-tokens", 1000]
        # A kill then finds checkpoints that are older than the last step.
        return [str(word) for word in [*paths, *rest, "--threads", 2, "--checkpoint-steps", 7]]

    def metrics(self, name: str) -> list[tuple[object, ...]]:
        lines = (self.root / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [tuple(row[key] for key in ("step", "loss", "grad_norm", "lr")) for row in rows]

    def weights(self, name: str) -> bytes:
        return (self.root / name / "model" / "model.safetensors").read_bytes()

    def fails(self, arguments: list[object], *reasons: str) -> None:
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for reason in reasons:
            self.assertIn(reason, done.stderr)

    def test_a_run_that_was_killed_ends_as_one_that_was_not(self) -> None:
        self.assertEqual(run("sft", *self.sft("whole")).returncode, 0)
        command = [LEARN, "sft", *self.sft("killed"), "--resume"]
        for num_lines in (3, 16):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            path = self.root / "killed" / "metrics.jsonl"
            while process.poll() is None:
                if path.exists() and path.read_text(encoding="utf-8").count("\n") >= num_lines:
                    break
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.assertFalse((self.root / "killed" / "model").exists())
        done = run("sft", *self.sft("killed"), "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.metrics("killed"), self.metrics("whole"))
        self.assertEqual(self.weights("killed"), self.weights("whole"))
        self.assertLess(self.metrics("whole")[-1][1], self.metrics("whole")[0][1])
        checkpoints = list((self.root / "whole" / "checkpoints").iterdir())
        self.assertEqual(len(checkpoints), 2)
        self.fails(["sft", *self.sft("whole")], "--resume")
        self.fails(["sft", *self.sft("whole"), "--resume", "--lr", "1"], "other settings")

    def test_two_processes_train_as_one_does(self) -> None:
        self.assertEqual(run("sft", *self.sft("one")).returncode, 0)
        done = run("sft", *self.sft("two"), "--processes", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.compare("two", "one")
        # Three processes go on where two stopped.
        shutil.copytree(self.root / "two", self.root / "more")
        shutil.rmtree(self.root / "more" / "checkpoints" / f"step-{STEPS:08}")
        shutil.rmtree(self.root / "more" / "model")
        done = run("sft", *self.sft("more"), "--resume", "--processes", 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.compare("more", "one")

    def compare(self, got: str, expected: str) -> None:
        rows = zip(self.metrics(got), self.metrics(expected), strict=True)
        for (step, loss, *_), (step_of_one, loss_of_one, *_) in rows:
            self.assertEqual(step, step_of_one)
            self.assertAlmostEqual(loss, loss_of_one, delta=1e-5)  # type: ignore[call-overload]

    def test_a_killed_process_ends_the_others_with_one_line(self) -> None:
        command = [LEARN, "sft", *self.sft("lost"), "--processes", "3"]
        command[command.index("--steps") + 1] = "100000"
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        metrics = self.root / "lost" / "metrics.jsonl"
        while not (metrics.exists() and metrics.read_text(encoding="utf-8").count("\n") > 2):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        os.kill(int(children.split()[1]), signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(errors.decode().count("\n"), 1, errors)
        self.assertIn("rank 1 was ended by signal 9", errors.decode())

    def test_what_all_processes_find_wrong_is_told_in_one_line(self) -> None:
        arguments = self.sft("wrong")
        arguments[arguments.index("--model") + 1] = str(self.root / "nothing")
        self.fails(["sft", *arguments, "--processes", 2], "nothing")

    def test_answers_are_resumed_and_do_not_depend_on_the_batch(self) -> None:
        out = self.root / "answers.jsonl"
        model = ["--model", self.root / "base", "--prompts", self.root / "test.jsonl"]
        rest = ["--max-tokens", 12, "--samples", 2, "--seed", 5]
        self.assertEqual(run("generate", *model, *rest, "--out", out).returncode, 0)
        whole = sorted(out.read_text(encoding="utf-8").splitlines())
        self.assertEqual(len(whole), 40)
        row = json.loads(whole[0])
        self.assertEqual(
            list(row), ["id", "sample", "completion", "num_tokens", "finish"], whole[0]
        )
        out.write_text("\n".join(whole[:9]) + "\n" + whole[9][:17], encoding="utf-8")
        batch = ["--batch", 3, "--threads", 1]
        self.assertEqual(run("generate", *model, *rest, *batch, "--out", out).returncode, 0)
        self.assertEqual(sorted(out.read_text(encoding="utf-8").splitlines()), whole)

    def pretrained(self, name: str, template: str) -> pathlib.Path:
        """The base as a model from elsewhere: its own chat template, and another config.json."""
        folder = self.root / name
        shutil.copytree(self.root / "base", folder)
        path = folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        del config["musacoder_from_scratch"]
        path.write_text(json.dumps(config | {"of_its_maker": [1, 2]}), encoding="utf-8")
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        return folder

    def settings(self, name: str) -> dict[str, object]:
        with contextlib.closing(sqlite3.connect(self.root / name / "store.sqlite")) as store:
            ((text,),) = store.execute("SELECT settings FROM run")
        settings: dict[str, object] = json.loads(text)
        return settings

    def test_a_pretrained_model_keeps_its_files_and_has_gentle_defaults(self) -> None:
        template = (
            "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}"
            "{{ '<|im_end|>\n' if m.role == 'assistant' else '\n' }}{% endfor %}"
            "{% if add_generation_prompt %}[assistant]{% endif %}"
        )
        folder = self.pretrained("other", template)
        tokens = {"bos_token": {"content": "<|endoftext|>"}, "eos_token": "<|im_end|>"}
        (folder / "tokenizer_config.json").write_text(json.dumps(tokens), encoding="utf-8")
        # A Python module of the current folder is not run by the renderer of templates.
        (folder / "json.py").write_text("raise SystemExit('hostile')", encoding="utf-8")
        done = run(
            "tokenize",
            "--tokenizer",
            folder,
            input='[{"role": "user", "content": " a "}]',
            cwd=folder,
            env={**os.environ, "PYTHONPATH": ":"},
        )
        (folder / "json.py").unlink()
        self.assertEqual(
            json.loads(done.stdout)["text"], "<|endoftext|>[user]a\n[assistant]", done.stderr
        )
        words = ["--data", self.root / "sft.jsonl", "--out", self.root / "tuned", "--steps", 1]
        done = run("sft", "--model", folder, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("config.json", "tokenizer_config.json", "chat_template.jinja"):
            kept = (self.root / "tuned/model" / name).read_bytes()
            self.assertEqual(kept, (folder / name).read_bytes(), name)
        settings = self.settings("tuned")
        self.assertEqual((settings["lr"], settings["weight_decay"]), (1e-5, 0.01))
        self.assertEqual(settings["length_max"], 2048)  # Its positions, which are less than 40960.
        self.assertEqual(run("sft", *self.sft("scratch")).returncode, 0)
        settings = self.settings("scratch")
        self.assertEqual((settings["lr"], settings["weight_decay"]), (1e-3, 0.1))

    def test_a_model_that_could_never_stop_is_refused(self) -> None:
        data, out = self.root / "sft.jsonl", self.root / "none"
        endless = self.pretrained("endless", "{% for m in messages %}{{ m.content }}{% endfor %}")
        self.fails(["sft", "--model", endless, "--data", data, "--out", out], "never stop")
        bare = self.pretrained("bare", "")
        (bare / "chat_template.jinja").unlink()
        (bare / "tokenizer_config.json").unlink()
        path = bare / "tokenizer.json"
        text = path.read_text(encoding="utf-8").replace("<|im_", "<|xx_")
        path.write_text(text, encoding="utf-8")
        prompts = self.root / "test.jsonl"
        for command in (["sft", "--data", data], ["generate", "--prompts", prompts]):
            words = [command[0], "--model", bare, "--out", out, *command[1:]]
            self.fails(words, "no chat template", "instruct")
        wrong = self.pretrained("wrong", "{% for %}")
        self.fails(["sft", "--model", wrong, "--data", data, "--out", out], "chat template")
        refuses = self.pretrained("refuses", "{{ raise_exception('no, thanks') }}")
        self.fails(["sft", "--model", refuses, "--data", data, "--out", out], "no, thanks")

    def test_wrong_input_gets_one_line(self) -> None:
        data, base = self.root / "sft.jsonl", self.root / "base"
        out = ["--out", self.root / "none"]
        self.fails(["sft", "--model", ROOT / "docs", "--data", data, *out], "is no model", "config")
        self.fails(["sft", "--model", self.root / "x", "--data", data, *out], "is not a folder")
        self.fails(["sft", "--model", base, "--data", self.root / "x", *out], "cannot read")
        bad = write_rows(self.root / "bad.jsonl", [{"messages": question(1)}])
        self.fails(["sft", "--model", base, "--data", bad, *out], "bad.jsonl: line 1", "assistant")
        self.fails(["generate", "--model", base, "--prompts", bad, *out], "bad.jsonl: line 1")
        bad.write_text('{"type": "WordPiece"}', encoding="utf-8")
        self.fails(["init", *out, "--tokenizer", bad], "bad.jsonl")
        bad.write_text('{"model": {"type": "Unigram"}}', encoding="utf-8")
        self.fails(["init", *out, "--tokenizer", bad], '"Unigram"', "byte-level BPE")
        self.fails(["sft", "--model", base], "--data")
        self.assertFalse((self.root / "none").exists())

    def test_a_full_disk_leaves_no_half_model(self) -> None:
        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        done = run("sft", *self.sft("full"), preexec_fn=limit)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("cannot write", done.stderr)
        run_folder = self.root / "full"
        self.assertFalse((run_folder / "model").exists())
        self.assertEqual(list((run_folder / "checkpoints").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
