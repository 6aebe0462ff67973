// Which scaling made a GGUF's rope_freqs, the divisors of RoPE's frequencies.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "posenc/schemes.h"

namespace posenc::detail {

// Llama 3's, where every divisor is what that scaling gives, to the rounding of float32. Only the
// ratios of its three lengths can be seen (L, L/low, L/high), so low_freq_factor is 1, as in every
// published model. Nothing where fewer than two pairs lie between the kept and the divided ones,
// since these alone tell where it begins and ends.
std::optional<Llama3> llama3_of(const Rope& rope, const Geometry& geometry,
                                std::span<const double> divisors);

std::string call_of(const Llama3& scaling);  // "llama3(8, 1, 4, 8192)"

}  // namespace posenc::detail
