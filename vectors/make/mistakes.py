"""The mistakes by name: what an engine that gives this answer does, its cure, and where somebody met it."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Mistake:
    title: str
    cure: str
    report: str = ""
    loss: bool = False  # right but for precision


ISSUE = "https://github.com/{}/issues/{}"


def report(of: str) -> str:
    repository, number = of.split("#")
    return ISSUE.format(repository, number)


MISTAKES = {
    # --- frequencies of a configuration
    "base_default": Mistake(
        "the base is 10000, whatever the file says",
        "read rope_theta, inside rope_parameters since transformers 5",
        "deepspeedai/DeepSpeed#8345",
    ),
    "scaling_ignored": Mistake(
        "the scaling block is not read",
        "apply rope_scaling, or rope_parameters, by its rope_type",
        "unslothai/unsloth#6197",
    ),
    "type_key_ignored": Mistake(
        "rope_scaling is read only where its kind is spelled rope_type", "read the old key `type` as well"
    ),
    "rope_parameters_ignored": Mistake(
        "rope_parameters is not read: base and scaling are defaults",
        "read rope_parameters where rope_theta and rope_scaling are not there",
        "sgl-project/sglang#26187",
    ),
    "factor_dropped": Mistake(
        "cos and sin lack the attention factor", "multiply cos and sin by attention_factor", "vllm-project/vllm#48351"
    ),
    "factor_rule": Mistake(
        "the attention factor is 0.1·ln s + 1 whatever the file says",
        "take attention_factor, or the ratio of mscale and mscale_all_dim",
        "sgl-project/sglang#31232",
    ),
    "mscale_alone": Mistake(
        "the attention factor is that of mscale, not divided by that of mscale_all_dim",
        "divide by the factor of mscale_all_dim",
        "vllm-project/vllm#48621",
    ),
    "betas_ignored": Mistake(
        "beta_fast and beta_slow are 32 and 1 whatever the file says", "read beta_fast and beta_slow"
    ),
    "truncate_ignored": Mistake(
        "the ramp's ends are rounded though the file says truncate: false", "round them only where truncate is true"
    ),
    "trained_length": Mistake(
        "the promised length is taken for the trained one",
        "take original_max_position_embeddings for L",
        "MiroMindAI/MiroTrain#5",
    ),
    "factor_inverted": Mistake("frequencies are multiplied by the factor", "divide frequencies by the factor"),
    "all_interpolated": Mistake(
        "every pair is divided by the factor, as by position interpolation",
        "leave the fast pairs as they are and blend those between",
    ),
    "ramp_reversed": Mistake(
        "the fast pairs are interpolated and the slow ones kept",
        "interpolate the pairs that turn least within the trained length",
    ),
    "smoothing_missing": Mistake(
        "there is no blend between kept and divided pairs", "blend by (turns − low)/(high − low)"
    ),
    "bands_default": Mistake("low_freq_factor and high_freq_factor are 1 and 4 whatever the file says", "read both"),
    "factor_default": Mistake("the factor is 8 whatever the file says", "read factor", "pytorch/executorch#7265"),
    "other_list": Mistake(
        "LongRoPE's other list: the long one for short texts, or the short one for long texts",
        "choose the list by whether the text is longer than the trained length",
        "vllm-project/vllm#27414",
    ),
    "divisors_multiplied": Mistake("LongRoPE's lists multiply frequencies", "divide frequencies by them"),
    "never_grows": Mistake("dynamic NTK stays at the trained length", "compute the base anew from the text's length"),
    "always_grown": Mistake(
        "dynamic NTK's base is that of the longest text from the start",
        "compute the base anew from the text's length",
        "vllm-project/vllm#3488",
    ),
    "exponent_plain": Mistake("the base grows by s and not by s^(d/(d − 2))", "use the exponent d/(d − 2)"),
    "exponent_halved": Mistake("pair r has exponent −r/d", "pair r has exponent −2r/d"),
    "denominator": Mistake(
        "exponents are divided by the whole head, where a part rotates",
        "divide by the channels that rotate",
        "aws-neuron/neuronx-distributed-inference#106",
    ),
    "partial_ignored": Mistake(
        "the whole head rotates, where the file says a part",
        "read partial_rotary_factor, rotary_pct or rotary_dim",
        "vllm-project/vllm#30384",
    ),
    "proportional_as_partial": Mistake(
        "exponents over the rotating part alone, where the whole head's are asked",
        "keep the head's exponents and let the last pairs stand still",
        "NVIDIA-NeMo/Megatron-Bridge#4195",
    ),
    "other_layers": Mistake(
        "these layers have the rotation of the other kind of layers",
        "read rope_parameters, or the local base, by layer type",
        "Blaizzy/mlx-vlm#1709",
    ),
    "scaling_everywhere": Mistake("the scaling is applied to the sliding layers too", "scale the full layers alone"),
    "frequencies_in_bfloat16": Mistake(
        "frequencies are rounded to bfloat16",
        "keep inv_freq in float32 when the model is cast",
        "huggingface/transformers#25681",
    ),
    "frequencies_in_float16": Mistake(
        "frequencies are rounded to float16",
        "keep inv_freq in float32 when the model is cast",
        "EleutherAI/gpt-neox#1003",
    ),
    "frequencies_by_product": Mistake(
        "each frequency is the one before it times θ^(−2/d) in float32, off by up to r·2⁻²³ of itself",
        "raise θ to each power, in double",
        loss=True,
    ),
    # --- cos and sin
    "angles_in_float32": Mistake(
        "angles are products of floats, off by position·2⁻²⁴", "form angles in double, or as exact turns", loss=True
    ),
    "angles_in_bfloat16": Mistake(
        "angles are rounded to bfloat16", "leave autocast before positions meet frequencies", "nkalyanv99/UNI-D2#6"
    ),
    "angles_in_float16": Mistake(
        "angles are rounded to float16",
        "leave autocast before positions meet frequencies",
        "openvinotoolkit/openvino#29556",
    ),
    "positions_in_bfloat16": Mistake("positions are rounded to bfloat16, from 257 on", "keep positions whole"),
    "positions_in_float16": Mistake("positions are rounded to float16, from 2049 on", "keep positions whole"),
    "cos_sin_exchanged": Mistake("cosines and sines have changed places", "cos comes first"),
    # --- rotation
    "wrong_pairing": Mistake(
        "the wrong channels make a pair: neighbours for halves, or halves for neighbours",
        "pair as the model's family does; posenc explain says which",
        "karpathy/nanochat#264",
    ),
    "interleaved_table": Mistake(
        "a table laid out for one pairing is applied to the other",
        "repeat each cosine as the pairing asks",
        "baidu/ERNIE-Image#6",
    ),
    "backwards": Mistake("pairs rotate the other way", "(a, b) → (a cos − b sin, a sin + b cos)"),
    "not_rotated": Mistake("queries and keys are not rotated", "rotate both"),
    "rotated_twice": Mistake("queries and keys are rotated twice", "rotate once"),
    "off_by_one": Mistake(
        "each token stands one position further", "the first token stands at 0", "vllm-project/vllm#16878"
    ),
    "head_index": Mistake(
        "the angle grows with the head and not with the token",
        "exchange the axes of heads and tokens before the rotation",
    ),
    "factor_on_queries_alone": Mistake(
        "the attention factor is on queries and not on keys", "multiply cos and sin by it, for both"
    ),
    "factor_on_all_channels": Mistake(
        "the attention factor is on channels that do not rotate", "scale cos and sin alone"
    ),
    "wrong_slice": Mistake(
        "the first channels rotate where the last should, or the last where the first",
        "rotate the slice that the family does",
    ),
    "whole_head": Mistake("every channel rotates where a part should", "pass the channels behind the rotating part"),
    "axes_exchanged": Mistake("height and width have changed places", "rows are t, h, w"),
    "sections_contiguous": Mistake(
        "axes take pairs in sections where they are interleaved", "interleave t, h, w, t, h, w …", "alibaba/MNN#4133"
    ),
    "sections_interleaved": Mistake(
        "axes take pairs interleaved where they have sections",
        "give each axis its section of pairs",
        "vllm-project/vllm-omni#1784",
    ),
    "text_positions_alone": Mistake("every axis has the position of text", "pass the three rows of positions"),
    # --- positions
    "padding_counted": Mistake(
        "padding counts as tokens", "count the tokens that the mask keeps", "huggingface/transformers#22161"
    ),
    "packing_ignored": Mistake(
        "positions run on across the documents of a pack", "start anew at every boundary", "NVIDIA/Megatron-LM#453"
    ),
    "restart_at_chunks": Mistake(
        "each chunk of a prompt begins at 0", "go on from the tokens that are cached", "Blaizzy/mlx-vlm#1621"
    ),
    "cache_ignored": Mistake("the new token stands at 0, whatever is cached", "add the cached length"),
    "one_too_far": Mistake(
        "the new token stands one behind its place", "the first new token stands at the cached length"
    ),
    "images_as_text": Mistake(
        "the patches of a picture count one after another as words do",
        "build t, h, w from the grid",
        "hiyouga/LlamaFactory#10589",
    ),
    "merge_ignored": Mistake(
        "patches are counted before they are merged", "divide the grid's height and width by spatial_merge_size"
    ),
    "text_after_image": Mistake(
        "text behind a picture goes on from the number of its tokens", "go on from the largest position plus one"
    ),
    "padding_row": Mistake("the offset of the learned table is not added", "add padding_idx + 1"),
    # --- biases by distance
    "slopes_of_power_of_two": Mistake(
        "heads that are no power of two have slopes of the next one",
        "interleave the slopes of twice as many heads behind",
    ),
    "slopes_of_local_heads": Mistake(
        "each rank makes the slopes of its own number of heads",
        "make all heads' slopes, then take the rank's",
        "flashinfer-ai/flashinfer#1606",
    ),
    "slopes_reversed": Mistake("the last head has the steepest slope", "the first head has the steepest slope"),
    "bias_sign": Mistake("distant keys are favoured", "subtract slope·distance"),
    "distance_transposed": Mistake(
        "the relative position is query − key where key − query is meant", "relative_position = key − query"
    ),
    "buckets_of_other_direction": Mistake(
        "buckets of the other direction: both sides for one, or one for both",
        "encoders are bidirectional, decoders are not",
    ),
    "max_distance_default": Mistake(
        "the largest distance is 128 whatever the file says", "read relative_attention_max_distance"
    ),
    "buckets_linear": Mistake(
        "distances beyond the exact half are not taken by their logarithm",
        "spread the rest by the logarithm up to the largest distance",
    ),
    # --- masks
    "window_off_by_one": Mistake(
        "the window shows one key more", "a window of w shows the query and the w − 1 keys before it"
    ),
    "window_ignored": Mistake("the window is not applied", "hide keys that are w or more behind"),
    "chunk_as_window": Mistake("chunks slide", "a token sees what came before it in its own chunk"),
    "sinks_hidden": Mistake("the window hides the first tokens, which should stay", "keep the sink tokens in sight"),
    "causal_lost": Mistake("later tokens are seen", "hide keys behind the query"),
    "aligned_to_start": Mistake(
        "the causal mask of new tokens begins at the first key, though keys are cached", "align it to the last key"
    ),
    "documents_mixed": Mistake("documents of a pack see each other", "mask by document"),
    "padding_seen": Mistake("padding is attended to", "hide keys that the mask drops"),
    # --- scores
    "softcap_ignored": Mistake("logits are not capped", "logit → c·tanh(logit/c)"),
    "softcap_before_scale": Mistake("logits are capped before they are scaled", "scale, then cap"),
    "scale_default": Mistake(
        "logits are divided by √head_dim whatever the file says", "use query_pre_attn_scalar, or the file's multiplier"
    ),
    "temperature_ignored": Mistake(
        "queries at far positions are not warmed up", "multiply by 1 + a·ln(⌊(p + 1)/L⌋ + 1)"
    ),
    "temperature_from_zero": Mistake("the temperature counts positions without the 1 that is added", "⌊(p + 1)/L⌋"),
    "sink_ignored": Mistake("the softmax lacks the learned sink", "add exp(sink) to the sum that divides"),
    # --- cached keys
    "not_moved": Mistake("keys keep the rotation of their old positions", "rotate them by the difference"),
    "moved_backwards": Mistake("keys are rotated by the difference the other way", "rotate by new − old"),
    "rotated_anew": Mistake(
        "rotated keys are rotated by the new position on top", "rotate by the difference of the two"
    ),
    "factor_again": Mistake(
        "moving multiplies keys by the attention factor once more", "move by a rotation of factor 1"
    ),
    # --- vectors that are added
    "layout_exchanged": Mistake(
        "sines and cosines alternate where they stand in halves, or stand in halves where they alternate",
        "lay them out as the model does",
    ),
    "cosine_first": Mistake("cosines stand before sines", "sines first"),
    "exponent_by_channel": Mistake(
        "the exponent grows with the channel, so that a sine and its cosine have different frequencies",
        "both of a pair have frequency b^(−2r/d)",
    ),
    "spacing_of_ends": Mistake(
        "frequencies end at 1/b: the exponent is divided by d/2 − 1",
        "divide by d/2, unless the model is of tensor2tensor's kind",
    ),
    "spacing_of_width": Mistake(
        "the exponent is divided by d/2 where the model divides by d/2 − 1", "divide by d/2 − 1"
    ),
}


def document(version: int) -> dict:
    """mistakes.json."""
    made = {}
    for name, mistake in MISTAKES.items():
        entry = {key: value for key, value in asdict(mistake).items() if value}
        if mistake.report:
            entry["report"] = report(mistake.report)
        made[name] = entry
    return {"schema": "schemas/mistakes.schema.json", "version": version, "mistakes": made}
