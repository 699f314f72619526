# SPDX-License-Identifier: Apache-2.0
"""Finds inputs by trial if no example shows them. This runs in the sandbox.

A first guess has the rank and the channels of the first layer. A forward that fails suggests sizes
and ranks: the failing layer's, and those in the error's text. The next guesses use these instead;
guesses nearest to the first one are tried first.
"""

from __future__ import annotations

import ast
import heapq
import inspect
import itertools
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from harness.worker.region import tensors_of

BATCH, LENGTH, SIDE, DEPTH = 4, 64, 32, 8
GRID = 8  # Height and width where they are arguments: GRID * GRID is LENGTH.
FORWARDS_MAX = 120  # Limits for one construction.
SEARCH_SECONDS_MAX = 4
SECONDS_MAX = 12  # Processor time for one class; a forward that has begun may take longer.
SIZE_MAX = 4096
ELEMENTS_MAX = 1 << 24
_INTEGERS = {"index", "indice", "idx", "id", "label", "target"}
_GRIDS = ("h", "w", "height", "width")
_PAIRS = ("size", "x_size", "hw", "hw_shape", "shape", "resolution", "input_size", "spatial_size")
_BATCHES = ("b", "bs", "batch_size")
# The start of the errors of Python, PyTorch and einops about a wrong number of dimensions.
_RANK = re.compile(
    r"values to unpack \(expected (\d)|[Ee]xpected (\d)D? (?:dimension|\(unbatched)|"
    r"or (\d)D \(batched\)|expected (\d)D input|number of dims.* = (\d)|must be (\d)D"
)


@dataclass(frozen=True)
class Spec:
    """One argument: a tensor's sizes (with a bound for integers), or an expression."""

    sizes: tuple[int, ...] = ()
    bound: int = 0
    constant: str = ""  # The expression, if it is not a random tensor.
    count: int = 0  # The length of a list of such tensors; 0 for a single tensor.

    def text(self) -> str:
        if self.constant:
            return self.constant
        sizes = ", ".join(map(str, self.sizes))
        one = f"torch.rand({sizes})"
        if self.bound:
            one = f"torch.randint(0, {self.bound}, ({sizes},))"
        return f"[{', '.join([one] * self.count)}]" if self.count else one


Guess = tuple[Spec, ...]


def why_no_result(outputs: Any) -> str | None:
    found = tensors_of(outputs)
    if not found:
        return "the forward returns no tensor"
    if any(one.numel() == 0 for one in found):
        return "the forward returns an empty tensor"
    return None


def error_text(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"


def _shown(guess: Guess) -> str:
    return ", ".join(one.text() for one in guess)[:90]


class Search:
    """Searches inputs for one model; `reason` is the likeliest guess's error if there are none."""

    def __init__(self, model: nn.Module, names: "Names") -> None:
        self._model = model
        self._names = names
        self.reason = "the forward takes no tensor"
        wanted = [
            one
            for one in inspect.signature(model.forward).parameters.values()
            if one.default is inspect.Parameter.empty
            and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]
        self._wanted = [one.name for one in wanted]

    def find(self) -> list[str] | None:
        """Expressions with which the forward runs."""
        first = True
        queue: list[tuple[float, int, Guess]] = []
        number = itertools.count()
        seen: set[Guess] = set()

        def push(cost: float, guess: Guess) -> None:
            if guess not in seen and all(map(_is_small, guess)):
                seen.add(guess)
                heapq.heappush(queue, (cost, next(number), guess))

        for at, guess in enumerate(self._guesses()) if self._wanted else ():
            push(at, guess)
        end = time.process_time() + SEARCH_SECONDS_MAX
        for _ in range(FORWARDS_MAX):
            if not queue or time.process_time() > end and not first:
                return None
            cost, _, guess = heapq.heappop(queue)
            watch = _Watch(self._model)
            why = watch.run([one.text() for one in guess])
            if why is None:
                return [one.text() for one in guess]
            if first:
                self.reason, first = f"{why} (called with {_shown(guess)})", False
            for step, changed in self._changed(guess, why, watch):
                push(cost + step, changed)
        return None

    # ---- First guesses --------------------------------------------------------------------------

    def _guesses(self) -> Iterator[Guess]:
        """The first guesses, the likeliest first: one shape for all arguments, then pairs of
        shapes.
        """
        first = _first_layer(self._model)
        modules = list(self._model.modules())
        bound = next((one.num_embeddings for one in modules if isinstance(one, nn.Embedding)), 0)
        is_index = isinstance(first, nn.Embedding)
        shapes = list(_shapes(self._model))
        names = self._wanted

        def all_of(choice: Sequence[Sequence[int]], mask: str) -> Guess:
            return tuple(
                self._spec(name, tuple(sizes), bound, is_index and at == 0, mask)
                for at, (name, sizes) in enumerate(zip(names, choice))
            )

        if is_index:
            yield all_of([[BATCH, LENGTH]] * len(names), "None")
        for sizes in shapes:
            yield all_of([sizes] * len(names), "None")
            if any("mask" in name.lower() for name in names):
                yield all_of([sizes] * len(names), "")
        if len(names) > 1:
            for choice in itertools.islice(itertools.product(shapes[:4], repeat=len(names)), 40):
                yield all_of(choice, "None")

    def _spec(
        self, name: str, sizes: tuple[int, ...], bound: int, is_index: bool, mask: str
    ) -> Spec:
        lower = name.lower()
        if name in self._names.texts:
            return Spec(constant=repr(self._names.texts[name][0]))
        if lower in _GRIDS:
            return Spec(constant=str(GRID))
        if lower in _PAIRS:
            return Spec(constant=f"({GRID}, {GRID})")
        if lower in _BATCHES:
            return Spec(constant=str(BATCH))
        if "mask" in lower:
            return Spec(constant=mask) if mask else Spec(sizes, 2)
        if is_index or {word.rstrip("s") for word in lower.split("_")} & _INTEGERS:
            return Spec(sizes[:2], bound or 2)
        return Spec(sizes, count=2 if name in self._names.sequences else 0)

    # ---- Next guesses ---------------------------------------------------------------------------

    def _changed(self, guess: Guess, why: str, watch: "_Watch") -> Iterator[tuple[float, Guess]]:
        """Guesses that satisfy a failed forward's error, each with its distance from this guess."""
        wanted, given = watch.sizes()
        if wanted and given and wanted != given:
            yield from ((0.1, one) for one in _with_size(guess, given, wanted))
        if ranks := [int(one) for one in itertools.chain(*_RANK.findall(why)) if one]:
            for sizes in _shapes(self._model):
                if len(sizes) in ranks:
                    yield 0.3, tuple(_with_shape(one, tuple(sizes)) for one in guess)
            for at, one in enumerate(guess if len(guess) > 1 else ()):
                for sizes in _shapes(self._model):
                    if len(sizes) in ranks:
                        yield 0.6, (*guess[:at], _with_shape(one, tuple(sizes)), *guess[at + 1 :])
        numbers = list(dict.fromkeys(map(int, re.findall(r"(?<![\w.])\d+(?![\w.])", why))))[:8]
        numbers += [int(n) for pair in re.findall(r"(\d+)[x*](\d+)", why) for n in pair][:8]
        sides = {math.isqrt(n) for n in numbers if n > 4 and math.isqrt(n) ** 2 == n}
        pairs = [int(n) for n in re.findall(r"\b(\d+), \1\b", why) if 1 < int(n) < SIDE]
        for side in [*pairs, *sorted(sides, reverse=True)]:
            yield from ((0.4, one) for one in _squares(guess, side))
        own = {size for one in guess for size in one.sizes}
        for old, new in itertools.permutations(dict.fromkeys(numbers), 2):
            if old in own:
                yield from ((0.5, one) for one in _with_size(guess, old, new))
            elif new > 1 and old > new and old % new == 0:
                yield from ((0.7, one) for one in _divided(guess, old // new))
        if "Long" in why or "indices" in why or "indexes" in why:
            for at, one in enumerate(guess):
                if one.sizes and not one.bound:
                    bound = getattr(watch.layer, "num_embeddings", 2)
                    yield 0.4, (*guess[:at], Spec(one.sizes[:2], bound), *guess[at + 1 :])
        for new in _sizes_of(self._model):
            for old in sorted(own - {new, BATCH}):
                yield from ((1.5, one) for one in _with_size(guess, old, new))


@dataclass(frozen=True)
class Names:
    """Facts about names in the text: texts with which they are compared, parameters of forward that
    are sequences, names that are read as attributes or keys, and which of these have attributes.
    """

    texts: dict[str, list[str]]
    sequences: frozenset[str]
    attributes: frozenset[str]
    namespaces: frozenset[str]


def names_in(tree: ast.Module, name: str) -> Names:
    """The facts about names in the text; sequences are those in the forward of the class `name`."""
    texts: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, (ast.Name, ast.Attribute)):
            compared = node.left.id if isinstance(node.left, ast.Name) else node.left.attr
            for one in ast.walk(ast.Tuple(node.comparators)):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    texts.setdefault(compared, []).append(one.value)
    own = next((one for one in tree.body if getattr(one, "name", "") == name), ast.Pass())
    sequences = set()
    for node in ast.walk(own):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if called in ("torch.cat", "torch.stack", "torch.concat", "len", "enumerate", "zip"):
            sequences |= {one.id for one in node.args if isinstance(one, ast.Name)}  # type: ignore
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, ast.Name):
            sequences.add(node.iter.id)
    attributes, namespaces = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            attributes.add(str(node.slice.value))
        if isinstance(node, ast.Attribute):
            attributes.add(node.attr)
            inner = node.value
            if isinstance(inner, ast.Attribute) and ast.unparse(inner.value) != "self":
                namespaces.add(inner.attr)
    return Names(texts, frozenset(sequences), frozenset(attributes), frozenset(namespaces))


def _is_small(one: Spec) -> bool:
    return all(0 < n <= SIZE_MAX for n in one.sizes) and math.prod(one.sizes) <= ELEMENTS_MAX


def _with_shape(one: Spec, sizes: tuple[int, ...]) -> Spec:
    return replace(one, sizes=sizes) if one.sizes and not one.bound else one


def _with_size(guess: Guess, old: int, new: int) -> Iterator[Guess]:
    """Replaces one size by another: everywhere, and in the first and last dimension of each
    tensor.
    """
    for places in (slice(None), slice(-1, None), slice(0, 1)):
        changed = []
        for one in guess:
            at = [i for i, size in enumerate(one.sizes) if size == old and i > 0][places]
            sizes = tuple(new if i in at else size for i, size in enumerate(one.sizes))
            changed.append(replace(one, sizes=sizes))
        yield tuple(changed)
    for number, one in enumerate(guess if len(guess) > 1 else ()):
        sizes = tuple(new if size == old else size for size in one.sizes)
        yield (*guess[:number], replace(one, sizes=sizes), *guess[number + 1 :])


def _divided(guess: Guess, factor: int) -> Iterator[Guess]:
    """Divides the number of elements: in both sizes of an image, or in one size."""
    root = round(factor**0.5)
    for sides in (2, 1):
        part = root if sides == 2 and root * root == factor else factor
        yield tuple(
            (
                replace(one, sizes=(*one.sizes[:-sides], *(n // part for n in one.sizes[-sides:])))
                if len(one.sizes) > sides
                else one
            )
            for one in guess
        )


def _squares(guess: Guess, side: int) -> Iterator[Guess]:
    """Images of this side, and sequences as long as its square, with and without a class token."""
    for rank, changes in ((4, {2: side, 3: side}), (3, {1: side**2}), (3, {1: side**2 + 1})):
        yield tuple(
            (
                replace(one, sizes=tuple(changes.get(at, n) for at, n in enumerate(one.sizes)))
                if len(one.sizes) == rank
                else one
            )
            for one in guess
        )


def _sizes_of(model: nn.Module) -> list[int]:
    """The integers that the model and its modules keep: lengths and extents are among them."""
    found: list[int] = []
    for one in itertools.islice(model.modules(), 200):
        for value in vars(one).values():
            items = value if isinstance(value, (tuple, list)) else [value]
            found += [n for n in items if type(n) is int and 1 < n <= 1024]
    for parameter in itertools.islice(model.parameters(recurse=False), 20):
        found += [n for n in parameter.shape if 1 < n <= 1024]
    return list(dict.fromkeys(found))[:12]


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
    yield [BATCH, 3, LENGTH, channels]
    yield [BATCH, 3, GRID, GRID, channels]
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
        self.layer: nn.Module | None = None
        self._given: list[int] = []

    def run(self, inputs: list[str]) -> str | None:
        leaves = [one for one in self._model.modules() if not list(one.children())]
        hooks = [one.register_forward_pre_hook(self._entered) for one in leaves]
        hooks += [one.register_forward_hook(self._left) for one in leaves]
        try:
            with torch.no_grad():
                return why_no_result(self._model(*(eval(one, {"torch": torch}) for one in inputs)))
        except BaseException as error:
            return error_text(error)
        finally:
            for hook in hooks:
                hook.remove()

    def _entered(self, layer: nn.Module, given: Any) -> None:
        tensors = tensors_of(list(given))
        if tensors:
            self.layer, self._given = layer, list(tensors[0].shape)

    def _left(self, layer: nn.Module, given: Any, made: Any) -> None:
        self.layer = None

    def sizes(self) -> tuple[int, int]:
        """The size that the layer expected and the size that it got; zeros if unknown."""
        wanted, given = _channels(self.layer), self._given
        if not wanted or len(given) < 2:
            return 0, 0
        is_last = isinstance(self.layer, (nn.Linear, nn.LayerNorm, nn.MultiheadAttention))
        return wanted, given[-1] if is_last else given[1]
