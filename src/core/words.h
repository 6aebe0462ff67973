// Lists of words in one text, as tables of names and aliases have them: "rope rotary".
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

namespace posenc::detail {

// The words of a text, one after another; spaces part them. It allocates nothing, and refers to
// the text.
class Words {
 public:
  class Iterator {
   public:
    using iterator_concept = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using reference = std::string_view;
    using iterator_category = std::input_iterator_tag;
    using pointer = void;

    Iterator() = default;
    explicit Iterator(std::string_view text) : rest_(text) { ++*this; }
    std::string_view operator*() const { return word_; }
    Iterator& operator++() {
      rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
      const std::size_t length = std::min(rest_.find(' '), rest_.size());
      word_ = length > 0 ? rest_.substr(0, length) : std::string_view();
      rest_.remove_prefix(length);
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    // Of one text's words; the end has no word.
    bool operator==(const Iterator& other) const { return word_.data() == other.word_.data(); }

   private:
    std::string_view word_, rest_;
  };

  explicit Words(std::string_view text) : text_(text) {}
  Iterator begin() const { return Iterator(text_); }
  Iterator end() const { return {}; }
  std::string_view front() const { return *begin(); }
  std::vector<std::string_view> list() const { return {begin(), end()}; }

 private:
  std::string_view text_;
};

inline Words split(std::string_view spaced) { return Words(spaced); }

// "a b c" has "b".
inline bool contains_word(std::string_view words, std::string_view word) {
  const Words all = split(words);
  return std::ranges::find(all, word) != all.end();
}

}  // namespace posenc::detail
