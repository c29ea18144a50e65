"""`python -m tests.llm.server --port 0`: a server in a process of its own; its first line is its address."""

import argparse
import asyncio
import gc
import importlib
import sys
from pathlib import Path

import msgspec

from tests.llm.server.running import serve
from tests.llm.server.script import Script
from tests.llm.server.service import Service


async def _serve(service: Service, port: int) -> None:
    server = await serve(service, port)
    # records are kept for ever and hold no cycles: looking for some among hundreds of thousands only costs time
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.llm.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on loopback; 0: any that is free")
    parser.add_argument("--script", type=Path, help="a script in JSON; see tests/llm/server/script.py")
    parser.add_argument("--model", default="", help="a model of your own, as module:function")
    options = parser.parse_args()
    script = msgspec.json.decode(options.script.read_bytes(), type=Script) if options.script else Script()
    module, _, function = options.model.partition(":")
    model = getattr(importlib.import_module(module), function) if module else None
    asyncio.run(_serve(Service(script, model), options.port))
