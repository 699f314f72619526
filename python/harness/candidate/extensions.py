# SPDX-License-Identifier: Apache-2.0
"""The calls of `load_inline` and `load` in one normal form with a content key.

The recorder reports each call, and the candidate process looks up the compiled artifact by the same
key. So a module that requests a different source in judging than in recording finds no artifact.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.worker.cuda_names import CUDA, MUSA
from harness.worker.wire import Json, Refusal

FILE_BYTES_MAX = 4 << 20
FILES_MAX = 64
NAME_MAX = 150  # Characters of a header's name in the tree.
_CUDA_SUFFIXES = {".cu", ".cuh", ".mu"}
_INCLUDE = re.compile(
    r'^([ \t]*#[ \t]*include[ \t]*)(?:"([^"\n]{1,200})"|<([^>\n]{1,200})>)', re.MULTILINE
)
_FOLDER_FLAGS = ("-I", "-isystem")
_LIBRARY_OF_THE_EXTENSION = re.compile(r"\b(TORCH_LIBRARY\w*\s*\(\s*)TORCH_EXTENSION_NAME\b")
_INSTALLED = re.compile(r"/usr/|.*/site-packages/|.*/dist-packages/")

_INLINE = inspect.signature(
    lambda name, cpp_sources, cuda_sources=None, sycl_sources=None, functions=None,
    extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None,
    extra_include_paths=None, build_directory=None, verbose=False, with_cuda=None, with_sycl=None,
    is_python_module=True, with_pytorch_error_handling=True, keep_intermediates=True,
    use_pch=False, no_implicit_headers=False: None
)  # fmt: skip
_LOAD = inspect.signature(
    lambda name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None,
    extra_ldflags=None, extra_include_paths=None, build_directory=None, verbose=False,
    with_cuda=None, with_sycl=None, is_python_module=True, is_standalone=False,
    keep_intermediates=True: None
)  # fmt: skip


def _of_musa(signature: inspect.Signature) -> inspect.Signature:
    """The function's signature in torch_musa, where parameters have the names of that platform."""
    parameters = [
        one.replace(name=name.replace(CUDA.device, MUSA.device))
        for name, one in signature.parameters.items()
        if name != "no_implicit_headers"
    ]
    return signature.replace(parameters=parameters)


_SIGNATURES = {"torch_musa.utils.musa_extension": (_of_musa(_INLINE), _of_musa(_LOAD))}


def replace_builders(
    module: ModuleType, provide: Callable[[Json], object], is_musa: bool = False
) -> None:
    """Replaces the functions that build extensions in torch.utils.cpp_extension, or in
    torch_musa's module of the same kind.

    `provide` gets each extension in normal form and returns the module that the candidate sees.
    `is_musa`: the candidate's own text calls torch_musa.
    """

    def require_no_sycl(kwargs: Mapping[str, Any]) -> None:
        if is_musa and kwargs.get("with_sycl") is not None:
            raise RuntimeError("SYCL extension is not supported on MUSA yet.")

    of_inline, of_load = _SIGNATURES.get(module.__name__, (_INLINE, _LOAD))

    def load_inline(*args: Any, **kwargs: Any) -> object:
        require_no_sycl(kwargs)
        return provide(normal_form_inline(args, kwargs, of_inline))

    def load(*args: Any, **kwargs: Any) -> object:
        require_no_sycl(kwargs)
        return provide(normal_form_load(args, kwargs, of_load))

    def refuse(*_args: Any, **_kwargs: Any) -> object:
        raise RuntimeError(
            f"setuptools cannot build extensions here: call {module.__name__}.load_inline "
            "or load when the module is imported"
        )

    vars(module).update(load_inline=load_inline, load=load)
    of_device = "MUSAExtension" if module.__name__ in _SIGNATURES else "CUDAExtension"
    for name in (of_device, "CppExtension", "BuildExtension"):
        setattr(module, name, refuse)


def normal_form_inline(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature = _INLINE
) -> Json:
    given = _bind(signature, "load_inline", args, kwargs)
    functions = given.get("functions")
    if isinstance(functions, str):
        functions = [functions]
    if functions is not None and not isinstance(functions, dict):
        functions = {str(name): str(name) for name in functions}
    headers = _Headers(_include_folders(given))
    # load_inline writes the sources into this folder.
    beside = [Path(path) for path in _texts(given.get("build_directory"))]
    sources = {
        name: [headers.resolved(text, beside) for text in _texts(given.get(name))]
        for name in ("cpp_sources", "cuda_sources")
    }
    return _finish(
        given,
        **sources,
        functions=functions and {str(name): str(doc) for name, doc in functions.items()},
        files=headers.files(),
    )


def normal_form_load(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: inspect.Signature = _LOAD
) -> Json:
    given = _bind(signature, "load", args, kwargs)
    paths = [Path(path) for path in _texts(given["sources"], what="sources")]
    headers = _Headers(_include_folders(given))
    sources = [(path, headers.resolved(_read(path), [path.parent])) for path in paths]
    return _finish(
        given,
        cpp_sources=[text for path, text in sources if path.suffix not in _CUDA_SUFFIXES],
        cuda_sources=[text for path, text in sources if path.suffix in _CUDA_SUFFIXES],
        functions=None,
        files=headers.files(),
    )


def _bind(
    signature: inspect.Signature, what: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{what}() {error}") from None
    given = {name.replace(MUSA.device, CUDA.device): value for name, value in bound.items()}
    if given.get("sycl_sources") or given.get("with_sycl"):
        raise RuntimeError("SYCL sources are not supported")
    if given.get("is_standalone", False):
        raise RuntimeError("a standalone program is no extension: leave is_standalone out")
    return given


def _finish(given: Mapping[str, Any], **parts: Any) -> Json:
    extension: Json = dict(parts)
    for name in ("cpp_sources", "cuda_sources"):
        extension[name] = [_with_namespace(text, str(given["name"])) for text in parts[name]]
    for name in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags"):
        extension[name] = _texts(given.get(name), what=name)
    if not given.get("is_python_module", True):
        extension["functions"] = None  # Only a module binds functions.
        extension["is_python_module"] = False
    # A lone surrogate cannot be written to a file: PyTorch raises UnicodeEncodeError, as here.
    canonical = json.dumps(extension, sort_keys=True, ensure_ascii=False).encode()
    extension["key"] = hashlib.blake2b(canonical, digest_size=32).hexdigest()
    extension["name"] = str(given["name"])
    return extension


def _with_namespace(text: str, name: str) -> str:
    """Makes TORCH_LIBRARY(TORCH_EXTENSION_NAME, …) use the name that the candidate gave.

    Libraries are compiled under a name made of their key, so that equal ones are shared.
    """
    return _LIBRARY_OF_THE_EXTENSION.sub(lambda found: found[1] + name, text)


def _texts(value: object, what: str = "sources") -> list[str]:
    """A string or an iterable of strings or paths, as a list."""
    if value is None:
        return []
    if isinstance(value, (str, Path)):
        value = [value]
    if not isinstance(value, Iterable):
        raise TypeError(f"{what} must be a string or a list of strings, not {type(value).__name__}")
    return [str(item) for item in value]


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise Refusal("exception", f"{path.name} is larger than {FILE_BYTES_MAX} bytes")
    return data.decode("utf-8", "replace")


def _include_folders(given: Mapping[str, Any]) -> list[Path]:
    """The folders of -I, in the compiler's order."""
    folders = _texts(given.get("extra_include_paths"))
    for name in ("extra_cflags", "extra_cuda_cflags"):
        flags = _texts(given.get(name), what=name)
        for flag, following in zip(flags, [*flags[1:], ""]):
            if flag.startswith(_FOLDER_FLAGS):
                folders.append(flag.removeprefix("-isystem").removeprefix("-I") or following)
    return [Path(folder) for folder in folders]


class _Headers:
    """The candidate's own headers, found as a compiler finds them: a quoted name beside the file
    that includes it, then any name in the folders of -I.

    The headers are copied into one tree of folders. An include directive that would not find its
    file there is rewritten.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._names: dict[Path, str] = {}  # In the tree, in the order in which they were found.

    def resolved(self, text: str, beside: Sequence[Path], folder: str = "") -> str:
        """The text with include directives that are valid in a folder of the tree."""

        def directive(found: re.Match[str]) -> str:
            written = found[2] or found[3]
            is_whole = os.path.isabs(written)
            places = [(one, folder) for one in beside if found[2] and not is_whole]
            places += [(one, "") for one in ([Path("/")] if is_whole else self._folders)]
            for place, of_tree in places:
                if (place / written).is_file():
                    break
            else:
                return found[0]
            name = self._name_of((place / written).resolve(), os.path.join(of_tree, written))
            if name is None or (name == written and found[3]):
                return found[0]
            return f'{found[1]}"{os.path.relpath(name, folder or ".")}"'

        return _INCLUDE.sub(directive, text)

    def files(self) -> list[Json]:
        """The headers that were found, and those that they include."""
        texts: dict[str, str] = {}
        while len(texts) < len(self._names):
            path, name = list(self._names.items())[len(texts)]
            texts[name] = self.resolved(_read(path), [path.parent], os.path.dirname(name))
        return [{"name": name, "text": text} for name, text in sorted(texts.items())]

    def _name_of(self, path: Path, wanted: str) -> str | None:
        """The file's name in the tree; None for an installed header, or beyond the limit of
        headers.
        """
        if path not in self._names:
            if _INSTALLED.match(str(path)) or len(self._names) == FILES_MAX:
                return None
            self._names[path] = self._free_name(os.path.normpath(wanted))
        return self._names[path]

    def _free_name(self, wanted: str) -> str:
        if wanted.startswith(("..", "/")) or len(wanted) > NAME_MAX:
            wanted = os.path.basename(wanted)[-NAME_MAX:]
        name = re.sub(r"[^\w./-]|\.\.", "_", wanted, flags=re.ASCII)
        taken = set(self._names.values())
        return f"{len(taken)}/{name}" if name in taken else name
