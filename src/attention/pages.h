// Memory of the key-value cache: pages of a fixed number of tokens, taken and given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "posenc/error.h"
#include "posenc/tensor.h"

namespace posenc::detail {

struct PageShape {
  std::int64_t kv_heads = 0, head_dim = 0, page_size = 0;
  DType dtype = DType::f32;
};

// Keys and values, each [kv_head][page][token][head_dim]: a head's tokens in neighbouring pages lie
// one behind the other, so that one view reaches across pages and attention reads each head in one
// go.
class Pages {
 public:
  // `max_pages` are reserved at once; 0: none yet, and as many as are asked for.
  // Errors: sizes below 1, more than the address space or the machine has.
  static Expected<Pages> make(std::string_view where, const PageShape& shape,
                              std::int64_t max_pages);

  // Makes sure that `count` pages are free. Errors: max_pages reached, no memory.
  Expected<void> reserve(std::string_view where, std::int64_t count);

  // One of the free pages, of which there must be one: that behind `after` where it is free, else
  // one with room to grow behind it, amid the longest free stretch.
  std::int64_t take(std::int64_t after);
  void give_back(std::int64_t page) { release(page, 1); }

  // [1, kv_heads, tokens, head_dim], from a token of a page on.
  Tensor keys(std::int64_t page, std::int64_t token, std::int64_t tokens) const {
    return view(keys_.get(), page, token, tokens);
  }
  Tensor values(std::int64_t page, std::int64_t token, std::int64_t tokens) const {
    return view(values_.get(), page, token, tokens);
  }

  // Tokens [from, to) of a page, whose room is enough, to where token `begin` is.
  void move(std::int64_t page, std::int64_t from, std::int64_t to, std::int64_t begin);

  const PageShape& shape() const { return shape_; }
  std::int64_t count() const { return count_; }
  std::int64_t free() const { return free_count_; }
  std::int64_t bytes() const { return 2 * count_ * page_bytes_; }

 private:
  Tensor view(std::byte* memory, std::int64_t page, std::int64_t token, std::int64_t tokens) const;
  Expected<void> grow(std::string_view where, std::int64_t count);
  void release(std::int64_t page, std::int64_t count);

  PageShape shape_;
  std::int64_t max_pages_ = 0, count_ = 0, free_count_ = 0, page_bytes_ = 0;
  std::unique_ptr<std::byte[]> keys_, values_;
  std::map<std::int64_t, std::int64_t>
      free_;  // stretches: first page, pages; no two are neighbours
};

// A part of a page that holds tokens of one sequence.
struct PagePart {
  std::int64_t page = 0, begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// Tokens that lie one behind the other.
struct Run {
  std::int64_t page = 0, token = 0;  // where the first lies
  std::int64_t first = 0, size = 0;  // which of the sequence's tokens they are
};

// Where the tokens of one sequence lie, in their order. Dropping tokens from the middle trims the
// pages at both ends of the hole and frees those between, so that hardly a token moves.
class BlockTable {
 public:
  std::int64_t tokens() const { return tokens_; }

  // How many pages appending `count` tokens takes.
  std::int64_t pages_needed(std::int64_t count, std::int64_t page_size) const;
  // Room for `count` tokens behind the last; that many pages must be free.
  void extend(Pages& pages, std::int64_t count);
  // Tokens [first, last) leave.
  void drop(Pages& pages, std::int64_t first, std::int64_t last);
  // Tokens [first, last), cut only where they do not lie one behind the other.
  std::vector<Run> runs(std::int64_t first, std::int64_t last, std::int64_t page_size) const;

 private:
  std::vector<PagePart> parts_;
  std::int64_t tokens_ = 0;
};

}  // namespace posenc::detail
