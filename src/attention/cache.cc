#include "posenc/cache.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/attention/kept_sequence.h"
#include "src/attention/pages.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"

namespace posenc {
namespace {

using detail::KeptSequence;
using detail::Rotation;

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

struct KvCache::State {
  KvCacheOptions options;
  detail::Pages pages;
  std::map<Sequence, KeptSequence> sequences = {};
  Sequence next = 0;
  detail::Scratch keys = {}, values = {}, queries = {};

  // What keys are kept turned by.
  Rotation kept_by(const Plan& plan) const {
    return options.keys == KeptKeys::rotated ? plan.rotate : Rotation{};
  }

  Expected<KeptSequence*> find(std::string_view where, Sequence sequence) {
    const auto found = sequences.find(sequence);
    if (found != sequences.end()) return &found->second;
    return fail(where, "the sequence must be one that add() gave and remove() did not take",
                number(sequence), "add() one");
  }

  Expected<std::vector<KeptSequence*>> find_all(std::string_view where,
                                                std::span<const Sequence> wanted) {
    std::vector<KeptSequence*> all;
    for (const Sequence sequence : wanted) {
      const auto kept = find(where, sequence);
      if (!kept) return std::unexpected(kept.error());
      all.push_back(*kept);
    }
    std::vector<Sequence> sorted(wanted.begin(), wanted.end());
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      return fail(where, "each sequence must come once", number(*twice) + " twice",
                  "pass its tokens in one call");
    }
    return all;
  }

  // [sequence, head, token, head_dim] with at least one token.
  Expected<Tensor> viewed(std::string_view where, std::string_view name, const Tensor& x,
                          std::size_t count) const {
    const auto view = detail::viewed(where, name, x, 4);
    if (!view) return view;
    const auto sequences_given = static_cast<std::int64_t>(count);
    if (view->shape[0] != sequences_given || view->shape[2] < 1 ||
        view->shape[3] != options.head_dim) {
      return fail(where,
                  std::string(name) + " must be [" + number(sequences_given) +
                      ", heads, 1 or more, " + number(options.head_dim) + "]",
                  shape_text(*view), "shapes read [sequence, head, token, head_dim]");
    }
    if (x.dtype == options.dtype) return view;
    return fail(where,
                std::string(name) + " must have the cache's dtype " +
                    std::string(posenc::name(options.dtype)),
                posenc::name(x.dtype), "convert outside");
  }

  // The plan holds for the length, its rotation for the keys, and the keys that are kept allow it.
  Expected<void> check_plan(std::string_view where, const Plan& plan, Sequence sequence,
                            const KeptSequence& kept, std::int64_t length) const {
    if (plan.valid && !plan.valid->contains(length)) {
      return fail(where,
                  "the plan must hold for length " + number(length) + ", that of sequence " +
                      number(sequence),
                  "one for lengths " + number(plan.valid->from) + " to " + number(plan.valid->to),
                  "compile the scheme for this length");
    }
    if (options.keys == KeptKeys::rotated) {
      if (plan.rotate && plan.relative) {
        return fail(where, "a plan for keys kept rotated must have no vectors by distance beside",
                    "vectors that meet unrotated keys", "make the cache with KeptKeys::unrotated");
      }
      if (kept.tokens() > 0 && kept.rotation() == plan.rotate) return {};  // checked when they came
      if (kept.tokens() > 0 && options.new_plan == NewPlan::refuse) {
        return fail(where,
                    "the plan must rotate as the " + number(kept.tokens()) + " keys of sequence " +
                        number(sequence) + " were rotated",
                    "another rotation, for which they are stale",
                    "keep keys unrotated, or let them be turned with NewPlan::rerotate");
      }
    }
    if (!plan.rotate) return {};
    if (auto ok = detail::check_rotation(where, *plan.rotate, options.kv_heads, options.head_dim);
        !ok)
      return ok;
    Plan turn;
    turn.rotate = plan.rotate;
    if (auto ok = checked(std::move(turn), options.head_dim); !ok)
      return std::unexpected(ok.error());
    const Positions at = kept.positions();
    if (auto ok = detail::check_positions(where, at, 1, at.size(), plan.rotate->axes); !ok)
      return ok;
    return detail::check_engine(where, *plan.rotate, at);
  }

  // One sequence's newest tokens over all of them. Keys kept rotated meet rotated queries, and a
  // plan that rotates no more.
  Expected<void> attend(std::string_view where, const KeptSequence& kept, const Tensor& q,
                        const Plan& plan, const Mask& mask, const Tensor& out, Threads threads) {
    const std::int64_t count = q.shape[2], first = kept.first_seen(mask, count);
    const auto kv = kept.read(where, pages, first, keys, values, threads);
    if (!kv) return std::unexpected(kv.error());
    const Positions at = kept.positions(kept.tokens() - count, kept.tokens());
    const Positions all = kept.positions(first, kept.tokens());
    if (!kept_by(plan)) {
      return posenc::attend({q, kv->first, kv->second, at, all, mask, threads}, plan, out);
    }
    const auto turned = queries.dense(where, options.dtype, q.shape[1], count, options.head_dim);
    if (!turned) return std::unexpected(turned.error());
    if (auto ok = rotate(plan, q, at, Side::query, *turned, threads); !ok) return ok;
    Plan rest = plan;
    rest.rotate.reset();
    if (auto ok =
            posenc::attend({*turned, kv->first, kv->second, at, all, mask, threads}, rest, out);
        !ok)
      return ok;
    return rotate_inverse(plan, out, at, Side::value, out, threads);
  }
};

KvCache::KvCache(std::unique_ptr<State> state) : state_(std::move(state)) {}
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;
KvCache::~KvCache() = default;

Expected<KvCache> KvCache::make(const KvCacheOptions& options) {
  auto pages = detail::Pages::make("KvCache",
                                   {.kv_heads = options.kv_heads,
                                    .head_dim = options.head_dim,
                                    .page_size = options.page_size,
                                    .dtype = options.dtype},
                                   options.max_pages);
  if (!pages) return std::unexpected(pages.error());
  return KvCache(std::unique_ptr<State>(new State{.options = options, .pages = *std::move(pages)}));
}

KvCache::Sequence KvCache::add() {
  state_->sequences.emplace(state_->next, KeptSequence{});
  return state_->next++;
}

Expected<void> KvCache::remove(Sequence sequence) {
  const auto kept = state_->find("cache remove", sequence);
  if (!kept) return std::unexpected(kept.error());
  (*kept)->clear(state_->pages);
  state_->sequences.erase(sequence);
  return {};
}

Expected<void> KvCache::append(std::span<const Sequence> sequences, const Tensor& k,
                               const Tensor& v, const Plan& plan,
                               const std::optional<Positions>& positions, Threads threads) {
  constexpr std::string_view where = "cache append";
  State& state = *state_;
  const auto kept = state.find_all(where, sequences);
  if (!kept) return std::unexpected(kept.error());
  if (sequences.empty()) return {};
  const auto keys = state.viewed(where, "k", k, sequences.size());
  if (!keys) return std::unexpected(keys.error());
  const auto values = state.viewed(where, "v", v, sequences.size());
  if (!values) return std::unexpected(values.error());
  if (auto ok = detail::check_shape(where, "v", *values, *keys); !ok) return ok;
  if (keys->shape[1] != state.options.kv_heads) {
    return fail(where, "k must have the cache's kv_heads " + number(state.options.kv_heads),
                shape_text(*keys), "shapes read [sequence, head, token, head_dim]");
  }
  const std::int64_t count = keys->shape[2];
  if (positions) {
    const std::int64_t axes = plan.rotate ? plan.rotate->axes : positions->axes();
    if (auto ok = detail::check_positions(where, *positions, keys->shape[0], count, axes); !ok)
      return ok;
    if (auto ok = detail::check_kept_positions(where, *positions); !ok) return ok;
  }

  std::vector<Positions> standing;
  std::int64_t pages = 0;
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const KeptSequence& each = *(*kept)[b];
    standing.push_back(positions ? detail::part(*positions, static_cast<std::int64_t>(b), 0, count)
                                 : Positions::range(each.length(), count));
    const Positions& at = standing.back();
    if (auto ok = detail::check_kept_positions(where, at); !ok) return ok;
    const std::int64_t axes = each.axes();
    if (axes != at.axes() && axes != 1 && at.axes() != 1) {
      return fail(where, "positions must have one axis or the " + number(axes) + " of the sequence",
                  number(at.axes()), "check which plan the positions belong to");
    }
    if (auto ok =
            state.check_plan(where, plan, sequences[b], each, std::max(each.length(), at.length()));
        !ok)
      return ok;
    if (plan.rotate) {
      if (auto ok = detail::check_engine(where, *plan.rotate, at); !ok) return ok;
    }
    pages += each.pages_needed(count, state.options.page_size);
  }
  if (auto ok = state.pages.reserve(where, pages); !ok) return ok;
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const auto sequence = static_cast<std::int64_t>(b);
    if (auto ok = (*kept)[b]->append(state.pages, detail::part(*keys, sequence, 0, count),
                                     detail::part(*values, sequence, 0, count), state.kept_by(plan),
                                     standing[b], threads);
        !ok)
      return ok;
  }
  return {};
}

Expected<void> KvCache::attend(std::span<const Sequence> sequences, const Tensor& q,
                               const Plan& plan, const Mask& mask, const Tensor& out,
                               Threads threads) {
  constexpr std::string_view where = "cache attend";
  State& state = *state_;
  const auto kept = state.find_all(where, sequences);
  if (!kept) return std::unexpected(kept.error());
  if (sequences.empty()) return {};
  const auto from = state.viewed(where, "q", q, sequences.size());
  if (!from) return std::unexpected(from.error());
  const auto to = state.viewed(where, "out", out, sequences.size());
  if (!to) return std::unexpected(to.error());
  if (auto ok = detail::check_shape(where, "out", *to, *from); !ok) return ok;
  if (auto ok = detail::check_distinct(where, *to); !ok) return ok;
  const std::int64_t heads = from->shape[1], count = from->shape[2];
  if (heads < 1 || heads % state.options.kv_heads != 0) {
    return fail(where, "heads must be a multiple of kv_heads",
                number(heads) + " and " + number(state.options.kv_heads),
                "each key head serves heads/kv_heads query heads");
  }
  if (mask.keep != nullptr) {
    return fail(where, "the mask must go by position", "Mask::keep",
                "append real tokens only; evict() those that nobody is to see");
  }
  if (plan.rotate) {
    if (auto ok = detail::check_rotation(where, *plan.rotate, heads, state.options.head_dim); !ok)
      return ok;
  }
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const KeptSequence& each = *(*kept)[b];
    if (each.tokens() < count) {
      return fail(where,
                  "sequence " + number(sequences[b]) + " must hold the " + number(count) +
                      " tokens that ask",
                  number(each.tokens()), "append their keys and values first");
    }
    if (auto ok = state.check_plan(where, plan, sequences[b], each, each.length()); !ok) return ok;
  }
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    KeptSequence& each = *(*kept)[b];
    const auto sequence = static_cast<std::int64_t>(b);
    if (auto ok = each.rerotate(state.pages, state.kept_by(plan), threads); !ok) return ok;
    if (auto ok = state.attend(where, each, detail::part(*from, sequence, 0, count), plan, mask,
                               detail::part(*to, sequence, 0, count), threads);
        !ok)
      return ok;
  }
  return {};
}

Expected<void> KvCache::shift(Sequence sequence, std::int64_t first, std::int64_t last,
                              std::int64_t offset) {
  const auto kept = state_->find("cache shift", sequence);
  if (!kept) return std::unexpected(kept.error());
  return (*kept)->shift("cache shift", state_->pages, first, last, offset);
}

Expected<void> KvCache::evict(Sequence sequence, std::int64_t first, std::int64_t last, Gap gap) {
  const auto kept = state_->find("cache evict", sequence);
  if (!kept) return std::unexpected(kept.error());
  return (*kept)->evict("cache evict", state_->pages, first, last, gap == Gap::close);
}

Expected<std::int64_t> KvCache::tokens(Sequence sequence) const {
  const auto kept = state_->find("cache tokens", sequence);
  if (!kept) return std::unexpected(kept.error());
  return (*kept)->tokens();
}

Expected<std::int64_t> KvCache::length(Sequence sequence) const {
  const auto kept = state_->find("cache length", sequence);
  if (!kept) return std::unexpected(kept.error());
  return (*kept)->length();
}

Expected<Positions> KvCache::positions(Sequence sequence) const {
  const auto kept = state_->find("cache positions", sequence);
  if (!kept) return std::unexpected(kept.error());
  return (*kept)->positions();
}

std::int64_t KvCache::pages() const { return state_->pages.count(); }
std::int64_t KvCache::free_pages() const { return state_->pages.free(); }
std::int64_t KvCache::bytes() const {
  return state_->pages.bytes() + state_->keys.bytes() + state_->values.bytes() +
         state_->queries.bytes();
}

}  // namespace posenc
