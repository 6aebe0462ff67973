"""Values as pages of a notebook: tables and small drawings of numbers that the library gave."""

from __future__ import annotations

import html
import math

_escape = html.escape
_styles = {"error": "#b3261e", "warning": "#9a6700", "note": "#57606a"}


def _table(rows, head=()) -> str:
    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{cell}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + (row(head, "th") if head else "") + "".join(row(cells, "td") for cells in rows) + "</table>"


def _lines(curves, width=420, height=160, marks=()) -> str:
    """Curves [(name, colour, [(x, y)])] over a logarithmic y, with horizontal marks [(name, y)]."""
    points = [(x, y) for _, _, curve in curves for x, y in curve if y and math.isfinite(y)]
    if not points:
        return ""
    left, bottom, top = 52, 22, 8
    xs = [x for x, _ in points]
    ys = [y for _, y in points] + [y for _, y in marks]
    x0, x1 = min(xs), max(max(xs), min(xs) + 1)
    y0, y1 = math.log10(min(ys)), math.log10(max(ys))
    y1 = max(y1, y0 + 1e-9)

    def place(x, y):
        return (
            left + (x - x0) / (x1 - x0) * (width - left - 8),
            height - bottom - (math.log10(y) - y0) / (y1 - y0) * (height - bottom - top),
        )

    parts = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' font-size='10' "
             f"font-family='sans-serif' fill='currentColor'>"]  # fmt: skip
    for power in range(math.ceil(y0), math.floor(y1) + 1):
        _, y = place(x0, 10.0**power)
        parts.append(f"<text x='{left - 6}' y='{y + 3:.1f}' text-anchor='end'>{10.0**power:g}</text>")
    for name, at in marks:
        _, y = place(x0, at)
        parts.append(f"<line x1='{left}' x2='{width - 8}' y1='{y:.1f}' y2='{y:.1f}' stroke='#888' stroke-dasharray='4 3'/>"
                     f"<text x='{width - 10}' y='{y - 3:.1f}' text-anchor='end'>{_escape(name)}</text>")  # fmt: skip
    for i, (name, colour, curve) in enumerate(curves):
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (place(x, y) for x, y in curve if y and math.isfinite(y)))
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='1.5'/>"
                     f"<text x='{left + 4 + 110 * i}' y='{height - 6}' fill='{colour}'>{_escape(name)}</text>")  # fmt: skip
    return "".join(parts) + "</svg>"


def _wavelengths(frequencies):
    return [(pair, 2 * math.pi / abs(f)) for pair, f in enumerate(frequencies) if f]


# --- plans and values ---------------------------------------------------------------------------------------


def _facts(plan) -> list[tuple[str, str]]:
    facts = []
    if plan.rotates:
        facts += [
            ("rotates", f"channels {plan.first_dim} to {plan.first_dim + plan.rotary_dim - 1}"),
            ("pairing", plan.pairing),
            ("attention factor", f"{plan.attention_factor:g}"),
        ]
        if plan.axes > 1:
            facts.append(("position axes", str(plan.axes)))
        if plan.angles_of != "exact":
            facts.append(("angles", plan.angles_of))
    parts = plan.to_dict()
    facts += [(place, parts[place].get("kind", "by distance")) for place in ("add", "bias", "relative") if parts[place]]
    if plan.valid:
        first, last = plan.valid
        facts.append(("valid for", f"{first:,} to {last:,} tokens" if last else f"{first:,} tokens and more"))
    return facts or [("position", "none enters")]


def plan_text(plan) -> str:
    return "<posenc.Plan " + "; ".join(f"{name} {value}" for name, value in _facts(plan)) + ">"


def plan_html(plan) -> str:
    drawing = ""
    if plan.rotates and plan.axes == 1 and plan.frequency_heads == 1:
        drawing = _lines([("wavelength of each pair, tokens", "#0969da", _wavelengths(plan.inv_freq))])
    return _table((_escape(name), _escape(value)) for name, value in _facts(plan)) + drawing


def value_html(value) -> str:
    paper = f" (<a href='https://arxiv.org/abs/{value.paper}'>arXiv {value.paper}</a>)" if value.paper else ""
    return f"<b>{_escape(value.title)}</b>{paper}<br><code>{_escape(value.formula)}</code>" + _table(
        (f"<code>{_escape(name)}</code>", _escape(repr(field))) for name, field in value.fields().items()
    )


def _axes(ax):
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install matplotlib") from None
    return plt.subplots()[1] if ax is None else ax


def plot_plan(plan, kind="wavelengths", ax=None):
    ax = _axes(ax)
    if kind == "wavelengths":
        several = plan.inv_freq.ndim > 1
        for axis, frequencies in enumerate(plan.inv_freq.reshape(-1, plan.rotary_dim // 2)):
            pairs, lengths = zip(*_wavelengths(frequencies), strict=True)
            ax.semilogy(pairs, lengths, label=f"axis {axis % plan.axes}" if several else None)
        if several:
            ax.legend()
        ax.set_xlabel("pair")
        ax.set_ylabel("wavelength, tokens")
    elif kind == "bias":
        ax.plot(plan.bias([128], 129)[:, 0, ::-1].T)
        ax.set_xlabel("distance")
        ax.set_ylabel("added to the logit")
    else:
        from .errors import Error

        raise Error(
            f"plot: kind must be wavelengths or bias, got {kind}", "plot", "kind must be wavelengths or bias", kind
        )
    return ax


# --- explanations and findings --------------------------------------------------------------------------------


def plot_explanation(explanation, ax=None):
    """The wavelengths of each group of layers that rotates, dashed without the scaling, and the trained length."""
    ax, data = _axes(ax), explanation.to_dict()
    for index, group in enumerate(data["groups"]):
        pairs = [pair for pair in explanation.model.pairs(explanation._at, index) if pair[2] and pair[3]]
        if not pairs:
            continue
        (line,) = ax.semilogy(
            [pair[0] for pair in pairs], [pair[4] for pair in pairs], label=group["label"] or group["stack"]
        )
        if any(pair[2] != pair[3] for pair in pairs):
            unscaled = [2 * math.pi / pair[3] for pair in pairs]
            ax.semilogy(
                [pair[0] for pair in pairs], unscaled, "--", color=line.get_color(), label="without the scaling"
            )
    if data["trained_context"]:
        ax.axhline(data["trained_context"], color="gray", linestyle=":", label="trained length")
    ax.set(title=data["model"], xlabel="pair", ylabel="wavelength, tokens")
    ax.legend()
    return ax


def explanation_html(explanation) -> str:
    data = explanation.to_dict()
    parts = [f"<h4>{_escape(data['model'])}</h4>", *(f"<p>{_escape(words)}</p>" for words in data["words"])]
    for index, group in enumerate(data["groups"]):
        parts.append(f"<h5>{_escape(group['heading'])}</h5><ul>")
        parts += [f"<li>{_escape(words)}</li>" for words in group["words"]]
        parts.append("</ul>")
        pairs = explanation.model.pairs(explanation._at, index)
        if pairs:
            curves = [("as used, tokens", "#0969da", [(pair[0], pair[4]) for pair in pairs])]
            if any(pair[2] != pair[3] for pair in pairs):
                unscaled = _wavelengths([pair[3] for pair in pairs])
                curves.insert(0, ("without the scaling", "#bc4c00", unscaled))
            trained = data["trained_context"]
            parts.append(_lines(curves, marks=[(f"trained {trained:,}", trained)] if trained else ()))
    if data["warnings"]:
        parts.append(
            "<h5>Warnings</h5>"
            + _table((f"<code>{_escape(w['code'])}</code>", _escape(w["message"])) for w in data["warnings"])
        )
    return "".join(parts)


def report_html(report) -> str:
    findings = report.findings
    if findings:
        above = {"identify": report.facts, "doctor": lambda: report.verdict}.get(report._name)
        return (f"<pre>{_escape(above())}</pre>" if above else "") + _table(
            (
                (
                    f"<b style='color:{_styles[each.severity]}'>{each.severity}</b>",
                    f"<code>{_escape(each.code)}</code>",
                    _escape(each.expected or ""),
                    _escape(each.found or ""),
                    _escape(each.message) + (f"<br><i>{_escape(each.cure)}</i>" if each.cure else ""),
                )
                for each in findings
            ),
            ("", "code", "expected", "found", ""),
        )
    return f"<pre>{_escape(str(report))}</pre>"
