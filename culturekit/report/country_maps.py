"""Maps of what models show: the world is drawn once, and each map uses its countries in other tints."""

from collections.abc import Iterator
from html import escape

from culturekit.report.countries import CountryShares, Share
from culturekit.report.world_map import HEIGHT, WIDTH, country_paths

__all__ = ["TINTS", "map_of", "tint", "world"]

TINTS = ("none", "up to 2 %", "2–5 %", "5–10 %", "10–20 %", "20–40 %", "more than 40 %")
"""What each tint says, lightest first."""

BOUNDS = (0.0, 0.02, 0.05, 0.10, 0.20, 0.40)


def tint(share: Share) -> str:
    """Name the class that tints a share."""
    return f"w{sum(share.value > bound for bound in BOUNDS)}"


def world() -> str:
    """Draw all countries, to be used by the maps."""
    paths = "".join(f'<path id="land-{code or "other"}" d="{path}"/>' for code, path in country_paths().items())
    return f'<svg class="store" aria-hidden="true" width="0" height="0"><defs>{paths}</defs></svg>'


def map_of(shares: CountryShares, model: str) -> str:
    """Draw the world with the countries that images can be mapped to in the tint of their share."""
    name = escape(model)
    head = f'<svg class="world" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="World map of {name}; the table '
    return f'{head}below has the numbers">{"".join(countries_on(shares, model))}</svg>'


def countries_on(shares: CountryShares, model: str) -> Iterator[str]:
    """Place every country; those that could be shown have a tint, and say their share."""
    own = shares.shares[model]
    for code in country_paths():
        use = f'<use href="#land-{code or "other"}"'
        if code in own:
            said = f"{escape(shares.names[code])}: {own[code].value:.1%} of {shares.images.get(model, 0):,} images"
            yield f'{use} class="{tint(own[code])}"><title>{said}</title></use>'
        else:
            yield f"{use}/>"
