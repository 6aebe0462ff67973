// The table of families, a file for each kind. Readers find a row by find_family(); only the files
// here name a family. A number is the documented default of the configuration class, used only
// where the file is silent, and the explanation says so. A family we are not sure of is left out:
// the generic rule reads it, with a warning.
#pragma once

#include <span>

#include "src/model/families/family.h"

namespace posenc::detail {

std::span<const Family> rows_alike();  // all layers rotate alike
std::span<const Family>
rows_alternating();                        // layers with and without a window, position, attention
std::span<const Family> rows_latent();     // multi-head latent attention
std::span<const Family> rows_added();      // vectors on the embedding, biases on the logits
std::span<const Family> rows_diffusion();  // diffusion transformers, by their class of diffusers
std::span<const Family> rows_sound();      // encoders, codecs and decoders of sound
std::span<const Family> rows_distances();  // profiles, Transformer-XL, clipped distances
std::span<const Family> rows_remote();     // code beside the weights, not in transformers
std::span<const Family> rows_without_attention();
std::span<const Family> rows_uncovered();  // known, and known not to be covered

// --- short words of the rows ---------------------------------------------------------------------

constexpr Pairing halves = Pairing::halves;
constexpr Pairing interleaved = Pairing::interleaved;
constexpr std::int64_t K = 1024;

// fairseq's sinusoids: all sines, then all cosines, frequencies to both ends.
constexpr Sinusoidal fairseq{
    .layout = WaveLayout::concatenated, .spacing = WaveSpacing::ends, .odd = OddWidth::zero};

constexpr std::string_view both_spellings = "rope_scaling rope_parameters";
constexpr std::string_view partial_factor = "partial_rotary_factor";

// Checkpoints whose weights may be permuted say so by either of these.
constexpr std::string_view interleave_keys = "rope_interleave rotary_emb_interleaved";

}  // namespace posenc::detail
