import gzip
import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fcorr
from fcorr.data.files import read_file, write_file
from tests.cli.conftest import TRAIN


def one_line(result):
    """Return the only line on stderr."""
    (line,) = result.stderr.splitlines()
    return line


def test_classification_is_guessed(train, files):
    guess = "task: classification (guessed from 'bought'; --task sets it)\n"
    result = train("--sensitive", "sex")
    assert guess in result.stdout
    assert "FCorrClassifier: 200 rows, 4 features," in result.stdout
    assert "exactly invariant to sex" in result.stdout
    assert result.stdout.endswith("wrote model.fcorr\n")
    assert result.stderr == ""
    assert files() == {"model.fcorr"}
    model = fcorr.load("model.fcorr")
    assert isinstance(model, fcorr.FCorrClassifier)
    assert model.schema_.sensitive == ("sex",)
    assert set(model.schema_.names) == {"sex", "age", "job", "amount"}
    result = train("--sensitive", "sex", "--json")
    assert json.loads(result.stdout) == fcorr.estimators.read_header("model.fcorr")
    assert result.stderr == guess


def test_rows_without_a_sensitive_value_are_counted_aloud(train, columns):
    assert "rows without" not in train("--sensitive", "sex").stdout
    sex = [None, None, *list(columns["sex"])[2:]]
    write_file(pa.table({**columns, "sex": sex}), "data.csv")
    told = train("--sensitive", "sex", "--sensitive", "job").stdout
    assert "exactly invariant to sex, job (predict does not read it), rows without sex: 2," in told


def test_the_same_rows_make_the_same_model_and_another_seed_another(train):
    """Whatever kind of file they are in, or by standard input."""
    train()
    model = Path("model.fcorr").read_bytes()
    content = Path("data.csv").read_bytes()
    compressed, tabs = gzip.compress(content), content.replace(b",", b"\t")
    Path("data.csv.gz").write_bytes(compressed)
    Path("tabs.csv").write_bytes(tabs)
    for data, stdin, options in [
        ("data.parquet", None, ()),
        ("data.csv.gz", None, ()),
        ("-", content, ()),
        ("-", compressed, ()),
        ("-", Path("data.parquet").read_bytes(), ()),
        ("tabs.csv", None, ("--delimiter", "tab")),
        ("tabs.csv", None, ("--delimiter", r"\t")),
    ]:
        assert train(*options, data=data, stdin=stdin).stderr == ""
        assert Path("model.fcorr").read_bytes() == model
    train("--random-state", 1)
    assert Path("model.fcorr").read_bytes() != model


@pytest.mark.parametrize(
    ("target", "options", "task"),
    [
        ([0, 1] * 30, (), "classification"),
        (list(range(20)) * 3, (), "classification"),
        (list(range(30)) * 2, (), "regression"),
        ([0.0, 1.0] * 30, (), "regression"),
        (["a", "b"] * 30, (), "classification"),
        ([True, False] * 30, (), "classification"),
        ([0.0, 1.0] * 30, ("--task", "classification"), "classification"),
        ([0, 1] * 30, ("--task", "regression"), "regression"),
        ([0, 1] * 30, ("--objective", "poisson"), "regression"),
    ],
)
def test_guesses(train, target, options, task):
    columns = {"key": range(60), "a": [i // 2 for i in range(60)], "b": ["x", "y", "z"] * 20}
    write_file(pa.table({**columns, "y": target}), "other.parquet")
    told = train(*options, data="other.parquet", target="y").stdout
    assert (f"task: {task} (guessed" in told) == ("guessed" in told) == (not options)
    kinds = {"classification": fcorr.FCorrClassifier, "regression": fcorr.FCorrRegressor}
    assert type(fcorr.load("model.fcorr")) is kinds[task]


def test_options_reach_the_estimator(train, columns):
    write_file(pa.table({**columns, "rooms": [1, 2, 3, 4] * 50}), "data.csv")
    advanced = {"n_layers": 2, "residual": True, "early_stopping": 3}
    sets = {"proxy_target": "decision", "min_category_rows": 1, "learning_rate": 0.01}
    given = {**advanced, **sets, "residual": "true"}
    train(
        *("--sensitive", "sex", "--sensitive", "age", "--car", "paper"),
        *("--kinds", "amount=numeric", "--kinds", "job=pilot,nurse,clerk"),
        *("--kinds", "rooms=4,3,2,1", "--proxy", 0.5, "--random-state", 7),
        *(word for name, value in given.items() for word in ("--set", f"{name}={value}")),
    )
    model = fcorr.load("model.fcorr")
    expected = {
        "sensitive": ["sex", "age"],
        "kinds": {"amount": "numeric", "job": ["pilot", "nurse", "clerk"], "rooms": [4, 3, 2, 1]},
        "car": "paper",
        "proxy": 0.5,
        "random_state": 7,
        "head": (4,),
        "advanced": advanced,
        **sets,
    }
    assert model.get_params() == model.get_params() | expected


def test_a_budget_and_a_folder_for_members(train):
    options = "--n-members", 2, "--random-state", 1, "--checkpoint", "members", "--budget"
    train(*options, "1s")
    n_kept = len([*Path("members").iterdir()])
    assert n_kept >= 2
    train(*options, "1s")
    assert len([*Path("members").iterdir()]) >= n_kept


def test_objective_exposure_and_weight(train, policies):
    train(
        *("--objective", "tweedie", "--exposure", "years", "--set", "tweedie_power=1.3"),
        *("--sample-weight", "w"),
        data="policies.parquet",
        target="claims",
    )
    model = fcorr.load("model.fcorr")
    assert isinstance(model, fcorr.FCorrRegressor)
    assert (model.objective, model.exposure, model.tweedie_power) == ("tweedie", "years", 1.3)
    schema = model.schema_
    assert (schema.target, schema.weight, schema.exposure) == ("claims", "w", "years")
    assert set(schema.names) == {"sex", "age", "job", "amount", "bought"}


def test_errors_count_the_lines_of_weight_0(train, columns):
    weight, amount = np.arange(200) % 2.0, columns["amount"].copy()
    amount[[0, 199]] = math.inf
    write_file(pa.table({**columns, "amount": amount, "w": weight}), "data.csv")
    assert "got inf in line 201" in one_line(train("--sample-weight", "w", code=1))


@pytest.mark.parametrize(
    ("option", "threshold"),
    [
        ("f1", "f1"),
        ("fpr=0.05", {"fpr": 0.05}),
        ("cost=1,20", {"cost": (1.0, 20.0)}),
        ("0.3", 0.3),
    ],
)
def test_class_weight_and_threshold(train, option, threshold):
    result = train("--set", "class_weight=balanced", "--threshold", option)
    assert "guessed" not in result.stdout  # such options are for classes
    model = fcorr.load("model.fcorr")
    assert (model.class_weight, model.threshold) == ("balanced", threshold)
    assert 0 < model.threshold_ < 1


@pytest.mark.parametrize(
    ("n_members", "first"),
    [
        (1, r"epoch 1/1  loss \d\.\d{4}"),
        (2, r"trial 1/\d+  recipe 1, bag 1: out-of-bag loss .*"),
    ],
)
def test_progress_in_lines(run, n_members, first):
    result = run(
        *("train", "data.csv", "--target", "bought", "-o", "model.fcorr", "--drop", "key"),
        *("--n-members", n_members, "--epochs", 1, "--set", "head=4"),
    )
    assert re.fullmatch(first, result.stderr.splitlines()[0])
    assert (" 2 members, out-of-bag loss " in result.stdout) == (n_members == 2)


def test_a_pack_is_that_of_python(run, train, columns):
    train("--n-members", 2, "--sensitive", "sex", "--monotone", "age=increasing")
    run("predict", "model.fcorr", "data.csv", "--output", "scored.csv")
    table = pa.table(columns)
    X = table.select(["sex", "age", "job", "amount"])
    model = fcorr.FCorrClassifier(
        sensitive=["sex"],
        n_members=2,
        monotone={"age": "increasing"},
        epochs=1,
        head=(4,),
        random_state=0,
    ).fit(X, table["bought"])
    scored = read_file("scored.csv")
    assert scored["probability_1"].to_pylist() == model.predict_proba(X)[:, 1].tolist()
    loaded = fcorr.load("model.fcorr")
    assert len(loaded.model_.members) == 2
    older = X.set_column(1, "age", pa.array(columns["age"] + 5))
    assert (loaded.predict_proba(older) >= loaded.predict_proba(X))[:, 1].all()


BAD_USAGE = [
    # Columns
    (["--sensitive", "sexx"], "--sensitive: the file has no column 'sexx'. Did you mean 'sex'"),
    (["--sensitive", "zip"], "no column 'zip'. It has: key, sex, age, job, bought, amount."),
    (["--target", "bougt"], "--target: the file has no column 'bougt'. Did you mean 'bought'?"),
    (["--sample-weight", "wait"], "--sample-weight: the file has no column 'wait'."),
    (["--drop", "keys"], "--drop: the file has no column 'keys'. Did you mean 'key'?"),
    (["--kinds", "jop=categorical"], "--kinds: the file has no column 'jop'."),
    (["--monotone", "agee=increasing"], "--monotone: the file has no column 'agee'. Did you"),
    (["--sensitive", "bought"], "'bought' is also named by --target. Name it once."),
    (["--drop", "bought"], "--drop: 'bought' is also named by --target."),
    (
        ["--objective", "poisson", "--exposure", "amounts"],
        "--exposure: the file has no column 'amounts'. Did you mean 'amount'?",
    ),
    # Values for columns
    (["--kinds", "job"], "--kinds: must be COLUMN=VALUE or COLUMN=VALUE,VALUE,… and once for"),
    (["--kinds", "job=numeric", "--kinds", "job=ordinal"], "once for a column, got 'job=ordinal'"),
    (["--kinds", "job=categorial"], "got 'categorial' for 'job'. Did you mean 'categorical'?"),
    (
        ["--kinds", "age=low,high"],
        "--kinds: the column 'age' holds numbers, got the order low,high",
    ),
    (["--monotone", "age=up"], "--monotone: must be COLUMN=increasing or decreasing, got {'age'"),
    # Arguments: what the estimator says, in the words of the command line
    (["--n-members", "0"], "--n-members: must be an integer of at least 1, got 0."),
    (["--set", "n_members=2"], "--set: 'n_members' goes by an option of its own, --n-members."),
    (["--set", "dropuot=0.1"], "--set: no estimator has an argument 'dropuot'. Did you mean 'd"),
    (["--set", "dropout"], "--set: must be ARGUMENT=VALUE, once for an argument, got"),
    (["--set", "dropout=8xx"], "--set dropout: must be a number in [0, 1), or 'auto', got"),
    (["--set", "device=nope"], "--set device: must be one that torch can use here"),
    (["--car", "-1"], "--car: must be a number of at least 0, 'paper' or None, got"),
    (["--proxy", "-1"], "for --proxy: must be a number of at least 0, got -1.0."),
    (["--exposure", "amount"], "--exposure: needs a log link to be an offset, got 'amount' with"),
    (["--threshold", "f2"], "--threshold: must be a number in [0, 1], 'f1', fpr=RATE or cost="),
    (["--threshold", "fpr=low"], "fpr=RATE or cost=FP,FN, got {'fpr': 'low'}."),
    (["--random-state", "-1"], "'--random-state'"),
    (["--n-members", "2", "--budget", "soon"], "--budget: must be a time such as '90s', '10min'"),
    (["--task", "ranking"], "'--task'"),
    (["--task", "regression", "--threshold", "f1"], "--threshold: is for classification, not"),
    (
        ["--objective", "mse", "--set", "class_weight=balanced"],
        "--set class_weight: is for classification",
    ),
    # Files
    (["--delimiter", ";;"], "--delimiter: must be a tab or one ASCII character that is no"),
    (["--decimal", ";"], "'--decimal'"),
    (["--dates", "ymd"], "'--dates'"),
    (
        ["--output", "nowhere/model.fcorr"],
        "--output: the folder 'nowhere' does not exist. Make it first.",
    ),
    (["--output", "."], "'.' is a directory"),
    (["--output", "data.csv"], "'data.csv' is an input, or another output, and"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_USAGE)
def test_bad_usage(refuse, arguments, message):
    refuse(message, "train", "data.csv", "--target", "bought", *TRAIN, *arguments)


def test_names_that_look_like_others_are_quoted(refuse):
    Path("spaces.csv").write_text(", a,y\n1,2,3\n")
    message = "no column 'a'. Did you mean ' a'? It has: '', ' a', y."
    refuse(message, "train", "spaces.csv", "--target", "a", "-o", "model.fcorr")


BAD_DATA = [
    ("key,a,y\n", "must have rows, got a header alone"),
    ("key,a,y\n1,2,3\n4\n", "must have 3 fields .* as in its header, got 1 in line 3"),
    ('key,a,y\n1,"two\nlines",0\n\n2,c,1\n3,z,', "got 1 NaN, the first in line 6."),
    ('key;a;y\n1;"two\nlines";0\n\n2;c;1\n3;z;', "got 1 NaN, the first in line 6."),
]


@pytest.mark.parametrize(("text", "message"), BAD_DATA)
def test_bad_data(train, files, text, message):
    Path("bad.csv").write_text(text)
    last = train(data="bad.csv", target="y", code=1).stderr.splitlines()[-1]
    assert re.match(f"error: .*{message}", last)
    assert files() == {"bad.csv"}


NOTHING_ELSE = [word for name in ("age", "job", "amount", "flow") for word in ("--drop", name)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--task", "regression", "--target", "job"],
            "error: y ('job') must hold numbers, got values such as 'nurse'. Convert it, or use "
            "--task classification for classes.",
        ),
        (
            ["--objective", "gamma"],
            "error: y ('bought') must be above 0 for --objective gamma, got 0 in line",
        ),
        (
            ["--objective", "poisson", "--exposure", "bought", "--target", "amount"],
            "error: Column 'bought' (exposure) must be positive in every row, got 0.0 in line",
        ),
        (
            ["--sample-weight", "flow"],
            "error: --sample-weight ('flow') must be finite and at least 0, got -1 in line 2 "
            "and 199 more.",
        ),
        (
            ["--sensitive", "sex", *NOTHING_ELSE],
            "error: X must have a column to predict from that is not sensitive, got 'sex' and "
            "--invariance adapt. Add features, or use --invariance none.",
        ),
        (
            ["--set", "learning_rate=1e30", "--epochs", 2, "--drop", "flow"],
            "error: Training must keep a finite loss, got nan in epoch 1. Lower ",
        ),
    ],
)
def test_options_that_the_data_refuses(train, files, columns, arguments, message):
    write_file(pa.table({**columns, "flow": -columns["bought"] - 1}), "data.csv")
    assert one_line(train(*arguments, code=1)).startswith(message)
    assert files() == set()


@pytest.mark.filterwarnings("default::UserWarning")
def test_keys_and_copies_of_the_target_are_warned_of_in_a_line_each(train, columns):
    answer = np.where(columns["bought"] == 1, "yes", "no")
    write_file(pa.table({**columns, "policy": columns["key"] + 7, "answer": answer}), "data.csv")
    key, copy = train().stderr.splitlines()
    assert key.startswith("warning: A feature must say something of rows that are yet to come, got")
    assert key.endswith(
        ": 'policy'. Drop it, or say what it is, --kinds policy=numeric, if it is no key."
    )
    assert copy.startswith("warning: A feature must not tell y ('bought') outright, got")
    assert "'answer'. Drop it, unless" in copy
    assert train("--kinds", "policy=numeric", "--drop", "answer").stderr == ""


FAST = ("--n-members", "1", "--epochs", "1", "-o", "model.fcorr")


def test_a_leading_zero_makes_no_code_of_what_must_be_a_number(run):
    lines = [f"{n % 50 + 10},{n % 3},0{n % 7}" for n in range(200)]
    Path("zeros.csv").write_text("\n".join(["amount,x,count", "05,1,1", *lines]))
    told = run("train", "zeros.csv", "--target", "amount", "--kinds", "count=numeric", *FAST)
    assert "task: regression" in told.stdout
    assert "as codes" not in told.stderr


def test_files_from_elsewhere_make_the_same_model(train, european):
    assert Path("european.csv").read_text().splitlines()[1] == "K0;1.000,000;01.12.2000;S;0"
    assert train(data="plain.csv", target="y").stderr == ""
    model = Path("model.fcorr").read_bytes()
    assert one_line(train(data="european.csv", target="y")) == (
        "'european.csv' is read with ';' between fields, decimal commas, day/month/year in 'day' "
        "(--delimiter, --decimal, --dates and --kinds set it)"
    )
    assert Path("model.fcorr").read_bytes() == model
    options = ("--delimiter", ";", "--decimal", ",", "--dates", "dmy")
    assert train(*options, data="european.csv", target="y").stderr == ""
    assert Path("model.fcorr").read_bytes() == model


def test_errors_of_standard_input_name_it(run, files):
    options = ("--target", "y", "-o", "model.fcorr")
    result = run("train", "-", *options, stdin="a,y\n1,2\n3\n", code=1)
    assert one_line(result).startswith("error: 'standard input' must have 2 fields in every line")
    result = run("train", "-", *options, stdin="", code=1)
    assert "'standard input' cannot be read as CSV" in one_line(result)
    assert files() == set()


def test_no_room_for_standard_input(train, no_room):
    with no_room():
        result = train(data="-", stdin="a,y\n" + "1,2\n" * 999, code=1)
    assert "File too large; standard input is copied there; TMPDIR names another" in result.stderr


CONFIG = """
target = "bought"
output = "model.fcorr"
drop = ["key"]
sensitive = "sex"
n-members = 1
random_state = 0
epochs = 1
quiet = true
threshold = {cost = [1, 50]}
kinds = {job = ["pilot", "nurse", "clerk"], age = "numeric"}
set = {head = 4, min_category_rows = 2}
"""


def test_the_command_line_wins_over_the_config(run, train):
    given = ("--kinds", "job=pilot,nurse,clerk", "--kinds", "age=numeric", "--sensitive", "sex")
    train(*given, "--threshold", "cost=1,50", "--set", "min_category_rows=2")
    model = Path("model.fcorr").read_bytes()
    Path("config.toml").write_text(CONFIG)
    run("train", "data.csv", "--config", "config.toml")
    assert Path("model.fcorr").read_bytes() == model
    options = ("--sensitive", "job", "--epochs", 2, "--kinds", "job=categorical")
    run("train", "data.csv", "--config", "config.toml", *options)
    model = fcorr.load("model.fcorr")
    assert model.schema_.sensitive == ("job",)
    assert model.get_params()["epochs"] == 2
    assert model.schema_["job"].kind == "categorical"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targt = 'bought'", "'targt' is no option. Did you mean 'target'? There are: address, "),
        ("config = 'other.toml'", "'config' is no option."),
        ("random-state = 1\nrandom_state = 2", "'random_state' is there twice."),
        ("target = ['bought', 'sex']", "'target' must be one value, got ['bought', 'sex']."),
        ("target = 'bought'\nepochs = 1.5", "Invalid value for '--epochs'"),
        ("epochs = ", "must be a TOML file, got 'config.toml': Invalid value"),
        ("epochs = " + 999 * "[", "must be a TOML file, got 'config.toml': maximum recursion"),
    ],
)
def test_bad_config(refuse, text, message):
    Path("config.toml").write_text(text)
    refuse(message, "train", "data.csv", "--config", "config.toml", "-o", "model.fcorr")
