// Statements as text. What languages have in common stands here: names, sums and loops; a target
// says its types, its words, and where arrays lie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/emit/computation.h"

namespace posenc::emitting {

class Printer {
 public:
  virtual ~Printer() = default;

  std::string lines(const Statements& statements, int depth) const;
  std::string expression(const Node& value) const;

 protected:
  std::string indent = "  ";
  std::string comment = "// ";
  std::string divide = " / ";  // of integers

  virtual std::string literal(const Node& value) const = 0;
  virtual std::string select(const std::string& condition, const std::string& yes,
                             const std::string& no) const = 0;
  virtual std::string bit_not(const std::string& of) const { return "~" + of; }
  virtual std::string high(const std::string& a, const std::string& b) const {
    return "hi(" + a + ", " + b + ")";
  }
  virtual std::string least(const std::string& a, const std::string& b) const = 0;
  virtual std::string most(const std::string& a, const std::string& b) const = 0;
  virtual std::string as_i32(const std::string& of) const = 0;
  virtual std::string as_u32(const std::string& truth) const = 0;
  virtual std::string as_f32(const std::string& of, Type from) const = 0;
  virtual std::string load(const Node& from) const = 0;
  // Of floats, where a compiler must be told not to fuse them.
  virtual std::string of_floats(const Node& value) const { return infix(value); }

  virtual std::string let(const Statement& made) const = 0;
  virtual std::string variable(const Statement& made) const { return let(made); }
  virtual std::string assign(const Statement& made) const = 0;
  virtual std::string store(const Statement& made) const = 0;
  // The line that opens a loop, and the one that closes it ("": none).
  virtual std::string loop(const Statement& opened) const = 0;
  virtual std::string end() const { return "}"; }
  virtual bool has_loop(const Statement&) const { return true; }

  std::string infix(const Node& value) const;
  // In parentheses where it is a sum or the like.
  std::string operand(const Node& value) const;
  std::string at(const Node& load, std::size_t axis) const { return expression(*load.of[axis]); }
  // The place in an array that lies flat, of the extents of its axes but the first.
  std::string flat(const Node& load, std::span<const std::string> extents) const;
};

// In parentheses where it is more than a name or a call.
std::string grouped(const std::string& text);
bool is_zero(const Node& value);
std::string float_text(std::uint32_t bits);  // 0.5, 4.656613e-10: reads back the same
std::string hex_word(std::uint32_t bits);    // 0x28be60db
std::string number(std::int64_t value);

// Words of a list, wrapped at 100 columns.
std::string wrapped_list(const std::vector<std::string>& words, std::string_view margin,
                         std::string_view separator = ", ");
// A paragraph of comments, wrapped at 100 columns.
std::string wrapped_comment(std::string_view mark, const std::string& text);
// The numbers of a constant as a language writes them, of which suffixes differ.
std::vector<std::string> words_of(const Constant& constant, std::string_view u32_suffix,
                                  std::string_view f32_suffix);
std::string replaced(std::string text, std::string_view what, std::string_view with);

// What the head of every file says: what it computes, whose it is, what is not in it.
std::string about(const Computation& what, std::string_view mark,
                  const std::vector<std::string>& paragraphs);

// --- the targets, each in a file of its own ------------------------------------------------------

struct Target {
  EmitTarget about;
  Expected<std::string> (*text)(const Computation& what);
};
extern const Target c_target, cuda_target, opencl_target, wgsl_target, triton_target, pallas_target,
    score_mod_target;

}  // namespace posenc::emitting
