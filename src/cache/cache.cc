// The verbs of cache.h. A decode step costs the same whatever the sequence holds, but for the
// attention itself: a plan is checked when it comes and not again while it stays, positions are
// extended in place and looked at where they are new, and what a call needs besides serves the next
// call too.
#include "posenc/cache.h"
#include "posenc/features.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/attention/fused.h"
#include "src/cache/pages.h"
#include "src/cache/sequence.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"

namespace posenc {
namespace {

using detail::CachedSequence;
using detail::Rotation;

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

struct KvCache::State {
  KvCacheOptions options;
  detail::Pages pages;
  std::map<Sequence, CachedSequence> sequences = {};
  Sequence next = 0;
  detail::Gathered keys = {}, values = {};
  // Of the call under way, in memory that serves all calls.
  std::vector<CachedSequence*> called = {};
  std::vector<Sequence> sorted = {};
  Rotation checked_rotation = {};  // the last one that was found to fit the cache

  // What cached keys are rotated by.
  const Rotation& rotation_of_keys(const Plan& plan) const {
    static const Rotation none;
    return options.keys == CachedKeys::rotated ? plan.rotate : none;
  }

  Expected<CachedSequence*> find(std::string_view where, Sequence sequence) {
    const auto found = sequences.find(sequence);
    if (found != sequences.end()) return &found->second;
    return fail(where, "the sequence must be one that add() gave and remove() did not take",
                number(sequence), "add() one");
  }

  // Into `called`.
  Expected<void> find_all(std::string_view where, std::span<const Sequence> wanted) {
    called.clear();
    for (const Sequence sequence : wanted) {
      POSENC_TRY(found, find(where, sequence));
      called.push_back(found);
    }
    sorted.assign(wanted.begin(), wanted.end());
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      return fail(where, "each sequence must come once", number(*twice) + " twice",
                  "pass its tokens in one call");
    }
    return {};
  }

  // [sequence, head, token, width] with at least one token. A part's output may round less.
  Expected<Tensor> viewed(std::string_view where, std::string_view name, const Tensor& x,
                          std::size_t count, std::int64_t width, bool rounds_less = false) const {
    POSENC_TRY(view, detail::viewed(where, name, x, 4));
    const auto sequences_given = static_cast<std::int64_t>(count);
    if (view.shape[0] != sequences_given || view.shape[2] < 1 || view.shape[3] != width) {
      return fail(where,
                  std::string(name) + " must be [" + number(sequences_given) +
                      ", heads, 1 or more, " + number(width) + "]",
                  shape_text(view),
                  "shapes read [sequence, head, token, head_dim], of v and out value_dim");
    }
    if (x.dtype == options.dtype) return view;
    if (rounds_less && x.dtype == DType::f32 && size_of(options.dtype) < sizeof(float)) return view;
    return fail(where,
                std::string(name) + " must have the cache's dtype " +
                    std::string(posenc::name(options.dtype)),
                posenc::name(x.dtype), "convert outside");
  }

  // Asked once of each rotation that comes: tokens bring the same one again and again.
  Expected<void> check_rotation(std::string_view where, const Rotate& rotate) {
    if (checked_rotation == rotate) return {};
    POSENC_CHECK(
        detail::check_rotation(where, rotate, Side::key, options.kv_heads, options.head_dim));
    if (rotate.rotates_values())
      POSENC_CHECK(
          detail::check_rotation(where, rotate, Side::value, options.kv_heads, options.value_dim));
    Plan alone;
    alone.rotate = rotate;
    POSENC_TRY(plan, checked(std::move(alone), options.head_dim));
    checked_rotation = std::move(plan.rotate);
    return {};
  }

  // The plan holds for the length, its rotation for the keys, and the cached keys allow it.
  Expected<void> check_plan(std::string_view where, const Plan& plan, Sequence sequence,
                            const CachedSequence& cached, std::int64_t length) {
    if (plan.valid && !plan.valid->contains(length)) {
      return fail(where,
                  "the plan must hold for length " + number(length) + ", that of sequence " +
                      number(sequence),
                  "one for lengths " + number(plan.valid->from) + " to " + number(plan.valid->to),
                  "compile the scheme for this length");
    }
    const bool rotated = options.keys == CachedKeys::rotated && plan.rotate;
    POSENC_CHECK(check_takes(rotated ? rooms::rotated_keys : rooms::unrotated_keys, plan, where));
    if (options.keys == CachedKeys::rotated) {
      const bool any = cached.tokens() > 0;
      if (any && cached.rotation() == plan.rotate) return {};  // checked when they came
      if (any) {
        POSENC_CHECK(check_takes(rooms::rerotated_keys, {.rotate = cached.rotation()}, where));
        POSENC_CHECK(check_takes(rooms::rerotated_keys, {.rotate = plan.rotate}, where));
      }
      if (any && options.new_plan == NewPlan::refuse) {
        return fail(where,
                    "the plan must rotate as the " + number(cached.tokens()) +
                        " keys of sequence " + number(sequence) + " were rotated",
                    "another rotation, for which they are stale",
                    "cache keys unrotated, or rotate them anew with NewPlan::rerotate");
      }
    }
    if (!plan.rotate) return {};
    POSENC_CHECK(check_rotation(where, *plan.rotate));
    POSENC_CHECK(detail::check_positions(where, cached.positions(), 1, cached.tokens(),
                                         plan.rotate->frequencies.axes));
    // None is below 0: the largest tells of all.
    return detail::check_engine(where, *plan.rotate, Positions::range(cached.length() - 1, 1));
  }

  // Who asks, and of what else than the newest tokens' place and out.
  struct Asked {
    const Positions* queries = nullptr;  // null: the newest tokens
    Tensor log_sums = {};
  };
  Expected<void> attend(std::string_view where, std::span<const Sequence> sequences,
                        const Tensor& q, const Asked& asked, const Plan& plan, const Mask& mask,
                        const Tensor& out, Threads threads, const Tensor& sink_logits,
                        const ProfileTensors& profiles);

  // One sequence's queries over all its tokens. All but the reach of the plan's tables was checked.
  Expected<void> attend(std::string_view where, const CachedSequence& cached, const Tensor& q,
                        const Positions* queries, const Plan& plan, const Mask& mask,
                        const detail::RelativeTables& relative, const Tensor& sink_logits,
                        ProfileTensors profiles, const Tensor& out, const Tensor& log_sums,
                        Threads threads) {
    const std::int64_t count = q.shape[2];
    POSENC_TRY(listed, detail::check_keys(where, mask, 1, count, cached.tokens()));
    const std::int64_t first = queries == nullptr && !listed ? cached.first_seen(mask, count) : 0;
    POSENC_TRY(kv, cached.read(where, pages, first, keys, values, threads));
    const Positions at =
        queries != nullptr ? *queries : cached.positions(cached.tokens() - count, cached.tokens());
    const Positions all = cached.positions(first, cached.tokens());
    if (profiles.key) profiles.key = detail::part(profiles.key, 0, first, cached.tokens() - first);
    const detail::AttendArguments in{.q = q,
                                     .k = kv.first,
                                     .v = kv.second,
                                     .out = out,
                                     .logits = {},
                                     .log_sums = log_sums,
                                     .sink_logits = sink_logits,
                                     .relative = relative,
                                     .profiles = profiles,
                                     .queries = &at,
                                     .keys = &all,
                                     .mask = listed ? listed.get() : &mask,
                                     .threads = threads,
                                     .keys_rotated = static_cast<bool>(rotation_of_keys(plan)),
                                     .options = options.attend};
    POSENC_CHECK(detail::check_reach(plan, in));
    detail::attend_by_plan(in, plan);
    return {};
  }
};

KvCache::KvCache(std::unique_ptr<State> state) : state_(std::move(state)) {}
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

Expected<KvCache> KvCache::make(const KvCacheOptions& options) {
  if (has_8_bits(options.dtype))
    return fail("KvCache", "dtype must be of 16 bits or more", posenc::name(options.dtype),
                "attend() reads an engine's keys and values of 8 bits");
  KvCacheOptions whole = options;
  if (whole.value_dim == 0) whole.value_dim = options.head_dim;
  auto pages = detail::Pages::make("KvCache",
                                   {.kv_heads = options.kv_heads,
                                    .head_dim = options.head_dim,
                                    .value_dim = whole.value_dim,
                                    .page_size = options.page_size,
                                    .dtype = options.dtype},
                                   options.max_pages);
  if (!pages) return std::unexpected(pages.error());
  return KvCache(std::make_unique<State>(State{.options = whole, .pages = *std::move(pages)}));
}

KvCache::Sequence KvCache::add() {
  state_->sequences.emplace(state_->next, CachedSequence{});
  return state_->next++;
}

Expected<void> KvCache::remove(Sequence sequence) {
  POSENC_TRY(cached, state_->find("cache remove", sequence));
  cached->clear(state_->pages);
  state_->sequences.erase(sequence);
  return {};
}

Expected<void> KvCache::append(std::span<const Sequence> sequences, const Tensor& k,
                               const Tensor& v, const Plan& plan,
                               const std::optional<Positions>& positions, Threads threads) {
  constexpr std::string_view where = "cache append";
  State& state = *state_;
  POSENC_CHECK(state.find_all(where, sequences));
  if (sequences.empty()) return {};
  POSENC_TRY(keys, state.viewed(where, "k", k, sequences.size(), state.options.head_dim));
  POSENC_TRY(values, state.viewed(where, "v", v, sequences.size(), state.options.value_dim));
  Tensor like = keys;
  like.shape[3] = state.options.value_dim;
  POSENC_CHECK(detail::check_shape(where, "v", values, like));
  if (keys.shape[1] != state.options.kv_heads) {
    return fail(where, "k must have the cache's kv_heads " + number(state.options.kv_heads),
                shape_text(keys), "shapes read [sequence, head, token, head_dim]");
  }
  const std::int64_t count = keys.shape[2];
  if (positions) {
    const std::int64_t axes = plan.rotate ? plan.rotate->frequencies.axes : positions->axes();
    POSENC_CHECK(detail::check_positions(where, *positions, keys.shape[0], count, axes));
    POSENC_CHECK(detail::check_cached_positions(where, *positions));
  }

  const auto positions_of = [&](std::size_t b) {
    return positions ? positions->slice(static_cast<std::int64_t>(b), 0, count)
                     : Positions::range(state.called[b]->length(), count);
  };
  std::int64_t pages = 0;
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const CachedSequence& each = *state.called[b];
    const Positions at = positions_of(b);
    if (!positions) POSENC_CHECK(detail::check_cached_positions(where, at));
    const std::int64_t axes = each.positions().axes();
    if (axes != at.axes() && axes != 1 && at.axes() != 1) {
      return fail(where, "positions must have one axis or the " + number(axes) + " of the sequence",
                  number(at.axes()), "check which plan the positions belong to");
    }
    POSENC_CHECK(
        state.check_plan(where, plan, sequences[b], each, std::max(each.length(), at.length())));
    if (plan.rotate) POSENC_CHECK(detail::check_engine(where, *plan.rotate, at));
    pages += each.pages_needed(count, state.options.page_size);
  }
  POSENC_CHECK(state.pages.reserve(where, pages));
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const auto sequence = static_cast<std::int64_t>(b);
    POSENC_CHECK(state.called[b]->append(state.pages, detail::part(keys, sequence, 0, count),
                                         detail::part(values, sequence, 0, count),
                                         state.rotation_of_keys(plan), positions_of(b), threads));
  }
  return {};
}

Expected<void> KvCache::attend(std::span<const Sequence> sequences, const Tensor& q,
                               const Plan& plan, const Mask& mask, const Tensor& out,
                               Threads threads, const Tensor& sink_logits,
                               const ProfileTensors& profiles) {
  return state_->attend("cache attend", sequences, q, {}, plan, mask, out, threads, sink_logits,
                        profiles);
}

Expected<void> KvCache::attend_part(std::span<const Sequence> sequences, const Tensor& q,
                                    const Positions& queries, const Plan& plan, const Mask& mask,
                                    const Tensor& out, const Tensor& log_sums, Threads threads,
                                    const Tensor& sink_logits, const ProfileTensors& profiles) {
  return state_->attend("cache attend_part", sequences, q,
                        {.queries = &queries, .log_sums = log_sums}, plan, mask, out, threads,
                        sink_logits, profiles);
}

Expected<void> KvCache::State::attend(std::string_view where, std::span<const Sequence> sequences,
                                      const Tensor& q, const Asked& asked, const Plan& plan,
                                      const Mask& mask, const Tensor& out, Threads threads,
                                      const Tensor& sink_logits, const ProfileTensors& profiles) {
  State& state = *this;
  const bool part = asked.queries != nullptr;
  POSENC_CHECK(state.find_all(where, sequences));
  if (sequences.empty()) return {};
  POSENC_TRY(from, state.viewed(where, "q", q, sequences.size(), state.options.head_dim));
  POSENC_TRY(to, state.viewed(where, "out", out, sequences.size(), state.options.value_dim, part));
  Tensor like = from;
  like.shape[3] = state.options.value_dim;
  POSENC_CHECK(detail::check_shape(where, "out", to, like));
  POSENC_CHECK(detail::check_distinct(where, to));
  const std::int64_t heads = from.shape[1], count = from.shape[2];
  if (heads < 1 || heads % state.options.kv_heads != 0) {
    return fail(where, "heads must be a multiple of kv_heads",
                number(heads) + " and " + number(state.options.kv_heads),
                "each key head serves heads/kv_heads query heads");
  }
  if (mask.keep != nullptr || mask.blocks != nullptr) {
    return fail(where, "the mask must compare positions", "keep or blocks",
                "append real tokens only, and prefill pictures with posenc::attend()");
  }
  const std::int64_t head_dim = state.options.head_dim;
  if (plan.rotate)
    POSENC_CHECK(detail::check_rotation(where, *plan.rotate, Side::query, heads, head_dim));
  POSENC_TRY(sinks, detail::check_sink_logits(where, sink_logits, from.shape[0], heads, count));
  std::int64_t longest = 0;
  for (const CachedSequence* each : state.called) longest = std::max(longest, each->tokens());
  POSENC_TRY(met,
             detail::check_profiles(where, plan, profiles, from.shape[0], heads, count, longest));
  POSENC_TRY(sums, detail::number_by_query(where, "log_sums", asked.log_sums, {.q = from}));
  std::int64_t length = 0;  // that the queries reach beyond the tokens here
  if (part) {
    const std::int64_t axes = plan.rotate ? plan.rotate->frequencies.axes : asked.queries->axes();
    POSENC_CHECK(detail::check_positions(where, *asked.queries, from.shape[0], count, axes));
    POSENC_CHECK(detail::check_cached_positions(where, *asked.queries));
    length = asked.queries->length();
  }
  POSENC_TRY(relative, detail::check_added(where, plan, heads, head_dim, state.options.value_dim));
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const CachedSequence& each = *state.called[b];
    if (!part && each.tokens() < count) {
      return fail(where,
                  "sequence " + number(sequences[b]) + " must hold the " + number(count) +
                      " tokens that ask",
                  number(each.tokens()), "append their keys and values first");
    }
    POSENC_CHECK(
        state.check_plan(where, plan, sequences[b], each, std::max(length, each.length())));
    if (part && plan.rotate)
      POSENC_CHECK(detail::check_engine(where, *plan.rotate, *asked.queries));
  }
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    CachedSequence& each = *state.called[b];
    const auto sequence = static_cast<std::int64_t>(b);
    each.rerotate(state.pages, state.rotation_of_keys(plan), threads);
    const auto of_sequence = [&](const Tensor& x) {
      return x ? detail::part(x, sequence, 0, count) : x;
    };
    const Positions at = part ? asked.queries->slice(sequence, 0, count) : Positions();
    const ProfileTensors profiles_of = {
        .query = of_sequence(met.query),
        .key = met.key ? detail::part(met.key, sequence, 0, longest) : met.key};
    Mask own = mask;
    if (own.keys != nullptr) own.keys += sequence * count * own.key_count;
    POSENC_CHECK(state.attend(where, each, of_sequence(from), part ? &at : nullptr, plan, own,
                              relative, of_sequence(sinks), profiles_of, of_sequence(to),
                              of_sequence(sums), threads));
  }
  return {};
}

Expected<void> KvCache::shift(Sequence sequence, std::int64_t first, std::int64_t last,
                              std::int64_t offset) {
  POSENC_TRY(cached, state_->find("cache shift", sequence));
  return cached->shift("cache shift", state_->pages, first, last, offset);
}

Expected<void> KvCache::evict(Sequence sequence, std::int64_t first, std::int64_t last, Gap gap) {
  POSENC_TRY(cached, state_->find("cache evict", sequence));
  return cached->evict("cache evict", state_->pages, first, last, gap == Gap::close);
}

Expected<std::int64_t> KvCache::tokens(Sequence sequence) const {
  POSENC_TRY(cached, state_->find("cache tokens", sequence));
  return cached->tokens();
}

Expected<std::int64_t> KvCache::length(Sequence sequence) const {
  POSENC_TRY(cached, state_->find("cache length", sequence));
  return cached->length();
}

Expected<Positions> KvCache::positions(Sequence sequence) const {
  POSENC_TRY(cached, state_->find("cache positions", sequence));
  return cached->positions();
}

std::int64_t KvCache::pages() const { return state_->pages.count(); }
std::int64_t KvCache::free_pages() const { return state_->pages.free(); }
std::int64_t KvCache::bytes() const {
  return state_->pages.bytes() + state_->keys.bytes() + state_->values.bytes();
}

}  // namespace posenc
