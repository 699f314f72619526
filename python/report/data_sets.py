# SPDX-License-Identifier: Apache-2.0
"""Reading folders that `musacoder forge` and `musacoder import` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SETTINGS_FILES = ("forge.json", "import.json")


class BadData(Exception):
    """A folder that holds no data set, or a damaged one; the text is for the user."""


def rows_of(path: Path) -> Iterator[Json]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except ValueError:
                raise BadData(f"{path}: line {number} is no JSON") from None
            if not isinstance(row, dict):
                raise BadData(f"{path}: line {number} is no object")
            yield row


def load_settings(folder: Path) -> dict[str, Json]:
    found = {}
    for name in SETTINGS_FILES:
        if (folder / name).is_file():
            found[name] = json.loads((folder / name).read_text(encoding="utf-8"))
    if not found:
        raise BadData(f"{folder} has no forge.json and no import.json: give a finished data set")
    return found
