"""Pictures at addresses of this server: as the script says, whole, cut, of another type, or moved elsewhere."""

from tests.llm.server.pictures import CONTENT_TYPES, picture_bytes
from tests.llm.server.service import Service
from tests.llm.server.wire import Arrived, Departing

__all__ = ["give_picture"]


def give_picture(service: Service, arrived: Arrived) -> Departing:
    """GET /pictures/{digest}/{place}; no key is asked for."""
    told = service.script.pictures
    service.fetches += 1
    if service.fetches <= told.busy:
        return Departing(503, [("retry-after", "0")], b"busy")
    if told.moves:
        return Departing(302, [("location", told.moves)], b"")
    if told.status != 200:
        return Departing(told.status, [], b"no")
    _, _, digest, place = arrived.path.split("/")
    content = picture_bytes(digest, int(place), told) + bytes(told.padding)
    kind = told.type or CONTENT_TYPES.get(told.form, "image/png")
    departing = Departing(200, [("content-type", kind)], content)
    departing.cut = "inside" if told.form == "torn" else ""
    return departing
