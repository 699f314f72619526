# SPDX-License-Identifier: Apache-2.0
"""Which requests the service takes (docs/serve.md, "Access").

A browser lets any web page send requests to any address, to this machine's loopback too.  Such a
page is recognised by these headers:

    Host            another name that resolves to this machine (DNS rebinding)
    Origin          the page's own origin, with every POST
    Sec-Fetch-Site  another site, with a GET
    Content-Type    without CORS permission a page cannot send application/json

Beyond loopback a bearer token is needed as well.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musacoder.server.accounts import ANYBODY, Account, Accounts, check_token, digest_of
from musacoder.server.accounts import parse_accounts

TOKEN_VARIABLE = "MUSACODER_TOKEN"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


class Refusal(Exception):
    """A request that the gate rejects."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """True if only processes of this machine reach `host`; names are not looked up."""
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
    accounts: Accounts
    names: frozenset[str]  # The names of this service in a Host header, in small letters.
    takes_addresses: bool  # Beyond loopback: rebinding needs a name.

    def check(self, request: Any, needs_token: bool) -> Account:
        """The caller's account.  Raises Refusal."""
        host = self._checked_host(request.headers.getall("Host", []))
        origins = request.headers.getall("Origin", [])
        site = request.headers.get("Sec-Fetch-Site", "none")
        is_foreign = site in ("cross-site", "same-site")
        if is_foreign or any(origin != f"http://{host}" for origin in origins):
            raise Refusal(403, "a web page of another origin may not ask")
        account = ANYBODY
        if needs_token and self.accounts.all:
            account = self._account(request.headers.getall("Authorization", []))
        has_route = request.match_info.http_exception is None
        if has_route and request.method == "POST" and request.content_type != "application/json":
            raise Refusal(415, "a body needs the header Content-Type: application/json")
        return account

    def _checked_host(self, hosts: list[str]) -> str:
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        name = match.group(1).strip("[]").lower() if match else ""
        is_known = name in self.names or is_loopback(name)
        if not is_known and not (self.takes_addresses and _is_address(name)):
            raise Refusal(403, "this service has another name than Host says (serve --allow-host)")
        return hosts[0]

    def _account(self, headers: list[str]) -> Account:
        given = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
        # The comparison is on bytes, since a header may contain other characters than ASCII.
        account = self.accounts.find(given[2].strip().encode("utf-8", "surrogateescape"))
        if account is None or given[0].lower() != "bearer":
            raise Refusal(
                401, "the request needs the service's bearer token", WWW_Authenticate="Bearer"
            )
        return account


def gate_of(host: str, token_file: str, tokens: str, allowed: Iterable[str]) -> Gate:
    """The gate of a service that listens on `host`.  Raises ValueError, for the user to read.

    token_file holds one token itself, tokens is a file of names and hashes (accounts.py).
    """
    accounts = Accounts(_one_account(token_file) + _more_accounts(tokens))
    names = {name.lower().strip("[]") for name in allowed}
    if is_loopback(host):
        return Gate(accounts, frozenset(names), takes_addresses=False)
    if not accounts.all:
        raise ValueError(
            f"--host {host} is reached from other machines: give --token-file or --tokens, "
            f"or set {TOKEN_VARIABLE}, so that only those who know it can ask"
        )
    names |= {host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
    return Gate(accounts, frozenset(names), takes_addresses=True)


def _one_account(path: str) -> list[Account]:
    text, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    if path:
        text, where = _read("--token-file", path), path
        if not text.strip():
            raise ValueError(f"--token-file: {path} is empty")
    token = text.strip()
    return [Account("token", digest_of(check_token(token, where)))] if token else []


def _more_accounts(path: str) -> list[Account]:
    return parse_accounts(_read("--tokens", path), path) if path else []


def _read(option: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(f"{option}: cannot read {path}: {error}") from None
