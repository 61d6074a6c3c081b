"""Claims about what the models cost: parameters, memory, seconds (§3.2, 4.2, 4.3)."""

import numpy as np

from fcorr.reproduce.costs import AUGMENTED, BY_DEFINITION, CLOSED_FORM
from fcorr.reproduce.report.claims.verdicts import Claim, Finding, judge
from fcorr.reproduce.report.paper import paper_figure
from fcorr.reproduce.report.results import Results

_TABLES = ("bank_fraud", "claims")  # of 31 and of 581 features
_EXPERIMENT = "complexity"
_AT_MOST = {"bank_fraud": 0.5, "claims": 0.6}  # "far fewer", and "roughly half"


def _size(results: Results, model: str, table: str) -> dict[str, float] | None:
    records = results.select(_EXPERIMENT, model, measure="size", table=table)
    return records[0]["cost"] if records else None


def _epochs_with_cda(results: Results) -> dict[str, list[list[float]]] | None:
    """List, by table, an epoch's length by definition and in closed form, in augmented ones."""
    ratios = {}
    for table in _TABLES:
        epochs = [
            record["cost"]["seconds_per_epoch"]
            for record in results.select(_EXPERIMENT, measure="epochs", table=table)
        ]
        if not epochs:
            return None
        ratios[table] = [
            [of[form] / of[AUGMENTED] for of in epochs] for form in (BY_DEFINITION, CLOSED_FORM)
        ]
    return ratios


def _augmentation_is_faster(results: Results) -> Finding | None:
    ratios = _epochs_with_cda(results)
    if ratios is None:
        return None
    papers = [_papers_ratio(table) for table in ratios]
    text = "; ".join(
        f"{table}: {np.mean(first):.2f} times by definition, {np.mean(second):.2f} times in closed "
        "form"
        for table, (first, second) in ratios.items()
    )
    slower = [min(of_form) > 1 for of_table in ratios.values() for of_form in of_table]
    return Finding(
        judge(slower),
        f"An epoch with CDA, as a multiple of one with augmentation: {text}; the paper: "
        f"{papers[0]:.2f} and {papers[1]:.2f} times, on a GPU. By definition means all p × p "
        "weights for each category, where augmentation here has attention in linear time; the "
        "closed form has it too, and is the fair comparison.",
    )


def _gains_with_dimension(results: Results) -> Finding | None:
    ratios = _epochs_with_cda(results)
    if ratios is None:
        return None
    few, many = ratios.values()
    text = ", ".join(
        f"{form} {np.mean(of_few):.2f} and {np.mean(of_many):.2f}"
        for form, of_few, of_many in zip(
            ("by definition", "in closed form"), few, many, strict=True
        )
    )
    # Apart beyond their noise: each measurement of the large table beside each of the small one.
    return Finding(
        judge([min(of_many) > max(of_few) for of_few, of_many in zip(few, many, strict=True)]),
        f"An epoch with CDA in epochs with augmentation, 31 and 581 features: {text}.",
    )


def _papers_ratio(table: str) -> float:
    slow, fast = (
        paper_figure("seconds_per_epoch", table, form) for form in (BY_DEFINITION, AUGMENTED)
    )
    assert slow is not None
    assert fast is not None
    return slow / fast


def _no_more_parameters(results: Results) -> Finding | None:
    texts, equal = [], []
    for table in _TABLES:
        plain, with_car = (_size(results, model, table) for model in ("FCorr", "FCorr + CAR"))
        if plain is None or with_car is None:
            return None
        equal.append(plain["parameters"] == with_car["parameters"])
        texts.append(f"{plain['parameters']:,} without, {with_car['parameters']:,} with CAR")
    return Finding(judge(equal), f"Parameters: {'; '.join(texts)}.")


def _parameters(table: str, name: str, section: str, count: int, n_head: int) -> Claim:
    def check(results: Results) -> Finding | None:
        cost = _size(results, "FCorr", table)
        if cost is None:
            return None
        n, head = cost["parameters"], cost["head_parameters"]
        return Finding(
            judge([n == count, head == n_head]),
            f"{n:,} parameters, {head:,} of them ({head / n:.1%}) in the head.",
        )

    return Claim(
        section,
        f"FCorr has {count:,} parameters at the size of {name}, {n_head / count:.1%} of them in "
        "the feed-forward head.",
        (_EXPERIMENT,),
        check,
    )


def _fewer_parameters(results: Results) -> Finding | None:
    texts, fewer = [], []
    for table, share in _AT_MOST.items():
        own, other = (_size(results, model, table) for model in ("FCorr", "FT-Transformer"))
        if own is None or other is None:
            return None
        counts = own["parameters"], other["parameters"]
        fewer.append(counts[0] <= share * counts[1])
        texts.append(f"{table} {counts[0]:,} of {counts[1]:,}, {counts[0] / counts[1]:.0%}")
    return Finding(
        judge(fewer),
        f"FCorr's of FT-Transformer's, whose sizes were chosen here: {'; '.join(texts)}. The "
        "paper: 11,064 of 94,981, 12 %, and 21,767 of 55,317, 39 %.",
    )


def _heavy_attention(results: Results) -> Finding | None:
    shares = {}
    for table in _TABLES:
        cost = _size(results, "FT-Transformer", table)
        if cost is None:
            return None
        shares[table] = 1 - cost["head_parameters"] / cost["parameters"]
    text = ", ".join(f"{table} {share:.1%}" for table, share in shares.items())
    return Finding(
        judge([round(share, 3) >= 0.999 for share in shares.values()]),
        f"Parameters of FT-Transformer outside its head: {text}. They are those of embeddings, "
        "attention and the layers between.",
    )


def _memory(table: str, section: str, n_features: int, papers: str) -> Claim:
    def check(results: Results) -> Finding | None:
        kept = {}
        for model in ("FCorr", "FCorr + CAR", "FT-Transformer"):
            cost = _size(results, model, table)
            if cost is None:
                return None
            kept[model] = cost["kept_megabytes"]
        shares = [kept[model] / kept["FT-Transformer"] for model in ("FCorr", "FCorr + CAR")]
        return Finding(
            judge([share < 0.1 for share in shares]),
            f"Kept for the gradient of 64 rows: FCorr {kept['FCorr']:.2f} MB, with CAR "
            f"{kept['FCorr + CAR']:.2f} MB, FT-Transformer {kept['FT-Transformer']:.2f} MB: "
            f"{shares[0]:.1%} and {shares[1]:.1%} of it. The paper: {papers}, on a GPU; "
            "FT-Transformer has other sizes there and, it seems, keeps its attention matrices, "
            "which a fused kernel does not.",
        )

    return Claim(
        section,
        f"A training step of FCorr takes a small share of FT-Transformer's memory ({n_features} "
        "features).",
        (_EXPERIMENT,),
        check,
    )


CLAIMS = (
    Claim(
        "3.2",
        "Input augmentation makes an epoch with CAR shorter than CDA, which recomputes attention "
        "for every category.",
        (_EXPERIMENT,),
        _augmentation_is_faster,
    ),
    Claim(
        "3.2",
        "Input augmentation gains the more over CDA, the more features there are.",
        (_EXPERIMENT,),
        _gains_with_dimension,
    ),
    Claim(
        "3.2",
        "CAR by augmentation adds no parameters.",
        (_EXPERIMENT,),
        _no_more_parameters,
    ),
    _parameters("bank_fraud", "BAF", "4.2", 11_064, 10_433),
    _parameters("claims", "InsurTech", "4.3", 21_767, 10_145),
    Claim(
        "4.2, 4.3",
        "FCorr has far fewer parameters than FT-Transformer, on InsurTech roughly half.",
        (_EXPERIMENT,),
        _fewer_parameters,
    ),
    Claim(
        "4.2, 4.3",
        "Of FT-Transformer's parameters, 99.9% are in the attention part.",
        (_EXPERIMENT,),
        _heavy_attention,
    ),
    _memory("bank_fraud", "4.2", 31, "0.25 of 67.88 MB, 0.4 %"),
    _memory("claims", "4.3", 581, "2.91 of 661.12 MB, 0.4 % (its text says 4.4 %)"),
)
