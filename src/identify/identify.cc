// Which convention an engine rotated by, from tensors that it showed: the pairs first, then their frequencies, then what may
// have made these. What a dump does not show is said, with the dump that would.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "posenc/identify.h"
#include "src/explain/text.h"
#include "src/identify/dump.h"
#include "src/identify/frequency_fit.h"
#include "src/identify/precision.h"
#include "src/identify/rotation.h"

namespace posenc {
namespace {

using detail::ChannelPair, detail::Dump, detail::shown;

// The best partner leaves less than this of what changed unexplained: 0.01 or less where the noise is small. Wrong ones
// leave 0.18 and more, and are not the best.
constexpr double partners = 0.25;

// Σ |after − before|² of some channels.
double change(const Dump& dump, std::int64_t channel) {
  double sum = 0;
  for (std::int64_t h = 0; h < dump.heads; ++h)
    for (std::int64_t t = 0; t < dump.tokens; ++t) {
      const double off = dump.is(h, t, channel) - dump.was(h, t, channel);
      sum += off * off;
    }
  return sum;
}

class Identification {
 public:
  Identification(const Dump& dump, bool repeated) : dump_(dump), repeated_(repeated) {}

  Identified run() && {
    if (std::ranges::all_of(dump_.position, [](std::int64_t p) { return p == 0; })) {
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
    measure();
    if (!repeated_) place();
    explain();
    if (out_.frequencies && out_.frequencies->misfit < 10) out_.angles = forms(*out_.frequencies);
    return std::move(out_);
  }

 private:
  void say(std::string sentence) { out_.cannot_tell.push_back(std::move(sentence)); }

  void find(const std::vector<std::int64_t>& changed) {
    pairs_ = detail::find_pairs(dump_, changed);
    std::erase_if(pairs_, [](const ChannelPair& pair) { return pair.unexplained > partners; });
    double all = 0, explained = 0, left = 0;
    for (const std::int64_t channel : changed) all += change(dump_, channel);
    for (const ChannelPair& pair : pairs_) {
      const double energy = change(dump_, pair.a) + change(dump_, pair.b);
      explained += energy;
      left += energy * pair.unexplained * pair.unexplained;
    }
    out_.residual = std::sqrt(std::clamp((all - explained + left) / all, 0.0, 1.0));
    if (explained >= 0.9 * all) {
      out_.verdict = Rotated::rotation;
    } else if (repeated_) {
      say("no pairs of channels rotate; were all tokens the same one, without a beginning-of-text "
          "token, in a layer before any other position acts? Dump the tensor before rotation too");
    } else {
      out_.verdict = Rotated::not_a_rotation;
      say("most of what changed is no rotation of two channels: a table made for one pairing and "
          "applied with another, or an axis that is not the tokens', does this");
    }
  }

  // Which slice of the head the pairs are, and how it is cut. Slow channels hardly change, and then any partner does:
  // those that changed most tell the slice, and its pairs are taken from it.
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
      const bool rotates = detail::unexplained(dump_, at, at + 1) <= partners;
      missed = rotates ? 0 : missed + 1;
      if (rotates) last = at + 1;
    }
    out_.pairing = neighbours ? Pairing::interleaved : Pairing::halves;
    out_.first_dim = first;
    out_.rotary_dim = neighbours ? last + 1 - first : 2 * stride;
    seen_dim_ = out_.rotary_dim;
    pairs_.clear();
    for (std::int64_t r = 0; r < out_.rotary_dim / 2; ++r) {
      const std::int64_t at = first + (neighbours ? 2 * r : r);
      if (at + stride >= dump_.dim) break;
      const double left = detail::unexplained(dump_, at, at + stride);
      if (left <= partners) pairs_.push_back({at, at + stride, left});
    }
  }

  double energy(const ChannelPair& pair) const {
    return change(dump_, pair.a) + change(dump_, pair.b);
  }

  std::int64_t index_of(const IdentifiedPair& pair) const {
    const std::int64_t from = pair.a - out_.first_dim;
    return out_.pairing == Pairing::halves ? from : from / 2;
  }

  void measure() {
    double forwards = 0, amplitude = 0, weights = 0;
    for (const ChannelPair& pair : pairs_) {
      const detail::Turning turning = detail::turning(dump_, pair);
      const auto line = detail::fit_line(dump_.position, turning);
      if (!line) {
        say("frequencies: no two tokens are neighbours; dump consecutive positions");
        break;
      }
      out_.pairs.push_back({pair.a, pair.b, line->frequency, line->resolution});
      at_zero_.push_back(line->at_zero);
      angles_.push_back(turning.angle);
      spread_ = turning.spread;
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

  // The whole number that was added to the positions.
  void place() {
    constexpr std::int64_t most = 64;
    double best = 0.2;  // radians, root mean square
    for (std::int64_t n = 0; n <= 2 * most; ++n) {
      const std::int64_t offset = n % 2 == 0 ? n / 2 : -(n + 1) / 2;  // 0, −1, 1, −2, …
      double sum = 0;
      for (std::size_t i = 0; i < out_.pairs.size(); ++i) {
        const double angle = out_.pairs[i].frequency * static_cast<double>(offset);
        const double off = std::remainder(at_zero_[i] - angle, 6.283185307179586);
        sum += off * off;
      }
      const double misfit =
          std::sqrt(sum / static_cast<double>(std::max<std::size_t>(out_.pairs.size(), 1)));
      if (misfit < 0.5 * best) best = misfit, out_.offset = offset;
    }
    if (!out_.offset && !out_.pairs.empty())
      say("offset: no whole number within 64 explains where the angles begin");
  }

  void explain() {
    std::vector<detail::Measured> measured;
    std::int64_t first_unseen = -1;
    for (const IdentifiedPair& pair : out_.pairs) {
      const double f = static_cast<double>(out_.sign) * pair.frequency;
      if (f > 4 * pair.resolution) measured.push_back({index_of(pair), f, pair.resolution});
    }
    std::vector<FrequencyFit> fits = fitted(measured);
    if (!fits.empty() && fits.front().misfit > 10) try_rounded(measured, fits);
    if (fits.empty()) return;
    out_.frequencies = fits.front();
    if (fits.size() > 1) out_.runner_up = fits[1];
    if (measured.size() < 4)
      say("scaling: " + std::to_string(measured.size()) +
          " pairs are seen, too few to tell; dump more tokens, or farther ones");
    else if (fits.front().misfit > 10)
      say("scaling: none that is known explains the frequencies; the nearest is named");
    else if (fits.size() > 1 && fits[1].misfit < 3)
      say("scaling: " + std::string(info(fits[1].scaling).name) + " with base " +
          shown(fits[1].base, 6) + " explains the pairs that are seen as well");
    std::vector<bool> seen(static_cast<std::size_t>(out_.rotary_dim / 2));
    for (const detail::Measured& m : measured)
      if (m.pair >= 0 && m.pair < std::ssize(seen)) seen[static_cast<std::size_t>(m.pair)] = true;
    std::int64_t unseen = 0;
    for (std::size_t r = 0; r < seen.size(); ++r) {
      if (seen[r]) continue;
      ++unseen;
      if (first_unseen < 0) first_unseen = static_cast<std::int64_t>(r);
    }
    if (unseen == 0) return;
    const double slowest =
        std::pow(fits.front().base, 2.0 / static_cast<double>(out_.rotary_dim) - 1);
    say(std::to_string(unseen) + " of " + std::to_string(seen.size()) + " pairs, from pair " +
        std::to_string(first_unseen) +
        " on, rotated less than the noise; a dump of positions up to " +
        shown(std::ceil(8 * spread_ / slowest), 2) + " would show them all");
  }

  // Frequencies of 16 bits, and positions and angles of 16 bits as well.
  void try_rounded(const std::vector<detail::Measured>& measured, std::vector<FrequencyFit>& fits) {
    for (const DType kept : {DType::bf16, DType::f16}) {
      std::vector<FrequencyFit> rounded = detail::fit_frequencies(measured, out_.rotary_dim, kept);
      if (rounded.empty() || rounded.front().misfit > 3) continue;
      fits = std::move(rounded);
      return;
    }
    const auto base = detail::base_of(measured, out_.rotary_dim, 1, DType::bf16);
    if (!base) return;
    const FrequencyFit all{.base = *base, .kept = DType::bf16, .misfit = 1};
    if (forms(all) == std::vector<std::string>{"bfloat16"}) fits = {all};
  }

  // In which arithmetic the angles were formed: of tokens evenly spread, and of pairs that turn.
  std::vector<std::string> forms(const FrequencyFit& fit) const {
    if (!repeated_ && !out_.offset) return {};
    constexpr std::int64_t most = 512;
    const std::int64_t taken = std::min(dump_.tokens, most);
    const auto token = [&](std::int64_t i) {
      return static_cast<std::size_t>(i * (dump_.tokens - 1) / (taken - 1));
    };
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < taken; ++i)
      positions.push_back(dump_.position[token(i)] + dump_.origin + out_.offset.value_or(0));
    std::vector<detail::MeasuredAngles> measured;
    for (std::size_t n = 0; n < out_.pairs.size(); ++n) {
      detail::MeasuredAngles pair{.pair = index_of(out_.pairs[n])};
      if (pair.pair >= out_.rotary_dim / 2) continue;
      for (std::int64_t i = 0; i < taken; ++i)
        pair.angle.push_back(static_cast<double>(out_.sign) * angles_[n][token(i)]);
      measured.push_back(std::move(pair));
    }
    return detail::forms_of(fit, out_.rotary_dim, positions, repeated_, measured, spread_);
  }

  // Neighbours do not tell where a slice ends whose last pairs are too slow to be seen: of the slices that may be
  // meant, the one whose base people would write.
  std::vector<FrequencyFit> fitted(const std::vector<detail::Measured>& measured) {
    std::vector<FrequencyFit> best = detail::fit_frequencies(measured, out_.rotary_dim);
    const std::int64_t room = dump_.dim - out_.first_dim;
    if (out_.pairing != Pairing::interleaved || seen_dim_ >= room || best.empty()) return best;
    std::size_t fewest =
        number_text(best.front().base).size() + 8;  // the slice that is seen is seldom all
    std::string others;
    for (const std::int64_t dim : {room, room * 3 / 4, room / 2, room / 4}) {
      if (dim % 2 != 0 || dim < seen_dim_) continue;
      std::vector<FrequencyFit> fits = detail::fit_frequencies(measured, dim);
      if (fits.empty() ||
          (dim > seen_dim_ && next_would_show(measured.back(), fits.front().base, dim)))
        continue;
      others += (others.empty() ? "" : ", ") + std::to_string(dim) + " with base " +
                shown(fits.front().base, 6);
      // Few digits, and a size that bases have.
      const double base = fits.front().base;
      const std::size_t length = digits(base) + (base < 1e3 || base > 2e7 ? 2 : 0);
      if (length >= fewest) continue;
      fewest = length;
      out_.rotary_dim = dim;
      best = std::move(fits);
    }
    if (others.contains(','))
      say("rotary_dim: " + std::to_string(seen_dim_) +
          " channels rotate visibly, slower ones may follow: " + others);
    return best;
  }

  // Whether the pair after the last that is seen, were there one, would be seen too.
  bool next_would_show(const detail::Measured& last, double base, std::int64_t dim) const {
    double square = 0;
    for (const std::int64_t p : dump_.position)
      square += static_cast<double>(p) * static_cast<double>(p);
    const double usual = std::sqrt(square / static_cast<double>(dump_.tokens));
    constexpr double most_factor = 64;  // it may be slowed by a scaling
    const auto pairs = static_cast<double>(seen_dim_ - 2 * last.pair) / 2;
    const double angle =
        last.frequency * std::pow(base, -2 * pairs / static_cast<double>(dim)) * usual;
    // With one vector alone it may be nearly 0 in those channels.
    const double margin = repeated_ && dump_.heads == 1 ? 16 : 2;
    return angle / most_factor > margin * detail::least_change * dump_.noise;
  }

  // Significant digits, zeros at the end aside: 1 of 500000, 2 of 1.5e7.
  static std::size_t digits(double number) {
    std::size_t count = 1;
    while (count < 17) {
      const double unit =
          std::pow(10, std::floor(std::log10(number)) - static_cast<double>(count) + 1);
      if (std::abs(std::round(number / unit) * unit - number) < 1e-9 * number) break;
      ++count;
    }
    return count;
  }

  const Dump& dump_;
  const bool repeated_;
  Identified out_;
  std::vector<ChannelPair> pairs_;
  std::vector<double> at_zero_;
  std::vector<std::vector<double>> angles_;  // [pair of out_.pairs][token]
  double spread_ = 0;
  std::int64_t seen_dim_ = 0;  // channels from first_dim to the last that changes
};

}  // namespace

Identified detail::identified(const Dump& dump, bool repeated) {
  return Identification(dump, repeated).run();
}

Expected<Identified> identify(const RotationDump& dump) {
  const Expected<Dump> numbers = detail::read_dump(dump);
  if (!numbers) return std::unexpected(numbers.error());
  return detail::identified(*numbers, !dump.before);
}

}  // namespace posenc
