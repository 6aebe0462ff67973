// Group by group: reasons, what must be kept, work and bytes; and the layout that suits best.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "posenc/context_parallel.h"
#include "src/context_parallel/machine.h"
#include "src/context_parallel/reasons.h"
#include "src/context_parallel/sharding.h"
#include "src/context_parallel/work.h"
#include "src/core/try.h"
#include "src/explain/text.h"

namespace posenc::layout {
namespace {

using posenc::detail::grouped;

constexpr std::int64_t longest = std::int64_t{1} << 30;

// A group with its plan at this length.
struct Compiled {
  const LayerGroup* group;
  Plan plan;
};

bool reads_text(Stack stack) { return !is_tower(stack); }

// Tokens that an indexer lets a query see, of a text's keys or of compressed ones.
std::int64_t picked_keys(const Picked& picked) { return picked.count * picked.block; }

detail::Seen seen_by(const LayerGroup& group, std::int64_t length) {
  detail::Seen seen{.length = length, .causal = group.causal, .before = length, .after = length};
  if (group.window && group.chunked) {
    seen.chunk = *group.window;
  } else if (group.window) {
    const std::int64_t window = *group.window;
    seen.before = group.causal ? window - 1 : group.behind.value_or(window / 2);
    seen.after = group.behind ? window - 1 - *group.behind : window / 2;
  }
  seen.compressed = group.compressed;
  if (group.picked) seen.most_keys = picked_keys(*group.picked);
  return seen;
}

Mask mask_of(const LayerGroup& group) {
  Mask mask{.causal = group.causal};
  if (group.window) (group.chunked ? mask.chunk : mask.window) = *group.window;
  return mask;
}

class Judge {
 public:
  Judge(const Model& model, const Sharding& sharding, std::int64_t length,
        const std::vector<Compiled>& groups)
      : model_(model), sharding_(sharding), length_(length), groups_(groups) {}

  Expected<Judgement> run(const JudgeOptions& options) {
    out_.sharding = sharding_;
    out_.length = length_;
    out_.machine = options.machine;
    out_.work.assign(static_cast<std::size_t>(sharding_.ranks), 0);
    for (const Compiled& one : groups_) POSENC_CHECK(add(one, options));
    const double most = out_.work.empty() ? 0 : std::ranges::max(out_.work);
    if (most > 0)
      // Rounding may go beyond it.
      out_.balance = std::min(1.0, std::accumulate(out_.work.begin(), out_.work.end(), 0.0) /
                                       static_cast<double>(out_.work.size()) / most);
    if (out_.seconds > 0)
      out_.efficiency = alone_ / (static_cast<double>(sharding_.ranks) * out_.seconds);
    return std::move(out_);
  }

 private:
  Expected<void> add(const Compiled& compiled, const JudgeOptions& options) {
    const LayerGroup& group = *compiled.group;
    const detail::Case one{group, compiled.plan, sharding_, length_};
    GroupVerdict verdict{.stack = group.stack, .layers = group.layers, .label = group.label};
    verdict.reasons = detail::reasons_of(one);
    verdict.needs = detail::needs_of(one);
    for (const Reason& reason : verdict.reasons)
      verdict.verdict = std::max(verdict.verdict, reason.verdict);
    out_.verdict = std::max(out_.verdict, verdict.verdict);
    if (group.mixer == Mixer::attention && group.geometry.heads > 0)
      POSENC_CHECK(count(one, verdict, options));
    out_.groups.push_back(std::move(verdict));
    return {};
  }

  Expected<void> count(const detail::Case& one, GroupVerdict& verdict,
                       const JudgeOptions& options) {
    const LayerGroup& group = one.group;
    const Geometry& sizes = group.geometry;
    const detail::Seen seen = seen_by(group, length_);
    POSENC_TRY(layout, detail::layout_of(sharding_, length_, mask_of(group)));
    const double layers = static_cast<double>(group.layers.size());
    const double bytes = static_cast<double>(bytes_of_number(model_));
    const double width = static_cast<double>(std::max<std::int64_t>(sizes.head_dim, 1));
    const auto ranks = static_cast<double>(sharding_.ranks),
               among = static_cast<double>(sharding_.head_ranks), ring = ranks / among;
    const double heads = static_cast<double>(sizes.heads),
                 key_heads = static_cast<double>(
                     std::max<std::int64_t>(sizes.kv_heads > 0 ? sizes.kv_heads : sizes.heads, 1));
    verdict.heads = heads / among;
    std::vector<std::int64_t> pairs;
    double ring_bytes = 0, head_bytes = 0;
    // Of as many heads as a rank has; a latent that all heads share comes whole.
    const double ring_part = group.cache_elements > 0 && group.cache_elements < 2 * sizes.head_dim
                                 ? 1
                                 : std::max(key_heads / among, 1.0) / key_heads;
    const double per_token = static_cast<double>(
        group.cache_elements > 0 ? group.cache_elements
                                 : 2 * static_cast<std::int64_t>(key_heads) * sizes.head_dim);
    if (sharding_.exchange == Exchange::cache) {
      const std::int64_t last = length_ - 1;
      const std::int64_t from = seen.chunk > 0 ? last / seen.chunk * seen.chunk
                                               : std::max<std::int64_t>(last - seen.before, 0);
      for (std::int64_t rank = 0; rank < layout.ranks(); ++rank)
        pairs.push_back(layout.held_before(rank, length_) - layout.held_before(rank, from));
      head_bytes = 2 * heads * width * bytes * (ranks - 1) / ranks;  // queries there, outputs back
      verdict.heads = heads;
    } else {
      const std::vector<std::int64_t> of_ring = detail::pairs_of(layout, seen);
      // Neighbours that share out heads have all tokens of their ring's rank.
      for (const std::int64_t each : of_ring)
        pairs.insert(pairs.end(), static_cast<std::size_t>(sharding_.head_ranks), each);
      const double own = static_cast<double>(length_) / ranks;
      if (among > 1)
        head_bytes = own * (among - 1) / among * width * bytes *
                     (2 * heads + 2 * std::max(key_heads, among));
      if (ring > 1) {
        const detail::Visited keys = detail::visited(layout, seen);
        double beside = 0;
        for (const CachePart& part : group.cache_beside)
          beside += static_cast<double>(part.elements) /
                    static_cast<double>(std::max<std::int64_t>(part.every, 1));
        const double compressed =
            group.compressed > 0 ? keys.compressed * beside * static_cast<double>(group.compressed)
                                 : keys.tokens * beside;
        ring_bytes = (keys.tokens * per_token + compressed) * ring_part * bytes / ring;
      }
    }
    verdict.balance = posenc::balance(pairs);
    verdict.bytes = static_cast<std::int64_t>(ring_bytes + head_bytes);
    out_.bytes += static_cast<std::int64_t>((ring_bytes + head_bytes) * layers);
    double most = 0, all = 0;
    for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
      const double own = static_cast<double>(pairs[rank]) * verdict.heads;
      out_.work[rank] += own * layers;
      most = std::max(most, own);
      all += own;
    }
    verdict.pairs = std::move(pairs);
    if (sharding_.exchange == Exchange::cache) return {};
    // Two products of a multiplication and an addition.
    const double own = static_cast<double>(length_) / ring, of_pair = 4 * width;
    detail::Load load{.flops = most * of_pair,
                      .merged_bytes = 3 * 4 * own * verdict.heads * width,
                      .head_bytes = head_bytes,
                      .ranks = sharding_.ranks,
                      .head_ranks = sharding_.head_ranks,
                      .hides = sharding_.exchange == Exchange::ring ||
                               sharding_.exchange == Exchange::ring_and_heads ||
                               (sharding_.exchange == Exchange::keys && !group.picked)};
    if (ring > 1) {
      const bool sees_all = seen.chunk == 0 && seen.before + 1 >= length_;
      load.block_bytes = own * per_token * ring_part * bytes;
      const double needed = load.block_bytes > 0 ? std::ceil(ring_bytes / load.block_bytes) : 0;
      load.rounds = static_cast<std::int64_t>(sees_all ? ring - 1 : std::min(needed, ring - 1));
    }
    out_.seconds += layers * detail::seconds_of(load, options.machine);
    alone_ += layers * all * of_pair / options.machine.flops;
    return {};
  }

  const Model& model_;
  const Sharding& sharding_;
  std::int64_t length_;
  const std::vector<Compiled>& groups_;
  Judgement out_;
  double alone_ = 0;  // seconds of one rank that has the whole text
};

struct Candidate {
  Sharding sharding;
  Judgement judged;
};

// Layouts of as many ranks, the one that is asked about aside.
std::vector<Sharding> candidates_of(const Sharding& asked, const std::vector<Compiled>& groups) {
  std::vector<Sharding> out;
  const auto with = [&](Order order, Exchange exchange) -> Sharding& {
    return out.emplace_back(Sharding{
        .order = order, .exchange = exchange, .ranks = asked.ranks, .engine = asked.engine});
  };
  if (asked.exchange == Exchange::cache) {
    with(Order::round_robin, Exchange::cache).block = asked.block;
    return out;
  }
  for (const Order order : {Order::contiguous, Order::zigzag, Order::round_robin})
    for (const Exchange exchange : {Exchange::ring, Exchange::gather}) with(order, exchange);
  with(Order::contiguous, Exchange::heads).head_ranks = asked.ranks;
  std::int64_t both = asked.ranks;
  for (const Compiled& one : groups)
    if (one.group->mixer == Mixer::attention && one.group->geometry.heads > 0)
      both = std::gcd(both, one.group->geometry.kv_heads > 1 ? one.group->geometry.kv_heads
                                                             : one.group->geometry.heads);
  if (both > 1 && both < asked.ranks)
    with(Order::zigzag, Exchange::ring_and_heads).head_ranks = both;
  return out;
}

std::string percent(double part) { return std::to_string(std::lround(part * 100)) + " %"; }

std::string size_of(double bytes) {
  constexpr double step = 1000;
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (bytes < step) break;
    bytes /= step;
    unit = next;
  }
  return posenc::detail::shown(bytes, 3) + " " + unit;
}

Best best_of(const std::vector<Candidate>& all, const Candidate& asked) {
  const Candidate* best = &all.front();
  for (const Candidate& one : all) {
    const auto rank = [](const Candidate& x) {
      return std::pair(x.judged.verdict, x.judged.seconds);
    };
    if (rank(one) < rank(*best)) best = &one;
  }
  Best out{.layout = best->sharding.text(),
           .verdict = best->judged.verdict,
           .balance = best->judged.balance,
           .bytes = best->judged.bytes,
           .seconds = best->judged.seconds};
  out.why = best->judged.verdict == Verdict::survives ? "every layer survives"
            : best->judged.verdict == Verdict::unknown
                ? "no layout is sure to survive; this one breaks nothing by itself"
                : "every layout breaks some layer";
  out.why += ", ranks work " + percent(out.balance) +
             " of the time that the busiest does, and each sends " +
             size_of(static_cast<double>(out.bytes)) + " in a forward pass";
  constexpr double shows = 1.01;
  if (best->judged.verdict == asked.judged.verdict && out.seconds > 0 &&
      asked.judged.seconds > shows * out.seconds)
    out.why += "; " + asked.sharding.text() + " takes " +
               posenc::detail::shown(asked.judged.seconds / out.seconds, 3) + " times as long";
  return out;
}

}  // namespace

Expected<Judgement> judge(const Model& model, const Sharding& given, const JudgeOptions& options) {
  POSENC_TRY(sharding, detail::checked(given));
  const std::int64_t length = options.length > 0 ? options.length : model.context;
  if (options.length < 0 || length < 1 || length > longest)
    return fail(detail::where, "the whole text must have 1 to 2^30 tokens",
                std::to_string(options.length != 0 ? options.length : length),
                "say it: --at 131072");
  POSENC_CHECK(detail::check(options.machine));
  std::vector<Compiled> groups;
  for (const LayerGroup& group : model.groups) {
    if (!reads_text(group.stack)) continue;
    // Of a length that its table does not reach, lint tells elsewhere.
    auto plan = compile(group, length);
    if (!plan) plan = compile(group);
    groups.push_back({&group, plan ? std::move(*plan) : Plan{}});
  }
  const auto judged = [&](const Sharding& one) -> Expected<Candidate> {
    Judge judge(model, one, length, groups);
    POSENC_TRY(verdict, judge.run(options));
    return Candidate{one, std::move(verdict)};
  };
  POSENC_TRY(asked, judged(sharding));
  std::vector<Candidate> all;
  for (const Sharding& one : candidates_of(sharding, groups)) {
    POSENC_TRY(candidate, judged(one));
    all.push_back(std::move(candidate));
  }
  asked.judged.best = best_of(all, asked);
  return std::move(asked.judged);
}

}  // namespace posenc::layout
