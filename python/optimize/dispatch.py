# SPDX-License-Identifier: Apache-2.0
"""The part of an optimized module that decides for each call: kernels, or the PyTorch original.

Its text, from "import" on, is written behind the user's module by `module_text.py`, so it imports
only PyTorch and the standard library.
"""

import dataclasses
import functools
import inspect
import sys
import types
import warnings
import weakref
from typing import Any

import torch

_ELEMENTS_MAX = 2**31 - 1  # More elements would overflow an int index of a kernel.
_ALIGNMENT = 16  # Judged inputs were aligned, and kernels may read four floats at once.


class _Kernels:
    """The kernels of one class: ModelNew for each of its objects, with their parameters."""

    def __init__(
        self, original: Any, inputs: Any, initials: Any, source: str, facts: dict[str, Any]
    ) -> None:
        self.facts = facts
        self._original = original
        self._init, self._forward = original.__init__, original.forward
        self._makers = (inputs, initials)
        self._source = source
        self._fault = ""  # The reason why no object can have kernels.
        self._model_new: Any = None
        self._verified: Any = ()  # The forms of the arguments of forward, and of the constructor.
        self._built: Any = weakref.WeakKeyDictionary()  # The object: ModelNew and ties, or why not.

    def install(self) -> None:
        """Replaces the class's constructor and forward; all else of the class stays."""
        kernels, init, forward = self, self._init, self._forward

        @functools.wraps(init)
        def new_init(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            if type(self) is kernels._original:
                self.__dict__["_built_with"] = (args, kwargs, frozenset(_places_of(self)))
                if torch.cuda.is_available():
                    kernels.of(self)  # Compiles here, and not in the first call.

        @functools.wraps(forward)
        def new_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            if kernels.why_not(self, args, kwargs):
                return forward(self, *args, **kwargs)
            return kernels.call(self, kernels.arguments(forward, args, kwargs))

        self._original.__init__, self._original.forward = new_init, new_forward

    # ---- Decision -------------------------------------------------------------------------------

    def why_not(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The reason why a call uses the PyTorch original; "" if it uses kernels."""
        try:
            given = self.arguments(self._forward, args, kwargs)
        except TypeError:
            return "other arguments than those that were verified"
        tensors = _tensors_of(given)
        differentiable = [*tensors, *model.parameters()]
        if torch.is_grad_enabled() and any(one.requires_grad for one in differentiable):
            return "gradients are needed"
        if not tensors or any(not one.is_cuda for one in tensors):
            return "an input is not on the GPU"
        if any(one.device.index != torch.cuda.current_device() for one in tensors):
            return "an input is not on the current GPU"
        if model.training != (self.facts["mode"] == "train"):
            return f"it was verified in {self.facts['mode']} mode: call .{self.facts['mode']}()"
        if torch.is_autocast_enabled():
            return "autocast is on"
        is_default = torch.cuda.current_stream() == torch.cuda.default_stream()
        if not (self.facts["any_stream"] or is_default):
            return "the kernels run on the default stream alone"
        built = self.of(model)
        if isinstance(built, str):
            return built
        return _unlike(given, self._verified[0]) or _untied(built, tensors[0].device)

    # ---- Calls ----------------------------------------------------------------------------------

    def call(self, model: Any, given: tuple[Any, ...]) -> Any:
        built = self._built[model]
        outputs = built.model_new(*given)
        for mine, theirs, name, _ in built.ties:
            if mine[name] is not theirs[name]:
                theirs[name] = mine[name]  # A buffer that the kernels replaced.
        return outputs

    @staticmethod
    def arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments by position.  Raises TypeError where they have none."""
        if not kwargs:
            return args
        bound = inspect.signature(function).bind(None, *args, **kwargs)
        if bound.kwargs:
            raise TypeError("an argument without a position")
        return bound.args[1:]

    # ---- Kernels --------------------------------------------------------------------------------

    def of(self, model: Any) -> Any:
        """The ModelNew of an object with its ties, or the reason why it has none."""
        built = self._built.get(model)
        if built is None or (isinstance(built, _Built) and built.is_outdated()):
            try:
                built = self._fault or self._build(model)
            except Exception as error:
                built = f"the kernels do not work here: {error!r:.500}"
                if self._model_new is None:
                    self._fault = built
                warnings.warn(f"{self._original.__name__}: {built}", stacklevel=2)
            self._built[model] = built
        return built

    def _build(self, model: Any) -> Any:
        if type(model) is not self._original:
            return "a class that derives from the verified one"
        if self.facts["is_reduced"] and not self.facts["sizes"]:
            return "it was verified at reduced sizes alone"
        if self._model_new is None:
            self._load()
        args, kwargs, places = model.__dict__["_built_with"]
        given = _bound(self._init, args, kwargs)
        if _tensors_of([*given.values()]) or _unlike(given, self._verified[1]):
            return "other constructor arguments than those that were verified"
        if places != frozenset(_places_of(model)):
            return "other parameters or buffers than the constructor makes"
        with torch.random.fork_rng(devices=[]):
            model_new = self._model_new(*args, **kwargs)
        model_new.train(self.facts["mode"] == "train").requires_grad_(False)
        return _Built(model_new, model)

    def _load(self) -> None:
        """Runs the text of the kernels, and finds out which inputs were verified."""
        name = f"{self._original.__module__}_kernels"
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(self._source, f"<{name}>", "exec"), module.__dict__)
        inputs, initials = self._makers
        self._verified = (
            _form(*self._made(inputs, self._forward, self.arguments)),
            _form(*self._made(initials, self._init, _bound)),
        )
        self._model_new = module.__dict__["ModelNew"]

    def _made(self, maker: Any, function: Any, bound: Any) -> Any:
        """A maker's arguments for a function, at the task's sizes and at others that were tried."""
        space, found = maker.__globals__, []
        for sizes in [{}, *self.facts["sizes"]]:
            kept = {name: space[name] for name in sizes if name in space}
            space.update({name: sizes[name] for name in kept})
            try:
                with torch.random.fork_rng(devices=[]):
                    try:
                        with torch.device("meta"):  # Their form matters, not their values.
                            made = _made_by(maker, function)
                    except Exception:
                        made = _made_by(maker, function)
                found.append(bound(function, *made))
            finally:
                space.update(kept)
        return found[0], found[1:]


@dataclasses.dataclass(frozen=True)
class _Form:
    """A tensor that was verified; `free` are the dimensions at which other sizes were, too."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    free: frozenset[int]


_ANY_SIZE = object()  # The form of an integer that had other values, too.


def _form(value: Any, others: list[Any]) -> Any:
    """The form of an argument, by its value and those at other sizes."""
    others = [other for other in others if type(other) is type(value)]
    if isinstance(value, torch.Tensor):
        like = [other.shape for other in others if other.dim() == value.dim()]
        free = {i for shape in like for i, size in enumerate(shape) if size != value.shape[i]}
        return _Form(value.dtype, tuple(value.shape), frozenset(free))
    if isinstance(value, dict):
        return {
            key: _form(one, [other[key] for other in others if key in other])
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        like = [other for other in others if len(other) == len(value)]
        return [_form(one, [other[i] for other in like]) for i, one in enumerate(value)]
    is_size = type(value) is int and any(other != value for other in others)
    return _ANY_SIZE if is_size else value


def _unlike(given: Any, verified: Any) -> str:
    """The difference of an argument from the verified form; "" if there is none."""
    if isinstance(verified, _Form):
        if not isinstance(given, torch.Tensor) or given.dtype != verified.dtype:
            return f"another dtype than the verified {verified.dtype}"
        if given.dim() != len(verified.shape) or not 0 < given.numel() <= _ELEMENTS_MAX:
            return "another number of dimensions, or of elements, than was verified"
        for i, size in enumerate(given.shape):
            if size != verified.shape[i] and i not in verified.free:
                return f"another shape than the verified {list(verified.shape)}"
        if not given.is_contiguous() or given.data_ptr() % _ALIGNMENT:
            return "an input is not contiguous and aligned"
        return ""
    if isinstance(verified, (list, dict)):
        keys = range(len(verified)) if isinstance(verified, list) else verified
        is_same = isinstance(given, (list, tuple, dict)) and len(given) == len(verified)
        if not is_same or any(key not in (given if type(given) is dict else keys) for key in keys):
            return "other arguments than those that were verified"
        return next((why for key in keys if (why := _unlike(given[key], verified[key]))), "")
    if verified is _ANY_SIZE:
        return "" if type(given) is int else "a size that is no integer"
    is_same = type(given) is type(verified) and given == verified
    return "" if is_same else f"another value than the verified {verified!r}"


def _made_by(maker: Any, function: Any) -> Any:
    """The result of get_inputs or get_init_inputs, as positional and named arguments."""
    made = maker()
    if isinstance(made, dict):
        return (), made
    if not isinstance(made, (list, tuple)):
        return (() if made is None else (made,)), {}
    is_pair = len(made) == 2 and isinstance(made[0], (list, tuple)) and isinstance(made[1], dict)
    if is_pair:
        try:
            inspect.signature(function).bind(None, *made[0], **made[1])
            return tuple(made[0]), made[1]
        except TypeError:
            pass
    return tuple(made), {}


def _bound(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    bound = inspect.signature(function).bind(None, *args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors_of(item)]
    return []


def _places_of(root: Any) -> dict[str, Any]:
    """The dictionary and the name of each parameter and buffer, by its path."""
    return {
        f"{prefix}.{name}": (store, name)
        for prefix, module in root.named_modules(remove_duplicate=False)
        for store in (module._parameters, module._buffers)
        for name, value in store.items()
        if value is not None
    }


class _Built:
    """ModelNew for one object, and the parameters and buffers that both have by the same name."""

    def __init__(self, model_new: Any, model: Any) -> None:
        self.model_new = model_new
        self.device: Any = None  # The device of tensors that only ModelNew has.
        theirs, places = _places_of(model), _places_of(model_new)
        self.ties = [
            (mine, theirs[path][0], name, mine[name].detach().to("meta"))
            for path, (mine, name) in places.items()
            if path in theirs
        ]
        self._own = [place for path, place in places.items() if path not in theirs]
        for mine, store, name, _ in self.ties:
            mine[name] = store[name]  # The values of its own would only take memory.
        self._children = [
            (module._modules, name, child)
            for module in model.modules()
            for name, child in module._modules.items()
        ]

    def move_to(self, device: torch.device) -> None:
        """Moves the tensors that only ModelNew has; the others are on the object's device."""
        for store, name in self._own:
            moved = store[name].detach().to(device)
            is_parameter = isinstance(store[name], torch.nn.Parameter)
            store[name] = torch.nn.Parameter(moved, False) if is_parameter else moved
        self.device = device

    def is_outdated(self) -> bool:
        """True where a layer of the object was replaced."""
        return any(store.get(name) is not child for store, name, child in self._children)


def _untied(built: _Built, device: torch.device) -> str:
    """Hands the object's parameters and buffers to the kernels, or says why it cannot."""
    if built.device != device:
        built.move_to(device)
    for mine, theirs, name, like in built.ties:
        value = theirs[name]
        if value is None or value.dtype != like.dtype or value.shape != like.shape:
            return f"{name} has another dtype or shape than the verified one"
        if value.device != device or not value.is_contiguous():
            return f"{name} is on another device, or not contiguous"
        mine[name] = value
    return ""
