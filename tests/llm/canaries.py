"""A process full of keys that fails in every way it can; what it shows must hold none of them.

Run as `python -m tests.llm.canaries HOW`; the keys come in variables of the environment. `HOW` names the last failure.
"""

import asyncio
import contextlib
import logging
import os
import sys
import threading
import warnings
from base64 import b64encode
from http.server import BaseHTTPRequestHandler
from urllib.parse import quote

from culturekit.llm.redaction import install_redaction, key_from_environment, know, resolve_key
from tests.loopback import served

logger = logging.getLogger("canaries")


class Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = f'{{"error": {{"message": "Incorrect API key: {self.headers["authorization"]}"}}}}'.encode()
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        logger.info("%s %s", format % args, dict(self.headers))


def call_sdk(key: str) -> None:
    import openai

    headers = {"Authorization": f"Bearer {key}", "x-goog-api-key": key}
    with served(Echo) as url:
        client = openai.OpenAI(api_key=key, base_url=url, max_retries=0)
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], extra_headers=headers)


def fail(key: str, depth: int = 3) -> None:
    headers, pair = {"Authorization": f"Bearer {key}"}, ("user", key)
    if depth:
        return fail(key, depth - 1)
    error = ValueError(f"bad key {key} in {headers}", pair)
    error.add_note(f"tried {key}")
    raise error


def log_all(key: str, *, ask: bool) -> None:
    logger.warning("key %s", key)
    logger.warning("headers %r and %s", {"Authorization": key}, b64encode(key.encode()).decode())
    logger.warning("url http://h/?x=%s", quote(key, safe=""), extra={"key": key, "more": [key]})
    logger.warning(f"done {key}", stack_info=True)
    with contextlib.suppress(ValueError):
        logger.warning("few %d", key)
    try:
        fail(key)
    except ValueError:
        logger.exception("failed with %s", key)
    if not ask:
        return
    try:
        call_sdk(key)
    except Exception as error:
        logger.exception("the client failed: %s", error)
        logger.error("%r %s", error, vars(error))


class Unraisable:
    def __init__(self, key: str) -> None:
        self.key = key

    def __del__(self) -> None:
        fail(self.key)


async def forget(key: str) -> None:
    async def inside() -> None:
        fail(key)

    task = asyncio.create_task(inside(), name=f"task {key}")
    await asyncio.sleep(0.01)
    del task


def last_words(how: str, key: str) -> None:
    if how == "chained":
        try:
            call_sdk(key)
        except Exception as error:
            raise RuntimeError(f"gave up on {key}") from error
    if how == "group":
        raise ExceptionGroup(f"all {key}", [ValueError(key), TypeError(key.encode())])
    fail(key)


def main(how: str) -> None:
    logging.basicConfig(level=logging.DEBUG)
    if how == "rich":
        from rich.logging import RichHandler
        from rich.traceback import install

        install(show_locals=True, width=60)
        rich = RichHandler(rich_tracebacks=True, tracebacks_show_locals=True)
        logging.getLogger().addHandler(rich)
    formatter = logging.Formatter("%(message)s %(key)s %(more)s", defaults={"key": "", "more": ""})
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)
    if how != "naked":
        install_redaction()
    keys = [key_from_environment(name).reveal() for name in sorted(os.environ) if name.startswith("CANARY")]
    keys += [resolve_key(f"${{{name}}}").reveal() for name in sorted(os.environ) if name.startswith("other")]
    keys += [os.environ[name] for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "my_company_token", "AZURE_SECRET")]
    know("login", os.environ["UNSUSPICIOUS"])
    keys.append(os.environ["UNSUSPICIOUS"])
    for number, key in enumerate(keys):
        log_all(key, ask=number % 8 == 0)
        warnings.warn(f"warned of {key}", stacklevel=1)
        thread = threading.Thread(target=fail, args=(key,), name=f"thread {key}")
        thread.start()
        thread.join()
        Unraisable(key)
        asyncio.run(forget(key))
    last_words(how, keys[0])


if __name__ == "__main__":
    main(sys.argv[1])
