#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the verifier's feedback help a second answer? Three arms on the same failed first answers.

    python3 lab/ladder/turn_arms.py --tasks rows/test.jsonl --out arms --model run/sft/model
    python3 lab/ladder/turn_arms.py --tasks rows/test.jsonl --out arms \\
        --endpoint http://localhost:8000/v1 --model-name NAME

    feedback   the failed answer, and the verifier's feedback on it
    code       the failed answer, and the request to write it again
    fresh      the task alone, another draw

First answers are drawn for each task; of each task at most --failures that were judged wrong by a
fault of their own go into the arms, each with --draws answers in every arm. Tasks weigh the same,
and the interval of a difference is a paired bootstrap over tasks. The feedback's words are those
of `rl`. Every file in --out is taken up where it stopped, so the script may be killed and started
again; a change of its options needs another --out.

`--tasks` has rows of the forge: `id`, `prompt`, `reward_model.ground_truth`. A folder is sampled by
`musacoder generate`, whose options such as `--device cuda --batch 256` stand in --generate, those
of the verifier, such as `--backend cpu`, in --eval.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("MC_BIN", ROOT / "build/dev/bin"))
ARMS = ("feedback", "code", "fresh")
AGAIN = "Write the whole answer again.\n"  # The end of reward::repair_request.
FAILURES = {"extraction", "illegal", "compile", "runtime", "timeout", "oom", "wrong"}
RESAMPLES = 4000


def rows_of(path: Path) -> list[Json]:
    """The whole lines of a file that may have been cut off."""
    if not path.exists():
        return []
    text = path.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def repair(path: Path) -> None:
    """Drops the end of a line that was cut off."""
    if path.exists():
        text = path.read_text()
        path.write_text(text[: text.rfind("\n") + 1])


def write(path: Path, rows: Iterable[Json]) -> None:
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(row) + "\n" for row in rows))
    part.replace(path)


def run(command: list[str]) -> None:
    print("+", shlex.join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        sys.exit(f"turn_arms: {command[1]} ended with {done.returncode}")


# ---- Answers ------------------------------------------------------------------------------------


def generate(
    options: argparse.Namespace, prompts: Path, out: Path, samples: int, seed: int
) -> None:
    """Rows {"id", "sample", "completion"} for each prompt."""
    if len(rows_of(out)) >= samples * len(rows_of(prompts)):
        return
    if options.endpoint:
        return ask(options, prompts, out, samples)
    run([str(BIN / "musacoder-learn"), "generate", "--model", str(options.model), "--prompts",
         str(prompts), "--out", str(out), "--samples", str(samples), "--seed", str(seed),
         "--temperature", str(options.temperature), "--max-tokens", str(options.max_tokens),
         "--skip-long",
         *shlex.split(options.generate)])  # fmt: skip


def ask(options: argparse.Namespace, prompts: Path, out: Path, samples: int) -> None:
    repair(out)
    done = {(row["id"], row["sample"]) for row in rows_of(out)}
    wanted = [(row, n) for row in rows_of(prompts) for n in range(samples)]
    wanted = [(row, n) for row, n in wanted if (row["id"], n) not in done]

    def answer(job: tuple[Json, int]) -> Json:
        row, number = job
        body = {"model": options.model_name, "messages": row["prompt"],
                "temperature": options.temperature, "max_tokens": options.max_tokens}  # fmt: skip
        request = urllib.request.Request(
            options.endpoint.rstrip("/") + "/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json",
             "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=600) as reply:
            text = json.load(reply)["choices"][0]["message"]["content"]
        return {"id": row["id"], "sample": number, "completion": text or ""}

    with out.open("a") as file, ThreadPoolExecutor(options.jobs) as pool:
        for made in pool.map(answer, wanted):
            file.write(json.dumps(made) + "\n")
            file.flush()


def judge(options: argparse.Namespace, sources: dict[str, str], answers: Path, out: Path) -> None:
    """Rows {"id", "sample", "outcome", "diagnosis", "feedback"} for each answer."""
    repair(out)
    done = {(row["id"], row["sample"]) for row in rows_of(out)}
    waiting = {
        f"{row['id']} {row['sample']}": row
        for row in rows_of(answers)
        if (row["id"], row["sample"]) not in done
    }
    if not waiting:
        return
    command = [str(BIN / "musacoder"), "eval", "--stream", "--jobs", str(options.jobs),
               "--feedback-tokens", str(options.feedback_tokens), "--no-timing",
               *shlex.split(options.eval)]  # fmt: skip
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stdout is not None
    source, sink = child.stdout, child.stdin
    with ThreadPoolExecutor(1) as pool, out.open("a") as file:
        sent = pool.submit(send, sink, waiting, sources)
        for line in source:
            reply = json.loads(line)
            row = waiting[reply["id"]]
            file.write(
                json.dumps({"id": row["id"], "sample": row["sample"], **judged(reply)}) + "\n"
            )
            file.flush()
        sent.result()
    if child.wait() != 0:
        sys.exit("turn_arms: musacoder eval --stream failed")


def send(sink: Any, waiting: dict[str, Json], sources: dict[str, str]) -> None:
    for name, row in waiting.items():
        task = row["id"].split("#")[0]
        request = {
            "id": name,
            "task": {"id": task, "code": sources[task]},
            "answer": row["completion"],
        }
        sink.write(json.dumps(request) + "\n")
    sink.close()


def judged(reply: Json) -> Json:
    if "error" in reply:
        return {"outcome": "infra", "diagnosis": "", "feedback": reply["error"]}
    outcome = reply["verdict"]["outcome"]
    checks = [one for trial in outcome.get("trials", []) for one in trial["checks"]]
    found = next((one["diagnosis"] for one in checks if one["diagnosis"]), "")
    return {"outcome": outcome["kind"], "diagnosis": found, "feedback": reply["feedback"]}


# ---- Arms ---------------------------------------------------------------------------------------


def failures_of(options: argparse.Namespace, out: Path) -> list[Json]:
    """Failed first answers, at most --failures of each task, with their verdicts."""
    texts = {
        (row["id"], row["sample"]): row["completion"]
        for row in rows_of(out / "first.answers.jsonl")
    }
    verdicts = sorted(
        rows_of(out / "first.verdicts.jsonl"), key=lambda row: (row["id"], row["sample"])
    )
    taken: dict[str, list[Json]] = {}
    for row in verdicts:
        mine = taken.setdefault(row["id"], [])
        if row["outcome"] in FAILURES and len(mine) < options.failures:
            mine.append({**row, "completion": texts[row["id"], row["sample"]]})
    return [row for mine in taken.values() for row in mine]


def prompt_of(arm: str, task: Json, failed: Json) -> Json:
    messages = list(task["prompt"])
    if arm != "fresh":
        request = failed["feedback"] + AGAIN if arm == "feedback" else AGAIN
        messages += [{"role": "assistant", "content": failed["completion"]}]
        messages += [{"role": "user", "content": request}]
    return {"id": f"{failed['id']}#{failed['sample']}", "prompt": messages}


Kept = Callable[[Json], bool]
SUBSETS: dict[str, Kept] = {
    "all failures": lambda row: True,
    "wrong values": lambda row: row["outcome"] == "wrong",
    "with a diagnosis": lambda row: bool(row["diagnosis"]),
    "an operator named": lambda row: " equal" in row["diagnosis"],
}


def report(out: Path, failures: list[Json]) -> str:
    passed: dict[str, dict[str, list[float]]] = {arm: {} for arm in ARMS}
    for arm in ARMS:
        for row in rows_of(out / f"{arm}.verdicts.jsonl"):
            if row["outcome"] in FAILURES or row["outcome"] == "pass":
                passed[arm].setdefault(row["id"], []).append(float(row["outcome"] == "pass"))
    lines = ["| failed first answers | tasks | feedback | code alone | fresh | feedback - fresh | "
             "feedback - code |", "|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, keeps in SUBSETS.items():
        lines.append(line_of(name, [row for row in failures if keeps(row)], passed))
    return "\n".join(lines) + "\n"


def line_of(name: str, failures: list[Json], passed: dict[str, dict[str, list[float]]]) -> str:
    tasks: dict[str, list[list[float]]] = {}
    for row in failures:
        key = f"{row['id']}#{row['sample']}"
        if all(key in passed[arm] for arm in ARMS):
            shares = [mean(passed[arm][key]) for arm in ARMS]
            tasks.setdefault(row["id"], []).append(shares)
    values = [[mean(arm) for arm in zip(*rows)] for rows in tasks.values()]
    if not values:
        return f"| {name}: 0 | 0 | | | | | |"
    cells = [f"{100 * mean([row[n] for row in values]):.1f} %" for n in range(3)]
    for other in (2, 1):
        cells.append(interval([row[0] - row[other] for row in values]))
    return f"| {name}: {len(failures)} | {len(values)} | " + " | ".join(cells) + " |"


def mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values)


def interval(differences: list[float]) -> str:
    """The mean and its 95 % interval, in points."""
    draw = random.Random(1)
    means = sorted(mean(draw.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    return f"{100 * mean(differences):+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def stages(options: argparse.Namespace) -> Iterator[str]:
    out: Path = options.out
    tasks = rows_of(options.tasks)[: options.limit]
    by_id = {row["id"]: row for row in tasks}
    sources = {row["id"]: row["reward_model"]["ground_truth"] for row in tasks}
    names = {name: [out / f"{name}.{kind}.jsonl" for kind in ("prompts", "answers", "verdicts")]
             for name in ("first", *ARMS)}  # fmt: skip
    prompts, answers, verdicts = names["first"]
    if not prompts.exists():
        write(prompts, ({"id": row["id"], "prompt": row["prompt"]} for row in tasks))
    generate(options, prompts, answers, options.samples, options.seed)
    judge(options, sources, answers, verdicts)
    failures = failures_of(options, out)
    yield f"{len(failures)} failed first answers of {len(rows_of(verdicts))}"
    for number, arm in enumerate(ARMS, 1):
        prompts, answers, verdicts = names[arm]
        if not prompts.exists():
            write(prompts, (prompt_of(arm, by_id[row["id"]], row) for row in failures))
        generate(options, prompts, answers, options.draws, options.seed + number)
        judge(options, sources, answers, verdicts)
        yield f"{arm}: {len(rows_of(verdicts))} answers"
    table = report(out, failures)
    (out / "report.md").write_text(table)
    yield table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="a folder that generate reads")
    parser.add_argument("--endpoint", default="", help="an OpenAI-compatible server in its place")
    parser.add_argument("--model-name", default="")
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=10000, help="tasks")
    parser.add_argument("--samples", type=int, default=4, help="first answers to each task")
    parser.add_argument("--failures", type=int, default=2, help="of a task in the arms")
    parser.add_argument("--draws", type=int, default=2, help="answers to each failure in each arm")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=int, default=640)
    parser.add_argument("--feedback-tokens", type=int, default=200, help="as rl's for small models")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--generate", default="", help="more options of generate, in quotes")
    parser.add_argument("--eval", default="--backend cpu", help="more options of eval, in quotes")
    options = parser.parse_args()
    if bool(options.model) == bool(options.endpoint):
        parser.error("give --model FOLDER or --endpoint URL")
    options.out.mkdir(parents=True, exist_ok=True)
    for line in stages(options):
        print(line, flush=True)


if __name__ == "__main__":
    main()
