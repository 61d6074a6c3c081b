"""How Sphinx makes the site: `make docs`."""

import ast
import builtins
import doctest
import re
import sys
from inspect import ismodule
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

import fcorr
from fcorr.audit.displays import Display, save_figure

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # examples and paper are not installed

project = "fcorr"
author = copyright = "The fcorr developers"
version = release = fcorr.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "**/tables", "tables", "examples", "demo"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "fcorr"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}

myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block", "deflist"]
copybutton_selector = ":not(.highlight-text) > .highlight > pre"  # not on what code prints
copybutton_prompt_text = "$ "  # commands are copied, what they print is not
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "END"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # docstrings have them
numpydoc_show_class_members = False  # the templates list them


def show_displays(block, block_vars, gallery_conf):
    """Put each display that a part of an example has drawn into its page."""
    display = block_vars["example_globals"].pop("display", None)
    if not isinstance(display, Display):
        return ""
    path = next(block_vars["image_path_iterator"])
    save_figure(display.figure_, path)
    title = display.figure_.get_suptitle() or display.ax_.get_title(loc="left")
    return figure_rst([path], gallery_conf["src_dir"], title)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_bank_fraud|plot_tariff",  # the others need published tables
    "ignore_pattern": "_common|audit_reports",
    "image_scrapers": (show_displays,),
    "reset_modules": (),
    "reset_argv": lambda *_: ["--rows", "2000"],
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 10**6,
    "write_computation_times": False,  # that page would ask a network for scripts
}
suppress_warnings = ["config.cache"]  # functions in a configuration are not kept between builds


def lead_to_pages(app, name, source):
    """Lead links that are right in the repository to the pages that the site has for these."""
    text = source[0]
    if name in ("changelog", "contributing", "security", "code_of_conduct"):
        text = (ROOT / f"{name.upper()}.md").read_text().replace("](docs/", "](")
    text = re.sub(r"\]\((\.\./)?([A-Z_]+\.md)", lambda found: f"](/{found[2].lower()}", text)
    text = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py", r"](/auto_examples/\1.rst", text)
    source[0] = text.replace("[records of the runs](reproduction/results)", "records of the runs")


def add_imports(app, what, name, obj, options, lines):
    """Begin an example with the imports that a reader has to type; doctest has the module's."""
    examples = doctest.DocTestParser().get_examples("\n".join(lines))
    nodes = [*ast.walk(ast.parse("".join(example.source for example in examples)))]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    known |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    home = name
    while home not in sys.modules:
        home = home.rpartition(".")[0]
    packages, own = [], []
    for used in sorted({node.id for node in names} - known):
        found = getattr(sys.modules[obj.__module__], used)
        if ismodule(found):
            alias = "" if found.__name__ == used else f" as {used}"
            packages.append(f">>> import {found.__name__}{alias}")
        else:
            assert getattr(sys.modules[home], used) is found
            own.append(used)
    if own:
        packages.append(f">>> from {home} import {', '.join(own)}")
    if packages:
        first = next(i for i, line in enumerate(lines) if line.lstrip().startswith(">>> "))
        indent = lines[first].partition(">>>")[0]
        lines[first:first] = [indent + line for line in packages]


def name_departures(app, what, name, obj, options, lines):
    """Say in words what the mark in the source stands for."""
    lines[:] = [line.replace("NOTE[DIFF]:", "**Differs from the paper**:") for line in lines]


def setup(app):
    """Take part in the build."""
    app.connect("source-read", lead_to_pages)
    app.connect("autodoc-process-docstring", add_imports, priority=100)
    app.connect("autodoc-process-docstring", name_departures)
