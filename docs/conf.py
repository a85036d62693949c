"""How Sphinx makes the site; `make docs` does it."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE)]

from public_names import file_names  # noqa: E402

import brmdp  # noqa: E402

project = "brmdp"
author = "The brmdp developers"
copyright = "The brmdp developers"
version = release = brmdp.__version__

extensions = [
    "mathml",
    "indices",
    "command_line",
    "public_names",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_ext", "gallery", "generated/**.ipynb", "**.ipynb_checkpoints"]
smartquotes = False  # quotes stand in code and in what is to be typed
templates_path = ["_templates"]
# "ref.python": an attribute "name" is not the only one of its name
suppress_warnings = ["config.cache", "ref.python"]
nitpicky = True
# named in docstrings, but not public
nitpick_ignore_regex = [
    ("py:.*", r"brmdp\.(models\.file|runs\.sweep|report\.writing|decisions|decisions\.families)"),
    ("py:.*", r"brmdp\.(models\.checks\.verdicts|report\.estimates\.unseen_share)"),
    ("py:.*", r"brmdp\.(runs\.(records|lake|catalogue|encoding)|theory\.exposure)\.\w+"),
    ("py:.*", r"brmdp\.risk\.dirichlet\.DirichletRows|DrivenBelief|Accuracy|policy_nodes"),
    ("py:.*", r"[A-Z_]+|digest_of|UncertainRewards|pyarrow\..*|enum\..*|gymnasium\..*"),
]

# pages in Markdown; code cells are run whenever their page is built, and must not fail
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_ipywidgets_js = {}
nb_merge_streams = True
# kernels take nothing from the settings of whoever builds the site, and say only what is wrong
kernels = HERE.parent / "build" / "ipython"
LOOKS = f"import sys; sys.path.append({str(HERE)!r}); import pictures; pictures.page_style()"
settings = kernels / "profile_default" / "ipython_kernel_config.py"
settings.parent.mkdir(parents=True, exist_ok=True)
settings.write_text(
    "c = get_config()\n"
    "c.IPKernelApp.log_level = 40\n"
    "c.HistoryManager.enabled = False\n"
    "c.InlineBackend.figure_formats = {'svg'}\n"
    f"c.IPKernelApp.exec_lines = {[LOOKS]!r}\n"
)
os.environ["IPYTHONDIR"] = str(kernels)

# reference
autosummary_generate = True
autosummary_filename_map = file_names()
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

# gallery: docs/gallery/plot_*.py become docs/generated/gallery
sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["generated/gallery"],
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1_000_000,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "plot_gallery": True,
    "capture_repr": (),
    "thumbnail_size": (400, 280),
    "reset_modules": ("matplotlib", "pictures.gallery_style"),
}
warnings.filterwarnings("ignore", category=brmdp.PriorWarning)
# Sphinx forks to read pages; these processes use JAX for nothing but its names
warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)

# looks: nothing here is loaded from elsewhere
html_theme = "pydata_sphinx_theme"
html_title = "brmdp"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_ext" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "brmdp"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 9,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "search_as_you_type": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ |In \[\d*\]: "
copybutton_prompt_is_regexp = True
