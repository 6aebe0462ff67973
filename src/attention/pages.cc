#include "src/attention/pages.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "src/saturating.h"

namespace posenc::detail {
namespace {

// More bytes than any machine has, or than it can count, and few enough that sums of them do not
// overflow.
constexpr std::int64_t most_bytes =
    std::min<std::int64_t>(std::int64_t{1} << 47, std::numeric_limits<std::ptrdiff_t>::max());

std::unexpected<Error> too_large(std::string_view where, const PageShape& shape,
                                 std::int64_t pages) {
  return fail(where, "pages must fit in memory",
              std::to_string(pages) + " of " + std::to_string(shape.page_size) + " x " +
                  std::to_string(shape.kv_heads) + " x " + std::to_string(shape.head_dim),
              "remove sequences, or ask for fewer or smaller pages");
}

// Not zeroed: the system then gives memory only as it is written.
std::unique_ptr<std::byte[]> memory(std::int64_t bytes) {
  return std::unique_ptr<std::byte[]>(new (std::nothrow)
                                          std::byte[static_cast<std::size_t>(bytes)]);
}

}  // namespace

Expected<Pages> Pages::make(std::string_view where, const PageShape& shape,
                            std::int64_t max_pages) {
  if (shape.kv_heads < 1 || shape.head_dim < 1 || shape.page_size < 1 || max_pages < 0) {
    return fail(where,
                "kv_heads, head_dim and page_size must be at least 1, and max_pages 0 or more",
                std::to_string(shape.kv_heads) + ", " + std::to_string(shape.head_dim) + ", " +
                    std::to_string(shape.page_size) + " and " + std::to_string(max_pages),
                "take the first two from the model's geometry");
  }
  Pages pages;
  pages.shape_ = shape;
  pages.max_pages_ = max_pages;
  pages.page_bytes_ = product(product(product(shape.kv_heads, shape.head_dim), shape.page_size),
                              static_cast<std::int64_t>(size_of(shape.dtype)));
  if (pages.page_bytes_ > most_bytes) {
    return too_large(where, shape, std::max<std::int64_t>(max_pages, 1));
  }
  if (max_pages > 0) {
    if (auto ok = pages.grow(where, max_pages); !ok) return std::unexpected(ok.error());
  }
  return pages;
}

Expected<void> Pages::reserve(std::string_view where, std::int64_t count) {
  const std::int64_t missing = count - free();
  if (missing <= 0) return {};
  if (max_pages_ > 0) {
    return fail(where, "there must be " + std::to_string(count) + " free pages",
                std::to_string(free()) + " of max_pages " + std::to_string(max_pages_),
                "remove or evict, or make a cache with more pages");
  }
  // By half as much again, so that a token's share of all the moving stays constant.
  return grow(where, std::max(count_ + missing, count_ + count_ / 2));
}

Expected<void> Pages::grow(std::string_view where, std::int64_t count) {
  if (count > most_bytes / page_bytes_) return too_large(where, shape_, count);
  auto keys = memory(count * page_bytes_), values = memory(count * page_bytes_);
  if (keys == nullptr || values == nullptr) return too_large(where, shape_, count);
  const std::int64_t old_head = count_ * page_bytes_ / shape_.kv_heads,
                     new_head = count * page_bytes_ / shape_.kv_heads;
  for (std::int64_t head = 0; count_ > 0 && head < shape_.kv_heads; ++head) {
    const auto bytes = static_cast<std::size_t>(old_head);
    std::memcpy(keys.get() + head * new_head, keys_.get() + head * old_head, bytes);
    std::memcpy(values.get() + head * new_head, values_.get() + head * old_head, bytes);
  }
  keys_ = std::move(keys);
  values_ = std::move(values);
  release(count_, count - count_);
  count_ = count;
  return {};
}

void Pages::release(std::int64_t page, std::int64_t count) {
  free_count_ += count;
  const auto after = free_.lower_bound(page);
  if (after != free_.end() && after->first == page + count) {
    count += after->second;
    free_.erase(after);
  }
  const auto behind = free_.lower_bound(page);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == page) {
      before->second += count;
      return;
    }
  }
  free_.emplace(page, count);
}

std::int64_t Pages::take(std::int64_t after) {
  auto stretch = free_.find(after + 1);
  std::int64_t page = after + 1;
  if (stretch == free_.end()) {
    stretch = std::ranges::max_element(free_, {}, [](const auto& each) { return each.second; });
    // Its first page is where the sequence before it wants to grow, the very first nobody's.
    page = stretch->first == 0 ? 0 : stretch->first + stretch->second / 2;
  }
  const auto [first, count] = *stretch;
  free_.erase(stretch);
  if (page > first) free_.emplace(first, page - first);
  if (page + 1 < first + count) free_.emplace(page + 1, first + count - page - 1);
  --free_count_;
  return page;
}

Tensor Pages::view(std::byte* memory, std::int64_t page, std::int64_t token,
                   std::int64_t tokens) const {
  const std::int64_t start = (page * shape_.page_size + token) * shape_.head_dim;
  Tensor tensor = Tensor::dense(memory + start * static_cast<std::int64_t>(size_of(shape_.dtype)),
                                shape_.dtype, {1, shape_.kv_heads, tokens, shape_.head_dim});
  tensor.stride[1] = count_ * shape_.page_size * shape_.head_dim;
  return tensor;
}

void Pages::move(std::int64_t page, std::int64_t from, std::int64_t to, std::int64_t begin) {
  const auto size = static_cast<std::int64_t>(size_of(shape_.dtype));
  const auto bytes = static_cast<std::size_t>((to - from) * shape_.head_dim * size);
  for (std::byte* const memory : {keys_.get(), values_.get()}) {
    const Tensor source = view(memory, page, from, 1), target = view(memory, page, begin, 1);
    for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
      const std::int64_t offset = source.offset(0, head) * size;
      std::memmove(static_cast<std::byte*>(target.data) + offset,
                   static_cast<const std::byte*>(source.data) + offset, bytes);
    }
  }
}

std::int64_t BlockTable::pages_needed(std::int64_t count, std::int64_t page_size) const {
  const std::int64_t room = parts_.empty() ? 0 : page_size - parts_.back().end;
  const std::int64_t rest = std::max<std::int64_t>(count - room, 0);
  return rest / page_size + (rest % page_size != 0 ? 1 : 0);
}

void BlockTable::extend(Pages& pages, std::int64_t count) {
  const std::int64_t page_size = pages.shape().page_size;
  tokens_ += count;
  while (count > 0) {
    if (parts_.empty() || parts_.back().end == page_size) {
      const std::int64_t page = pages.take(parts_.empty() ? -1 : parts_.back().page);
      parts_.push_back({.page = page});
    }
    const std::int64_t more = std::min(count, page_size - parts_.back().end);
    parts_.back().end += more;
    count -= more;
  }
}

void BlockTable::drop(Pages& pages, std::int64_t first, std::int64_t last) {
  std::vector<PagePart> kept;
  std::int64_t start = 0;  // the sequence's token at the part's begin
  for (PagePart part : parts_) {
    const std::int64_t from = std::clamp<std::int64_t>(first - start, 0, part.size());
    const std::int64_t to = std::clamp<std::int64_t>(last - start, 0, part.size());
    start += part.size();
    if (from == 0 && to == part.size()) {
      pages.give_back(part.page);
      continue;
    }
    if (from == 0) {
      part.begin += to;
    } else {
      // Those behind a hole within the page move up to its begin.
      if (from < to) pages.move(part.page, part.begin + to, part.end, part.begin + from);
      part.end -= to - from;
    }
    kept.push_back(part);
  }
  parts_ = std::move(kept);
  tokens_ -= last - first;
}

std::vector<Run> BlockTable::runs(std::int64_t first, std::int64_t last,
                                  std::int64_t page_size) const {
  std::vector<Run> runs;
  std::int64_t start = 0, next = -1;  // next: where, counted in tokens of the pool, the run ends
  for (const PagePart& part : parts_) {
    const std::int64_t from = std::clamp<std::int64_t>(first - start, 0, part.size());
    const std::int64_t to = std::clamp<std::int64_t>(last - start, 0, part.size());
    const std::int64_t place = part.page * page_size + part.begin + from;
    if (from < to) {
      if (place == next) {
        runs.back().size += to - from;
      } else {
        runs.push_back({.page = part.page,
                        .token = part.begin + from,
                        .first = start + from,
                        .size = to - from});
      }
      next = place + (to - from);
    }
    start += part.size();
  }
  return runs;
}

}  // namespace posenc::detail
