"""The page "Can I use": every model that travels with the repository in every engine's profile, as `posenc diff MODEL --engines all` has it.

  docs/site/can_i_use.py [OUT.json]     what the page is made of, for other programs

POSENC names the command (build/release/posenc)."""

import html
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from pages import ROOT, posenc

MARKS = {"same": "✓", "note": "✓", "other": "≠", "refused": "✗", "no_class": "∅", "unknown": "?"}
TITLES = {
    "same": "the same rotation",
    "note": "the same, but for a note",
    "other": "another rotation",
    "refused": "the engine does not run the file",
    "no_class": "the engine has no class for the family",
    "unknown": "not known",
}


def models():
    found = {}
    for folder in ("models", "tests/data/zoo"):
        for path in sorted((ROOT / folder).glob("*.json")):
            if path.stem != "index" and not path.stem.startswith("broken"):
                found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def reports():
    """Reports from the field by engine: those rows of docs/reports.md that `posenc diff` shows."""
    by_engine = {}
    for line in (ROOT / "docs/reports.md").read_text().splitlines():
        _, report, what, shown, *_ = [*line.split("|"), "", "", "", ""]
        if "diff" in shown:
            for name, url in re.findall(r"\[([\w.-]+) \d+\]\((https://\S+?)\)", report):
                by_engine.setdefault(name.lower(), []).append((what.strip(), url))
    return by_engine


def outcome(findings):
    grave = [f for f in findings if f["severity"] != "note"]
    for code in ("refused", "no_class"):
        if any(f["code"] == code for f in findings):
            return code
    if grave:
        return "other"
    if any(f["code"] == "not_known" for f in findings):
        return "unknown"
    return "note" if findings else "same"


def row(name, path):
    ran = posenc("diff", str(path), "--engines", "all", "--json")
    if ran.returncode not in (0, 1):
        return None
    cells = []
    for each in json.loads(ran.stdout)["engines"]:
        found = each["findings"]
        findings = (
            [f for f in found if f["code"] == "no_class"] or [f for f in found if f["severity"] != "note"] or found
        )
        cells.append(
            {
                "engine": each["engine"],
                "version": each["version"],
                "outcome": outcome(found),
                "from": min((f["position"] for f in findings if f.get("position") is not None), default=None),
                "why": [f["message"] for f in findings],
                "cure": next((f["cure"] for f in findings if f["cure"]), None),
            }
        )
    return {"model": name, "engines": cells}


def table():
    """[{model, engines: [{engine, version, outcome, from, why, cure}]}] of all models that rotate."""
    with ThreadPoolExecutor(2) as pool:
        rows = pool.map(lambda item: row(*item), models().items())
    return [one for one in rows if one]


def changed(rows):
    """What one version of an engine reads otherwise than the next that has a profile."""
    lines = []
    for one in rows:
        for newer, older in pairwise(one["engines"]):
            if newer["engine"] == older["engine"] and newer["outcome"] != older["outcome"]:
                lines.append(
                    f"| {one['model']} | {older['engine']} {older['version']} → {newer['version']} | "
                    f"{TITLES[older['outcome']]} → {TITLES[newer['outcome']]} | {(older['why'] or newer['why'] or [''])[0]} |"
                )
    return lines


def page():
    rows, seen = table(), reports()
    engines = [(c["engine"], c["version"]) for c in rows[0]["engines"]]
    head = "".join(
        f"<th><span>{html.escape(name)}<br><small>{html.escape(version)}</small></span></th>"
        for name, version in engines
    )
    body, why = [], []
    for one in rows:
        cells = []
        for c in one["engines"]:
            text = "; ".join(c["why"][:1]) or TITLES[c["outcome"]]
            mark = MARKS[c["outcome"]] + (
                f"<small>{c['from']:,}</small>" if c["outcome"] == "other" and c["from"] else ""
            )
            link = (
                f'<a href="#{one["model"].replace(".", "")}">{mark}</a>'
                if c["outcome"] in ("other", "refused")
                else mark
            )
            title = html.escape(f"{c['engine']} {c['version']}: {text}")
            cells.append(f'<td class="use-{c["outcome"]}" title="{title}">{link}</td>')
        body.append(f"<tr><th>{html.escape(one['model'])}</th>{''.join(cells)}</tr>")
        grave = [c for c in one["engines"] if c["outcome"] in ("other", "refused")]
        lacking = [f"{c['engine']} {c['version']}" for c in one["engines"] if c["outcome"] == "no_class"]
        if grave:
            why.append(f"\n### {one['model']} {{#{one['model'].replace('.', '')}}}\n")
        for c in grave:
            why.append(
                f"- **{c['engine']} {c['version']}**: {'; '.join(c['why'])}"
                + (f". Cure: {c['cure']}" if c["cure"] else "")
            )
            for what, url in [r for r in seen.get(c["engine"], []) if one["model"].split("-")[0] in r[0].lower()][:2]:
                why[-1] += f" (reported: [{what}]({url}))"
        if grave and lacking:
            why.append(f"- No class for the family: {', '.join(lacking)}")
    versions = changed(rows)
    total = sum(len(one["engines"]) for one in rows)
    outcomes = [c["outcome"] for one in rows for c in one["engines"]]
    wrong, lacking = sum(o in ("other", "refused") for o in outcomes), outcomes.count("no_class")
    return "\n".join(
        [
            "# Can I use this model in that engine?",
            "",
            "For someone who chooses an engine for a model, or a model for an engine, and wants the position right.",
            "",
            f"{len(rows)} configurations in {len(engines)} engines, at the length that each file promises: in {total - wrong - lacking} of {total} cells the "
            f"engine's code computes what the file says, in {lacking} it has no class for the family. `posenc diff MODEL --engines all` makes a row of any file, `--at` for another length.",
            "",
            "✓ the same rotation · ≠ another one, with the position from which it shows · ✗ the engine does not run the file · ∅ it has no class for the family · ? not known. "
            "A cell with a link has its reason and cure below.",
            "",
            f'<div class="use"><table><thead><tr><th></th>{head}</tr></thead><tbody>',
            *body,
            "</tbody></table></div>",
            "",
            "Profiles are read in each engine's code and compared with it where it can run ([doctor.md](doctor.md)). Every red cell of an engine "
            "that runs without a GPU and comes by pip is what its own class does with the file, as `tests/peers/cells.py` shows; TGI, TensorRT-LLM, "
            "LightLLM, DeepSpeed and Ollama were read. Report cards of engines that answer by themselves are in [conformance.md](conformance.md).",
            "",
            "## What changed between versions",
            "",
            *(
                ["| model | engine | reading | what |", "|---|---|---|---|", *versions]
                if versions
                else ["Nothing among these models."]
            ),
            "",
            "## Why",
            *why,
            "",
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "can-i-use.json").write_text(
        json.dumps(table(), ensure_ascii=False, indent=1) + "\n"
    )
