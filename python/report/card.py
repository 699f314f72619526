# SPDX-License-Identifier: Apache-2.0
"""A data card: the contents of data sets of `musacoder forge` and `musacoder import`, as one HTML
file.

  python -m report.card FOLDER… [--out CARD.html] [--parquet FOLDER] [--manifest FILE.json]

It has distributions, an example of each kind of sample, overlap with the benchmark, rejections by
reason, and the seed and settings. The manifest lists the files with their hashes; Parquet needs
pyarrow (docs/decisions/025-pyarrow.md).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from musacoder.version import VERSION

from report.data_sets import BadData, load_settings, rows_of

Json = dict[str, Any]
HERE = Path(__file__).resolve().parent
ROW_FILES = ("sft.jsonl", "rl.jsonl", "test.jsonl")
EXAMPLE_BYTES_MAX = 6000
PARQUET_ROWS = 2000  # Rows of a group.


@dataclass
class Tally:
    """The statistics of the rows of all folders."""

    rows: Counter[str] = field(default_factory=Counter)  # Counts by file.
    kinds: Counter[str] = field(default_factory=Counter)
    dialects: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)  # Tasks of rl.jsonl and test.jsonl.
    depths: Counter[int] = field(default_factory=Counter)
    lengths: Counter[str] = field(default_factory=Counter)  # Characters of a sample, by doublings.
    mutations: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Json] = field(default_factory=dict)  # The first sample of each kind.

    def add(self, name: str, row: Json) -> None:
        self.rows[name] += 1
        if name != "sft.jsonl":
            extra = row.get("extra_info", {})
            self.families.update(extra.get("families", []))
            self.depths[int(extra.get("depth", 0))] += 1
            return
        kind = str(row.get("kind", "unnamed"))
        self.kinds[kind] += 1
        self.dialects[str(row.get("dialect", "cuda"))] += 1
        size = sum(len(one["content"]) for one in row["messages"])
        power = max(size, 1).bit_length()
        self.lengths[f"{1 << (power - 1)}–{(1 << power) - 1}"] += 1
        provenance = row.get("provenance", {})
        self.mutations.update(provenance.get("mutations", []))
        self.features.update(provenance.get("features", []))
        self.examples.setdefault(kind, row)


def tally_of(folders: list[Path]) -> Tally:
    tally = Tally()
    for folder in folders:
        for name in ROW_FILES:
            if (folder / name).is_file():
                for row in rows_of(folder / name):
                    tally.add(name, row)
    return tally


def manifest_of(folders: list[Path], versions: Json) -> Json:
    """Files with hashes and numbers of rows, settings with seeds, and versions."""
    sets = []
    for folder in folders:
        files = []
        for path in sorted(one for one in folder.iterdir() if one.suffix in (".json", ".jsonl")):
            data = path.read_bytes()
            entry: Json = {"name": path.name, "bytes": len(data)}
            entry["sha256"] = hashlib.sha256(data).hexdigest()
            if path.suffix == ".jsonl":
                entry["rows"] = data.count(b"\n")
            files.append(entry)
        settings = load_settings(folder)
        seeds = [one["settings"] for one in settings.values() if "settings" in one]
        sets.append({"folder": folder.name, "settings": seeds, "files": files})
    return {"schema": "musacoder-data/1", "versions": versions, "sets": sets}


def versions() -> Json:
    found = {"python": sys.version.split()[0], "musacoder": VERSION}
    with contextlib.suppress(PackageNotFoundError):
        found["torch"] = installed_version("torch")
    return found


def render(folders: list[Path]) -> str:
    tally = tally_of(folders)
    settings = {folder.name: load_settings(folder) for folder in folders}
    rejected, overlap = Counter[str](), Counter[str]()
    for found in settings.values():
        for document in found.values():
            rejected.update(document.get("rejected", {}))
            for path in document.get("paths", []):
                rejected.update(path["refused"])
            counts = document.get("counts", {})
            overlap.update({k: v for k, v in counts.items() if _is_of_overlap(k)})
    environment = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True)
    return environment.get_template("card.html").render(
        style=Markup((HERE / "style.css").read_text(encoding="utf-8")),
        title=", ".join(folder.name for folder in folders),
        tally=tally,
        charts=_charts(tally, rejected),
        examples={kind: _shown(row) for kind, row in sorted(tally.examples.items())},
        overlap=sorted(overlap.items()),
        settings={name: json.dumps(_seeds(one), indent=1) for name, one in settings.items()},
        manifest=manifest_of(folders, versions()),
    )


def _is_of_overlap(name: str) -> bool:
    return "overlap" in name or "kernelbench" in name or "suite" in name


def _seeds(found: dict[str, Json]) -> Json:
    return {name: one.get("settings", one.get("counts", {})) for name, one in found.items()}


def _charts(tally: Tally, rejected: Counter[str]) -> list[tuple[str, list[tuple[str, int, float]]]]:
    """(title, [(label, count, share of the largest)]) of each distribution that has something."""
    depths = {str(depth): count for depth, count in sorted(tally.depths.items())}
    lengths = dict(sorted(tally.lengths.items(), key=lambda one: int(one[0].split("–")[0])))
    named = [
        ("Samples by kind", dict(tally.kinds.most_common())),
        ("Samples by dialect", dict(tally.dialects.most_common())),
        ("Samples by length in characters", lengths),
        ("Tasks by family", dict(tally.families.most_common())),
        ("Tasks by number of operators", depths),
        ("Bugs by kind", dict(tally.mutations.most_common())),
        ("Solutions by optimisation", dict(tally.features.most_common())),
        ("Rejections by reason", dict(rejected.most_common(60))),
    ]
    charts = []
    for title, counts in named:
        most = max(counts.values(), default=0)
        if most:
            charts.append((title, [(k, n, n / most) for k, n in counts.items()]))
    return charts


def _shown(row: Json) -> list[tuple[str, str]]:
    shown = []
    for one in row["messages"]:
        text = str(one["content"])
        cut = text if len(text) <= EXAMPLE_BYTES_MAX else text[:EXAMPLE_BYTES_MAX] + "\n…"
        shown.append((str(one["role"]), cut))
    return shown


def write_parquet(folders: list[Path], target: Path) -> list[Path]:
    """Each file of rows as one Parquet file."""
    import pyarrow  # type: ignore[import-not-found,unused-ignore]
    from pyarrow import parquet  # type: ignore[import-not-found,unused-ignore]

    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name in ROW_FILES:
        rows = [
            _flat(row) for one in folders if (one / name).is_file() for row in rows_of(one / name)
        ]
        if rows:
            path = target / f"{name.removesuffix('.jsonl')}.parquet"
            table = pyarrow.Table.from_pylist(rows)
            parquet.write_table(table, path, row_group_size=PARQUET_ROWS, compression="zstd")
            written.append(path)
    return written


def _flat(row: Json) -> Json:
    """Keeps messages and lists; an object becomes JSON text, since a column has one type and an
    object's members differ between kinds.
    """
    return {key: json.dumps(one) if isinstance(one, dict) else one for key, one in row.items()}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="report.card", description="A card of data sets.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="one self-contained page")
    parser.add_argument("--parquet", type=Path, help="a folder for Parquet files")
    parser.add_argument("--manifest", type=Path, help="hashes, seeds and versions")
    options = parser.parse_args(arguments)
    try:
        if options.parquet and find_spec("pyarrow") is None:  # No file is written in this case.
            raise BadData(f"--parquet needs pyarrow: {sys.executable} -m pip install pyarrow")
        if options.out:
            options.out.write_text(render(options.folders), encoding="utf-8")
        if options.manifest:
            text = json.dumps(manifest_of(options.folders, versions()), indent=1) + "\n"
            options.manifest.write_text(text, encoding="utf-8")
        if options.parquet:
            for path in write_parquet(options.folders, options.parquet):
                print(path)
    except (BadData, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
