// The description of a computation that every target prints: a list of typed statements over
// integers of 32 bits, floats and truth values. What a language's compiler could round otherwise is
// not in it: no sine, no fused product.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace posenc::emitting {

enum class Type : std::uint8_t { u32, i32, f32, boolean };

enum class Op : std::uint8_t {
  literal,      // bits
  name,         // a statement's, or one that the target's frame has
  load,         // of an array: name[of…]
  add,          // modulo 2^32 of integers
  subtract,     //
  multiply,     //
  divide,       // of integers that are not negative, downwards
  remainder,    //
  high,         // of u32: the upper half of the product of 64 bits
  shift_left,   // by a literal
  shift_right,  //
  bit_and,
  bit_or,
  bit_not,
  less,
  not_equal,
  select,  // of[0] ? of[1] : of[2]
  least,   // the smaller of two
  most,    //
  negate,  // of f32
  as_i32,  // the same bits
  as_u32,  // 1 where true, else 0
  as_f32,  // an integer to the nearest float, of two the even one
};

struct Node;
// Shared, so that an expression may be part of several.
using Value = std::shared_ptr<const Node>;
struct Node {
  Op op = Op::literal;
  Type type = Type::u32;
  std::uint32_t bits = 0;
  std::string name = {};
  std::vector<Value> of = {};
};

// A table of the plan's numbers.
struct Constant {
  std::string name;
  Type type = Type::u32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::uint32_t> bits = {};
};

struct Statement {
  enum class Kind : std::uint8_t {
    say,       // a comment: text
    let,       // text = value, from here on
    variable,  // the same, and it may be assigned
    assign,
    loop,  // text from 0 to below value; what follows, up to end
    end,
    store,  // target (a load) = value
  };
  Kind kind = Kind::say;
  std::string text = {};
  Value value = {}, target = {};
};

using Statements = std::vector<Statement>;

// --- written as expressions ----------------------------------------------------------------------

inline Value node(Op op, Type type, std::vector<Value> of) {
  return std::make_shared<const Node>(
      Node{.op = op, .type = type, .bits = 0, .name = {}, .of = std::move(of)});
}
inline Value literal(Type type, std::uint32_t bits) {
  return std::make_shared<const Node>(
      Node{.op = Op::literal, .type = type, .bits = bits, .name = {}, .of = {}});
}
inline Value u32(std::uint32_t bits) { return literal(Type::u32, bits); }
inline Value i32(std::int64_t number) {
  return literal(Type::i32, static_cast<std::uint32_t>(number));
}
Value f32(double number);
inline Value named(std::string_view name, Type type) {
  return std::make_shared<const Node>(
      Node{.op = Op::name, .type = type, .bits = 0, .name = std::string(name), .of = {}});
}
inline Value load(std::string_view array, Type type, std::vector<Value> at) {
  return std::make_shared<const Node>(Node{
      .op = Op::load, .type = type, .bits = 0, .name = std::string(array), .of = std::move(at)});
}

inline Value operator+(const Value& a, const Value& b) { return node(Op::add, a->type, {a, b}); }
inline Value operator-(const Value& a, const Value& b) {
  return node(Op::subtract, a->type, {a, b});
}
inline Value operator*(const Value& a, const Value& b) {
  return node(Op::multiply, a->type, {a, b});
}
inline Value operator/(const Value& a, const Value& b) { return node(Op::divide, a->type, {a, b}); }
inline Value operator%(const Value& a, const Value& b) {
  return node(Op::remainder, a->type, {a, b});
}
inline Value operator&(const Value& a, const Value& b) {
  return node(Op::bit_and, a->type, {a, b});
}
inline Value operator|(const Value& a, const Value& b) { return node(Op::bit_or, a->type, {a, b}); }
inline Value operator~(const Value& a) { return node(Op::bit_not, a->type, {a}); }
inline Value operator-(const Value& a) { return node(Op::negate, a->type, {a}); }
inline Value operator<(const Value& a, const Value& b) {
  return node(Op::less, Type::boolean, {a, b});
}
inline Value operator!=(const Value& a, const Value& b) {
  return node(Op::not_equal, Type::boolean, {a, b});
}
inline Value operator<<(const Value& a, std::uint32_t by) {
  return node(Op::shift_left, a->type, {a, u32(by)});
}
inline Value operator>>(const Value& a, std::uint32_t by) {
  return node(Op::shift_right, a->type, {a, u32(by)});
}
inline Value high(const Value& a, const Value& b) { return node(Op::high, Type::u32, {a, b}); }
inline Value select(const Value& condition, const Value& yes, const Value& no) {
  return node(Op::select, yes->type, {condition, yes, no});
}
inline Value least(const Value& a, const Value& b) { return node(Op::least, a->type, {a, b}); }
inline Value most(const Value& a, const Value& b) { return node(Op::most, a->type, {a, b}); }
inline Value as_i32(const Value& a) { return node(Op::as_i32, Type::i32, {a}); }
inline Value as_u32(const Value& a) { return node(Op::as_u32, Type::u32, {a}); }
inline Value as_f32(const Value& a) { return node(Op::as_f32, Type::f32, {a}); }

// Statements in the order in which they are written down.
class Writer {
 public:
  void say(std::string text) { add({.kind = Statement::Kind::say, .text = std::move(text)}); }
  Value let(std::string_view name, const Value& value) {
    return made(Statement::Kind::let, name, value);
  }
  Value variable(std::string_view name, const Value& value) {
    return made(Statement::Kind::variable, name, value);
  }
  void assign(const Value& variable, Value value) {
    add({.kind = Statement::Kind::assign, .text = variable->name, .value = std::move(value)});
  }
  Value loop(std::string_view name, Value count) {
    add({.kind = Statement::Kind::loop, .text = std::string(name), .value = std::move(count)});
    return named(name, Type::u32);
  }
  void end() { add({.kind = Statement::Kind::end}); }
  void store(Value target, Value value) {
    add({.kind = Statement::Kind::store, .value = std::move(value), .target = std::move(target)});
  }
  Statements take() { return std::move(statements_); }

 private:
  Value made(Statement::Kind kind, std::string_view name, const Value& value) {
    add({.kind = kind, .text = std::string(name), .value = value});
    return named(name, value->type);
  }
  void add(Statement statement) { statements_.push_back(std::move(statement)); }
  Statements statements_;
};

}  // namespace posenc::emitting
