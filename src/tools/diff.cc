// Where two models treat position differently: group by group of layers, by what their plans do rather than by how their
// files spell it.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/tools.h"
#include "src/core/try.h"
#include "src/explain/text.h"
#include "src/model/compare.h"

namespace posenc {
namespace {

using detail::grouped, detail::layer_list, detail::nearly, detail::shown;

constexpr double full_turn = 6.283185307179586;

FileFormat format_of(const Model& model) {
  return model.files.empty() ? FileFormat::config : model.files.front().format;  // bundled ones are
}

std::string scaling_or_none(const Rope& rope) {
  return std::holds_alternative<Unscaled>(rope.scaling) ? "none"
                                                        : detail::scaling_text(rope.scaling);
}

// Which pairs take which axis of pictures: "sections 16 24 24", "interleaved 24 20 20", "axes 1 2 1 2 0", "none".
std::string axes_text(const Rope& rope) {
  const bool listed = !rope.pair_axes.empty();
  const std::vector<std::int64_t>& numbers = listed ? rope.pair_axes : rope.mrope_section;
  if (numbers.empty()) return "none";
  std::string text = listed ? "axes" : rope.mrope_interleaved ? "interleaved" : "sections";
  for (const std::int64_t number : numbers) text += " " + std::to_string(number);
  return text;
}

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

class Differences {
 public:
  Differences(const Model& a, const Model& b, std::int64_t length)
      : a_(a), b_(b), length_(length) {}

  std::vector<Finding> run() {
    for (const Stack stack : {Stack::text, Stack::encoder, Stack::decoder, Stack::vision}) {
      const std::int64_t count = detail::layers_of(a_, stack),
                         others = detail::layers_of(b_, stack);
      if (count != others)
        add({.code = "layers",
             .severity = Severity::note,
             .stack = stack,
             .expected = std::to_string(count),
             .found = std::to_string(others),
             .message = "the number of layers differs; those that both have are compared"});
      std::map<std::pair<const LayerGroup*, const LayerGroup*>, std::vector<std::int64_t>> pairs;
      for (std::int64_t i = 0; i < std::min(count, others); ++i) {
        const LayerGroup *a = find_group(a_, i, stack), *b = find_group(b_, i, stack);
        if (a != nullptr && b != nullptr) pairs[{a, b}].push_back(i);
      }
      for (const auto& [groups, layers] : pairs) {
        stack_ = stack, layers_ = &layers;
        compare(*groups.first, *groups.second);
      }
    }
    std::ranges::stable_sort(found_, {}, &Finding::severity);
    return std::move(found_);
  }

 private:
  // What is said of several groups is said once, of all their layers.
  void add(Finding finding) {
    for (Finding& old : found_) {
      if (old.code != finding.code || old.stack != finding.stack ||
          old.message != finding.message || old.expected != finding.expected ||
          old.found != finding.found)
        continue;
      old.layers.insert(old.layers.end(), finding.layers.begin(), finding.layers.end());
      std::ranges::sort(old.layers);
      return;
    }
    found_.push_back(std::move(finding));
  }

  void differ(Finding finding) {
    differed_ = true;
    finding.stack = stack_;
    finding.layers = *layers_;
    add(std::move(finding));
  }

  void size(const char* code, std::int64_t a, std::int64_t b) {
    if (a == b) return;
    differ({.code = code,
            .severity = Severity::note,
            .expected = std::to_string(a),
            .found = std::to_string(b),
            .message = "position does not go by it; two models may differ so, two files of one "
                       "model may not"});
  }

  void compare(const LayerGroup& a, const LayerGroup& b) {
    size("heads", a.geometry.heads, b.geometry.heads);
    size("kv_heads", a.geometry.kv_heads, b.geometry.kv_heads);
    masks(a, b);
    const std::string scheme = detail::scheme_text(a), other = detail::scheme_text(b);
    if (scheme != other) {
      differ({.code = "scheme",
              .position = 1,
              .expected = scheme.empty() ? "none" : scheme,
              .found = other.empty() ? "none" : other,
              .message = "position enters these layers in different ways",
              .cure = "compare which layers rotate: posenc explain shows both"});
      return;
    }
    // A scaling may hold back until a text is long, or until it is short.
    for (const std::int64_t length : {length_, std::int64_t{0}}) {
      const Expected<Plan> plan = compile(a, length), theirs = compile(b, length);
      if (!plan || !theirs) {
        uncompiled(plan, theirs, length);
        continue;
      }
      if (parts(a, *plan, b, *theirs, length)) break;
    }
  }

  void masks(const LayerGroup& a, const LayerGroup& b) {
    const std::string window = detail::window_text(a_, a), other = detail::window_text(b_, b);
    if (window != other) {
      const std::int64_t least = std::min(window == "none" ? *b.window : *a.window,
                                          other == "none" ? *a.window : *b.window);
      differ({.code = "window",
              .position = least,
              .expected = window,
              .found = other,
              .message = "tokens further back than " + grouped(least) + " are seen by one alone",
              .cure = "set sliding_window and which layers slide as the first model has them"});
    }
    if (window != "none" && a.chunked != b.chunked)
      differ({.code = "chunked",
              .position = a.window,
              .expected = a.chunked ? "a chunk" : "a window",
              .found = b.chunked ? "a chunk" : "a window",
              .message = "a chunk begins anew at each multiple of its length, a window slides"});
    if (a.causal != b.causal)
      differ({.code = "causal",
              .expected = a.causal ? "causal" : "both ways",
              .found = b.causal ? "causal" : "both ways",
              .message = "one model hides what comes later, the other does not"});
  }

  void uncompiled(const Expected<Plan>& plan, const Expected<Plan>& theirs, std::int64_t length) {
    if (!plan && !theirs) return;
    const std::string why = (plan ? theirs : plan).error().message();
    const std::string for_length =
        length == 0 ? "as constructed" : "for " + grouped(length) + " positions";
    differ({.code = "out_of_reach",
            .position = length > 0 ? std::optional(length) : std::nullopt,
            .expected = plan ? "reached" : "refused",
            .found = theirs ? "reached" : "refused",
            .message = "one of them cannot be built " + for_length + ": " + why});
  }

  // Whether a difference was found.
  bool parts(const LayerGroup& a, const Plan& plan, const LayerGroup& b, const Plan& theirs,
             std::int64_t length) {
    differed_ = false;
    if (plan.rotate && theirs.rotate) rotations(a, *plan.rotate, b, *theirs.rotate, length);
    logits(plan, theirs);
    if (plan.bias && theirs.bias && !alike(*plan.bias, *theirs.bias))
      differ({.code = "bias",
              .position = 1,
              .expected = bias_text(*plan.bias),
              .found = bias_text(*theirs.bias),
              .message = "the biases on the logits differ"});
    if (plan.add && theirs.add) added(*plan.add, *theirs.add);
    if (plan.relative && theirs.relative && plan.relative->rows != theirs.relative->rows)
      differ({.code = "relative",
              .expected = std::to_string(plan.relative->row_count) + " rows",
              .found = std::to_string(theirs.relative->row_count) + " rows",
              .message = "distances read other rows of the table"});
    return differed_;
  }

  void rotations(const LayerGroup& a, const Rotate& rotate, const LayerGroup& b,
                 const Rotate& other, std::int64_t length) {
    if (rotate.pairing != other.pairing) {
      // Only files of one kind must agree in it: converters give the rows of q and k the order that their
      // format wants.
      const bool formats = format_of(a_) != format_of(b_);
      differ({.code = "pairing",
              .severity = formats ? Severity::note : Severity::error,
              .position = 1,
              .expected = std::string(name(rotate.pairing)),
              .found = std::string(name(other.pairing)),
              .message = formats ? "each format has its convention: right where the rows of q "
                                   "and k were permuted with it"
                                 : "the same weights rotated in other pairs make no sense from the "
                                   "second token on",
              .cure = formats ? "" : "rotate as the first model does, or permute q and k's rows"});
    }
    const std::string slice = rotated_text(rotate, a.geometry.head_dim),
                      their_slice = rotated_text(other, b.geometry.head_dim);
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
    frequencies(a, rotate, b, other, length);
    if (rotate.values != other.values)
      differ({.code = "values",
              .position = 1,
              .expected = rotate.values ? "rotated" : "not rotated",
              .found = other.values ? "rotated" : "not rotated",
              .message = "values rotate in one of them"});
    if (rotate.growth != other.growth)
      differ({.code = "xpos",
              .position = 1,
              .expected = rotate.growth ? "decays" : "none",
              .found = other.growth ? "decays" : "none",
              .message = "queries and keys grow and shrink with position in different ways"});
  }

  void frequencies(const LayerGroup& a, const Rotate& rotate, const LayerGroup& b,
                   const Rotate& other, std::int64_t length) {
    const Apart off = apart(rotate, other);
    if (!off) return;
    const Rope *rope = detail::rope_of(a), *theirs = detail::rope_of(b);
    Finding finding{.pair = off.worst, .position = off.shows_from()};
    finding.message = told(off, rotate, length > 0 ? length : length_);
    if (length == 0) finding.message = "as constructed: " + finding.message;
    if (rope == nullptr || theirs == nullptr) {
      finding.code = "frequency";
      differ(std::move(finding));
      return;
    }
    const std::string scaling = scaling_or_none(*rope), their_scaling = scaling_or_none(*theirs);
    if (!nearly(rope->rope_theta, theirs->rope_theta)) {
      const std::string base = number_text(rope->rope_theta);
      finding.code = "rope_theta";
      finding.expected = base;
      finding.found = number_text(theirs->rope_theta);
      finding.cure = "write rope_theta " + base +
                     " (GGUF: rope.freq_base, llama.cpp: " + "--rope-freq-base " + base + ")";
      differ(finding);
      if (scaling == their_scaling) return;
      finding.message = "the scaling differs beside the base";
    }
    if (const std::string axes = axes_text(*rope), their_axes = axes_text(*theirs);
        axes != their_axes && scaling == their_scaling) {
      finding.code = "mrope";
      finding.expected = axes;
      finding.found = their_axes;
      finding.cure = "write mrope_section and mrope_interleaved as the first model has them";
      differ(std::move(finding));
      return;
    }
    finding.code = scaling == their_scaling ? "rope_factors" : "rope_scaling";
    finding.expected = scaling;
    finding.found = their_scaling;
    finding.cure = cure_of_scaling(*rope, *theirs);
    differ(std::move(finding));
  }

  std::string cure_of_scaling(const Rope& rope, const Rope& theirs) const {
    const bool lost = std::holds_alternative<Unscaled>(theirs.scaling);
    if (lost && format_of(b_) == FileFormat::gguf)
      return "the conversion lost the scaling: convert again, so that the file has "
             "rope_freqs.weight or the rope.scaling keys";
    if (lost) return "the scaling was lost: write rope_scaling as the first model has it";
    if (std::holds_alternative<Unscaled>(rope.scaling))
      return "right where the context was meant to grow; else drop rope_scaling";
    return "write rope_scaling as the first model has it";
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
    return table.rows == other.rows && table.bidirectional == other.bidirectional;
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
               waves->zero_row == other.zero_row && nearly(waves->frequency, other.frequency);
      }
      if (const auto* rows = std::get_if<Rows>(&a.kind)) {
        const auto& other = std::get<Rows>(b.kind);
        return rows->rows == other.rows && rows->row_offset == other.row_offset;
      }
      return a.kind == b.kind;
    }();
    if (!alike)
      differ({.code = "added",
              .expected = added_text(a),
              .found = added_text(b),
              .message = "another vector is added at each position"});
  }

  static std::string added_text(const Add& add) {
    if (const auto* waves = std::get_if<Waves>(&add.kind))
      return std::to_string(waves->frequency.size()) + " waves, " +
             std::string(name(waves->layout)) + ", from row " + std::to_string(waves->row_offset);
    if (const auto* rows = std::get_if<Rows>(&add.kind))
      return std::to_string(rows->rows) + " rows, from row " + std::to_string(rows->row_offset);
    return "the index";
  }

  const Model &a_, &b_;
  const std::int64_t length_;
  Stack stack_ = Stack::text;
  const std::vector<std::int64_t>* layers_ = nullptr;
  std::vector<Finding> found_;
  bool differed_ = false;
};

}  // namespace

Expected<std::vector<Finding>> differences(const Model& expected, const Model& found,
                                           std::int64_t length) {
  if (length < 0) return fail("diff", "length must be 0 or more", std::to_string(length));
  // Where neither file says how long its text may be.
  constexpr std::int64_t usual = 8192;
  const std::int64_t longer = std::max(expected.context, found.context);
  const std::int64_t asked = length > 0 ? length : longer > 0 ? longer : usual;
  return Differences(expected, found, asked).run();
}

namespace {

// Of what an engine makes of `found`, beside `expected`.
Expected<EngineDifferences> differences_in(EngineReading reading, const Model& expected,
                                           std::int64_t length) {
  EngineDifferences out{std::move(reading)};
  const std::int64_t asked = length > 0 ? length : expected.context;
  if (!out.reading.refused.empty()) {
    out.findings.push_back({.code = "refused",
                            .message = out.reading.refused,
                            .cure = "choose another engine, or a file that says it otherwise"});
  } else {
    POSENC_TRY(found, differences(expected, out.reading.model, length));
    out.findings = std::move(found);
    if (const auto rows = out.reading.table_rows; rows && *rows < asked)
      out.findings.push_back({.code = "table_end",
                              .position = rows,
                              .expected = grouped(asked) + " positions",
                              .found = grouped(*rows) + " rows",
                              .message =
                                  "its table of cosines and sines ends there: later positions read "
                                  "other memory, or stop the engine",
                              .cure = "start it for " + grouped(*rows) +
                                      " tokens, or with a file whose context reaches further"});
  }
  // The cures of two files do not help where the engine is what differs.
  for (Finding& finding : out.findings) {
    finding.engines = {std::string(out.reading.engine.name)};
    if (finding.code != "refused" && finding.code != "table_end") finding.cure.clear();
  }
  return out;
}

}  // namespace

Expected<EngineDifferences> engine_differences(const Model& model, std::string_view engine,
                                               std::int64_t length) {
  POSENC_TRY(reading, read_as(model, engine, length));
  return differences_in(std::move(reading), model, length);
}

Expected<EngineDifferences> engine_differences(const Model& expected, const Model& found,
                                               std::string_view engine, std::int64_t length) {
  POSENC_TRY(meant, read_as(expected, engine, length));
  POSENC_TRY(reading, read_as(found, engine, length));
  if (!meant.refused.empty() && reading.refused.empty()) {
    reading.refused = expected.name + ": " + meant.refused;
  } else if (!reading.refused.empty()) {
    reading.refused = found.name + ": " + reading.refused;
  }
  return differences_in(std::move(reading), meant.model, length);
}

}  // namespace posenc
