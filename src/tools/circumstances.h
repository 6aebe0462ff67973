// What is known of words alone: how many tokens programs run by default, and what trouble of a kind
// mostly means.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/tools/symptom.h"

namespace posenc::detail {

// What a program runs where nobody says how many tokens, and what becomes of longer texts.
struct DefaultContext {
  std::string_view programs;
  std::array<std::int64_t, 2> tokens;
  std::string_view message, cure;
  bool of_embeddings = false;  // and not of texts that are written
};
std::span<const DefaultContext> default_contexts();

// Of Gemma 3n's shared layers in mlx-lm, by a traceback or by words.
inline constexpr std::string_view
    state_of_gemma3n =
        "mlx-lm's class of Gemma 3n takes a cache's state for two arrays, and a batch's has "
        "offsets beside them; where it runs, its later layers rotate queries by positions that "
        "have moved on",
    cure_of_gemma3n = "pip install -U mlx-lm, or one request at a time (mlx_lm.generate)";

// What it mostly means, by when it happens; of several the first.
struct Circumstance {
  When when;
  std::string_view code, message, cure;
};
std::span<const Circumstance> circumstances();

}  // namespace posenc::detail
