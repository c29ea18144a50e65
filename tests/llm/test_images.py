"""What drips, be it a header or a body, on a connection that stays open or not, is left in time."""

import http.client
import io
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture

from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_reading import ReadPicture, picture_from
from culturekit.llm.client import Image
from culturekit.llm.clients.image_slots import image_of
from culturekit.llm.timed_socket import TimedSocket
from tests.llm.server.wire import HEADER, dripping


def encoded(picture: Picture.Image, kind: str = "PNG", **options: object) -> bytes:
    held = io.BytesIO()
    picture.save(held, kind, **options)
    return held.getvalue()


def image_from(content: bytes, **options: Any) -> Image:
    picture = picture_from(content)
    assert isinstance(picture, ReadPicture)
    return image_of(picture.pixels, **options)


def pixels(content: bytes) -> Picture.Image:
    return Picture.open(io.BytesIO(content))


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 128))
def test_a_picture_fits_and_keeps_its_shape(width: int, height: int, longest: int) -> None:
    image = image_from(encoded(Picture.new("RGB", (width, height))), longest=longest)
    assert max(image.width, image.height) == min(longest, max(width, height))
    assert abs(image.width * height - image.height * width) <= max(width, height)
    assert pixels(image.content).size == (image.width, image.height)
    assert pixels(image.content).format == "PNG"
    with pytest.raises(UsageError):
        image_from(image.content, longest=0)


def test_the_same_picture_is_the_same_bytes_whatever_lies_around_its_pixels() -> None:
    picture = Picture.linear_gradient("L").convert("RGB")
    plain, wordy = encoded(picture), encoded(picture, dpi=(72, 72), icc_profile=b"profile")
    assert plain != wordy
    assert image_from(plain) == image_from(wordy)
    assert b"profile" not in image_from(wordy).content


BODY = HEADER + b"text/plain\r\nContent-Length: 9000\r\n"


@pytest.mark.parametrize(
    "begin", [b"", b"HTTP/1.1 2", HEADER, BODY + b"\r\n", BODY + b"Connection: close\r\n\r\n"],
    ids=["nothing", "status", "header", "body", "body of a closed connection"],
)  # fmt: skip
def test_an_exchange_ends_in_time(begin: bytes) -> None:
    with dripping(begin) as url:
        parts = urlsplit(url)
        connected = socket.create_connection((str(parts.hostname), int(parts.port or 0)))
        connection = http.client.HTTPConnection(str(parts.hostname))
        connection.sock = TimedSocket(connected, until=time.monotonic() + 0.3, silence=10)
        with pytest.raises(TimeoutError):
            connection.request("GET", "/")
            connection.getresponse().read()
        connection.close()


def test_silence_ends_it_too() -> None:
    ours, theirs = socket.socketpair()
    with theirs, TimedSocket(ours, until=time.monotonic() + 1000, silence=0.05).makefile("rb") as file:
        theirs.sendall(b"a line\n")
        assert file.readline() == b"a line\n"
        with pytest.raises(TimeoutError):
            file.readline()
    ours.close()


def test_nothing_is_sent_when_there_is_no_time_left() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError, match="as a whole"):
        TimedSocket(ours, until=time.monotonic() - 1, silence=10).sendall(b"late")
