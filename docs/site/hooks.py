"""Hooks of mkdocs.yml: pages that are made and not written (pages.py), links out of docs/, the playground and the references beside the
pages, scripts as files, and a check of every link."""

import hashlib
import html
import os
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import can_i_use
import links
from pages import KINDS, ROOT, described, page, posenc, structs

BUILT = {
    "play": ROOT / "build/site",
    "api/cpp": ROOT / "build/docs/html",
    "api/python": ROOT / "build/docs/python",
}


def command_page():
    top = posenc("--help").stdout
    names = [
        line.split()[0] for line in top.splitlines() if re.match(r"  [a-z-]+  ", line) and "posenc" not in line[:9]
    ]
    lines = [
        "# Every flag",
        "",
        "For someone who types `posenc`: every command with all of its flags, as `--help-all` prints them.",
        "",
        "```text",
        top.strip(),
        "```",
    ]
    for name in names:
        made = posenc(name, "--help-all")
        if made.returncode == 0:
            lines += ["", f"## posenc {name}", "", "```text", made.stdout.strip(), "```"]
    return "\n".join(lines)


def cpp_page():
    headers = sorted((ROOT / "include/posenc").glob("*.h"))
    lines = [
        "# C++ headers",
        "",
        "For someone who links the library: the public headers, whose comments are the manual.",
        "",
        '<a href="api/cpp/index.html">The reference, a page a header</a>'
        if BUILT["api/cpp"].is_dir()
        else "`make docs` makes the reference, a page a header; this site was built without it.",
        "",
        "| header | about |",
        "|---|---|",
    ]
    for header in headers:
        comment = re.match(r"(?://[^\n]*\n)+", header.read_text())
        text = " ".join(line.lstrip("/ ") for line in comment[0].splitlines()) if comment else ""
        first = re.split(r"(?<=[.:]) ", text)[0].replace("|", "\\|")
        lines.append(f"| `posenc/{header.name}` | {html.escape(first, quote=False)} |")
    return "\n".join(lines)


ARTICLE = """# Position, explained

For someone who wants to understand position from its beginning: an article with nine figures, one slider each. <a
href="play/index.html#/article">It has a page of its own, too.</a>

<iframe class="article" src="play/index.html?embed=1#/article" title="Position, explained"></iframe>
"""


def on_config(config):
    schemes, _ = described()
    config.extra["has_cpp"] = BUILT["api/cpp"].is_dir()
    config.watch += [str(ROOT / "docs")]
    reference = next(section["Reference"] for section in config.nav if "Reference" in section)
    pages = {
        title: [f"{kind}/{scheme['name']}.md" for scheme in schemes if scheme["kind"] == kind]
        for kind, title in KINDS.items()
    }
    reference[1:1] = [{title: names} for title, names in pages.items()]
    return config


def on_files(files, config):
    schemes, families = described()
    names = structs()

    def made(path, content):
        files.append(File.generated(config, path, content=content))

    for scheme in schemes:
        kind, name = scheme["kind"], scheme["name"]
        made(f"{kind}/{name}.md", page(scheme, names[name], families.get(name, "schemes.md")))
    made("flags.md", command_page())
    made("cpp.md", cpp_page())
    made("article.md", ARTICLE)
    made("can_i_use.md", can_i_use.page())
    javascript = (ROOT / "bindings/npm/README.md").read_text()
    title, rest = javascript.split("\n", 1)
    made("javascript.md", f"{title}\n\nFor someone who writes for Node or a browser.\n{rest}")
    made("stylesheets/posenc.css", (ROOT / "docs/site/site.css").read_text())
    made("javascripts/names.js", (ROOT / "docs/site/names.js").read_text())
    for picture in sorted((ROOT / "evidence/lab/results").glob("*.png")):
        path = f"evidence/lab/results/{picture.name}"
        files.append(File.generated(config, path, abs_src_path=str(picture)))
    return files


def title_of(path):
    """A page is named by its heading, where the repository names its file."""
    file = ROOT / path
    heading = re.match(r"# (.*)", file.read_text()) if file.is_file() else None
    return heading and heading[1]


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    if source in config.extra["whom"]:
        title, rest = markdown.split("\n", 1)
        markdown = f"{title}\n\n{config.extra['whom'][source]}\n\n{rest.lstrip()}"
    folder = Path("bindings/npm" if source == "javascript.md" else Path("docs") / Path(source).parent)

    def follow(match):
        text, target = match[1], match[2]
        if re.match(r"[a-z]+:|#|.* ", target):
            return match[0]
        path, _, anchor = target.partition("#")
        if text.endswith(".md"):
            text = title_of(os.path.normpath(folder / path)) or text
        at = os.path.normpath(folder / path)
        if at == "bindings/npm/README.md":
            return f"[{text}](javascript.md)"
        if at.startswith("evidence/lab/results/") and at.endswith(".png"):
            return f"[{text}]({at})"
        if source == "javascript.md" and at.startswith("docs/"):
            return f"[{text}]({at[5:]}{'#' + anchor if anchor else ''})"
        if at.startswith("docs/"):
            return f"[{text}]({target})"
        if not (ROOT / at).exists():
            raise PluginError(f"{source} links to {target}, which is not there")
        if config.extra["source"]:
            kind = "tree" if (ROOT / at).is_dir() else "blob"
            return f"[{text}]({config.extra['source']}/{kind}/main/{at}{'#' + anchor if anchor else ''})"
        return text if text.startswith("`") else f"`{text}`" if re.search(r"[/.]", text) else text

    def shown(match):
        if match[3] is None:
            return follow(match)
        return f"[{match[3]}]({os.path.normpath(folder / match[4])})"

    return links.replaced(markdown, shown)


def on_post_page(output, page, config):
    """Scripts of a page become files: `posenc serve` allows none within it. What the theme leaves without a name gets one, for
    those who listen to a page."""
    output = output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)
    output = output.replace("<th></th>", "<td></td>")

    def moved(match):
        attributes, text = match[1], match[2]
        if "src=" in attributes or "application/json" in attributes or not text.strip():
            return match[0]
        name = f"assets/inline/{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"
        target = Path(config.site_dir) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        up = "../" * page.file.dest_uri.count("/")
        return f'<script{attributes} src="{up}{name}"></script>'

    return re.sub(r"<script([^>]*)>(.*?)</script>", moved, output, flags=re.S)


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for key in ("src", "href"):
            if values.get(key) and tag != "a" and not (tag == "link" and values.get("rel") == "canonical"):
                self.loaded.append(values[key])


def on_post_build(config):
    """The playground and the references beside the pages; then every link leads somewhere, and nothing is fetched from afar."""
    site = Path(config.site_dir)
    for name, folder in BUILT.items():
        if folder.is_dir():
            shutil.copytree(folder, site / name, dirs_exist_ok=True)
    if not (site / "play/index.html").is_file():
        raise PluginError(f"there is no playground in {BUILT['play']}: make play builds it")
    # These want to know the site's address.
    for name in ("sitemap.xml", "sitemap.xml.gz", "404.html"):
        (site / name).unlink(missing_ok=True)
    pages = {}
    for path in site.rglob("*.html"):
        at = path.relative_to(site).as_posix()
        if not at.startswith(("play/", "api/")):
            pages[at] = Links()
            pages[at].feed(path.read_text())
    wrong = []
    for at, found in pages.items():
        for link in found.links + found.loaded:
            if re.match(r"(https?|mailto|data|javascript):|//", link):
                if link in found.loaded:
                    wrong.append(f"{at} loads {link}")
                continue
            path, _, anchor = link.partition("#")
            path = unquote(path.partition("?")[0])
            target = os.path.normpath(Path(at).parent / path) if path else at
            if target == "." or (site / target).is_dir():
                target = os.path.normpath(Path(target) / "index.html")
            if not (site / target).is_file():
                wrong.append(f"{at}: {link} leads nowhere")
            elif anchor and target in pages and unquote(anchor) not in pages[target].ids:
                wrong.append(f"{at}: {link} has no such place")
    if wrong:
        raise PluginError("\n".join(sorted(set(wrong))))
