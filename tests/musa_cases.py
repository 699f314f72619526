# SPDX-License-Identifier: Apache-2.0
"""The cases of the corpus in the dialect of MUSA, as `musacoder musify` ports them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from corpus_sets import Case

_FINDING = re.compile(r"/(\d+)\.py:(\d+:\d+: (?:refused|left over): .*)")


def in_musa(cases: Sequence[Case], musacoder: str) -> tuple[list[Case], dict[str, str]]:
    """The cases that have a port, and for the others the first reason, by name."""
    with tempfile.TemporaryDirectory() as folder:
        cuda, musa = Path(folder) / "cuda", Path(folder) / "musa"
        cuda.mkdir()
        for i, case in enumerate(cases):
            (cuda / f"{i}.py").write_text(case.response)
        command = [musacoder, "musify", str(cuda), "--out", str(musa)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            raise SystemExit(f"musacoder musify failed: {done.stderr}")
        reasons: dict[int, str] = {}
        for number, reason in _FINDING.findall(done.stderr):
            reasons.setdefault(int(number), reason)
        ported = [
            replace(case, response=(musa / f"{i}.py").read_text())
            for i, case in enumerate(cases)
            if i not in reasons
        ]
    return ported, {cases[i].name: reason for i, reason in reasons.items()}
