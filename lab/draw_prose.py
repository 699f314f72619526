#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws twenty random sentences and thirty names from code and pages, for a reader to judge.

python3 lab/draw_prose.py SEED
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

COMMENTS = re.compile(r"(?:^[ \t]*(?://|#) .*\n)+", re.MULTILINE)
LEAD = re.compile(r"^[ \t]*(?://|#) ?", re.MULTILINE)
FENCED = re.compile(r"```.*?```", re.DOTALL)
NAMES = re.compile(
    r"\b(?:struct|class|def|auto|bool|void|int|size_t|std::string|Result<[^>]*>|Status)\s+&?"
    r"([A-Za-z_]\w{2,})\s*[({:]"
)
LENGTH_MIN = 30


def sentences(path: Path, text: str) -> Iterator[str]:
    if path.suffix == ".md":
        yield from re.split(r"(?<=[.:])\s+|\|", FENCED.sub("", text))
        return
    for found in COMMENTS.finditer(text):
        yield from re.split(r"(?<=\.)\s+", LEAD.sub("", found[0]).replace("\n", " "))


def main() -> None:
    rng = random.Random(int(sys.argv[1]))
    listed = subprocess.check_output(["git", "ls-files"], text=True).split()
    prose, names = set(), set()
    for path in map(Path, listed):
        if path.suffix not in (".h", ".cc", ".cu", ".py", ".md") or "corpus" in path.parts:
            continue
        text = path.read_text()
        prose |= {(str(path), one.strip()) for one in sentences(path, text)}
        if path.suffix != ".md":
            names |= {(str(path), found[1]) for found in NAMES.finditer(text)}
    long = sorted(
        one
        for one in prose
        if len(one[1]) > LENGTH_MIN and one[1].count(" ") > 3 and "SPDX" not in one[1]
    )
    for place, one in rng.sample(long, 20) + rng.sample(sorted(names), 30):
        print(f"{place}: {one}")


if __name__ == "__main__":
    main()
