#!/usr/bin/env python3
"""Runs a folder of fixtures with a musacoder binary and says what was caught.

  run.py --bin build/dev/bin/musacoder --backend cpu|cuda [--jobs N] [--only GLOB]
                  [--out FILE.jsonl] [--no-static-rules] [--arg=EXTRA ...] [FOLDER ...]

A fixture's first lines are comments, `# key: value`:
  id, task, backend (cpu, cuda or both), would gain, expect
  timed: N         a pass is charged if time_us.median is at least N (on a device)
  max_speedup: N   a pass is charged if speedup_eager.median is at most N (on a device)
  hole_outcomes:   outcomes that count as a hole beside `pass` (for example infra)
  honest: yes      or a folder named "honest": it must pass
Says HOLE, caught, charged, OTHER CLASS (caught, but not as `expect` says), passed, FALSE REJECT or NOT JUDGED.
Exit code: 1 where there is a HOLE, a FALSE REJECT or NOT JUDGED; 2 where there is nothing to run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 600
UNJUDGED = ("infra", "unsupported")
OUTCOMES = {"illegal", "compile", "runtime", "timeout", "oom", "wrong", "pass"}


def header_of(path: pathlib.Path) -> dict[str, str]:
    header: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[:40]:
        if line.startswith("# ") and ":" in line:
            key, value = line[2:].split(":", 1)
            header.setdefault(key.strip(), value.strip())
    return header


def is_honest(path: pathlib.Path, header: dict[str, str]) -> bool:
    return header.get("honest") == "yes" or path.parent.name == "honest"


def run_one(path: pathlib.Path, arguments: argparse.Namespace) -> dict:
    header = header_of(path)
    task = str(HERE / header["task"]) if header["task"].startswith("tasks/") else header["task"]
    command = [arguments.bin, "eval", "--task", task, "--candidate", str(path), "--backend", arguments.backend, "--json"]
    if arguments.no_static_rules:
        command.append("--no-static-rules")
    command += arguments.arg
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        answer = json.loads(lines[-1]) if lines else {}
        trouble = "" if lines else f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        answer, trouble = {}, f"musacoder took more than {LIMIT_S} s"
    result = {"id": header.get("id", path.stem), "file": path.name, "folder": path.parent.name, "header": header,
              "seconds": round(time.monotonic() - start, 1), "backend": arguments.backend, "trouble": trouble,
              "verdict": answer.get("verdict"), "reward": answer.get("reward")}
    result["outcome"] = kind_of(result)
    result["evidence"] = evidence_of(result)
    result["said"] = said_of(path, result)
    return result


def kind_of(result: dict) -> str:
    verdict = result["verdict"]
    return "no verdict" if not verdict else verdict["outcome"]["kind"]


def first(value: object) -> dict:
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}


def evidence_of(result: dict) -> str:
    if not result["verdict"]:
        return result["trouble"]
    outcome = result["verdict"]["outcome"]
    kind = outcome["kind"]
    if kind == "pass":
        return performance_text(outcome.get("performance"))
    if kind == "illegal":
        return f"{outcome.get('when')}: " + "; ".join(sorted({f["rule"] for f in outcome.get("findings", [])})) + " | " + first(outcome.get("findings")).get("message", "")
    if kind == "wrong":
        trials = outcome.get("trials", [])
        failed = next((t for t in trials if not t.get("passed")), {})
        found = first(failed.get("findings")) or first([f for t in trials for f in t.get("findings", [])])
        check = first(failed.get("checks"))
        return f"q={outcome.get('q'):.2f} " + (f"{found.get('kind')} in {found.get('kernel')}" if found else check.get("problem", "") + " " + check.get("detail", "")) + (" mutated " + failed["inputs_mutated"] if failed.get("inputs_mutated") else "")
    if kind == "runtime":
        exception = outcome.get("exception") or {}
        found = first(outcome.get("findings"))
        return f"{outcome.get('stage')}: {exception.get('type', '')} {exception.get('message', '')} signal={outcome.get('signal')} exit={outcome.get('exit_code')} {found.get('kind', '')}"
    if kind == "compile":
        return first(outcome.get("diagnostics")).get("message", "")
    return json.dumps({k: v for k, v in outcome.items() if k != "kind"})[:200]


def performance_text(performance: dict | None) -> str:
    if not performance:
        return "passed (not timed)"
    timing = performance.get("timing") or {}
    return (f"{performance['time_us']['median']:.3g} us, {performance['speedup_eager']['median']:.3g}x eager, "
            f"own {performance.get('own_share', 0):.2f}, {timing.get('mode')}, {timing.get('calls')} calls, "
            f"floor {performance['floor']['time_us']:.3g} us; " + "; ".join(timing.get("notes", [])))


def is_charged(header: dict[str, str], performance: dict | None) -> bool:
    if not performance:
        return False
    if "timed" in header:
        return performance["time_us"]["median"] >= float(header["timed"])
    if "max_speedup" in header:
        return performance["speedup_eager"]["median"] <= float(header["max_speedup"])
    return False


def said_of(path: pathlib.Path, result: dict) -> str:
    outcome, header = result["outcome"], result["header"]
    if is_honest(path, header):
        return "passed" if outcome == "pass" else "FALSE REJECT"
    holes = ["pass", *(name.strip() for name in header.get("hole_outcomes", "").split(",") if name.strip())]
    if outcome in holes:
        performance = (result["verdict"]["outcome"].get("performance")) if outcome == "pass" else None
        return "charged" if is_charged(header, performance) else "HOLE"
    if outcome in UNJUDGED or outcome == "no verdict":
        return f"NOT JUDGED ({outcome})"
    if outcome == "extraction":
        return "CHECK FIXTURE (extraction)"
    expected = {word.strip() for word in header.get("expect", "").split(",")} & OUTCOMES
    return "caught" if not expected or outcome in expected else "OTHER CLASS"


def chosen(folders: list[pathlib.Path], arguments: argparse.Namespace) -> list[pathlib.Path]:
    found = []
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(folder.glob("*.py"))
        for path in files:
            backend = header_of(path).get("backend", "both")
            if backend not in (arguments.backend, "both", "cpu"):
                continue
            if any(fnmatch.fnmatch(path.stem, glob) for glob in arguments.only or ["*"]):
                found.append(path)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--backend", choices=["cpu","cuda","ptx"], required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--no-static-rules", action="store_true")
    parser.add_argument("--arg", action="append", default=[], help="passed on to musacoder eval")
    arguments = parser.parse_args()
    folders = arguments.folders or [path for path in (HERE / "exploits", HERE / "cheats", HERE / "honest") if path.is_dir()]
    paths = chosen(folders, arguments)
    if not paths:
        print("no fixture to run")
        return 2
    results = []
    out = arguments.out.open("a") if arguments.out else None
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(lambda path: run_one(path, arguments), paths):
            results.append(result)
            print(f"{result['file']:42} {result['outcome']:11} {result['said']:14} {result['seconds']:6.1f}s  {result['evidence'][:150]!s}".replace("\n", " "), flush=True)
            if out:
                out.write(json.dumps(result) + "\n")
                out.flush()
    counts: dict[str, int] = {}
    for result in results:
        counts[result["said"]] = counts.get(result["said"], 0) + 1
    print("\n" + ", ".join(f"{count} {said}" for said, count in sorted(counts.items())))
    return 1 if any(result["said"] not in ("caught", "charged", "passed", "OTHER CLASS") for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
