#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Public answers that KernelBench's harness recorded as correct, judged by MooreEval.

The answers are those of public repositories, of which nothing is here. `git clone --bare` copies
one. An answer is a text for a task: the same text in two runs is one answer, and it is recorded as
correct if one of its records is.

A seed orders the answers. `judge` takes the first of that order and writes the verdicts of twelve a
job at a time, so a command that was ended goes on where it was. An answer has up to four verdicts:

    musacoder    the default options: all
    kernelbench  the same with --policy kernelbench: those that the first refuses
    native       the task's own values and size, tolerance 0.01: those that fail otherwise
    verified     the task's values times 1, 3, 0.01 and -1, its own size: the same

usage: lab/audit/audit.py export FOLDER OWNER/NAME=REPOSITORY...
       lab/audit/audit.py judge FOLDER --count 120 [--musacoder PROGRAM] [--backend cuda]
                            [--only KEY]
       lab/audit/audit.py table FOLDER [--count 120]
       lab/audit/audit.py speeds FOLDER RESULTS...  (of eval --out with times: the table, and
                            speeds.png in FOLDER)
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import hashlib
import io
import json
import random
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "lab/answers", "lab/gpu")]

from figures import share_interval  # noqa: E402
from real_answers import ASSETS, RAW, read_lines, write_lines  # noqa: E402

Json = dict[str, Any]
Files = Mapping[str, str]
SEED = 64
MAIN_SHAPES = ("native", "reduced")
READINGS = Path(__file__).with_name("readings.json")

PROTOCOLS: dict[str, tuple[str, ...]] = {
    "musacoder": ("--policy", "musacoder"),
    "kernelbench": ("--policy", "kernelbench"),
    "native": (
        *("--policy", "kernelbench", "--inputs", "native"),
        *("--tolerance", "0.01", "--no-shapes"),
    ),
    "verified": ("--policy", "kernelbench", "--inputs", "verified", "--no-shapes"),
}

# The faults of an answer, and the results that are no fault.
RACE, MEMORY, CRASH = "race", "memory error", "fails when it runs"
OWN_VALUES, OTHER_VALUES = "wrong at the task's own values", "wrong at other values only"
STATE, TORCH, NO_KERNEL, CHEAT = "state", "PyTorch's work", "no kernel of its own", "cheat"
FAULTS = (RACE, MEMORY, CRASH, OWN_VALUES, OTHER_VALUES, STATE, NO_KERNEL, CHEAT)
COMPILE, SIZES, LIMIT = "does not compile here", "wrong at other sizes only", "over a limit here"
SPECIAL, PRECISION = "wrong at NaN or infinity only", "right to 1 %, not to 0.01 %"
# Only a reader finds these.
OURS, REDUCED, NAMES = "MooreEval's error", "wrong at reduced sizes only", "needs the task's module"
RUNS = (TORCH, PRECISION, SIZES, SPECIAL)
APART = (*RUNS, REDUCED, OURS, NAMES, COMPILE, LIMIT, "unsupported", "not judged")
PASS = "pass"


@dataclass(frozen=True)
class Answer:
    """A record of one run, as its repository has it."""

    repository: str
    commit: str
    path: str
    model: str
    task: str
    correct: bool
    code: str

    @property
    def sample(self) -> str:
        return hashlib.sha256(self.code.encode()).hexdigest()[:10]

    @property
    def key(self) -> str:
        return f"{self.repository}:{self.task.removeprefix('kernelbench:')}#{self.sample}"


class InputError(Exception):
    """The input is wrong; the message is one line for the user."""


# ---- Records ------------------------------------------------------------------------------------

MODELS = (  # The first pattern that is in a run's name; the names are those of the runs' settings.
    ("gemini", "gemini-2.5-pro"),
    ("qwen3_|qwencoder", "Qwen3-Coder-480B-A35B"),
    ("opus4", "claude-opus-4.1"),
    ("codex", "gpt-5.5"),
    ("gemma4", "gemma-4-26B-A4B"),
    ("deepseek_v4_pro", "deepseek-v4-pro"),
    ("qwen_coder", "qwen3-coder-next"),
    ("qwen36", "Qwen3.6-35B-A3B"),
)


def model_of(run: str) -> str:
    for pattern, name in MODELS:
        if re.search(pattern, run):
            return name
    raise InputError(f"{run}: no model is known for this run")


Record = tuple[str, str, str, bool]  # Path, model, task, and whether it is recorded as correct.


def harness_runs(files: Files) -> Iterator[Record]:
    """Folders of KernelBench's own harness: eval_results.json beside the kernels."""
    pattern = r"(runs/([^/]+))/level_(\d)_problem_(\d+)_sample_(\d+)_kernel\.py"
    results = {
        path.rpartition("/")[0]: json.loads(text)
        for path, text in files.items()
        if path.endswith("/eval_results.json")
    }
    for path in files:
        if not (match := re.fullmatch(pattern, path)):
            continue
        entries = results.get(match[1], {}).get(match[4], [])
        entries = entries if isinstance(entries, list) else [entries]
        of_sample = [one for one in entries if str(one.get("sample_id", 0)) == match[5]]
        if of_sample:
            correct = any(bool(one.get("correctness")) for one in of_sample)
            yield path, model_of(match[2]), f"kernelbench:{match[3]}/{match[4]}", correct


def detailed_runs(files: Files) -> Iterator[Record]:
    """Folders with detailed_results.json and problem_<number>_kernel.py."""
    for path, text in files.items():
        if not (match := re.fullmatch(r"(runs/(\w+_level(\d)_\w+))/detailed_results\.json", path)):
            continue
        for entry in json.loads(text)["results"]:
            problem = entry["problem_id"]
            kernel = f"{match[1]}/problem_{problem}_kernel.py"
            if kernel in files:
                correct = bool((entry.get("eval_result") or {}).get("correctness"))
                yield kernel, model_of(match[2]), f"kernelbench:{match[3]}/{problem}", correct


def line_runs(files: Files) -> Iterator[Record]:
    """Folders with results.jsonl, whose lines name the kernels."""
    for path, text in files.items():
        if not (match := re.fullmatch(r"runs/([^/]+)/results\.jsonl", path)):
            continue
        for entry in map(json.loads, filter(str.strip, text.splitlines())):
            kernel = entry.get("generated_kernel_path", "")
            if kernel in files:
                correct = bool((entry.get("eval_result") or {}).get("correctness"))
                task = f"kernelbench:{entry['level']}/{entry['problem_id']}"
                yield kernel, model_of(match[1]), task, correct


def answers_of(repository: str, commit: str, files: Files) -> list[Answer]:
    """All records of a repository."""
    found = [
        Answer(repository, commit, path, model, task, correct, files[path])
        for reader in (line_runs, detailed_runs, harness_runs)
        for path, model, task, correct in reader(files)
    ]
    raw = json.loads(files.get(RAW, "[]"))
    for entry in raw:  # The leaderboard, all of whose answers were correct, counts from 0.
        path = f"{RAW}#{entry['file']}"
        task = f"kernelbench:{entry['level']}/{int(entry['problem_id']) + 1}"
        model = entry["model"].rpartition("/")[2]
        found.append(Answer(repository, commit, path, model, task, True, entry["code"]))
    return found


def tasks_of(files: Files) -> dict[str, Json]:
    """KernelBench's tasks in the form of a suite's lines, by id."""
    found = {}
    for path, code in files.items():
        match = re.fullmatch(r"KernelBench/level([123])/(\d+)_(.*)\.py", path)
        match = match or re.fullmatch(r"docs/assets/problems/l(\d)_p(\d+)()\.py", path)
        if match:
            level, problem = int(match[1]), int(match[2])
            name = match[3] or f"l{level}_p{problem}"
            entry = {"level": level, "problem_id": problem, "name": name, "code": code}
            found[f"kernelbench:{level}/{problem}"] = entry
    return found


def merged(answers: Iterable[Answer]) -> tuple[list[Answer], list[str]]:
    """One answer for each text, correct if one record is; and the keys with both records."""
    groups: dict[str, list[Answer]] = collections.defaultdict(list)
    for answer in answers:
        groups[answer.key].append(answer)
    best = [max(group, key=lambda one: one.correct) for group in groups.values()]
    both = [key for key, group in groups.items() if len({one.correct for one in group}) == 2]
    return best, both


# ---- Export -------------------------------------------------------------------------------------


def files_of(repository: Path) -> tuple[str, dict[str, str]]:
    """The newest commit of a work tree or a bare repository, and its texts that are read here."""
    git = ["git", "-C", str(repository)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    packed = subprocess.run([*git, "archive", "HEAD"], capture_output=True, check=True)
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        for member in archive:
            wanted = re.match(r"(runs|KernelBench|docs/assets)/.*\.(py|jsonl?)$", member.name)
            if wanted and (file := archive.extractfile(member)):
                texts[member.name] = file.read().decode("utf-8", "replace")
    return commit.stdout.strip(), texts


def export(folder: Path, sources: Mapping[str, Path]) -> None:
    kept: list[Answer] = []
    for repository, path in sources.items():
        commit, files = files_of(path)
        tasks = tasks_of(files)
        answers, both = merged(answers_of(repository, commit, files))
        accepted = [one for one in answers if one.correct and one.task in tasks]
        kept += accepted
        write_suite(folder / suite_of(repository), tasks)
        print(
            f"{repository} at {commit[:10]}: {len(answers)} answers with a record,"
            f" {len(accepted)} recorded as correct, {len(both)} of them also as wrong"
        )
    write_lines(folder / "answers.jsonl", [dataclasses.asdict(one) for one in kept])


def write_suite(folder: Path, tasks: Mapping[str, Json]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for level in (1, 2, 3):
        lines = [one for one in tasks.values() if one["level"] == level]
        write_lines(folder / f"level{level}.jsonl", lines)


def suite_of(repository: str) -> str:
    return repository.replace("/", "+")


def drawn(folder: Path, count: int | None) -> list[Answer]:
    """The first answers of the seed's order: each prefix is a sample without favour."""
    answers = [Answer(**line) for line in read_lines(folder / "answers.jsonl")]
    answers.sort(key=lambda one: one.key)
    random.Random(SEED).shuffle(answers)
    return answers[:count]


# ---- Judging ------------------------------------------------------------------------------------

Verdicts = dict[str, dict[str, Json]]  # Key of an answer, name of a protocol.


def read_verdicts(folder: Path) -> Verdicts:
    """The last verdict of each protocol, apart from failures of the machine."""
    found: Verdicts = collections.defaultdict(dict)
    path = folder / "verdicts.jsonl"
    for line in read_lines(path) if path.exists() else []:
        if line["verdict"]["outcome"]["kind"] != "infra":
            found[line["key"]][line["protocol"]] = line["verdict"]
    return found


def wants(protocol: str, verdicts: Mapping[str, Json]) -> bool:
    """True if an answer with these verdicts is to be judged by this protocol too."""
    if protocol in verdicts:
        return False
    if protocol == "musacoder":
        return True
    if "musacoder" not in verdicts:
        return False
    if protocol == "kernelbench":
        return kind_of(verdicts["musacoder"]) == "illegal"
    return kind_of(of_values(verdicts)) in ("wrong", "runtime", "timeout", "oom")


def kind_of(verdict: Json | None) -> str:
    return str(verdict["outcome"]["kind"]) if verdict else "not judged"


def of_values(verdicts: Mapping[str, Json]) -> Json | None:
    """The verdict by all of MooreEval's values under the policy that lets the answer run."""
    ours = verdicts.get("musacoder")
    return verdicts.get("kernelbench") if kind_of(ours) == "illegal" else ours


def judge(folder: Path, answers: Sequence[Answer], command: Sequence[str], batch: int = 24) -> None:
    for protocol in PROTOCOLS:
        verdicts = read_verdicts(folder)
        pending = [one for one in answers if wants(protocol, verdicts[one.key])]
        for repository in dict.fromkeys(one.repository for one in pending):
            of_suite = [one for one in pending if one.repository == repository]
            print(f"{protocol}: {len(of_suite)} answers of {repository}", flush=True)
            for start in range(0, len(of_suite), batch):
                judge_batch(folder, of_suite[start : start + batch], protocol, command)


def judge_batch(
    folder: Path, answers: Sequence[Answer], protocol: str, command: Sequence[str]
) -> None:
    """Appends the verdicts of a batch, which the program prints at its end."""
    keys = {f"{one.task}#{one.sample}": one.key for one in answers}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "answers.jsonl"
        write_lines(path, [submission(one) for one in answers])
        suite = folder / suite_of(answers[0].repository)
        options = [*command[1:], "--suite", str(suite), "--seed", str(SEED)]
        words = [command[0], "eval", str(path), *options, "--json", *PROTOCOLS[protocol]]
        with (
            subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process,
            (folder / "verdicts.jsonl").open("a") as file,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                verdict = json.loads(line)["verdict"]
                entry = {"key": keys[verdict["candidate"]], "protocol": protocol}
                file.write(json.dumps({**entry, "verdict": verdict}) + "\n")
                file.flush()
    if process.returncode == 2:
        raise InputError(f"{' '.join(words)} refuses its input")


def submission(answer: Answer) -> Json:
    fenced = f"```python\n{answer.code}\n```\n"
    return {"task": answer.task, "sample": answer.sample, "response": fenced}


# ---- What is wrong ------------------------------------------------------------------------------


def fault_of(verdicts: Mapping[str, Json]) -> str:
    """The fault of an answer: one of FAULTS, one of APART, or PASS."""
    ours, values = verdicts.get("musacoder"), of_values(verdicts)
    kind = kind_of(values)
    if kind in ("not judged", "unsupported"):
        return kind
    assert values is not None
    outcome = values["outcome"]
    by_kind: dict[str, Callable[[], str]] = {
        "pass": lambda: passing(outcome, kind_of(ours) == "illegal"),
        "wrong": lambda: wrong(outcome, verdicts),
        "runtime": lambda: crash(outcome),
        "illegal": lambda: NO_KERNEL if is_ruled(outcome, "run.own_launch") else CHEAT,
    }
    apart = {"timeout": LIMIT, "oom": LIMIT}
    return by_kind[kind]() if kind in by_kind else apart.get(kind, COMPILE)


def passing(outcome: Json, is_refused: bool) -> str:
    """A passing answer's fault: its failed trials do not count for KernelBench's tasks."""
    shapes = {one["shape"] for one in outcome["trials"] if not one["passed"]}
    if is_refused:
        return TORCH
    if shapes - set(MAIN_SHAPES):
        return SIZES
    return SPECIAL if shapes else PASS


def wrong(outcome: Json, verdicts: Mapping[str, Json]) -> str:
    if fault := of_findings(findings_of(outcome)):
        return fault
    trials = failed(outcome)
    if not any(has_wrong_output(trial) for trial in trials):
        return STATE
    native = verdicts.get("native")
    if kind_of(native) != "pass" and not fails_by_state(native):
        return OWN_VALUES
    checks = [one for trial in trials for one in trial["checks"] if not is_state(one["path"])]
    return PRECISION if all(is_close(check) for check in checks) else OTHER_VALUES


def is_close(check: Json) -> bool:
    """True if the largest error is within 100 times what is allowed, 1 % for fp32."""
    numbers = [check["error_max"], check["error_tolerance"]]
    if check["problem"] != "value" or any(isinstance(one, str) for one in numbers):
        return False
    return bool(numbers[0] <= 100 * numbers[1])


def has_wrong_output(trial: Json) -> bool:
    return any(not is_state(check["path"]) for check in trial["checks"])


def fails_by_state(verdict: Json | None) -> bool:
    """True if the answer is wrong, and not by its outputs."""
    trials = failed(verdict["outcome"]) if verdict else []
    return kind_of(verdict) == "wrong" and not any(has_wrong_output(trial) for trial in trials)


def is_state(path: str) -> bool:
    return path.startswith(("buffer ", "written input")) or path.endswith(" after the call")


def crash(outcome: Json) -> str:
    return of_findings(findings_of(outcome)) or CRASH


def of_findings(findings: Iterable[Json]) -> str:
    kinds = {one["kind"] for one in findings}
    if any("race" in kind for kind in kinds):
        return RACE
    return MEMORY if kinds else ""


def findings_of(outcome: Json) -> list[Json]:
    """The findings of the kernels, at the main shape or before a fatal end."""
    trials = [one for trial in failed(outcome) for one in trial["findings"]]
    return [*outcome.get("findings", []), *trials]


def failed(outcome: Json) -> list[Json]:
    """Trials at the main shape that failed: those alone count for KernelBench's tasks."""
    trials = [one for one in outcome.get("trials", []) if not one["passed"]]
    return [one for one in trials if one["shape"] in MAIN_SHAPES] or trials


def is_ruled(outcome: Json, rule: str) -> bool:
    return any(one["rule"] == rule for one in outcome["findings"])


def evidence(verdict: Json) -> str:
    """One line of evidence, without the answer's text."""
    outcome = verdict["outcome"]
    if found := findings_of(outcome):
        return evidence_of(found[0], outcome)
    for trial in failed(outcome):
        for check in trial["checks"]:
            return f"{trial['distribution']}: {check['path']}: {difference(check)}"
        if trial["inputs_mutated"]:
            return f"{trial['distribution']}: {trial['inputs_mutated'][0]} is overwritten"
    return short(outcome)


def difference(check: Json) -> str:
    if check["problem"] != "value":
        return str(check["detail"])
    shares = f"{check['num_wrong']} of {check['num_elements']} wrong"
    return f"{shares}, by {check['error_max']:.2g} where {check['error_tolerance']:.2g} is allowed"


def evidence_of(finding: Json, outcome: Json) -> str:
    if "rule" in finding:
        return f"{finding['rule']} at line {finding['location']['line']}"
    lines = [place(finding[name]) for name in ("location", "other") if finding[name]["line"]]
    where = f" at {' and '.join(lines)}" if lines else ""
    return f"{finding['kind']} in {finding['kernel'].split('(')[0]}{where}"


def place(location: Json) -> str:
    return f"{location['source']}:{location['line']}"


def short(outcome: Json) -> str:
    parts = [str(outcome.get(name) or "") for name in ("stage", "reason", "detail")]
    if raised := outcome.get("exception"):
        parts.append(f"{raised['type']}: {raised['message']}")
    parts += [one["message"] for one in outcome.get("diagnostics", [])[:1]]
    parts += [f"{one['rule']}: {one['message']}" for one in outcome.get("constructs", [])[:1]]
    return " ".join(": ".join(part for part in parts if part).split())[:160]


# ---- Tables -------------------------------------------------------------------------------------


def share(hits: int, tries: int, digits: int = 0) -> str:
    if not tries:
        return "-"
    low, high = share_interval(hits, tries)
    return " ".join(
        [f"{hits / tries:.{digits}%}", f"({max(low, 0.0):.{digits}%} to {high:.{digits}%})"]
    )


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def read_readings(path: Path = READINGS) -> dict[str, Json]:
    """A reading has a reason; where the program's finding is wrong, another fault; and where it was
    wrong until the program was mended, the reproduction's name (errors/).
    """
    return json.loads(path.read_text()) if path.exists() else {}


def by_model(
    answers: Sequence[Answer], faults: Mapping[str, str], refused: Mapping[str, bool]
) -> str:
    """Refused are those that the policy musacoder forbids, whatever else they do."""
    models = sorted({one.model for one in answers})
    rows = []
    for model in [*models, "all"]:
        of_model = [one for one in answers if model in ("all", one.model)]
        decided = [one for one in of_model if faults[one.key] in (PASS, *RUNS, *FAULTS)]
        bad = sum(faults[one.key] in FAULTS for one in decided)
        torch = sum(refused[one.key] for one in of_model)
        rows.append(
            [model, len(of_model), len(decided), bad, share(bad, len(decided))]
            + [torch, share(torch, len(of_model))]
        )
    heads = ["model", "answers", "decided", "at fault", "share", "leave work to PyTorch", "share"]
    return markdown(heads, rows)


def by_fault(answers: Sequence[Answer], faults: Mapping[str, str]) -> str:
    counts = Counter(faults[one.key] for one in answers)
    names = [name for name in (PASS, *FAULTS, *APART) if counts[name]]
    return markdown(
        ["finding", "answers", "of all"],
        [[name, counts[name], share(counts[name], len(answers))] for name in names],
    )


def by_error(answers: Sequence[Answer], readings: Mapping[str, Json]) -> str:
    """The answers that the program judged wrongly, by the fault that was mended since."""
    read = [readings.get(one.key, {}) for one in answers]
    names = [one["mended"] for one in read if "mended" in one]
    names += [OURS for one in read if one.get("fault") == OURS]
    counts = [*sorted(Counter(names).items()), ("all", len(names))]
    rows = [[name, count, share(count, len(answers), 1)] for name, count in counts]
    return markdown(["error", "answers", "of all"], rows)


def table(folder: Path, answers: Sequence[Answer]) -> str:
    verdicts, readings = read_verdicts(folder), read_readings()
    faults = {
        one.key: readings.get(one.key, {}).get("fault") or fault_of(verdicts[one.key])
        for one in answers
    }
    refused = {one.key: kind_of(verdicts[one.key].get("musacoder")) == "illegal" for one in answers}
    listed = [
        [
            *(one.task.removeprefix("kernelbench:"), one.model, suite_name(one)),
            one.path.removeprefix(f"{ASSETS}/"),
            *(one.sample, faults[one.key], proof(verdicts[one.key])),
            readings.get(one.key, {}).get("reason", "not read"),
        ]
        for one in sorted(answers, key=lambda one: (faults[one.key], one.model, one.task))
        if faults[one.key] in (*FAULTS, COMPILE, LIMIT) or one.key in readings
    ]
    heads = ["task", "model", "repository", "path", "key", "finding", "evidence", "by reading"]
    parts = [
        by_model(answers, faults, refused),
        by_fault(answers, faults),
        by_error(answers, readings),
        markdown(heads, listed),
    ]
    return "\n\n".join(parts)


def proof(verdicts: Mapping[str, Json]) -> str:
    values = of_values(verdicts)
    return evidence(values).replace("|", "/") if values else ""


def suite_name(answer: Answer) -> str:
    return f"{answer.repository.partition('/')[0]}@{answer.commit[:7]}"


# ---- Speeds -------------------------------------------------------------------------------------

SPEED_BOUNDS = (0.1, 0.5, 1.0, 2.0)


def speeds_of(results: Iterable[Json]) -> list[float]:
    """How much faster than eager PyTorch the passing answers of eval's results are."""
    passing = [one["verdict"]["outcome"] for one in results]
    timed = [one["performance"] for one in passing if one["kind"] == PASS]
    return sorted(one["speedup_eager"]["median"] for one in timed if one)


def speed_table(speeds: Sequence[float]) -> str:
    rows = []
    for low, high in zip((0.0, *SPEED_BOUNDS), (*SPEED_BOUNDS, float("inf")), strict=True):
        hits = sum(low <= one < high for one in speeds)
        name = f"{low:g} to {high:g}" if high < float("inf") else f"{low:g} or more"
        rows.append([name, hits, share(hits, len(speeds))])
    rows.append(["median", f"{statistics.median(speeds):.2f}", ""])
    return markdown(["times as fast as eager PyTorch", "answers", "share"], rows)


def plot_speeds(speeds: Sequence[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
    axes.hist(speeds, bins=[2 ** (i / 2) for i in range(-16, 13)], color="#4063d8")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("times as fast as eager PyTorch")
    axes.set_ylabel("answers")
    figure.savefig(path, dpi=120)


# ---- Command ------------------------------------------------------------------------------------


def sources_of(words: Sequence[str]) -> dict[str, Path]:
    pairs = [word.partition("=") for word in words]
    if not pairs or not all(name.count("/") == 1 and path for name, _, path in pairs):
        raise InputError("export: expected OWNER/NAME=REPOSITORY")
    return {name: Path(path) for name, _, path in pairs}


def main(arguments: Sequence[str]) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("export", "judge", "table", "speeds"))
    parser.add_argument("folder", type=Path)
    sources = "of export: OWNER/NAME=REPOSITORY; of speeds: eval's results"
    parser.add_argument("sources", nargs="*", help=sources)
    parser.add_argument("--count", type=int, help="the first answers of the order; default: all")
    parser.add_argument("--only", help="one answer, by its key or the end of it")
    parser.add_argument("--musacoder", default="musacoder", help="the program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--backend", default="cpu", help="cpu, or cuda: without times")
    given = parser.parse_args(arguments)
    try:
        if given.command == "export":
            export(given.folder, sources_of(given.sources))
            return 0
        if given.command == "speeds":
            speeds = speeds_of(line for name in given.sources for line in read_lines(Path(name)))
            if not speeds:
                raise InputError("speeds: no result has a time: judge with --backend cuda --out")
            plot_speeds(speeds, given.folder / "speeds.png")
            print(speed_table(speeds))
            return 0
        answers = drawn(given.folder, given.count)
        answers = [one for one in answers if one.key.endswith(given.only or "")]
        if given.command == "judge":
            options = ["--backend", given.backend, "--no-timing", "-j", str(given.jobs)]
            judge(given.folder, answers, [given.musacoder, *options], 12 * given.jobs)
        else:
            print(table(given.folder, answers))
    except (InputError, OSError, subprocess.CalledProcessError) as error:
        print(f"audit: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
