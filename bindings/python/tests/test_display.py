"""Values as pages of a notebook, and drawn by matplotlib."""

import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import posenc


class Tags(HTMLParser):
    """Whether what is opened is closed, in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.names, self.text = [], set(), ""
        self.feed(page)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def identified(np):
    plan = posenc.plan(posenc.Rope(), head_dim=16)
    before = np.random.default_rng(1).standard_normal((2, 64, 16))
    return posenc.identify(plan.rotate(before), before=before)


LLAMA = "llama-3.1-8b"
# Each with a tag and a word that its page must have.
PAGES = {
    "scheme": (lambda np: posenc.Rope(theta=1e6), "code", "rope_theta"),
    "scaling": (lambda np: posenc.Yarn(factor=4), "code", "factor"),
    "content scheme": (lambda np: posenc.StickBreaking(), "code", "attend_current"),
    "plan that rotates": (lambda np: posenc.plan(posenc.Rope(), head_dim=64), "svg", "pairing"),
    "plan with a bias": (lambda np: posenc.plan(posenc.Alibi(), heads=4, head_dim=8), "table", "bias"),
    "plan of nothing": (lambda np: posenc.plan(posenc.NoPe(), head_dim=8), "table", "none enters"),
    "plan of two axes": (lambda np: posenc.plan(posenc.Axial(), head_dim=8), "table", "axes"),
    "model": (lambda np: posenc.model(LLAMA), "svg", "trained"),
    "explanation": (lambda np: posenc.explain(LLAMA, at=131072), "svg", "without the scaling"),
    "diff": (lambda np: posenc.diff(LLAMA, "qwen2.5-7b-yarn4"), "table", "rope_theta"),
    "diff of plans": (
        lambda np: posenc.model(LLAMA).plan().same_as(posenc.plan(posenc.Rope(), head_dim=128)), "table", "frequency",
    ),
    "lint": (lambda np: posenc.lint("qwen2.5-7b-yarn4"), "table", "code"),
    "translate": (lambda np: posenc.translate(LLAMA, "vllm"), "pre", "rope"),
    "extend": (lambda np: posenc.extend(LLAMA, 262144), "pre", "262"),
    "extend by training": (lambda np: posenc.extend(LLAMA, 262144, trained=131072, training=True), "pre", "262"),
    "identify": (identified, "pre", "halves"),
    "precision": (lambda np: posenc.precision(LLAMA), "pre", "pair"),
    "verify": (lambda np: posenc.verify("4b"), "pre", "4b"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_value_is_a_page(name, np):
    made, tag, word = PAGES[name]
    page = Tags(made(np)._repr_html_())
    assert tag in page.names and word in page.text


def test_a_picture_is_an_svg_by_itself():
    page = posenc.explain(LLAMA, at=131072)._repr_html_()
    picture = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    assert len(picture.findall("{http://www.w3.org/2000/svg}polyline")) == 2


def test_what_a_file_says_is_no_markup():
    config = {"model_type": "<script>alert(1)</script>", "hidden_size": 64, "num_attention_heads": 4}
    config |= {"num_hidden_layers": 2, "rope_theta": 1e4, "max_position_embeddings": 512}
    assert "<script" not in posenc.model(config)._repr_html_() + posenc.lint(config)._repr_html_()


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_wavelengths_are_drawn(pyplot, np):
    plan = posenc.model(LLAMA).plan()
    (line,) = plan.plot().lines
    assert np.allclose(line.get_ydata(), 2 * np.pi / plan.inv_freq)


def test_each_axis_has_a_curve(pyplot, np):
    plan = posenc.plan(posenc.Axial(), head_dim=16)
    axes = plan.plot()
    for line, row in zip(axes.lines, plan.inv_freq, strict=True):
        pairs = np.flatnonzero(row)
        assert (line.get_xdata() == pairs).all() and np.allclose(line.get_ydata(), 2 * np.pi / row[pairs])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["axis 0", "axis 1"]


def test_biases_are_drawn_by_distance(pyplot, np):
    plan = posenc.plan(posenc.Alibi(), heads=4, head_dim=8)
    lines = plan.plot("bias").lines
    slopes = np.asarray(plan.to_dict()["bias"]["slopes"])
    assert np.allclose([line.get_ydata()[10] for line in lines], -10 * slopes)


def test_a_model_is_drawn_as_used_and_without_its_scaling(pyplot, np):
    axes = posenc.model(LLAMA).plot()
    used, unscaled, trained = (line.get_ydata() for line in axes.lines)
    assert np.allclose(used, 2 * np.pi / posenc.model(LLAMA).plan().inv_freq)
    assert unscaled[0] == used[0] and unscaled[-1] == pytest.approx(used[-1] / 8) and trained[0] == 8192
    groups = posenc.explain("gpt-oss-20b").plot().get_legend().get_texts()
    assert "sliding" in " ".join(text.get_text() for text in groups)


def test_into_axes_that_are_there(pyplot):
    _, axes = pyplot.subplots()
    assert posenc.plan(posenc.Rope(), head_dim=8).plot(ax=axes) is axes


def test_another_kind_is_refused(pyplot):
    with pytest.raises(posenc.Error, match="kind must be wavelengths or bias, got heatmap"):
        posenc.plan(posenc.Rope(), head_dim=8).plot("heatmap")


def test_no_curve_where_nothing_rotates(pyplot):
    with pytest.raises(posenc.Error, match="the plan must rotate"):
        posenc.plan(posenc.Alibi(), heads=4, head_dim=8).plot()


def test_without_matplotlib_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        posenc.plan(posenc.Rope(), head_dim=8).plot()
