# SPDX-License-Identifier: Apache-2.0
"""The document as JUnit's XML, which continuous integration shows: a case for each sample.

A failed answer is a failure, an answer that the machine could not judge is an error, and an answer
that the verdict does not judge is skipped.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from report.document import Json

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {"pass": "", "infra": "error", "unsupported": "skipped"}


def junit(document: Json) -> str:
    root = ElementTree.Element("testsuites", name=_text(document["title"]))
    for run in document["runs"]:
        cases = [_case(sample) for sample in run["samples"]]
        found = [child.tag for case in cases for child in case]
        suite = ElementTree.SubElement(
            root, "testsuite", name=_text(run["name"]), tests=str(len(cases)),
            failures=str(found.count("failure")), errors=str(found.count("error")),
            skipped=str(found.count("skipped")),
        )  # fmt: skip
        suite.extend(cases)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=False) + "\n"


def _case(sample: Json) -> ElementTree.Element:
    name = f"sample {sample['sample']}, turn {sample['turn'] + 1}"
    seconds = f"{sample['seconds'] or 0:.3f}"
    case = ElementTree.Element("testcase", classname=_text(sample["task"]), name=name, time=seconds)
    kind = "skipped" if sample["pending"] else _ELEMENTS.get(sample["outcome"], "failure")
    if kind:
        message = _text(f"{sample['outcome']}: {sample['phrase']}".strip(": "))
        ElementTree.SubElement(case, kind, message=message)
    return case


def _text(value: object) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", str(value))
