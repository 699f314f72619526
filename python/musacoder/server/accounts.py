# SPDX-License-Identifier: Apache-2.0
"""Tokens: the accounts of callers, and their quotas.

A file has a line for each token: a name, the SHA-256 of the token, and limits.

    trainer  sha256:5e88…  waiting=2000  minute=6000

`musacoder-token trainer --waiting 2000 --minute 6000` draws a token, prints it
on standard error and its line on standard output.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import math
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

TOKEN_BYTES_MIN = 16
_TOKEN = re.compile(r"[\x21-\x7e]+")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_LIMIT = re.compile(r"(waiting|minute)=([1-9][0-9]{0,8})")


class OverQuota(Exception):
    """The account exceeded its quota."""

    def __init__(self, text: str, retry_after_s: int) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


@dataclass
class Account:
    """One token's holder.

    waiting_max: questions that may wait or be judged at once; minute_max: questions a minute.
    None: no limit of its own.
    """

    name: str
    digest: bytes
    waiting_max: int | None = None
    minute_max: int | None = None
    clock: Callable[[], float] = time.monotonic
    num_waiting: int = 0
    _tokens: float = field(init=False)  # A token bucket, filled within a minute.
    _filled_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._tokens = self.minute_max or 0
        self._filled_at = self.clock()

    def take(self, count: int) -> None:
        """Counts accepted questions.  Raises OverQuota, and then counts none of them."""
        if self.waiting_max is not None and self.num_waiting + count > self.waiting_max:
            raise OverQuota(f"{self.name} may have {self.waiting_max} questions waiting", 1)
        if self.minute_max is not None:
            self._take_rate(count, self.minute_max)
        self.num_waiting += count

    def _take_rate(self, count: int, minute_max: int) -> None:
        if count > minute_max:
            raise OverQuota(f"{self.name} may ask {minute_max} questions a minute", 60)
        now = self.clock()
        filled = self._tokens + (now - self._filled_at) * minute_max / 60
        self._tokens, self._filled_at = min(filled, minute_max), now
        if self._tokens < count:
            wait_s = math.ceil((count - self._tokens) * 60 / minute_max)
            raise OverQuota(f"{self.name} may ask {minute_max} questions a minute", max(wait_s, 1))
        self._tokens -= count

    def give_back(self) -> None:
        self.num_waiting -= 1


ANYBODY = Account("", b"")


class Accounts:
    """The holders of all tokens; if empty, no token is needed."""

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        self.all = list(accounts)

    def find(self, token: bytes) -> Account | None:
        """The holder of a token.  Every hash is compared, each in constant time."""
        digest = hashlib.sha256(token).digest()
        found = None
        for account in self.all:
            if hmac.compare_digest(digest, account.digest):
                found = account
        return found

    def named(self, name: str) -> Account:
        return next((account for account in self.all if account.name == name), ANYBODY)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def check_token(token: str, where: str) -> str:
    """Raises ValueError for a token that can be guessed."""
    if len(token) < TOKEN_BYTES_MIN or not _TOKEN.fullmatch(token):
        raise ValueError(
            f"{where}: a token has at least {TOKEN_BYTES_MIN} characters, "
            "of ASCII and without spaces"
        )
    return token


def parse_accounts(text: str, where: str) -> list[Account]:
    """Raises ValueError, which names the line."""
    accounts: list[Account] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            accounts.append(_parse_account(words, f"{where}:{number}"))
    names = [account.name for account in accounts]
    if not names:
        raise ValueError(f"{where}: no token: make one with musacoder-token NAME")
    if len(set(names)) < len(names):
        raise ValueError(f"{where}: two tokens have the same name")
    return accounts


def _parse_account(words: list[str], where: str) -> Account:
    digest = _DIGEST.fullmatch(words[1]) if len(words) > 1 else None
    if not _NAME.fullmatch(words[0]) or digest is None:
        raise ValueError(f"{where}: expected NAME sha256:HEX [waiting=N] [minute=N]")
    limits: dict[str, int] = {}
    for word in words[2:]:
        limit = _LIMIT.fullmatch(word)
        if limit is None:
            raise ValueError(f"{where}: expected waiting=N or minute=N, got {word}")
        limits[limit[1]] = int(limit[2])
    return Account(words[0], bytes.fromhex(digest[1]), limits.get("waiting"), limits.get("minute"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Draws a token for musacoder serve --tokens.")
    parser.add_argument("name")
    parser.add_argument("--waiting", type=int, help="questions that may wait at once")
    parser.add_argument("--minute", type=int, help="questions a minute")
    arguments = parser.parse_args()
    token = secrets.token_urlsafe(24)
    words = [arguments.name, f"sha256:{digest_of(token).hex()}"]
    words += [
        f"{key}={value}"
        for key, value in (("waiting", arguments.waiting), ("minute", arguments.minute))
        if value is not None
    ]
    try:
        _parse_account(words, "line")
    except ValueError as error:
        parser.error(str(error))
    print(f"the token, which is shown only now: {token}", file=sys.stderr)
    print(" ".join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
