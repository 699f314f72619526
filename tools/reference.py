#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reference of the site, written from what the program itself says.

  tools/reference.py --musacoder build/dev/bin/musacoder --site build/site    the whole site
  tools/reference.py --musacoder build/dev/bin/musacoder --out DIR            its reference alone

MkDocs loads this file as a hook and adds the pages while it builds (`mkdocs.yml`); $MUSACODER names
the program there, by default build/dev/bin/musacoder. Sources are `--help`, the schema of verdicts,
the OpenAPI document, policies, the worker's protocol, docstrings, and comments of headers. Nothing
here is committed.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Json = Any  # A value that JSON has.

# A program prints its options in a column of this width.
OPTION_COLUMN = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")
TABLE = "|---|---|"
SKIPPED = 77


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("{{", "{&#123;")


def code(text: str) -> str:
    """The same between backticks, where HTML needs no escape."""
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`" if text else ""


def table(left: str, right: str, rows: list[tuple[str, str]]) -> str:
    return "\n".join([f"| {left} | {right} |", TABLE, *(f"| {a} | {b} |" for a, b in rows)]) + "\n"


# ---- The command line ---------------------------------------------------------------------------


def options_of(lines: list[str]) -> list[tuple[str, str]]:
    """The options of a section of --help, each with what it says."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        found = OPTION_COLUMN.match(line)
        if found and not line.startswith("   "):
            rows.append((found[1], found[2] or ""))
        elif rows and line.startswith("   "):
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
    return rows


def help_as_markdown(text: str) -> str:
    """A --help as a usage line, a table a section, and the rest as it is."""
    about, _, rest = text.partition("\nUsage: ")
    usage, _, rest = rest.partition("\n")
    parts = [about.strip() + ".", f"```text\n{re.sub(r'^/[^ ]*/', '', usage)}\n```"]
    for section in re.split(r"\n\n+", rest.strip("\n")):
        title, _, body = section.partition("\n")
        rows = options_of(body.split("\n"))
        is_list = title.endswith(":") and rows and not title.startswith(("Example", "Environment"))
        if is_list and title != "Subcommands:":
            parts += [f"**{title.removesuffix(':')}**", table_of_options(rows)]
        elif not is_list and section.strip():
            parts.append(f"```text\n{section}\n```")
    return "\n\n".join(parts) + "\n"


def table_of_options(rows: list[tuple[str, str]]) -> str:
    """A table of options; the kind of value and the default come before the meaning."""
    kept = []
    for option, what in rows:
        name, _, kind = option.partition(" ")
        if name != "-h,--help":
            kept.append((code(name), f"{code(kind)} {cell(what)}".strip()))
    return table("option", "means", kept) if kept else "None.\n"


def subcommands_of(text: str) -> list[str]:
    """The names below the line `Subcommands:`."""
    listed = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    return [name for name, _ in options_of(listed.split("\n"))]


def commands_page(program: Path) -> str:
    @functools.cache
    def help_of(*words: str) -> str:
        command = [str(program), *words, "--help"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def sections(words: tuple[str, ...]) -> Iterator[str]:
        text = help_of(*words)
        if words:
            yield f"## {' '.join(('musacoder', *words))}\n\n{help_as_markdown(text)}"
        for name in subcommands_of(text):
            yield from sections((*words, name))

    head = "# Commands\n\nFrom `musacoder --help` and the same of each subcommand.\n"
    environment = help_of().partition("\nEnvironment:\n")[2]
    return "\n".join([head, f"```text\n{environment.rstrip()}\n```\n", *sections(())])


# ---- Schemas ------------------------------------------------------------------------------------


def type_of(schema: Json) -> str:
    """A JSON Schema in a few words, with links to definitions of the same page."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(json.dumps(one)) for one in schema["enum"])
    for name in ("oneOf", "anyOf"):
        if name in schema:
            return " or ".join(type_of(one) for one in schema[name])
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {type_of(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else kind


def members(schema: Json) -> str:
    rows = [
        (code(name), " ".join([type_of(one) + ".", cell(one.get("description", ""))]).strip())
        for name, one in schema.get("properties", {}).items()
    ]
    return table("member", "holds", rows) if rows else f"{type_of(schema)}\n"


def definitions(schemas: Json) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f"## {name}\n\n{cell(schema.get('description', ''))}\n\n{members(schema)}"


def schema_page(title: str, name: str, explained_in: str, schema: Json) -> str:
    head = f"# {title}\n\nFrom [{name}](../{name}); {explained_in} explains them.\n"
    return "\n".join([head, members(schema), *definitions(schema["$defs"])])


def http_page(document: Json) -> str:
    parts = ["# HTTP\n\nFrom `openapi.json` of [`musacoder serve`](../serve.md).\n", "## Routes\n"]
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            parts.append(f"### {method.upper()} {path}\n\n{cell(one.get('summary', ''))}\n")
            body = one.get("requestBody", {}).get("content", {})
            rows = [(code(p["name"]), cell(p.get("description", ""))) for p in parameters(one)]
            rows += [("body", type_of(kind.get("schema", {}))) for kind in body.values()]
            rows += [(f"{status}", response(document, r)) for status, r in one["responses"].items()]
            parts.append(table("part", "holds", rows))
    return "\n".join([*parts, *definitions(document["components"]["schemas"])])


def parameters(operation: Json) -> list[Json]:
    return [one for one in operation.get("parameters", []) if "name" in one]


def response(document: Json, one: Json) -> str:
    if "$ref" in one:
        one = document["components"]["responses"][one["$ref"].rsplit("/", 1)[1]]
    schemas = [kind["schema"] for kind in one.get("content", {}).values() if "schema" in kind]
    kinds = [type_of(schema) for schema in schemas]
    return " ".join([cell(one.get("description", "")), *kinds])


def worker_page(protocol: Json) -> str:
    parts = ["# Messages between processes\n\nFrom `python/harness/worker/protocol.json`.\n"]
    parts.append("\n".join(f"- {cell(line)}" for line in protocol["about"]) + "\n")
    for role, operations in protocol["roles"].items():
        rows = [
            (code(name), code(one if isinstance(one, str) else json.dumps(one)))
            for name, one in operations.items()
        ]
        parts.append(f"## {role}\n\n{table('operation', 'members', rows)}")
    records = [(code(name), code(json.dumps(one))) for name, one in protocol["records"].items()]
    return "\n".join([*parts, f"## Records\n\n{table('record', 'members', records)}"])


# ---- Data ---------------------------------------------------------------------------------------


def policies_page(folder: Path) -> str:
    parts = [(folder / "README.md").read_text()]
    for path in sorted(folder.glob("*.json")):
        policy = json.loads(path.read_text())
        parts.append(f"## {path.stem}\n\nVersion `{policy['version']}`.\n")
        if "operators" in policy:
            words = ", ".join(code(name) for name in policy["operators"])
            parts.append(f"Operators: {words}.\n")
        rows = [
            (code(name), cell(rule["message"]))
            for part in ("cpp", "symbols")
            for name, rule in (policy.get(part) or {}).get("rules", {}).items()
            if rule
        ]
        if rows:
            parts.append(table("rule", "message", rows))
    return "\n".join(parts)


def findings_page(program: Path, hints: str) -> str:
    """The hints that src/reward/hints.cc has, as `musacoder explain` prints them."""
    names = dict.fromkeys(re.findall(r'^    \{"(\w+)",', hints, re.MULTILINE))
    rows = []
    for name in names:
        command = [str(program), "explain", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:  # Otherwise it is a compiler's text.
            rows.append((code(name), cell(done.stdout.removeprefix(f"{name}: "))))
    head = "# Hints\n\nWhat a finding usually means: `musacoder explain NAME`.\n\n"
    return head + table("name", "hint", rows)


# ---- Docstrings and comments --------------------------------------------------------------------


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def documented(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Public classes and functions that have a docstring."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        text = ast.get_docstring(node)
        if node.name.startswith("_") or not text:
            continue
        name = node.name if isinstance(node, ast.ClassDef) else signature(node)
        yield f"**`{prefix}{name}`**\n\n{fenced(text)}"
        if isinstance(node, ast.ClassDef):
            yield from documented(node.body, f"{node.name}.")


def fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"


def python_page(package: Path) -> str:
    link = "[`musacoder`](../serve.md#from-python)"
    parts = [f"# Python\n\nFrom the docstrings of the package {link}.\n"]
    for path in sorted(package.glob("*.py")):
        tree = ast.parse(path.read_text())
        name = "musacoder" if path.stem == "__init__" else f"musacoder.{path.stem}"
        text = ast.get_docstring(tree)
        if text:
            parts += [f"## {name}\n", fenced(text), *documented(tree.body)]
    return "\n".join(parts)


def scripts_page(root: Path) -> str:
    usage = (root / "run.sh").read_text().partition("usage: ./run.sh")[2].partition("\nTXT")[0]
    parts = ["# Scripts\n\nFrom their docstrings.\n", "## run.sh\n", fenced("./run.sh" + usage)]
    for pattern in ("tools/*.py", "tests/*.py", "examples/*.py", "lab/texts/*.py"):
        for path in sorted(root.glob(pattern)):
            text = ast.get_docstring(ast.parse(path.read_text()))
            if os.access(path, os.X_OK) and text:
                parts += [f"## {path.relative_to(root)}\n", fenced(text)]
    return "\n".join(parts)


def decisions_page(folder: Path) -> str:
    titles = [(path.name, path.read_text().partition("\n")[0]) for path in folder.glob("*.md")]
    lines = [f"- [{title.removeprefix('# ')}](../decisions/{name})" for name, title in titles]
    return "# Decisions\n\n" + "\n".join(sorted(lines)) + "\n"


def header_page(title: str, source: str) -> str:
    """The comment at the top of a header, which is Markdown."""
    lines = source.partition("#ifndef")[0].splitlines()[1:]
    return f"# {title}\n\n" + "\n".join(line.removeprefix("//").removeprefix(" ") for line in lines)


# ---- All of it ----------------------------------------------------------------------------------


def pages(program: Path, root: Path = ROOT) -> dict[str, str]:
    """The pages by their paths below docs/."""

    def data(path: str) -> Json:
        return json.loads((root / path).read_text())

    def text(path: str) -> str:
        return (root / path).read_text()

    def schema(title: str, stem: str, explained_in: str) -> str:
        name = f"{stem}.schema.json"
        return schema_page(title, name, explained_in, data(f"docs/{name}"))

    return {
        "reference/commands.md": commands_page(program),
        "reference/findings.md": findings_page(program, text("src/reward/hints.cc")),
        "reference/verdict.md": schema(
            "Fields of a verdict", "verdict", "[the verdict](../verdict.md)"
        ),
        "reference/policies.md": policies_page(root / "data/policy"),
        "reference/http.md": http_page(data("python/musacoder/server/openapi.json")),
        "reference/python.md": python_page(root / "python/musacoder"),
        "reference/document.md": schema(
            "The document of a report", "report", "[bench](../bench.md)"
        ),
        "reference/events.md": header_page("Events of a run", text("src/bench/live.h")),
        "reference/rl_metrics.md": header_page("Metrics of RL", text("src/loop/rl_metrics.h")),
        "reference/forge_data.md": text("data/forge/README.md"),
        "reference/musa_backend.md": text("device/musa/README.md"),
        "reference/worker.md": worker_page(data("python/harness/worker/protocol.json")),
        "reference/scripts.md": scripts_page(root),
        "reference/decisions.md": decisions_page(root / "docs/decisions"),
    }


def separated(markdown: str) -> str:
    """Adapts a page to MkDocs: blank lines before tables and lists, and no backslash before a bar
    in a table's code.
    """
    lines: list[str] = []
    is_fenced = False
    for line in markdown.split("\n"):
        is_fenced ^= line.lstrip().startswith("```")
        above = lines[-1] if lines else ""
        for begins in (r"\|", r"(- |\d+\. )"):
            if re.match(begins, line) and above.strip() and not re.match(rf"{begins}|  ", above):
                if not is_fenced:
                    lines.append("")
        if line.startswith("|") and not is_fenced:
            line = re.sub("`[^`]*`", lambda span: span[0].replace("\\|", "|"), line)
        lines.append(line)
    return "\n".join(lines)


def on_files(files: Any, config: Any) -> Any:
    """The hook of MkDocs that adds the pages."""
    from mkdocs.structure.files import File

    program = Path(os.environ.get("MUSACODER", ROOT / "build/dev/bin/musacoder"))
    for path, text in pages(program).items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return separated(markdown)


def build_site(program: Path, folder: Path) -> int:
    """Builds the site strictly: a dead link, or a page that is in no menu, fails."""
    if importlib.util.find_spec("material") is None:
        print("skipped: mkdocs-material is not installed (./run.sh setup)")
        return SKIPPED
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    names = {"MUSACODER": str(program), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **names}, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--musacoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="a folder for the pages")
    parser.add_argument("--site", type=Path, help="a folder for the whole site")
    arguments = parser.parse_args()
    program = arguments.musacoder.resolve()
    if arguments.out:
        for path, text in pages(program).items():
            (arguments.out / path).parent.mkdir(parents=True, exist_ok=True)
            (arguments.out / path).write_text(text)
    return build_site(program, arguments.site.resolve()) if arguments.site else 0


if __name__ == "__main__":
    sys.exit(main())
