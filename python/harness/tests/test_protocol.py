# SPDX-License-Identifier: Apache-2.0
"""Each role accepts exactly the requests in protocol.json."""

from __future__ import annotations

import unittest
from typing import Any

from harness.worker import protocol
from harness.worker.wire import Answer, Question, Refusal

Json = dict[str, Any]


def example(kind: Any) -> Any:
    """A value of a type of the definition."""
    if isinstance(kind, list):
        return [example(kind[0])]
    if isinstance(kind, dict):
        return {"key": example(kind["*"])}
    if kind in protocol.DEFINITION["records"]:
        return members(protocol.DEFINITION["records"][kind])
    scalars = {"text": "a", "int": -3, "real": 0.5, "seed": 2**64 - 1, "bool": True}
    return {**scalars, "tree": {"t": "list"}}[kind]


def members(defined: Json) -> Json:
    return {name.removesuffix("?"): example(kind) for name, kind in defined.items()}


def operations() -> list[tuple[str, str, Json]]:
    """Each role's operations, also those that are defined with another role."""
    roles = protocol.DEFINITION["roles"]
    return [
        (role, op, roles[parts][op] if isinstance(parts, str) else parts)
        for role in roles
        for op, parts in roles[role].items()
    ]


def regions(parts: Json, way: str) -> list[int]:
    return [0] if way in parts.get("region", ()) else []


class EveryOperation(unittest.TestCase):
    def each(self) -> Any:
        """(check of a body, a valid body, its defined members), for request and response of each
        operation.
        """
        for role, op, parts in operations():
            asked = Question({"op": op, **members(parts["question"])}, regions(parts, "question"))

            def send(body: Json, role: str = role, op: str = op, parts: Json = parts) -> None:
                question = Question({"op": op, **body}, regions(parts, "question"))
                protocol.check_question(role, question)

            def say(body: Json, role: str = role, asked: Any = asked, parts: Json = parts) -> None:
                protocol.check_answer(role, asked, Answer(body, regions(parts, "answer")))

            yield send, members(parts["question"]), parts["question"]
            yield say, members(parts["answer"]), parts["answer"]

    def test_is_let_through_as_it_is_defined(self) -> None:
        for check, body, _ in self.each():
            check(body)

    def test_a_role_refuses_an_unknown_member(self) -> None:
        for check, body, _ in self.each():
            with self.assertRaisesRegex(Refusal, "has no member trial_seed"):
                check({**body, "trial_seed": 1})

    def test_one_member_more_inside_a_record_is_refused(self) -> None:
        for check, body, defined in self.each():
            for name, kind in defined.items():
                for inner in with_one_more(kind):
                    with self.assertRaisesRegex(Refusal, "has no member trial_seed"):
                        check({**body, name.removesuffix("?"): inner})

    def test_a_member_that_is_missing_is_refused(self) -> None:
        for check, body, defined in self.each():
            for name in defined:
                less = {key: value for key, value in body.items() if key != name.removesuffix("?")}
                if name.endswith("?"):
                    check(less)
                else:
                    with self.assertRaisesRegex(Refusal, "lacks its member"):
                        check(less)

    def test_a_member_of_another_type_is_refused(self) -> None:
        for check, body, defined in self.each():
            for name, kind in defined.items():
                numbers = () if kind == "real" else (1.5, -1 if kind == "seed" else 2**64)
                for wrong in (None, "in", float("nan"), [None], {"a": None}, *numbers):
                    is_right = kind == "tree" or (kind, wrong) in (
                        ("text", "in"),
                        (["tree"], [None]),
                    )
                    if not is_right:
                        with self.assertRaises(Refusal):
                            check({**body, name.removesuffix("?"): wrong})

    def test_true_is_no_number(self) -> None:
        with self.assertRaises(Refusal):
            protocol.check_question("judge", Question({"op": "init", "shape": True}))


def with_one_more(kind: Any) -> list[Any]:
    """Values of the type with one member more in a record, at each depth."""
    if isinstance(kind, list):
        return [[one] for one in with_one_more(kind[0])]
    if isinstance(kind, dict):
        return [{"key": one} for one in with_one_more(kind["*"])]
    defined = protocol.DEFINITION["records"].get(kind)
    if defined is None:
        return []
    deeper = [
        {**example(kind), name.removesuffix("?"): inner}
        for name, member in defined.items()
        for inner in with_one_more(member)
    ]
    return [{**example(kind), "trial_seed": 1}, *deeper]


class Roles(unittest.TestCase):
    def test_an_operation_that_is_not_defined_is_refused(self) -> None:
        for role in protocol.DEFINITION["roles"]:
            for op in ("begin_again", None, ["load"]):
                with self.assertRaisesRegex(Refusal, f"a {role} answers"):
                    protocol.check_question(role, Question({"op": op}))

    def test_a_region_too_many_or_too_few_is_refused(self) -> None:
        for role, op, parts in operations():
            wrong = [] if regions(parts, "question") else [0]
            with self.assertRaisesRegex(Refusal, "regions in place of"):
                question = {"op": op, **members(parts["question"])}
                protocol.check_question(role, Question(question, wrong))

    def test_non_finite_numbers_are_texts_in_json(self) -> None:
        asked = Question({"op": "check"})
        for largest in ("inf", "-inf", "nan", 2, 0.5):
            check = {"path": "", "problem": "", "detail": "", "error_max": largest}
            body = {"passed": False, "checks": [check], "inputs_mutated": ""}
            protocol.check_answer("judge", asked, Answer(body))

    def test_a_shared_definition_is_complete(self) -> None:
        for op in ("run", "time_plan"):
            with self.assertRaisesRegex(Refusal, "a baseline answers"):
                protocol.check_question("baseline", Question({"op": op}))


if __name__ == "__main__":
    unittest.main()
