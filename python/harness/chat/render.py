# SPDX-License-Identifier: Apache-2.0
"""Renders conversations with a model's own chat template, as transformers does.

musacoder-learn starts it and writes one JSON object a line.  The first is {"template": Jinja
source, "variables": {"bos_token": ..., ...}}; the reply is {"text": ""} once the template compiles.
Each later one is {"messages": [...], "add_generation_prompt": bool}; the reply is {"text": ...}.
A template that cannot be compiled or that refuses the messages gives {"error": one line}.

A template comes with a model, from anyone, so it runs in Jinja's sandbox.
"""

import json
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

Template = Callable[..., str]
SECONDS_MAX = 60


class GenerationTag(jinja2.ext.Extension):
    """{% generation %}: marks the assistant's text for other programs; the text is unchanged."""

    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def raise_exception(message: str) -> None:
    raise jinja2.exceptions.TemplateError(message)


def to_json(value: object, indent: int | None = None, **more: Any) -> str:
    """JSON without the HTML escapes of Jinja's own filter."""
    return json.dumps(value, ensure_ascii=False, indent=indent, **more)


def compile_template(source: str) -> Template:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[GenerationTag, jinja2.ext.loopcontrols],
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source).render


def render(template: Template, variables: dict[str, Any], request: dict[str, Any]) -> str:
    return template(
        messages=request["messages"],
        tools=None,
        documents=None,
        add_generation_prompt=request["add_generation_prompt"],
        **variables,
    )


def reply(compute: Callable[[], str]) -> None:
    answer: dict[str, str] = {}
    try:
        signal.alarm(SECONDS_MAX)
        answer["text"] = compute()
    except Exception as failure:  # A template may raise anything; the error is the reply.
        lines = str(failure).splitlines() or [type(failure).__name__]
        answer["error"] = lines[0]
    signal.alarm(0)
    print(json.dumps(answer), flush=True)


def give_up(number: int, frame: object) -> None:
    raise TimeoutError(f"it takes more than {SECONDS_MAX} seconds")


def main() -> None:
    signal.signal(signal.SIGALRM, give_up)
    first = json.loads(sys.stdin.readline())
    template: list[Template] = []

    def prepare() -> str:
        template.append(compile_template(first["template"]))
        return ""

    reply(prepare)
    for line in sys.stdin:
        request = json.loads(line)
        reply(lambda: render(template[0], first["variables"], request))


if __name__ == "__main__":
    main()
