// Where the tokens of a call stand. Text for the host and for the device.
#pragma once

#include "backends/cuda/numbers.h"

namespace posenc::cuda {

// [batch][token], and their positions: first + token, or those of a list [axis][batch][token].
struct Tokens {
  std::int64_t batch = 0, count = 0;
  std::int64_t first = 0;
  const std::int64_t* ids = nullptr;
  const std::int32_t* short_ids = nullptr;
  const double* real_ids = nullptr;
  // Of packed texts: bounds [texts + 1] of their rows, and what stands before the first token of
  // each (absent: nothing).
  const std::int32_t* bounds = nullptr;
  const std::int32_t* before = nullptr;
  std::int32_t texts = 0;

  // Whether every sequence has the same positions.
  POSENC_DEVICE bool shared() const {
    return ids == nullptr && short_ids == nullptr && real_ids == nullptr;
  }
};

// The position on an axis of a token, whose row is batch · count + token: of a range or a list.
POSENC_DEVICE std::int64_t listed_position(const Tokens& tokens, std::int32_t axis,
                                           std::int64_t row, std::int64_t token) {
  const std::int64_t at = axis * tokens.batch * tokens.count + row;
  if (tokens.ids != nullptr) return tokens.ids[at];
  if (tokens.short_ids != nullptr) return tokens.short_ids[at];
  return tokens.first + token;
}

// Or of packed texts.
POSENC_DEVICE std::int64_t position_of(const Tokens& tokens, std::int32_t axis, std::int64_t row,
                                       std::int64_t token) {
  if (tokens.bounds == nullptr) return listed_position(tokens, axis, row, token);
  // The last text that begins at the row or before it.
  std::int32_t text = 0;
  for (std::int32_t end = tokens.texts; end - text > 1;) {
    const std::int32_t middle = text + (end - text) / 2;
    const bool later = tokens.bounds[middle] <= row;
    text = later ? middle : text;
    end = later ? end : middle;
  }
  return row - tokens.bounds[text] + (tokens.before == nullptr ? 0 : tokens.before[text]);
}

}  // namespace posenc::cuda
