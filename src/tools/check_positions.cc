// Position ids against those that a rule gives. Each known slip is a rule too: the one that makes
// the ids that were found, all of them, is named.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "posenc/tools.h"

namespace posenc {
namespace {

class PositionCheck {
 public:
  PositionCheck(const PositionIds& found, const Positions& expected,
                std::span<const std::uint8_t> keep)
      : found_(found), expected_(expected), keep_(keep) {}

  std::vector<Finding> run() {
    if (expected_.axes() > 1 && (found_.axes == 1 || alike_on_all_axes())) {
      flat();
    } else {
      for (std::int64_t b = 0; b < found_.batch; ++b)
        for (std::int64_t axis = 0; axis < found_.axes; ++axis) row(b, axis);
    }
    return std::move(findings_);
  }

 private:
  bool seen(std::int64_t b, std::int64_t t) const {
    return keep_.empty() || keep_[static_cast<std::size_t>(b * found_.seq + t)] != 0;
  }
  std::int64_t found(std::int64_t b, std::int64_t axis, std::int64_t t) const {
    return found_.ids[static_cast<std::size_t>((axis * found_.batch + b) * found_.seq + t)];
  }
  std::int64_t expected(std::int64_t b, std::int64_t axis, std::int64_t t) const {
    return expected_.at(t, b, axis);
  }

  // Whether every token of the row that is no padding has the id that `rule` gives.
  template <class Rule>
  bool made_by(std::int64_t b, std::int64_t axis, Rule rule) const {
    for (std::int64_t t = 0; t < found_.seq; ++t)
      if (seen(b, t) && found(b, axis, t) != rule(t)) return false;
    return true;
  }

  // The first token of a row that is off, or −1.
  std::int64_t first_off(std::int64_t b, std::int64_t axis) const {
    for (std::int64_t t = 0; t < found_.seq; ++t)
      if (seen(b, t) && found(b, axis, t) != expected(b, axis, t)) return t;
    return -1;
  }

  void add(std::int64_t b, std::int64_t axis, std::int64_t token, std::string code,
           std::string message, std::string cure) {
    const bool known = std::ranges::find(findings_, code, &Finding::code) != findings_.end();
    if (known) return;  // in an earlier sequence or axis
    std::string where = "token " + std::to_string(token);
    if (found_.batch > 1) where += " of sequence " + std::to_string(b);
    if (expected_.axes() > 1) where += " on axis " + std::to_string(axis);
    findings_.push_back({.code = std::move(code),
                         .position = token,
                         .expected = std::to_string(expected(b, axis, token)),
                         .found = std::to_string(found(b, axis, token)),
                         .message = where + ": " + std::move(message),
                         .cure = std::move(cure)});
  }

  void row(std::int64_t b, std::int64_t axis) {
    const std::int64_t token = first_off(b, axis);
    if (token < 0) return;
    const auto say = [&](std::string code, std::string message, std::string cure) {
      add(b, axis, token, std::move(code), std::move(message), std::move(cure));
    };
    const std::int64_t first = first_seen(b);
    const std::int64_t start = found(b, axis, first);
    const auto counts = [&](std::int64_t from) {
      return made_by(b, axis, [=](std::int64_t t) { return from + t; });
    };
    if (const std::int64_t other = other_sequence(b, axis); other >= 0) {
      say("row_shared",
          "the ids are those of sequence " + std::to_string(other) +
              ": one row serves the whole batch",
          "give each sequence the ids of its own mask");
    } else if (first > 0 && counts(0)) {
      say("padding_counted",
          "the ids count the " + std::to_string(first) + " columns of padding on the left",
          "take mask.cumsum(-1) - 1 for the ids");
    } else if (restarts(b, axis) && counts(start - first)) {
      say("packing_ignored", "the ids go on where another sequence begins",
          "begin at 0 at each of cu_seqlens");
    } else if (jumps(b, axis) && counts(start - first)) {
      say("sharding_ignored",
          "the ids count the tokens of this part in a row, and the part is two pieces of the text",
          "take the ids of the tokens before they were dealt out");
    } else if (const auto by = constant_offset(b, axis)) {
      if (start == 0)
        say("offset_lost",
            "the ids begin at 0, and " + std::to_string(expected(b, axis, first)) +
                " tokens stand before them in the cache",
            "add the number of cached tokens to the ids of each chunk");
      else
        say("offset",
            "every id is off by " + std::to_string(*by) +
                ": no harm within these tokens, and all of it between them and a cache that is not",
            "begin at " + std::to_string(expected(b, axis, first)));
    } else if (const auto [message, cure] = one_id(b, axis, first); !message.empty()) {
      say("frozen", message, cure);
    } else if (const std::int64_t from = other_axis(b, axis); from >= 0) {
      say("axes_exchanged", "the ids are those of axis " + std::to_string(from),
          "order the axes as time, height, width");
    } else if (found(b, axis, token) < 0) {
      say("negative", "an id is below 0", "give padding alone such an id");
    } else if (const auto by_rest = offset_from(b, axis, token)) {
      if (expected_.axes() > 1)
        say("grid_advance",
            "from here on the ids are off by " + std::to_string(*by_rest) +
                ": the text goes on elsewhere behind the picture",
            "check the rule: where text goes on behind a grid differs between releases");
      else
        say("offset_from", "from here on the ids are off by " + std::to_string(*by_rest),
            "look for the step that the count was changed at");
    } else {
      say("differs", "the ids follow no slip that is known", "compare the two lists from here on");
    }
  }

  void flat() {
    for (std::int64_t b = 0; b < found_.batch; ++b)
      for (std::int64_t axis = 0; axis < expected_.axes(); ++axis)
        for (std::int64_t t = 0; t < found_.seq; ++t) {
          if (!seen(b, t) || found(b, 0, t) == expected(b, axis, t)) continue;
          findings_.push_back({.code = "flat",
                               .position = t,
                               .expected = std::to_string(expected(b, axis, t)),
                               .found = std::to_string(found(b, 0, t)),
                               .message = "token " + std::to_string(t) + " on axis " +
                                          std::to_string(axis) +
                                          (found_.axes == 1 ? ": the ids have one axis"
                                                            : ": the ids are alike on all axes") +
                                          ", as for text alone, and a picture needs " +
                                          std::to_string(expected_.axes()),
                               .cure = "make the ids from the grids of the pictures"});
          return;
        }
  }

  // One running number on every axis, where a picture stands.
  bool alike_on_all_axes() const {
    if (found_.axes != expected_.axes() || found_.axes < 2) return false;
    for (std::int64_t b = 0; b < found_.batch; ++b)
      for (std::int64_t axis = 0; axis < found_.axes; ++axis)
        for (std::int64_t t = 0; t < found_.seq; ++t)
          if (seen(b, t) && (found(b, axis, t) != found(b, 0, t) ||
                             (t > 0 && seen(b, t - 1) && found(b, 0, t) != found(b, 0, t - 1) + 1)))
            return false;
    return true;
  }

  std::int64_t first_seen(std::int64_t b) const {
    std::int64_t t = 0;
    while (t + 1 < found_.seq && !seen(b, t)) ++t;
    return t;
  }
  std::int64_t other_sequence(std::int64_t b, std::int64_t axis) const {
    for (std::int64_t other = 0; other < found_.batch; ++other) {
      if (other == b || expected_.batch() == 1) continue;
      bool shared = true;
      for (std::int64_t t = 0; shared && t < found_.seq; ++t)
        shared = found(b, axis, t) == found(other, axis, t);
      if (shared && first_off(other, axis) < 0) return other;
    }
    return -1;
  }
  // What to say of one id that all tokens have, or all that fill a row up; "": no such id.
  std::pair<std::string, std::string> one_id(std::int64_t b, std::int64_t axis,
                                             std::int64_t first) const {
    const std::int64_t start = found(b, axis, first);
    if (first != found_.seq - 1 && made_by(b, axis, [=](std::int64_t) { return start; }))
      return {"every token has the id " + std::to_string(start), "count the ids on at each step"};
    if (fills_with_zeros(b, axis))
      return {
          "filler tokens all stand at 0: each is a text of its own for kernels that cut where an "
          "id is 0 (FlashAttention's varlen)",
          "count the filler on (0, 1, 2, …), or cut it off"};
    return {};
  }
  // Whether zeros in a row are all that is off.
  bool fills_with_zeros(std::int64_t b, std::int64_t axis) const {
    if (expected_.axes() > 1) return false;
    bool filled = false;
    for (std::int64_t t = 0; t < found_.seq; ++t) {
      if (!seen(b, t) || found(b, axis, t) == expected(b, axis, t)) continue;
      if (found(b, axis, t) != 0) return false;
      filled |= t > 0 && seen(b, t - 1) && found(b, axis, t - 1) == 0;
    }
    return filled;
  }
  std::int64_t other_axis(std::int64_t b, std::int64_t axis) const {
    for (std::int64_t from = 0; from < expected_.axes(); ++from)
      if (from != axis && made_by(b, axis, [&](std::int64_t t) { return expected(b, from, t); }))
        return from;
    return -1;
  }
  bool restarts(std::int64_t b, std::int64_t axis) const {
    if (expected_.axes() > 1) return false;  // pictures repeat ids
    for (std::int64_t t = 1; t < found_.seq; ++t)
      if (seen(b, t) && seen(b, t - 1) && expected(b, axis, t) == 0) return true;
    return false;
  }
  bool jumps(std::int64_t b, std::int64_t axis) const {
    for (std::int64_t t = 1; t < found_.seq; ++t)
      if (seen(b, t) && seen(b, t - 1) && expected(b, axis, t) > expected(b, axis, t - 1) + 1)
        return true;
    return false;
  }
  // found − expected where that is one number from a token on.
  std::optional<std::int64_t> offset_from(std::int64_t b, std::int64_t axis,
                                          std::int64_t token) const {
    const std::int64_t by = found(b, axis, token) - expected(b, axis, token);
    for (std::int64_t t = token; t < found_.seq; ++t)
      if (seen(b, t) && found(b, axis, t) - expected(b, axis, t) != by) return std::nullopt;
    return by;
  }
  std::optional<std::int64_t> constant_offset(std::int64_t b, std::int64_t axis) const {
    return offset_from(b, axis, first_seen(b));
  }

  const PositionIds& found_;
  const Positions& expected_;
  const std::span<const std::uint8_t> keep_;
  std::vector<Finding> findings_;
};

}  // namespace

Expected<std::vector<Finding>> check_positions(const PositionIds& found, const Positions& expected,
                                               std::span<const std::uint8_t> keep) {
  const auto shape = [](std::int64_t axes, std::int64_t batch, std::int64_t seq) {
    return std::to_string(axes) + " x " + std::to_string(batch) + " x " + std::to_string(seq);
  };
  if (found.axes < 1 || found.batch < 1 || found.seq < 0 ||
      std::ssize(found.ids) / found.axes / found.batch != found.seq ||
      std::ssize(found.ids) % (found.axes * found.batch) != 0)
    return fail("check_positions", "ids must be axes x batch x seq",
                shape(found.axes, found.batch, found.seq) + " for " +
                    std::to_string(found.ids.size()) + " ids");
  if (found.seq != expected.size() || (expected.batch() != 1 && found.batch != expected.batch()) ||
      (found.axes != 1 && expected.axes() != 1 && found.axes != expected.axes()))
    return fail("check_positions",
                "there must be as many ids as the rule gives, " +
                    shape(expected.axes(), expected.batch(), expected.size()),
                shape(found.axes, found.batch, found.seq));
  if (!keep.empty() && std::ssize(keep) != found.batch * found.seq)
    return fail("check_positions", "keep must be batch x seq", std::to_string(keep.size()));
  for (const std::int64_t id : found.ids)
    if (id > furthest_position || id < -furthest_position)
      return fail("check_positions", "an id must lie within ±2^62", std::to_string(id));
  return PositionCheck(found, expected, keep).run();
}

}  // namespace posenc
