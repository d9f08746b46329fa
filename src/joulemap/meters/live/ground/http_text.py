"""Text behind an HTTP address that the user named, and metrics in it. Sends the request and given credentials only."""

from __future__ import annotations

import base64
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping

from joulemap.errors import UsageError
from joulemap.meters.live.ground.paced_meter import AskError
from joulemap.records.live.domain import MeterAddress

__all__ = ["check_url", "fetch_text", "parse_exposition"]

_LIMIT_B = 1 << 24
_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


def check_url(address: MeterAddress, example: str) -> str:
    """Returns option ``url`` without a slash at its end.

    Raises:
        UsageError: there is none, or it holds a password, which records would keep (``meter-option``).
    """
    url = address.options.get("url", "").rstrip("/")
    if not url:
        raise UsageError(f"meter {address.driver} needs an address", hint=f"write {example}", slug="meter-option")
    if "@" in urllib.parse.urlsplit(url).netloc:
        raise UsageError(
            f"meter {address.driver}: an address must hold no password, since records keep it",
            hint=f"write {example}",
            slug="meter-option",
        )
    return url


def fetch_text(
    url: str, *, timeout_s: float, user: str = "", password: str = "", verify: bool = True, accept: str = "*/*"
) -> str:
    """Returns what an address answers.

    Args:
        url: http or https.
        timeout_s: s.
        user: for basic authentication; empty for none.
        password: of the user.
        verify: check the certificate.
        accept: wanted media type.

    Raises:
        AskError: there is no answer, or it is a refusal.
    """
    if not url.startswith(("http://", "https://")):
        raise AskError(f"{url} is no http address", "write url=http://... or url=https://...")
    context = None if verify else ssl._create_unverified_context()  # noqa: SLF001, S323  the user said verify=no
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310  the scheme was checked
    if user:
        token = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        request.add_unredirected_header("Authorization", f"Basic {token}")  # for this host and no other
    try:
        with urllib.request.urlopen(request, timeout=timeout_s, context=context) as answer:  # noqa: S310  as above
            return str(answer.read(_LIMIT_B).decode("utf-8", "replace"))
    except urllib.error.HTTPError as error:
        error.close()
        fix = (
            "name the user and the variable with the password: user=...,password_env=..."
            if error.code in {401, 403}
            else ""
        )
        raise AskError(f"{url} answers {error.code} {error.reason}", fix) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise AskError(
            f"{url} does not answer ({reason})", "check that the service runs and the address is right"
        ) from error


def parse_exposition(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yields metric, labels and value of every line that is one; others are left out.

    References:
        Prometheus documentation, "Exposition formats", text format 0.0.4.
    """
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or line.startswith("#"):
            continue
        try:
            value = float(match[3].replace("Inf", "inf"))
        except ValueError:
            continue
        labels = {key: _unescape(raw) for key, raw in _LABEL.findall(match[2] or "")}
        yield match[1], labels, value


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)
