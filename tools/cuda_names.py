#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes emu/cuda_names.txt: the headers and the names that a CUDA toolkit has.

  python3 tools/cuda_names.py /usr/local/cuda-13.0/include > emu/cuda_names.txt

The CPU backend implements a part of CUDA. Where a candidate does not compile there, this list
tells a name that the backend lacks from a name that does not exist (src/compile/cpu_lacks.h). The
file has one entry a line, sorted, in four sections: `[headers]`, `[global]` (functions, types,
macros and enumerators of the global namespace), `[scoped]` (names that are declared in a
namespace, and member functions of its classes) and `[members]` (data members of global
structures). No text of a header is copied, and parameters, local names and names reserved for the
library are left out.
"""

from __future__ import annotations

import pathlib
import re
import sys

# Headers of other products that are installed in the same folder.
OTHERS = tuple(
    """cupti nvperf nccl cudnn nvblas generated_ cudalibxt fatbinary cufftw cudaEGL cudaGL cudaVDPAU
    cuda_egl cuda_gl cuda_vdpau cusolverMg cusolverRf""".split()
)
# Headers whose declarations are in namespaces, which macros of their own open.
LIBRARIES = (
    "cub/",
    "cuda/",
    "thrust/",
    "nv/",
    "cooperative_groups",
    "cuda_awbarrier",
    "cuda_pipeline",
)
INTERNAL = ("detail", "internal", "system", "nccl_device", "agent", "dispatch")
PRIVATE = ("fftw", "NVTX", "nvtxExt", "__internal_", "__cuda", "__storage_", "_curand", "__get_")
WORD = re.compile(r"[A-Za-z_]\w*|[{}()<>\[\];=,:#~*&.]|\S")
KEYWORDS = frozenset(
    """alignas alignof asm auto bool break case catch char class const constexpr const_cast
    continue decltype default defined delete do double else enum explicit extern false float for
    friend goto if inline int long mutable namespace new noexcept nullptr operator private
    protected public return short signed sizeof static static_assert static_cast struct switch
    template this throw true try typedef typename union unsigned using void volatile while
    __attribute__ __declspec __asm__ __volatile__""".split()
)


def without_comments(text: str) -> str:
    text = re.sub(r"\\\r?\n", " ", text)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)


class Names:
    def __init__(self) -> None:
        self.headers: set[str] = set()
        self.of_global: set[str] = set()
        self.scoped: set[str] = set()
        self.members: set[str] = set()

    def add_macros(self, text: str, is_library: bool) -> None:
        for name in re.findall(r"^\s*#\s*define\s+([A-Za-z_]\w*)", text, flags=re.M):
            is_private = name.startswith("_") or name.endswith("_H") or name.endswith("_H_")
            if name.startswith(("NVTX_", "FFTW_")):
                continue
            if not is_private or (not is_library and name.startswith("__") and name[2:3].islower()):
                self.of_global.add(name)

    def add_declarations(self, text: str, is_library: bool) -> None:
        """Follows the braces; what stands in a function's body is skipped."""
        tokens = WORD.findall(re.sub(r"^\s*#[^\n]*", "", text, flags=re.M))
        scopes: list[str] = []  # "ns", "extern", "class", "enum"
        head: list[str] = []
        i, depth = 0, 0
        while i < len(tokens):
            token = tokens[i]
            if token == "(":
                depth += 1
                if depth == 1 and head:
                    self.add_function(head, scopes, is_library)
            elif token == ")":
                depth -= 1
            elif depth > 0:
                pass
            elif token == "{":
                kind = kind_of(head)
                if kind == "body":
                    i = end_of_body(tokens, i)
                    head = []
                else:
                    self.add_type(head, scopes, is_library)
                    if kind == "ns" and is_name(head[-1]):
                        self.add(head[-1], ["ns"], is_library)
                    scopes.append(kind)
                    head = []
                    if kind == "enum":
                        i = self.add_enumerators(tokens, i + 1, is_library, scopes) - 1
                i += 1
                continue
            elif token == "}":
                if scopes:
                    scopes.pop()
                head = []
                # The name behind a typedef'd structure.
                if i + 1 < len(tokens) and is_name(tokens[i + 1]):
                    self.add(tokens[i + 1], scopes, is_library)
            elif token == ";":
                self.add_variable(head, scopes, is_library)
                head = []
            elif token == ":" and head[-1:] in (["public"], ["private"], ["protected"]):
                head = []
            if token not in (";", "}") and "NAMESPACE" not in token:
                head.append(token)
            i += 1

    def add(self, name: str, scopes: list[str], is_library: bool) -> None:
        if name in KEYWORDS or len(name) < 2 or name.startswith(PRIVATE):
            return
        is_primitive = name.startswith(("__pipeline_", "__mbarrier_"))
        is_inside = (is_library or "ns" in scopes) and not is_primitive
        if not is_inside and "class" in scopes:
            self.members.add(name)
        elif not is_inside:
            self.of_global.add(name)
        elif not name.startswith("_"):
            self.scoped.add(name)

    def add_function(self, head: list[str], scopes: list[str], is_library: bool) -> None:
        if is_name(head[-1]) and len(head) > 1 and "=" not in head and head[-2] not in ("~", "."):
            self.add(head[-1], scopes, is_library)

    def add_type(self, head: list[str], scopes: list[str], is_library: bool) -> None:
        for i, word in enumerate(head):
            if word not in ("struct", "class", "union", "enum"):
                continue
            names = [w for w in head[i + 1 :] if is_name(w) and w not in KEYWORDS]
            names = [w for w in names if not w.startswith(("__align", "_CCCL", "__device_builtin"))]
            if names and (i == 0 or head[i - 1] not in ("<", ",")):
                self.add(names[0], scopes, is_library)

    def add_variable(self, head: list[str], scopes: list[str], is_library: bool) -> None:
        words = head[: head.index("=")] if "=" in head else head
        if "[" in words:
            words = words[: words.index("[")]
        if head[:1] == ["using"] and "=" in head:
            words = head[: head.index("=")]
        elif head[:1] in (["using"], ["namespace"], ["friend"], ["template"]) and "=" not in head:
            words = words if head[:1] == ["using"] and "::" not in "".join(head) else []
        if len(words) > 1 and is_name(words[-1]):
            self.add(words[-1], scopes, is_library)

    def add_enumerators(
        self, tokens: list[str], i: int, is_library: bool, scopes: list[str]
    ) -> int:
        is_first = True
        outer = [scope for scope in scopes if scope != "enum"]
        while i < len(tokens) and tokens[i] != "}":
            if is_first and is_name(tokens[i]):
                self.add(tokens[i], [s for s in outer if s != "class"], is_library)
            is_first = tokens[i] == ","
            i += 1
        return i


def is_name(token: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", token) is not None


def kind_of(head: list[str]) -> str:
    if "namespace" in head:
        return "ns"
    if "(" not in head and "enum" in head:
        return "enum"
    if head[:1] == ["extern"] and "(" not in head:
        return "extern"
    is_class = any(word in ("struct", "class", "union") for word in head)
    return "class" if is_class and ("(" not in head or "=" not in head) else "body"


def end_of_body(tokens: list[str], i: int) -> int:
    depth = 0
    while i < len(tokens):
        depth += {"{": 1, "}": -1}.get(tokens[i], 0)
        if depth == 0:
            return i
        i += 1
    return i


def headers_of(root: pathlib.Path) -> list[tuple[str, pathlib.Path]]:
    found = []
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root)).removeprefix("cccl/")
        parts = name.split("/")
        if not path.is_file() or parts[0].startswith(OTHERS) or parts[0] in INTERNAL:
            continue
        if parts[0] in ("Openacc", "Openmp") or not re.search(r"(\.(h|hpp|cuh)|/[a-z_]+)$", name):
            continue
        found.append((name, path))
    return found


def read_toolkit(root: pathlib.Path) -> Names:
    names = Names()
    for name, path in headers_of(root):
        parts = name.split("/")
        is_library = name.startswith(LIBRARIES)
        is_internal = any(part.startswith("__") or part in INTERNAL for part in parts[1:])
        if not is_internal:
            names.headers.add(name)
        if any(part in INTERNAL for part in parts[1:]) and "ptx" not in parts:
            continue
        text = without_comments(path.read_text(encoding="utf-8", errors="replace"))
        names.add_macros(text, is_library)
        names.add_declarations(text, is_library)
    names.scoped -= names.of_global
    # Words that a header has as a parameter of a macro, or in a language that is not C++.
    names.of_global -= {"flags", "mode", "temper", "vectors", "width", "min", "max"}
    return names


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    names = read_toolkit(pathlib.Path(sys.argv[1]))
    print("# The names of CUDA, by tools/cuda_names.py.")
    for title, section in (
        ("headers", names.headers),
        ("global", names.of_global),
        ("scoped", names.scoped),
        ("members", names.members),
    ):
        print(f"[{title}]")
        print("\n".join(sorted(section)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
