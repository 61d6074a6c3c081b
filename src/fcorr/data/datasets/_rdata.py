"""R data frames: read out of R's own file format (``.rda``), without R.

Just what a plain data frame consists of: integer, logical, real and text vectors, factors, names.
Anything else, such as a function, is refused: nothing in the file is ever run. The format is
described in "R Internals", section 1.8 (serialization, XDR).
"""

import bz2
import gzip
import lzma
import struct
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fcorr._core import InvalidInputError, enumerate_some

_SYMBOL, _PAIRLIST, _TEXT = 1, 2, 9
_LOGICAL, _INTEGER, _REAL, _STRINGS, _LIST = 10, 13, 14, 16, 19
_ALTREP, _NIL, _REFERENCE = 238, 254, 255
_HAS_ATTRIBUTES, _HAS_TAG = 1 << 9, 1 << 10
_MISSING_INTEGER = -(2**31)
_COMPRESSIONS = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress, b"\xfd7": lzma.decompress}


class _Vector(NamedTuple):
    """Values (an array, or a list of texts or vectors) with R's attributes."""

    values: Any
    attributes: dict[str, Any]


def read_rda(content: bytes, name: str) -> pa.Table:
    """Read the data frame of a name from an ``.rda`` file; a factor is a dictionary, NA a null."""
    try:
        content = _COMPRESSIONS.get(content[:2], bytes)(content)
        if content[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise ValueError("its first bytes are not those of an .rda file")
        objects = dict(_Reader(content, start=7).read_item())
        if name not in objects:
            raise ValueError(f"it holds {enumerate_some(objects)}")
        frame = objects[name]
        if "data.frame" not in frame.attributes["class"].values:
            raise ValueError("it is no data frame")
        columns = zip(frame.attributes["names"].values, frame.values, strict=True)
        return pa.table({column: _to_arrow(vector) for column, vector in columns})
    except (ValueError, TypeError, LookupError, AttributeError, OSError, EOFError) as error:
        raise InvalidInputError(
            f"An .rda file with the data frame {name!r} was expected, but this one cannot be read "
            f"({error}). Export the data frame with R instead."
        ) from error


class _Reader:
    """Walks once through the items of a file, in the order they were written."""

    def __init__(self, content: bytes, start: int) -> None:
        self.content = content
        self.at = start
        self.references: list[str] = []
        version, _, _ = (self.read_integer() for _ in range(3))
        if version == 3:
            self.take(self.read_integer())  # the name of the encoding

    def take(self, n_bytes: int) -> bytes:
        piece = self.content[self.at : self.at + n_bytes]
        if n_bytes < 0 or len(piece) < n_bytes:
            raise ValueError("it ends too early")
        self.at += n_bytes
        return piece

    def read_integer(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def read_item(self) -> Any:
        flags = self.read_integer()
        kind = flags & 0xFF
        if kind == _NIL:
            return None
        if kind == _REFERENCE:
            return self.references[(flags >> 8 or self.read_integer()) - 1]
        if kind == _SYMBOL:
            self.references.append(self.read_item())
            return self.references[-1]
        if kind == _TEXT:
            n_bytes = self.read_integer()
            return None if n_bytes == -1 else self.take(n_bytes).decode("utf-8", "replace")
        if kind == _PAIRLIST:  # its first pair, and the list of the others
            if flags & _HAS_ATTRIBUTES:
                self.read_item()
            tag = self.read_item() if flags & _HAS_TAG else ""
            pair = (tag, self.read_item())
            rest = self.read_item()
            return [
                pair,
                *(rest if isinstance(rest, list) else [] if rest is None else [("", rest)]),
            ]
        if kind == _ALTREP:
            return self.read_compact()
        values = self.read_values(kind)
        return _Vector(values, dict(self.read_item() or ()) if flags & _HAS_ATTRIBUTES else {})

    def read_values(self, kind: int) -> Any:
        n_values = self.read_integer()
        if kind in (_INTEGER, _LOGICAL):
            return np.frombuffer(self.take(4 * n_values), dtype=">i4").astype(np.int32)
        if kind == _REAL:
            return np.frombuffer(self.take(8 * n_values), dtype=">f8").astype(np.float64)
        if kind in (_STRINGS, _LIST):
            return [self.read_item() for _ in range(n_values)]
        raise ValueError(f"it holds R objects of type {kind}, which are no data")

    def read_compact(self) -> _Vector:
        """Read a vector that R keeps in another form: a run, a wrapped one, or unwritten texts."""
        (_, kind), *_ = self.read_item()
        state, attributes = self.read_item(), dict(self.read_item() or ())
        if kind == "compact_intseq":
            n_values, first, step = state.values.tolist()
            run = first + step * np.arange(int(n_values))
            return _Vector(run.astype(np.int32), attributes)
        if kind.startswith("wrap_"):
            wrapped = state[0][1]
            return _Vector(wrapped.values, wrapped.attributes | attributes)
        if kind == "deferred_string" and state[0][1].values.dtype == np.int32:
            texts = [None if v == _MISSING_INTEGER else str(v) for v in state[0][1].values.tolist()]
            return _Vector(texts, attributes)
        raise ValueError(f"it holds a vector in the form {kind}")


def _to_arrow(column: _Vector) -> Any:
    if isinstance(column.values, list):
        return pa.array(column.values)
    if column.values.dtype == np.float64:
        return pa.array(column.values, from_pandas=True)  # R's NA is a NaN
    missing = column.values == _MISSING_INTEGER
    levels = column.attributes.get("levels")
    if levels is None:
        return pa.array(column.values, mask=missing)
    codes = pa.array(column.values - 1, mask=missing)
    return pa.DictionaryArray.from_arrays(codes, pa.array(levels.values))
