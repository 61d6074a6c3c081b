"""Files of JSON lines that runs are written to as they end, and found in again."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fcorr._core import InvalidInputError

_START = b'{"key": '  # of every line, so that one that was cut off can be told from a foreign one

_Entry = TypeVar("_Entry")


def open_journal(
    path: str | os.PathLike[str], parse: Callable[[Any], _Entry], *, of: str, mend: bool = True
) -> list[_Entry]:
    """Read the entries of a file, if it is there, and make it ready to be appended to.

    A last line that was cut off, as when a machine goes down, is passed over.

    Parameters
    ----------
    path : path
        The file.
    parse : callable
        Makes an entry of a line's JSON, or raises ValueError, TypeError, KeyError or
        AttributeError.
    of : str
        What the file belongs to, for the error: "a sweep".
    mend : bool, default=True
        Whether to take such a line away. Whoever only reads leaves it: it may be in the making.

    Raises
    ------
    InvalidInputError
        The file holds something else.
    """
    path = Path(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidInputError(
            f"path must be a file in a folder that exists, got {str(path)!r}. Make the folder, or "
            "name a file such as 'sweep.jsonl' in it."
        )
    if not path.exists():
        return []
    content = path.read_bytes()
    *lines, rest = content.split(b"\n")
    entries = [_read_line(line, parse, path, place, of) for place, line in enumerate(lines, 1)]
    if rest:
        if not rest.startswith(_START) and not _START.startswith(rest):
            raise _foreign(path, len(lines) + 1, of)
        if mend:
            with path.open("r+b") as file:
                file.truncate(len(content) - len(rest))
    return entries


def append_line(path: str | os.PathLike[str], entry: Mapping[str, Any]) -> None:
    """Add a line to a file, and see to it that it is there whatever happens next.

    The entry is plain data with its ``"key"`` first.
    """
    line = json.dumps(entry, ensure_ascii=False, allow_nan=False)
    with Path(path).open("ab") as file:
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _read_line(
    line: bytes, parse: Callable[[Any], _Entry], path: Path, place: int, of: str
) -> _Entry:
    try:
        return parse(json.loads(line))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _foreign(path, place, of) from error


def _foreign(path: Path, place: int, of: str) -> InvalidInputError:
    return InvalidInputError(
        f"path must be a file of {of}'s records, got {str(path)!r}, whose line {place} is none. "
        "Name a file that does not exist yet."
    )
