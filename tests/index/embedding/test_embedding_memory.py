import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from culturekit.index.embedding.embedding import HEAVY, Room, in_turn, memory_for


@given(st.lists(st.integers(0, 150), min_size=1, max_size=40), st.integers(1, 6))
def test_no_more_is_taken_than_there_is_and_everybody_gets_a_turn(sizes: list[int], threads: int) -> None:
    gate, taken, most, lock = Room(100), 0, 0, threading.Lock()

    def take(size: int) -> int:
        nonlocal taken, most
        with gate.holding(size):
            with lock:
                taken += min(size, 100)
                most = max(most, taken)
            with lock:
                taken -= min(size, 100)
        return size

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(take, sizes)) == sizes
    assert most <= 100
    assert gate.taken == 0


def test_a_large_one_waits_for_the_others_and_keeps_later_ones_waiting() -> None:
    gate, order = Room(100), []
    small = gate.holding(10)
    small.__enter__()

    def take(name: str, size: int) -> None:
        with gate.holding(size):
            order.append(name)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(take, "large", 1000)
        while not gate.turn.locked():
            time.sleep(0.001)
        later = pool.submit(take, "later", 1)
        assert order == []
        small.__exit__(None, None, None)
        later.result()
    assert order == ["large", "later"]


def test_heavy_pictures_take_turns_across_processes(tmp_path: Path) -> None:
    with in_turn(tmp_path / "lock", HEAVY):
        assert not (tmp_path / "lock").exists()
    with in_turn(tmp_path / "lock", HEAVY + 1):
        assert (tmp_path / "lock").exists()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP"])
def test_memory_grows_with_the_pixels_and_not_with_the_file(form: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((300, 400, 3), np.uint8)).save(buffer, format=form)
    assert 7 * 300 * 400 <= memory_for(buffer.getvalue()) <= 40 * 300 * 400 + 2**20
    assert memory_for(b"no picture") == 10
