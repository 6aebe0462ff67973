// Families that hear and speak: encoders of sound, alone or as audio_config beside a text model,
// codecs, and the models that write sound.
#include "src/model/families/layer_rules.h"
#include "src/model/families/rows.h"

#include <algorithm>
#include <string>

namespace posenc::detail {
namespace {

// CLVP rotates as many channels as half of a head of its projection has, and at least 32.
void read_clvp(const Section& config, const Family& family) {
  const Range heads_range{.least = 1, .most = static_cast<double>(most_heads)},
      width_range{.least = 1, .most = static_cast<double>(most_width)};
  const auto width = config.integer("projection_dim", width_range);
  const auto heads = config.integer("num_attention_heads", heads_range);
  const auto rotates = config.flag("use_rotary_embedding");
  Family filled = family;
  filled.slice.rotary_dim =
      std::max<std::int64_t>((width ? width->value : family.sizes.width) /
                                 (2 * (heads ? heads->value : family.sizes.heads)),
                             32);
  if (rotates && !rotates->value) filled.layers.rotates = no_layer;
  if (filled.slice.rotary_dim % 2 != 0)
    config.reading.refuse(config.where("projection_dim"), "must leave an even number to rotate",
                          std::to_string(filled.slice.rotary_dim), "correct it");
  read_decoder(config, filled);
  for (LayerGroup& group : config.reading.model.groups) {
    for (Provenance& value : group.provenance) {
      if (value.field != "rotary_dim") continue;
      value.origin = Origin::derived;
      value.detail = "projection_dim / (2 · heads), at least 32";
    }
  }
}

// Qwen2.5-Omni's writer of sound: blocks that do not see each other, but for the layers whose lists
// say that they see one block before or after besides.
void mark_blocks(LayerDraft& layers) {
  const auto listed = [&](std::string_view key, const std::vector<std::int64_t>& usual) {
    const auto said = layers.config.integers(key, not_negative);
    return said ? said->value : usual;
  };
  const auto before = listed("look_backward_layers", {0, 20}),
             after = listed("look_ahead_layers", {10});
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    const bool back = std::ranges::find(before, i) != before.end(),
               ahead = std::ranges::find(after, i) != after.end();
    layers.at(i).type = back && ahead ? "attention with a block before and one after"
                        : back        ? "attention with the block before"
                        : ahead       ? "attention with the block after"
                                      : layers.family.layers.other;
  }
  note(layers.notes, "layer_types", "blocks, but for look_backward_layers and look_ahead_layers",
       Origin::family, "rule of " + layers.config.reading.family);
}

// wav2vec 2.0 and its kin: convolutions by groups of channels are added before the layers, whose
// attention has no position. Of an even kernel the last frame is cut off, so that it reaches as far
// as kernel/2 frames back and (kernel − 1)/2 ahead; `squeeze`: frames of a token.
void add_convolved(const Section& config, const Family& family, std::string_view times_key,
                   std::string_view kernel_key, std::int64_t kernel_default,
                   std::int64_t squeeze_default) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  constexpr std::int64_t most = 1 << 20;
  const std::int64_t times =
      times_key.empty() ? 1 : config.size(notes, "convolutions", times_key, 5, 1 << 10);
  const std::int64_t kernel = config.size(notes, "kernel", kernel_key, kernel_default, most);
  const std::int64_t squeeze =
      squeeze_default == 0
          ? 1
          : config.size(notes, "squeeze_factor", "squeeze_factor", squeeze_default, most);
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  group.schemes = {NoPe{}};
  const auto frames = [&](std::int64_t reach) {
    return std::to_string(times * reach) + (times * reach == 1 ? " frame" : " frames");
  };
  group.carried =
      times == 1 ? std::string("a convolution") : std::to_string(times) + " convolutions";
  group.carried += " before the first layer, over " + frames(kernel / 2) + " before each and " +
                   frames((kernel - 1) / 2) + " behind it";
  if (squeeze > 1) group.carried += ", of which a token is " + std::to_string(squeeze);
  const std::string_view by = squeeze > 1 ? "" : " (convolve_positions, convolution.h)";
  config.reading.warn("family_remark",
                      config.reading.family +
                          ": a convolution gives frames their positions, which no plan says" +
                          std::string(by) + "; the plan is the attention's, which has none");
  add_group(config.reading, std::move(group), 0);
}
void read_convolved(const Section& config, const Family& family) {
  add_convolved(config, family, "", "num_conv_pos_embeddings", 128, 0);
}
void read_data2vec_sound(const Section& config, const Family& family) {
  add_convolved(config, family, "num_conv_pos_embeddings", "conv_pos_kernel_size", 19, 0);
}
void read_squeezed(const Section& config, const Family& family) {
  add_convolved(config, family, "", "num_conv_pos_embeddings", 128, 2);
}

// Whisper's encoder: all sines, then all cosines, frequencies to both ends.
// MusicGen's decoder: cosines before sines. Canary's, as NeMo has them: divided by √width.
constexpr Sinusoidal musicgen{.layout = WaveLayout::concatenated,
                              .spacing = WaveSpacing::ends,
                              .odd = OddWidth::zero,
                              .cosine_first = true};
constexpr Sinusoidal nemo{.layout = WaveLayout::concatenated, .divide_vectors = true};
constexpr Sinusoidal whisper{.layout = WaveLayout::concatenated, .spacing = WaveSpacing::ends};

constexpr std::string_view chunks =
    "positions begin anew in each chunk of n_window · 2 frames, and a frame sees its own chunk or "
    "a window of several";
constexpr std::string_view by_head =
    "its code rotates each head by the number of the head, queries and keys alike, which changes "
    "no logit: the layers have no position";

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family sound[] = {
    // --- sinusoids and tables --------------------------------------------------------------------
    {.types = "qwen2_audio_encoder voxtral_encoder audioflamingo3_encoder", .read = read_waves,
     .context = 1500, .sizes = {1280, 32, 20}, .side = "encoder", .causal = false,
     .added = {.waves = whisper}},
    {.types = "moss_transcribe_diarize_audio", .read = read_waves, .context = 1500,
     .sizes = {1024, 24, 16}, .side = "encoder", .causal = false, .added = {.waves = whisper}},
    {.types = "qwen2_5_omni_audio_encoder qwen3_omni_moe_audio_encoder", .read = read_waves,
     .context = 1500, .sizes = {1280, 32, 20}, .side = "encoder", .causal = false,
     .added = {.waves = whisper}, .remark = chunks},
    {.types = "qwen3_asr_encoder", .read = read_waves, .context = 13, .sizes = {1024, 24, 16},
     .side = "encoder", .causal = false, .added = {.waves = whisper}, .remark = chunks},
    {.types = "audio-spectrogram-transformer", .read = read_spectrogram, .sizes = {768, 12, 12},
     .causal = false, .remark = "the learned table covers max_length frames"},
    {.types = "clvp_decoder", .read = read_learned, .context = 608, .sizes = {1024, 30, 16}},
    {.types = "semantic coarse_acoustics fine_acoustics", .read = read_learned, .context = 1024,
     .sizes = {768, 12, 12}},
    {.types = "speech_to_text", .read = read_m2m, .context = 1024, .sizes = {256, 12, 4},
     .added = {.waves = fairseq, .scale_embedding = true}},

    // --- convolutions ----------------------------------------------------------------------------
    {.types = "wav2vec2 hubert unispeech unispeech-sat", .read = read_convolved,
     .sizes = {768, 12, 12}, .causal = false},
    {.types = "omniasr_audio", .read = read_convolved, .sizes = {1024, 24, 16}, .causal = false},
    {.types = "omniasr_ctc", .read = read_parts},
    {.types = "sew", .read = read_squeezed, .sizes = {768, 12, 12}, .causal = false},
    {.types = "data2vec-audio", .read = read_data2vec_sound, .sizes = {768, 12, 12},
     .causal = false},

    // --- rotation --------------------------------------------------------------------------------
    {.types = "glmasr_encoder dots3_note_audio_encoder", .context = 1500, .sizes = {1280, 32, 20},
     .causal = false, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "clvp_encoder", .read = read_clvp, .sizes = {768, 20, 12}, .causal = false,
     .rope = {.theta = 10000, .values_stay = true}},
    {.types = "qwen2_5_omni_dit", .context = 32 * K, .sizes = {1024, 22, 16, 0, 64},
     .other_keys = "emb_dim", .causal = false, .rope = {.pairing = interleaved, .theta = 10000},
     .slice = {.rotated_heads = 1},
     .layers = {.pattern = {mark_blocks}, .other = "chunked_attention"},
     .window = {.size = 24, .keys = "block_size"},
     .remark = "qwen2_5_omni_dit: in layers of look_backward_layers and look_ahead_layers a token "
               "sees its block and the one before or after, which the plan does not say"},
    {.types = "qwen2_5_omni_token2wav", .read = read_parts,
     .remark = "qwen2_5_omni_token2wav: the network that makes sound of spectra has convolutions "
               "alone"},
    {.types = "lasr_encoder", .context = 10000, .sizes = {512, 17, 8}, .causal = false,
     .rope = {.theta = 10000}},
    {.types = "nemotron3_diarization_audio", .context = 5000, .sizes = {512, 31, 8},
     .causal = false, .rope = {.theta = 10000}, .slice = {.partial_keys = partial_factor}},
    {.types = "nemotron3_5_transcribe_asr_audio", .context = 5000, .sizes = {1280, 32, 10},
     .causal = false, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "nemotron3_5_transcribe_word_timestamp", .context = 5000, .sizes = {1280, 2, 16},
     .causal = false, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "pe_audio_encoder pe_video_encoder pe_audio_video_encoder", .context = 10000,
     .sizes = {1792, 6, 14, 0, 128}, .causal = false,
     .rope = {.pairing = interleaved, .theta = 20000}},
    {.types = "voxtral_realtime_encoder", .context = 1500, .sizes = {1280, 32, 32, 0, 64},
     .rope = {.theta = 10000}, .layers = {.pattern = all_slide}, .window = {.size = 750}},
    {.types = "voxtral_realtime_text", .context = 128 * K, .sizes = {4096, 32, 32, 8, 128},
     .rope = {.theta = 10000}, .layers = {.pattern = all_slide}, .window = {.size = 4096}},
    {.types = "kyutai_speech_to_text", .context = 750, .sizes = {2048, 48, 32, 0, 64},
     .rope = {.theta = 10000}},
    {.types = "moshi", .context = 3000, .sizes = {4096, 32, 32, 0, 128}, .rope = {.theta = 10000}},
    {.types = "mimi mimi_encoder mimi_decoder", .context = 8000, .sizes = {512, 8, 8, 0, 64},
     .rope = {.theta = 10000}, .layers = {.pattern = all_slide}, .window = {.size = 250}},
    {.types = "pocket_tts_audio_tokenizer pocket_tts_audio_tokenizer_encoder "
              "pocket_tts_audio_tokenizer_decoder", .context = 8000, .sizes = {512, 2, 8, 0, 64},
     .rope = {.theta = 10000}, .layers = {.pattern = all_slide}, .window = {.size = 250}},
    {.types = "dia_encoder", .context = 1024, .sizes = {1024, 12, 16, 0, 128}, .causal = false,
     .rope = {.theta = 10000}},
    {.types = "dia_decoder", .context = 3072, .sizes = {2048, 18, 16, 4, 128},
     .rope = {.theta = 10000}},
    {.types = "dia lasr_ctc nemotron3_diarization", .read = read_parts},
    {.types = "nemotron3_5_transcribe_audio", .read = read_parts,
     .remark = "a second encoder, which tells speakers apart, is not explained"},
    {.types = "moonshine", .read = read_sides, .context = 512, .sizes = {288, 6, 8},
     .rope = {.pairing = interleaved, .theta = 10000},
     .slice = {.partial = 0.9, .partial_keys = partial_factor}},
    {.types = "moonshine_streaming", .read = read_parts, .context = 4096,
     .sizes = {320, 6, 8, 0, 40}, .rope = {.pairing = interleaved, .theta = 10000},
     .slice = {.partial = 0.8, .partial_keys = partial_factor}},

    {.types = "musicgen_decoder musicgen_melody_decoder", .read = read_waves, .context = 2048,
     .sizes = {1024, 24, 16}, .added = {.waves = musicgen, .scale_unread = true}},
    {.types = "musicgen musicgen_melody", .read = read_parts,
     .remark = "the codec that makes sound of what is written is not explained"},
    {.types = "canary_decoder", .read = read_waves, .context = 1024, .sizes = {1024, 8, 8, 8, 128},
     .added = {.waves = nemo}},
    {.types = "canary", .read = read_parts},

    // --- no position -----------------------------------------------------------------------------
    {.types = "moonshine_streaming_encoder", .context = 4096, .sizes = {320, 6, 8, 0, 40},
     .causal = false, .layers = {.rotates = no_layer},
     .remark = "a frame sees as many before it and after it as sliding_windows lists for the layer"},
    {.types = "moshi_depth", .context = 9, .sizes = {1024, 6, 16, 0, 64},
     .layers = {.rotates = no_layer}},
    {.types = "neucodec xcodec2", .context = 4096, .sizes = {1024, 12, 16, 0, 64}, .causal = false,
     .layers = {.rotates = no_layer}, .remark = by_head},
};
// clang-format on

}  // namespace

std::span<const Family> rows_sound() { return sound; }

}  // namespace posenc::detail
