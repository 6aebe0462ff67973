"""Hugging Face transformers: of a configuration what the family's own model does to the keys of a layer (tests/peers/hugging_face.py
runs it without weights), and the functions that its models share."""

import contextlib
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "peers"))
with contextlib.redirect_stdout(sys.stderr):
    import hugging_face
    from protocol import refuse, serve
    from transformers import LlamaConfig, masking_utils
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.cohere import modeling_cohere
    from transformers.models.gemma2 import modeling_gemma2
    from transformers.models.gpt_oss import modeling_gpt_oss
    from transformers.models.llama import modeling_llama
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLModel
    from transformers.models.roberta.modeling_roberta import RobertaEmbeddings
    from transformers.models.t5.modeling_t5 import T5Attention
    from transformers.models.whisper.modeling_whisper import sinusoids


def rotation(asked):
    refuse(
        "kv_lora_rank" not in asked["config"] or "q" not in asked,
        "channels change places before they rotate, which the probe does not see",
    )
    try:
        layers = hugging_face.run(asked["config"], asked.get("length"))
    except hugging_face.Refused as why:
        refuse(False, str(why))
    refuse(asked["layer"] < len(layers), "the probe lists the layers with attention alone")
    found = layers[asked["layer"]]["rotation"]
    refuse(found != "unknown", "a rotation that the probe does not see")
    return found


def frequencies(asked):
    found = rotation(asked)
    return {"inv_freq": found["inv_freq"], "attention_factor": found["attention_factor"]}


def model(asked):
    """The rotation that the model's own keys show, on the queries and keys of the test."""
    refuse(not isinstance(asked["positions"][0], list), "the probe has positions of one axis")
    found, out = rotation(asked), {}
    for name in ("q", "k"):
        x = torch.tensor(asked[name], dtype=torch.float64)
        out[name] = x.clone()
        if not found:
            continue
        first, dim = found["first_dim"], found["rotary_dim"]
        halves = found["pairing"] == "halves"
        a = slice(first, first + dim // 2) if halves else slice(first, first + dim, 2)
        b = slice(first + dim // 2, first + dim) if halves else slice(first + 1, first + dim, 2)
        angle = torch.tensor(asked["positions"], dtype=torch.float64)[:, None, None] * torch.tensor(found["inv_freq"])
        cos, sin = angle.cos() * found["attention_factor"], angle.sin() * found["attention_factor"]
        out[name][..., a] = x[..., a] * cos - x[..., b] * sin
        out[name][..., b] = x[..., b] * cos + x[..., a] * sin
    return out


def tables(module, asked):
    inv_freq = torch.tensor(asked["inv_freq"], dtype=torch.float32)
    rotary = module(LlamaConfig(hidden_size=4 * len(inv_freq), num_attention_heads=2))
    rotary.inv_freq, rotary.attention_scaling = inv_freq, asked["attention_factor"]
    return rotary(torch.zeros(1), torch.tensor([asked["positions"]]))


def cos_sin(asked):
    cos, sin = tables(modeling_llama.LlamaRotaryEmbedding, asked)
    half = len(asked["inv_freq"])
    return {"cos": cos[0, :, :half], "sin": sin[0, :, :half]}


def rotate(asked):
    refuse("axis_of_pair" not in asked, "one axis alone: M-RoPE is each family's own")
    module = modeling_llama if asked["pairing"] == "halves" else modeling_cohere
    kind = module.LlamaRotaryEmbedding if module is modeling_llama else module.CohereRotaryEmbedding
    cos, sin = tables(kind, asked)
    first, end = asked["first_dim"], asked["first_dim"] + asked["rotary_dim"]
    whole = [torch.tensor(asked[name], dtype=torch.float32).transpose(0, 1)[None] for name in ("q", "k")]
    turned = module.apply_rotary_pos_emb(*(x[..., first:end] for x in whole), cos, sin)
    for x, y in zip(whole, turned, strict=False):
        x[..., first:end] = y
    return {name: x[0].transpose(0, 1) for name, x in zip(("q", "k"), whole, strict=False)}


def positions(asked):
    if "padding_idx" in asked:
        return {
            "positions": RobertaEmbeddings.create_position_ids_from_input_ids(
                torch.tensor(asked["input_ids"]), asked["padding_idx"]
            )
        }
    refuse("image_grid_thw" in asked, "position ids of text are the caller's")
    tokens = torch.tensor([asked["input_ids"]])
    config = SimpleNamespace(
        vision_config=SimpleNamespace(spatial_merge_size=asked["spatial_merge_size"]),
        image_token_id=asked["image_token_id"],
    )
    self = SimpleNamespace(config=config)
    self.get_vision_position_ids = Qwen2VLModel.get_vision_position_ids.__get__(self)
    ids, _ = Qwen2VLModel.get_rope_index(
        self, tokens, (tokens == asked["image_token_id"]).int(), torch.tensor(asked["image_grid_thw"])
    )
    return {"positions": ids[:, 0]}


def bias(asked):
    if asked["kind"] == "t5":
        relative = torch.tensor(asked["relative_positions"])
        return {
            "buckets": T5Attention._relative_position_bucket(
                relative, asked["bidirectional"], asked["num_buckets"], asked["max_distance"]
            )
        }
    refuse("local_heads" not in asked, "heads are not shared out here")
    keys = len(asked.get("keys", [0, 1]))
    by_key = build_alibi_tensor(torch.ones(1, keys), asked["heads"], torch.float32)[
        :, 0
    ]  # slope·key: a constant apart from the bias
    if "queries" not in asked:
        return {"slopes": by_key[:, 1]}
    return {"bias": torch.stack([by_key - by_key[:, q, None] for q in asked["queries"]], dim=1)}


def mask(asked):
    refuse("sink_tokens" not in asked, "sink tokens are StreamingLLM's")
    rules = [masking_utils.causal_mask_function]
    if "window" in asked:
        rules.append(masking_utils.sliding_window_overlay(asked["window"]))
    if "chunk" in asked:
        rules.append(masking_utils.chunked_overlay(asked["chunk"], torch.zeros(1, dtype=torch.int64)))
    if "cu_seqlens" in asked:
        bounds = asked["cu_seqlens"]
        rules.append(
            masking_utils.packed_sequence_mask_function(
                torch.tensor([[i for i, (a, b) in enumerate(itertools.pairwise(bounds)) for _ in range(b - a)]])
            )
        )
    if "keep" in asked:
        rules.append(masking_utils.padding_mask_function(torch.tensor([asked["keep"]]).bool()))
    sees, first = masking_utils.and_masks(*rules), asked["keys"] - asked["queries"]
    numbers = [torch.tensor(i) for i in range(asked["keys"])]
    return {
        "visible": [
            [int(torch.tensor(True) & sees(0, 0, numbers[first + q], k)) for k in numbers]
            for q in range(asked["queries"])
        ]
    }


def scores(asked):
    refuse("temperature" not in asked, "temperature is Llama 4's own")
    q, k = torch.tensor(asked["q"])[None, None], torch.tensor(asked["k"])[None, None]
    queries, keys = q.shape[2], k.shape[2]
    hidden = torch.full((queries, keys), -torch.inf).triu(keys - queries + 1)[None, None]
    module = SimpleNamespace(num_key_value_groups=1, training=False, head_dim=asked["head_dim"])
    if "sink" in asked:
        module.sinks = torch.tensor([asked["sink"]])
        _, made = modeling_gpt_oss.eager_attention_forward(module, q, k, k, hidden, asked["scale"])
    else:
        _, made = modeling_gemma2.eager_attention_forward(
            module, q, k, k, hidden, scaling=asked["scale"], softcap=asked.get("softcap")
        )
    return {"probabilities": made[0, 0]}


def added(asked):
    refuse(asked["layout"] == "concatenated", "sines and cosines stand in halves")
    most = max(asked["positions"]) + 1
    if asked["spacing"] == "ends":
        return {"vectors": sinusoids(most, asked["width"], asked["base"])[asked["positions"]]}
    refuse(asked["base"] == 10000, "base 10000 alone")
    return {"vectors": MarianSinusoidalPositionalEmbedding(most, asked["width"]).create_weight()[asked["positions"]]}


serve(
    "transformers",
    {
        "frequencies": frequencies,
        "model": model,
        "cos_sin": cos_sin,
        "rotate": rotate,
        "positions": positions,
        "bias": bias,
        "mask": mask,
        "scores": scores,
        "added": added,
    },
)
