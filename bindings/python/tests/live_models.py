"""Small random models of transformers, of every family that the tests run, and what is seen of them."""

import copy
import inspect

import pytest
import torch
import transformers

import posenc.hf as hf

torch.set_num_threads(1)  # of models as small as these, several cost more than they do
VERSION = tuple(map(int, transformers.__version__.split(".")[:2]))
V5 = VERSION >= (5, 0)
CACHE = (
    "cache" if VERSION >= (5, 24) else "past_key_values"
)  # the cache's name among arguments and in what a model gives
SIZES = dict(
    vocab_size=50, hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=16, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
SCALED = {"rope_parameters": {**YARN, "rope_theta": 1e6}} if V5 else {"rope_scaling": YARN, "rope_theta": 1e6}
# transformers 5.0 keeps the angles of a long text for the short one behind it, by a name that it mistakes.
KEPT = pytest.mark.skipif(VERSION == (5, 0), reason="transformers 5.0 keeps the angles of a long text")
# What each family needs besides.
FAMILIES = {
    "llama": {}, "mistral": {}, "qwen2": {}, "qwen3": {}, "gemma": {}, "gemma2": {}, "gemma3_text": dict(num_hidden_layers=6),
    "phi": {}, "phi3": {}, "olmo": {}, "olmo2": {}, "olmo3": dict(num_hidden_layers=4, rope_theta=5e5), "smollm3": dict(num_hidden_layers=4), "stablelm": {},
    "starcoder2": {}, "granite": {}, "cohere": {}, "cohere2": dict(num_hidden_layers=4), "glm": {}, "glm4": {},
    "mixtral": dict(num_local_experts=2), "qwen2_moe": dict(num_experts=2, num_experts_per_tok=1),
    "qwen3_moe": dict(num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16),
    "gpt_oss": dict(num_local_experts=2, num_experts_per_tok=1), "gpt_neox": dict(rotary_pct=0.25), "persimmon": {},
    "helium": {}, "nemotron": {}, "ernie4_5": {}, "hunyuan_v1_dense": {}, "seed_oss": {}, "exaone4": dict(num_hidden_layers=4),
    "arcee": {}, "apertus": {}, "bitnet": {}, "diffllama": {}, "olmoe": dict(num_experts=2, num_experts_per_tok=1),
    "granitemoe": dict(num_local_experts=2, num_experts_per_tok=1), "lfm2": dict(layer_types=["full_attention"] * 2),
    "dots1": dict(n_routed_experts=2, num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=16, first_k_dense_replace=2),
    "minimax": dict(num_local_experts=2, layer_types=["full_attention"] * 2),
    "deepseek_v3": dict(num_key_value_heads=4, head_dim=8, q_lora_rank=32, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=2,
                        num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=16, first_k_dense_replace=2),
}  # fmt: skip
# An indexer picks the keys.
PICKED = dict(num_key_value_heads=4, head_dim=8, q_lora_rank=32, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16,
              n_routed_experts=2, num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=16, index_n_heads=2,
              index_head_dim=12, index_topk=8)  # fmt: skip
INDEXED = {"deepseek_v32": PICKED, "glm_moe_dsa": PICKED}
# Those that look at pictures: positions of three axes.
SECTIONS = {"rope_type": "default", "type": "default", "mrope_section": [2, 3, 3]}
PICTURES = {
    "qwen2_vl": dict(depth=1, embed_dim=32, num_heads=2, hidden_size=64, mlp_ratio=1),
    "qwen2_5_vl": dict(depth=2, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64, fullatt_block_indexes=[1], window_size=28),
    "qwen3_vl": dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64, deepstack_visual_indexes=[0], num_position_embeddings=64),
}  # fmt: skip


def built(family, **more):
    torch.manual_seed(0)
    dtype = more.pop("dtype", torch.float32)
    # Configurations rewrite the dicts that they are given.
    said = copy.deepcopy({**SIZES, **{**FAMILIES, **INDEXED}[family], **more})
    config = transformers.AutoConfig.for_model(family, **said)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=dtype).eval()


def built_with_pictures(family):
    torch.manual_seed(0)
    said = {**SIZES, "rope_theta": 1e4}
    said["rope_parameters" if V5 else "rope_scaling"] = SECTIONS | ({"rope_theta": 1e4} if V5 else {})
    if family == "qwen3_vl" and V5:
        said["rope_parameters"] |= {"mrope_interleaved": True}
    elif family == "qwen3_vl":
        said["rope_scaling"] |= {"mrope_interleaved": True}
    tokens = dict(image_token_id=40, video_token_id=41, vision_start_token_id=42, vision_end_token_id=43)
    config = transformers.AutoConfig.for_model(family, text_config=said, vision_config=PICTURES[family], **tokens)
    model = transformers.AutoModelForImageTextToText.from_config(config, attn_implementation="eager")
    return model.float().eval()


def picture(model):
    """A prompt with a picture of 4 x 6 patches, which 2 x 3 tokens stand for."""
    vision = model.config.vision_config
    merge = vision.spatial_merge_size
    grid = torch.tensor([[1, 2 * merge, 3 * merge]])
    ids = torch.tensor([[3, 4, 42, *[40] * 6, 43, 5, 6, 7]])
    channels = getattr(vision, "in_channels", 3) * vision.temporal_patch_size * vision.patch_size**2
    inputs = dict(pixel_values=torch.randn(6 * merge**2, channels), image_grid_thw=grid)
    if "mm_token_type_ids" in inspect.signature(model.forward).parameters:
        inputs["mm_token_type_ids"] = (ids == 40).int()
    return ids, inputs


def prompt(tokens=24, batch=1):
    return torch.randint(3, 40, (batch, tokens), generator=torch.Generator().manual_seed(1))


def run(model, ids=None, **inputs):
    with torch.no_grad(), hf.capture(model, layers="all") as seen:
        out = model(prompt() if ids is None else ids, **inputs)
    return seen, out


def codes(seen, severity="error"):
    return {finding.code for finding in seen.check().findings if finding.severity == severity}
