# SPDX-License-Identifier: Apache-2.0
"""Verdicts a minute on real answers: MooreEval and KernelBench's harness, side by side, cold.

The answers are those of a checkout of github.com/anneouyang/KernelBenchLeaderboard, KernelBench is
a checkout of github.com/ScalingIntelligence/KernelBench; of neither is anything here. N answers are
drawn by seed. Each side starts with nothing compiled: MooreEval in a cache of its own below --out,
in which its runtime is prepared before the clock starts; KernelBench in a fresh build directory.
KernelBench judges as its run script does: with --their-workers its build cache is filled first, so
many at once, then one process an answer; the clock runs through both.

  verdicts.py LEADERBOARD --out DIR --number 100 --jobs 16                      ours alone
  verdicts.py LEADERBOARD --out DIR --number 20 --kernelbench CHECKOUT          both
  verdicts.py LEADERBOARD --out DIR --number 30 --compile-only --backend cuda   no device needed

--compile-only compiles for an NVIDIA device that need not be here, by each way of --ways: facade,
full (PyTorch's headers by our compiler calls) and load_inline (PyTorch's own, with ninja). Every
third candidate loses a token of its CUDA source, by seed. CPU seconds are user and system time of
the compilers.

Results are written as they come: DIR/{sample.json, ours.jsonl, theirs.jsonl, compile.jsonl}, then
DIR/result.json and a table. The same command goes on where KernelBench's or load_inline's part
stopped; ours is one run, and is done anew.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/gpu")]

import real_answers  # noqa: E402
from figures import table  # noqa: E402

Json = dict[str, Any]
ONE = Path(__file__).with_name("kernelbench_one.py")
RECORD = Path(__file__).with_name("record.py")
WAYS = ("facade", "full", "load_inline")
BROKEN_EVERY = 3
MARK = "no code"  # An answer that makes eval set itself up and compile nothing.


@dataclass(frozen=True)
class Bench:
    arguments: argparse.Namespace
    folder: Path  # Of tasks and answers, as real_answers exports them.
    answers: list[real_answers.Answer]
    tasks: dict[str, str]  # Code by "1/19".

    @property
    def out(self) -> Path:
        path: Path = self.arguments.out
        return path

    @property
    def environment(self) -> dict[str, str]:
        cache = str((self.out / "cache").resolve())
        return os.environ | {"MC_CACHE_DIR": cache, "MC_KERNELBENCH": str(self.folder)}


# ---- Figures ------------------------------------------------------------------------------------


def share_at(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all do not exceed; nan of none."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else float("nan")


def figures(values: Sequence[float]) -> Json:
    if not values:
        return {"number": 0}
    return {
        "number": len(values),
        "median": statistics.median(values),
        "p90": share_at(values, 0.9),
        "sum": sum(values),
    }


def children_cpu_s() -> float:
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def read_whole_lines(path: Path) -> list[Json]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(True) if line.endswith("\n")]


def add_line(path: Path, line: Json) -> None:
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


# ---- Ours ---------------------------------------------------------------------------------------


def eval_command(bench: Bench, submissions: Path, out: Path) -> list[str]:
    given = bench.arguments
    command = [given.musacoder, "eval", "--candidate", str(submissions), "--out", str(out)]
    command += ["--backend", given.backend, "--jobs", str(given.jobs), "--seed", str(given.seed)]
    command += ["--no-timing"] if given.timing == "none" else ["--timing", given.timing]
    return [*command, *given.option]


def run_eval(bench: Bench, lines: Sequence[Json], out: Path) -> None:
    submissions = out.with_suffix(".answers.jsonl")
    real_answers.write_lines(submissions, lines)
    command = eval_command(bench, submissions, out)
    done = subprocess.run(command, env=bench.environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise real_answers.InputError(f"{command[0]} eval failed with code {done.returncode}")


def prepare(bench: Bench) -> None:
    """Builds the runtime, if it is not there, and removes what was compiled with it."""
    bench.out.mkdir(parents=True, exist_ok=True)
    first = real_answers.submission(bench.answers[0]) | {"response": MARK}
    run_eval(bench, [first], bench.out / "prepare.jsonl")
    shutil.rmtree(bench.out / "cache/artifacts", ignore_errors=True)


def judge_ours(bench: Bench) -> Json:
    prepare(bench)
    out = bench.out / "ours.jsonl"
    out.unlink(missing_ok=True)
    before, start = children_cpu_s(), time.monotonic()
    run_eval(bench, [real_answers.submission(one) for one in bench.answers], out)
    wall_s, cpu_s = time.monotonic() - start, children_cpu_s() - before
    return ours_of([line["verdict"] for line in read_whole_lines(out)], wall_s, cpu_s)


def ours_of(verdicts: Sequence[Json], wall_s: float, cpu_s: float) -> Json:
    telemetry = [verdict["telemetry"] for verdict in verdicts]
    stages: dict[str, list[float]] = {}
    for one in telemetry:
        for stage in one["stages"]:
            stages.setdefault(stage["stage"], []).append(stage["ms"] / 1000)
    return {
        "verdicts": len(verdicts),
        "wall_s": wall_s,
        "per_minute": 60 * len(verdicts) / wall_s,
        # Of all processes that ended meanwhile, a zygote's children too.
        "cpu_s_all": cpu_s,
        "compile_cpu_s": figures([one["compile_cpu_s"] for one in telemetry]),
        "stages_s": {name: figures(values) for name, values in stages.items()},
        "facade": sum(not one["full_headers"] for one in telemetry),
        "kinds": Counter(verdict["outcome"]["kind"] for verdict in verdicts),
    }


# ---- KernelBench --------------------------------------------------------------------------------


def run_one(bench: Bench, what: str, answer: real_answers.Answer, code: str, build: Path) -> Json:
    """What kernelbench_one prints, with the time and the processor time of its whole tree."""
    given = bench.arguments
    task = bench.tasks[answer.key.rpartition("/")[0]]
    timing = given.timing != "none"
    build.mkdir(parents=True, exist_ok=True)
    question = build / "question.json"
    fields = {"task": task, "answer": code, "build_dir": str(build), "timing": timing, "trials": 5}
    question.write_text(json.dumps(fields))
    command = [given.python, str(ONE), str(given.kernelbench), what, str(question)]
    return timed_run(command, given.their_timeout, dict(os.environ))


def timed_run(command: Sequence[str], timeout_s: float, environment: dict[str, str]) -> Json:
    """The last line of a program as JSON, with wall_s and cpu_s of it and all that it started."""
    with tempfile.NamedTemporaryFile("r") as use:
        timer = [sys.executable, "-c", TIMER, use.name, str(timeout_s), *command]
        start = time.monotonic()
        done = subprocess.run(timer, capture_output=True, text=True, env=environment, check=False)
        wall_s = time.monotonic() - start
        cpu_s = float(use.read() or "nan")
    lines = done.stdout.strip().splitlines()
    try:
        answer: Json = json.loads(lines[-1])
    except (IndexError, ValueError):
        answer = {"outcome": "failed", "error": (done.stderr or "ended without a word")[-400:]}
    return answer | {"wall_s": wall_s, "cpu_s": cpu_s}


# Runs a program under a time limit; writes the processor time of its tree.
TIMER = """
import os, resource, signal, subprocess, sys
path, limit, *command = sys.argv[1:]
process = subprocess.Popen(command, start_new_session=True)
try:
    process.wait(float(limit))
except subprocess.TimeoutExpired:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    print('{"outcome": "timeout", "error": ""}')
use = resource.getrusage(resource.RUSAGE_CHILDREN)
open(path, "w").write(str(use.ru_utime + use.ru_stime))
"""


def judge_theirs(bench: Bench) -> Json:
    path = bench.out / "theirs.jsonl"
    builds = bench.out / "theirs_build"
    done = {line["key"]: line for line in read_whole_lines(path)}
    rest = [one for one in bench.answers if one.key not in done]
    start = time.monotonic()
    for one in rest:
        shutil.rmtree(builds / one.key, ignore_errors=True)
    workers = bench.arguments.their_workers
    built: dict[str, Json] = {}
    if workers > 0:
        with ThreadPoolExecutor(workers) as pool:
            runs = {
                one.key: pool.submit(run_one, bench, "build", one, one.code, builds / one.key)
                for one in rest
            }
            built = {key: run.result() for key, run in runs.items()}
    build_s = (time.monotonic() - start) / max(1, len(rest))  # A candidate's share of the clock.
    for one in rest:
        line = run_one(bench, "eval", one, one.code, builds / one.key)
        line["cpu_s"] += built.get(one.key, {"cpu_s": 0.0})["cpu_s"]
        add_line(path, {"key": one.key, "share_s": line["wall_s"] + build_s} | line)
        shutil.rmtree(builds / one.key, ignore_errors=True)
    return theirs_of(read_whole_lines(path))


def theirs_of(lines: Sequence[Json]) -> Json:
    wall_s = sum(line["share_s"] for line in lines)
    return {
        "verdicts": len(lines),
        "wall_s": wall_s,
        "per_minute": 60 * len(lines) / wall_s if lines else float("nan"),
        "cpu_s": figures([line["cpu_s"] for line in lines]),
        "eval_s": figures([line["wall_s"] for line in lines]),
        "kinds": Counter(line["outcome"] for line in lines),
    }


# ---- Compiling alone ----------------------------------------------------------------------------

TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|[A-Za-z_]\w*|\d[\w.]*|[^\s\w]", re.S)


def without_a_token(text: str, rng: random.Random) -> str:
    tokens = [found for found in TOKEN.finditer(text) if found[0][:2] not in ("//", "/*")]
    if not tokens:
        return text
    lost = rng.choice(tokens)
    return text[: lost.start()] + text[lost.end() :]


def broken(code: str, extension: Json, rng: random.Random) -> str:
    """The candidate with a token less in what it compiles, where that stands in it as it is."""
    for source in (*extension["cuda_sources"], *extension["cpp_sources"]):
        if source in code:
            return code.replace(source, without_a_token(source, rng), 1)
    return code


def recorded(bench: Bench, codes: dict[str, str]) -> dict[str, Json]:
    """What each module asks load_inline for; those that ask for nothing are left out."""
    with tempfile.TemporaryDirectory() as folder:
        questions, answers = Path(folder) / "codes.json", Path(folder) / "recorded.json"
        questions.write_text(json.dumps(codes))
        subprocess.run(
            [bench.arguments.python, str(RECORD), str(questions), str(answers)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        found: dict[str, Json] = json.loads(answers.read_text())
        return found


def compile_set(bench: Bench) -> list[Json]:
    """{id, source, extensions, is_broken} of each candidate."""
    rng = random.Random(bench.arguments.seed)
    codes = {one.key: one.code for one in bench.answers}
    whole = recorded(bench, codes)
    keys = [one.key for one in bench.answers if one.key in whole]
    to_break = keys[BROKEN_EVERY - 1 :: BROKEN_EVERY]
    for key in to_break:
        codes[key] = broken(codes[key], whole[key]["extensions"][0], rng)
    whole |= recorded(bench, {key: codes[key] for key in to_break})
    return [
        {"id": key, "source": codes[key], "is_broken": key in to_break, **whole[key]}
        for key in keys
    ]


def compile_ours(bench: Bench, way: str, lines: Sequence[Json]) -> Iterator[Json]:
    given = bench.arguments
    shutil.rmtree(bench.out / "cache/artifacts", ignore_errors=True)
    questions = bench.out / "extensions.jsonl"
    command = [given.musacoder, "compile", str(questions), "--jobs", str(given.jobs)]
    command += ["--compile-timeout", "600", *(["--full-headers"] if way == "full" else [])]
    questions.write_text("")  # Sets itself up before the first is timed.
    subprocess.run(command, env=bench.environment, check=True)
    real_answers.write_lines(questions, lines)
    with subprocess.Popen(
        command, env=bench.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode != 0:
        raise real_answers.InputError(f"{command[0]} compile failed")


def compile_by_load_inline(bench: Bench, lines: Sequence[Json]) -> Iterator[Json]:
    given = bench.arguments
    environment = os.environ | {"TORCH_CUDA_ARCH_LIST": "9.0", "MAX_JOBS": "2"}
    for line in lines:
        with tempfile.TemporaryDirectory() as folder:
            question = Path(folder) / "question.json"
            question.write_text(json.dumps({"answer": line["source"], "build_dir": folder}))
            command = [given.python, str(RECORD), "--build", str(question)]
            empty = timed_run([*command, "--import-alone"], given.their_timeout, environment)
            one = timed_run(command, given.their_timeout, environment)
            # Less what Python takes to import torch.
            yield {"id": line["id"]} | one | {"cpu_s": max(0.0, one["cpu_s"] - empty["cpu_s"])}


def compile_alone(bench: Bench) -> Json:
    bench.out.mkdir(parents=True, exist_ok=True)
    path = bench.out / "compile.jsonl"
    lines = compile_set(bench)
    done = {(line["way"], line["id"]) for line in read_whole_lines(path)}
    for way in bench.arguments.ways:
        rest = [line for line in lines if (way, line["id"]) not in done]
        if way != "facade":
            rest = rest[: bench.arguments.slow_number]
        if not rest:
            continue
        made = compile_by_load_inline(bench, rest) if way == "load_inline" else None
        for answer in made or compile_ours(bench, way, rest):
            add_line(path, {"way": way} | answer)
    return compiled_of(read_whole_lines(path), lines)


def compiled_of(done: Sequence[Json], lines: Sequence[Json]) -> Json:
    result: Json = {"candidates": len(lines), "broken": sum(line["is_broken"] for line in lines)}
    for way in WAYS:
        of_way = [line for line in done if line["way"] == way]
        if not of_way:
            continue
        result[way] = {
            "cpu_s": figures([line["cpu_s"] for line in of_way]),
            "wall_s": figures([line["wall_s"] for line in of_way]),
            "kinds": Counter(line["outcome"] for line in of_way),
        }
        if way == "facade":
            result[way]["facade"] = sum(not line["full_headers"] for line in of_way)
    by_way = {way: {one["id"]: one["outcome"] for one in done if one["way"] == way} for way in WAYS}
    first, *others = [way for way in WAYS if by_way[way]]
    result["differ"] = [
        {"id": key, first: outcome, way: by_way[way][key]}
        for way in others
        for key, outcome in by_way[first].items()
        if key in by_way[way] and by_way[way][key] != outcome
    ]
    return result


# ---- Tables -------------------------------------------------------------------------------------


def number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


FIELDS = ("number", "median", "p90", "sum")


def row(name: str, of: Json) -> list[str]:
    return [name, *(number(of.get(field, "")) for field in FIELDS)]


def told(result: Json) -> str:
    parts = []
    sides = [name for name in ("MooreEval", "KernelBench") if name in result]
    if sides:
        rows = []
        for name in sides:
            side = result[name]
            cpu = side.get("compile_cpu_s", side.get("cpu_s", {}))
            fields = (side["verdicts"], side["wall_s"], side["per_minute"], cpu.get("median", ""),
                      cpu.get("p90", ""))  # fmt: skip
            kinds = ", ".join(f"{count} {kind}" for kind, count in side["kinds"].items())
            rows.append([name, *map(number, fields), kinds])
        heads = ("harness", "verdicts", "wall s", "a minute", "CPU s median", "p90", "outcomes")
        parts.append(table(heads, rows))
    if "MooreEval" in result:
        stages = result["MooreEval"]["stages_s"]
        parts.append(table(("stage, s", *FIELDS), [row(name, of) for name, of in stages.items()]))
    if "compile" in result:
        ways = [(way, result["compile"][way]) for way in WAYS if way in result["compile"]]
        parts.append(
            table(("CPU s of compilers", *FIELDS), [row(way, of["cpu_s"]) for way, of in ways])
        )
        for way, of in ways:
            kinds = ", ".join(f"{count} {kind}" for kind, count in of["kinds"].items())
            served = f"; {of['facade']} by the facade" if "facade" in of else ""
            parts.append(f"{way}: {kinds}{served}")
        parts += [f"differs: {one}" for one in result["compile"]["differ"]]
    return "\n".join(parts)


# ---- Commands -----------------------------------------------------------------------------------


def parsed(words: Sequence[str]) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("leaderboard", type=Path, help="a checkout, or what real_answers exported")
    parser.add_argument("--out", type=Path, required=True, help="folder of what is measured")
    parser.add_argument("--kernelbench", type=Path, help="a checkout; without it ours alone")
    parser.add_argument("--number", type=real_answers.positive, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=real_answers.positive, default=os.cpu_count())
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--timing", choices=("none", "quick", "full"), default="quick")
    parser.add_argument("--musacoder", default=str(ROOT / "build/dev/bin/musacoder"))
    parser.add_argument("--python", default=sys.executable, help="with torch, for KernelBench")
    parser.add_argument("--only", choices=("ours", "theirs"), help="one of both sides")
    parser.add_argument("--their-workers", type=int, default=0, help="of KernelBench's build cache")
    parser.add_argument("--their-timeout", type=float, default=300, help="seconds a candidate")
    parser.add_argument(
        "--slow-number", type=int, default=10**6, help="the most of other ways than the facade"
    )
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["facade", "full"])
    parser.add_argument("--option", action="append", default=[], help="passed on to eval")
    return parser.parse_args(words)


def opened(arguments: argparse.Namespace, scratch: Path) -> Bench:
    folder = arguments.leaderboard
    if not (folder / "answers.jsonl").is_file():
        folder = scratch / "inputs"
        real_answers.export(arguments.leaderboard, folder)
    answers = real_answers.read_exported(folder)
    drawn = random.Random(arguments.seed).sample(answers, min(arguments.number, len(answers)))
    tasks = {
        f"{task['level']}/{task['problem_id']}": task["code"]
        for path in folder.glob("level*.jsonl")
        for task in real_answers.read_lines(path)
    }
    return Bench(arguments, folder, drawn, tasks)


def run(arguments: argparse.Namespace, scratch: Path) -> None:
    bench = opened(arguments, scratch)
    bench.out.mkdir(parents=True, exist_ok=True)
    keys = [one.key for one in bench.answers]
    (bench.out / "sample.json").write_text(json.dumps({"seed": arguments.seed, "keys": keys}))
    path = bench.out / "result.json"
    result: Json = json.loads(path.read_text()) if path.exists() else {}
    if arguments.compile_only:
        result["compile"] = compile_alone(bench)
    else:
        if arguments.only != "theirs":
            result["MooreEval"] = judge_ours(bench)
        if arguments.kernelbench and arguments.only != "ours":
            result["KernelBench"] = judge_theirs(bench)
    result["arguments"] = {name: str(value) for name, value in vars(arguments).items()}
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(told(result))


def main(words: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        try:
            run(parsed(words), Path(scratch))
        except real_answers.InputError as error:
            print(f"verdicts: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
