// Two tensors whose sizes do not match: what a message says of them, for the rooms that tell causes.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "src/core/contains_any.h"
#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {

struct Mismatch {
  std::string_view line;     // as printed
  std::string_view context;  // the lines around it, in small letters
  double a = 0, b = 0;       // the sizes of the axis that differs, in the order of the message
  bool of_channels = false;  // of the last axis of queries and keys
  bool of_mask = false;      // the one is a mask, [batch, 1, tokens, keys]

  double least() const { return std::min(a, b); }
  double most() const { return std::max(a, b); }
  // Whether it is all that there is; the context may hold it twice.
  bool alone() const {
    constexpr std::size_t slack = 60;
    return context.size() < 2 * line.size() + slack;
  }
  bool speaks_of(std::initializer_list<std::string_view> words) const {
    return contains_any(context, words);
  }
};

// A finding of these two sizes, the first as what came and the second as what was wanted.
inline Finding mismatched(const Mismatch& sizes, std::string code, std::string message,
                          std::string cure) {
  return {.code = std::move(code),
          .expected = told(sizes.b),
          .found = told(sizes.a),
          .message = std::move(message),
          .cure = std::move(cure)};
}

// How many times the one goes into the other: ranks, pictures, texts of a batch. 0: not a few times.
int times(double least, double most);

// Which of the two is the table of cos and sin, as the source above the error multiplies them.
enum class TableIs { first, second, unknown };
TableIs table_in(std::string_view context);

bool is_of_pictures(std::string_view context);

// Each of these tells one cause where the sizes and the lines around them speak for it.
using Cause = std::optional<Finding>(const Mismatch&);
Cause two_text_lengths;       // a picture beside texts of two usual lengths
Cause rounded_grid;           // areas of grids of which one side was rounded
Cause pictures_of_two_sizes;  // squares of patches, and nothing rotates
Cause heads_before_tokens;    // [batch, tokens, heads, channels] and the other order
Cause table_of_a_picture;     // all that is left of pictures

// Latents of a video: each stands for four frames, the first for one.
std::optional<Finding> frames_that_differ(std::string_view line, std::string_view context);

}  // namespace posenc::detail
