// What happens to one cached sequence: it grows, its keys are rotated anew, tokens move or leave,
// and attention reads it. Growing costs the new tokens alone: positions are extended in place, and
// what must hold for all of them (the length, their order) is known from one token to the next.
#include "src/cache/sequence.h"
#include "posenc/features.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "src/core/try.h"
#include "src/kernels/parity.h"
#include "src/kernels/threads.h"

namespace posenc::detail {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

Tensor keys_of(const Pages& pages, const Run& run) { return pages.keys(run.place, run.size); }
Tensor values_of(const Pages& pages, const Run& run) { return pages.values(run.place, run.size); }

// One head's tokens, which lie one behind the other on both sides.
void copy_head(const Tensor& from, const Tensor& to, std::int64_t head) {
  const auto size = static_cast<std::int64_t>(size_of(from.dtype));
  std::memcpy(static_cast<std::byte*>(to.data) + to.offset(0, head) * size,
              static_cast<const std::byte*>(from.data) + from.offset(0, head) * size,
              static_cast<std::size_t>(from.shape[2] * from.shape[3] * size));
}

bool ascends(const Positions& positions) {
  if (positions.contiguous()) return true;
  if (positions.axes() > 1) return false;
  for (std::int64_t t = 1; t < positions.size(); ++t) {
    if (positions.at(t) < positions.at(t - 1)) return false;
  }
  return true;
}

// Ascending positions as a range, if that is what they have become.
Positions simplified(const Positions& positions) {
  const std::int64_t size = positions.size();
  if (size == 0) return {};
  const std::int64_t first = positions.at(0);
  if (positions.contiguous() || positions.at(size - 1) != first + size - 1) return positions;
  for (std::int64_t t = 1; t < size; ++t) {
    if (positions.at(t) != first + t) return positions;
  }
  return Positions::range(first, size);
}

}  // namespace

Expected<void> check_cached_positions(std::string_view where, const Positions& positions) {
  // The ends of a range tell of all between.
  const std::int64_t size = positions.size();
  const std::int64_t step = positions.contiguous() && size > 1 ? size - 1 : 1;
  for (std::int64_t axis = 0; axis < positions.axes(); ++axis) {
    for (std::int64_t b = 0; b < positions.batch(); ++b) {
      for (std::int64_t t = 0; t < size; t += step) {
        const std::int64_t at = positions.at(t, b, axis);
        if (at >= 0 && at < furthest_position) continue;
        return fail(where, "positions must lie within 0 and 2^62", number(at),
                    "append real tokens only; padding has no place in a cache");
      }
    }
  }
  if (size > 0 && positions.segment(size - 1) != 0) {
    return fail(where, "positions must be of one text", "packed sequences",
                "add a sequence for each");
  }
  return {};
}

Tensor part(const Tensor& x, std::int64_t sequence, std::int64_t first, std::int64_t count) {
  Tensor view = x;
  view.data = static_cast<std::byte*>(x.data) +
              x.offset(sequence, 0, first) * static_cast<std::int64_t>(size_of(x.dtype));
  view.shape[0] = 1;
  view.shape[2] = count;
  return view;
}

Expected<Tensor> Gathered::dense(std::string_view where, DType dtype, std::int64_t heads,
                                 std::int64_t tokens, std::int64_t width) {
  const std::int64_t wanted = heads * tokens * width * static_cast<std::int64_t>(size_of(dtype));
  if (wanted > bytes_) {
    // Half as much again: a sequence that grows by a token a call asks for memory now and then.
    const std::int64_t bytes = std::max(wanted, bytes_ + bytes_ / 2);
    memory_.reset();
    memory_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(bytes)]);
    bytes_ = memory_ == nullptr ? 0 : bytes;
    if (memory_ == nullptr) {
      return fail(where, "what is gathered from pages must fit in memory",
                  number(wanted) + " bytes",
                  "use shorter sequences, or reserve neighbouring pages with max_pages");
    }
  }
  return Tensor::dense(memory_.get(), dtype, {1, heads, tokens, width});
}

void CachedSequence::rerotate(Pages& pages, const Rotation& rotation, Threads threads) {
  if (rotation_ == rotation) return;
  for (const Run& run : table_.runs(0, tokens())) {
    change_rotation(rotation_, rotation, keys_of(pages, run), values_of(pages, run), positions(run),
                    threads);
  }
  rotation_ = rotation;
}

Expected<void> CachedSequence::append(Pages& pages, const Tensor& k, const Tensor& v,
                                      const Rotation& rotation, const Positions& positions,
                                      Threads threads) {
  const std::int64_t before = tokens(), count = positions.size();
  POSENC_CHECK(positions_.append(positions));
  rerotate(pages, rotation, threads);
  table_.extend(pages, count);
  ascending_ = ascending_ && positions_.axes() == 1 && ascends(positions) &&
               (before == 0 || positions.at(0) >= positions_.at(before - 1));
  length_ = std::max(length_, positions.length());

  const Rotate* const rotate = rotation ? &*rotation : nullptr;
  for (const Run& run : table_.runs(before, tokens())) {
    const std::int64_t first = run.first - before;
    const Positions at = positions.slice(0, first, run.size);
    rotate_checked(rotate, part(k, 0, first, run.size), at, Side::key, Action::forward,
                   keys_of(pages, run), threads);
    rotate_checked(rotate, part(v, 0, first, run.size), at, Side::value, Action::forward,
                   values_of(pages, run), threads);
  }
  return {};
}

Expected<void> CachedSequence::check_tokens(std::string_view where, std::int64_t first,
                                            std::int64_t last) const {
  if (0 <= first && first <= last && last <= tokens()) return {};
  return fail(where, "tokens must lie within the " + number(tokens()) + " that are cached",
              number(first) + " to " + number(last), "count the tokens that have survived");
}

void CachedSequence::replace_positions(std::int64_t first, std::int64_t last,
                                       const Positions& between) {
  Positions all = positions(0, first);
  // Axes are the same in all three, and there are fewer positions than before.
  for (const Positions& next : {between, positions(last, positions_.size())}) {
    if (auto ok = all.append(next); !ok) std::abort();
  }
  ascending_ = ascends(all);
  positions_ = ascending_ ? simplified(all) : all;
  length_ = positions_.length();
}

Expected<void> CachedSequence::shift(std::string_view where, Pages& pages, std::int64_t first,
                                     std::int64_t last, std::int64_t offset) {
  POSENC_CHECK(check_tokens(where, first, last));
  if (first == last || offset == 0) return {};
  const Positions before = positions(first, last);
  const auto moved = before.shifted(offset);
  if (!moved || moved->length() > furthest_position) {
    std::int64_t lowest = furthest_position;
    for (std::int64_t axis = 0; axis < before.axes(); ++axis) {
      for (std::int64_t t = 0; t < before.size(); ++t)
        lowest = std::min(lowest, before.at(t, 0, axis));
    }
    return fail(where, "positions must stay within 0 and 2^62",
                number(lowest) + " to " + number(before.length() - 1) + " with an offset of " +
                    number(offset),
                "shift by less");
  }
  POSENC_CHECK(check_takes(rooms::rerotated_keys, {.rotate = rotation_}, where));
  if (rotation_) {
    POSENC_CHECK(check_engine(where, *rotation_, *moved));
    for (const Run& run : table_.runs(first, last)) {
      move_tokens(rotation_, keys_of(pages, run), values_of(pages, run), positions(run),
                  moved->slice(0, run.first - first, run.size), offset);
    }
  }
  replace_positions(first, last, *moved);
  return {};
}

Expected<void> CachedSequence::evict(std::string_view where, Pages& pages, std::int64_t first,
                                     std::int64_t last, bool close_gap) {
  POSENC_CHECK(check_tokens(where, first, last));
  if (close_gap && last < tokens()) {
    if (positions_.axes() > 1) {
      return fail(where, "a gap closes between positions of one axis",
                  number(positions_.axes()) + " axes",
                  "keep the gap, and shift() by the offset that is meant");
    }
    const std::int64_t offset = positions_.at(first) - positions_.at(last);
    POSENC_CHECK(shift(where, pages, last, tokens(), offset));
  }
  table_.drop(pages, first, last);
  replace_positions(first, last, {});
  return {};
}

std::int64_t CachedSequence::first_seen(const Mask& mask, std::int64_t queries) const {
  // With several axes the mask counts tokens from the first on: none may be missing.
  if (positions_.axes() > 1 || (mask.window <= 0 && mask.chunk <= 0)) return 0;
  const auto at = [this](std::int64_t t) { return positions_.at(t); };
  const std::int64_t older = tokens() - queries;  // than the queries
  std::int64_t query = at(older);                 // the lowest of them
  for (std::int64_t t = older + 1; t < tokens() && !ascending_; ++t) query = std::min(query, at(t));
  std::int64_t lowest = mask.window > 0 ? query - mask.window + 1 : 0;
  if (mask.chunk > 0) lowest = std::max(lowest, mask.chunk_of(query) * mask.chunk);
  const auto seen = [&](std::int64_t t) { return at(t) >= lowest || at(t) < mask.prefix; };
  std::int64_t first = 0, last = older;
  if (!ascending_) {
    while (first < last && !seen(first)) ++first;
    return first;
  }
  if (seen(0)) return 0;
  while (first < last) {  // bisection: from one token on, all are seen
    const std::int64_t middle = first + (last - first) / 2;
    if (seen(middle)) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

Expected<std::pair<Tensor, Tensor>> CachedSequence::read(std::string_view where, const Pages& pages,
                                                         std::int64_t first, Gathered& keys,
                                                         Gathered& values, Threads threads) const {
  const PageShape& shape = pages.shape();
  const auto runs = table_.runs(first, tokens());
  if (runs.size() == 1) return std::pair{keys_of(pages, runs[0]), values_of(pages, runs[0])};
  const std::int64_t count = tokens() - first;
  POSENC_TRY(k, keys.dense(where, shape.dtype, shape.kv_heads, count, shape.head_dim));
  POSENC_TRY(v, values.dense(where, shape.dtype, shape.kv_heads, count, shape.value_dim));
  const std::int64_t bytes =
      (k.size() + v.size()) * static_cast<std::int64_t>(size_of(shape.dtype));
  share_out(shape.kv_heads, thread_count(threads, bytes),
            [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t head = begin; head < end; ++head) {
                for (const Run& run : runs) {
                  copy_head(keys_of(pages, run), part(k, 0, run.first - first, run.size), head);
                  copy_head(values_of(pages, run), part(v, 0, run.first - first, run.size), head);
                }
              }
            });
  return std::pair{k, v};
}

}  // namespace posenc::detail
