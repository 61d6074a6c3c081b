"""R's files, read without R. The samples were written by R 4.2 with the lines beside them."""

import base64
import gzip

import pytest

from fcorr._core import InvalidInputError
from fcorr.data.datasets._rdata import read_rda

# frame <- data.frame(
#   i = c(1L, NA, 3L), r = c(1.5, NA, -2), s = c("a", NA, "\u00e9"), f = factor(c("x", NA, "y")),
#   l = c(TRUE, NA, FALSE), run = 5:7, text = as.character(7:9), stringsAsFactors = FALSE
# )
# frame$wrapped <- .Internal(wrap_meta(c(3L, 1L, 2L), NA_integer_, FALSE))
# save(frame, file = "frame.rda", compress = "xz")
VERSION_3_XZ = (
    "/Td6WFoAAAFpIt42AgAhARwAAAAQz1jM4AL6AS5dACkRB1RoEeRuUsqgM8UkXrtrnNeLUzcP1dKbshUqBwT4yAjz"
    "5XMHJI+6ZgHrtlCKID2RkZNWWOiiuFPmDbhNuQX/tEfJqMZ8vBjK54L+Me7CD/NNT3EAT/Tus7/iCwmKtKLRgJZ2"
    "2MIADwVKc2FKlPsYXpuXzPChoYbfIADporXm2V56YVs4eN67NqJA9MWijoqAoealigxpz+T/smWQITSsSEXS52mk"
    "ZOJNjKlUAca/hA97GUn4PtLlRiE+w52jHOX3y0D/OOmaicEqv6m1LuCHtWTHoivCG6iEoA+2iAyuC82J7vTllAlK"
    "4rCxPFSOAYiolKIlrK5ZcrUvSLnF9Cakq4bHvLR/f4eG61A0xmxt55JvwGOTJoFVUGRH+wJtEZffRyXlcDNIY/Ug"
    "Gl4AAAAAouMjjwABxgL7BQAAWSmIKT4wDYsCAAAAAAFZWg=="
)
# save(frame, file = "frame.rda", version = 2, compress = "bzip2")
VERSION_2_BZIP2 = (
    "QlpoOTFBWSZTWZAUCk8AANp/1P/zSAAAARDghAAQQC8n3+DAABAgSABAQ7AA2GxmJoAAADQAAAPUIo0GhpoAAAAA"
    "DQCRJBT1GnhI9IaaHqD1GmnqDyjTP5NHnNTSrmOtIkqpWUK2iiCZk5dPO21XSQWONdMt39Hvft5pcX1OOHnVsrEg"
    "/ZoNmcQY8ZJCUmgOfDxiu72321acMsEfbKxUNJYoQwEMTgahiIbaElewXw97LWYNDcd+lHKpst3rlPZf0msfR24s"
    "0E4DowgUXK/wRAOkSLgBhjUZKmYjgRaRFsbENWo+p1hMuaZ46xiHSUAKAbpCdII4j34u5IpwoSEgKBSe"
)
# save(frame, file = "frame.rda")
VERSION_3_GZIP = (
    "H4sIAAAAAAAAA3VSsU7DMBC9OglNIrVUgpFfoAsLWzsgPgCB1K1yEwdVSpNgB1om+i1s/AUS/4M6spBwjnMBWeEk"
    "x8/nu/cud765WlyEixAAHHAZA8dDCN7d7fX5JaAHDwNwIdDORPKNwMATPPi4Rk0WBuyhMY3Hep99GcfLQX+Hr+/Q"
    "2cQoNYQDjp+gRgPYawf7eMNbm5ZZdRyl4kmkqiVjRLYj8GzXHaVcUXhHkvCozCWiCldoSWr7NNJdxjjKNwUmLddZ"
    "qcSDdeuuuBKtb9T4zV5RT+a+oZ2fmn126JSqHrXjWCRCShEvVSnX2b259mpLYtKms18Kt/4ntr+cs95yKOfv2aEm"
    "9czEy/BpUI99msSagCSgCCQE0hY48jGjXpZiV7Z4uJW8KERs6QUy305JUxfH9OTwJX2bQKe25h3GvOTT9gU3v1T9"
    "AKLjI4/7AgAA"
)
# f <- function(x) x; save(f, file = "f.rda", version = 2, compress = FALSE)
FUNCTION = (
    "UkRYMgpYCgAAAAIABAICAAIDAAAABAIAAAABAAQACQAAAAFmAAAEAwAAAP0AAAQCAAAAAQAEAAkAAAABeAAAAPsA"
    "AAD+AAAC/wAAAP4="
)
# number <- 1; save(number, file = "number.rda")
NUMBER = (
    "H4sIAAAAAAAAAwtyiTDmiuBiYGBgZmBhYmJgZgUyGVhDQ9x0LRiAIkAOIwMLAyeQZssrzU1KLQKy+ECi9h8YYOAf"
    "AGgkRflGAAAA"
)


@pytest.mark.parametrize("text", [VERSION_3_XZ, VERSION_2_BZIP2, VERSION_3_GZIP])
def test_a_data_frame(text):
    table = read_rda(base64.b64decode(text), "frame")
    assert table.to_pydict() == {
        "i": [1, None, 3],
        "r": [1.5, None, -2.0],
        "s": ["a", None, "é"],
        "f": ["x", None, "y"],
        "l": [1, None, 0],
        "run": [5, 6, 7],
        "text": ["7", "8", "9"],
        "wrapped": [3, 1, 2],
    }
    assert str(table.schema.field("f").type).startswith("dictionary")


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (b"", "frame", "its first bytes are not those of an .rda file"),
        (b"<html>sorry</html>", "frame", "its first bytes are not those of an .rda file"),
        (base64.b64decode(VERSION_3_GZIP), "other", "it holds 'frame'"),
        (base64.b64decode(FUNCTION), "f", "it holds R objects of type 3, which are no data"),
        (base64.b64decode(FUNCTION)[:40], "f", "it ends too early"),
        (base64.b64decode(NUMBER), "number", "'class'"),
    ],
)
def test_other_content_is_refused(content, name, reason):
    with pytest.raises(InvalidInputError) as caught:
        read_rda(content, name)
    assert str(caught.value) == (
        f"An .rda file with the data frame {name!r} was expected, but this one cannot be read "
        f"({reason}). Export the data frame with R instead."
    )


def test_every_truncation_is_an_error_that_says_so():
    content = gzip.decompress(base64.b64decode(VERSION_3_GZIP))
    for length in range(0, len(content) - 1, 7):
        with pytest.raises(InvalidInputError, match="cannot be read"):
            read_rda(content[:length], "frame")
