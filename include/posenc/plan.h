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
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/error.h"
#include "posenc/members.h"
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
constexpr auto words_of(WaveLayout) {
  return std::array<std::string_view, 2>{"interleaved", "concatenated"};
}

// amplitude · sin and cos of each pair's angle, Σ over axes of (position + row_offset) · frequency.
// Pair r has its sine in channel 2r and its cosine in 2r + 1, or in r and r + pairs; with
// `cosine_first` the two change places. With an odd width the last pair may lack what comes second;
// channels no pair reaches are 0.
//
// Several `blocks` of channels stand side by side, each laid out by itself: a picture's rows may
// have the first half and its columns the second, both with their sines before their cosines (MAE,
// 2111.06377).
struct Waves {
  std::int64_t width = 0;
  WaveLayout layout = WaveLayout::interleaved;
  std::vector<double> frequency = {};
  std::int64_t row_offset = 0;
  std::int64_t zero_row = -1;  // fairseq's padding_idx
  std::int64_t axes = 1;
  std::vector<std::int64_t> blocks = {};
  bool cosine_first = false;
  double amplitude = 1;

  static constexpr std::string_view name = "waves";
  static constexpr auto members() {
    return std::tuple{
        Member{"width", &Waves::width, "channels of the embedding"}.within(at_least_one),
        Member{"layout", &Waves::layout,
               "interleaved: sin, cos, sin, cos…; concatenated: all sines, then all cosines"},
        Member{"frequencies", &Waves::frequency, "radians per position"}
            .by(Axis::axis, Axis::pair)
            .flat(),
        Member{"row_offset", &Waves::row_offset,
               "position p has the vector of p + offset, on every axis"},
        Member{"zero_row", &Waves::zero_row, "of one axis: this row is all zero; null: none"}
            .within(row_index)
            .null_at(-1),
        Member{"axes", &Waves::axes, "2 for pictures, 3 for videos"}
            .counts(Axis::axis)
            .within(at_least_one),
        Member{"blocks", &Waves::blocks,
               "channels of each block that is laid out by itself, even; empty: one of the width"},
        Member{"cosine_first", &Waves::cosine_first, "the cosine stands where the sine would"},
        Member{"amplitude", &Waves::amplitude, "of every sine and cosine"}};
  }
  std::int64_t pairs() const {
    return axes < 1 ? 0 : static_cast<std::int64_t>(frequency.size()) / axes;
  }
  bool operator==(const Waves&) const = default;
};

// Row p + row_offset of a learned table [rows][width]; a row outside the table is an error. Of
// several axes each has rows of its own, one axis behind the other in the table, and the rows that
// a token reads on all of them are added.
struct Rows {
  std::int64_t rows = 0, width = 0, row_offset = 0;
  Table table = {};
  std::vector<std::int64_t> axis_rows = {};

  static constexpr std::string_view name = "table";
  static constexpr auto members() {
    return std::tuple{
        Member{"rows", &Rows::rows, "rows of the table"}.within(at_least_one),
        Member{"width", &Rows::width, "channels of the embedding"}.within(at_least_one),
        Member{"row_offset", &Rows::row_offset, "position p reads row p + offset"},
        Member{"values", &Rows::table, "the table; null where it is learned"}.by(Axis::row,
                                                                                 Axis::channel),
        Member{"axis_rows", &Rows::axis_rows,
               "rows of each axis, whose sum a token adds; empty: one axis"}
            .within(at_least_one)};
  }
  std::int64_t axes() const {
    return axis_rows.empty() ? 1 : static_cast<std::int64_t>(axis_rows.size());
  }
  bool operator==(const Rows&) const = default;
};

// The bare index: position · scale added into one reserved channel.
struct Ramp {
  std::int64_t width = 0, channel = 0;
  double scale = 1;

  static constexpr std::string_view name = "ramp";
  static constexpr auto members() {
    return std::tuple{
        Member{"width", &Ramp::width, "channels of the embedding"}.within(at_least_one),
        Member{"channel", &Ramp::channel, "the channel that has the index"},
        Member{"scale", &Ramp::scale, "the index is multiplied by it"}};
  }
  bool operator==(const Ramp&) const = default;
};

// What is added to the token embedding, which is scaled first.
struct Add {
  std::variant<Waves, Rows, Ramp> kind = {};
  double embedding_scale = 1;

  static constexpr auto members() {
    return std::tuple{Member{"kind", &Add::kind, "waves, table or ramp"}.in_place(),
                      Member{"embedding_scale", &Add::embedding_scale,
                             "the token embedding is multiplied by it before the sum (√d)"}};
  }
  bool operator==(const Add&) const = default;
};

// --- rotating query and key ---------------------------------------------------------------------

// xPos grows queries and shrinks keys, phases are of one of the two; values only rotate.
enum class Side { query, key, value };
constexpr auto words_of(Side) { return std::array<std::string_view, 3>{"query", "key", "value"}; }

// Which two channels make a pair r of rotary_dim channels: (r, r + rotary_dim/2) or (2r, 2r + 1).
enum class Pairing { halves, interleaved };
constexpr auto words_of(Pairing) {
  return std::array<std::string_view, 2>{"halves", "interleaved"};
}

// The channels of a head that rotate, [first_dim, first_dim + rotary_dim), and how they are paired.
struct Slice {
  Pairing pairing = Pairing::halves;
  std::int64_t first_dim = 0;
  std::int64_t rotary_dim = 0;
  std::int64_t blocks = 1;

  static constexpr auto members() {
    return std::tuple{
        Member{"pairing", &Slice::pairing,
               "halves: channels (r, r + rotary_dim/2); interleaved: (2r, 2r + 1)"},
        Member{"first_dim", &Slice::first_dim, "first channel of the head that rotates"}.within(
            not_negative),
        Member{"rotary_dim", &Slice::rotary_dim, "channels that rotate"},
        Member{"blocks", &Slice::blocks,
               "the slice is cut into so many equal blocks, each paired by itself"}};
  }
  std::int64_t pairs() const { return rotary_dim / 2; }
  bool operator==(const Slice&) const = default;
};

// How fast each pair rotates:
//   angle[head][pair] = Σ over axes of position[axis] · radians[head][axis][pair]
struct Frequencies {
  std::int64_t heads = 1;
  std::int64_t axes = 1;
  std::vector<double> radians = {};  // per position

  static constexpr auto members() {
    return std::tuple{
        Member{"heads", &Frequencies::heads,
               "heads with frequencies of their own; 1: all share them"}
            .counts(Axis::head)
            .within(at_least_one),
        Member{"axes", &Frequencies::axes, "1 for text, 2 or 3 for pictures and videos"}
            .counts(Axis::axis)
            .within(at_least_one),
        Member{"frequencies", &Frequencies::radians,
               "radians per position, a row for each axis of each head; where each pair takes one "
               "axis alone, one row, and axis_of_pair says which"}
            .by(Axis::head, Axis::axis, Axis::pair)};
  }
  bool operator==(const Frequencies&) const = default;
};

// Added to the angles of the queries, or of the keys, by head and pair. The logit of a query and a
// key still depends on their distance alone, but is largest at another one: pair r rotates by
// (i − j)·f_r + phase of the query's head, or − phase of the key's. RoPE++ has −π/2 on the queries
// of some heads (2512.07525), PoPE learns a phase of the keys (2509.10534).
struct Phase {
  Side side = Side::query;  // values have none
  std::int64_t heads = 1;
  std::vector<double> radians = {};

  static constexpr auto members() {
    return std::tuple{
        Member{"side", &Phase::side, "query or key: the side whose angles are shifted"},
        Member{"heads", &Phase::heads,
               "heads of that side with phases of their own; 1: all share them"}
            .counts(Axis::head)
            .within(at_least_one),
        Member{"radians", &Phase::radians, "added to the angles"}.by(Axis::head, Axis::pair)};
  }
  bool operator==(const Phase&) const = default;
};

// xPos: the query is multiplied by factor[r]^((p - centre)/scale), the key by its inverse.
struct XposDecay {
  std::vector<double> factor = {};
  double scale = 512;
  double centre = 0;

  static constexpr auto members() {
    return std::tuple{
        Member{"factor", &XposDecay::factor,
               "queries × factor^((p − centre)/scale), keys × its inverse"}
            .by(Axis::pair)
            .within(positive),
        Member{"scale", &XposDecay::scale, "tokens over which a pair decays by its factor"}.within(
            positive),
        Member{"centre", &XposDecay::centre, "the position with factor 1"}};
  }
  bool operator==(const XposDecay&) const = default;
};

// (a, b) -> (a cos − b sin, a sin + b cos), and what some papers add to it.
struct Plain {
  std::optional<Phase> phase = {};
  std::optional<XposDecay> growth = {};
  std::vector<double> magnitudes = {};

  static constexpr std::string_view name = "plain";
  static constexpr auto members() {
    return std::tuple{
        Member{"phase", &Plain::phase,
               "what one side's angles have besides (RoPE++); null: nothing"},
        Member{"growth", &Plain::growth, "queries grow and keys shrink (xPos); null: neither"},
        Member{"magnitudes", &Plain::magnitudes,
               "on cos and sin of each pair, beside the amplitude; absent: 1"}
            .by(Axis::pair)
            .within(positive)
            .unless_empty()};
  }
  bool operator==(const Plain&) const = default;
};

// PoPE (2509.10534): there are rotary_dim/2 channels from first_dim on, and each makes a pair of
// its own, of which it is the length and the angle is the position's alone: (softplus(x), 0), then
// rotated. So rotate() widens a head by pairs(), and attention does so for itself, a few tokens at
// a time; the logits' scale is that of the narrow head.
struct Polar {
  std::optional<Phase> phase = {};

  static constexpr std::string_view name = "polar";
  static constexpr auto members() {
    return std::tuple{Member{"phase", &Polar::phase, "learned, of the keys; null: none"}};
  }
  bool operator==(const Polar&) const = default;
};

// Sums of cosines and of sines instead of a pair's own (FoPE, 2412.17739). Of the angles a_u of the
// first `inputs` pairs, u, the first `outputs` pairs, r, of a head have
//   cos = Σ_u cos a_u · cosine[head][u][r],  sin = Σ_u sin a_u · sine[head][u][r]
// and the pairs behind have cosine 1 and sine `rest_sine` at every position. cos² + sin² is no
// longer 1: lengths change, the transpose is no inverse, and a logit depends on both positions and
// not on their distance alone. A mixture's query heads share it with their key head.
struct Mix {
  std::int64_t heads = 1;
  std::int64_t inputs = 0, outputs = 0;
  std::vector<double> cosine = {}, sine = {};
  double rest_sine = 0;

  static constexpr std::string_view name = "mix", key = name;
  static constexpr auto members() {
    return std::tuple{
        Member{"heads", &Mix::heads, "key heads with a mixture of their own; 1: all share it"}
            .counts(Axis::key_head)
            .within(at_least_one),
        Member{"inputs", &Mix::inputs, "pairs whose cosines and sines are mixed"}
            .counts(Axis::input)
            .within(not_negative),
        Member{"outputs", &Mix::outputs, "pairs that have a sum of them"}
            .counts(Axis::output)
            .within(not_negative),
        Member{"cosine", &Mix::cosine, "weights of the cosines"}.by(Axis::key_head, Axis::input,
                                                                    Axis::output),
        Member{"sine", &Mix::sine, "weights of the sines"}.by(Axis::key_head, Axis::input,
                                                              Axis::output),
        Member{"rest_sine", &Mix::rest_sine, "sine of the pairs behind, whose cosine is 1"}};
  }
  bool operator==(const Mix&) const = default;
};

// Where a token at position p is rotated as if it stood: min(⌊(p mod modulus)/divisor⌋ + offset,
// most).
struct PositionMap {
  static constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
  static constexpr Range within_reach{.least = -0x1p62, .most = 0x1p62};

  std::int64_t modulus = 0;  // 0: none
  std::int64_t divisor = 1, offset = 0;
  std::int64_t most = no_end;

  static constexpr auto members() {
    return std::tuple{
        Member{"modulus", &PositionMap::modulus, "positions are counted modulo it; 0: as they are"}
            .within(not_negative),
        Member{"divisor", &PositionMap::divisor, "so many tokens share a position"}.within(
            at_least_one),
        Member{"offset", &PositionMap::offset, "added after the division"}.within(within_reach),
        Member{"most", &PositionMap::most, "no position is beyond it; null: no end"}
            .within({.least = -0x1p62})
            .null_at(no_end)};
  }
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

// Rotations that depend on the key's position relative to the query, so that no angle leaves what
// training showed: dual chunk attention (2402.17463), ReRoPE, SelfExtend (2401.01325). Each region
// has positions of its own for queries and for keys, and its frequencies times frequency_scale.
// Attention alone can compute it: rotate() sees no pairs of tokens.
struct Regions {
  // How a query and a key rotate when they meet in this region.
  struct Region {
    PositionMap query = {}, key = {};
    double frequency_scale = 1;

    static constexpr auto members() {
      return std::tuple{
          Member{"query", &Region::query, "where the query is rotated as if it stood"},
          Member{"key", &Region::key, "where the key is"},
          Member{"frequency_scale", &Region::frequency_scale,
                 "every frequency is multiplied by it"}};
    }
    bool operator==(const Region&) const = default;
  };
  // One of the two is above 0. Two regions: keys less than `window` behind the query, or ahead of
  // it, and keys further behind. Or three: keys of the query's ⌊p/chunk⌋ or a later one, of the one
  // before, of those before that.
  std::int64_t window = 0, chunk = 0;
  std::vector<Region> region = {};

  static constexpr std::string_view name = "regions", key = name;
  static constexpr auto members() {
    return std::tuple{
        Member{
            "window", &Regions::window,
            "two regions: keys less than so many tokens behind the query, and keys further behind"}
            .within(not_negative),
        Member{"chunk", &Regions::chunk,
               "three regions: keys of the query's chunk of so many tokens, of the one before, and "
               "of those before that"}
            .within(not_negative),
        Member{"region", &Regions::region, "what holds in each"}};
  }
  std::size_t of(std::int64_t query, std::int64_t key) const {
    if (window > 0) return query - key < window ? 0 : 1;
    const std::int64_t behind =
        PositionMap::floored(query, chunk) - PositionMap::floored(key, chunk);
    return behind <= 0 ? 0 : behind == 1 ? 1 : 2;
  }
  bool operator==(const Regions&) const = default;
};

// The two channels of a pair rotate by angles of their own (V-JEPA 2, whose cos and sin are laid
// out for halves while neighbours make the pairs):
//   (a, b) -> (a cos α − b sin α, a sin β + b cos β)
// with the frequencies' angle α and β = Σ over axes of position[axis] · radians[axis][pair].
// Lengths change, a logit depends on both positions and not on their distance alone, and the matrix
// need not have an inverse.
struct TwoAngles {
  std::vector<double> radians = {};

  static constexpr std::string_view name = "two_angles", key = name;
  static constexpr auto members() {
    return std::tuple{
        Member{"radians", &TwoAngles::radians, "per position, of the second channel of each pair"}
            .by(Axis::axis, Axis::pair)};
  }
  bool operator==(const TwoAngles&) const = default;
};

// From here on a float does not hold every position; plans whose angles are an engine's refuse it.
inline constexpr std::int64_t float_positions = std::int64_t{1} << 24;

// Hugging Face's arithmetic: float position × float frequency, rounded to float. Every frequency is
// a float. Engines form angles in float, which is off by more the farther out a token stands; a
// model may have to be served with the errors it was trained with.
struct HfFloat {
  static constexpr std::string_view name = "hf_float";
  static constexpr auto members() { return std::tuple{}; }
  bool operator==(const HfFloat&) const = default;
};

// ggml's arithmetic: what its rope is called with, float as there. Pair r of an axis at position p
// rotates by
//   t = p · theta_scale · … · theta_scale (r times) / freq_factors[r]
//   angle = freq_scale·t·(1 − m) + t·m,  m = ext_factor · (1 at ramp_low or before, 0 at ramp_high)
// and cos, sin are multiplied by attn_factor, with ext_factor also by 1 + 0.1 ln(1/freq_scale).
struct GgmlRope {
  float theta_scale = 1;
  float freq_scale = 1;
  float ext_factor = 0;
  float ramp_low = 0, ramp_high = 0;
  float attn_factor = 1;
  std::vector<float> freq_factors = {};
  bool restart = false;

  static constexpr std::string_view name = "ggml_float", key = "ggml";
  static constexpr auto members() {
    return std::tuple{
        Member{"theta_scale", &GgmlRope::theta_scale, "base^(−2/rotary_dim)"}.within(positive),
        Member{"freq_scale", &GgmlRope::freq_scale, "1/s of linear scaling and YaRN"}.within(
            positive),
        Member{"ext_factor", &GgmlRope::ext_factor, "1 with YaRN"},
        Member{"ramp_low", &GgmlRope::ramp_low, "pair where the ramp begins"},
        Member{"ramp_high", &GgmlRope::ramp_high, "pair where it ends"},
        Member{"attn_factor", &GgmlRope::attn_factor, "on cos and sin"}.within(positive),
        Member{"freq_factors", &GgmlRope::freq_factors, "divisor of each pair; empty: all 1"}
            .within(positive),
        Member{"restart", &GgmlRope::restart,
               "pairs count from the axis' first one (ggml's vision mode)"}};
  }
  float amplitude() const;  // on cos and sin
  bool operator==(const GgmlRope&) const = default;
};

// What the angles do to a pair. Who computes with it visits all of them: a new one does not compile
// until each has said what it does with it, or refuses it (posenc/features.h).
using RotationKind = std::variant<Plain, Polar, Mix, Regions, TwoAngles, HfFloat, GgmlRope>;

// Whose arithmetic the angles are formed in: exact ones in double from the integer position.
enum class Angles { exact, hf_float, ggml_float };
constexpr auto words_of(Angles) {
  return std::array<std::string_view, 3>{"exact", HfFloat::name, GgmlRope::name};
}

// What happens to values: rotated as keys are, and then the output is rotated back as queries are
// (DeepSeek-V4), or is not (CLVP).
enum class Values { unrotated, rotated, rotated_and_back };
constexpr auto words_of(Values) {
  return std::array<std::string_view, 3>{"unrotated", "rotated", "rotated_and_back"};
}

// The channels of the slice rotate by angles of the frequencies, as the kind says, times amplitude;
// other channels pass unchanged.
struct Rotate {
  Slice slice = {};
  Frequencies frequencies = {};
  double amplitude = 1;
  RotationKind kind = {};
  Values values = Values::unrotated;

  static constexpr auto members() {
    return std::tuple{
        Member{"slice", &Rotate::slice, "the channels that rotate"}.in_place(),
        Member{"frequencies", &Rotate::frequencies, "how fast they rotate"}.in_place(),
        Member{"amplitude", &Rotate::amplitude,
               "on cos and sin of both queries and keys: logits grow by its square"}
            .within(positive),
        Member{"kind", &Rotate::kind, "what the angles do to a pair"}.in_place(),
        Member{"values", &Rotate::values, "whether values rotate, and the output back"}};
  }
  std::int64_t pairs() const { return slice.pairs(); }
  bool rotates_values() const { return values != Values::unrotated; }
  bool rotates_outputs() const { return values == Values::rotated_and_back; }
  bool polar() const { return std::holds_alternative<Polar>(kind); }
  // Channels that a head comes out wider.
  std::int64_t widening() const { return polar() ? pairs() : 0; }
  Angles angles() const {
    return std::holds_alternative<HfFloat>(kind)    ? Angles::hf_float
           : std::holds_alternative<GgmlRope>(kind) ? Angles::ggml_float
                                                    : Angles::exact;
  }
  // null where this rotation has none.
  const Phase* phase() const {
    if (const auto* plain = std::get_if<Plain>(&kind))
      return plain->phase ? &*plain->phase : nullptr;
    const auto* polar = std::get_if<Polar>(&kind);
    return polar && polar->phase ? &*polar->phase : nullptr;
  }
  const XposDecay* growth() const {
    const auto* plain = std::get_if<Plain>(&kind);
    return plain && plain->growth ? &*plain->growth : nullptr;
  }
  // [pair]; empty: 1 for all.
  std::span<const double> magnitudes() const {
    const auto* plain = std::get_if<Plain>(&kind);
    return plain ? std::span<const double>(plain->magnitudes) : std::span<const double>();
  }
  const Mix* mix() const { return std::get_if<Mix>(&kind); }
  const Regions* regions() const { return std::get_if<Regions>(&kind); }
  const GgmlRope* ggml() const { return std::get_if<GgmlRope>(&kind); }
  double at(std::int64_t head, std::int64_t axis, std::int64_t pair) const {
    const std::int64_t row = (frequencies.heads == 1 ? 0 : head) * frequencies.axes + axis;
    return frequencies.radians[static_cast<std::size_t>(row * pairs() + pair)];
  }
  bool operator==(const Rotate&) const = default;
};

// --- bias on the attention logit ----------------------------------------------------------------

// distance = query position - key position (positive: the key is in the past).
// −slope·distance; −slope·|distance| where bidirectional.
struct Slopes {
  std::vector<double> slope = {};
  bool bidirectional = false;
  bool before_scale = false;

  static constexpr std::string_view name = "slope";
  static constexpr auto members() {
    return std::tuple{
        Member{"slopes", &Slopes::slope, "−slope·distance is added to a head's logits"}
            .by(Axis::head)
            .within(positive),
        Member{"bidirectional", &Slopes::bidirectional, "−slope·|distance|"},
        Member{"before_scale", &Slopes::before_scale,
               "added to q·k, so multiplied by the logits' scale too (Falcon)"}};
  }
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
  static constexpr Range within_reach{.least = -0x1p62, .most = 0x1p62};  // distances must not wrap

  std::int64_t first = 0;
  RowList row = {};
  bool saturates = true;

  static constexpr auto members() {
    return std::tuple{
        Member{"first", &DistanceRows::first, "smallest distance listed"}.within(within_reach),
        Member{"row", &DistanceRows::row,
               "a row of the table for each distance (query − key) from first on; −1: none"},
        Member{"saturates", &DistanceRows::saturates,
               "beyond both ends the end's row holds; false: asking there is an error"}};
  }
  std::int64_t last() const { return first + static_cast<std::int64_t>(row.size()) - 1; }
  Expected<std::int64_t> at(std::int64_t distance) const;
  bool operator==(const DistanceRows&) const = default;
};

// Any function of the distance: values [head][row], or [1][row] shared by all heads. With further
// axes a sum of as many such functions: the logit gets a value for the distance on each axis, all
// of one table (LayoutLMv3's text, x and y).
struct BiasTable {
  DistanceRows rows = {};
  std::vector<DistanceRows> further_axes = {};
  std::int64_t row_count = 0;
  Table values = {};
  bool bidirectional = false;
  std::int64_t buckets = 0;
  std::int64_t max_distance = 0;

  static constexpr std::string_view name = "table";
  static constexpr auto members() {
    return std::tuple{
        Member{"rows", &BiasTable::rows, "the row that a distance on the first axis reads"},
        Member{"further_axes", &BiasTable::further_axes,
               "the same for the second axis, the third, …, whose values are added"}
            .unless_empty(),
        Member{"row_count", &BiasTable::row_count, "rows of the table"}.within(at_least_one),
        Member{"values", &BiasTable::values, "[head or 1][row]; null where they are learned"}.by(
            Axis::head, Axis::row),
        Member{"bidirectional", &BiasTable::bidirectional, "keys ahead have rows of their own"},
        Member{"buckets", &BiasTable::buckets, "as the scheme names them; null: it has none"}
            .null_at(0),
        Member{"max_distance", &BiasTable::max_distance,
               "where the last bucket begins; null: the scheme has none"}
            .null_at(0)};
  }
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
// [head][row][head_dim] where heads differ; an absent table adds nothing, and neither does a row of
// no_row.
//
// A distance may name a row in each of several lists (`further_rows`), whose vectors are summed: on
// a picture one of the rows and one of the columns between two patches (ViTDet, 2203.16527), where
// a list of sums would have as many vectors as there are pairs of both.
//
// With `profiles` u the first two meet other tensors than q and k, of u channels: a profile of
// every query and one of every key (ProfileTensors of attention.h), and their tables are [row][u].
// What they give is added after the logit's scale, times its temperature alone.
struct Relative {
  DistanceRows rows = {};
  std::vector<DistanceRows> further_rows = {};
  std::int64_t row_count = 0;
  bool uses_query = false, uses_key = true, uses_value = false;
  Table query = {}, key = {}, value = {};
  std::int64_t max_distance = 0;
  std::int64_t profiles = 0;

  static constexpr auto members() {
    return std::tuple{
        Member{"rows", &Relative::rows, "the row that a distance reads"},
        Member{"further_rows", &Relative::further_rows,
               "lists beside the first: a distance reads a row of each, whose vectors are summed"}
            .unless_empty(),
        Member{"row_count", &Relative::row_count, "rows of the tables"}.within(at_least_one),
        Member{"uses_query", &Relative::uses_query, "k·query[row] is added to the logit"},
        Member{"uses_key", &Relative::uses_key, "q·key[row] is added to the logit"},
        Member{"uses_value", &Relative::uses_value, "value[row] is added to the value"},
        Member{"query", &Relative::query,
               "[row][channel] or [head][row][channel]; null: learned or not used"}
            .by(Axis::head, Axis::row, Axis::channel),
        Member{"key", &Relative::key, "the same"}.by(Axis::head, Axis::row, Axis::channel),
        Member{"value", &Relative::value, "the same"}.by(Axis::head, Axis::row, Axis::channel),
        Member{"max_distance", &Relative::max_distance, "null: the scheme has none"}.null_at(0),
        Member{"profiles", &Relative::profiles,
               "channels of the tensors that the query and key tables meet; 0: they meet q and k"}
            .within(not_negative)};
  }
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
  // 1 + beta·ln(max(1, u)): Inkling; with beta 1/ln(floor) max(1, ln(p + offset)/ln(floor)): Qwen,
  // Grok 2
  log,
  power,  // (1 + u)^beta: Beam
  // head_scale·ln(p + offset) + head_bias, learned: Mistral Large 4; scale alone: SSMax
  // (2501.19399)
  heads,
};
constexpr auto words_of(Temperature) {
  return std::array<std::string_view, 4>{"steps", "log", "power", "heads"};
}

// z = q·k · multiplier/√head_dim · temperature, and with a softcap c logit = c·tanh(z/c), before a
// bias by distance is added (Gemma 2).
struct Logits {
  double multiplier = 1;
  Temperature temperature = Temperature::steps;
  double beta = 0;  // 0: no temperature but `heads`
  double floor = 1;
  double offset = 0;
  std::vector<double> head_scale = {}, head_bias = {};  // attention without them is an error
  double softcap = 0;

  static constexpr auto members() {
    return std::tuple{
        Member{"multiplier", &Logits::multiplier, "beside 1/√head_dim"}.within(positive),
        Member{"temperature", &Logits::temperature,
               "how logits grow with the position p of their query, with u = (p + offset)/floor; "
               "none: they do not; steps: 1 + beta·ln(1 + ⌊u⌋); log: 1 + beta·ln(max(1, u)); "
               "power: (1 + u)^beta; heads: head_scale·ln(p + offset) + head_bias"},
        Member{"beta", &Logits::beta, "of the temperature"},
        Member{"floor", &Logits::floor, "of the temperature"}.within(positive),
        Member{"offset", &Logits::offset, "of the temperature"},
        Member{"head_scale", &Logits::head_scale, "null where it is the checkpoint's"}
            .by(Axis::head)
            .null_at(0),
        Member{"head_bias", &Logits::head_bias, "null where it is the checkpoint's"}
            .by(Axis::head)
            .null_at(0),
        Member{"softcap", &Logits::softcap, "c of c·tanh(z/c); 0: none"}.within(not_negative)};
  }
  bool has_temperature() const { return beta != 0 || temperature == Temperature::heads; }
  // All of it but the 1/√head_dim and the softcap. `head` matters to `heads` alone.
  double query_scale(std::int64_t position, std::int64_t head = 0) const;
  bool operator==(const Logits&) const = default;
};

// Gives logits the learned temperature of `table` [2][head]: scales, then biases (a checkpoint's
// softmax_scaling). Errors: another shape, more than 2^16 heads, another temperature already.
Expected<void> set_temperature(Logits& logits, const Tensor& table);

// Lengths (largest position + 1) for which a plan holds; inclusive.
struct Lengths {
  static constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
  std::int64_t from = 0;
  std::int64_t to = no_end;

  static constexpr auto members() {
    return std::tuple{Member{"from", &Lengths::from, "shortest"}.within(not_negative),
                      Member{"to", &Lengths::to, "longest; null: no end"}.null_at(no_end)};
  }
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
  // Members of a plan's JSON that this posenc does not know: a later one wrote them. Whoever
  // computes refuses such a plan.
  std::vector<std::string> unknown = {};

  static constexpr auto members() {
    return std::tuple{
        Member{"add", &Plan::add, "to the token embedding; null: nothing"},
        Member{"rotate", &Plan::rotate, "of queries and keys; null: nothing"},
        Member{"bias", &Plan::bias, "on the logits; null: nothing"},
        Member{"relative", &Plan::relative, "vectors by distance; null: nothing"},
        Member{"logits", &Plan::logits,
               "z = q·k · multiplier/√head_dim · temperature; with a softcap c other than 0 the "
               "logit is c·tanh(z/c), else z"},
        Member{"valid", &Plan::valid,
               "lengths for which the plan holds, both ends included; null: any length"},
        Member{"unknown", &Plan::unknown,
               "what a later posenc wrote and this one does not know; left out where there is none"}
            .unless_empty()};
  }
  bool operator==(const Plan&) const = default;
};

// Checks a plan written by hand or merged: sizes agree, numbers are finite, slices fit head_dim
// (0: not known). compile() returns checked plans.
Expected<Plan> checked(Plan plan, std::int64_t head_dim = 0);

// One plan out of two that act at different places (a learned table at the input, a rotation in the
// attention). Errors: both have the same part.
Expected<Plan> merged(const Plan& a, const Plan& b);

}  // namespace posenc
