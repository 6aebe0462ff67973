// Memory of the key-value cache: pages of a fixed number of tokens, taken and released. Nothing
// here walks over tokens or pages while a sequence grows, and memory is asked for only where the
// pool itself grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string_view>
#include <vector>

#include "posenc/error.h"
#include "posenc/tensor.h"

namespace posenc::detail {

struct PageShape {
  std::int64_t kv_heads = 0, head_dim = 0, value_dim = 0, page_size = 0;
  DType dtype = DType::f32;
};

// Keys [kv_head][page][token][head_dim] and values [kv_head][page][token][value_dim]: a head's
// tokens in neighbouring pages lie one behind the other, so that one view reaches across pages and
// attention reads each head in one go. A place is a token's index in the pool: page · page_size +
// token of the page.
class Pages {
 public:
  // `max_pages` are reserved at once; 0: none yet, and as many as are asked for.
  // Errors: sizes below 1, more than 2^28 pages, more than the address space or the machine has.
  static Expected<Pages> make(std::string_view where, const PageShape& shape,
                              std::int64_t max_pages);

  // Makes sure that `count` pages are free. Errors: max_pages reached, no memory.
  Expected<void> reserve(std::string_view where, std::int64_t count);

  // Takes one of the free pages, of which there must be one: the page behind `after` if it is free,
  // otherwise a page in the middle of the longest free stretch, with room to grow behind it.
  std::int64_t take(std::int64_t after);
  void release_page(std::int64_t page) { release(page, 1); }

  // [1, kv_heads, tokens, head_dim or value_dim], from a place on.
  Tensor keys(std::int64_t place, std::int64_t tokens) const {
    return view(keys_.get(), shape_.head_dim, place, tokens);
  }
  Tensor values(std::int64_t place, std::int64_t tokens) const {
    return view(values_.get(), shape_.value_dim, place, tokens);
  }

  // Moves the tokens at places [from, to) to `begin` and behind; both lie in one page.
  void move(std::int64_t from, std::int64_t to, std::int64_t begin);

  const PageShape& shape() const { return shape_; }
  std::int64_t count() const { return count_; }
  std::int64_t free() const { return free_count_; }
  std::int64_t bytes() const { return count_ * (key_bytes_ + value_bytes_); }

 private:
  struct Stretch {
    std::int64_t first = 0, count = 0;
    std::int64_t end() const { return first + count; }
  };
  using Stretches = std::vector<Stretch>;

  Tensor view(std::byte* memory, std::int64_t width, std::int64_t place, std::int64_t tokens) const;
  Expected<void> grow(std::string_view where, std::int64_t count);
  void release(std::int64_t page, std::int64_t count);
  Stretches::iterator behind(std::int64_t page);  // the first free stretch from `page` on

  PageShape shape_;
  std::int64_t max_pages_ = 0, count_ = 0, free_count_ = 0;
  std::int64_t key_bytes_ = 0, value_bytes_ = 0;  // of a page
  std::unique_ptr<std::byte[]> keys_, values_;
  Stretches free_;  // in order, never two that touch; reserved for as many as there can be
};

// Tokens of one sequence that lie one behind the other.
struct Run {
  std::int64_t place = 0;            // where the first one lies
  std::int64_t first = 0, size = 0;  // which of the sequence's tokens they are
  std::int64_t end() const { return place + size; }
};

// Where the tokens of one sequence lie, in their order, as runs across neighbouring pages. A page
// holds tokens of one run only. Dropping tokens from the middle trims the pages at both ends of the
// hole and releases those between, so that hardly a token moves.
class BlockTable {
 public:
  std::int64_t tokens() const { return tokens_; }

  // How many pages appending `count` tokens takes.
  std::int64_t pages_needed(std::int64_t count, std::int64_t page_size) const;
  // Makes room for `count` tokens behind the last; the pages needed must be free.
  void extend(Pages& pages, std::int64_t count);
  // Tokens [first, last) leave.
  void drop(Pages& pages, std::int64_t first, std::int64_t last);

  // The runs of tokens [first, last), found by bisection and cut at both ends.
  auto runs(std::int64_t first, std::int64_t last) const {
    const auto begin = std::ranges::upper_bound(
        runs_, first, {}, [](const Run& run) { return run.first + run.size; });
    const auto end = first < last ? std::ranges::lower_bound(runs_, last, {}, &Run::first) : begin;
    return std::ranges::subrange(begin, end) | std::views::transform([=](const Run& run) {
             const std::int64_t from = std::max(first, run.first);
             return Run{.place = run.place + from - run.first,
                        .first = from,
                        .size = std::min(last, run.first + run.size) - from};
           });
  }

 private:
  // Tokens of [place, end) that stay follow those that stay already.
  static void keep(std::vector<Run>& runs, std::int64_t place, std::int64_t end);

  std::vector<Run> runs_;
  std::int64_t tokens_ = 0;
};

}  // namespace posenc::detail
