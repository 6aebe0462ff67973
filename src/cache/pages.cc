// The pool of pages and the tables of where each sequence's tokens lie. Free pages are a sorted
// list of stretches, so that a sequence finds the neighbour of its last page by bisection; a
// sequence is a list of runs, of which an undisturbed one has a single run whatever its length.
#include "src/cache/pages.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "src/core/saturating.h"

namespace posenc::detail {
namespace {

// What the list of free pages may need: a few bytes a page, beside pages that may be as small.
constexpr std::int64_t most_pages = std::int64_t{1} << 28;

// More bytes than any machine has, or than it can count, and few enough that sums of them do not
// overflow.
constexpr std::int64_t most_bytes =
    std::min<std::int64_t>(std::int64_t{1} << 47, std::numeric_limits<std::ptrdiff_t>::max());

std::unexpected<Error> too_large(std::string_view where, const PageShape& shape,
                                 std::int64_t pages) {
  return fail(where, "pages must fit in memory",
              std::to_string(pages) + " of " + std::to_string(shape.page_size) + " x " +
                  std::to_string(shape.kv_heads) + " x (" + std::to_string(shape.head_dim) + " + " +
                  std::to_string(shape.value_dim) + ")",
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
  if (shape.kv_heads < 1 || shape.head_dim < 1 || shape.value_dim < 1 || shape.page_size < 1 ||
      max_pages < 0) {
    return fail(where,
                "kv_heads, head_dim, value_dim and page_size must be at least 1, and max_pages 0 "
                "or more",
                std::to_string(shape.kv_heads) + ", " + std::to_string(shape.head_dim) + ", " +
                    std::to_string(shape.value_dim) + ", " + std::to_string(shape.page_size) +
                    " and " + std::to_string(max_pages),
                "take the first three from the model's geometry");
  }
  Pages pages;
  pages.shape_ = shape;
  pages.max_pages_ = max_pages;
  const auto bytes = [&](std::int64_t width) {
    return product(product(product(shape.kv_heads, width), shape.page_size),
                   static_cast<std::int64_t>(size_of(shape.dtype)));
  };
  pages.key_bytes_ = bytes(shape.head_dim);
  pages.value_bytes_ = bytes(shape.value_dim);
  if (std::max(pages.key_bytes_, pages.value_bytes_) > most_bytes) {
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
  if (count > most_pages || count > most_bytes / std::max(key_bytes_, value_bytes_)) {
    return too_large(where, shape_, count);
  }
  auto keys = memory(count * key_bytes_), values = memory(count * value_bytes_);
  if (keys == nullptr || values == nullptr) return too_large(where, shape_, count);
  free_.reserve(static_cast<std::size_t>(count / 2 + 1));  // every second page
  const auto move = [&](std::unique_ptr<std::byte[]>& from, std::unique_ptr<std::byte[]> to,
                        std::int64_t page_bytes) {
    const std::int64_t old_head = count_ * page_bytes / shape_.kv_heads,
                       new_head = count * page_bytes / shape_.kv_heads;
    for (std::int64_t head = 0; count_ > 0 && head < shape_.kv_heads; ++head) {
      std::memcpy(to.get() + head * new_head, from.get() + head * old_head,
                  static_cast<std::size_t>(old_head));
    }
    from = std::move(to);
  };
  move(keys_, std::move(keys), key_bytes_);
  move(values_, std::move(values), value_bytes_);
  release(count_, count - count_);
  count_ = count;
  return {};
}

Pages::Stretches::iterator Pages::behind(std::int64_t page) {
  return std::ranges::lower_bound(free_, page, {}, &Stretch::first);
}

void Pages::release(std::int64_t page, std::int64_t count) {
  free_count_ += count;
  const auto next = behind(page);
  const bool joins_next = next != free_.end() && next->first == page + count;
  const bool joins_last = next != free_.begin() && std::prev(next)->end() == page;
  if (joins_last) {
    std::prev(next)->count += count + (joins_next ? next->count : 0);
    if (joins_next) free_.erase(next);
  } else if (joins_next) {
    *next = {.first = page, .count = count + next->count};
  } else {
    free_.insert(next, {.first = page, .count = count});
  }
}

std::int64_t Pages::take(std::int64_t after) {
  --free_count_;
  auto stretch = behind(after + 1);
  std::int64_t page = after + 1;
  if (stretch == free_.end() || stretch->first != page) {
    stretch = std::ranges::max_element(free_, {}, &Stretch::count);
    // Its first page is where the sequence before it wants to grow, but page 0 has none before it.
    page = stretch->first == 0 ? 0 : stretch->first + stretch->count / 2;
  }
  const Stretch rest{.first = page + 1, .count = stretch->end() - page - 1};
  stretch->count = page - stretch->first;
  if (stretch->count == 0 && rest.count == 0) {
    free_.erase(stretch);
  } else if (stretch->count == 0) {
    *stretch = rest;
  } else if (rest.count > 0) {
    free_.insert(std::next(stretch), rest);
  }
  return page;
}

Tensor Pages::view(std::byte* memory, std::int64_t width, std::int64_t place,
                   std::int64_t tokens) const {
  const std::int64_t start = place * width * static_cast<std::int64_t>(size_of(shape_.dtype));
  Tensor tensor = Tensor::dense(memory + start, shape_.dtype, {1, shape_.kv_heads, tokens, width});
  tensor.stride[1] = count_ * shape_.page_size * width;
  return tensor;
}

void Pages::move(std::int64_t from, std::int64_t to, std::int64_t begin) {
  const auto size = static_cast<std::int64_t>(size_of(shape_.dtype));
  const auto move_in = [&](std::byte* memory, std::int64_t width) {
    const Tensor source = view(memory, width, from, 1), target = view(memory, width, begin, 1);
    for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
      const std::int64_t offset = source.offset(0, head) * size;
      std::memmove(static_cast<std::byte*>(target.data) + offset,
                   static_cast<const std::byte*>(source.data) + offset,
                   static_cast<std::size_t>((to - from) * width * size));
    }
  };
  move_in(keys_.get(), shape_.head_dim);
  move_in(values_.get(), shape_.value_dim);
}

std::int64_t BlockTable::pages_needed(std::int64_t count, std::int64_t page_size) const {
  const std::int64_t used = runs_.empty() ? 0 : runs_.back().end() % page_size;
  const std::int64_t room = used == 0 ? 0 : page_size - used;
  const std::int64_t rest = std::max<std::int64_t>(count - room, 0);
  return rest / page_size + (rest % page_size != 0 ? 1 : 0);
}

void BlockTable::extend(Pages& pages, std::int64_t count) {
  const std::int64_t page_size = pages.shape().page_size;
  while (count > 0) {
    std::int64_t place = runs_.empty() ? 0 : runs_.back().end();
    if (place % page_size == 0) {
      const std::int64_t last_page = runs_.empty() ? -1 : place / page_size - 1;
      place = pages.take(last_page) * page_size;
    }
    const std::int64_t more = std::min(count, page_size - place % page_size);
    keep(runs_, place, place + more);
    tokens_ += more;
    count -= more;
  }
}

void BlockTable::keep(std::vector<Run>& runs, std::int64_t place, std::int64_t end) {
  if (place == end) return;
  if (!runs.empty() && runs.back().end() == place) {
    runs.back().size += end - place;
    return;
  }
  const std::int64_t first = runs.empty() ? 0 : runs.back().first + runs.back().size;
  runs.push_back({.place = place, .first = first, .size = end - place});
}

void BlockTable::drop(Pages& pages, std::int64_t first, std::int64_t last) {
  const std::int64_t page_size = pages.shape().page_size;
  std::vector<Run> rest;
  for (const Run& run : runs_) {
    const std::int64_t hole = run.place + std::clamp<std::int64_t>(first - run.first, 0, run.size);
    const std::int64_t hole_end =
        run.place + std::clamp<std::int64_t>(last - run.first, 0, run.size);
    if (hole == hole_end) {
      keep(rest, run.place, run.end());
      continue;
    }
    const std::int64_t pages_begin = hole / page_size * page_size;
    keep(rest, run.place, std::max(run.place, pages_begin));
    std::int64_t page = pages_begin;
    for (; page < hole_end; page += page_size) {
      const std::int64_t begin = std::max(page, run.place);
      const std::int64_t end = std::min(page + page_size, run.end());
      const std::int64_t from = std::max(begin, hole), to = std::min(end, hole_end);
      if (from == begin && to == end) {
        pages.release_page(page / page_size);
      } else if (from == begin) {
        keep(rest, to, end);
      } else {
        // Tokens behind a hole within the page move up to where the hole begins.
        if (to < end) pages.move(to, end, from);
        keep(rest, begin, end - (to - from));
      }
    }
    keep(rest, std::min(page, run.end()), run.end());
  }
  runs_ = std::move(rest);
  tokens_ -= last - first;
}

}  // namespace posenc::detail
