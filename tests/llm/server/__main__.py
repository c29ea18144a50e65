"""`python -m tests.llm.server --port 0`: a server in a process of its own; its first line is its address."""

import argparse
import asyncio
import gc
import importlib
import signal
import sys
from pathlib import Path

from tests.llm.server.answers import Model
from tests.llm.server.running import serve
from tests.llm.server.script import Script, script_from_json
from tests.llm.server.service import Service


def main(arguments: list[str] | None = None) -> None:
    """Serve until told to stop, by SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m tests.llm.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on loopback; 0: any that is free")
    parser.add_argument("--script", type=Path, help="a script in JSON; see tests/llm/server/script.py")
    parser.add_argument("--model", default="", help="a model of your own, as module:function")
    options = parser.parse_args(arguments)
    script = script_from_json(options.script.read_bytes()) if options.script else Script()
    service = Service(script, _model(options.model) if options.model else None)
    asyncio.run(_serve(service, options.port))


def _model(name: str) -> Model:
    module, _, function = name.partition(":")
    model: Model = getattr(importlib.import_module(module), function)
    return model


async def _serve(service: Service, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = await serve(service, port)
    # records are kept for ever and hold no cycles: looking for some among hundreds of thousands only costs time
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await stop.wait()
    server.close()


if __name__ == "__main__":
    main()
