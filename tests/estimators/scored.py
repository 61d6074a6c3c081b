"""What scores are compared with, and what may be wrong with the files that are scored."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet

N_ROWS = 300


def expected(path, table):
    """Score a table in memory."""
    from fcorr import FCorrRegressor, load

    model = load(path)
    if isinstance(model, FCorrRegressor):
        return {"key": table["key"].to_pylist(), "prediction": model.predict(table).tolist()}
    probabilities = dict(zip(model.classes_, model.predict_proba(table).T, strict=True))
    return {
        "key": table["key"].to_pylist(),
        "prediction": model.predict(table).tolist(),
        **{f"probability_{label}": values.tolist() for label, values in probabilities.items()},
    }


def by_key(table):
    """Give columns with the rows in the order of the key, which the file had."""
    rows = sorted(table.to_pylist(), key=lambda row: int(row["key"][1:]))
    return {name: [row[name] for row in rows] for name in table.column_names}


def check_document(word, folder, model, source, scores, **given):
    """Run the block of the document that has a word in it, on a model and claims."""
    text = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (block,) = (block for block in blocks if word in block)
    paths = {"claims/": source, "scores/": folder / "scores", "model.fcorr": model}
    for name, path in paths.items():
        assert f'"{name}"' in block
        block = block.replace(f'"{name}"', repr(str(path)))
    exec(block, given)
    assert by_key(pa_parquet.read_table(folder / "scores")) == scores


def damage_value(folder, table):
    age = pa.array([1.0] * 70 + [float("inf")] * 30)
    part = table.slice(0, 100).set_column(table.column_names.index("age"), "age", age)
    pa_parquet.write_table(part, folder / "part-1.parquet", row_group_size=30)


def damage_group(folder, table):
    content = bytearray((folder / "part-1.parquet").read_bytes())
    group = pa_parquet.read_metadata(folder / "part-1.parquet").row_group(2)
    start = group.column(0).data_page_offset
    content[start : start + 8] = b"\xff" * 8
    (folder / "part-1.parquet").write_bytes(content)


def damage_schema(folder, table):
    part = table.set_column(0, "age", pa.array(["old"] * N_ROWS))
    pa_parquet.write_table(part, folder / "part-1.parquet")


def damage_file(folder, table):
    (folder / "part-1.parquet").write_bytes(b"")


DAMAGES = {
    damage_value: r"part-1\.parquet': X must fit .* got inf in row 70 ",
    damage_group: r"part-1\.parquet' cannot be read as Parquet .*Check that the file is whole",
    damage_schema: r"'key' is no such column in 'part-1\.parquet' and string in 'part-0",
    damage_file: r"part-1\.parquet' cannot be read as Parquet .*0 bytes",
}
