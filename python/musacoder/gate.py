# SPDX-License-Identifier: Apache-2.0
"""Which requests the service takes (docs/serve.md, "Who may ask").

A browser lets any web page send requests to any address, to this machine's loopback too.  Such a
page is known by what the browser adds or lacks:

    Host          another name that resolves to this machine (DNS rebinding)
    Origin        the page's own origin, beside every POST
    Sec-Fetch-Site  another site, beside a GET
    Content-Type  a page that asks for no permission cannot send application/json

Beyond loopback a bearer token is needed as well.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKEN_VARIABLE = "MUSACODER_TOKEN"
TOKEN_BYTES_MIN = 16
_TOKEN = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


class Refusal(Exception):
    """A request that is not looked at."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach `host`; names are not looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Gate:
    token: str  # "": none is asked for.
    names: frozenset[str]  # The names of this service in a Host header, in small letters.
    takes_addresses: bool  # Beyond loopback: rebinding needs a name.

    def check(self, request: Any, needs_token: bool) -> None:
        """Raises Refusal."""
        host = self._checked_host(request.headers.getall("Host", []))
        origins = request.headers.getall("Origin", [])
        site = request.headers.get("Sec-Fetch-Site", "none")
        is_foreign = site in ("cross-site", "same-site")
        if is_foreign or any(origin != f"http://{host}" for origin in origins):
            raise Refusal(403, "a web page of another origin may not ask")
        if needs_token:
            self._check_token(request.headers.getall("Authorization", []))
        is_sent = request.method in ("POST", "PUT", "PATCH")
        if is_sent and request.content_type != "application/json":
            raise Refusal(415, "a body needs the header Content-Type: application/json")

    def _checked_host(self, hosts: list[str]) -> str:
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        name = match.group(1).strip("[]").lower() if match else ""
        is_known = name in self.names or is_loopback(name)
        if not is_known and not (self.takes_addresses and _is_address(name)):
            raise Refusal(403, "this service has another name than Host says (serve --allow-host)")
        return hosts[0]

    def _check_token(self, headers: list[str]) -> None:
        if not self.token:
            return
        given = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
        is_bearer = given[0].lower() == "bearer"
        # Bytes, since a header may hold what is not ASCII.
        mine, theirs = self.token.encode(), given[2].strip().encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(mine, theirs) or not is_bearer:
            raise Refusal(
                401, "the request needs the service's bearer token", WWW_Authenticate="Bearer"
            )


def gate_of(host: str, token_file: str, allowed: Iterable[str]) -> Gate:
    """The gate of a service that listens on `host`.  Raises ValueError, for the user to read."""
    token = _token(token_file)
    names = {name.lower().strip("[]") for name in allowed}
    if is_loopback(host):
        return Gate(token, frozenset(names), takes_addresses=False)
    if not token:
        raise ValueError(
            f"--host {host} is reached from other machines: give --token-file, "
            f"or set {TOKEN_VARIABLE}, so that only those who know it can ask"
        )
    names |= {host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
    return Gate(token, frozenset(names), takes_addresses=True)


def _token(path: str) -> str:
    text, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    if path:
        where = path
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ValueError(f"--token-file: cannot read {path}: {error}") from None
        if not text.strip():
            raise ValueError(f"--token-file: {path} is empty")
    token = text.strip()
    if token and (len(token) < TOKEN_BYTES_MIN or not _TOKEN.fullmatch(token)):
        raise ValueError(
            f"{where}: a token has at least {TOKEN_BYTES_MIN} characters, "
            "of ASCII and without spaces"
        )
    return token
