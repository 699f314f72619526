# SPDX-License-Identifier: Apache-2.0
"""What runs in the sandbox: constructor arguments and inputs are tried until a forward runs, and a
task is put through the gate.

Inputs that nobody shows are found by trying. A first guess has the rank and the channels of the
first layer; while the forward fails inside a layer, the sizes that this layer refused are replaced
by those that it has.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from harness.forge.gate import complaints
from harness.importer.graph import graph_of
from harness.judge.judge import Judge
from harness.worker import settings
from harness.worker.program import arguments_of, call, inputs_of, run_module
from harness.worker.region import tensors_of
from harness.worker.wire import Json, Question, Refusal

BATCH, LENGTH, SIDE, DEPTH = 4, 64, 32, 8
GRID = 8  # Height and width where they are arguments: GRID * GRID is LENGTH.
REPAIRS_MAX = 8
FORWARDS_MAX = 160  # A limit for one class.
SEED = 20
_NAME = "imported.py"
_INTEGERS = ("index", "indices", "idx", "token", "ids", "label", "target", "target_ids", "mask_ids")
_MASKS = ("mask",)
_GRIDS = ("h", "w", "height", "width")


@dataclass
class _Spec:
    """One argument: a tensor's sizes and for integers the bound, or a number."""

    sizes: list[int]
    bound: int = 0
    number: int = 0

    def make(self) -> torch.Tensor | int:
        if self.number:
            return self.number
        if self.bound:
            return torch.randint(0, self.bound, self.sizes)
        return torch.rand(self.sizes)

    def text(self) -> str:
        if self.number:
            return str(self.number)
        sizes = ", ".join(map(str, self.sizes))
        if self.bound:
            return f"torch.randint(0, {self.bound}, ({sizes},))"
        return f"torch.rand({sizes})"


def find_arguments(asked: Json) -> Json:
    """{"text", "name", "proposals"} to {"init": […], "named": {…}, "inputs": […]} as expressions,
    or {"error": why}."""
    torch.manual_seed(SEED)
    warnings.simplefilter("ignore")
    settings.provide()
    try:
        namespace = run_module(str(asked["text"]), _NAME).__dict__
    except BaseException as error:
        return {"error": f"its file does not run: {_text_of(error)}"}
    namespace.setdefault("torch", torch)
    namespace.setdefault("nn", nn)
    model_class = namespace[str(asked["name"])]
    last, tries = "no constructor arguments are known", FORWARDS_MAX
    for proposal in asked["proposals"]:
        try:
            values = [eval(one, dict(namespace)) for one in proposal["init"]]
            named = {k: eval(one, dict(namespace)) for k, one in proposal["named"].items()}
            model = model_class(*values, **named)
        except BaseException as error:
            last = f"not constructed: {_text_of(error)}"
            continue
        found: Json = {"init": proposal["init"], "named": proposal["named"]}
        if proposal["inputs"] is not None:
            why = _shown_inputs_run(model, proposal["inputs"], namespace)
            if why is None:
                return {**found, "inputs": proposal["inputs"]}
            last = f"not run: {why}"
        specs, why, tries = _search(model, tries)
        if specs is not None:
            return {**found, "inputs": [one.text() for one in specs]}
        last = f"no inputs found: {why}"
    return {"error": last}


def _text_of(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:120]}"


def _shown_inputs_run(model: nn.Module, inputs: list[str], namespace: Json) -> str | None:
    try:
        with torch.no_grad():
            given = [eval(one, dict(namespace)) for one in inputs]
            return _why_no_result(model(*given))
    except BaseException as error:
        return _text_of(error)


def _why_no_result(outputs: Any) -> str | None:
    found = tensors_of(outputs)
    if not found:
        return "the forward returns no tensor"
    if any(one.numel() == 0 for one in found):
        return "the forward returns an empty tensor"
    return None


# ---- Inputs by trying ---------------------------------------------------------------------------


def _search(model: nn.Module, tries: int) -> tuple[list[_Spec] | None, str, int]:
    """Specs with which the forward runs, else why not; and how many forwards are left."""
    wanted = [
        one
        for one in inspect.signature(model.forward).parameters.values()
        if one.default is inspect.Parameter.empty
        and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    first = ""  # The likeliest guess's reason says most.
    for guess in _guesses(model, [one.name for one in wanted]) if wanted else ():
        for _ in range(REPAIRS_MAX):
            if tries <= 0:
                return None, first, 0
            tries -= 1
            watch = _Watch(model)
            why_now = watch.run(guess)
            if why_now is None:
                return guess, "", tries
            first = first or why_now
            if not watch.repair(guess):
                break
    return None, first or "the forward takes no tensor", tries


def _guesses(model: nn.Module, names: list[str]) -> Iterator[list[_Spec]]:
    """First guesses, the likeliest first: one shape for all arguments, then pairs of two shapes."""
    bound = next(
        (one.num_embeddings for one in model.modules() if isinstance(one, nn.Embedding)), 0
    )
    shapes = list(_shapes(model))
    first_is_whole = bool(bound) and isinstance(_first_layer(model), nn.Embedding)

    def spec(name: str, sizes: list[int], is_first: bool) -> _Spec:
        lower = name.lower()
        if lower in _GRIDS:
            return _Spec([], number=GRID)
        if any(word in lower for word in _MASKS):
            return _Spec(list(sizes), 2)
        if any(word in lower for word in _INTEGERS) or (is_first and first_is_whole):
            return _Spec(list(sizes[:2]), bound or 2)
        return _Spec(list(sizes))

    def all_of(choice: tuple[list[int], ...]) -> list[_Spec]:
        return [spec(n, sizes, i == 0) for i, (n, sizes) in enumerate(zip(names, choice))]

    if first_is_whole:
        yield all_of(tuple([BATCH, LENGTH] for _ in names))
    for sizes in shapes:
        yield all_of(tuple(sizes for _ in names))
    if len(names) > 1:
        for choice in itertools.islice(itertools.product(shapes[:4], repeat=len(names)), 40):
            yield all_of(choice)


def _first_layer(model: nn.Module) -> nn.Module | None:
    """The first leaf with parameters or buffers."""
    for one in model.modules():
        is_leaf = one is not model and not list(one.children())
        if is_leaf and (any(True for _ in one.parameters()) or any(True for _ in one.buffers())):
            return one
    return None


def _shapes(model: nn.Module) -> Iterator[list[int]]:
    """Shapes of one input: that of the first layer, then each usual rank."""
    first = _first_layer(model)
    sizes = [one.shape[-1] for one in model.parameters() if one.dim() > 0 and one.shape[-1] > 1]
    channels = _channels(first) or (sizes[0] if sizes else 64)
    image = [BATCH, channels, SIDE, SIDE]
    sequence, flat = [BATCH, LENGTH, channels], [BATCH, channels]
    line, volume = [BATCH, channels, LENGTH], [BATCH, channels, DEPTH, 16, 16]
    last = [BATCH, SIDE, SIDE, channels]
    rank = _rank(first)
    usual = [image, sequence, flat, line, volume, last]
    if rank:
        usual.sort(key=lambda one: one is not {2: flat, 3: line, 4: image, 5: volume}[rank])
    elif isinstance(first, (nn.Linear, nn.LayerNorm)):
        usual = [sequence, flat, image, last, line, volume]
    yield from usual
    if channels != 3:
        yield [BATCH, 3, SIDE, SIDE]
    yield [BATCH, 4, LENGTH, 16]  # Heads, as attention has them.
    yield [BATCH, BATCH]
    yield [LENGTH]


def _channels(layer: nn.Module | None) -> int:
    for name in ("in_features", "in_channels", "num_features", "num_channels", "input_size",
                 "embed_dim"):  # fmt: skip
        if isinstance(value := getattr(layer, name, None), int):
            return value
    shape = getattr(layer, "normalized_shape", None)
    return int(shape[-1]) if shape else 0


def _rank(layer: nn.Module | None) -> int:
    name = type(layer).__name__
    for digit, rank in (("1d", 3), ("2d", 4), ("3d", 5)):
        if name.endswith(digit):
            return rank
    return 0


class _Watch:
    """One forward, and the layer in which it failed."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._layer: nn.Module | None = None
        self._given: list[int] = []

    def run(self, specs: list[_Spec]) -> str | None:
        hooks = [one.register_forward_pre_hook(self._entered) for one in self._model.modules()
                 if not list(one.children())]  # fmt: skip
        hooks += [one.register_forward_hook(self._left) for one in self._model.modules()
                  if not list(one.children())]  # fmt: skip
        try:
            with torch.no_grad():
                return _why_no_result(self._model(*(one.make() for one in specs)))
        except BaseException as error:
            return _text_of(error)
        finally:
            for hook in hooks:
                hook.remove()

    def _entered(self, layer: nn.Module, given: Any) -> None:
        tensors = tensors_of(list(given))
        if tensors:
            self._layer, self._given = layer, list(tensors[0].shape)

    def _left(self, layer: nn.Module, given: Any, made: Any) -> None:
        self._layer = None

    def repair(self, specs: list[_Spec]) -> bool:
        """Changes the sizes that the layer refused; False where nothing is to be changed."""
        wanted, given = _channels(self._layer), self._given
        if not wanted or len(given) < 2:
            return False
        is_last = isinstance(self._layer, (nn.Linear, nn.LayerNorm, nn.MultiheadAttention))
        got = given[-1] if is_last else given[1]
        if got == wanted:
            return False
        changed = False
        for spec in specs:
            for at, size in reversed(list(enumerate(spec.sizes))):
                if size == got and at > 0 and not spec.bound:
                    spec.sizes[at] = wanted
                    changed = True
                    break
        return changed


# ---- The gate -----------------------------------------------------------------------------------


def inspect_task(asked: Json) -> Json:
    """{"text"} to {"gate": [why], "graph": {…} or None, "signature"}: the forge's gate, and the
    operators as dispatched. A program that does not run has that as its only reason."""
    warnings.simplefilter("ignore")
    text = str(asked["text"])
    result: Json = {"gate": [], "graph": None}
    if asked.get("wants_gate", True):
        result["gate"] = _gate(text)
    if not result["gate"]:
        for device in ("meta", "cpu"):
            try:
                graph = graph_of(text, device)
                result["graph"] = {**asdict(graph), "families": graph.families()}
                break
            except BaseException as error:
                result["graph_error"] = _text_of(error)
    return result


def _gate(text: str) -> list[str]:
    judge = Judge()
    try:
        options = {"specials": False}
        judge.answer(Question({"op": "open", "source": text, "options": options}))
        judge.answer(Question({"op": "begin", "seed": SEED}))
        with torch.no_grad():
            return complaints(judge, None)
    except Refusal as refusal:
        return [f"cannot be judged: {_text_of(refusal)}"]
    except BaseException as error:
        return [f"does not run: {_text_of(error)}"]
