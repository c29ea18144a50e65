"""Machines to run a cluster on: this one, or several in network namespaces of it, whose cables can be pulled."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

BRIDGE, NETWORK = "ckbr0", "10.77.0"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where programs run: behind `address`, begun with `prefix`; without a `cable` it is this machine itself."""

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    cable: str = ""

    def plug(self, how: str) -> None:
        """Pull the cable (`down`) or put it back (`up`)."""
        ip("link", "set", self.cable, how)


def ip(*words: str) -> None:
    """Configure the network, as root."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def machines(names: Sequence[str]) -> Iterator[list[Machine]]:
    """Make machines that see each other and nothing else: a network namespace each, on one bridge; or one for all."""
    with ExitStack() as undo:
        ip("link", "add", BRIDGE, "type", "bridge")
        undo.callback(ip, "link", "del", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        ready = []
        for number, name in enumerate(names, start=2):
            space, cable = f"ck-{name}", f"ck-{name}0"
            ip("netns", "add", space)
            undo.callback(ip, "netns", "del", space)
            ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", cable, "master", BRIDGE, "up")
            inside = ("-n", space)
            ip(*inside, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            ip(*inside, "link", "set", "eth0", "up")
            ip(*inside, "link", "set", "lo", "up")
            ready.append(Machine(f"{NETWORK}.{number}", ("ip", "netns", "exec", space), cable))
        yield ready
