# SPDX-License-Identifier: Apache-2.0
"""The functions that run in the sandbox: they try constructor arguments and inputs until a forward
runs, and grade a task with the judge.
"""

from __future__ import annotations

import ast
import functools
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from harness.importer.signature import number as usual_value
from harness.importer.graph import graph_of
from harness.importer.inputs import (
    SECONDS_MAX,
    Names,
    Search,
    error_text,
    names_in,
    why_no_result,
)
from harness.importer.observed import Observer
from harness.judge.judge import Judge
from harness.worker import settings
from harness.worker.program import run_module
from harness.worker.region import form_of
from harness.worker.wire import Json, Question, Refusal

SEED = 20
_NAME = "imported.py"


def _settings(known: Mapping[str, str], names: Names) -> SimpleNamespace:
    """A namespace that gets a member when the text reads one."""

    class Settings(SimpleNamespace):
        def __getattr__(self, name: str) -> Any:
            # The code reads other names by hasattr or getattr, which have a default.
            if name.startswith("__") or name not in names.attributes:
                raise AttributeError(name)
            setattr(self, name, _setting(name, known, names))
            return getattr(self, name)

    return Settings()


def _mapping(known: Mapping[str, str], names: Names) -> dict[str, Any]:
    """A dict that gets an item when the text reads one."""

    class Items(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            self[name] = _setting(name, known, names)
            return self[name]

    return Items()


def _setting(name: str, known: Mapping[str, str], names: Names) -> Any:
    if name in names.namespaces and name not in known:
        return _settings(known, names)
    texts = names.texts.get(name)
    text = known.get(name) or (repr(texts[0]) if texts else usual_value(name) or "64")
    return eval(text, {"torch": torch, "nn": nn})


def find_arguments(asked: Json) -> Json:
    """{"text", "name", "proposals", "settings"} to {"init": […], "named": {…}, "inputs": […]} as
    expressions, "number" of the proposal, "is_plain" if the judge can pass the constructor's
    arguments on, and "seen" with the arguments of its submodules; or {"error": why}.
    """
    torch.manual_seed(SEED)
    warnings.simplefilter("ignore")
    settings.provide()
    text, name = str(asked["text"]), str(asked["name"])
    try:
        namespace = run_module(text, _NAME).__dict__
    except BaseException as error:
        return {"error": f"its file does not run: {error_text(error)}"}
    names = names_in(ast.parse(text), name)
    for key, value in (("torch", torch), ("nn", nn), ("F", nn.functional)):
        namespace.setdefault(key, value)
    namespace |= {"SimpleNamespace": SimpleNamespace, "functools": functools}
    namespace["settings"] = lambda: _settings(asked["settings"], names)
    namespace["mapping"] = lambda: _mapping(asked["settings"], names)
    errors: list[str] = []
    end = time.process_time() + SECONDS_MAX
    for number, proposal in enumerate(asked["proposals"]):
        if time.process_time() > end:
            break
        found = _tried(namespace, name, proposal, names)
        if "error" not in found:
            return {**found, "number": number}
        errors.append(found["error"])
    # The most useful reason is the likeliest proposal's among those that came furthest.
    errors.sort(key=lambda why: why.startswith("not constructed"))
    return {"error": errors[0] if errors else "no constructor arguments are known"}


def _tried(namespace: Json, name: str, proposal: Json, names: Names) -> Json:
    def evaluated(text: str) -> Any:
        return eval(text, dict(namespace))

    observer = Observer(namespace)
    try:
        values = [evaluated(one) for one in proposal["init"]]
        given = {key: evaluated(one) for key, one in proposal["named"].items()}
        model = namespace[name](*values, **given)
    except BaseException as error:
        return {"error": f"not constructed: {error_text(error)}{_with(proposal)}"}
    inputs = proposal["inputs"]
    if inputs is not None and not _runs(model, inputs, evaluated):
        inputs = None
    if inputs is None:
        search = Search(model, names)
        if (inputs := search.find()) is None:
            return {"error": f"no inputs found: {search.reason}{_with(proposal)}"}
    return _with_observed(namespace, name, proposal, inputs, (values, given), observer)


def _with(proposal: Json) -> str:
    """The constructor's arguments, as the end of a reason."""
    given = [*proposal["init"], *(f"{key}={one}" for key, one in proposal["named"].items())]
    text = ", ".join(given)
    return f" (built with {text if len(text) < 90 else text[:90] + '…'})" if given else ""


def _runs(model: nn.Module, inputs: list[str], evaluated: Any) -> bool:
    try:
        with torch.no_grad():
            return why_no_result(model(*map(evaluated, inputs))) is None
    except BaseException:
        return False


def _with_observed(
    namespace: Json,
    name: str,
    proposal: Json,
    inputs: list[str],
    given: tuple[list[Any], dict[str, Any]],
    observer: Observer,
) -> Json:
    """The result of a proposal that ran, with the calls observed in a second run."""
    init, named = proposal["init"], proposal["named"]
    try:
        form_of([*given[0], *given[1].values()])
        is_plain = True
    except Refusal:
        is_plain = False

    def run() -> None:
        values = [eval(one, dict(namespace)) for one in init]
        model = namespace[name](*values, **{k: eval(v, dict(namespace)) for k, v in named.items()})
        with torch.no_grad():
            model(*(eval(one, dict(namespace)) for one in inputs))

    try:
        observer.watch(run)
        seen = observer.seen()
    except BaseException:
        seen = {}
    seen.pop(name, None)

    def written(text: str, value: Any) -> str:
        return observer.text(value) if isinstance(value, (SimpleNamespace, dict)) else text

    return {
        "init": [written(*pair) for pair in zip(init, given[0])],
        "named": {key: written(one, given[1][key]) for key, one in named.items()},
        "inputs": inputs,
        "is_plain": is_plain,
        "seen": seen,
    }


# ---- The judge ----------------------------------------------------------------------------------


def inspect_task(asked: Json) -> Json:
    """{"text"} to {"why", "grade", "graph": {…} or None}: why the judge cannot judge it, its grade
    (python/harness/judge/hygiene.py), and the operators as dispatched."""
    warnings.simplefilter("ignore")
    text = str(asked["text"])
    result: Json = {"why": "", "grade": "", "reasons": [], "graph": None}
    if asked.get("wants_grade", True):
        result |= _grade(text)
    if not result["why"]:
        for device in ("meta", "cpu"):
            try:
                graph = graph_of(text, device)
                result["graph"] = {**asdict(graph), "families": graph.families()}
                break
            except BaseException as error:
                result["graph_error"] = error_text(error)
    return result


def _grade(text: str) -> Json:
    judge = Judge()
    try:
        options = {"specials": False}
        judge.answer(Question({"op": "open", "source": text, "options": options}))
        answer = judge.answer(Question({"op": "begin", "seed": SEED}))
        return dict(answer.body["plan"]["grade"])
    except Refusal as refusal:
        return {"why": f"cannot be judged: {' '.join(str(refusal).split())}"}
    except BaseException as error:
        return {"why": f"cannot be judged: {error_text(error)}"}
