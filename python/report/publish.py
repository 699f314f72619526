# SPDX-License-Identifier: Apache-2.0
"""A data set of `musacoder forge` as a folder for Hugging Face: `musacoder forge --publish DIR`.

  python -m report.publish FOLDER --out DIR [--musacoder PROGRAM]

A configuration for each kind of row, and one for reinforcement learning, all with one schema
(COLUMNS). Near duplicates of a kind go, and with MC_KERNELBENCH, a checkout of KernelBench, so do
tasks that overlap with it and the rows about them. `datasets.load_dataset(DIR, "generation")` loads
it; mix.json has shares to draw by.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from report.data_sets import BadData, load_settings, rows_of

Json = dict[str, Any]
# (name, type, what it holds)
COLUMNS = [
    ("id", "string", "a name that no other row has"),
    ("kind", "string", "the configuration"),
    ("dialect", "string", "cuda or musa: what the answer is written in"),
    ("task", "string", "the task's name; rows of one task are in one split"),
    ("families", "list", "families of its operators"),
    ("operators", "list", "its operators"),
    ("depth", "int64", "how many operators it has"),
    ("messages", "messages", "the conversation: role and content; for rl the prompt alone"),
    ("reference", "string", "the task's PyTorch module; empty for questions"),
    ("templates", "string", "the template of each kernel of the solution, joined by +"),
    ("features", "list", "the optimisation that each kernel shows"),
    ("mutations", "list", "the faults that were planted in the failed answers"),
    ("seed", "int64", "the seed of the forge"),
    ("time_us", "float64", "the time of the last answer where bench measured it, else null"),
]
# The fractions of a mix for supervised training; missing kinds' fractions go to the others.
MIX = {
    "generation": 0.42,
    "repair": 0.2,
    "review": 0.15,
    "retry": 0.1,
    "port": 0.05,
    "question": 0.02,
    "rewrite": 0.03,
    "variants": 0.03,
}
SPLITS = ("train", "validation", "test")
# Hugging Face's categories of size: the rows below which each applies, and its name.
SIZES = ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
VALIDATION_SHARE = 0.02
SKETCH = 128  # Hashes of a text that are kept.
NEAR_DUPLICATE = 0.9  # The Jaccard index at which one of two texts is removed.
DIGITS = str.maketrans("0123456789", "abcdefghij")
FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def sketch_of(text: str) -> list[int]:
    """The smallest hashes of the runs of five words, where all numbers are alike."""
    words = re.findall(r"\w+|[^\w\s]", re.sub(r"\d+", "0", text))
    runs = {" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))}
    return sorted({zlib.crc32(run.encode()) for run in runs})[:SKETCH]


def similarity(one: list[int], other: list[int]) -> float:
    """The Jaccard index, estimated from sketches."""
    both = sorted(set(one) | set(other))[:SKETCH]
    shared = set(one) & set(other)
    return sum(value in shared for value in both) / len(both) if both else 1.0


class Seen:
    """The sketches of accepted texts, to find near duplicates among all of them.

    Two sketches that are alike differ in few hashes, so one of each sketch's rarest ones is in the
    other, too. Only those are indexed: the common ones would bring every text of a template.
    """

    def __init__(self, frequencies: Counter[int]) -> None:
        self.frequencies = frequencies
        self.sketches: list[list[int]] = []
        self.by_hash: dict[int, list[int]] = defaultdict(list)

    def takes(self, sketch: list[int]) -> bool:
        num_rare = len(sketch) - math.ceil(NEAR_DUPLICATE * len(sketch)) + 1
        rare = sorted(sketch, key=lambda value: (self.frequencies[value], value))[:num_rare]
        near = {at for value in rare for at in self.by_hash[value]}
        if any(similarity(sketch, self.sketches[at]) >= NEAR_DUPLICATE for at in near):
            return False
        for value in rare:
            self.by_hash[value].append(len(self.sketches))
        self.sketches.append(sketch)
        return True


def row_of(row: Json, seed: int) -> Json:
    """A row of sft.jsonl, rl.jsonl or test.jsonl with the columns."""
    extra = row.get("extra_info", row)
    provenance = row.get("provenance", {})
    messages = row.get("messages") or row["prompt"]
    found = FENCE.search(messages[0]["content"] + messages[min(1, len(messages) - 1)]["content"])
    return {
        "id": row["id"],
        "kind": row.get("kind", "rl"),
        "dialect": row.get("dialect", "cuda"),
        "task": extra.get("task", ""),
        "families": extra.get("families", []),
        "operators": extra.get("operators", []),
        "depth": int(extra.get("depth", 0)),
        "messages": [{"role": one["role"], "content": one["content"]} for one in messages],
        "reference": str(row.get("label") or (found.group(1) if found else "")),
        "templates": str(provenance.get("template", "")),
        "features": provenance.get("features", []),
        "mutations": provenance.get("mutations", []),
        "seed": int(provenance.get("seed", seed)),
        "time_us": provenance.get("after_us"),
    }


def overlapping(folder: Path, musacoder: Path, kernelbench: Path) -> set[str]:
    """The tasks that are too similar to one of KernelBench, as `musacoder import` decides."""
    with tempfile.TemporaryDirectory() as made:
        out = Path(made) / "overlap"
        command = [str(musacoder), "import", str(folder / "tasks"), "--kernelbench"]
        command += [str(kernelbench), "--out", str(out), "--jobs", str(os.cpu_count() or 1)]
        done = subprocess.run(command, capture_output=True, text=True)
        if not (out / "import.jsonl").is_file():
            raise BadData(f"musacoder import failed: {done.stderr.strip().splitlines()[-1:]}")
        return {
            Path(row["origin"]).stem
            for row in rows_of(out / "import.jsonl")
            if str(row["why"]).startswith("overlap")
        }


def split_of(task: str) -> str:
    is_held_out = zlib.crc32(f"validation {task}".encode()) < VALIDATION_SHARE * 2**32
    return "validation" if is_held_out else "train"


def text_of(row: Json) -> str:
    """The text that makes a row a duplicate: the last message, since prompts of a task are alike.

    Questions differ by numbers.
    """
    text = str(row["messages"][-1]["content"])
    if row["kind"] != "question":
        return text
    return f"{row['messages'][0]['content']}{text}".translate(DIGITS)


def published_rows(
    folder: Path, seed: int, dropped: set[str], counts: Counter[str]
) -> Iterator[tuple[str, Json]]:
    """The published rows as (split, row)."""
    names = ("sft.jsonl", "rl.jsonl", "test.jsonl")
    rows = [(name, row_of(made, seed)) for name in names for made in rows_of(folder / name)]
    counts["rows"] += len(rows)
    kept = [(name, row) for name, row in rows if row["task"] not in dropped]
    counts["rows of tasks that overlap with KernelBench"] += len(rows) - len(kept)
    sketches = [sketch_of(text_of(row)) for _, row in kept]
    frequencies = Counter(value for sketch in sketches for value in sketch)
    seen: dict[tuple[str, str], Seen] = defaultdict(lambda: Seen(frequencies))
    for (name, row), sketch in zip(kept, sketches):
        if not seen[row["kind"], row["dialect"]].takes(sketch):
            counts["near duplicates"] += 1
            continue
        is_rl = row["kind"] == "rl"
        split = name.removesuffix(".jsonl") if is_rl else split_of(row["task"] or row["id"])
        yield ("train" if split == "rl" else split), row


def publish(folder: Path, out: Path, musacoder: Path | None) -> Counter[str]:
    if not (folder / "sft.jsonl").is_file():
        raise BadData(f"{folder} holds no sft.jsonl: give a finished run of musacoder forge")
    settings = load_settings(folder)
    kernelbench = os.environ.get("MC_KERNELBENCH", "")
    dropped: set[str] = set()
    if kernelbench:
        if musacoder is None:
            raise BadData("MC_KERNELBENCH needs --musacoder, the program that compares")
        dropped = overlapping(folder, musacoder, Path(kernelbench))
    counts: Counter[str] = Counter({"tasks that overlap with KernelBench": len(dropped)})
    shutil.rmtree(out / "data", ignore_errors=True)
    tables: dict[str, Counter[str]] = defaultdict(Counter)
    characters: Counter[str] = Counter()
    seed = int(settings.get("forge.json", {}).get("settings", {}).get("seed", 0))
    for split, row in published_rows(folder, seed, dropped, counts):
        tables[row["kind"]][split] += 1
        characters[row["kind"]] += sum(len(one["content"]) for one in row["messages"])
        path = out / "data" / row["kind"] / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    present = {kind: share for kind, share in MIX.items() if kind in tables}
    whole = sum(present.values())
    mix = {
        kind: {
            "share": round(share / whole, 4),
            "rows": tables[kind].total(),
            "characters": characters[kind],
        }
        for kind, share in present.items()
    }
    (out / "mix.json").write_text(json.dumps(mix, indent=1) + "\n", encoding="utf-8")
    (out / "README.md").write_text(
        readme(tables, counts, bool(kernelbench), settings), encoding="utf-8"
    )
    return counts


def readme(
    tables: dict[str, Counter[str]],
    counts: Counter[str],
    is_compared: bool,
    settings: dict[str, Json],
) -> str:
    """The data set's card, templates/data_set.jinja."""
    total = sum(table.total() for table in tables.values())
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("data_set.jinja").render(
        size=next((name for most, name in SIZES if total < most), "100K<n<1M"),
        tables=sorted(tables.items()),
        counts=counts,
        columns=COLUMNS,
        splits=SPLITS,
        is_compared=is_compared,
        settings=json.dumps(settings.get("forge.json", {}).get("settings", {}), indent=1),
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="report.publish", description=__doc__)
    parser.add_argument("folder", type=Path, help="what musacoder forge wrote")
    parser.add_argument("--out", type=Path, required=True, help="the folder for Hugging Face")
    parser.add_argument("--musacoder", type=Path, help="the program, to compare with KernelBench")
    options = parser.parse_args(arguments)
    try:
        for name, count in sorted(publish(options.folder, options.out, options.musacoder).items()):
            print(f"{name}: {count}")
    except (BadData, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
