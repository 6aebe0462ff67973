// Errors as values. Bytes from outside never throw and never abort: they come back as Expected.
#pragma once

#include <cstddef>
#include <version>
#ifdef __cpp_lib_expected
#include <expected>
#else
#error \
    "posenc needs C++23 and its std::expected: compile with -std=c++23 and g++ 12, clang 19 or newer, or include posenc/c.h, which needs neither"
namespace std {
template <class, class>
class expected;  // so that no other errors bury this one
}
#endif
#include <span>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] posenc {

// What went wrong, in the four parts a reader needs to mend it.
struct Error {
  std::string where = {};  // function, file or flag: "rotate", "config.json: rope_scaling.factor"
  std::string rule = {};   // the rule broken: "head_dim must be even"
  std::string got = {};    // the value found, empty when there is none
  std::string cure = {};   // what to do about it

  // "rotate: head_dim must be even, got 63; set rotary_dim or pad the head"
  std::string message() const {
    std::string text = where + ": " + rule;
    if (!got.empty()) text += ", got " + got;
    if (!cure.empty()) text += "; " + cure;
    return text;
  }

  bool operator==(const Error&) const = default;
};

template <class T>
using Expected = std::expected<T, Error>;

// Text from outside as a message may show it: what a terminal obeys (controls, bidirectional ones
// too) is '?',
// bytes that are no UTF-8 are U+FFFD, and what is longer than `longest` bytes ends in "...".
std::string printable(std::string_view text, std::size_t longest = 200);

// Each part is made printable, whatever it quotes.
std::unexpected<Error> fail(std::string_view where, std::string_view rule,
                            std::string_view got = {}, std::string_view cure = {});

// The shortest text that reads back as the same number, for messages: "500000", "0.707", "1e-05".
std::string number_text(double number);

// The known word with the fewest letters changed; "" if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// "did you mean 'yarn'?" for a misspelt word, or the list of what there is when nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

}  // namespace posenc
