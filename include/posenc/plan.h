// The waist of posenc: what any positional encoding comes down to, as tables and numbers in double
// precision. Schemes compile to a Plan once; kernels see nothing else. One may write it by hand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/error.h"
#include "posenc/tensor.h"

namespace [[gnu::visibility("default")]] posenc {

// Numbers of a table: computed ones are owned (and shared by copies of the plan), learned ones are
// borrowed from whoever trains or loads them. An empty table is a learned one not given yet.
struct Table {
  Tensor values = {};
  std::shared_ptr<const std::vector<double>> owned = {};
  std::shared_ptr<const void> lender = {};  // of borrowed values: a mapped file; null: the caller

  static Table own(std::vector<double> values, std::int64_t rows, std::int64_t columns);
  static Table own(std::vector<double> values, std::initializer_list<std::int64_t> shape);
  // The values must live as long as the table, or as `lender`, which copies keep alive.
  static Table borrow(const Tensor& values, std::shared_ptr<const void> lender = {}) {
    return Table{values, nullptr, std::move(lender)};
  }
  // Other axes over the same numbers, which it keeps alive.
  Table viewed(const Tensor& view) const {
    return borrow(view, owned ? std::shared_ptr<const void>(owned) : lender);
  }
  explicit operator bool() const { return static_cast<bool>(values); }
  bool operator==(const Table&) const;  // same numbers, or the same borrowed memory
};

// --- added to the token embedding ---------------------------------------------------------------

enum class WaveLayout { interleaved, concatenated };  // sin,cos,sin,cos...  or  sin...sin,cos...cos
constexpr std::string_view name(WaveLayout layout) {
  return layout == WaveLayout::interleaved ? "interleaved" : "concatenated";
}

// amplitude · sin and cos of each pair's angle, Σ over axes of (position + row_offset) · frequency. Pair r has its sine in channel 2r and its
// cosine in 2r + 1, or in r and r + pairs; with `cosine_first` the two change places. With an odd width the last pair may
// lack what comes second; channels no pair reaches are 0.
//
// Several `blocks` of channels stand side by side, each laid out by itself: a picture's rows may have the first half and
// its columns the second, both with their sines before their cosines (MAE, 2111.06377).
struct Waves {
  std::int64_t width = 0;
  WaveLayout layout = WaveLayout::interleaved;
  std::vector<double> frequency = {};  // [axis][pair], radians per position
  std::int64_t row_offset = 0;         // position p reads row p + row_offset, on every axis
  std::int64_t zero_row =
      -1;  // of one axis: this row is all zero (fairseq's padding_idx); -1: none
  std::int64_t axes = 1;
  std::vector<std::int64_t> blocks = {};  // channels of each, even; none: one, of the width
  bool cosine_first = false;
  double amplitude = 1;

  std::int64_t pairs() const {
    return axes < 1 ? 0 : static_cast<std::int64_t>(frequency.size()) / axes;
  }
  bool operator==(const Waves&) const = default;
};

// Row p + row_offset of a learned table [rows][width]; a row outside the table is an error. Of several axes each has rows of
// its own, one axis behind the other in the table, and the rows that a token reads on all of them are added.
struct Rows {
  std::int64_t rows = 0, width = 0, row_offset = 0;
  Table table = {};
  std::vector<std::int64_t> axis_rows = {};  // of each axis, `rows` in all; none: one axis

  std::int64_t axes() const {
    return axis_rows.empty() ? 1 : static_cast<std::int64_t>(axis_rows.size());
  }
  bool operator==(const Rows&) const = default;
};

// The bare index: position · scale added into one reserved channel.
struct Ramp {
  std::int64_t width = 0, channel = 0;
  double scale = 1;
  bool operator==(const Ramp&) const = default;
};

// What is added to the token embedding, which is scaled first.
struct Add {
  std::variant<Waves, Rows, Ramp> kind = {};
  double embedding_scale = 1;  // the token embedding is multiplied by this before the sum (√d)
  bool operator==(const Add&) const = default;
};

// --- rotating query and key ---------------------------------------------------------------------

// Which two channels make a pair r of rotary_dim channels: (r, r + rotary_dim/2) or (2r, 2r + 1).
enum class Pairing { halves, interleaved };
constexpr std::string_view name(Pairing pairing) {
  return pairing == Pairing::halves ? "halves" : "interleaved";
}

// xPos: the query is multiplied by factor[r]^((p - centre)/scale), the key by its inverse.
struct XposDecay {
  std::vector<double> factor = {};  // [pair]
  double scale = 512;
  double centre = 0;
  bool operator==(const XposDecay&) const = default;
};

// Whose arithmetic the angles are formed in. The engines form them in float, which is off by more the
// farther out a token stands; a model may have to be served with the errors it was trained with.
enum class Angles {
  exact,       // in double from the integer position: the truth
  hf_float,    // Hugging Face: float position × float frequency, rounded to float
  ggml_float,  // ggml: the float position, multiplied by theta_scale once more for each pair
};
constexpr std::string_view name(Angles angles) {
  constexpr std::string_view names[] = {"exact", "hf_float", "ggml_float"};
  return names[static_cast<std::size_t>(angles)];
}

// From here on a float does not hold every position; plans whose angles are an engine's refuse it.
inline constexpr std::int64_t float_positions = std::int64_t{1} << 24;

// What ggml's rope is called with, float as there. Pair r of an axis at position p rotates by
//   t = p · theta_scale · … · theta_scale (r times) / freq_factors[r]
//   angle = freq_scale·t·(1 − m) + t·m,  m = ext_factor · (1 at ramp_low or before, 0 at ramp_high)
// and cos, sin are multiplied by attn_factor, with ext_factor also by 1 + 0.1 ln(1/freq_scale).
struct GgmlRope {
  float theta_scale = 1;              // base^(−2/rotary_dim)
  float freq_scale = 1;               // 1/s of linear scaling and YaRN
  float ext_factor = 0;               // 1 with YaRN
  float ramp_low = 0, ramp_high = 0;  // pairs
  float attn_factor = 1;
  std::vector<float> freq_factors = {};  // [pair]; empty: all 1
  bool restart = false;                  // r counts from the axis' first pair (ggml's vision mode)

  float amplitude() const;  // on cos and sin
  bool operator==(const GgmlRope&) const = default;
};

// Added to the angles of the queries, or of the keys, by head and pair. The logit of a query and a key still goes by
// their distance alone, which it is largest at moves: pair r turns by (i − j)·f_r + phase of the query's head, or
// − phase of the key's. RoPE++ has −π/2 on the queries of some heads (2512.07525), PoPE learns a phase of the keys
// (2509.10534).
struct Phase {
  bool of_keys = false;              // else of queries; values have none
  std::int64_t heads = 1;            // of that side; 1: shared by all
  std::vector<double> radians = {};  // [heads][pair]
  bool operator==(const Phase&) const = default;
};

// Sums of cosines and of sines instead of a pair's own (FoPE, 2412.17739). Of the angles a_u of the first `inputs`
// pairs, u, the first `outputs` pairs, r, of a head have
//   cos = Σ_u cos a_u · cosine[head][u][r],  sin = Σ_u sin a_u · sine[head][u][r]
// and the pairs behind have cosine 1 and sine `rest_sine` at every position. cos² + sin² is no longer 1: lengths change,
// the transpose is no inverse, and a logit goes by both positions and not by their distance alone.
struct Mix {
  std::int64_t heads = 1;  // key heads, whose mixture their query heads share; 1: shared by all
  std::int64_t inputs = 0, outputs = 0;
  std::vector<double> cosine = {}, sine = {};  // [heads][inputs][outputs]
  double rest_sine = 0;
  bool operator==(const Mix&) const = default;
};

// Where a token at position p is rotated as if it stood: min(⌊(p mod modulus)/divisor⌋ + offset, most).
struct PositionMap {
  std::int64_t modulus = 0;  // 0: none
  std::int64_t divisor = 1, offset = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();

  // ⌊a/b⌋, below 0 too.
  static constexpr std::int64_t floored(std::int64_t a, std::int64_t b) {
    return a >= 0 ? a / b : -1 - (-1 - a) / b;
  }
  constexpr std::int64_t at(std::int64_t position) const {
    if (modulus > 0) position -= floored(position, modulus) * modulus;
    return std::min(floored(position, divisor) + offset, most);
  }
  bool operator==(const PositionMap&) const = default;
};

// Rotations that hang on how a key stands to its query, so that no angle leaves what training showed: dual chunk attention
// (2402.17463), ReRoPE, SelfExtend (2401.01325). Each region has positions of its own for queries and for keys, and its
// frequencies times frequency_scale.
struct Regions {
  // How a query and a key turn for each other that stand so.
  struct Region {
    PositionMap query = {}, key = {};
    double frequency_scale = 1;
    bool operator==(const Region&) const = default;
  };
  // One of the two is above 0. Two regions: keys less than `window` behind the query, or ahead of it, and keys further behind. Or
  // three: keys of the query's ⌊p/chunk⌋ or a later one, of the one before, of those before that.
  std::int64_t window = 0, chunk = 0;
  std::vector<Region> region = {};

  std::size_t of(std::int64_t query, std::int64_t key) const {
    if (window > 0) return query - key < window ? 0 : 1;
    const std::int64_t behind =
        PositionMap::floored(query, chunk) - PositionMap::floored(key, chunk);
    return behind <= 0 ? 0 : behind == 1 ? 1 : 2;
  }
  bool operator==(const Regions&) const = default;
};

// Channels [first_dim, first_dim + rotary_dim) rotate by
//   angle[head][pair] = Σ over axes of position[axis] · frequency[head][axis][pair]
// (a, b) -> amplitude · (a cos - b sin, a sin + b cos); other channels pass unchanged.
//
// Polar (PoPE, 2509.10534): there are rotary_dim/2 channels from first_dim on, and each makes a pair of its own, of which
// it is the length and the angle is the position's alone: (softplus(x), 0), then rotated. So rotate() widens a head by
// pairs(), and attention does so for itself, a few tokens at a time; the logits' scale is that of the narrow head.
struct Rotate {
  Pairing pairing = Pairing::halves;
  std::int64_t first_dim = 0;
  std::int64_t rotary_dim = 0;
  std::int64_t blocks = 1;  // the slice is cut into equal blocks, each paired by itself
  std::int64_t heads = 1;   // 1: shared by all heads
  std::int64_t axes = 1;
  std::vector<double> frequency = {};  // [heads][axes][rotary_dim/2], radians per position
  double amplitude = 1;                // on cos and sin of query and key: logits grow by its square
  std::optional<XposDecay> growth = {};
  std::optional<Phase> phase = {};
  std::optional<Mix> mix = {};
  std::optional<Regions> regions = {};  // in attention alone: rotate() knows no pairs
  bool polar = false;
  bool values = false;                // values rotated too, and the attention's output rotated back
  bool values_stay = false;           // with values: the output is not rotated back (CLVP)
  Angles angles = Angles::exact;      // with hf_float every frequency is a float
  std::optional<GgmlRope> ggml = {};  // with ggml_float, and only then: what is computed with there

  std::int64_t pairs() const { return rotary_dim / 2; }
  bool rotates_outputs() const { return values && !values_stay; }
  // Channels that a head comes out wider.
  std::int64_t widening() const { return polar ? pairs() : 0; }
  double at(std::int64_t head, std::int64_t axis, std::int64_t pair) const {
    const std::int64_t row = (heads == 1 ? 0 : head) * axes + axis;
    return frequency[static_cast<std::size_t>(row * pairs() + pair)];
  }
  bool operator==(const Rotate&) const = default;
};

// --- bias on the attention logit ----------------------------------------------------------------

// distance = query position - key position (positive: the key is in the past).
// −slope·distance; −slope·|distance| where bidirectional.
struct Slopes {
  std::vector<double> slope = {};  // [head], positive
  bool bidirectional = false;
  bool before_scale = false;  // added to q·k, so multiplied by the logit scale too (Falcon)
  bool operator==(const Slopes&) const = default;
};

// A list of rows. Copies share its numbers, so copying a plan copies no list as long as the text: a
// list is replaced, never written.
class RowList {
 public:
  RowList() = default;
  RowList(std::vector<std::int32_t> rows)
      : rows_(std::make_shared<const std::vector<std::int32_t>>(std::move(rows))) {}
  RowList(std::initializer_list<std::int32_t> rows) : RowList(std::vector(rows)) {}

  std::size_t size() const { return rows_ == nullptr ? 0 : rows_->size(); }
  bool empty() const { return size() == 0; }
  std::int32_t operator[](std::size_t index) const { return (*rows_)[index]; }
  const std::int32_t* begin() const { return rows_ == nullptr ? nullptr : rows_->data(); }
  const std::int32_t* end() const { return begin() + size(); }
  bool operator==(const RowList& other) const {  // the same numbers
    return rows_ == other.rows_ || std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::shared_ptr<const std::vector<std::int32_t>> rows_;
};

// Distance to row of a table: row[clamp(distance, first, last) - first].
struct DistanceRows {
  std::int64_t first = 0;  // smallest distance listed
  RowList row = {};        // one entry for each distance from first on
  bool saturates = true;   // beyond both ends the end's row holds; else asking there is an error
  std::int64_t last() const { return first + static_cast<std::int64_t>(row.size()) - 1; }
  Expected<std::int64_t> at(std::int64_t distance) const;
  bool operator==(const DistanceRows&) const = default;
};

// Any function of the distance: values [head][row], or [1][row] shared by all heads. With further axes a sum of as many
// such functions: the logit gets a value for the distance on each axis, all of one table (LayoutLMv3's text, x and y).
struct BiasTable {
  DistanceRows rows = {};                       // by the distance on the positions' first axis
  std::vector<DistanceRows> further_axes = {};  // by that on the second, the third, …
  std::int64_t row_count = 0;
  Table values = {};
  bool bidirectional = false;
  std::int64_t buckets = 0;  // as the scheme names them; 0 where it has none
  std::int64_t max_distance = 0;

  std::int64_t axes() const { return 1 + static_cast<std::int64_t>(further_axes.size()); }
  const DistanceRows& of_axis(std::int64_t axis) const {
    return axis == 0 ? rows : further_axes[static_cast<std::size_t>(axis - 1)];
  }
  bool operator==(const BiasTable&) const = default;
};

using Bias = std::variant<Slopes, BiasTable>;

// --- vectors by distance ------------------------------------------------------------------------

inline constexpr std::int32_t no_row = -1;

// Added to the logit before its scale: q_i · key[row(i−j)] (key table) and k_j · query[row(i−j)]
// (query table); added to the output: Σ_j α_ij · value[row(i−j)]. Tables are [row][head_dim], or
// [head][row][head_dim] where heads differ; an absent table adds nothing, and neither does a row of no_row.
//
// A distance may name a row in each of several lists (`further_rows`), whose vectors are summed: on a picture one of the
// rows and one of the columns between two patches (ViTDet, 2203.16527), where a list of sums would have as many vectors
// as there are pairs of both.
//
// With `profiles` u the first two meet other tensors than q and k, of u channels: a profile of every query
// and one of every key (ProfileTensors of attention.h), and their tables are [row][u]. What they give is added
// after the logit's scale, times its temperature alone.
struct Relative {
  DistanceRows rows = {};
  std::vector<DistanceRows> further_rows = {};  // of the same distance, in the same tables
  std::int64_t row_count = 0;
  bool uses_query = false, uses_key = true, uses_value = false;
  Table query = {}, key = {}, value = {};
  std::int64_t max_distance = 0;
  std::int64_t profiles = 0;  // u; 0: the tables meet q and k
  std::int64_t lists() const { return 1 + static_cast<std::int64_t>(further_rows.size()); }
  const DistanceRows& list(std::int64_t index) const {
    return index == 0 ? rows : further_rows[static_cast<std::size_t>(index - 1)];
  }
  // Channels of the query and key tables.
  std::int64_t columns(std::int64_t head_dim) const { return profiles > 0 ? profiles : head_dim; }
  bool operator==(const Relative&) const = default;
};

// --- logits as a whole --------------------------------------------------------------------------

// How logits grow with the position p of their query; u = (p + offset)/floor.
enum class Temperature : std::uint8_t {
  steps,  // 1 + beta·ln(1 + ⌊u⌋): Llama 4, Ministral 3
  log,  // 1 + beta·ln(max(1, u)): Inkling; with beta 1/ln(floor) max(1, ln(p + offset)/ln(floor)): Qwen, Grok 2
  power,  // (1 + u)^beta: Beam
  heads,  // head_scale·ln(p + offset) + head_bias, learned: Mistral Large 4; scale alone: SSMax (2501.19399)
};
constexpr std::string_view name(Temperature temperature) {
  constexpr std::string_view names[] = {"steps", "log", "power", "heads"};
  return names[static_cast<std::size_t>(temperature)];
}

// z = q·k · multiplier/√head_dim · temperature, and with a softcap c logit = c·tanh(z/c), before a bias by distance
// is added (Gemma 2).
struct Logits {
  double multiplier = 1;
  Temperature temperature = Temperature::steps;
  double beta = 0;  // 0: no temperature but `heads`
  double floor = 1;
  double offset = 0;
  std::vector<double> head_scale = {},
                      head_bias = {};  // [head], of `heads`; attention without them is an error
  double softcap = 0;                  // c; 0: none

  bool has_temperature() const { return beta != 0 || temperature == Temperature::heads; }
  // All of it but the 1/√head_dim and the softcap. `head` matters to `heads` alone.
  double query_scale(std::int64_t position, std::int64_t head = 0) const;
  bool operator==(const Logits&) const = default;
};

// Gives logits the learned temperature of `table` [2][head]: scales, then biases (a checkpoint's softmax_scaling). Errors:
// another shape, more than 2^16 heads, another temperature already.
Expected<void> set_temperature(Logits& logits, const Tensor& table);

// Lengths (largest position + 1) for which a plan holds; inclusive.
struct Lengths {
  std::int64_t from = 0;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  bool contains(std::int64_t length) const { return from <= length && length <= to; }
  bool operator==(const Lengths&) const = default;
};

// NoPE is the empty plan.
struct Plan {
  std::optional<Add> add = {};
  std::optional<Rotate> rotate = {};
  std::optional<Bias> bias = {};
  std::optional<Relative> relative = {};
  Logits logits = {};
  std::optional<Lengths> valid = {};  // absent: any length
  bool operator==(const Plan&) const = default;
};

// Checks a plan written by hand or merged: sizes agree, numbers are finite, slices fit head_dim
// (0: not known). compile() returns checked plans.
Expected<Plan> checked(Plan plan, std::int64_t head_dim = 0);

// One plan out of two that act at different places (a learned table at the input, a rotation in the
// attention). Errors: both have the same part.
Expected<Plan> merged(const Plan& a, const Plan& b);

}  // namespace posenc
