"""An audit in words: the findings on the first page, and the model card."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fcorr._core import show_text
from fcorr.audit.displays import short_number
from fcorr.audit.tables import TextTable, to_markdown

Summary = Mapping[str, Any]

SCOPE = (
    "It does not say that the model is lawful, or fair in any other sense than the figures shown.",
    "A flip changes the sensitive columns and leaves all others as they are. In life they move "
    "together: other columns may stand in for the sensitive ones, and no flip shows that. It is "
    "no statement about causes.",
    "The figures hold for rows like the ones tested. Whether these are like the people that the "
    "model will meet, the rows cannot tell.",
)


def show_cell(cell: Summary) -> str:
    """Write a figure with its interval, or why there is none.

    Examples
    --------
    >>> show_cell({"estimate": 0.8213, "low": 0.75, "high": 0.9})
    '0.82 (0.75 to 0.90)'
    >>> show_cell({"estimate": None, "why": "no positives"})
    'not estimable: no positives'
    """
    if cell["estimate"] is None:
        return f"not estimable: {cell['why']}"
    text = short_number(cell["estimate"])
    ends = [short_number(cell[name]) for name in ("low", "high") if name in cell]
    return f"{text} ({' to '.join(ends)})" if ends else text


def show_number(value: Any) -> str:
    """Write a number shortly; text stays, and what is not known is said so."""
    if value is None:
        return "not estimable"
    if isinstance(value, float):
        return short_number(value)
    if isinstance(value, str):
        return value
    return f"{value:,}" if type(value) is int else json.dumps(value)


def describe(summary: Summary) -> dict[str, list[str]]:
    """Say what was tested, what was found, and what it does not say."""
    subject, rows = summary["subject"], summary["rows"]
    task = {"two classes": "decides between two classes", "regression": "predicts a number"}
    what = task.get(subject["task"], f"decides between {len(subject['classes'])} classes")
    n = f"{rows['n']:,} people or policies (rows)"
    if rows["exposure"] is not None:
        n += f" with {short_number(rows['exposure'])} units of exposure"
    columns = [
        f"{name} ({len(values)} value{'s' * (len(values) != 1)})"
        for name, values in summary["sensitive"].items()
    ]
    tested = [
        f"{subject['name']}, a model that {what} ({subject['target']}), was "
        f"asked about {n}. Sensitive: {', '.join(columns)}."
    ]
    if not rows["has_target"]:
        tested.append("No outcomes were given: nothing is said about how right the scores are.")
    parts = (_of_flips, _of_groups, _of_proxies, _of_performance)
    found = [text for part in parts for text in part(summary)]
    for each in summary["thresholds"]:
        limits = [f"{end} {each[end]:g}" for end in ("min", "max") if end in each]
        verdict = "is met" if each["met"] else "is crossed"
        value = "not estimable" if each["value"] is None else short_number(each["value"])
        found.append(
            f"The threshold for {_name(each['figure'])} ({', '.join(limits)}; source: "
            f"{each['source']}) {verdict}: {value}."
        )
    sections = {"tested": tested, "found": found, "limits": SCOPE}
    return {name: [show_text(text) for text in texts] for name, texts in sections.items()}


def _name(figure: str) -> str:
    return figure.replace("_", " ")


def _of_flips(summary: Summary) -> Iterator[str]:
    flips, unit = summary["flips"], summary["subject"]["unit"]
    columns = " and ".join(summary["sensitive"])
    if "why" in flips:
        yield f"What a flip of {columns} changes is not estimable: {flips['why']}."
    elif not flips["n_changed"]:
        yield (
            f"Changing {columns} and nothing else changed no prediction at all, in {flips['n']:,} "
            f"rows under all {len(flips['categories'])} values."
        )
    else:
        change, share = flips["change"], flips["metrics"].get("decisions flipped")
        decided = "" if share is None else f", and {100 * share:.2g} % of the decisions"
        yield (
            f"Changing {columns} and nothing else changed the prediction of "
            f"{flips['n_changed']:,} of {flips['n']:,} rows: by {short_number(change['mean'])} "
            f"{unit} in the mean, by {short_number(change['max'])} at most{decided}."
        )
    certificate = flips["certificate"]
    if certificate is None:
        yield (
            "Nothing is proven about other rows: only models of fcorr, for the columns they were "
            "trained to be invariant to, come with a certificate."
        )
    else:
        yield certificate["text"]
        if not certificate["exact"]:
            yield (
                "A search over all inputs found a change of "
                f"{short_number(certificate['search'])}; the worst case may be larger."
            )


def _of_groups(summary: Summary) -> Iterator[str]:
    figures = summary["figures"]
    told = {
        "adverse_impact_ratio": "the lowest selection rate over the highest, which a US rule of "
        "thumb for hiring sets against 0.80",
        "mean_ratio": "the lowest mean prediction over the highest",
        "true_positive_rate_difference": "between the groups' true positive rates",
        "actual_over_expected_difference": "between the groups' ratios of actual to expected",
    }
    for name, meaning in told.items():
        if name in figures:
            yield (
                f"{_name(name).capitalize()}, {meaning}: {show_cell(figures[name])}, by "
                f"{figures[name].get('grouping', '')}."
            )
    small = [
        f"{group['group']} (n={group['n']})"
        for section in summary["groups"]
        for group in section["groups"]
        if group["group"] in section["too_small"]
    ]
    if small:
        listed = ", ".join(dict.fromkeys(small[:8])) + " and others" * (len(small) > 8)
        yield f"Too small to be compared, and left out of these differences: {listed}."


def _of_proxies(summary: Summary) -> Iterator[str]:
    strength, figures = summary["proxies"]["strength"], summary["figures"]
    for column in summary["sensitive"] if isinstance(strength, list) else ():
        of_column = [row for row in strength if row["sensitive"] == column]
        told = [
            f"from {row['source']} {row['metric']} {short_number(row['value'])}"
            for row in of_column[:3]
            if row["value"] is not None
        ]
        if told:
            yield f"How well {column} can be told without it: {', '.join(told)}."
    names = ("demographic_unfairness", "proxy_discrimination")
    texts = [f"{_name(n)} {show_cell(figures[n])}" for n in names if n in figures]
    if texts:
        yield f"Shares of the variance of scores: {', '.join(texts)}."


def _of_performance(summary: Summary) -> Iterator[str]:
    if summary["performance"]:
        cells = [f"{name} {show_cell(each)}" for name, each in summary["performance"].items()]
        yield f"How well it predicts: {', '.join(cells)}."
    other = summary.get("incumbent")
    if other is not None:
        numbers = {**other["performance"], **other.get("flips", {})}
        texts = [f"{n} {short_number(v)}" for n, v in numbers.items() if v is not None]
        yield f"{other['name']} stands beside it: {', '.join(texts)}."


def model_card(summary: Summary) -> str:
    """Write a model card: Markdown, with a header that Hugging Face reads."""
    subject, findings, where = summary["subject"], summary["findings"], summary["provenance"]
    task = "regression" if subject["task"] == "regression" else "classification"
    values = [
        {"type": name.lower().replace(" ", "_"), "name": name, "value": each["estimate"]}
        for name, each in summary["performance"].items()
        if each["estimate"] is not None
    ]
    dataset = {"type": "tabular", "name": f"{summary['rows']['n']} rows, {where['data_hash']}"}
    index = {
        "name": subject["name"],
        "results": [{"task": {"type": f"tabular-{task}"}, "dataset": dataset, "metrics": values}],
    }
    tags = [f"tabular-{task}", "fairness-audit"]
    # JSON is YAML, and quotes whatever names hold.
    header = {"library_name": "fcorr", "tags": tags, "model-index": [index]}
    lines = [f"{key}: {json.dumps(value)}" for key, value in header.items()]
    figures = [[_name(name), show_cell(each)] for name, each in summary["figures"].items()]
    facts = [[_name(k), json.dumps(v)] for k, v in where.items() if k != "configuration"]
    parts = {
        "What was tested": findings["tested"],
        "What was found": findings["found"],
        "What it does not say": findings["limits"],
    }
    texts = ["---", *lines, "---", "", f"# {to_markdown(subject['name'])}", ""]
    for title, sentences in parts.items():
        texts += [f"## {title}", "", *(f"- {to_markdown(text)}" for text in sentences), ""]
    texts += ["## Figures", "", TextTable(["figure", "found"], figures).markdown()]
    texts += ["## Provenance", "", TextTable(["", ""], facts).markdown()]
    return "\n".join(texts)
