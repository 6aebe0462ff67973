#include "src/emit/evaluate.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace posenc::emitting {
namespace {

float real(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t word_of(float number) { return std::bit_cast<std::uint32_t>(number); }
std::int32_t whole(std::uint32_t bits) { return static_cast<std::int32_t>(bits); }

std::uint32_t value_of(const Node& node, const Memory& memory);

std::size_t place_of(const Node& load, const Memory& memory) {
  const Constant& array = memory.arrays.at(load.name);
  std::size_t place = 0;
  for (std::size_t axis = 0; axis < load.of.size(); ++axis)
    place = place * static_cast<std::size_t>(array.shape[axis]) + value_of(*load.of[axis], memory);
  return place;
}

// Products and sums are rounded each: between two of them a float is a word of memory.
std::uint32_t of_floats(Op op, float a, float b) {
  switch (op) {
    case Op::add: return word_of(a + b);
    case Op::subtract: return word_of(a - b);
    default: return word_of(a * b);
  }
}

std::uint32_t of_two(Op op, std::uint32_t a, std::uint32_t b, bool is_signed) {
  const bool less = is_signed ? whole(a) < whole(b) : a < b;
  switch (op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::divide: return a / b;
    case Op::remainder: return a % b;
    case Op::high: return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
    case Op::shift_left: return a << b;
    case Op::shift_right: return a >> b;
    case Op::bit_and: return a & b;
    case Op::bit_or: return a | b;
    case Op::less: return less ? 1 : 0;
    case Op::not_equal: return a != b ? 1 : 0;
    case Op::least: return less ? a : b;
    default: return less ? b : a;  // most
  }
}

std::uint32_t value_of(const Node& node, const Memory& memory) {
  const auto of = [&](std::size_t i) { return value_of(*node.of[i], memory); };
  switch (node.op) {
    case Op::literal: return node.bits;
    case Op::name: return memory.names.at(node.name);
    case Op::load: return memory.arrays.at(node.name).bits[place_of(node, memory)];
    case Op::select: return of(0) != 0 ? of(1) : of(2);
    case Op::bit_not: return ~of(0);
    case Op::negate: return word_of(-real(of(0)));
    case Op::as_i32:
    case Op::as_u32: return of(0);
    case Op::as_f32:
      return word_of(node.of[0]->type == Type::i32 ? static_cast<float>(whole(of(0)))
                                                   : static_cast<float>(of(0)));
    default: break;
  }
  if (node.type == Type::f32) return of_floats(node.op, real(of(0)), real(of(1)));
  return of_two(node.op, of(0), of(1), node.of[0]->type == Type::i32);
}

// Runs from `at` to the end of its loop, or of all. Returns where that is.
std::size_t run_from(const Statements& all, std::size_t at, Memory& memory) {
  using Kind = Statement::Kind;
  for (; at < all.size() && all[at].kind != Kind::end; ++at) {
    const Statement& next = all[at];
    switch (next.kind) {
      case Kind::let:
      case Kind::variable:
      case Kind::assign: memory.names[next.text] = value_of(*next.value, memory); break;
      case Kind::store:
        memory.arrays.at(next.target->name).bits[place_of(*next.target, memory)] =
            value_of(*next.value, memory);
        break;
      case Kind::loop: {
        const std::uint32_t count = value_of(*next.value, memory);
        std::size_t end = at + 1;
        for (std::uint32_t i = 0; i < count; ++i) {
          memory.names[next.text] = i;
          end = run_from(all, at + 1, memory);
        }
        at = end;
        break;
      }
      default: break;
    }
  }
  return at;
}

}  // namespace

void run(const Statements& statements, Memory& memory) { run_from(statements, 0, memory); }

}  // namespace posenc::emitting
