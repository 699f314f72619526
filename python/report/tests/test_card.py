# SPDX-License-Identifier: Apache-2.0
"""The data card: counts, examples, hostile texts, the manifest, errors."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from report import card
from report.data_sets import BadData

HOSTILE = "<script>alert(1)</script>"
SAMPLE = {
    "id": "f1-0",
    "kind": "review",
    "messages": [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": "No bug."},
    ],
    "provenance": {"mutations": ["off_by_one"], "features": ["baseline"]},
}
PROMPT = {"id": "f1-0", "prompt": [], "extra_info": {"families": ["softmax"], "depth": 2}}
FORGE = {
    "settings": {"seed": 41},
    "counts": {"overlap_tasks_of_several": 7},
    "rejected": {HOSTILE: 3},
}


class Card(unittest.TestCase):
    def setUp(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.folder = Path(self._directory.name)
        (self.folder / "forge.json").write_text(json.dumps(FORGE))
        (self.folder / "sft.jsonl").write_text(json.dumps(SAMPLE) + "\n")
        (self.folder / "rl.jsonl").write_text(json.dumps(PROMPT) + "\n")

    def test_shows_counts_examples_and_reasons(self) -> None:
        page = card.render([self.folder])
        for text in (
            "1 samples",
            "review",
            "softmax",
            "off_by_one",
            "overlap tasks",
            "&#34;seed&#34;: 41",
        ):
            self.assertIn(text, page)

    def test_runs_nothing_of_a_text(self) -> None:
        self.assertNotIn(HOSTILE, card.render([self.folder]))

    def test_lists_the_files_with_hashes(self) -> None:
        files = card.manifest_of([self.folder], {})["sets"][0]["files"]
        found = {one["name"]: one for one in files}
        data = (self.folder / "sft.jsonl").read_bytes()
        self.assertEqual(found["sft.jsonl"]["sha256"], hashlib.sha256(data).hexdigest())
        self.assertEqual(found["sft.jsonl"]["rows"], 1)

    def test_refuses_a_folder_without_data(self) -> None:
        (self.folder / "forge.json").unlink()
        with contextlib.redirect_stderr(io.StringIO()) as error:
            self.assertEqual(card.main([str(self.folder), "--out", str(self.folder / "x.html")]), 2)
        self.assertIn("no forge.json", error.getvalue())

    def test_names_the_line_that_is_damaged(self) -> None:
        (self.folder / "sft.jsonl").write_text("{}x\n")
        with self.assertRaisesRegex(BadData, "sft.jsonl: line 1"):
            card.render([self.folder])

    def test_parquet_without_pyarrow_is_refused_before_anything_is_written(self) -> None:
        page = self.folder / "x.html"
        error = io.StringIO()
        words = [str(self.folder), "--out", str(page), "--parquet", str(self.folder / "p")]
        with mock.patch.object(card, "find_spec", lambda name: None):
            with contextlib.redirect_stderr(error):
                self.assertEqual(card.main(words), 2)
        message = f"error: --parquet needs pyarrow: {sys.executable} -m pip install pyarrow\n"
        self.assertEqual(error.getvalue(), message)
        self.assertFalse(page.exists())

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "needs pyarrow")
    def test_writes_parquet_that_holds_the_rows(self) -> None:
        from pyarrow import parquet  # type: ignore[import-not-found,unused-ignore]

        card.write_parquet([self.folder], self.folder / "parquet")
        rows = parquet.read_table(self.folder / "parquet/sft.parquet").to_pylist()
        self.assertEqual(rows[0]["messages"], SAMPLE["messages"])
        self.assertEqual(json.loads(rows[0]["provenance"]), SAMPLE["provenance"])


if __name__ == "__main__":
    unittest.main()
