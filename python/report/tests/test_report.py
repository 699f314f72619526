# SPDX-License-Identifier: Apache-2.0
"""The report: documents in, pages and tables out. UPDATE_GOLDEN=1 rewrites the golden files."""

from __future__ import annotations

import base64
import contextlib
import csv
import gzip
import hashlib
import importlib.util
import io
import json
import os
import re
import tempfile
import time
import unittest
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]

from report import __main__, charts
from report.document import OUTCOMES, TEXT_CHARACTERS_MAX, BadDocument, Json, parse, two_runs
from report.highlight import marks
from report.html import render
from report.inspect_log import inspect_log
from report.junit import junit
from report.tables import markdown, samples_csv
from report.tests.documents import CANDIDATE, ROOT, Maker, every_outcome

GOLDEN = Path(__file__).parent / "golden.html"
GOLDEN_INSPECT = Path(__file__).parent / "golden.inspect.json"
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "--><img src=x onerror=alert(1)>",
    "\"'`><svg/onload=alert(1)>",
    "]]></pre></details></body>",
    "{{ 7 * 7 }}{% raw %}",
    "a\0b\u2028c\u2029d\u202ee\x1b[31m\r\nf\ud800g",
    "&lt;b&gt;&amp;&#0;",
)


class Page(HTMLParser):
    """A page as a browser parses it: its elements, attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []  # Up to the first end tag in each element.
        self.is_inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append((tag, ""))
        self.is_inside = True

    def handle_endtag(self, tag: str) -> None:
        self.is_inside = False

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    def blobs(self) -> list[Json]:
        found = [
            text
            for (tag, text), (_, attributes) in zip(self.texts, self.elements)
            if attributes.get("class") == "blob"
        ]
        return [json.loads(gzip.decompress(base64.b64decode(text))) for text in found]


def read(document: Json) -> Json:
    return parse(json.dumps(document))


def small() -> Json:
    return Maker(2, [CANDIDATE] * 2).document(1, 2)


def three_conversations() -> Json:
    """Samples of two turns each: one passes, one fails, and one has no score."""
    document = read(every_outcome())
    run = document["runs"][0]
    samples = run["samples"]
    document["runs"] = [{**run, "samples": samples[:2] + samples[4:6] + samples[8:10]}]
    return document


def with_hostile_texts(value: Json, text: str) -> Json:
    """The same document with every text in it, but empty ones, followed by a hostile one."""
    if isinstance(value, dict):
        return {name: with_hostile_texts(one, text) for name, one in value.items()}
    if isinstance(value, list):
        return [with_hostile_texts(one, text) for one in value]
    return value + text if isinstance(value, str) and value and value not in OUTCOMES else value


def run_main(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = __main__.main(list(arguments))
        except SystemExit as exit_of_argparse:
            code = int(exit_of_argparse.code or 0)
    return code, out.getvalue(), err.getvalue()


class Browsing(unittest.TestCase):
    """The features with which a reader finds an answer among many."""

    def test_an_answer_of_a_later_turn_shows_what_changed(self) -> None:
        document = every_outcome()
        first, second = document["runs"][0]["samples"][:2]
        first["answer"], second["answer"] = "a\nb\nc", "a\nB\nc"
        page = render(read(document))
        changes = "<pre>\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c<"
        self.assertIn(f"What changed since turn 1</summary>{changes}", page)
        self.assertIn("sample 0, turn 2</summary>", page)
        self.assertNotIn("turn 0", page)

    def test_findings_can_be_chosen(self) -> None:
        page = Page(render(read(every_outcome())))
        chosen = {attributes.get("data-findings") for _, attributes in page.elements}
        self.assertIn("RuntimeError", chosen)
        self.assertIn(("option", "static.library_call"), page.texts)

    def test_two_runs_show_the_tasks_at_which_they_differ_the_earlier_first(self) -> None:
        document = Maker(2, [CANDIDATE] * 2).document(2, 2)
        later, earlier = document["runs"]
        later["created"], earlier["created"] = "2026-02-02T00:00:00Z", "2026-01-01T00:00:00Z"
        for run, outcomes in ((later, ("pass", "wrong")), (earlier, ("wrong", "wrong"))):
            for sample, outcome in zip(run["samples"], outcomes):
                sample["outcome"] = outcome
        found = two_runs(read(document))
        self.assertEqual(found["order"], [1, 0])
        self.assertEqual(
            found["rows"],
            [{"task": "kernelbench:1/1", "parts": ["0 of 1", "1 of 1"], "difference": 1.0}],
        )
        self.assertIn("<br><small>2026-01-01 00:00</small>", render(read(document)))

    def test_samples_without_a_verdict_are_counted_at_their_task(self) -> None:
        document = small()
        run = document["runs"][0]
        run["settings"]["samples"], run["wanted"], run["judged"] = 3, 6, 2
        self.assertEqual(render(read(document)).count("2 pending</small>"), 2)


class TheTestDocument(unittest.TestCase):
    def test_it_is_of_the_documented_form(self) -> None:
        schema = json.loads((ROOT / "docs/report.schema.json").read_text())
        for document in (small(), every_outcome()):
            jsonschema.validate(document, schema)

    def test_verdicts_are_of_the_documented_form(self) -> None:
        schema = json.loads((ROOT / "docs/verdict.schema.json").read_text())
        for run in every_outcome()["runs"]:
            for sample in run["samples"]:
                jsonschema.validate(sample["verdict"], schema)


class Rendered(unittest.TestCase):
    def test_equals_the_golden_page(self) -> None:
        page = render(read(every_outcome()))
        # How zlib compresses differs between its versions, so the blobs are not compared.
        page = re.sub(r'(class="blob"[^>]*>)[^<]*', r"\1", page)
        page = re.sub(r"(?s)<(style|script)>.*?</\1>|sha256-[^']*", "", page)
        page = re.sub(r"(?s)(<pre[^>]*>).*?</pre>", r"\1</pre>", page)  # The next test reads them.
        if os.environ.get("UPDATE_GOLDEN"):
            GOLDEN.write_text(page)
        self.assertEqual(page, GOLDEN.read_text())

    def test_reports_the_missing_samples_of_a_run(self) -> None:
        document = every_outcome()
        document["runs"][0]["unfinished"] = "unfinished: 28 of 47 samples, 19 <missing>"
        document["runs"][1]["unfinished"] = ""
        document["runs"][0]["samples"][1]["pending"] = True
        page, table = render(read(document)), markdown(read(document))
        self.assertEqual(page.count('class="unfinished"'), 1)
        self.assertIn("unfinished: 28 of 47 samples, 19 &lt;missing&gt;.", page)
        self.assertEqual(page.count(" pending<"), 1)
        self.assertIn(r"unfinished: 28 of 47 samples, 19 \<missing\>.", table)

    def test_has_a_row_and_an_answer_of_each_sample(self) -> None:
        document = read(every_outcome())
        page = Page(render(document))
        links = {a["href"] for tag, a in page.elements if tag == "a"}
        targets = {a["id"] for tag, a in page.elements if (a.get("id") or "").startswith("e")}
        samples = [sample for run in document["runs"] for sample in run["samples"]]
        num = len(samples) + len(document["tasks"])
        self.assertLessEqual({f"#e{n}" for n in range(num)}, links)
        self.assertLessEqual({f"e{n}" for n in range(num)}, targets)
        texts = [text.removeprefix("\n") for tag, text in page.texts if tag == "pre"]
        for sample in samples:
            self.assertTrue(sample["answer"] in texts)
            self.assertTrue(sample["feedback"] in texts)
        for task in document["tasks"]:
            self.assertTrue(task["code"] in texts)

    def test_blobs_hold_verdicts_reasoning_and_marks(self) -> None:
        document = read(every_outcome())
        samples = [sample for run in document["runs"] for sample in run["samples"]]
        blob = Page(render(document)).blobs()[0]
        for index, sample in enumerate(samples):
            self.assertEqual(blob["verdict"][index], sample["verdict"])
            self.assertEqual(blob["reasoning"][index], sample["reasoning"])
            self.assertEqual(blob["marks"][index], marks(sample["answer"]))
        words = " ".join(blob["parts"])
        for expected in ("expected 2 dimensions", "Limit: 10 s", "static.library_call",
                         "no_model_new", "from row 128 on", "speed-up over eager"):  # fmt: skip
            self.assertIn(expected, words)

    def test_allows_by_policy_only_its_own_style_and_script(self) -> None:
        text = render(read(small()))
        policy = next(a["content"] for tag, a in Page(text).elements if "http-equiv" in a)
        assert policy is not None
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        for tag in ("style", "script"):
            inline = re.search(rf"(?s)<{tag}>(.*?)</{tag}>", text)
            assert inline
            digest = base64.b64encode(hashlib.sha256(inline[1].encode()).digest()).decode()
            self.assertIn(f"{tag}-src 'sha256-{digest}'", policy)

    def test_loads_nothing_and_has_no_inline_handlers(self) -> None:
        for tag, attributes in Page(render(read(every_outcome()))).elements:
            self.assertNotIn(tag, ("link", "img", "iframe", "object", "base"))
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on") or name in ("src", "style"), name)
                self.assertTrue(name != "href" or (value or "").startswith("#"), value)

    def test_every_header_cell_has_a_scope(self) -> None:
        for tag, attributes in Page(render(read(every_outcome()))).elements:
            self.assertTrue(tag != "th" or attributes.get("scope") in ("row", "col"))

    def test_orders_runs_by_their_first_figure(self) -> None:
        document = read(Maker(3, [CANDIDATE] * 2).document(4, 3))
        table = render(document).split('id="runs"')[1].split("</table>")[0]
        names = re.findall(r'<th scope="row">.*?</svg> ([\w-]+)</th>', table, re.S)
        ordered = sorted(
            document["runs"], key=lambda run: -run["groups"]["all"]["pass_at"]["1"]["value"]
        )
        self.assertEqual(names, [run["name"] for run in ordered])


class HostileText(unittest.TestCase):
    def test_adds_no_element_anywhere(self) -> None:
        clean = Page(render(read(every_outcome())))
        expected = [tag for tag, _ in clean.elements]
        for text in HOSTILE:
            with self.subTest(text):
                page = Page(render(read(with_hostile_texts(every_outcome(), text))))
                self.assertTrue([tag for tag, _ in page.elements] == expected)

    def test_adds_no_element_to_the_words_of_a_verdict(self) -> None:
        def tags(document: Json) -> list[str]:
            parts = Page(render(read(document))).blobs()[0]["parts"]
            return [tag for part in parts for tag, _ in Page(part).elements]

        expected = tags(every_outcome())
        for text in HOSTILE:
            with self.subTest(text):
                self.assertTrue(tags(with_hostile_texts(every_outcome(), text)) == expected)

    def test_cannot_end_a_script(self) -> None:
        document = read(with_hostile_texts(every_outcome(), HOSTILE[0]))
        for tag, text in Page(render(document)).texts:
            if tag == "script":
                self.assertNotIn("alert(1)", text)

    def test_control_characters_and_half_surrogates_become_visible(self) -> None:
        document = small()
        document["runs"][0]["samples"][0]["answer"] = HOSTILE[6]
        page = render(read(document))
        page.encode("utf-8")
        self.assertIn("a␀b\u2028c\u2029d&lt;U+202E>e␛[31m\nf\ufffdg", page)

    def test_a_long_line_is_cut_and_takes_no_long_time(self) -> None:
        document = small()
        for character in "a/(":
            document["runs"][0]["samples"][0].update(
                answer="```cuda\n" + character * 1_000_000, phrase="y" * 1_000_000
            )
            begin = time.process_time()
            page = render(read(document))
            self.assertLess(time.process_time() - begin, 5)
            self.assertLess(len(page), 6 * TEXT_CHARACTERS_MAX)
            self.assertIn("more characters are left out", page)

    def test_is_no_formula_in_csv(self) -> None:
        document = small()
        document["runs"][0]["samples"][0]["phrase"] = '=HYPERLINK("x")'
        row = list(csv.DictReader(io.StringIO(samples_csv(read(document)))))[0]
        self.assertEqual(row["phrase"], '\'=HYPERLINK("x")')

    def test_makes_no_column_or_markup_in_markdown(self) -> None:
        document = small()
        document["runs"][0]["name"] = "a|b\n<b>`c`"
        self.assertIn(r"| a\|b \<b\>\`c\` |", markdown(read(document)))


class JUnit(unittest.TestCase):
    def test_each_sample_is_a_case_of_its_kind(self) -> None:
        document = every_outcome()
        suite = ElementTree.fromstring(junit(read(document)))[0]
        samples = document["runs"][0]["samples"]
        kinds = {"pass": None, "infra": "error", "unsupported": "skipped"}
        for sample, case in zip(samples, suite, strict=True):
            found = [child.tag for child in case]
            wanted = kinds.get(sample["outcome"], "failure")
            if not sample["pending"]:
                self.assertEqual(found, [wanted] if wanted else [], sample["outcome"])
            self.assertEqual(case.get("classname"), sample["task"])
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            self.assertEqual(int(suite.get(name, "-1")), len(suite.findall(f"*/{tag}")))

    def test_hostile_texts_are_text(self) -> None:
        for text in HOSTILE:
            document = small()
            document["runs"][0]["samples"][0].update(phrase=text, task=text, outcome="wrong")
            (suite,) = ElementTree.fromstring(junit(read(document)))
            self.assertEqual(len(suite), len(document["runs"][0]["samples"]))


class InspectLog(unittest.TestCase):
    def test_each_conversation_has_a_score_or_an_error(self) -> None:
        document = read(every_outcome())
        document["runs"] = document["runs"][:1]
        log = json.loads(inspect_log(document))
        last: dict[tuple[str, int], list[str]] = {}
        for one in document["runs"][0]["samples"]:
            last.setdefault((one["task"], one["sample"] + 1), []).append(one["outcome"])
        self.assertEqual({(one["id"], one["epoch"]) for one in log["samples"]}, set(last))
        for one in log["samples"]:
            outcomes = last[one["id"], one["epoch"]]
            passed = "pass" in outcomes
            is_scored = passed or outcomes[-1] not in ("infra", "unsupported")
            self.assertEqual("error" in one, not is_scored, outcomes)
            if is_scored:
                self.assertEqual(one["scores"]["musacoder"]["value"], "C" if passed else "I")
            answers = [each for each in one["messages"] if each["role"] == "assistant"]
            self.assertEqual(len(answers), len(outcomes))
        self.assertEqual(log["eval"]["task"], document["title"])

    def test_equals_the_golden_log(self) -> None:
        log = inspect_log(three_conversations())
        if os.environ.get("UPDATE_GOLDEN"):
            GOLDEN_INSPECT.write_text(log)
        self.assertEqual(log, GOLDEN_INSPECT.read_text())

    @unittest.skipUnless(importlib.util.find_spec("inspect_ai"), "inspect_ai is not installed")
    def test_inspect_ai_reads_the_golden_log(self) -> None:
        from inspect_ai.log import read_eval_log  # type: ignore[import-not-found,unused-ignore]

        log = read_eval_log(str(GOLDEN_INSPECT))
        self.assertEqual((log.status, log.results.completed_samples), ("success", 2))
        self.assertEqual(log.results.scores[0].metrics["accuracy"].value, 0.5)
        scores = [{name: score.value for name, score in one.scores.items()} for one in log.samples]
        self.assertEqual(scores, [{"musacoder": "C"}, {}, {"musacoder": "I"}])
        errors = [one.error.message if one.error else None for one in log.samples]
        self.assertEqual(errors, [None, "infra: the judge ended without a reply", None])
        self.assertEqual([len(one.messages) for one in log.samples], [4, 4, 4])

    def test_two_runs_are_refused(self) -> None:
        with self.assertRaisesRegex(BadDocument, "--run"):
            inspect_log(read(Maker(1, [CANDIDATE] * 2).document(2, 1)))


class MissingParts(unittest.TestCase):
    def test_no_runs(self) -> None:
        document = {**small(), "runs": [], "tasks": [], "paired": []}
        self.assertIn("The document has no runs.", render(read(document)))
        self.assertTrue(markdown(read(document)))
        self.assertEqual(len(samples_csv(read(document)).splitlines()), 1)

    def test_no_samples(self) -> None:
        document = small()
        document["runs"][0].update(samples=[], funnel=[], turns=[], outcomes={}, groups={})
        page = Page(render(read({**document, "tasks": []})))
        self.assertEqual(page.count("html"), 1)

    def test_nothing_timed(self) -> None:
        document = small()
        run = document["runs"][0]
        run["fast_curve"] = []
        for group in run["groups"].values():
            group.update(fast={"0": None, "1": None}, faster_rate=None, pass_at={}, average=None)
        for sample in run["samples"]:
            sample.update(speedup=None, speedup_compile=None, sol_score=None, time_us=None)
        page = render(read(document))
        self.assertNotIn('id="speed"', page)
        self.assertNotIn(">fast_1<", page)

    def test_a_sample_of_a_task_that_the_document_lacks(self) -> None:
        document = small()
        document["runs"][0]["samples"][0]["task"] = "elsewhere/task"
        self.assertIn("elsewhere/task", render(read(document)))

    def test_a_single_turn_has_no_section(self) -> None:
        self.assertNotIn('id="turns"', render(read(small())))
        self.assertIn('id="turns"', render(read(every_outcome())))


class Charts(unittest.TestCase):
    def test_a_curve_goes_down_in_steps(self) -> None:
        curves = charts.curves([{"fast_curve": [[0, 1.0], [2, 0.5], [4, 0.0]]}])
        assert curves
        self.assertEqual(curves.paths, [(0, "M0 0.0H0.0V0.0H200.0V110.0H400.0V220.0")])
        self.assertEqual([label for _, label in curves.ticks], ["0", "1", "2", "3", "4"])

    def test_every_speed_up_is_in_one_bin(self) -> None:
        values = [0.0, 1e-9, 0.5, 1.0, 1.99, 2.0, 1e9]
        run = {"samples": [{"speedup": {"value": value}} for value in values]}
        found = charts.speedup_histograms([run], "speedup")[0]
        self.assertEqual(sum(found.counts), len(values))
        self.assertEqual(len(found.counts), len(found.labels))
        self.assertEqual(found.counts[found.labels.index("1× to 1.41×")], 1)
        self.assertEqual(found.counts[found.labels.index("1.41× to 2×")], 1)

    def test_scores_outside_0_to_1_are_in_the_outer_bins(self) -> None:
        run = {"samples": [{"sol_score": score} for score in (-1.0, 0.0, 0.5, 1.0, 2.0, None)]}
        counts = charts.score_histograms([run])[0].counts
        self.assertEqual((counts[0], counts[10], counts[-1]), (2, 1, 2))


class Marks(unittest.TestCase):
    def lengths(self, text: str) -> int:
        return sum(int(n, 36) for n, _ in re.findall(r"([0-9a-z]+)([A-Z.])", marks(text)))

    def test_cover_the_text_in_utf_16_units(self) -> None:
        for text in (
            "",
            "\U0001f600 é\n```python\nx = '\U0001f600'\n```\n",
            "```cuda\nint a;",
            "~~~",
        ):
            self.assertEqual(self.lengths(text), len(text.encode("utf-16-le")) // 2, text)

    def test_know_python_cuda_and_cuda_in_python(self) -> None:
        self.assertEqual(marks("import x\n"), "7K2.")
        self.assertEqual(marks("It is:\n```cpp\nint a;\n```"), "e.4T6.")
        self.assertEqual(marks('import x\ns = r"""\n__global__ void f();"""'), "7K6.5SbK5T4.3S")

    def test_of_prose_are_plain(self) -> None:
        self.assertEqual(marks("I import nothing."), "h.")


class CommandLine(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, text: str) -> str:
        path = self.folder / "document.json"
        path.write_text(text)
        return str(path)

    def test_writes_all_formats(self) -> None:
        paths = [self.folder / name for name in ("a.html", "a.md", "a.csv")]
        html, md, rows = map(str, paths)
        source = self.write(json.dumps(every_outcome()))
        self.assertEqual(run_main(source, "--out", html, "--markdown", md, "--csv", rows)[0], 0)
        self.assertTrue(paths[0].read_text().startswith("<!DOCTYPE html>"))
        self.assertIn("| coder-32b-rl |", paths[1].read_text())
        self.assertEqual(
            len(list(csv.reader(io.StringIO(paths[2].read_text())))), 1 + 2 * 2 * len(OUTCOMES)
        )

    def test_refuses_bad_documents_in_one_line(self) -> None:
        bad = {
            "[": "not JSON",
            "[]": "schema: expected 3, got None",
            '{"schema": 1}': "schema: expected 3, got 1",
            '{"schema": NaN}': "NaN is not a number of JSON",
            "[" * 100_000: "nested too deeply",
        }
        for text, message in bad.items():
            with self.subTest(message):
                code, _, err = run_main(self.write(text), "--out", str(self.folder / "x.html"))
                self.assertEqual(code, 2)
                self.assertIn(message, err)
                self.assertEqual(err.count("\n"), 1)
        self.assertFalse((self.folder / "x.html").exists())

    def test_refuses_files_that_it_cannot_read_or_write(self) -> None:
        source = self.write(json.dumps(small()))
        for arguments in (["/nonexistent", "--out", "-"], [source, "--out", "/nonexistent/x"]):
            code, _, err = run_main(*arguments)
            self.assertEqual((code, err.count("\n")), (2, 1))
            self.assertIn("No such file", err)

    def test_refuses_to_write_nothing(self) -> None:
        self.assertEqual(run_main(self.write("{}"))[0], 2)


class BesideTest(unittest.TestCase):
    """Published times are shown, marked as such, with runs of their dialect."""

    def page(self, dialect: list[str]) -> str:
        document = parse(json.dumps(Maker(1, [CANDIDATE] * 2).document(1, 1)))
        document["runs"][0]["settings"]["dialect"] = dialect
        document["tasks"][0]["id"] = "kernelbench:1/19"
        return render(document)

    def test_a_run_in_musa_has_them(self) -> None:
        page = self.page(["musa", "mp_22"])
        self.assertIn("eager on an MTT S4000, ms <small>(measured by others)</small>", page)

    def test_a_run_in_cuda_has_none(self) -> None:
        self.assertNotIn("MTT S4000", self.page(["cuda", "mp_31"]))


if __name__ == "__main__":
    unittest.main()
