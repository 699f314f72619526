# SPDX-License-Identifier: Apache-2.0
"""Checks that each line of a file of verdicts fits the schema, and that the schema is closed: a
verdict with any one field taken away, or with one more, must not fit.

usage: check_verdict_schema.py SCHEMA VERDICTS.jsonl
"""

import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema

MAPS = ("constants", "histogram", "aten_ops", "native", "used")


def objects(value: Any, free: bool = False) -> Iterator[dict[str, Any]]:
    """Yields every object with fixed fields inside `value`, itself first.  `free` objects are maps
    from names to numbers, which have no fixed fields."""
    if isinstance(value, dict):
        if not free:
            yield value
        for key, item in value.items():
            yield from objects(item, key in MAPS)
    elif isinstance(value, list):
        for item in value:
            yield from objects(item)


def spoil(verdict: dict[str, Any], validator: Any) -> int:
    """Counts spoilt copies of `verdict`, made in place, that the schema wrongly accepts."""
    accepted = 0
    for item in objects(verdict):
        for key in list(item):
            kept = dict(item)
            del item[key]
            accepted += validator.is_valid(verdict)
            item.clear()
            item.update(kept)
        item["one field too many"] = 0
        accepted += validator.is_valid(verdict)
        del item["one field too many"]
    return accepted


def main() -> int:
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = 0
    with open(sys.argv[2], encoding="utf-8") as lines:
        verdicts = [json.loads(line) for line in lines]
    for number, verdict in enumerate(verdicts, 1):
        for error in validator.iter_errors(verdict):
            print(f"verdict {number}: {error.json_path}: {error.message[:200]}")
            faults += 1
    # A sample that holds passes whose measurement has every part.
    for number, verdict in enumerate(verdicts[4::10], 1):
        accepted = spoil(verdict, validator)
        if accepted:
            print(f"verdict {number}: the schema accepts {accepted} spoilt copies")
            faults += 1
    return 1 if faults or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
