# SPDX-License-Identifier: Apache-2.0
"""Loads a published folder with the package `datasets`, from disk: python load_published.py DIR

It prints a line for each configuration and split; the exit code is 77 if the package is missing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec


def main(folder: str) -> int:
    if find_spec("datasets") is None:
        print("the package datasets is missing")
        return 77
    os.environ["HF_HUB_OFFLINE"] = "1"
    import datasets  # type: ignore[import-not-found,unused-ignore]

    features = set()
    with tempfile.TemporaryDirectory() as cache:
        for name in datasets.get_dataset_config_names(folder):
            for split, rows in datasets.load_dataset(folder, name, cache_dir=cache).items():
                print(name, split, len(rows))
                features.add(str(rows.features))
    assert len(features) == 1, features
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
