"""Keep pages self-contained: nothing is fetched from the network, and a script is loaded only where it has work.

Jupyter Book would add a script for mathematics from a CDN, one for live code that this book does not have, and every
script of `_static` to every page. Here formulas become MathML, which browsers set themselves, and the chart scripts go
to pages with a chart. An address outside the book in a script, a style sheet or a picture is a warning, and so an error
under `-W`.
"""

import re
from html import escape
from pathlib import Path
from typing import Any

import vl_convert
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from analysis.publish.chart import VEGA_LITE

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
BUNDLE, CHARTS, CALCULATOR = "charts/vega-bundle.js", "charts/charts.js", "charts/calculator.js"
NETWORK = ("http:", "https:", "//")
FETCHED = re.compile(r"<(?:script|img|iframe|link|source|video|audio)\b[^>]*?\b(?:src|href)=[\"'](?:https?:)?//[^\"']*")


def provide_scripts(app: Sphinx, config: Config) -> None:
    """Make the scripts of charts and calculator part of the static files."""
    made = Path(app.outdir).parent / ".scripts"
    write_bundle(made / BUNDLE)
    for script in (CHARTS, CALCULATOR):
        write_if_changed(made / script, (HERE / Path(script).name).read_text(encoding="utf-8"))
    # Here and not in _config.yml, where Jupyter Book would put each of them on every page.
    config.html_static_path += [str(made)]


def write_bundle(path: Path) -> None:
    """Write Vega, Vega-Lite and vega-embed as one script, unless these versions are there already."""
    versions = f"// vl-convert {vl_convert.__version__}, Vega-Lite {VEGA_LITE}\n"
    if path.exists() and path.open(encoding="utf-8").readline() == versions:
        return
    # Without a scope of its own the bundle's names collide with those of Sphinx's scripts.
    bundle = vl_convert.javascript_bundle(vl_version=VEGA_LITE)
    write_if_changed(path, f"{versions}(function () {{\n{bundle}\n}})();\n")


def write_if_changed(path: Path, text: str) -> None:
    """Write a file, but leave one that is the same untouched, so that its page need not be written again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def add_chart_scripts(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Load the chart scripts on a page that has a chart, and the calculator's on a page that has one."""
    body = context.get("body") or ""
    needed = [BUNDLE, CHARTS] * ('<figure class="chart"' in body) + [CALCULATOR] * ('<div class="calculator"' in body)
    for name in needed:
        app.add_js_file(name, loading_method="defer")


def let_tables_scroll_by_keyboard(
    _app: Sphinx, _pagename: str, _template: str, context: dict[str, Any], _doctree: Any
) -> None:
    """Let the keyboard reach the boxes in which wide tables scroll; the theme makes them for a mouse alone."""
    if "body" in context:
        box = 'class="pst-scrollable-table-container"'
        context["body"] = context["body"].replace(box, f'{box} tabindex="0"')


def drop_idle_files(_app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Drop scripts and styles that are repeated or have no work on this page; warn of one from the network."""
    has_cards = "sd-" in (context.get("body") or "")  # what sphinx-design made
    for kind in ("script_files", "css_files"):
        kept: dict[tuple[str, str], Any] = {}
        for file in context[kind]:
            name = str(getattr(file, "filename", file) or "").split("?")[0]
            body = getattr(file, "attributes", {}).get("body") or ""
            if name.startswith(NETWORK):
                log.warning("page %s loads %s from the network", pagename, name, type="selfcontained")
            idle = "thebe" in (name + body).lower() or ("design" in name and not has_cards)
            if not idle:
                kept.setdefault((name, body), file)
        context[kind] = list(kept.values())


def inline_formula(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    translator.body.append(f'<span class="math">{mathml(node, block=False)}</span>')
    raise nodes.SkipNode


def displayed_formula(translator: Any, node: nodes.math_block) -> None:
    """Write a formula that stands by itself, with its number if it has one."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})</span>')
    translator.body.append(f"{mathml(node, block=True)}</div>\n")
    raise nodes.SkipNode


def mathml(node: nodes.Element, *, block: bool) -> str:
    """Return the MathML of a formula, with its source for those who cannot see it; warn where it cannot be set."""
    tex = node.astext()
    try:
        made = tex2mathml(tex, as_block=block)
    except (MathError, SyntaxError) as error:
        log.warning("formula %r cannot be set: %s", tex, error, location=node, type="selfcontained")
        return f"<code>{escape(tex)}</code>"
    return made.replace("<math ", f'<math alttext="{escape(tex)}" ', 1)


def check_pages(app: Sphinx, failure: Exception | None) -> None:
    """Warn of every page that would fetch something from the network."""
    if failure is not None or app.builder.format != "html":
        return
    for page in sorted(Path(app.outdir).rglob("*.html")):
        for found in FETCHED.finditer(page.read_text(encoding="utf-8")):
            log.warning("%s fetches from the network: %s", page.name, found[0][:200], type="selfcontained")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("config-inited", provide_scripts)
    app.connect("html-page-context", add_chart_scripts)
    app.connect("html-page-context", let_tables_scroll_by_keyboard)
    app.connect("html-page-context", drop_idle_files, priority=900)
    app.connect("build-finished", check_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
