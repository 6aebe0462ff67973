// Which convention an engine rotated by, from tensors that it showed: the pairs first, then their
// frequencies, then what may have made these. What a dump does not show is said, with the dump that
// would.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "posenc/identify.h"
#include "src/explain/text.h"
#include "src/identify/axes.h"
#include "src/identify/explain.h"
#include "src/identify/kin.h"
#include "src/identify/rotation.h"

namespace posenc {
namespace {

using detail::ChannelPair, detail::Dump, detail::change;

class Identification {
 public:
  Identification(Dump dump, bool repeated)
      : dump_(std::move(dump)),
        repeated_(repeated),
        measured_{.dump = dump_, .repeated = repeated} {}

  Identified run() && {
    out_.dim = dump_.dim;
    if (!dump_.zeros.empty())
      say("tokens " + detail::layer_list(dump_.zeros) +
          " are zeros, as padding and empty slots are, and stand nowhere" +
          (repeated_ && dump_.zeros.front() == 0
               ? "; of repeated tokens distances alone are seen, so that the others may stand at "
                 "their slots or " +
                     std::to_string(dump_.zeros.size()) +
                     " behind them, as a mask that counts padding out has it"
               : ""));
    const auto zero = [](const std::vector<std::int64_t>& row) {
      return std::ranges::all_of(row, [](std::int64_t p) { return p == 0; });
    };
    if (std::ranges::all_of(dump_.positions, zero)) {
      say("every token stands at position 0, where nothing rotates: dump positions from 1 on");
      return std::move(out_);
    }
    const std::vector<std::int64_t> changed = detail::changed_channels(dump_);
    if (changed.empty()) {
      out_.verdict = Rotated::no_rotation;
      return std::move(out_);
    }
    find(changed);
    if (out_.verdict != Rotated::rotation) return std::move(out_);
    lay_out();
    dump_.noise = std::max(dump_.noise, detail::noise_of(dump_, pairs_));
    measure();
    if (dump_.positions.size() > 1)
      detail::share_axes(std::ssize(dump_.positions), out_);
    else if (!repeated_)
      place();
    measured_.seen_dim = seen_dim_;
    detail::explain(measured_, out_);
    return std::move(out_);
  }

 private:
  void say(std::string sentence) { out_.cannot_tell.push_back(std::move(sentence)); }

  void find(const std::vector<std::int64_t>& changed) {
    pairs_ = detail::find_pairs(dump_, changed);
    std::erase_if(pairs_,
                  [](const ChannelPair& pair) { return pair.unexplained > detail::partners; });
    const detail::Explained explained = detail::explained(dump_, changed, pairs_);
    out_.residual = explained.residual;
    if (explained.rotates()) {
      out_.verdict = Rotated::rotation;
    } else if (repeated_) {
      say("no pairs of channels rotate; were all tokens the same one, without a beginning-of-text "
          "token, in a layer before any other position acts? Dump the tensor before rotation too");
    } else {
      out_.verdict = Rotated::not_a_rotation;
      if (auto kin = detail::kin_of(dump_, changed))
        out_.findings.push_back(std::move(*kin));
      else
        say("most of what changed is no rotation of two channels, nor a slip that is known");
    }
  }

  // Which slice of the head the pairs are, and how it is cut. Slow channels hardly change, and then
  // any partner does: those that changed most tell the slice, and its pairs are taken from it.
  void lay_out() {
    std::map<std::int64_t, double> energy_of_stride;
    double all = 0;
    for (const ChannelPair& pair : pairs_) {
      energy_of_stride[pair.b - pair.a] += energy(pair);
      all += energy(pair);
    }
    const std::int64_t stride =
        std::ranges::max_element(energy_of_stride, {}, [](const auto& each) {
          return each.second;
        })->first;
    const bool neighbours = stride == 1;
    double parity[2] = {0, 0};
    for (const ChannelPair& pair : pairs_)
      if (pair.b - pair.a == stride) parity[pair.a % 2] += energy(pair);
    const std::int64_t odd = parity[1] > parity[0] ? 1 : 0;
    std::int64_t first = dump_.dim, last = 0;
    double within = 0;
    for (const ChannelPair& pair : pairs_) {
      if (pair.b - pair.a != stride || (neighbours && pair.a % 2 != odd)) continue;
      first = std::min(first, pair.a);
      last = std::max(last, pair.b);
      within += energy(pair);
    }
    if (within < 0.98 * all)
      say("some channels rotate with partners of another distance: several blocks, or axes");
    // A pair of a channel that is nearly 0 in all heads is not found by itself.
    for (std::int64_t at = last + 1, missed = 0; neighbours && at + 1 < dump_.dim && missed < 3;
         at += 2) {
      const bool rotates = detail::unexplained(dump_, at, at + 1) <= detail::partners;
      missed = rotates ? 0 : missed + 1;
      if (rotates) last = at + 1;
    }
    out_.pairing = neighbours ? Pairing::interleaved : Pairing::halves;
    out_.first_dim = first;
    if (!neighbours) {
      // Halves of several blocks: their upper channels lie between the lower ones.
      out_.blocks = std::max<std::int64_t>((last + 1 - first + stride / 2) / (2 * stride), 1);
      const auto lower = [&](const ChannelPair& pair) {
        return (pair.a - first) % (2 * stride) < stride;
      };
      if (!std::ranges::all_of(pairs_, lower)) out_.blocks = 1;
    }
    out_.rotary_dim = neighbours ? last + 1 - first : 2 * stride * out_.blocks;
    seen_dim_ = out_.rotary_dim;
    pairs_.clear();
    for (std::int64_t r = 0; r < out_.rotary_dim / 2; ++r) {
      const std::int64_t at = first + (neighbours ? 2 * r : r / stride * 2 * stride + r % stride);
      if (at + stride >= dump_.dim) break;
      const double left = detail::unexplained(dump_, at, at + stride);
      if (left <= detail::partners) pairs_.push_back({at, at + stride, left});
    }
  }

  double energy(const ChannelPair& pair) const {
    return change(dump_, pair.a) + change(dump_, pair.b);
  }

  void measure() {
    double forwards = 0, amplitude = 0, weights = 0;
    for (const ChannelPair& pair : pairs_) {
      const detail::Turning turning = detail::turning(dump_, pair);
      const auto line = detail::fit_axes(dump_.positions, turning);
      if (!line) {
        say("frequencies: no two tokens are neighbours; dump consecutive positions");
        break;
      }
      out_.pairs.push_back({pair.a, pair.b, line->frequency, line->resolution, line->axis});
      at_zero_.push_back(line->at_zero);
      measured_.angles.push_back(turning.angle);
      measured_.spread = turning.spread;
      if (std::abs(line->frequency) > 3 * line->resolution)
        forwards += line->frequency > 0 ? 1 : -1;
      amplitude += turning.amplitude;
      weights += 1;
    }
    out_.sign = forwards < 0 ? -1 : 1;
    if (repeated_) return;
    amplitude /= std::max(weights, 1.0);
    out_.amplitude = std::abs(amplitude - 1) < 2 * dump_.noise ? 1 : amplitude;
  }

  // Radians, root mean square, by which the pairs begin elsewhere than at this position.
  double begins_off(std::int64_t offset) const {
    double sum = 0;
    for (std::size_t i = 0; i < out_.pairs.size(); ++i) {
      const double angle = out_.pairs[i].frequency * static_cast<double>(offset);
      const double off = std::remainder(at_zero_[i] - angle, 6.283185307179586);
      sum += off * off;
    }
    return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(out_.pairs.size(), 1)));
  }

  // The slowest pair says about where the angles begin, and each faster one says it better.
  std::int64_t far_offset() const {
    std::vector<std::size_t> order(out_.pairs.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](std::size_t i) {
      return std::abs(out_.pairs[i].frequency) <= 4 * out_.pairs[i].resolution;
    });
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::abs(out_.pairs[i].frequency); });
    double offset = 0;
    for (const std::size_t i : order) {
      const double f = out_.pairs[i].frequency;
      offset += std::remainder(at_zero_[i] - f * offset, 6.283185307179586) / f;
    }
    return std::abs(offset) < 0x1p40 ? std::llround(offset) : 0;
  }

  // The whole number that was added to the positions.
  void place() {
    constexpr std::int64_t most = 64;
    double best = 0.2;  // radians, root mean square
    for (std::int64_t n = 0; n <= 2 * most; ++n) {
      const std::int64_t offset = n % 2 == 0 ? n / 2 : -(n + 1) / 2;  // 0, −1, 1, −2, …
      const double misfit = begins_off(offset);
      if (misfit < 0.5 * best) best = misfit, out_.offset = offset;
    }
    constexpr std::size_t few = 8;
    constexpr double near = 0.05;
    if (!out_.offset && out_.pairs.size() >= few)
      if (const std::int64_t offset = far_offset(); begins_off(offset) < near) out_.offset = offset;
    if (!out_.offset && !out_.pairs.empty())
      say("offset: no whole number explains where the angles begin");
  }

  Dump dump_;
  const bool repeated_;
  detail::Measurement measured_;
  Identified out_;
  std::vector<ChannelPair> pairs_;
  std::vector<double> at_zero_;
  std::int64_t seen_dim_ = 0;  // channels from first_dim to the last that changes
};

}  // namespace

Identified detail::identified(Dump dump, bool repeated) {
  return Identification(std::move(dump), repeated).run();
}

Expected<Identified> identify(const RotationDump& dump) {
  Expected<Dump> numbers = detail::read_dump(dump);
  if (!numbers) return std::unexpected(numbers.error());
  return detail::identified(*std::move(numbers), !dump.before);
}

}  // namespace posenc
