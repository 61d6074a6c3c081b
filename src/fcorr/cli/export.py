"""`fcorr export`: a model file in, a file that other software runs out."""

from pathlib import Path

import typer

from fcorr.cli._shared import ModelFile, bad_usage, check_output, echo


def export(
    model: ModelFile,
    onnx: Path = typer.Option(..., help="ONNX file to write.", dir_okay=False),
    opset: int = typer.Option(17, help="Version of ONNX's operators, 17 to 21."),
) -> None:
    """Write a trained model as ONNX.

    It is one graph from raw columns to scores, without an input for sensitive columns that the
    model is exactly invariant to. Schema and certificate are in the file's metadata. See
    docs/serving.md.
    """
    from fcorr.estimators import load
    from fcorr.estimators.export import to_onnx

    check_output(onnx, model, option="--onnx")
    if onnx.suffix.lower() != ".onnx":
        bad_usage("--onnx", f"must end in .onnx, got {onnx.name!r}.")
    to_onnx(load(model), onnx, opset=opset)
    echo(f"wrote {onnx}: opset {opset}")
