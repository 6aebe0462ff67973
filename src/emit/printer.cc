#include "src/emit/printer.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "src/text/number.h"

namespace posenc::emitting {
namespace {

constexpr std::size_t columns = 100;

bool is_infix(Op op) {
  return (op >= Op::add && op <= Op::remainder) || (op >= Op::shift_left && op <= Op::bit_or) ||
         op == Op::less || op == Op::not_equal;
}

std::string_view sign(Op op) {
  switch (op) {
    case Op::add: return " + ";
    case Op::subtract: return " - ";
    case Op::multiply: return " * ";
    case Op::remainder: return " % ";
    case Op::shift_left: return " << ";
    case Op::shift_right: return " >> ";
    case Op::bit_and: return " & ";
    case Op::bit_or: return " | ";
    case Op::less: return " < ";
    default: return " != ";
  }
}

// Whether every language reads a·b + c as (a·b) + c.
bool binds_tighter(const Node& inner, Op outer, bool on_the_left) {
  const bool product = inner.op == Op::multiply;
  const bool sum = inner.op == Op::add || inner.op == Op::subtract;
  if (outer == Op::add || outer == Op::subtract) return product || (sum && on_the_left);
  if (outer == Op::less) return product || sum;
  return outer == Op::multiply && product && on_the_left;
}

}  // namespace

std::string grouped(const std::string& text) {
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth == 0 && (c == ' ' || c == '-')) return "(" + text + ")";
  }
  return text;
}

bool is_zero(const Node& value) { return value.op == Op::literal && value.bits == 0; }

std::string number(std::int64_t value) { return std::to_string(value); }

std::string hex_word(std::uint32_t bits) {
  std::string text = "0x";
  for (int digit = 7; digit >= 0; --digit) text += "0123456789abcdef"[bits >> (4 * digit) & 15];
  return text;
}

std::string float_text(std::uint32_t bits) {
  return detail::real_text(detail::shortest_decimal(std::bit_cast<float>(bits)));
}

std::string Printer::operand(const Node& value) const {
  const std::string text = expression(value);
  return is_infix(value.op) || value.op == Op::negate ? "(" + text + ")" : text;
}

std::string Printer::infix(const Node& value) const {
  const Node &a = *value.of[0], &b = *value.of[1];
  const std::string left = binds_tighter(a, value.op, true) ? expression(a) : operand(a);
  const std::string right = binds_tighter(b, value.op, false) ? expression(b) : operand(b);
  return left + (value.op == Op::divide ? divide : std::string(sign(value.op))) + right;
}

std::string Printer::expression(const Node& value) const {
  const auto of = [&](std::size_t i) { return expression(*value.of[i]); };
  switch (value.op) {
    case Op::literal: return literal(value);
    case Op::name: return value.name;
    case Op::load: return load(value);
    case Op::high: return high(of(0), of(1));
    case Op::bit_not: return bit_not(operand(*value.of[0]));
    case Op::select: return select(of(0), of(1), of(2));
    case Op::least: return least(of(0), of(1));
    case Op::most: return most(of(0), of(1));
    case Op::negate: return "-" + operand(*value.of[0]);
    case Op::as_i32: return as_i32(of(0));
    case Op::as_u32: return as_u32(of(0));
    case Op::as_f32: return as_f32(of(0), value.of[0]->type);
    default: return value.type == Type::f32 ? of_floats(value) : infix(value);
  }
}

std::string Printer::flat(const Node& load, std::span<const std::string> extents) const {
  std::string place;
  for (std::size_t axis = 0; axis < load.of.size(); ++axis) {
    if (!place.empty()) {
      const bool sum = place.contains(' ');
      place = (sum ? "(" + place + ")" : place) + " * " + extents[axis - 1];
    }
    if (is_zero(*load.of[axis])) continue;
    const Node& next = *load.of[axis];
    place += (place.empty() ? "" : " + ") + (place.empty() ? expression(next) : operand(next));
  }
  return place.empty() ? "0" : place;
}

std::string Printer::lines(const Statements& statements, int depth) const {
  using Kind = Statement::Kind;
  std::string text;
  std::vector<bool> open;
  const auto line = [&](const std::string& words) {
    if (words.empty()) return;
    for (int i = 0; i < depth; ++i) text += indent;
    text += words + "\n";
  };
  for (const Statement& next : statements) switch (next.kind) {
      case Kind::say: line(comment + next.text); break;
      case Kind::let: line(let(next)); break;
      case Kind::variable: line(variable(next)); break;
      case Kind::assign: line(assign(next)); break;
      case Kind::store: line(store(next)); break;
      case Kind::loop:
        open.push_back(has_loop(next));
        if (!open.back()) break;
        line(loop(next));
        ++depth;
        break;
      case Kind::end:
        if (open.back()) {
          --depth;
          line(end());
        }
        open.pop_back();
        break;
    }
  return text;
}

std::string wrapped_list(const std::vector<std::string>& words, std::string_view margin,
                         std::string_view separator) {
  std::string text, line(margin);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string next = words[i] + (i + 1 < words.size() ? std::string(separator) : "");
    if (line.size() > margin.size() && line.size() + next.size() > columns) {
      while (line.ends_with(' ')) line.pop_back();
      text += line + "\n";
      line = margin;
    }
    line += next;
  }
  return text + line + "\n";
}

std::string wrapped_comment(std::string_view mark, const std::string& text) {
  std::string out, line;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && mark.size() + line.size() + 1 + word.size() > columns) {
      out += std::string(mark) + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return line.empty() ? out : out + std::string(mark) + line + "\n";
}

std::vector<std::string> words_of(const Constant& constant, std::string_view u32_suffix,
                                  std::string_view f32_suffix) {
  std::vector<std::string> words;
  for (const std::uint32_t bits : constant.bits) switch (constant.type) {
      case Type::f32: words.push_back(float_text(bits) + std::string(f32_suffix)); break;
      case Type::i32: words.push_back(number(static_cast<std::int32_t>(bits))); break;
      default: words.push_back(hex_word(bits) + std::string(u32_suffix));
    }
  return words;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string about(const Computation& what, std::string_view mark,
                  const std::vector<std::string>& paragraphs) {
  std::string text;
  const auto say = [&](const std::string& words) {
    if (!text.empty()) text += replaced(std::string(mark) + "\n", " \n", "\n");
    text += wrapped_comment(mark, words);
  };
  const std::string title = what.about.title.empty() ? "A positional encoding" : what.about.title;
  const std::string& source = what.about.source;
  const std::string named = source.empty()                    ? title
                            : source.starts_with(title + ":") ? source
                                                              : title + " (" + source + ")";
  say(named + ", written by posenc emit --to " + what.target + " and free to use and change.");
  for (const std::string& each : paragraphs) say(each);
  if (what.rotation)
    say("Frequencies are turns in fixed point: whole turns do not matter, so a product of integers "
        "modulo 1 is the exact phase at any position of 64 bits. Up to the cosine all is in "
        "integers: every language gives the same bits, off by at most 3.1e-8.");
  if (what.has.has(Feature::rotated_values))
    say("Values rotate too, as keys do; where the output is rotated back, the same with negative "
        "positions does it.");
  if (what.bias && what.bias->before_scale)
    say("The bias is added to q·k, before the logits' scale multiplies them.");
  if (!what.left_out.empty()) {
    std::string list;
    for (const std::string& each : what.left_out) list += (list.empty() ? "" : "; ") + each;
    say("What the plan has besides acts elsewhere and is not here: " + list + ".");
  }
  return text;
}

}  // namespace posenc::emitting
