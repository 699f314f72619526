# SPDX-License-Identifier: Apache-2.0
"""Exit codes and one-line errors, verdicts that repeat, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from program import BAD_INPUT, MACHINE_FAILED, MUSACODER, ROOT, SOME_FAIL
from program import InFolder, errors_of, honest, run

TASK = "reduction/row_sum"
HONEST = ROOT / "tests/corpus/honest" / f"{TASK}.py"
# Runs a program on a machine that cannot make a UTS namespace, and can do everything else.
FORBID_UTS = 'echo 0 > /proc/sys/user/max_uts_namespaces && exec "$@"'
WITHOUT_UTS = ["unshare", "--user", "--map-root-user", "sh", "-c", FORBID_UTS, "-"]


def can_do_without_uts() -> bool:
    return subprocess.run([*WITHOUT_UTS, "true"], capture_output=True, check=False).returncode == 0


def verdicts(*arguments: object) -> list[dict[str, Any]]:
    done = run("eval", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["verdict"] for line in done.stdout.splitlines()]


class BadInput(InFolder):
    def refuse(self, words: str, *arguments: object) -> None:
        """The program says `words` in one line and exits with 2."""
        out = self.folder / "results.jsonl"
        done = run("eval", "--out", str(out), *arguments)
        errors = errors_of(done.stderr)
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(words, errors[0])
        self.assertEqual(done.stdout, "")
        self.assertFalse(out.exists(), "results were written in spite of the error")

    def test_a_file_that_is_not_there(self) -> None:
        self.refuse("nowhere.py", "--task", TASK, "-c", str(self.folder / "nowhere.py"))

    def test_a_folder_without_candidates(self) -> None:
        self.refuse("holds no .py, .md or .txt file", "--task", TASK, "-c", str(self.folder))

    def test_a_source_of_cuda_is_told_what_a_candidate_is(self) -> None:
        source = self.write("kernel.cu", b"__global__ void f() {}\n")
        self.refuse("a Python module (.py) with a class ModelNew", "--task", TASK, str(source))

    def test_a_broken_line_is_named(self) -> None:
        self.refuse("a.jsonl: line 2: not JSON", "-c", self.write("a.jsonl", b'\n{"task": \n'))

    def test_an_empty_answer(self) -> None:
        self.refuse("empty", "--task", TASK, "-c", self.write("a.md", b""))

    def test_an_answer_of_fifty_megabytes(self) -> None:
        self.refuse("bytes", "--task", TASK, "-c", self.write("a.md", b"x" * (50 << 20)))

    def test_an_answer_that_is_not_utf8(self) -> None:
        self.refuse("UTF-8", "--task", TASK, "-c", self.write("a.md", b"\xff\xfe\x00"))

    def test_an_unknown_task(self) -> None:
        self.refuse("no_such_task", "--task", "reduction/no_such_task", "-c", str(HONEST))
        for name in ("reduction/rowsum", "row_sum", "reduce/row_sum"):
            self.refuse("did you mean reduction/row_sum?", "--task", name, "-c", str(HONEST))

    def test_a_task_without_get_inputs(self) -> None:
        path = self.write("task.py", b"class Model: pass\ndef get_init_inputs(): return []\n")
        self.refuse("get_inputs", "--task", path, "-c", str(HONEST))

    def test_a_task_that_does_not_parse(self) -> None:
        self.refuse("line 1", "--task", self.write("task.py", b"def f(:\n"), "-c", str(HONEST))

    def test_an_unknown_backend(self) -> None:
        self.refuse("backend", "--task", TASK, "--backend", "tpu", "-c", str(HONEST))

    def test_an_unknown_policy(self) -> None:
        words = "policy 'kernelbensh' is not known: use kernelbench or musacoder"
        self.refuse(words, "--task", TASK, "--policy", "kernelbensh", "-c", str(HONEST))

    def test_options_that_cannot_be(self) -> None:
        candidate = ("--task", "reduction/row_sum", "-c", str(HONEST))
        self.refuse("expected a number above 0", *candidate, "--timing-budget", "-3")
        self.refuse("--nosuch", *candidate, "--nosuch")
        self.refuse("--jobs", *candidate, "--jobs", "many")
        self.refuse("--memory: expected a size", *candidate, "--memory", "10")
        self.refuse("--seed", *candidate, "--seed", "-1")
        words = "--race-check on: --backend cpu has no such check"
        self.refuse(words, *candidate, "--backend", "cpu", "--race-check", "on")
        self.refuse("--musa-arch: add --dialect musa", *candidate, "--musa-arch", "mp_22")

    def test_a_missing_member_is_named_with_its_file_and_line(self) -> None:
        path = self.write("a.jsonl", b'{"task": "reduction/row_sum", "response": "x"}\n')
        self.refuse(f'musacoder: {path}: line 1: "sample" is missing', "-c", path)


class Outputs(InFolder):
    """--out and standard output, where they are no regular files."""

    def setUp(self) -> None:
        super().setUp()
        self.answer = self.write("a.md", "I cannot.")  # It is judged without PyTorch.

    def eval(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return run("eval", "--task", TASK, self.answer, *arguments, **options)

    def test_a_device_stays_and_its_failure_is_reported(self) -> None:
        before = os.stat("/dev/full")
        done = self.eval("--out", "/dev/full")
        self.assertEqual(done.returncode, MACHINE_FAILED, done.stderr)
        words = "musacoder: eval: --out: cannot write /dev/full: No space left on device"
        self.assertEqual(errors_of(done.stderr), [words])
        self.assertEqual(os.stat("/dev/full").st_ino, before.st_ino)

    def test_a_link_is_followed_and_standard_output_is_a_file(self) -> None:
        link = self.folder / "link"
        link.symlink_to("target")
        self.assertEqual(self.eval("--out", link).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertIn("no_code", (self.folder / "target").read_text())
        done = self.eval("--out", "/dev/stdout")
        first = json.loads(done.stdout.splitlines()[0])
        self.assertEqual(first["verdict"]["candidate"], str(self.answer))
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.md", "link", "target"])

    def test_verdicts_that_standard_output_loses_are_an_error(self) -> None:
        with open("/dev/full", "wb") as full:
            command = [MUSACODER, "eval", "--json", "--task", TASK, self.answer]
            done = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        words = "musacoder: cannot write standard output: No space left on device"
        self.assertEqual((done.returncode, errors_of(done.stderr)), (MACHINE_FAILED, [words]))


class Mixed(InFolder):
    """Some of what is given is bad; the rest is judged."""

    def test_each_bad_line_has_its_error_and_the_others_their_verdicts(self) -> None:
        honest = HONEST.read_text()
        (self.folder / "bad_task.py").write_text("class Model: pass\n")
        bad_task = str(self.folder / "bad_task.py")
        lines = [
            json.dumps({"task": TASK, "sample": 0, "response": honest}),
            '{"task": ',
            json.dumps({"task": TASK, "sample": 1, "response": "half a pair: \ud800"}),
            json.dumps({"task": "reduction/no_such_task", "sample": 0, "response": honest}),
            json.dumps({"task": bad_task, "sample": 0, "response": honest}),
            # The form in which bench keeps it.
            json.dumps({"id": TASK, "sample": 2, "completion": "I cannot.", "finish": "stop"}),
        ]
        answers, out = self.folder / "answers.jsonl", self.folder / "out.jsonl"
        answers.write_text("\n".join(lines))
        missing = self.folder / "missing.jsonl"
        done = run("eval", "-c", str(answers), str(missing), "--out", str(out), "--json")
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        for words in (
            "answers.jsonl: line 2: not JSON",
            "answers.jsonl: line 3: a lone surrogate",
            "answers.jsonl: line 4: no task reduction/no_such_task",
            "bad_task.py: it defines no function get_inputs",
            "missing.jsonl",
        ):
            found = [line for line in done.stderr.splitlines() if words in line]
            self.assertEqual(len(found), 1, (words, done.stderr))
        self.assertEqual(done.stdout, out.read_text())
        judged = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = {one["verdict"]["candidate"]: one["verdict"]["outcome"]["kind"] for one in judged}
        self.assertEqual(kinds, {f"{TASK}#0": "pass", f"{TASK}#2": "extraction"})
        self.assertIn("Result: correct", judged[0]["feedback"])
        self.assertFalse(out.with_name("out.jsonl.part").exists())

    def test_tasks_of_answers_may_come_from_a_suite(self) -> None:
        suite = self.folder / "suite"
        suite.mkdir()
        (suite / "mine.py").write_text((ROOT / "data/tasks" / f"{TASK}.py").read_text())
        answers = self.folder / "answers.jsonl"
        rows = [{"id": name, "sample": 0, "completion": "I cannot."} for name in ("mine", "other")]
        answers.write_text("\n".join(map(json.dumps, rows)))
        done = run("eval", "--json", "-c", str(answers), "--suite", str(suite))
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("line 2: the suite has no task other", done.stderr)
        self.assertEqual(json.loads(done.stdout)["verdict"]["candidate"], "mine#0")

    def test_the_exit_code_tells_of_verdicts_where_it_is_asked_to(self) -> None:
        answer = self.folder / "answer.md"
        answer.write_text("I cannot.")
        for given, code in (((), 0), (("--exit-code",), SOME_FAIL)):
            done = run("eval", "--task", TASK, "-c", str(answer), *given)
            self.assertEqual(done.returncode, code, done.stderr)
        done = run("eval", "--task", TASK, "-c", str(HONEST), "--exit-code")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_run_that_is_interrupted_names_the_file_with_its_verdicts(self) -> None:
        answers, out = self.folder / "answers.jsonl", self.folder / "out.jsonl"
        rows = [{"task": TASK, "sample": i, "response": "I cannot."} for i in range(20_000)]
        answers.write_text("\n".join(map(json.dumps, rows)))
        part = out.with_name("out.jsonl.part")
        command = [MUSACODER, "eval", "-c", str(answers), "--out", str(out)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            for _ in range(600):
                if part.exists() and part.stat().st_size > 0:
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            printed = process.stderr.read()
            self.assertEqual(process.wait(timeout=20), -signal.SIGINT)
        self.assertIn(f"interrupted; the verdicts so far are in {part}\n", printed)
        self.assertIn("verdict", json.loads(part.read_text().splitlines()[0]))


class Caches(unittest.TestCase):
    """A cache that cannot be used gives one line with the reason and the remedy."""

    REMEDY = "set MC_CACHE_DIR to a folder that you can write"

    def refuse(self, why: str, within: Sequence[str], **environment: str) -> None:
        kept = {"PATH": os.environ["PATH"], "MC_PYTHON": os.environ.get("MC_PYTHON", "python3")}
        for subcommand in (["eval", "--task", TASK, "-c", str(HONEST)], ["setup"], ["doctor"]):
            done = run(*subcommand, within=within, env={**kept, **environment})
            self.assertEqual(done.returncode, MACHINE_FAILED, done.stderr)
            printed = done.stdout if subcommand == ["doctor"] else done.stderr
            self.assertIn(why, printed)
            self.assertIn(self.REMEDY, printed)
            if subcommand != ["doctor"]:
                self.assertEqual(len(printed.splitlines()), 1, printed)

    def test_without_a_home(self) -> None:
        guessable = Path("/tmp/.cache/musacoder")
        was_there = guessable.exists()
        self.refuse("HOME is not set", ())
        self.refuse("HOME is not set", (), HOME="", XDG_CACHE_HOME="relative")
        self.assertEqual(guessable.exists(), was_there)

    @unittest.skipUnless(can_do_without_uts(), "needs to make a user namespace")
    def test_in_a_home_that_is_read_only(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            mount = f'mount -t tmpfs -o ro none {folder} && exec "$@"'
            within = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "-"]
            self.refuse("Read-only file system", within, HOME=folder)


class CurrentFolder(InFolder):
    """A call within a stranger's repository runs no Python file that lies there."""

    HOSTILE = ("argparse", "dis", "jinja2", "json", "platform", "sysconfig", "torch", "types")

    def setUp(self) -> None:
        super().setUp()
        self.ran = self.folder / "ran"
        for name in self.HOSTILE:
            self.write(f"{name}.py", f"open({str(self.ran)!r}, 'a').write({name!r} + ' ')\n")
        self.write("family/plain.py", (ROOT / "data/tasks" / f"{TASK}.py").read_text())

    def call(self, *arguments: object) -> str:
        """The output of the program."""
        environment = {**os.environ, "PYTHONPATH": ":/nowhere:."}
        done = run(*arguments, cwd=self.folder, env=environment)
        self.assertFalse(self.ran.exists(), self.ran.exists() and self.ran.read_text())
        return done.stdout + done.stderr

    def test_of_each_subcommand(self) -> None:
        row = {"id": "plain", "sample": 0, "completion": "I cannot."}
        answers = self.write("answers.jsonl", json.dumps(row) + "\n")
        bench = ["bench", "--answers", answers, "--suite", "family", "--out", "bench"]
        self.assertIn("1 extraction", self.call(*bench, "--backend", "cpu"))
        for words, printed in (
            ("doctor", "PyTorch"),
            ("import . --out imported", "1 taken"),
            ("report imported --out card.html", ""),
            ("report bench --out page.html", ""),
            ("task operators .", "reduction"),
            ("forge --tasks 1 --mix bench --out made", "solutions"),
            ("optimize types.py --endpoint http://127.0.0.1:9/v1 --model-name m", "nn.Module"),
            ("serve --host 0.0.0.0 --port 0", "token"),
        ):
            with self.subTest(words):
                self.assertIn(printed, self.call(*words.split()))
        for page in ("card.html", "page.html"):
            self.assertTrue((self.folder / page).exists(), page)


class Pipes(unittest.TestCase):
    def test_one_into_which_nothing_is_written_is_no_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pipe = f"{folder}/a.prepared"
            os.mkfifo(pipe)
            begin = time.monotonic()
            done = run("measure", pipe)
            self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
            self.assertIn("is a pipe into which nothing was written", done.stderr)
            self.assertLess(time.monotonic() - begin, 60)

    def test_one_that_another_program_writes_is_read(self) -> None:
        command = f"{MUSACODER} eval --json --task {TASK} -c <(sleep 1; echo I cannot.)"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(done.stdout)["verdict"]["outcome"]["kind"], "extraction")


class Words(unittest.TestCase):
    """Messages about the program's own subcommands and options."""

    def test_a_subcommand_that_there_is_not(self) -> None:
        for word, message in (
            ("evl", "no subcommand evl; did you mean eval?"),
            ("frobnicate", "no subcommand frobnicate; --help lists them"),
            ("task chek", "no subcommand chek; did you mean check?"),
        ):
            done = run(*word.split(), "--task", TASK)
            self.assertEqual((done.returncode, done.stdout), (BAD_INPUT, ""))
            self.assertEqual(done.stderr, f"musacoder: {message}\n")

    def test_an_option_that_there_is_not(self) -> None:
        for given, message in (
            (("eval", "--taks", TASK), "did you mean --task in place of --taks?"),
            (("bench", "--suit=x", "--out", "y"), "did you mean --suite in place of --suit?"),
            (("eval", "--frobnicate"), "musacoder eval --help lists what there is"),
        ):
            done = run(*given)
            self.assertEqual((done.returncode, done.stdout), (BAD_INPUT, ""))
            self.assertTrue(done.stderr.endswith(f"; {message}\n"), done.stderr)

    def test_each_help_has_an_example_of_its_command(self) -> None:
        for name in ("eval", "prepare", "measure", "bench", "optimize", "report", "doctor", "setup",
                     "forge", "import", "task check", "task list", "task operators", "musify",
                     "serve", "completion"):  # fmt: skip
            text = run(*name.split(), "--help").stdout
            self.assertIn(f"  musacoder {name}", text.replace("source <(", "  "), name)
            self.assertNotRegex(text, r"UINT|FLOAT|NONNEGATIVE|in \[|REQUIRED|Excludes")
        self.assertIn("MC_PYTHON", run("--help").stdout)

    def test_shells_complete_subcommands_options_and_words(self) -> None:
        script = run("completion", "bash").stdout
        for words, last, wanted in (
            (["musacoder", "ev"], 1, {"eval"}),
            (["musacoder", "eval", "--tri"], 2, {"--trials"}),
            (["musacoder", "eval", "--dialect", "m"], 3, {"musa"}),
            (["musacoder", "task", "ch"], 2, {"check"}),
        ):
            line = " ".join(words)
            call = f"COMP_WORDS=({line}) COMP_CWORD={last}; _musacoder; echo ${{COMPREPLY[@]}}"
            text = f"{script}\n{call}"
            done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
            self.assertEqual(set(done.stdout.split()), wanted, line)
        self.assertIn("bashcompinit", run("completion", "zsh").stdout)
        self.assertIn("-l dialect -xa 'cuda musa'", run("completion", "fish").stdout)

    def test_suites_and_their_tasks_are_listed(self) -> None:
        self.assertRegex(run("task", "list").stdout, r"(?m)^tasks +\d+ ")
        self.assertIn(f"{TASK}\n", run("task", "list", "tasks").stdout)

    def test_help_begins_with_what_is_needed_most(self) -> None:
        for subcommand, first, groups in (
            ("eval", "--task", ["Correctness", "Timing (on a device)", "Limits"]),
            ("bench", "--model", ["Judging", "Correctness", "Timing (on a device)", "Limits"]),
            ("forge", "--tasks", ["What is made", "Checks of the data"]),
        ):
            lines = run(subcommand, "--help").stdout.splitlines()
            found = [
                line[:-1] for line in lines if line and not line[0].isspace() and line[-1] == ":"
            ]
            found = [name for name in found if name != "Positionals"]
            self.assertEqual(found[: 1 + len(groups)], ["Options", *groups])
            after_help = lines[lines.index("Options:") + 2]
            self.assertIn(first, after_help)


class Log(unittest.TestCase):
    def test_verbose_tells_what_is_run_beside_the_verdict(self) -> None:
        judged = [
            "eval",
            "--json",
            "--no-shapes",
            "--trials",
            "1",
            "--task",
            TASK,
            "-c",
            str(HONEST),
        ]
        verbose, silent = run(*judged, "--verbose"), run(*judged)
        self.assertEqual(json.loads(verbose.stdout)["verdict"]["outcome"]["kind"], "pass")
        for words in ("/g++ -dumpfullversion", "candidate", "trial 0 took", "compile took"):
            self.assertIn(words, verbose.stderr)
            self.assertNotIn(words, silent.stderr)
        # The candidates' process comes of the judge's, whose import of PyTorch serves both.
        imports = re.findall(r"PyTorch process \d+ of .+: started", verbose.stderr)
        self.assertEqual(len(imports), 1, imports)


class Verdicts(InFolder):
    def test_the_same_seed_gives_the_same_verdict_and_another_one_other_inputs(self) -> None:
        arguments = ["--task", TASK, "-c", str(HONEST), "--seed"]
        first, second, third = (verdicts(*arguments, seed)[0] for seed in ("7", "7", "8"))
        for verdict in (first, second):
            for volatile in ("stages", "memory_peak_bytes", "compile_cached", "compile_cpu_s"):
                verdict["telemetry"].pop(volatile)
        self.assertEqual(first, second)
        digests = [trial["inputs_digest"] for trial in first["outcome"]["trials"]]
        self.assertTrue(all(digests))
        self.assertNotIn(third["outcome"]["trials"][0]["inputs_digest"], digests)

    def test_each_candidate_has_its_own_inputs_whoever_is_judged_beside_it(self) -> None:
        lines = []
        for number in range(3):
            response = HONEST.read_text() + f"# {number}\n"
            lines.append({"task": TASK, "sample": number, "response": response})
        answers = self.write("answers.jsonl", "\n".join(map(json.dumps, lines)))
        found = []
        for jobs in ("1", "3"):
            judged = verdicts("--seed", "7", "-c", answers, "--jobs", jobs)
            digests = [[t["inputs_digest"] for t in v["outcome"]["trials"]] for v in judged]
            found.append(([verdict["seed"] for verdict in judged], digests))
        self.assertEqual(found[0], found[1])
        seeds, digests = found[0]
        self.assertEqual(len({"7", *seeds}), 4)
        each = [digest for trials in digests for digest in trials]
        self.assertEqual(len(set(each)), len(each))


WARP = """
import torch, warp

@warp.kernel
def kernel(x: warp.array(dtype=float), y: warp.array(dtype=float)):
    y[warp.tid()] = x[warp.tid()]

class ModelNew(torch.nn.Module):
    def forward(self, x):
        warp.launch(kernel, dim=x.numel(), inputs=[x, x])
        return x
"""


class Policies(InFolder):
    """PyTorch in `forward`: nothing that computes by default, all of it as KernelBench counts."""

    def kinds(self, text: str, *arguments: str) -> list[str]:
        """Outcomes under musacoder and kernelbench, with the rule of a finding."""
        printed = []
        candidate = self.write("candidate.py", text)
        for policy in ("musacoder", "kernelbench"):
            given = ("--policy", policy, "--task", TASK, "-c", candidate, *arguments)
            verdict = verdicts("--backend", "cpu", *given)[0]
            self.assertEqual(verdict["protocol"]["policy"].split("/")[0], policy)
            outcome = verdict["outcome"]
            found = outcome.get("findings", outcome.get("constructs", []))
            printed.append(" ".join([outcome["kind"], *{one["rule"] for one in found}]))
        return printed

    def test_a_part_of_the_work_is_enough_for_kernelbench(self) -> None:
        text, right = HONEST.read_text(), "return row_sum_ext.row_sum(x.contiguous())"
        self.assertIn(right, text)
        partly = text.replace(right, "return torch.neg(row_sum_ext.row_sum(torch.neg(x)))")
        self.assertEqual(self.kinds(partly), ["illegal python.forbidden_call", "pass"])
        self.assertEqual(self.kinds(partly, "--no-static-rules"), ["illegal run.aten", "pass"])

    def test_but_not_none_of_it(self) -> None:
        text, right = HONEST.read_text(), "return row_sum_ext.row_sum(x.contiguous())"
        nothing = text.replace(right, "return torch.sum(x, dim=1)")
        expected = ["illegal run.aten", "illegal run.own_launch"]
        self.assertEqual(self.kinds(nothing, "--no-static-rules"), expected)

    def test_kernels_of_other_languages_are_unsupported(self) -> None:
        self.assertEqual(self.kinds(WARP), ["unsupported python.unsupported_language"] * 2)


def all_findings(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = outcome.get("findings", [])
    return found + [one for trial in outcome.get("trials", []) for one in trial["findings"]]


class Findings(InFolder):
    """Findings of the device apart from values, under the sandbox's limits."""

    def findings(self, task: str, right: str, broken: str) -> set[str]:
        text = honest(task)
        self.assertIn(right, text)
        candidate = self.write("candidate.py", text.replace(right, broken))
        outcome = verdicts("--task", task, "--seed", "1", "-c", candidate)[0]["outcome"]
        return {one["kind"] for one in all_findings(outcome)}

    def test_a_race_in_device_memory(self) -> None:
        place = "out[index[edge] * features + feature]"
        found = self.findings(
            "indexing/scatter_add_rows",
            right=f"atomicAdd(&{place}, messages[i])",
            broken=f"{place} += messages[i]",
        )
        self.assertEqual(found, {"global_race"})

    def test_the_race_that_the_readme_shows(self) -> None:
        example = ROOT / "examples/row_sum_race.py"
        found = all_findings(verdicts("--task", TASK, "-c", str(example))[0]["outcome"])
        lines = {one["location"]["line"] for one in found if one["kind"] == "shared_race"}
        self.assertTrue(lines and lines <= {30, 33}, found)  # The write, or the read.

    def test_a_write_past_the_end(self) -> None:
        right, broken = "out[blockIdx.x] = sum;", "out[blockIdx.x + 1] = sum;"
        self.assertEqual(self.findings(TASK, right, broken), {"out_of_bounds_write"})


class Cached(InFolder):
    """A library that another candidate's text was compiled to, and the messages about it."""

    BROKEN = "out[blockIdx.x + 1] = sum;"

    def test_a_finding_is_told_where_it_stands_in_the_candidate_that_is_judged(self) -> None:
        first = HONEST.read_text().replace("out[blockIdx.x] = sum;", self.BROKEN)
        first = first.replace("kThreads", "k" + os.urandom(8).hex())  # That nobody compiled before.
        name = first.partition('name="')[2].partition('"')[0]
        self.assertTrue(name)
        other = first.replace(f'name="{name}"', 'name="another"')
        shifted = "# Two lines.\n\n" + other
        moved = first.replace("  const int lane", "  // A line.\n  const int lane")
        texts = (first, other, shifted, moved)
        answers = [{"task": TASK, "sample": i, "response": f"```python\n{text}```\n"}
                   for i, text in enumerate(texts)]  # fmt: skip
        path = self.write("answers.jsonl", "".join(json.dumps(one) + "\n" for one in answers))
        judged = verdicts("-c", path)
        cached = [verdict["telemetry"]["compile_cached"] for verdict in judged]
        self.assertEqual(cached, [False, True, True, False])
        for text, verdict in zip(texts, judged):
            lines = {one["location"]["line"] for one in all_findings(verdict["outcome"])}
            before = text.partition(self.BROKEN)[0]
            self.assertEqual(lines, {before.count("\n") + 1}, verdict["outcome"])


class Strict(InFolder):
    """`--strict` repeats correctness with other seeds."""

    def test_an_honest_candidate_passes(self) -> None:
        verdict = verdicts("--strict", "--task", TASK, "--seed", "7", "-c", str(HONEST))[0]
        self.assertEqual(verdict["outcome"]["kind"], "pass")
        clean = {"check": "other_seeds", "result": "clean", "detail": ""}
        self.assertEqual(verdict["telemetry"]["audits"], [clean])
        self.assertIn("strict", [stage["stage"] for stage in verdict["telemetry"]["stages"]])

    def test_a_candidate_that_was_lucky_with_its_seed_fails(self) -> None:
        text = HONEST.read_text()
        self.assertIn("out[blockIdx.x] = sum;", text)
        # Wrong in one trial of sixteen: some seeds let it pass once, but not three times.
        unlucky = "out[blockIdx.x] = (__float_as_int(x[0]) & 15) == 7 ? 0.0f : sum;"
        lucky = self.write("lucky.py", text.replace("out[blockIdx.x] = sum;", unlucky))
        arguments = ["--task", TASK, "-c", str(lucky)]
        for seed in map(str, range(1, 20)):
            if verdicts(*arguments, "--seed", seed)[0]["outcome"]["kind"] != "pass":
                continue
            verdict = verdicts("--strict", *arguments, "--seed", seed)[0]
            if verdict["outcome"]["kind"] == "pass":
                continue  # Lucky three times.
            self.assertEqual(verdict["outcome"]["kind"], "wrong")
            self.assertGreater(verdict["outcome"]["q"], 0)
            self.assertEqual(verdict["telemetry"]["audits"][0]["result"], "findings")
            return
        self.fail("no seed tells one run from three")


@unittest.skipUnless(can_do_without_uts(), "needs to make a user namespace with limits of its own")
class WeakSandbox(unittest.TestCase):
    ARGUMENTS = ("eval", "--no-shapes", "--trials", "1", "--task", TASK, "-c", str(HONEST))

    def test_a_missing_protection_is_named_in_the_verdict(self) -> None:
        done = run(*self.ARGUMENTS, "--json", "--allow-weak-sandbox", within=WITHOUT_UTS)
        verdict = json.loads(done.stdout)["verdict"]
        self.assertEqual(verdict["outcome"]["kind"], "pass", done.stdout)
        off = verdict["telemetry"]["protections_off"]
        self.assertEqual(set(off) - {"process_limit"}, {"uts_namespace"})

    def test_a_missing_protection_is_named_to_those_who_only_read_the_table(self) -> None:
        done = run(*self.ARGUMENTS, "--allow-weak-sandbox", within=WITHOUT_UTS)
        self.assertRegex(done.stdout, "sandbox without .*uts_namespace")

    def test_without_leave_nothing_is_judged(self) -> None:
        done = run(*self.ARGUMENTS, within=WITHOUT_UTS)
        self.assertEqual(done.returncode, MACHINE_FAILED, done.stdout)
        self.assertIn("uts_namespace", done.stderr.splitlines()[-1])

    def test_no_service_is_offered_that_could_not_judge(self) -> None:
        done = run("serve", "--port", "0", within=WITHOUT_UTS)
        self.assertEqual((done.returncode, done.stdout), (MACHINE_FAILED, ""), done.stderr)
        self.assertIn("uts_namespace", done.stderr.splitlines()[-1])

    def test_the_doctor_names_it_too(self) -> None:
        done = run("doctor", within=WITHOUT_UTS)
        self.assertEqual(done.returncode, MACHINE_FAILED, done.stdout)
        self.assertRegex(done.stdout, "MISSING uts_namespace")


class Doctor(unittest.TestCase):
    def test_it_names_the_backends(self) -> None:
        done = run("doctor")
        self.assertIn("cpu", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_it_tells_of_the_gpu_and_needs_none(self) -> None:
        done = run("doctor")
        self.assertRegex(done.stdout, r"(?m)^GPU\n  (ok|none) +driver ")
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
