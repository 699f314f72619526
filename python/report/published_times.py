# SPDX-License-Identifier: Apache-2.0
"""Published times of eager PyTorch on other hardware, to show beside a run.

Each file of baselines/ has the hardware, the dialect of the runs that it is shown with, and a time
for each task. No figure of a run depends on them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from report.document import Json

FOLDER = Path(__file__).parent / "baselines"


@dataclass(frozen=True)
class Baseline:
    hardware: str
    milliseconds: dict[str, float]  # Times by the names of tasks.


def baselines_for(document: Json) -> list[Baseline]:
    """The baselines that have a time for a task of a run in their dialect."""
    settings = [run["settings"].get("dialect") for run in document["runs"]]
    dialects = {one[0] for one in settings if isinstance(one, list) and one}
    tasks = {task["id"] for task in document["tasks"]}
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["dialect"] in dialects and tasks & set(content["milliseconds"]):
            found.append(Baseline(content["hardware"], content["milliseconds"]))
    return found
