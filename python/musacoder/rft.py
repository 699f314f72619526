# SPDX-License-Identifier: Apache-2.0
"""Rejection fine-tuning: answers that passed, as data for supervised training.

    python -m musacoder.rft --answers "dump/rollout_*.pt" --data rl.jsonl --out sft.jsonl

Answers are slime's dumps (--save-debug-rollout-data, with musacoder.slime.generate) or the files
of verl's episodes ($MUSACODER_BDR_FOLDER/*.jsonl); the prompts are those of the data.  Only first
turns are taken.  The passing answers of a task are clustered by the structure of their kernels, and
its targets are drawn over the clusters in turn, no text twice, so that rare kinds count as much as
frequent ones.  A row is {"id", "messages", "task", "structure"}: slime's --loss-type sft_loss,
verl's and TRL's SFT trainers read `messages`.

The structure is coarser than that of `musacoder rft` (src/loop/structure.h): every identifier is
numbered in order of appearance, those of CUDA and PyTorch too.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from musacoder.episode import key_of, options_of
from musacoder.rules import PASSED

_QUOTED = re.compile(r'"""(.*?)"""|' + r"'''(.*?)'''", re.DOTALL)
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*$", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d[\w.]*|\S')


def native_source(answer: str) -> str:
    """The answer's quoted texts with kernels; the whole answer if there are none."""
    quoted = ["".join(found) for found in _QUOTED.findall(answer)]
    return "".join(text for text in quoted if "__global__" in text) or answer


def structure_of(answer: str) -> str:
    """A hash of the kernels' tokens, without comments, layout, numbers, texts and names."""
    names: dict[str, str] = {}
    tokens = []
    for token in _TOKEN.findall(_NOT_CODE.sub("", native_source(answer))):
        if token[0].isalpha() or token[0] == "_":
            token = names.setdefault(token, f"${len(names)}")
        elif token[0].isdigit():
            token = "0"
        elif token[0] == '"' and len(token) > 1:
            token = '""'
        tokens.append(token)
    return hashlib.sha256(" ".join(tokens).encode("utf-8", "replace")).hexdigest()


def draw_targets(answers: Iterable[str], count: int, seed: int = 0) -> list[tuple[str, str]]:
    """At most `count` (answer, structure), clusters in turn, in an order that the seed gives."""

    def order(text: str) -> str:
        return hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "replace")).hexdigest()

    clusters: dict[str, list[str]] = {}
    for answer in sorted(set(answers), key=order):
        clusters.setdefault(structure_of(answer), []).append(answer)
    drawn: list[tuple[str, str]] = []
    for round_index in range(max(map(len, clusters.values()), default=0)):
        for structure in sorted(clusters, key=order):
            if round_index < len(clusters[structure]):
                drawn.append((clusters[structure][round_index], structure))
    return drawn[:count]


def first_turns(path: Path) -> Iterator[tuple[str, str, float | None]]:
    """(task, answer, score) of each episode in one file; the task by key_of."""
    if path.suffix == ".jsonl":
        with path.open() as stream:
            for line in stream:
                episode = json.loads(line)
                turn = episode["turns"][0]
                if not episode.get("replay"):
                    task = key_of(episode["task"], options_of(episode))
                    yield task, turn["answer"], turn["s"]
        return
    import torch

    for sample in torch.load(path, map_location="cpu")["samples"]:
        metadata = sample.get("metadata") or {}
        turns = metadata.get("musacoder", {}).get("turns")
        if turns and "musacoder_replay" not in metadata:
            task = key_of(sample["label"], options_of(metadata))
            yield task, turns[0]["answer"], turns[0]["s"]


def select(
    episodes: Iterable[tuple[str, str, float | None]],
    prompts: dict[str, tuple[str, list[dict[str, str]]]],
    targets: int,
    end: str,
) -> list[dict[str, Any]]:
    """Rows for supervised training.  `prompts`: id and messages of each task, by key_of."""
    passed: dict[str, list[str]] = {}
    for task, answer, score in episodes:
        if score is not None and score >= PASSED and task in prompts:
            passed.setdefault(task, []).append(answer.removesuffix(end) if end else answer)
    rows = []
    for task, answers in passed.items():
        name, messages = prompts[task]
        for number, (answer, structure) in enumerate(draw_targets(answers, targets)):
            turns = [*messages, {"role": "assistant", "content": answer}]
            row_id = f"{name}-rft{number}"
            rows.append({"id": row_id, "messages": turns, "task": name, "structure": structure})
    return rows


def read_prompts(path: Path) -> dict[str, tuple[str, list[dict[str, str]]]]:
    prompts = {}
    with path.open() as stream:
        for number, line in enumerate(stream):
            row = json.loads(line)
            options = options_of(row, row.get("metadata"), row.get("extra_info"))
            prompts[key_of(str(row["label"]), options)] = (
                str(row.get("id", number)),
                row["prompt"],
            )
    return prompts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", required=True, nargs="+", help="files, or patterns in quotes")
    parser.add_argument("--data", required=True, type=Path, help="rl.jsonl of the forge")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--targets", type=int, default=4, help="of each task, at most (4)")
    parser.add_argument("--end", default="<|im_end|>", help="the end token in slime's answers")
    arguments = parser.parse_args()
    paths = [Path(one) for pattern in arguments.answers for one in sorted(glob.glob(pattern))]
    if not paths:
        parser.error(f"--answers: no file matches {' '.join(arguments.answers)}")
    episodes = [episode for path in paths for episode in first_turns(path)]
    rows = select(episodes, read_prompts(arguments.data), arguments.targets, arguments.end)
    arguments.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    num_tasks = len({row["task"] for row in rows})
    num_clusters = len({(row["task"], row["structure"]) for row in rows})
    print(
        f"{len(episodes)} answers in {len(paths)} files: {len(rows)} targets of {num_tasks} tasks, "
        f"{num_clusters} structures"
    )
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
