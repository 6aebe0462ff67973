// Families that hear and speak: encoders of sound, alone or as audio_config beside a text model,
// codecs, and the models that write sound.
#include "src/model/families/layer_rules.h"
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

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
     .context = 1500, .sizes = {1280, 32, 20}, .causal = false, .side = "encoder",
     .waves = whisper},
    {.types = "moss_transcribe_diarize_audio", .read = read_waves, .context = 1500,
     .sizes = {1024, 24, 16}, .causal = false, .side = "encoder", .waves = whisper},
    {.types = "qwen2_5_omni_audio_encoder qwen3_omni_moe_audio_encoder", .read = read_waves,
     .context = 1500, .sizes = {1280, 32, 20}, .causal = false, .side = "encoder",
     .waves = whisper, .remark = chunks},
    {.types = "qwen3_asr_encoder", .read = read_waves, .context = 13, .sizes = {1024, 24, 16},
     .causal = false, .side = "encoder", .waves = whisper, .remark = chunks},
    {.types = "audio-spectrogram-transformer", .read = read_spectrogram, .sizes = {768, 12, 12},
     .causal = false, .remark = "the learned table covers max_length frames"},
    {.types = "clvp_decoder", .read = read_learned, .context = 608, .sizes = {1024, 30, 16}},
    {.types = "semantic coarse_acoustics fine_acoustics", .read = read_learned, .context = 1024,
     .sizes = {768, 12, 12}},
    {.types = "speech_to_text", .read = read_m2m, .context = 1024, .sizes = {256, 12, 4},
     .waves = fairseq, .scale_embedding = true},

    // --- rotation --------------------------------------------------------------------------------
    {.types = "glmasr_encoder dots3_note_audio_encoder", .context = 1500,
     .sizes = {1280, 32, 20}, .causal = false, .theta = 10000, .partial = 0.5,
     .partial_keys = partial_factor},
    {.types = "lasr_encoder", .context = 10000, .sizes = {512, 17, 8}, .causal = false,
     .theta = 10000},
    {.types = "nemotron3_diarization_audio", .context = 5000, .sizes = {512, 31, 8},
     .causal = false, .theta = 10000, .partial_keys = partial_factor},
    {.types = "nemotron3_5_transcribe_asr_audio", .context = 5000, .sizes = {1280, 32, 10},
     .causal = false, .theta = 10000, .partial = 0.5, .partial_keys = partial_factor},
    {.types = "nemotron3_5_transcribe_word_timestamp", .context = 5000, .sizes = {1280, 2, 16},
     .causal = false, .theta = 10000, .partial = 0.5, .partial_keys = partial_factor},
    {.types = "pe_audio_encoder pe_video_encoder pe_audio_video_encoder", .context = 10000,
     .sizes = {1792, 6, 14, 0, 128}, .causal = false, .pairing = interleaved, .theta = 20000},
    {.types = "voxtral_realtime_encoder", .context = 1500, .sizes = {1280, 32, 32, 0, 64},
     .theta = 10000, .pattern = all_slide, .window = 750},
    {.types = "voxtral_realtime_text", .context = 128 * K, .sizes = {4096, 32, 32, 8, 128},
     .theta = 10000, .pattern = all_slide, .window = 4096},
    {.types = "kyutai_speech_to_text", .context = 750, .sizes = {2048, 48, 32, 0, 64},
     .theta = 10000},
    {.types = "moshi", .context = 3000, .sizes = {4096, 32, 32, 0, 128}, .theta = 10000},
    {.types = "mimi mimi_encoder mimi_decoder", .context = 8000, .sizes = {512, 8, 8, 0, 64},
     .theta = 10000, .pattern = all_slide, .window = 250},
    {.types = "pocket_tts_audio_tokenizer pocket_tts_audio_tokenizer_encoder "
              "pocket_tts_audio_tokenizer_decoder",
     .context = 8000, .sizes = {512, 2, 8, 0, 64}, .theta = 10000, .pattern = all_slide,
     .window = 250},
    {.types = "dia_encoder", .context = 1024, .sizes = {1024, 12, 16, 0, 128}, .causal = false,
     .theta = 10000},
    {.types = "dia_decoder", .context = 3072, .sizes = {2048, 18, 16, 4, 128}, .theta = 10000},
    {.types = "dia lasr_ctc nemotron3_diarization", .read = read_parts},
    {.types = "nemotron3_5_transcribe_audio", .read = read_parts,
     .remark = "a second encoder, which tells speakers apart, is not explained"},
    {.types = "moonshine", .read = read_sides, .context = 512, .sizes = {288, 6, 8},
     .pairing = interleaved, .theta = 10000, .partial = 0.9, .partial_keys = partial_factor},
    {.types = "moonshine_streaming", .read = read_parts, .context = 4096,
     .sizes = {320, 6, 8, 0, 40}, .pairing = interleaved, .theta = 10000, .partial = 0.8,
     .partial_keys = partial_factor},

    {.types = "musicgen_decoder musicgen_melody_decoder", .read = read_waves, .context = 2048,
     .sizes = {1024, 24, 16}, .waves = musicgen, .scale_unread = true},
    {.types = "musicgen musicgen_melody", .read = read_parts,
     .remark = "the codec that makes sound of what is written is not explained"},
    {.types = "canary_decoder", .read = read_waves, .context = 1024,
     .sizes = {1024, 8, 8, 8, 128}, .waves = nemo},
    {.types = "canary", .read = read_parts},

    // --- no position -----------------------------------------------------------------------------
    {.types = "moonshine_streaming_encoder", .context = 4096, .sizes = {320, 6, 8, 0, 40},
     .causal = false, .rotates = no_layer,
     .remark = "a frame sees as many before it and after it as sliding_windows lists for the layer"},
    {.types = "moshi_depth", .context = 9, .sizes = {1024, 6, 16, 0, 64}, .rotates = no_layer},
    {.types = "neucodec xcodec2", .context = 4096, .sizes = {1024, 12, 16, 0, 64},
     .causal = false, .rotates = no_layer, .remark = by_head},
};
// clang-format on

}  // namespace

std::span<const Family> rows_sound() { return sound; }

}  // namespace posenc::detail
