#!/usr/bin/env python3
"""Attention whose logits a table by distance adds to, by families' own modules of transformers with random weights, in double
where they let it: what went into the softmax and what came out, recorded in tests/data/golden/tables.json.

  tests/peers/tables.py > tests/data/golden/tables.json
"""

import json
import math
import os
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from transformers.models.beit import configuration_beit, modeling_beit
from transformers.models.bros import configuration_bros, modeling_bros
from transformers.models.clvp import configuration_clvp, modeling_clvp
from transformers.models.fastspeech2_conformer import configuration_fastspeech2_conformer, modeling_fastspeech2_conformer
from transformers.models.inkling import configuration_inkling, modeling_inkling
from transformers.models.layoutlmv2 import configuration_layoutlmv2, modeling_layoutlmv2
from transformers.models.layoutlmv3 import configuration_layoutlmv3, modeling_layoutlmv3
from transformers.models.levit import modeling_levit
from transformers.models.parakeet import configuration_parakeet, modeling_parakeet
from transformers.models.phi4_multimodal import configuration_phi4_multimodal, modeling_phi4_multimodal
from transformers.models.qwen2_5_omni import configuration_qwen2_5_omni, modeling_qwen2_5_omni
from transformers.models.roformer import configuration_roformer, modeling_roformer
from transformers.models.sam import configuration_sam, modeling_sam
from transformers.models.sam3 import configuration_sam3, modeling_sam3
from transformers.models.seamless_m4t import configuration_seamless_m4t, modeling_seamless_m4t
from transformers.models.swin import configuration_swin, modeling_swin
from transformers.models.swinv2 import configuration_swinv2, modeling_swinv2
from transformers.models.udop import configuration_udop, modeling_udop
from transformers.models.vits import configuration_vits, modeling_vits
from transformers.models.wav2vec2_bert import configuration_wav2vec2_bert, modeling_wav2vec2_bert
from transformers.models.wavlm import modeling_wavlm
from transformers.models.xlnet import configuration_xlnet, modeling_xlnet

torch.set_default_dtype(torch.float64)

HEADS, TOKENS, HEAD_DIM = 2, 7, 4
WIDTH = HEADS * HEAD_DIM


def random(*shape):
    """Numbers of few digits."""
    return torch.randn(*shape).to(torch.bfloat16).to(torch.float64)


def randomized(module):
    module = module.double().eval()
    with torch.no_grad():
        for each in module.parameters():
            each.copy_(random(*each.shape) * 0.5)
    return module


def tensor(x):
    return {"shape": list(x.shape), "values": [float(f"{v:.9g}") for v in x.detach().double().flatten().tolist()]}


def record(model, scheme, tables, q, k, v, out, **more):
    """q, k, v, out [batch, heads, tokens, channels]."""
    return {
        "model": model,
        "scheme": scheme,
        "tables": {name: tensor(x) for name, x in tables.items()},
        **{name: tensor(x) for name, x in {"q": q, "k": k, "v": v, "out": out}.items()},
        **{name: tensor(x) if torch.is_tensor(x) else x for name, x in more.items()},
    }


def heads_of(x, heads=HEADS):
    return x.view(*x.shape[:-1], heads, -1).transpose(1, 2)


def attended(out, heads=HEADS):
    """[batch, tokens, heads · channels], what a layer hands to its last projection."""
    return heads_of(out, heads)


def inkling():
    """A window of 3 with as many distances, and a full layer with its temperature from position 2 on."""
    kv_heads = 1
    config = configuration_inkling.InklingTextConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, num_key_value_heads=kv_heads, head_dim=HEAD_DIM,
        swa_num_attention_heads=HEADS, swa_num_key_value_heads=kv_heads, swa_head_dim=HEAD_DIM, sliding_window_size=3,
        d_rel=3, rel_extent=5, layer_types=["hybrid_sliding", "hybrid"], log_scaling_n_floor=2,
    )  # fmt: skip
    config._attn_implementation = "eager"
    for layer, window in ((0, 3), (1, 0)):
        module = randomized(modeling_inkling.InklingAttention(config, layer))
        module.o_proj = torch.nn.Identity()
        hidden = random(1, TOKENS, WIDTH)
        at = torch.arange(TOKENS)
        away = at[:, None] - at[None]
        seen = (away >= 0) & (away < (window or TOKENS))
        mask = torch.zeros(TOKENS, TOKENS).masked_fill(~seen, float("-inf"))[None, None]
        caught = {}

        def catch(module, q, k, v, mask, **more):
            caught.update(q=q, k=k, v=v)
            return modeling_inkling.eager_attention_forward(module, q, k, v, mask, **more)

        transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS["caught"] = catch
        config._attn_implementation = "caught"
        out, _ = module(hidden, mask)
        q = caught["q"]
        extent = window or 5
        logits = {"multiplier": HEAD_DIM**-0.5}
        if not window:
            tau = 1 + 0.1 * torch.log(torch.clamp((at + 1) / 2, min=1))
            q = q / tau[:, None]  # the plan's own
            logits |= {"temperature": "log", "beta": 0.1, "floor": 2, "offset": 1}
        yield record(
            "Inkling", {"type": "profiles", "profiles": 3, "extent": extent}, {"table": module.rel_logits_proj.proj},
            q, caught["k"], caught["v"], attended(out), causal=True, window=window, logits=logits,
            query_profiles=heads_of(module.r_proj(hidden)),
        )


def wavlm():
    module = randomized(modeling_wavlm.WavLMAttention(WIDTH, HEADS, num_buckets=8, max_distance=6))
    module.out_proj.weight.data, module.out_proj.bias.data = torch.eye(WIDTH), torch.zeros(WIDTH)
    hidden = random(1, TOKENS, WIDTH)
    out, _, _ = module(hidden)
    gated = heads_of(hidden)
    a, b = torch.sigmoid(module.gru_rel_pos_linear(gated).view(*gated.shape[:-1], 2, 4).sum(-1)).chunk(2, -1)
    yield record(
        "WavLM",
        {"type": "profiles", "curves": "buckets", "profiles": 1, "num_buckets": 8, "max_distance": 6},
        {"table": module.rel_attn_embed.weight},
        *(heads_of(each(hidden)) for each in (module.q_proj, module.k_proj, module.v_proj)),
        attended(out), query_profiles=a * (b * module.gru_rel_pos_const - 1) + 2,
    )


def xlnet():
    config = configuration_xlnet.XLNetConfig(d_model=WIDTH, n_head=HEADS, d_inner=8, n_layer=1, vocab_size=4)
    module = randomized(modeling_xlnet.XLNetRelativeAttention(config))
    model = modeling_xlnet.XLNetModel(config)
    hidden = random(TOKENS, 1, WIDTH)
    r = model.relative_positional_encoding(TOKENS, TOKENS, bsz=1).double()
    q, k, v, by = (torch.einsum("ibh,hnd->ibnd", x, w) for x, w in ((hidden, module.q), (hidden, module.k), (hidden, module.v), (r, module.r)))
    out = module.rel_attn_core(q, k, v, by)
    yield record(
        "XLNet",
        {"type": "transformer_xl", "layout": "concatenated"},
        {
            "projection": module.r.permute(1, 2, 0).reshape(WIDTH, WIDTH),
            "content_bias": module.r_w_bias,
            "position_bias": module.r_r_bias,
        },
        *(x.permute(1, 2, 0, 3) for x in (q, k, v, out)),
    )


def parakeet():
    config = configuration_parakeet.ParakeetEncoderConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, num_key_value_heads=HEADS, num_hidden_layers=1, intermediate_size=8
    )
    config._attn_implementation = "eager"
    module = randomized(modeling_parakeet.ParakeetEncoderAttention(config, 0))
    module.o_proj = torch.nn.Identity()
    hidden = random(1, TOKENS, WIDTH)
    out, _ = module(hidden, modeling_parakeet.ParakeetEncoderRelPositionalEncoding(config)(hidden))
    yield record(
        "Parakeet",
        {"type": "transformer_xl", "layout": "interleaved"},
        {"projection": module.relative_k_proj.weight, "content_bias": module.bias_u, "position_bias": module.bias_v},
        *(heads_of(each(hidden)) for each in (module.q_proj, module.k_proj, module.v_proj)),
        attended(out),
    )


def fastspeech2():
    config = configuration_fastspeech2_conformer.FastSpeech2ConformerConfig(
        hidden_size=WIDTH, encoder_num_attention_heads=HEADS, decoder_num_attention_heads=HEADS
    )
    part = config.encoder_config
    module = randomized(modeling_fastspeech2_conformer.FastSpeech2ConformerAttention(config, part))
    module.linear_out = torch.nn.Identity()
    hidden = random(1, TOKENS, WIDTH)
    _, places = modeling_fastspeech2_conformer.FastSpeech2ConformerRelPositionalEncoding(config, part).eval()(hidden)
    out, _ = module(hidden, pos_emb=places.double())
    yield record(
        "FastSpeech 2 Conformer",
        {"type": "transformer_xl", "layout": "interleaved"},
        {"projection": module.linear_pos.weight, "content_bias": module.pos_bias_u, "position_bias": module.pos_bias_v},
        *(heads_of(each(hidden)) for each in (module.linear_q, module.linear_k, module.linear_v)),
        attended(out),
    )


def seamless():
    config = configuration_seamless_m4t.SeamlessM4TConfig(hidden_size=WIDTH, speech_encoder_attention_heads=HEADS)
    config._attn_implementation = "eager"
    module = randomized(modeling_seamless_m4t.SeamlessM4TConformerSelfAttention(config))
    module.linear_out = torch.nn.Identity()
    hidden = random(1, TOKENS, WIDTH)
    places = modeling_seamless_m4t.SeamlessM4TConformerRelPositionalEmbedding(config)(hidden)
    out, _ = module(hidden, relative_position_embeddings=places.double())
    yield record(
        "Seamless M4T",
        {"type": "transformer_xl", "layout": "interleaved"},
        {"projection": module.linear_pos.weight, "content_bias": module.pos_bias_u, "position_bias": module.pos_bias_v},
        *(heads_of(each(hidden)) for each in (module.linear_q, module.linear_k, module.linear_v)),
        attended(out),
    )


def wav2vec2_bert():
    config = configuration_wav2vec2_bert.Wav2Vec2BertConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, position_embeddings_type="relative_key",
        left_max_position_embeddings=4, right_max_position_embeddings=2,
    )  # fmt: skip
    config._attn_implementation = "eager"
    module = randomized(modeling_wav2vec2_bert.Wav2Vec2BertSelfAttention(config))
    module.linear_out = torch.nn.Identity()
    hidden = random(1, TOKENS, WIDTH)
    out, _ = module(hidden)
    yield record(
        "Wav2Vec2-BERT",
        {"type": "shaw", "max_distance": 4, "max_ahead": 2, "use_values": False},
        {"key": module.distance_embedding.weight},
        *(heads_of(each(hidden)) for each in (module.linear_q, module.linear_k, module.linear_v)),
        attended(out),
    )


def vits():
    """Seven tokens, of whose distances those beyond 2 have no vectors."""
    config = configuration_vits.VitsConfig(hidden_size=WIDTH, num_attention_heads=HEADS, window_size=2)
    module = randomized(modeling_vits.VitsAttention(config))
    module.out_proj = torch.nn.Identity()
    hidden = random(1, TOKENS, WIDTH)
    out, _ = module(hidden)
    yield record(
        "VITS", {"type": "shaw", "max_distance": 2, "zero_beyond": True},
        {"key": module.emb_rel_k[0], "value": module.emb_rel_v[0]},
        *(heads_of(each(hidden)) for each in (module.q_proj, module.k_proj, module.v_proj)), attended(out),
    )  # fmt: skip


# --- rotations that no reading of keys shows ------------------------------------------------------------


def clvp():
    """Of 40 channels 32 rotate, those of values too."""
    config = configuration_clvp.ClvpEncoderConfig(hidden_size=80, num_attention_heads=HEADS, projection_dim=128)
    module = randomized(modeling_clvp.ClvpSelfAttention(config))
    module.out_proj = torch.nn.Identity()
    hidden = random(1, TOKENS, 80)
    angles = modeling_clvp.ClvpRotaryPositionalEmbedding(config).double()(hidden)
    out, _ = module(hidden, angles, position_ids=torch.arange(TOKENS)[None])
    yield record(
        "CLVP", {"type": "rope", "rotary_dim": 32, "rotate_values": True, "values_stay": True}, {},
        *(heads_of(each(hidden)) for each in (module.q_proj, module.k_proj, module.v_proj)), attended(out),
    )  # fmt: skip


def roformer():
    config = configuration_roformer.RoFormerConfig(hidden_size=WIDTH, num_attention_heads=HEADS, rotary_value=True)
    module = randomized(modeling_roformer.RoFormerSelfAttention(config))
    hidden = random(1, TOKENS, WIDTH)
    angles = torch.arange(TOKENS)[:, None] * 10000.0 ** (-2 * torch.arange(HEAD_DIM // 2) / HEAD_DIM)
    out = module(hidden, sinusoidal_pos=torch.cat([angles.sin(), angles.cos()], -1)[None, None])[0]
    yield record(
        "RoFormer", {"type": "rope", "pairing": "interleaved", "rotate_values": True, "values_stay": True}, {},
        *(heads_of(each(hidden)) for each in (module.query, module.key, module.value)), attended(out),
    )  # fmt: skip


def omni():
    """Qwen2.5-Omni's writer of spectra: the first of two heads rotates. One block, which all tokens see."""
    config = configuration_qwen2_5_omni.Qwen2_5OmniDiTConfig(hidden_size=WIDTH, num_attention_heads=HEADS, head_dim=HEAD_DIM)
    config._attn_implementation = "sdpa"
    module = randomized(modeling_qwen2_5_omni.DiTAttention(config))
    module.to_out = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Identity()])
    hidden = random(1, TOKENS, WIDTH)
    rotary = modeling_qwen2_5_omni.Qwen2_5OmniDiTRotaryEmbedding(config).double()
    out = module(hidden, rotary(hidden, torch.arange(TOKENS)[None]))
    yield record(
        "Qwen2.5-Omni", {"type": "rope", "pairing": "interleaved", "rotated_heads": 1}, {},
        *(heads_of(each(hidden)) for each in (module.to_q, module.to_k, module.to_v)), attended(out),
    )  # fmt: skip


def bros():
    """q . W s(b_j - b_i), s the sines and cosines of how eight coordinates of two boxes differ, is a rotation by eight axes: of
    W^T q, whose number for a cosine stands before that for the sine, and of a key that is (1, 0) in each pair. Both stand before the
    head's own channels; the scale is that of the latter. Coordinates are in thousandths of a page, in the model in hundredths."""
    config = configuration_bros.BrosConfig(hidden_size=128, num_attention_heads=HEADS)
    module = randomized(modeling_bros.BrosSelfAttention(config))
    boxes = randomized(modeling_bros.BrosBboxEmbeddings(config))
    ids = torch.randint(0, 1000, (8, 1, TOKENS))
    hidden = random(1, TOKENS, 128)
    out = module(hidden, boxes(ids.permute(1, 2, 0) / 1000 * config.bbox_scale))[0]
    q, k, v = (heads_of(each(hidden)) for each in (module.query, module.key, module.value))
    each = config.dim_bbox_sinusoid_emb_1d
    sines, cosines = (q @ boxes.bbox_projection.weight).view(1, HEADS, TOKENS, 8, 2, each // 2).unbind(-2)
    turned = torch.stack([cosines, sines], -1).flatten(-3)
    still = torch.tensor([1.0, 0.0]).repeat(turned.shape[-1] // 2).expand_as(turned)
    yield record(
        "BROS", {"type": "axial", "rope_theta": 10000, "axes_dim": [each] * 8, "position_scale": [config.bbox_scale / 1000]}, {},
        torch.cat([turned, q], -1), torch.cat([still, k], -1), v, attended(out), positions=ids,
        logits={"multiplier": ((turned.shape[-1] + q.shape[-1]) / q.shape[-1]) ** 0.5},
    )  # fmt: skip


def phi4_audio():
    """The bias by its own module; attention around it is the plain one."""
    config = configuration_phi4_multimodal.Phi4MultimodalAudioConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, bias_max_distance=3, bias_symmetric=False
    )
    module = randomized(modeling_phi4_multimodal.Phi4MultimodalAudioRelativeAttentionBias(config))
    q, k, v = (random(1, HEADS, TOKENS, HEAD_DIM) for _ in range(3))
    weights = torch.softmax(q @ k.transpose(-1, -2) * HEAD_DIM**-0.5 + module(random(1, TOKENS, WIDTH)), -1)
    yield record(
        "Phi-4-multimodal", {"type": "clipped_bias", "left": 3, "right": 2}, {"table": module.bias_values.weight},
        q, k, v, weights @ v,
    )  # fmt: skip


# --- pages ---------------------------------------------------------------------------------------------


def page():
    """Positions in the text and boxes in thousandths, of two sequences."""
    boxes = torch.randint(0, 500, (2, TOKENS, 4))
    boxes[..., 2:] += boxes[..., :2]
    return torch.stack([torch.arange(TOKENS), torch.arange(TOKENS) * 30 + 2]), boxes


def layoutlmv2():
    """In float, as its mask is."""
    config = configuration_layoutlmv2.LayoutLMv2Config(
        hidden_size=WIDTH, num_attention_heads=HEADS, num_hidden_layers=1, fast_qkv=False, convert_sync_batchnorm=False,
    )  # fmt: skip
    encoder = randomized(modeling_layoutlmv2.LayoutLMv2Encoder(config))
    module = encoder.float().layer[0].attention.self
    hidden, (text, boxes) = random(2, TOKENS, WIDTH).float(), page()
    out, _ = module(
        hidden, torch.zeros(2, 1, 1, TOKENS), rel_pos=encoder._calculate_1d_position_embeddings(text),
        rel_2d_pos=encoder._calculate_2d_position_embeddings(boxes),
    )  # fmt: skip
    yield record(
        "LayoutLM v2", {"type": "axis_buckets", "divided": False},
        {"table": encoder.rel_pos_bias.weight.T,
         "axis_tables": torch.stack([encoder.rel_pos_x_bias.weight.T, encoder.rel_pos_y_bias.weight.T])},
        *(heads_of(each) for each in module.compute_qkv(hidden)), attended(out),
        positions=torch.stack([text, boxes[..., 0], boxes[..., 3]]),
    )  # fmt: skip


def layoutlmv3():
    config = configuration_layoutlmv3.LayoutLMv3Config(hidden_size=WIDTH, num_attention_heads=HEADS, num_hidden_layers=1)
    encoder = randomized(modeling_layoutlmv3.LayoutLMv3Encoder(config))
    module = encoder.layer[0].attention.self
    hidden, (text, boxes) = random(2, TOKENS, WIDTH), page()
    if hasattr(encoder, "_compute_position_bias"):  # transformers 5.24: the sum, already divided
        biases = {"position_bias": encoder._compute_position_bias(text, boxes)}
    else:
        biases = {"rel_pos": encoder._cal_1d_pos_emb(text), "rel_2d_pos": encoder._cal_2d_pos_emb(boxes)}
    out = module(hidden, None, **biases)[0]
    assert not torch.allclose(out, module(hidden, None)[0]), "the module passes over its biases"
    yield record(
        "LayoutLM v3", {"type": "axis_buckets"},
        {"table": encoder.rel_pos_bias.weight.T,
         "axis_tables": torch.stack([encoder.rel_pos_x_bias.weight.T, encoder.rel_pos_y_bias.weight.T])},
        *(heads_of(each(hidden)) for each in (module.query, module.key, module.value)), attended(out),
        positions=torch.stack([text, boxes[..., 0], boxes[..., 3]]),
    )  # fmt: skip


def udop():
    """Middles of boxes, none a whole number of hundredths from another, where float32 would cut either way."""
    config = configuration_udop.UdopConfig(d_model=WIDTH, num_heads=HEADS, d_kv=HEAD_DIM, num_layers=1)
    module = randomized(
        modeling_udop.RelativePositionBiasAggregated(modeling_udop.create_relative_bias(config))
    )
    sums = torch.stack([torch.randperm(90)[:TOKENS] * 20 + torch.randperm(20)[:TOKENS] for _ in range(2)], -1)[None]
    boxes = torch.cat([sums // 2, sums - sums // 2], -1) / 1000
    q, k, v = (random(1, HEADS, TOKENS, HEAD_DIM) for _ in range(3))
    bias = module(attention_mask=torch.ones(1, TOKENS), bbox=boxes)
    text, horizontal, vertical = (each.relative_attention_bias.weight for each in module.biases)
    yield record(
        "UDOP",
        {"type": "axis_buckets", "divided": False, "axis_num_buckets": 32, "axis_max_distance": 100, "axis_unit": 20},
        {"table": text, "axis_tables": torch.stack([horizontal, vertical])},
        q, k, v, torch.softmax(q @ k.transpose(-1, -2) + bias, -1) @ v,
        positions=torch.stack([torch.arange(TOKENS)[None], sums[..., 0], sums[..., 1]]),
        logits={"multiplier": HEAD_DIM**0.5},
    )  # fmt: skip


# --- pictures ------------------------------------------------------------------------------------------


def swin():
    config = configuration_swin.SwinConfig(embed_dim=WIDTH, num_heads=[HEADS], depths=[1])
    config._attn_implementation = "eager"
    module = randomized(modeling_swin.SwinAttention(config, WIDTH, HEADS, 3))
    module.o_proj = torch.nn.Identity()
    hidden = random(2, 9, WIDTH)
    out, _ = module(hidden)
    yield record(
        "Swin", {"type": "grid_bias"},
        {"table": module.relative_position_bias.relative_position_bias_table},
        *(heads_of(each(hidden)) for each in (module.q_proj, module.k_proj, module.v_proj)), attended(out),
        grid=[3, 3],
    )  # fmt: skip


def swinv2():
    config = configuration_swinv2.Swinv2Config(embed_dim=WIDTH, num_heads=[HEADS], depths=[1])
    for pretrained in (0, 5):
        module = randomized(modeling_swinv2.Swinv2SelfAttention(config, WIDTH, HEADS, (3, 3), (pretrained, pretrained)))
        mlp = module.continuous_position_bias_mlp  # fewer units than 512, which the formula does not count
        mlp[0], mlp[2] = randomized(torch.nn.Linear(2, 6)), randomized(torch.nn.Linear(6, HEADS, bias=False))
        hidden = random(1, 9, WIDTH)
        out = module(hidden)[0]
        unit = torch.nn.functional.normalize
        scale = torch.clamp(module.logit_scale, max=4.605170185988092).exp() * HEAD_DIM**0.5
        q, k = (unit(heads_of(each(hidden)), dim=-1) for each in (module.query, module.key))
        scheme = {"type": "log_cpb"}
        if pretrained:
            scheme |= {"pretrained_height": pretrained, "pretrained_width": pretrained}
        tables = {"hidden_weight": mlp[0].weight, "hidden_bias": mlp[0].bias, "output_weight": mlp[2].weight}
        yield record("Swin v2", scheme, tables, q * scale, k, heads_of(module.value(hidden)), attended(out), grid=[3, 3])


def beit():
    """Its bias on the plain attention, a class token first."""
    config = configuration_beit.BeitConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, image_size=6, patch_size=2, num_hidden_layers=1
    )
    module = randomized(modeling_beit.BeitRelativePositionBias(config))
    q, k, v = (random(1, HEADS, 10, HEAD_DIM) for _ in range(3))
    weights = torch.softmax(q @ k.transpose(-1, -2) * HEAD_DIM**-0.5 + module((3, 3)), -1)
    yield record(
        "BEiT", {"type": "grid_bias", "class_token": True},
        {"table": module.relative_position_bias_table}, q, k, v, weights @ v, grid=[3, 3], class_token=True,
    )  # fmt: skip


def levit():
    module = modeling_levit.LevitAttention(WIDTH, HEAD_DIM, HEADS, 2, 3).double()
    with torch.no_grad():
        module.attention_biases.copy_(random(*module.attention_biases.shape))
    q, k, v = (random(1, HEADS, 9, HEAD_DIM) for _ in range(3))
    weights = torch.softmax(q @ k.transpose(-1, -2) * module.scale + module.get_attention_biases("cpu"), -1)
    yield record(
        "LeViT", {"type": "grid_bias", "absolute": True},
        {"table": module.attention_biases.T}, q, k, v, weights @ v, grid=[3, 3],
    )  # fmt: skip


def sam():
    config = configuration_sam.SamVisionConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, image_size=6, patch_size=2, num_hidden_layers=1
    )
    module = randomized(modeling_sam.SamVisionAttention(config, 0))
    module.proj = torch.nn.Identity()
    hidden = random(1, 3, 3, WIDTH)
    out, _ = module(hidden)
    q, k, v = module.qkv(hidden).reshape(1, 9, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    yield record(
        "SAM", {"type": "decomposed"}, {"row_vectors": module.rel_pos_h, "column_vectors": module.rel_pos_w},
        q, k, v, attended(out.reshape(1, 9, WIDTH)), grid=[3, 3],
    )  # fmt: skip


def sam3():
    """A layer that sees a picture of 3 x 3 patches as if it were a window of 2."""
    width = 2 * WIDTH
    config = configuration_sam3.Sam3ViTConfig(
        hidden_size=width, num_attention_heads=HEADS, image_size=6, patch_size=2, num_hidden_layers=1, window_size=2,
        pretrain_image_size=6,
    )  # fmt: skip
    config._attn_implementation = "eager"
    module = randomized(modeling_sam3.Sam3ViTRoPEAttention(config))
    module.o_proj = torch.nn.Identity()
    hidden = random(1, 3, 3, width)
    places = modeling_sam3.Sam3ViTLayer.precompute_positions(config, 0)
    rotary = modeling_sam3.Sam3ViTRotaryEmbedding(config)
    out = module(hidden, rotary(hidden, places))[0]
    q, k, v = (heads_of(each(hidden).reshape(1, 9, width)) for each in (module.q_proj, module.k_proj, module.v_proj))
    rows = torch.arange(9) // 3
    yield record(
        "SAM 3", {"type": "axial", "rope_theta": 10000, "position_scale": [2 / 3]}, {}, q, k, v,
        attended(out.reshape(1, 9, width)), positions=torch.stack([rows[None], torch.arange(9)[None] - 3 * rows[None]]),
    )  # fmt: skip


def dinat():
    """Neighbourhoods of 3 x 3 of a picture of 7 x 6, by NATTEN 0.14.6's kernels for CPUs: transformers calls functions that later
    versions have dropped. Its table counts key - query, the scheme's query - key."""
    from natten.functional import natten2dav, natten2dqkrpb
    from transformers.models.dinat import configuration_dinat, modeling_dinat

    config = configuration_dinat.DinatConfig()
    height, width = 7, 6
    for dilation in (1, 2):
        module = randomized(modeling_dinat.NeighborhoodAttention(config, WIDTH, HEADS, 3, dilation))
        hidden = random(1, height, width, WIDTH)
        q, k, v = (heads_of(each(hidden).reshape(1, -1, WIDTH)) for each in (module.query, module.key, module.value))
        # Not by the class' own forward, which hands columns on in the place of heads (5.24.0 swaps axes 1 and 2 of five).
        on_grid = [x.reshape(1, HEADS, height, width, HEAD_DIM) for x in (q / math.sqrt(HEAD_DIM), k, v)]
        logits = natten2dqkrpb(*on_grid[:2], module.rpb, 3, dilation)
        out = natten2dav(torch.softmax(logits, -1), on_grid[2], 3, dilation).reshape(1, HEADS, -1, HEAD_DIM)
        yield record(
            "DiNAT", {"type": "grid_bias", "reach": 3}, {"table": module.rpb.flip(1, 2).flatten(1).T}, q, k, v, out,
            grid=[-(-height // dilation), -(-width // dilation)], neighbourhood=[height, width, 3, dilation],
        )  # fmt: skip


def gemma_sound():
    """Blocks of 4 frames that see the 3 before each; the second has one ahead, too."""
    from transformers.models.gemma3n import configuration_gemma3n, modeling_gemma3n
    from transformers.models.gemma4 import configuration_gemma4, modeling_gemma4

    scheme = {"type": "transformer_xl", "layout": "concatenated", "biases": False, "spacing": "ends"}
    for right in (0, 1):
        config = configuration_gemma3n.Gemma3nAudioConfig(
            hidden_size=WIDTH, conf_num_attention_heads=HEADS, conf_attention_chunk_size=4, conf_attention_context_left=4,
            conf_attention_context_right=right, conf_attention_logit_cap=1.5,
        )  # fmt: skip
        module = randomized(modeling_gemma3n.Gemma3nAudioAttention(config))
        hidden = random(1, TOKENS, WIDTH)
        out = module(hidden, torch.zeros(1, TOKENS, dtype=torch.bool))
        q, k, v = (heads_of(each(hidden)) for each in (module.q_proj, module.k_proj, module.v_proj))
        at = torch.arange(TOKENS)
        away = at[:, None] - at[None]
        yield record(
            "Gemma 3n, sound", {**scheme, "bidirectional": right > 0},
            {"projection": module.relative_position_embedding.pos_proj.weight},
            q * torch.nn.functional.softplus(module.per_dim_scale), k, v, out.transpose(1, 2), causal=right == 0,
            window=0 if right else 4, logits={"multiplier": 1 / math.log(2), "softcap": 1.5},
            keep=[[-right <= distance < 4 for distance in row] for row in away.tolist()],
        )  # fmt: skip
    config = configuration_gemma4.Gemma4AudioConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, attention_chunk_size=3, attention_context_left=4,
        attention_logit_cap=1.5, use_clipped_linears=False,
    )  # fmt: skip
    module = randomized(modeling_gemma4.Gemma4AudioAttention(config, 0))
    module.post = torch.nn.Identity()
    hidden = random(1, TOKENS, WIDTH)
    # Blocks of 3 and 3 frames before each: which of a context's frames a query of the block does not see.
    at = torch.arange(9)
    query, key = at.view(3, 3, 1), torch.arange(-3, 3)[None, None] + at.view(3, 3)[:, :1, None]
    unseen = (key > query) | (key <= query - 4) | (key < 0)
    own = torch.Tensor.float
    torch.Tensor.float = torch.Tensor.double
    try:
        out, _ = module(hidden, modeling_gemma4.Gemma4AudioRelPositionalEncoding(config)(hidden), unseen[None, None])
    finally:
        torch.Tensor.float = own
    q, k, v = (heads_of(each(hidden)) for each in (module.q_proj, module.k_proj, module.v_proj))
    yield record(
        "Gemma 4, sound", {**scheme, "bidirectional": False}, {"projection": module.relative_k_proj.weight},
        q * torch.nn.functional.softplus(module.per_dim_scale), k * module.k_scale, v, attended(out), causal=True, window=4,
        logits={"multiplier": 1 / math.log(2), "softcap": 1.5},
    )  # fmt: skip


FAMILIES = [inkling, wavlm, xlnet, parakeet, wav2vec2_bert, phi4_audio, swin, swinv2, beit, levit, sam, layoutlmv2, layoutlmv3, udop, sam3, fastspeech2, seamless, vits, clvp, roformer, omni, bros, gemma_sound, dinat]


def main():
    torch.manual_seed(1)
    with torch.no_grad():
        records = [each for family in FAMILIES for each in family()]
    generator = f"tests/peers/tables.py, transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"
    lines = ",\n".join(json.dumps(each) for each in records)
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ',\n"records": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
