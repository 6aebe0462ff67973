"""What the site says of each scheme and scaling: made of `posenc schemes --json` and `posenc explain LINK`, never written by hand.
POSENC names the command (build/release/posenc)."""

import html
import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("POSENC", str(ROOT / "build/release/posenc"))
KINDS = {"scheme": "Schemes", "scaling": "Scalings", "content": "Content schemes"}


def posenc(*arguments):
    environment = {**os.environ, "COLUMNS": "96"}
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, env=environment)


def described():
    """What the library says of each scheme, and its row of schemes.md: what it acts on, and the page of its family."""
    listed = posenc("schemes", "--json")
    if listed.returncode:
        raise RuntimeError(f"{COMMAND} schemes --json: {listed.stderr}")
    rows = {}
    for line in (ROOT / "docs/schemes.md").read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) > 3 and re.fullmatch(r"`\w+`", cells[1]):
            link = re.search(r"\]\(([^)]*\.md[^)]*)\)", cells[-2])
            rows[cells[1].strip("`")] = link[1] if link else "schemes.md"
    return [one for one in json.loads(listed.stdout) if one.get("kind") in KINDS], rows


def structs():
    """C++ names, which Python has too, by the name of the scheme."""
    found = {}
    headers = ROOT / "include/posenc"
    for header in [headers / "scalings.h", headers / "content.h", *sorted((headers / "schemes").glob("*.h"))]:
        for struct, name in re.findall(
            r"^struct (\w+)[^;{]*\{(?:(?!^struct ).)*?\bname = \"(\w+)\"", header.read_text(), re.M | re.S
        ):
            found.setdefault(name, struct)
    return found


# Of pictures, or with tensors that come beside queries and keys: no panel draws them.
UNDRAWN = {
    "profiles", "transformer_xl", "grid_bias", "log_cpb", "decomposed", "axis_buckets", "fourier_features",
}  # fmt: skip


def figure(kind, name):
    """The view of the playground that shows it, and which of its figures."""
    if kind == "scaling":
        return f"extend?v=1&scaling={name}", 1
    if name in UNDRAWN:
        return None, 0
    if name in ("axial", "mixed"):
        return f"pictures?v=1&scheme={name}", 2 if name == "axial" else 3
    return f"compare?v=1&scheme={name}&with=nope", 1


def frame(view, number):
    source = html.escape(f"../play/index.html?embed=1&figure={number}#/{view}")
    return (
        f'<iframe src="{source}" title="the figure, alive" loading="lazy"></iframe>\n\n'
        f'<a href="{html.escape(f"../play/index.html#/{view}")}">The whole panel</a>'
    )


def formula(text):
    """f_r and b^(…) with their pieces below and above the line, as the playground writes them."""
    text = html.escape(text, quote=False)
    text = re.sub(r"_\{([^{}]*)\}", r"<sub>\1</sub>", text)
    text = re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", text)
    text = re.sub(r"(?<=[^\W\d_])_([^\W\d_]+|\d+)", r"<sub>\1</sub>", text)
    return re.sub(r"\^(?:\(((?:[^()]|\([^()]*\))*)\)|(\w))", r"<sup>\1\2</sup>", text)


def cell(value):
    if value in ("", None, []):
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text}`".replace("|", "\\|")


# What a scheme cannot do without, where it has no default.
GIVEN = {"factor": 4.0, "original_max_position_embeddings": 4096, "max_position_embeddings": 4096, "rows": 512}
LISTS = {
    "explicit": {"frequencies": [1.0, 0.01]},
    "longrope": {
        "short_factor": [1.0, 1.0],
        "long_factor": [1.0, 4.0],
        "original_max_position_embeddings": 4096,
        "factor": 4.0,
    },
}
MORE = {name: {"length": 1024} for name in ("kerple", "sandwich", "transformer_xl")} | {
    name: {"grid_height": 8, "grid_width": 8} for name in ("grid_bias", "log_cpb", "decomposed")
}


def example(scheme):
    """Its fields and a geometry, with which it compiles."""
    name = scheme["name"]
    fields = LISTS.get(name) or {
        field["name"]: GIVEN[field["name"]]
        for field in scheme["fields"]
        if field["name"] in GIVEN and (field["required"] or field["name"] == "factor") and name != "proportional"
    }
    return fields, {"width": 512, "heads": 8, "head_dim": 4 if name in LISTS else 64} | MORE.get(name, {})


def snippets(scheme, struct):
    """Lines of Python, C++ and JavaScript that compile it."""
    kind, name = scheme["kind"], scheme["name"]
    if kind == "content":
        return {"python": f"scheme = posenc.{struct}()", "cpp": f"posenc::{struct} scheme;"}
    fields, geometry = example(scheme)

    def braces(values):
        text = ", ".join(
            f".{key} = {json.dumps(value).replace('[', '{').replace(']', '}')}" for key, value in values.items()
        )
        return f"{{{text}}}"

    keywords = ", ".join(f"{key}={value}" for key, value in fields.items())
    value, inner, named = f"posenc.{struct}({keywords})", f"posenc::{struct}{braces(fields)}", {"type": name, **fields}
    if kind == "scaling":
        value = f"posenc.Rope(scaling={value})"
        inner = f"posenc::Rope{{.scaling = {inner}}}"
        named = {"type": "rope", "scaling": named}
    size = ", ".join(f"{key}={value}" for key, value in geometry.items())
    return {
        "python": f"plan = posenc.plan({value}, {size})",
        "cpp": f"auto plan = posenc::compile({inner}, {braces(geometry)});",
        "js": f"const plan = engine.plan({json.dumps(named)}, {json.dumps(geometry)})",
    }


def code(scheme, struct):
    blocks = {"sh": f"posenc schemes {scheme['name']}", **snippets(scheme, struct)}
    said = "\n\n".join(f"```{language}\n{text}\n```" for language, text in blocks.items())
    if scheme["kind"] == "content":
        said += "\n\nIts fields are members of it. It goes beside a plan: `attend()` of [c.md](../c.md) and [python.md](../python.md)."
    return said


def page(scheme, struct, family):
    kind, name, title = scheme["kind"], scheme["name"], scheme["title"]
    paper = scheme["paper"]
    what = {"scheme": "a scheme", "scaling": "a scaling of RoPE", "content": "a scheme that reads the content"}[kind]
    lines = [
        f"# {name}",
        "",
        f"For someone who looks up **{html.escape(title)}**, {what}: formula, figure, fields, code. What it is for, who uses it and "
        f"what goes wrong with it: [{family.split('#')[0]}](../{family}).",
        "",
        f'<p class="formula">{formula(scheme["formula"])}</p>',
        "",
    ]
    if scheme["aliases"]:
        lines += [f"Also named {', '.join(f'`{alias}`' for alias in scheme['aliases'])}.", ""]
    if paper:
        lines += [f"Paper: [arXiv {paper}](https://arxiv.org/abs/{paper}).", ""]
    view, number = figure(kind, name)
    lines += ["## Its figure", ""]
    lines += (
        [frame(view, number)]
        if view
        else ["No panel draws it: it takes positions or tensors that a line of text has not."]
    )
    if view:
        told = posenc("explain", f"#/{view}").stdout
        at = re.search(r"^layers? \S+: ", told, re.M)
        if at:
            lines += ["", "## Explained", "", f"`posenc explain '#/{view}'` says:", ""]
            lines += ["```text", told[at.start() :].strip(), "```"]
    fields = scheme["fields"]
    lines += ["", "## Fields", ""]
    if not fields:
        lines += ["None."]
    else:
        lines += ["| field | default | kind | what |", "|---|---|---|---|"]
        for field in fields:
            choices = ", ".join(field.get("choices") or [])
            also = f" Also {', '.join(f'`{a}`' for a in field['aliases'])}." if field["aliases"] else ""
            unit = f" [{field['unit']}]" if field.get("unit") else ""
            doc = html.escape(field["doc"], quote=False).replace("|", "\\|") + unit + "." + also
            lines.append(f"| `{field['name']}` | {cell(field['default'])} | {choices or field['kind']} | {doc} |")
    lines += ["", "## Code", "", code(scheme, struct), ""]
    return "\n".join(lines)
