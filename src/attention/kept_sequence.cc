#include "src/attention/kept_sequence.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "src/kernels/parity.h"
#include "src/kernels/threads.h"

namespace posenc::detail {
namespace {

constexpr std::int64_t farthest = std::int64_t{1} << 62;

std::string number(std::int64_t value) { return std::to_string(value); }

Tensor keys_of(const Pages& pages, const Run& run) {
  return pages.keys(run.page, run.token, run.size);
}
Tensor values_of(const Pages& pages, const Run& run) {
  return pages.values(run.page, run.token, run.size);
}

// One head's tokens, which lie one behind the other on both sides.
void copy_head(const Tensor& from, const Tensor& to, std::int64_t head) {
  const auto size = static_cast<std::int64_t>(size_of(from.dtype));
  std::memcpy(static_cast<std::byte*>(to.data) + to.offset(0, head) * size,
              static_cast<const std::byte*>(from.data) + from.offset(0, head) * size,
              static_cast<std::size_t>(from.shape[2] * from.shape[3] * size));
}

}  // namespace

Expected<void> check_kept_positions(std::string_view where, const Positions& positions) {
  // The ends of a range tell of all between.
  const std::int64_t size = positions.size();
  const std::int64_t step = positions.contiguous() && size > 1 ? size - 1 : 1;
  for (std::int64_t axis = 0; axis < positions.axes(); ++axis) {
    for (std::int64_t b = 0; b < positions.batch(); ++b) {
      for (std::int64_t t = 0; t < size; t += step) {
        const std::int64_t at = positions.at(t, b, axis);
        if (at >= 0 && at < farthest) continue;
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

Positions part(const Positions& positions, std::int64_t sequence, std::int64_t first,
               std::int64_t count) {
  if (positions.contiguous()) return Positions::range(positions.at(first), count);
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < positions.axes(); ++axis) {
    for (std::int64_t t = first; t < first + count; ++t)
      ids.push_back(positions.at(t, sequence, axis));
  }
  return *Positions::ids(ids, positions.axes());  // none is negative
}

Tensor part(const Tensor& x, std::int64_t sequence, std::int64_t first, std::int64_t count) {
  Tensor view = x;
  view.data = static_cast<std::byte*>(x.data) +
              x.offset(sequence, 0, first) * static_cast<std::int64_t>(size_of(x.dtype));
  view.shape[0] = 1;
  view.shape[2] = count;
  return view;
}

Expected<Tensor> Scratch::dense(std::string_view where, DType dtype, std::int64_t heads,
                                std::int64_t tokens, std::int64_t head_dim) {
  const std::int64_t wanted = heads * tokens * head_dim * static_cast<std::int64_t>(size_of(dtype));
  if (wanted > bytes_) {
    memory_.reset();
    memory_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(wanted)]);
    bytes_ = memory_ == nullptr ? 0 : wanted;
    if (memory_ == nullptr) {
      return fail(where, "what is gathered from pages must fit in memory",
                  number(wanted) + " bytes",
                  "use shorter sequences, or reserve neighbouring pages with max_pages");
    }
  }
  return Tensor::dense(memory_.get(), dtype, {1, heads, tokens, head_dim});
}

Positions KeptSequence::positions(std::int64_t first, std::int64_t last) const {
  std::vector<std::int64_t> ids;
  ids.reserve(at_.size() * static_cast<std::size_t>(last - first));
  for (const auto& axis : at_) ids.insert(ids.end(), axis.begin() + first, axis.begin() + last);
  return *Positions::ids(ids, axes());  // none is negative
}

void KeptSequence::measure() {
  length_ = 0;
  for (const auto& axis : at_) {
    if (!axis.empty()) length_ = std::max(length_, std::ranges::max(axis) + 1);
  }
}

Expected<void> KeptSequence::rerotate(Pages& pages, const Rotation& rotation, Threads threads) {
  if (rotation_ == rotation) return {};
  for (const Run& run : table_.runs(0, tokens(), pages.shape().page_size)) {
    if (auto ok = change_rotation(rotation_, rotation, keys_of(pages, run), values_of(pages, run),
                                  positions(run), threads);
        !ok)
      return ok;
  }
  rotation_ = rotation;
  return {};
}

Expected<void> KeptSequence::append(Pages& pages, const Tensor& k, const Tensor& v,
                                    const Rotation& rotation, const Positions& positions,
                                    Threads threads) {
  if (auto ok = rerotate(pages, rotation, threads); !ok) return ok;
  const std::int64_t before = tokens();
  table_.extend(pages, positions.size());
  // Text among pictures has one position for all axes.
  at_.resize(std::max(at_.size(), static_cast<std::size_t>(positions.axes())), at_.front());
  for (std::size_t axis = 0; axis < at_.size(); ++axis) {
    for (std::int64_t t = 0; t < positions.size(); ++t)
      at_[axis].push_back(positions.at(t, 0, static_cast<std::int64_t>(axis)));
  }
  length_ = std::max(length_, positions.length());

  Plan turn;
  turn.rotate = rotation;
  for (const Run& run : table_.runs(before, tokens(), pages.shape().page_size)) {
    const std::int64_t first = run.first - before;
    const Positions at = part(positions, 0, first, run.size);
    if (auto ok =
            rotate(turn, part(k, 0, first, run.size), at, Side::key, keys_of(pages, run), threads);
        !ok)
      return ok;
    if (auto ok = rotate(turn, part(v, 0, first, run.size), at, Side::value, values_of(pages, run),
                         threads);
        !ok)
      return ok;
  }
  return {};
}

Expected<void> KeptSequence::check_tokens(std::string_view where, std::int64_t first,
                                          std::int64_t last) const {
  if (0 <= first && first <= last && last <= tokens()) return {};
  return fail(where, "tokens must lie within the " + number(tokens()) + " that are kept",
              number(first) + " to " + number(last), "count the tokens that have survived");
}

Expected<void> KeptSequence::shift(std::string_view where, Pages& pages, std::int64_t first,
                                   std::int64_t last, std::int64_t offset) {
  if (auto ok = check_tokens(where, first, last); !ok) return ok;
  if (first == last || offset == 0) return {};
  for (const auto& axis : at_) {
    const auto [low, high] = std::minmax_element(axis.begin() + first, axis.begin() + last);
    std::int64_t lowest = 0, highest = 0;
    if (!__builtin_add_overflow(*low, offset, &lowest) &&
        !__builtin_add_overflow(*high, offset, &highest) && lowest >= 0 && highest < farthest) {
      continue;
    }
    return fail(where, "positions must stay within 0 and 2^62",
                number(*low) + " to " + number(*high) + " with an offset of " + number(offset),
                "shift by less");
  }
  if (rotation_) {
    const auto moved = positions(first, last).shifted(offset);
    if (!moved) return std::unexpected(moved.error());
    if (auto ok = check_engine(where, *rotation_, *moved); !ok) return ok;
    for (const Run& run : table_.runs(first, last, pages.shape().page_size)) {
      if (auto ok = move_tokens(rotation_, keys_of(pages, run), values_of(pages, run),
                                positions(run), offset);
          !ok)
        return ok;
    }
  }
  for (auto& axis : at_) {
    for (std::int64_t t = first; t < last; ++t) axis[static_cast<std::size_t>(t)] += offset;
  }
  measure();
  return {};
}

Expected<void> KeptSequence::evict(std::string_view where, Pages& pages, std::int64_t first,
                                   std::int64_t last, bool close_gap) {
  if (auto ok = check_tokens(where, first, last); !ok) return ok;
  if (close_gap && last < tokens()) {
    if (axes() > 1) {
      return fail(where, "a gap closes between positions of one axis", number(axes()) + " axes",
                  "keep the gap, and shift() by the offset that is meant");
    }
    const auto at = [&](std::int64_t t) { return at_.front()[static_cast<std::size_t>(t)]; };
    if (auto ok = shift(where, pages, last, tokens(), at(first) - at(last)); !ok) return ok;
  }
  table_.drop(pages, first, last);
  for (auto& axis : at_) axis.erase(axis.begin() + first, axis.begin() + last);
  measure();
  return {};
}

std::int64_t KeptSequence::first_seen(const Mask& mask, std::int64_t queries) const {
  // With several axes the mask counts tokens from the first on: none may be missing.
  if (axes() > 1 || (mask.window <= 0 && mask.chunk <= 0)) return 0;
  const auto& at = at_.front();
  const std::int64_t query = *std::min_element(at.end() - queries, at.end());
  std::int64_t lowest = mask.window > 0 ? query - mask.window + 1 : 0;
  if (mask.chunk > 0) lowest = std::max(lowest, query / mask.chunk * mask.chunk);
  const auto seen = std::find_if(at.begin(), at.end() - queries, [&](std::int64_t key) {
    return key >= lowest || key < mask.prefix;
  });
  return seen - at.begin();
}

Expected<std::pair<Tensor, Tensor>> KeptSequence::read(std::string_view where, const Pages& pages,
                                                       std::int64_t first, Scratch& keys,
                                                       Scratch& values, Threads threads) const {
  const PageShape& shape = pages.shape();
  const auto runs = table_.runs(first, tokens(), shape.page_size);
  if (runs.size() == 1) return std::pair{keys_of(pages, runs[0]), values_of(pages, runs[0])};
  const std::int64_t count = tokens() - first;
  const auto k = keys.dense(where, shape.dtype, shape.kv_heads, count, shape.head_dim);
  if (!k) return std::unexpected(k.error());
  const auto v = values.dense(where, shape.dtype, shape.kv_heads, count, shape.head_dim);
  if (!v) return std::unexpected(v.error());
  const std::int64_t bytes = 2 * k->size() * static_cast<std::int64_t>(size_of(shape.dtype));
  share_out(shape.kv_heads, thread_count(threads, bytes),
            [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t head = begin; head < end; ++head) {
                for (const Run& run : runs) {
                  copy_head(keys_of(pages, run), part(*k, 0, run.first - first, run.size), head);
                  copy_head(values_of(pages, run), part(*v, 0, run.first - first, run.size), head);
                }
              }
            });
  return std::pair{*k, *v};
}

}  // namespace posenc::detail
