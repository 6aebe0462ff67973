// Where two plans rotate, scale logits, bias them or add vectors otherwise.
#include "src/tools/plan_diff.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/explain/text.h"
#include "src/model/compare.h"

namespace posenc {
namespace {

using detail::grouped, detail::layer_list, detail::nearly, detail::shown;

constexpr double full_turn = 6.283185307179586;

std::string rotated_text(const Rotate& rotate, std::int64_t head_dim) {
  std::string text = std::to_string(rotate.rotary_dim);
  if (head_dim > 0) text += " of " + std::to_string(head_dim);
  if (rotate.first_dim > 0) text += " from channel " + std::to_string(rotate.first_dim);
  if (rotate.blocks > 1) text += " in " + std::to_string(rotate.blocks) + " blocks";
  return text;
}

// How far the angles of two rotations of one shape come apart.
struct Apart {
  std::vector<std::int64_t> pairs = {};  // that differ
  std::int64_t worst = 0;                // of them, by the difference of its frequency
  double by = 0;                         // that difference, radians per position
  explicit operator bool() const { return !pairs.empty(); }

  // The first position at which an angle is off by so much that it shows.
  std::int64_t shows_from() const {
    return static_cast<std::int64_t>(std::min(std::ceil(angle_that_shows / by), 0x1p62));
  }
};

Apart apart(const Rotate& a, const Rotate& b) {
  Apart out;
  for (std::int64_t r = 0; r < a.pairs(); ++r) {
    double most = 0;
    for (std::int64_t head = 0; head < std::max(a.heads, b.heads); ++head) {
      for (std::int64_t axis = 0; axis < a.axes; ++axis) {
        const double x = a.at(head, axis, r), y = b.at(head, axis, r);
        if (!nearly(x, y)) most = std::max(most, std::abs(x - y));
      }
    }
    if (most == 0) continue;
    out.pairs.push_back(r);
    if (most > out.by) out.by = most, out.worst = r;
  }
  return out;
}

// 1.9, 117, 1,075
std::string few_digits(double x) { return x < 100 ? shown(x, 2) : grouped(std::llround(x)); }

// "pairs 29–63 of 64 rotate otherwise; nothing shows before position 112; at 8,191 pair 29 is off by 7.3 rad (1.2 turns)"
std::string told(const Apart& apart, const Rotate& rotate, std::int64_t length) {
  const std::int64_t last = std::max<std::int64_t>(length - 1, 1);
  const double angle = apart.by * static_cast<double>(last);
  std::string text = "pairs " + layer_list(apart.pairs) + " of " + std::to_string(rotate.pairs()) +
                     " rotate otherwise; ";
  if (apart.shows_from() > 1)
    text += "nothing shows before position " + grouped(apart.shows_from()) + "; ";
  text += "at " + grouped(last) + " pair " + std::to_string(apart.worst) + " is off by " +
          few_digits(angle) + " rad";
  if (angle > full_turn) text += " (" + few_digits(angle / full_turn) + " turns)";
  return text;
}

// "rotation + bias"
std::string places_text(const Plan& plan) {
  const std::pair<bool, const char*> places[] = {
      {plan.add.has_value(), "added vectors"},
      {plan.rotate.has_value(), "rotation"},
      {plan.bias.has_value(), "bias"},
      {plan.relative.has_value(), "vectors by distance"}};
  std::string text;
  for (const auto& [there, name] : places)
    if (there) text += (text.empty() ? "" : " + ") + std::string(name);
  return text.empty() ? "none" : text;
}

class PlanDifferences {
 public:
  PlanDifferences(std::int64_t head_dim, std::int64_t length)
      : head_dim_(head_dim), length_(length) {}

  std::vector<Finding> run(const Plan& plan, const Plan& theirs) {
    if (plan.rotate && theirs.rotate) rotations(*plan.rotate, *theirs.rotate);
    logits(plan, theirs);
    if (plan.bias && theirs.bias && !alike(*plan.bias, *theirs.bias))
      differ({.code = "bias",
              .position = 1,
              .expected = bias_text(*plan.bias),
              .found = bias_text(*theirs.bias),
              .message = "the biases on the logits differ"});
    if (plan.add && theirs.add) added(*plan.add, *theirs.add);
    if (plan.relative && theirs.relative && !(*plan.relative == *theirs.relative))
      differ({.code = "relative",
              .expected = std::to_string(plan.relative->row_count) + " rows",
              .found = std::to_string(theirs.relative->row_count) + " rows",
              .message = "distances read other rows, or other vectors"});
    return std::move(found_);
  }

 private:
  void differ(Finding finding) { found_.push_back(std::move(finding)); }

  void rotations(const Rotate& rotate, const Rotate& other) {
    if (rotate.pairing != other.pairing)
      differ({.code = "pairing",
              .position = 1,
              .expected = std::string(name(rotate.pairing)),
              .found = std::string(name(other.pairing)),
              .message = "the same weights rotated in other pairs make no sense from the second "
                         "token on",
              .cure = "rotate as the first does, or permute q and k's rows"});
    const std::string slice = rotated_text(rotate, head_dim_),
                      their_slice = rotated_text(other, head_dim_);
    if (slice != their_slice || rotate.axes != other.axes) {
      differ({.code = "rotary_dim",
              .position = 1,
              .expected = slice,
              .found = their_slice,
              .message = "other channels of a head rotate",
              .cure = "write partial_rotary_factor (GGUF: rope.dimension_count) as the first has "
                      "it"});
      return;
    }
    if (const Apart off = apart(rotate, other))
      differ({.code = "frequency",
              .pair = off.worst,
              .position = off.shows_from(),
              .message = told(off, rotate, length_)});
    const auto of_values = [](const Rotate& each) {
      return !each.values ? "not rotated" : each.values_stay ? "rotated, and stay so" : "rotated";
    };
    if (rotate.values != other.values || rotate.values_stay != other.values_stay)
      differ({.code = "values",
              .position = 1,
              .expected = of_values(rotate),
              .found = of_values(other),
              .message = rotate.values != other.values
                             ? "values rotate in one of them"
                             : "the output is rotated back in one of them"});
    if (rotate.growth != other.growth)
      differ({.code = "xpos",
              .position = 1,
              .expected = rotate.growth ? "decays" : "none",
              .found = other.growth ? "decays" : "none",
              .message = "queries and keys grow and shrink with position in different ways"});
  }

  // The factor on cos and sin acts twice on a logit; one on the logits once.
  void logits(const Plan& plan, const Plan& theirs) {
    const double amplitude = plan.rotate ? plan.rotate->amplitude : 1,
                 other = theirs.rotate ? theirs.rotate->amplitude : 1;
    const double whole = amplitude * amplitude * plan.logits.multiplier,
                 their_whole = other * other * theirs.logits.multiplier;
    if (!nearly(amplitude, other)) {
      const bool made_good = nearly(whole, their_whole);
      differ({.code = "amplitude",
              .severity = made_good ? Severity::note : Severity::error,
              .expected = "×" + shown(amplitude, 6),
              .found = "×" + shown(other, 6),
              .message = made_good
                             ? "the factor acts on cos and sin in one and on the logits in the "
                               "other: the same, if all channels rotate"
                             : "logits of the rotated channels are " +
                                   shown(their_whole / whole, 4) + " times as large, at any length",
              .cure = made_good ? ""
                                : "set attention_factor (llama.cpp: --yarn-attn-factor) so that "
                                  "the engine multiplies by " +
                                      shown(amplitude, 6)});
      if (made_good) return;
    }
    const Logits &mine = plan.logits, &yours = theirs.logits;
    if (!nearly(mine.multiplier, yours.multiplier) || !detail::same_temperature(mine, yours) ||
        !nearly(mine.softcap, yours.softcap))
      differ({.code = "logits",
              .position =
                  nearly(mine.multiplier, yours.multiplier) && nearly(mine.softcap, yours.softcap)
                      ? std::optional(static_cast<std::int64_t>(std::min(mine.floor, yours.floor)))
                      : std::nullopt,
              .expected = detail::logits_text(mine),
              .found = detail::logits_text(yours),
              .message = "the logits are scaled otherwise"});
  }

  static bool alike(const Bias& a, const Bias& b) {
    if (a.index() != b.index()) return false;
    if (const auto* slopes = std::get_if<Slopes>(&a)) {
      const auto& other = std::get<Slopes>(b);
      return nearly(slopes->slope, other.slope) && slopes->bidirectional == other.bidirectional &&
             slopes->before_scale == other.before_scale;
    }
    const auto &table = std::get<BiasTable>(a), &other = std::get<BiasTable>(b);
    return table.rows == other.rows && table.further_axes == other.further_axes &&
           table.bidirectional == other.bidirectional && table.values == other.values;
  }

  static std::string bias_text(const Bias& bias) {
    if (const auto* slopes = std::get_if<Slopes>(&bias)) {
      return std::to_string(slopes->slope.size()) + " slopes from " +
             (slopes->slope.empty() ? "none" : shown(slopes->slope.front(), 4)) +
             (slopes->bidirectional ? ", both ways" : "") +
             (slopes->before_scale ? ", before the scale" : "");
    }
    const auto& table = std::get<BiasTable>(bias);
    return std::to_string(table.buckets) + " buckets up to " + std::to_string(table.max_distance) +
           (table.bidirectional ? ", both ways" : "");
  }

  void added(const Add& a, const Add& b) {
    if (!nearly(a.embedding_scale, b.embedding_scale))
      differ({.code = "embedding_scale",
              .expected = "×" + number_text(a.embedding_scale),
              .found = "×" + number_text(b.embedding_scale),
              .message = "token embeddings are scaled otherwise before positions are added"});
    const bool alike = [&] {
      if (a.kind.index() != b.kind.index()) return false;
      if (const auto* waves = std::get_if<Waves>(&a.kind)) {
        const auto& other = std::get<Waves>(b.kind);
        return waves->layout == other.layout && waves->row_offset == other.row_offset &&
               waves->zero_row == other.zero_row && waves->axes == other.axes &&
               waves->blocks == other.blocks && waves->cosine_first == other.cosine_first &&
               nearly(waves->amplitude, other.amplitude) &&
               nearly(waves->frequency, other.frequency);
      }
      if (const auto* rows = std::get_if<Rows>(&a.kind)) {
        const auto& other = std::get<Rows>(b.kind);
        return rows->rows == other.rows && rows->row_offset == other.row_offset &&
               rows->table == other.table && rows->axis_rows == other.axis_rows;
      }
      return a.kind == b.kind;
    }();
    if (!alike)
      differ({.code = "added",
              .expected = added_text(a),
              .found = added_text(b),
              .message = "another vector is added at each position"});
  }

  static std::string of_axes(std::int64_t axes) {
    return axes == 1 ? "" : " of " + std::to_string(axes) + " axes";
  }
  static std::string added_text(const Add& add) {
    if (const auto* waves = std::get_if<Waves>(&add.kind))
      return std::to_string(waves->pairs()) + " waves" + of_axes(waves->axes) + ", " +
             std::string(name(waves->layout)) + (waves->cosine_first ? ", cosines first" : "") +
             (waves->amplitude == 1 ? "" : ", times " + number_text(waves->amplitude)) +
             ", from row " + std::to_string(waves->row_offset);
    if (const auto* rows = std::get_if<Rows>(&add.kind))
      return std::to_string(rows->rows) + " rows" + of_axes(rows->axes()) + ", from row " +
             std::to_string(rows->row_offset);
    return "the index";
  }

  const std::int64_t head_dim_, length_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> detail::plan_differences(const Plan& expected, const Plan& found,
                                              std::int64_t head_dim, std::int64_t length) {
  return PlanDifferences(head_dim, length).run(expected, found);
}

Expected<std::vector<Finding>> differences(const Plan& expected, const Plan& found,
                                           std::int64_t length) {
  if (length < 0) return fail("diff", "length must be 0 or more", std::to_string(length));
  if (const std::string places = places_text(expected), others = places_text(found);
      places != others)
    return std::vector<Finding>{{.code = "scheme",
                                 .position = 1,
                                 .expected = places,
                                 .found = others,
                                 .message = "position enters in different ways"}};
  return detail::plan_differences(expected, found, 0, length > 0 ? length : detail::usual_length);
}

}  // namespace posenc
