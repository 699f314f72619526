# SPDX-License-Identifier: Apache-2.0
"""The sets of the corpus: candidates, each with its task and what is expected of its verdict."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from expectation import Expectation

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests/corpus"
PASS = Expectation(("pass",))


@dataclass(frozen=True)
class Case:
    name: str
    task: str
    response: str
    expectation: Expectation
    options: tuple[str, ...] = ()  # Options of `musacoder eval` for this case.


def edited(text: str, edits: list[dict[str, str]], name: str) -> str:
    """`text` after edits that must each fit once."""
    for edit in edits:
        if text.count(edit["find"]) != 1:
            raise ValueError(f"{name}: {edit['find']!r} does not fit once")
        text = text.replace(edit["find"], edit["replace"])
    return text


def honest(name: str = "honest") -> list[Case]:
    folder = CORPUS / name
    files = sorted(folder.glob("*/*.py"))
    names = [str(path.relative_to(folder).with_suffix("")) for path in files]
    return [Case(name, name, path.read_text(), PASS) for name, path in zip(names, files)]


def mutants(name: str = "mutants", of: str = "honest") -> list[Case]:
    cases = []
    for mutant in json.loads((CORPUS / f"{name}.json").read_text()):
        text = (CORPUS / of / f"{mutant['of']}.py").read_text()
        text = edited(text, mutant["edits"], mutant["id"])
        cases.append(Case(mutant["id"], mutant["of"], text, Expectation.parse(mutant)))
    return cases


def listed(folder: str) -> list[Case]:
    """Those of an expected.json whose entries are named by their files."""
    return [
        _listed_case(folder, name, name, entry)
        for name, entry in json.loads((CORPUS / folder / "expected.json").read_text()).items()
    ]


def edits_of_files(folder: str) -> list[Case]:
    """Those of an expected.json in which several cases may be edits of one file."""
    return [
        _listed_case(folder, name, entry["file"], entry)
        for name, entry in json.loads((CORPUS / folder / "expected.json").read_text()).items()
    ]


def _listed_case(folder: str, name: str, file: str, entry: dict[str, Any]) -> Case:
    text = (CORPUS / folder / file).read_bytes().decode("utf-8", "replace")
    text = edited(text, entry.get("edits", []), name)
    options: tuple[str, ...] = ()
    options += () if entry.get("static_rules", True) else ("--no-static-rules",)
    options += ("--strict",) if entry.get("strict") else ()
    options += ("--race-check", "on") if entry.get("race_check") else ()
    options += ("--policy", entry["policy"]) if "policy" in entry else ()
    own_task = CORPUS / folder / "tasks" / f"{entry['task']}.py"
    task = str(own_task) if own_task.is_file() else entry["task"]
    return Case(name, task, text, Expectation.parse(entry), options)


def warp128() -> list[Case]:
    """Candidates in the dialect of MUSA: for mp_31, whose warps have 32 threads, in which all are
    right, and for mp_22, whose warps have 128, for which expected.json is.
    """
    cases = []
    for case in listed("warp128"):
        musa = ("--dialect", "musa", "--musa-arch")
        cases.append(replace(case, expectation=PASS, options=(*musa, "mp_31")))
        name = f"{case.name} in warps of 128"
        cases.append(replace(case, name=name, options=(*musa, "mp_22")))
    return cases


def musa_programs() -> list[Case]:
    """Candidates that are written for MUSA in the ways in which people put sources together, and
    the same with a word of CUDA in them, which MUSA would refuse.
    """
    cases = edits_of_files("musa_programs")
    return [replace(case, options=(*case.options, "--dialect", "musa")) for case in cases]


def kernelbench() -> list[Case]:
    cases = []
    for path in sorted((CORPUS / "kernelbench").glob("level*/*.py")):
        level = path.parent.name.removeprefix("level")
        task = f"kernelbench:{level}/{path.stem}"
        cases.append(Case(task, task, path.read_text(), PASS))
    return cases


def kernelbench_mutants() -> list[Case]:
    """The tasks whose own parameters once widened the tolerance, as their own text with an error:
    under the policy that lets PyTorch compute, only the comparison can find it.
    """
    folder = CORPUS / "kernelbench"
    cases = []
    for number, mutants in json.loads((folder / "mutants.json").read_text()).items():
        reference = _reference_of(number)
        if reference is None:
            continue
        epilogue = (folder / "epilogue.py").read_text()
        text = reference.replace("Model", "ModelNew").replace("return x\n", "return own.copy(x)\n")
        for i, edits in enumerate([[], *mutants]):
            name = f"kernelbench:{number}" + (f" mutant {i}" if i else "")
            options = ("--policy", "kernelbench")
            expectation = Expectation(("wrong",)) if i else PASS
            body = edited(text, edits, name)
            cases.append(Case(name, name.split(" ")[0], epilogue + body, expectation, options))
    return cases


def contest() -> list[Case]:
    """Candidates written by one who had not seen the defences; each says itself what it expects.
    Those that need a GPU are left out. Those of known.json get through, or are honest and have the
    `outcome` that it names, for the reason that it says; or have the one that is `also` possible,
    on some backend.
    """
    known = json.loads((CORPUS / "contest/known.json").read_text())
    cases = []
    for path in sorted((CORPUS / "contest").glob("*/*.py")):
        text = path.read_text()
        header = dict(re.findall(r"^# (\w+): (.*)$", text, re.MULTILINE))
        if header["backend"] == "cuda":
            continue
        name = path.stem
        outcomes = re.findall(r"\w+", header["expect"].split(", or")[0])
        entry = known.get(name, {})
        if isinstance(entry, str):
            outcomes = ["pass"]
        elif "outcome" in entry:
            outcomes = [entry["outcome"]]
        elif "also" in entry:
            outcomes.append(entry["also"])
        options = ("--policy", header["policy"]) if "policy" in header else ()
        cases.append(Case(name, header["task"], text, Expectation(tuple(outcomes)), options))
    return cases


def _reference_of(number: str) -> str | None:
    """The program of a KernelBench task ("2/36") in $MC_KERNELBENCH, or None."""
    level, problem = number.split("/")
    root = Path(os.environ.get("MC_KERNELBENCH", "."))
    for path in root.glob(f"**/level{level}/{problem}_*.py"):
        return path.read_text()
    for path in root.glob(f"level{level}.jsonl"):
        for row in map(json.loads, path.read_text().splitlines()):
            if row["problem_id"] == int(problem):
                return str(row["code"])
    return None


SETS: dict[str, Callable[[], list[Case]]] = {
    "honest": honest,
    "mutants": mutants,
    "answers": lambda: listed("answers"),
    "hostile": lambda: listed("hostile"),
    "contest": contest,
    # Candidates that a GPU would show to be wrong, and other backends than ptx would not.
    "ptx": lambda: listed("ptx"),
    # Those that a GPU shows to be right, by an order of blocks and warps that nothing ensures.
    "races": lambda: listed("races"),
    "triton": lambda: honest("triton"),
    "triton_mutants": lambda: mutants("triton_mutants", "triton"),
    "forms": lambda: edits_of_files("forms"),
    "warp128": warp128,
    "musa_programs": musa_programs,
    "kernelbench": kernelbench,
    "kernelbench_mutants": kernelbench_mutants,
    "gpu": lambda: edits_of_files("gpu"),
    "remoting": lambda: edits_of_files("remoting"),
}
ON_DEVICE = ("gpu", "remoting")
# Share of cases that must come out as expected.  What a resource bomb hits first, and the last
# digit of a reduced KernelBench task, may differ between machines.
BARS = {
    "honest": 1.0,
    "mutants": 0.99,
    "answers": 1.0,
    "hostile": 0.95,
    "contest": 1.0,
    "ptx": 1.0,
    "races": 1.0,
    "triton": 1.0,
    "triton_mutants": 1.0,
    "forms": 1.0,
    "warp128": 1.0,
    "musa_programs": 1.0,
    "kernelbench": 0.95,
    "kernelbench_mutants": 1.0,
    "gpu": 1.0,
    "remoting": 1.0,
}


def cases_of(sets: Sequence[str], pattern: str) -> dict[str, list[Case]]:
    """The cases whose name matches, by set. Raises LookupError if there is none."""
    found = {name: [case for case in SETS[name]() if fnmatch(case.name, pattern)] for name in sets}
    if not any(found.values()):
        raise LookupError(f"no case is named {pattern!r}; names look like family/name")
    return found


def case_named(name: str) -> Case:
    """A candidate by its name in any of the sets, such as elementwise/swish or honest_spin."""
    for name_of_set in ("honest", "gpu", "kernelbench", "mutants"):
        for case in SETS[name_of_set]():
            if case.name == name:
                return case
    raise LookupError(f"the corpus has no candidate {name}")
