// Where two plans rotate, scale logits, bias them or add vectors otherwise.
#include "src/tools/plan_diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/core/member_differences.h"
#include "src/explain/text.h"
#include "src/model/compare.h"

namespace posenc {
namespace {

using detail::grouped, detail::layer_list, detail::nearly, detail::shown;

constexpr double full_turn = 6.283185307179586;

std::string rotated_text(const Rotate& rotate, std::int64_t head_dim) {
  std::string text = std::to_string(rotate.slice.rotary_dim);
  if (head_dim > 0) text += " of " + std::to_string(head_dim);
  if (rotate.slice.first_dim > 0) text += " from channel " + std::to_string(rotate.slice.first_dim);
  if (rotate.slice.blocks > 1) text += " in " + std::to_string(rotate.slice.blocks) + " blocks";
  if (rotate.frequencies.axes > 1)
    text += " on " + std::to_string(rotate.frequencies.axes) + " axes";
  return text;
}

// A plan by hand may list fewer frequencies than it says.
bool whole(const Rotate& rotate) {
  return rotate.frequencies.heads > 0 && rotate.frequencies.axes > 0 && rotate.pairs() >= 0 &&
         std::ssize(rotate.frequencies.radians) ==
             rotate.frequencies.heads * rotate.frequencies.axes * rotate.pairs();
}

std::string axes_text(const Rotate& rotate) {
  const std::int64_t axes = rotate.frequencies.axes;
  return axes == 1 ? "1 axis" : std::to_string(axes) + " axes";
}

// Whether two rotations are alike but for the number of their axes.
bool differ_in_axes(const Rotate& a, const Rotate& b) {
  auto slice = b.slice;
  slice.pairing = a.slice.pairing;  // which is told of its own
  return whole(a) && whole(b) && a.slice == slice && a.frequencies.heads == 1 &&
         b.frequencies.heads == 1 && a.frequencies.axes != b.frequencies.axes;
}

// What is left where all axes have the same position.
Rotate on_text(Rotate of) {
  std::vector<double> sums;
  for (std::int64_t r = 0; r < of.pairs(); ++r) {
    double sum = 0;
    for (std::int64_t axis = 0; axis < of.frequencies.axes; ++axis) sum += of.at(0, axis, r);
    sums.push_back(sum);
  }
  of.frequencies.axes = 1;
  of.frequencies.radians = std::move(sums);
  return of;
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

// Of the heads that both have; a list for all heads holds for each.
Apart apart(const Rotate& a, const Rotate& b) {
  const std::int64_t heads = a.frequencies.heads == 1 || b.frequencies.heads == 1
                                 ? std::max(a.frequencies.heads, b.frequencies.heads)
                                 : std::min(a.frequencies.heads, b.frequencies.heads);
  Apart out;
  for (std::int64_t r = 0; r < a.pairs(); ++r) {
    double most = 0;
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t axis = 0; axis < a.frequencies.axes; ++axis) {
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

// "pairs 29–63 of 64 rotate otherwise; nothing shows before position 112; at 8,191 pair 29 is off
// by 7.3 rad (1.2 turns)"
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

std::string lengths_text(const std::optional<Lengths>& valid) {
  if (!valid) return "any length";
  const bool open = valid->to == std::numeric_limits<std::int64_t>::max();
  return grouped(valid->from) + " to " + (open ? "any" : grouped(valid->to));
}

class PlanDifferences {
 public:
  PlanDifferences(std::int64_t head_dim, std::int64_t length)
      : head_dim_(head_dim), length_(length) {}

  std::vector<Finding> run(const Plan& plan, const Plan& theirs) {
    if (plan.rotate && theirs.rotate) rotations(*plan.rotate, *theirs.rotate);
    logits(plan, theirs);
    if (plan.bias && theirs.bias) biases(*plan.bias, *theirs.bias);
    if (plan.add && theirs.add) added(*plan.add, *theirs.add);
    if (plan.relative && theirs.relative)
      if (const auto all = detail::member_differences(*plan.relative, *theirs.relative);
          !all.empty())
        differ({.code = "relative",
                .expected = std::to_string(plan.relative->row_count) + " rows",
                .found = std::to_string(theirs.relative->row_count) + " rows",
                .message = "distances read other rows, or other vectors: " + detail::told(all)});
    if (plan.unknown != theirs.unknown)
      differ({.code = "unknown",
              .expected = std::to_string(plan.unknown.size()) + " members",
              .found = std::to_string(theirs.unknown.size()) + " members",
              .message = "a later posenc wrote members that this one does not know",
              .cure = "compare them with that one"});
    return std::move(found_);
  }

 private:
  void differ(Finding finding) { found_.push_back(std::move(finding)); }

  void rotations(const Rotate& rotate, const Rotate& other) {
    if (rotate.slice.pairing != other.slice.pairing)
      differ({.code = "pairing",
              .position = 1,
              .expected = std::string(name(rotate.slice.pairing)),
              .found = std::string(name(other.slice.pairing)),
              .message = "the same weights rotated in other pairs make no sense from the second "
                         "token on",
              .cure = "rotate as the first does, or permute q and k's rows"});
    if (slices(rotate, other)) frequencies(rotate, other);
    const auto of_values = [](const Rotate& each) {
      return !each.rotates_values()           ? "not rotated"
             : each.values == Values::rotated ? "rotated, and stay so"
                                              : "rotated";
    };
    if (rotate.values != other.values)
      differ({.code = "values",
              .position = 1,
              .expected = of_values(rotate),
              .found = of_values(other),
              .message = rotate.rotates_values() != other.rotates_values()
                             ? "values rotate in one of them"
                             : "the output is rotated back in one of them"});
    kinds(rotate, other);
  }

  // Whether the same channels rotate.
  bool slices(const Rotate& rotate, const Rotate& other) {
    const std::string slice = rotated_text(rotate, head_dim_),
                      their_slice = rotated_text(other, head_dim_);
    if (slice == their_slice) return true;
    if (differ_in_axes(rotate, other)) {
      const Rotate text = on_text(rotate), their_text = on_text(other);
      const bool alike = !apart(text, their_text) && rotate.slice.pairing == other.slice.pairing;
      differ(
          {.code = "mrope",
           .severity = Severity::warning,
           .expected = axes_text(rotate),
           .found = axes_text(other),
           .message = std::string(detail::axes_not_seen) + (alike ? "; text rotates alike" : ""),
           .cure = std::string(alike ? "use both for text alone, or " : "") +
                   "write mrope_section as the first has it; convert a GGUF anew: llama.cpp reads "
                   "rope.dimension_sections of architectures with pictures alone, such as "
                   "qwen2vl"});
      if (!alike) frequencies(text, their_text);
      return false;
    }
    differ({.code = "rotary_dim",
            .position = 1,
            .expected = slice,
            .found = their_slice,
            .message = "other channels of a head rotate",
            .cure = "write partial_rotary_factor (GGUF: rope.dimension_count) as the first has "
                    "it"});
    return false;
  }

  void frequencies(const Rotate& rotate, const Rotate& other) {
    const bool comparable = whole(rotate) && whole(other);
    const Apart off = comparable ? apart(rotate, other) : Apart{};
    const auto heads = [](const Rotate& each) {
      return each.frequencies.heads == 1
                 ? std::string("one list for all heads")
                 : std::to_string(each.frequencies.heads) + " heads with a list each";
    };
    const bool shared = rotate.frequencies.heads == 1 || other.frequencies.heads == 1;
    if (rotate.frequencies.heads != other.frequencies.heads)
      differ({.code = "frequency_heads",
              .severity = shared && comparable && !off ? Severity::note : Severity::error,
              .position = 1,
              .expected = heads(rotate),
              .found = heads(other),
              .message = shared && !off
                             ? "one lists the frequencies of each head, which are the same"
                             : "heads rotate by frequencies of their own, and one has more of such "
                               "heads; those that both have are compared"});
    if (off)
      differ({.code = "frequency",
              .pair = off.worst,
              .position = off.shows_from(),
              .message = told(off, rotate, length_)});
    if (!comparable && !nearly(rotate.frequencies.radians, other.frequencies.radians))
      differ({.code = "frequency",
              .position = 1,
              .expected = std::to_string(rotate.frequencies.radians.size()) + " frequencies",
              .found = std::to_string(other.frequencies.radians.size()) + " frequencies",
              .message = "a plan must list a frequency for each head, axis and pair"});
  }

  // What a rotation is besides its frequencies: xPos, phases, mixtures, distance maps, lengths as
  // angles, an engine's arithmetic.
  void kinds(const Rotate& rotate, const Rotate& other) {
    part(rotate.growth(), other.growth(),
         {.code = "xpos",
          .position = 1,
          .expected = rotate.growth() ? "decays" : "none",
          .found = other.growth() ? "decays" : "none",
          .message = "queries and keys grow and shrink with position in different ways"});
    part(rotate.phase(), other.phase(),
         {.code = "phase",
          .position = 0,
          .expected = phase_text(rotate.phase()),
          .found = phase_text(other.phase()),
          .message = "the angles of queries or keys begin elsewhere, so that logits are largest at "
                     "another distance"});
    const auto tell = [&](const Rotate& of) {
      std::visit([&](const auto& kind) { of_kind(kind, rotate, other); }, of.kind);
    };
    tell(rotate);
    if (rotate.kind.index() != other.kind.index()) tell(other);
  }

  void of_kind(const Plain&, const Rotate& rotate, const Rotate& other) {
    const auto one = rotate.magnitudes(), two = other.magnitudes();
    const auto at = [](std::span<const double> of, std::size_t r) {
      return of.empty() ? 1 : of[r];
    };
    for (std::size_t r = 0; r < std::max(one.size(), two.size()); ++r) {
      if (nearly(at(one, r), at(two, r))) continue;
      return differ({.code = "pair_magnitude",
                     .pair = static_cast<std::int64_t>(r),
                     .position = 0,
                     .expected = number_text(at(one, r)),
                     .found = number_text(at(two, r)),
                     .message = "cos and sin of a pair are multiplied by another number"});
    }
  }
  void of_kind(const Polar&, const Rotate& rotate, const Rotate& other) {
    if (rotate.polar() == other.polar()) return;
    differ({.code = "polar",
            .position = 0,
            .expected = rotate.polar() ? "lengths" : "coordinates",
            .found = other.polar() ? "lengths" : "coordinates",
            .message = "a channel is the length of a pair in one of them (PoPE)"});
  }
  void of_kind(const Mix&, const Rotate& rotate, const Rotate& other) {
    part(rotate.mix(), other.mix(),
         {.code = "mix",
          .position = 0,
          .expected = mix_text(rotate.mix()),
          .found = mix_text(other.mix()),
          .message = "other sums of cosines stand for the cosine of a pair (FoPE)"});
  }
  void of_kind(const Regions&, const Rotate& rotate, const Rotate& other) {
    part(rotate.regions(), other.regions(),
         {.code = "distance_map",
          .position = maps_from(rotate.regions(), other.regions()),
          .expected = map_text(rotate.regions()),
          .found = map_text(other.regions()),
          .message = "a key further back is rotated as if it stood elsewhere",
          .cure = "write dual_chunk_attention_config, or tell the engine of the map, as the first "
                  "has it"});
  }
  void of_kind(const TwoAngles&, const Rotate& rotate, const Rotate& other) {
    const auto text = [](const Rotate& each) {
      return std::holds_alternative<TwoAngles>(each.kind) ? "two a pair" : "one a pair";
    };
    part(std::get_if<TwoAngles>(&rotate.kind), std::get_if<TwoAngles>(&other.kind),
         {.code = "two_angles",
          .position = 1,
          .expected = text(rotate),
          .found = text(other),
          .message = "the second channels of pairs rotate by other angles"});
  }
  void of_kind(const HfFloat&, const Rotate& rotate, const Rotate& other) { angles(rotate, other); }
  void of_kind(const GgmlRope&, const Rotate& rotate, const Rotate& other) {
    angles(rotate, other);
    if (rotate.ggml() && other.ggml())
      part(rotate.ggml(), other.ggml(),
           {.code = "ggml", .position = 1, .message = "ggml's rope is called with other numbers"});
  }

  // Rounding changes a text far out at most; what ggml is called with changes the angles
  // themselves.
  void angles(const Rotate& rotate, const Rotate& other) {
    if (rotate.angles() == other.angles() ||
        std::ranges::find(found_, "angles", &Finding::code) != found_.end())
      return;
    differ({.code = "angles",
            .severity = Severity::note,
            .expected = std::string(name(rotate.angles())),
            .found = std::string(name(other.angles())),
            .message = "angles are formed in other arithmetic, and come apart by rounding far "
                       "out: posenc precision tells by how much"});
  }

  // A part that one of two may have alone; null: not there.
  template <class Part>
  void part(const Part* one, const Part* other, Finding finding) {
    if (one == nullptr && other == nullptr) return;
    if (one == nullptr || other == nullptr) return differ(std::move(finding));
    const auto all = detail::member_differences(*one, *other);
    if (all.empty()) return;
    finding.message += ": " + detail::told(all);
    differ(std::move(finding));
  }

  static std::string phase_text(const Phase* phase) {
    if (!phase) return "none";
    return "of " + std::string(phase->side == Side::key ? "keys" : "queries") +
           (phase->heads == 1 ? ", shared by all heads"
                              : ", " + std::to_string(phase->heads) + " heads");
  }
  static std::string mix_text(const Mix* mix) {
    if (!mix) return "none";
    return std::to_string(mix->outputs) + " pairs out of " + std::to_string(mix->inputs);
  }
  static std::string map_text(const Regions* regions) {
    if (!regions) return "none";
    return regions->window > 0 ? "from distance " + grouped(regions->window) + " on"
                               : "chunks of " + grouped(regions->chunk);
  }
  // The first position at which two maps may rotate otherwise: tokens of the first chunk, or of one
  // window, are as without a map, unless the map's first region says otherwise.
  static std::int64_t maps_from(const Regions* a, const Regions* b) {
    std::int64_t from = std::numeric_limits<std::int64_t>::max();
    for (const Regions* each : {a, b})
      if (each) from = std::min(from, std::max(each->window, each->chunk));
    const bool near_alike = std::ranges::all_of(std::array{a, b}, [&](const auto& each) {
      return !each || each->region.empty() || plain_until(each->region.front(), from);
    });
    return near_alike ? from : 1;
  }
  static bool plain_until(const Regions::Region& region, std::int64_t length) {
    const auto plain = [&](const PositionMap& map) {
      return (map.modulus == 0 || map.modulus >= length) && map.divisor == 1 && map.offset == 0 &&
             map.most >= length - 1;
    };
    return plain(region.query) && plain(region.key) && region.frequency_scale == 1;
  }

  // The factor on cos and sin acts twice on a logit; one on the logits once.
  void logits(const Plan& plan, const Plan& theirs) {
    const double amplitude = plan.rotate ? plan.rotate->amplitude : 1,
                 other = theirs.rotate ? theirs.rotate->amplitude : 1;
    const double whole = amplitude * amplitude * plan.logits.multiplier,
                 their_whole = other * other * theirs.logits.multiplier;
    // A factor on cos and sin does not reach channels that do not rotate.
    const std::int64_t rotated =
        plan.rotate ? plan.rotate->slice.rotary_dim * plan.rotate->slice.blocks : 0;
    const bool one_product = nearly(whole, their_whole) && !nearly(amplitude, other);
    const bool made_good = one_product && (head_dim_ == 0 || rotated == head_dim_);
    if (!nearly(amplitude, other)) {
      differ({.code = "amplitude",
              .severity = made_good ? Severity::note : Severity::error,
              .expected = "×" + shown(amplitude, 6),
              .found = "×" + shown(other, 6),
              .message = made_good
                             ? "the factor acts on cos and sin in one and on the logits in the "
                               "other: the same, if all channels rotate"
                         : one_product
                             ? "the factor acts on cos and sin in one and on the logits in the "
                               "other: the channels that do not rotate have logits " +
                                   shown(theirs.logits.multiplier / plan.logits.multiplier, 4) +
                                   " times as large, at any length"
                             : "logits of the rotated channels are " +
                                   shown(their_whole / whole, 4) + " times as large, at any length",
              .cure = made_good ? ""
                                : "set attention_factor (llama.cpp: --yarn-attn-factor) so that "
                                  "the engine multiplies by " +
                                      shown(amplitude, 6)});
    }
    const Logits &mine = plan.logits, &yours = theirs.logits;
    const bool one_size = made_good || nearly(mine.multiplier, yours.multiplier);
    const bool one_cap = nearly(mine.softcap, yours.softcap);
    if (one_size && one_cap && detail::same_temperature(mine, yours)) return;
    // Logits that do not grow differ from those that do beyond the floor of these alone.
    const double floor = !mine.has_temperature()    ? yours.floor
                         : !yours.has_temperature() ? mine.floor
                                                    : std::min(mine.floor, yours.floor);
    const double from = std::clamp(floor, 0.0, 0x1p62);
    differ({.code = "logits",
            .position =
                one_size && one_cap ? std::optional(static_cast<std::int64_t>(from)) : std::nullopt,
            .expected = detail::logits_text(mine),
            .found = detail::logits_text(yours),
            .message = "the logits are scaled otherwise"});
  }

  // Names of buckets alone (of a table whose rows are the same) change nothing.
  void biases(const Bias& bias, const Bias& other) {
    const auto all = detail::member_differences(bias, other);
    if (all.empty()) return;
    const bool names_alone = std::ranges::all_of(all, [](const auto& one) {
      return one.member == "buckets" || one.member == "max_distance";
    });
    differ({.code = "bias",
            .severity = names_alone ? Severity::note : Severity::error,
            .position = names_alone ? std::nullopt : std::optional<std::int64_t>(1),
            .expected = bias_text(bias),
            .found = bias_text(other),
            .message = names_alone ? "buckets are named otherwise; each distance reads the same row"
                                   : "the biases on the logits differ: " + detail::told(all)});
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
    auto all = detail::member_differences(a, b);
    std::erase_if(all, [](const auto& one) { return one.member == "embedding_scale"; });
    const auto *rows = std::get_if<Rows>(&a.kind), *others = std::get_if<Rows>(&b.kind);
    // Tables that the files do not have, of two lengths.
    if (all.size() == 1 && rows && others && rows->rows != others->rows)
      differ({.code = "added",
              .expected = added_text(a),
              .found = added_text(b),
              .message = "rows from " +
                         grouped(std::min(rows->rows, others->rows) - rows->row_offset) +
                         " on stand in one table alone: weights of the shorter one do not load "
                         "into the longer, or leave those rows untrained"});
    else if (!all.empty())
      differ({.code = "added",
              .expected = added_text(a),
              .found = added_text(b),
              .message = "another vector is added at each position: " + detail::told(all)});
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
  std::vector<Finding> all =
      detail::plan_differences(expected, found, 0, length > 0 ? length : detail::usual_length);
  if (expected.valid != found.valid)
    all.push_back({.code = "valid",
                   .severity = Severity::note,
                   .expected = lengths_text(expected.valid),
                   .found = lengths_text(found.valid),
                   .message =
                       "they hold for texts of other lengths, where a scaling depends on the "
                       "length: compile both for the same one"});
  return all;
}

}  // namespace posenc
