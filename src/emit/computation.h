// What a plan's rotation and its bias compute, as statements, and what a file says around them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/emit.h"
#include "posenc/features.h"
#include "posenc/plan.h"
#include "src/emit/program.h"

namespace posenc::emitting {

// A cosine and sine that the test of a file asks for.
struct RotationCheck {
  std::int64_t token = 0, head = 0, pair = 0, first = 0, second = 0;  // its two channels
  double cosine = 0, sine = 0;                   // right ones, times the amplitude
  std::uint32_t cosine_bits = 0, sine_bits = 0;  // the floats that the statements give
};

// For each token, and each pair of channels:
//   x[token][head][first], x[token][head][second], for every head
// The frame has token, pair, heads, x[token][head][channel] and, of the axes' positions, the lower
// and the upper half: low[axis][token], high[axis][token].
struct Rotation {
  std::int64_t heads = 1;  // with frequencies of their own
  std::int64_t axes = 1, pairs = 0, head_dim = 0;
  Slice slice = {};
  float amplitude = 1;
  Constant turns;  // [head][axis][pair][word], the highest word first
  Statements statements;
  std::vector<std::vector<std::int64_t>> positions;  // of the test, [token][axis]
  std::vector<RotationCheck> checks;
  std::optional<std::int64_t> unrotated;  // a channel that must pass as it is

  // Of a cosine or sine; an attention factor is rounded to a float, and so is the product.
  double most_error() const {
    return amplitude == 1 ? 6e-8 : 1.2e-7 * static_cast<double>(amplitude);
  }
  bool heads_differ() const { return heads > 1; }
  std::int64_t first(std::int64_t pair) const;
  std::int64_t second(std::int64_t pair) const;
};

struct BiasCheck {
  std::int64_t head = 0, query = 0, key = 0;
  double right = 0;
  std::uint32_t bits = 0;
};

// out[head][query][key] = bias. The frame has head, query, key and the lower halves of the
// positions: query_low[query], key_low[key].
struct DistanceBias {
  std::int64_t heads = 1;
  bool before_scale = false;
  bool learned = false;  // the table is an argument: values[head or 1][row]
  bool shared = false;   // one row of values for all heads
  std::int64_t row_count = 0;
  std::vector<Constant> constants;
  Statements statements;                        // the last lets `bias` be it
  std::vector<std::int64_t> queries, keys;      // positions of the test
  std::vector<BiasCheck> checks;                // of queries and keys by their number
  std::vector<std::uint32_t> test_values = {};  // in place of a learned table
};

struct Computation {
  EmitOptions about;
  FeatureSet has;  // of the plan
  std::optional<Rotation> rotation;
  std::optional<DistanceBias> bias;
  std::vector<std::string> left_out;  // what of the plan acts elsewhere
  std::string target;
};

// Errors: a table too long for a text, a bias that a kernel cannot say.
// What the room ignores is left out.
Expected<Computation> computation_of(const Plan& plan, const Room& room,
                                     const EmitOptions& options);

}  // namespace posenc::emitting
