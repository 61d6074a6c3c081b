"""Do the links of a built site lead somewhere? `make docs` asks.

Pages, files and places on pages are looked for in the folder of the site. Addresses elsewhere are
not asked, which would take a network; they only have to be whole.
"""

import argparse
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places that a page has, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = {"", "top"}  # which browsers know without being told
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of an element."""
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value or "")
            elif name in ("href", "src") and value is not None:
                self.links.append(value)


def find_broken(site: Path) -> list[str]:
    """List the links that lead nowhere, with the page that has them."""
    site = site.resolve()
    found = (path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts)
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in found}
    broken = [] if pages else [f"{site}: is no site, it has no pages"]
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            reason = _reason(link, path, site, pages)
            if reason:
                broken.append(f"{path.relative_to(site)}: {link!r} {reason}")
    return broken


def _reason(link: str, path: Path, site: Path, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if "." in parts.netloc else "has no host"
    if parts.scheme in ("data", "mailto"):
        return None
    if parts.scheme or parts.netloc:
        return "is no address that a page can lead to"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site) or not target.exists():
        return "is not in the site"
    if target in pages and unquote(parts.fragment) not in pages[target].places:
        return "leads to no place on that page"
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("site", type=Path, help="folder of the built site")
    broken = find_broken(parser.parse_args().site)
    print(*broken, sep="\n", end="\n" if broken else "", file=sys.stderr)
    sys.exit(1 if broken else 0)
