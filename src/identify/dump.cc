// Which channels of a dump rotate together. A pair (a, b) is a complex number w = a + ib; rotation
// multiplies it by one number z for all heads of a token, and |z| is the same at all tokens. Wrong
// partners break both.
#include "src/identify/dump.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace posenc::detail {
namespace {

constexpr std::int64_t most_numbers = std::int64_t{1} << 26;
constexpr std::int64_t most_position = std::int64_t{1} << 40, most_position_axes = 8;
// As many tell which channels are partners.
constexpr std::int64_t most_tokens = 64, most_heads = 8;

Expected<void> read(const Tensor& from, std::vector<double>& to) {
  const Tensor x = from.with_rank(4);
  to.reserve(static_cast<std::size_t>(x.size()));
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t h = 0; h < x.shape[1]; ++h)
      for (std::int64_t t = 0; t < x.shape[2]; ++t)
        for (std::int64_t c = 0; c < x.shape[3]; ++c) {
          const double value = x.get(x.offset(b, h, t, c));
          if (!std::isfinite(value))
            return fail("identify", "every number must be finite", number_text(value),
                        "dump the rows of real tokens alone");
          to.push_back(value);
        }
  return {};
}

// Tokens that show enough and cost little: evenly spread, so that slow pairs have moved.
std::vector<std::int64_t> sample(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> list;
  const std::int64_t taken = std::min(count, most);
  list.reserve(static_cast<std::size_t>(taken));
  for (std::int64_t i = 0; i < taken; ++i) list.push_back(i * count / taken);
  return list;
}

// Sums over the heads of one token.
struct Products {
  double along = 0, across = 0;  // Σ conj(w) w', its real and imaginary part
  double before = 0, after = 0;  // Σ |w|², Σ |w'|²
};

Products products(const Dump& dump, std::int64_t token, std::int64_t a, std::int64_t b,
                  const std::vector<std::int64_t>& heads) {
  Products sum;
  for (const std::int64_t h : heads) {
    const double x = dump.was(h, token, a), y = dump.was(h, token, b), u = dump.is(h, token, a),
                 v = dump.is(h, token, b);
    sum.along += x * u + y * v;
    sum.across += x * v - y * u;
    sum.before += x * x + y * y;
    sum.after += u * u + v * v;
  }
  return sum;
}

// What the best rotation with one amplitude leaves of what changed.
double left_of(const Dump& dump, std::int64_t a, std::int64_t b,
               const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& heads) {
  double joint = 0, before = 0, after = 0, change = 0;
  for (const std::int64_t t : tokens) {
    const Products sum = products(dump, t, a, b, heads);
    joint += std::hypot(sum.along, sum.across);
    before += sum.before;
    after += sum.after;
    change += sum.before + sum.after - 2 * sum.along;
  }
  if (before == 0 || change <= 0) return 1;
  const double left = after - joint * joint / before;  // Σ |w' − A e^(iφ) w|², A = joint / before
  return std::sqrt(std::clamp(left / change, 0.0, 1.0));
}

double rounding_of(const std::vector<double>& numbers) { return rounding(kept_type(numbers)); }

}  // namespace

DType kept_type(const std::vector<double>& numbers) {
  for (const DType type : {DType::bf16, DType::f16})
    if (std::ranges::all_of(numbers, [&](double x) { return kept_as(type, x) == x; })) return type;
  return DType::f32;
}

double rounding(DType type) {
  return type == DType::bf16 ? 0x1p-9 : type == DType::f16 ? 0x1p-12 : 0x1p-22;
}

namespace {

// Slots of a cache that nothing was written into, or zeros that fill a batch up, are no tokens,
// whether the dump has what stood there before the rotation or not.
void leave_zeros_out(Dump& dump) {
  std::vector<bool> kept(static_cast<std::size_t>(dump.tokens));
  const auto row = [&](const std::vector<double>& x, std::int64_t head, std::int64_t token) {
    return x.begin() + (head * dump.tokens + token) * dump.dim;
  };
  const auto any_in = [&](const std::vector<double>& x, std::int64_t head, std::int64_t token) {
    return !x.empty() && std::any_of(row(x, head, token), row(x, head, token) + dump.dim,
                                     [](double number) { return number != 0; });
  };
  for (std::int64_t t = 0; t < dump.tokens; ++t) {
    bool any = false;
    for (std::int64_t h = 0; h < dump.heads && !any; ++h)
      any = any_in(dump.after, h, t) || any_in(dump.before, h, t);
    kept[static_cast<std::size_t>(t)] = any;
    if (!any) dump.zeros.push_back(t);
  }
  constexpr std::int64_t least = 2;  // tokens
  if (dump.tokens - std::ssize(dump.zeros) < least) dump.zeros.clear();
  if (dump.zeros.empty()) return;
  const auto without = [&](const std::vector<double>& x) {
    std::vector<double> rest;
    for (std::int64_t h = 0; h < dump.heads && !x.empty(); ++h)
      for (std::int64_t t = 0; t < dump.tokens; ++t)
        if (kept[static_cast<std::size_t>(t)])
          rest.insert(rest.end(), row(x, h, t), row(x, h, t) + dump.dim);
    return rest;
  };
  std::vector<double> after = without(dump.after), before = without(dump.before);
  for (std::vector<std::int64_t>& positions : dump.positions) {
    std::int64_t t = 0;
    std::erase_if(positions, [&](std::int64_t) { return !kept[static_cast<std::size_t>(t++)]; });
  }
  dump.after = std::move(after);
  dump.before = std::move(before);
  dump.tokens -= std::ssize(dump.zeros);
}

}  // namespace

Expected<Dump> read_dump(const RotationDump& from) {
  const Tensor& after = from.after;
  if (after.rank != 3 && after.rank != 4)
    return fail("identify", "`after` must be [head][seq][dim] or [batch][head][seq][dim]",
                std::to_string(after.rank) + " axes");
  if (after.size() > most_numbers)
    return fail("identify", "at most 2^26 numbers are read", std::to_string(after.size()),
                "dump one layer, and fewer tokens");
  const Tensor x = after.with_rank(4);
  Dump dump{.heads = x.shape[0] * x.shape[1], .tokens = x.shape[2], .dim = x.shape[3]};
  if (dump.heads < 1 || dump.dim < 2 || dump.tokens < 2)
    return fail(
        "identify", "a dump has two tokens or more, of two channels or more",
        std::to_string(dump.tokens) + " tokens of " + std::to_string(dump.dim) + " channels");
  if (from.positions.axes() > most_position_axes)
    return fail("identify", "positions have at most 8 axes", std::to_string(from.positions.axes()));
  if (from.positions.size() != dump.tokens)
    return fail("identify", "there is a position for each token",
                std::to_string(from.positions.size()) + " and " + std::to_string(dump.tokens));
  if (!from.before && !from.repeated)
    return fail("identify", "without `before` all tokens must be the same one", "",
                "give the tensor before rotation, or dump a prompt of one token repeated and say "
                "so (--repeated)");
  for (std::int64_t axis = 0; axis < from.positions.axes(); ++axis) {
    std::vector<std::int64_t>& row = dump.positions.emplace_back();
    for (std::int64_t t = 0; t < dump.tokens; ++t) {
      row.push_back(from.positions.at(t, 0, axis));
      if (std::abs(row.back()) > most_position)
        return fail("identify", "positions lie within 2^40", std::to_string(row.back()));
    }
  }
  if (Expected<void> done = read(after, dump.after); !done) return std::unexpected(done.error());
  dump.noise = rounding_of(dump.after);
  if (from.before) {
    if (from.before.with_rank(4).shape != x.shape)
      return fail("identify", "`before` and `after` have one shape");
    if (Expected<void> done = read(from.before, dump.before); !done)
      return std::unexpected(done.error());
    dump.noise = std::max(dump.noise, rounding_of(dump.before));
    leave_zeros_out(dump);
    return dump;
  }
  leave_zeros_out(dump);
  // The first token in place of all that stood there before.
  dump.before.resize(dump.after.size());
  for (std::int64_t h = 0; h < dump.heads; ++h)
    for (std::int64_t t = 0; t < dump.tokens; ++t)
      std::copy_n(&dump.after[static_cast<std::size_t>(h * dump.tokens * dump.dim)], dump.dim,
                  &dump.before[static_cast<std::size_t>((h * dump.tokens + t) * dump.dim)]);
  dump.noise *= 1.5;  // of both
  dump.origin = dump.positions.front().front();
  for (std::vector<std::int64_t>& row : dump.positions) {
    const std::int64_t first = row.front();
    for (std::int64_t& position : row) position -= first;
  }
  return dump;
}

std::vector<std::int64_t> changed_channels(const Dump& dump) {
  std::vector<std::int64_t> changed;
  for (std::int64_t c = 0; c < dump.dim; ++c) {
    double change = 0, size = 0;
    for (std::int64_t h = 0; h < dump.heads; ++h)
      for (std::int64_t t = 0; t < dump.tokens; ++t) {
        const double was = dump.was(h, t, c), is = dump.is(h, t, c);
        change += (is - was) * (is - was);
        size += was * was;
      }
    const double limit = least_change * dump.noise;
    if (change > limit * limit * size) changed.push_back(c);
  }
  return changed;
}

double change(const Dump& dump, std::int64_t channel) {
  double sum = 0;
  for (std::int64_t h = 0; h < dump.heads; ++h)
    for (std::int64_t t = 0; t < dump.tokens; ++t) {
      const double off = dump.is(h, t, channel) - dump.was(h, t, channel);
      sum += off * off;
    }
  return sum;
}

Explained explained(const Dump& dump, const std::vector<std::int64_t>& channels,
                    const std::vector<ChannelPair>& pairs) {
  double all = 0, by_pairs = 0, left = 0;
  for (const std::int64_t channel : channels) all += change(dump, channel);
  for (const ChannelPair& pair : pairs) {
    const double energy = change(dump, pair.a) + change(dump, pair.b);
    by_pairs += energy;
    left += energy * pair.unexplained * pair.unexplained;
  }
  if (all == 0) return {};
  return {by_pairs / all, by_pairs > 0 ? std::sqrt(left / by_pairs) : 1,
          std::sqrt(std::clamp((all - by_pairs + left) / all, 0.0, 1.0)),
          dump.heads * dump.tokens < 64 ? 0.05 : 0.1};
}

double noise_of(const Dump& dump, const std::vector<ChannelPair>& pairs) {
  std::vector<std::int64_t> heads(static_cast<std::size_t>(dump.heads));
  std::iota(heads.begin(), heads.end(), std::int64_t{0});
  double left = 0, all = 0;
  for (const ChannelPair& pair : pairs) {
    double joint = 0, before = 0, after = 0;
    for (std::int64_t t = 0; t < dump.tokens; ++t) {
      const Products sum = products(dump, t, pair.a, pair.b, heads);
      joint += std::hypot(sum.along, sum.across);
      before += sum.before;
      after += sum.after;
    }
    if (before > 0) left += std::max(after - joint * joint / before, 0.0);
    all += after;
  }
  return all > 0 ? std::sqrt(left / all) : 0;
}

double unexplained(const Dump& dump, std::int64_t a, std::int64_t b) {
  return left_of(dump, a, b, sample(dump.tokens, most_tokens), sample(dump.heads, most_heads));
}

std::vector<ChannelPair> find_pairs(const Dump& dump, const std::vector<std::int64_t>& channels) {
  const std::vector<std::int64_t> tokens = sample(dump.tokens, most_tokens),
                                  heads = sample(dump.heads, most_heads);
  const std::size_t count = channels.size();
  std::vector<std::size_t> best(count, count);
  std::vector<double> least(count, 1.0);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const double left = left_of(dump, channels[i], channels[j], tokens, heads);
      if (left < least[i]) least[i] = left, best[i] = j;
      if (left < least[j]) least[j] = left, best[j] = i;
    }
  }
  std::vector<ChannelPair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    if (best[i] < count && best[i] > i && best[best[i]] == i)
      pairs.push_back({channels[i], channels[best[i]], least[i]});
  }
  return pairs;
}

Turning turning(const Dump& dump, const ChannelPair& pair) {
  std::vector<std::int64_t> heads(static_cast<std::size_t>(dump.heads));
  std::iota(heads.begin(), heads.end(), std::int64_t{0});
  Turning out;
  double joint = 0, before = 0;
  for (std::int64_t t = 0; t < dump.tokens; ++t) {
    const Products sum = products(dump, t, pair.a, pair.b, heads);
    out.angle.push_back(std::atan2(sum.across, sum.along));
    joint += std::hypot(sum.along, sum.across);
    before += sum.before;
  }
  if (before > 0) out.amplitude = joint / before;
  // Two channels a head, and noise of both sides; float angles of engines are finer than that.
  out.spread = 2 * dump.noise / std::sqrt(static_cast<double>(dump.heads));
  return out;
}

std::optional<AngleLine> fit_line(const std::vector<std::int64_t>& positions,
                                  const Turning& turning) {
  constexpr double turn = 6.283185307179586;
  const std::size_t count = positions.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return positions[i]; });
  // From neighbours a first frequency below half a turn.
  double along = 0, across = 0;
  std::size_t begin = count;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (positions[order[i + 1]] - positions[order[i]] != 1) continue;
    const double step = turning.angle[order[i + 1]] - turning.angle[order[i]];
    along += std::cos(step), across += std::sin(step);
    if (begin == count) begin = i;
  }
  if (begin == count) return {};
  AngleLine line{.frequency = std::atan2(across, along)};
  // Then lines through ever more tokens, each unwrapped by the last.
  const auto origin = static_cast<double>(positions[order[begin]]);
  line.at_zero = turning.angle[order[begin]];
  for (std::size_t taken = 2;; taken = std::min(2 * taken, count - begin)) {
    double n = 0, x1 = 0, x2 = 0, y1 = 0, xy = 0;
    for (std::size_t i = begin; i < begin + taken && i < count; ++i) {
      const double x = static_cast<double>(positions[order[i]]) - origin;
      const double off =
          std::remainder(turning.angle[order[i]] - (line.at_zero + line.frequency * x), turn);
      n += 1, x1 += x, x2 += x * x, y1 += off, xy += x * off;
    }
    const double width = x2 - x1 * x1 / n;
    if (width > 0) {
      const double slope = (xy - x1 * y1 / n) / width;
      line.frequency += slope;
      line.at_zero += (y1 - slope * x1) / n;
      line.resolution = turning.spread / std::sqrt(width);
    }
    if (taken == count - begin) break;
  }
  line.at_zero = std::remainder(line.at_zero - line.frequency * origin, turn);
  // Engines form angles in float.
  line.resolution = std::max(line.resolution, 2e-7 * std::abs(line.frequency));
  return line;
}

}  // namespace posenc::detail
