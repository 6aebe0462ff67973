"""Models: where they may come from, what they say."""

import json
import subprocess
import sys

import pytest

import posenc

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 8192, "rope_theta": 500000.0, "vocab_size": 10,
    "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
                     "original_max_position_embeddings": 1024},
}  # fmt: skip


class Configuration:
    def to_dict(self):
        return CONFIG


class Module:
    config = Configuration()


def test_a_model_may_come_from_anywhere(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    sources = [
        tmp_path,
        tmp_path / "config.json",
        str(tmp_path),
        CONFIG,
        json.dumps(CONFIG),
        json.dumps(CONFIG).encode(),
        Configuration(),
        Module(),
    ]
    plans = [posenc.model(source).plan() for source in sources]
    assert all(plan == plans[0] for plan in plans)
    assert posenc.model(posenc.model(CONFIG)).plan() == posenc.plan(CONFIG) == plans[0]
    with pytest.raises(TypeError, match="a path, a bundled name, a dict"):
        posenc.model(3)
    with pytest.raises(posenc.Error, match="llama-3"):
        posenc.model("llama-3.1-8")


def test_what_a_model_says():
    model = posenc.model("gpt-oss-20b")
    assert model.family == "gpt_oss" and len(model.groups) == 2 and model.group_count == 2
    assert model.groups[0].provenance[0].origin in ("file", "derived", "family")
    assert model.schemes(0)[0].scaling.factor == 32
    with pytest.raises(posenc.Error, match="layer must be given where layers differ, got 2 groups"):
        model.plan()
    assert model.plan(layer=0) == model.plan(group=0)
    assert "gpt_oss" in repr(model) and "<svg" in model._repr_html_()


def test_explanations_are_the_commands():
    explained = posenc.explain("llama-3.1-8b", at=131072, layer=0)
    said = posenc.command("explain", "llama-3.1-8b", "--at", "131072", "--layer", "0")
    assert str(explained) == said.stdout and said.returncode == 0
    as_json = posenc.command("explain", "llama-3.1-8b", "--at", "131072", "--layer", "0", "--json").stdout
    assert json.loads(as_json) == explained.to_dict()
    assert explained.asked == 131072 and explained.groups[0].plan.rotate.rotary_dim == 128
    assert "llama" in str(posenc.explain(CONFIG)) and "<li>" in explained._repr_html_()


def test_engines_arithmetic():
    exact, rounded = (posenc.plan("llama-3.1-8b", angles=angles) for angles in ("exact", "hf_float"))
    assert exact != rounded and rounded.angles_of == "hf_float"
    with pytest.raises(posenc.Error, match="hf_float"):
        posenc.plan("llama-3.1-8b", angles="float")


def test_importing_needs_nothing_and_is_quick():
    script = "import sys, time; t = time.process_time(); import posenc; t = time.process_time() - t\n" + (
        "assert not {'numpy', 'torch', 'json', 'subprocess'} & set(sys.modules), set(sys.modules)\n"
        "print(t, posenc.plan(posenc.Rope(), head_dim=4).attention_factor)"
    )
    took = min(float(subprocess.check_output([sys.executable, "-c", script]).split()[0]) for _ in range(5))
    assert took < 0.06  # of the processor: what else runs has no part in it


def test_without_numpy_frequencies_are_an_array():
    script = (
        "import sys; sys.modules['numpy'] = None\nimport posenc, array\n"
        "f = posenc.plan(posenc.Rope(), head_dim=4).inv_freq\nassert isinstance(f, array.array) and list(f) == [1.0, 0.01], f"
    )
    subprocess.check_call([sys.executable, "-c", script])


def test_what_deserves_a_look_is_a_warning():
    written = {**CONFIG, "rope_scaling": {**CONFIG["rope_scaling"], "attn_factor": 1.0}}
    with pytest.warns(posenc.Warning) as warned:
        model = posenc.model(written)
    assert {each.message.code for each in warned} == {each.code for each in model.warnings}


DEEPSEEK = {
    "model_type": "deepseek_v32", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
}  # fmt: skip


def test_an_indexer_has_a_plan_of_its_own():
    model = posenc.model(DEEPSEEK)
    main, own = model.plan(), model.plan(part="indexer")
    assert (main.pairing, own.pairing) == ("interleaved", "halves")
    assert (own.first_dim, own.rotary_dim) == (0, 64) and (main.inv_freq == own.inv_freq).all()
    said = model.explain().groups[0].indexer
    assert said.heads == 64 and said.head_dim == 128 and said.picked.count == 2048
    assert said.cache_bytes_per_token == 2 * 128 * 2
    assert posenc.plan(DEEPSEEK, part="indexer") == own
    with pytest.raises(posenc.Error, match="must have an indexer"):
        posenc.model(CONFIG).plan(part="indexer")
    with pytest.raises(posenc.Error, match="attention or indexer"):
        model.plan(part="draft")
