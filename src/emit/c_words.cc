#include "src/emit/c_words.h"

#include <cstdint>
#include <string>
#include <vector>

#include "src/text/number.h"

namespace posenc::emitting {

std::string CPrinter::type(Type of) const {
  switch (of) {
    case Type::u32: return uint_type;
    case Type::i32: return int_type;
    case Type::f32: return "float";
    default: return "int";
  }
}

std::string CPrinter::literal(const Node& value) const {
  if (value.type == Type::f32) return float_text(value.bits) + "f";
  if (value.type == Type::i32) return number(static_cast<std::int32_t>(value.bits));
  return number(value.bits) + "u";
}

std::string CPrinter::load(const Node& from) const {
  const auto place = [&](std::vector<std::string> extents) { return flat(from, extents); };
  if (from.name == "TURNS") {
    const Rotation& r = *what_->rotation;
    return "TURNS[" + place({number(r.axes), number(r.pairs), "4"}) + "]";
  }
  if (from.name == "low") return cast(uint_type, "positions[" + place({"tokens"}) + "]");
  if (from.name == "high") return cast(uint_type, "positions[" + place({"tokens"}) + "] >> 32");
  if (from.name == "x") return "x[" + place({"heads", number(what_->rotation->head_dim)}) + "]";
  if (from.name == "query_low") return cast(uint_type, "query_positions[query]");
  if (from.name == "key_low") return cast(uint_type, "key_positions[key]");
  if (from.name == "VALUES" || from.name == "values")
    return from.name + "[" + place({number(what_->bias->row_count)}) + "]";
  return from.name + "[" + place({}) + "]";
}

std::string CPrinter::let(const Statement& made) const { return "const " + variable(made); }
std::string CPrinter::variable(const Statement& made) const {
  return type(made.value->type) + " " + made.text + " = " + expression(*made.value) + ";";
}
std::string CPrinter::assign(const Statement& made) const {
  return made.text + " = " + expression(*made.value) + ";";
}
std::string CPrinter::store(const Statement& made) const {
  return load(*made.target) + " = " + expression(*made.value) + ";";
}
std::string CPrinter::loop(const Statement& opened) const {
  return "for (" + uint_type + " " + opened.text + " = 0; " + opened.text + " < " +
         expression(*opened.value) + "; ++" + opened.text + ") {";
}

std::string CPrinter::constant(const Constant& constant, std::string_view before) const {
  return std::string(before) + type(constant.type) + " " + constant.name + "[" +
         number(std::ssize(constant.bits)) + "] = {\n" +
         wrapped_list(words_of(constant, "u", "f"), "    ") + "};\n";
}
std::string CPrinter::constants(std::string_view before) const {
  std::string text;
  if (what_->rotation) text += constant(what_->rotation->turns, before);
  if (what_->bias)
    for (const Constant& each : what_->bias->constants) text += constant(each, before);
  return text;
}

// --- tests ---------------------------------------------------------------------------------------

std::string test_helpers() {
  return R"(#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
)";
}

std::string rotation_test_tables(const Computation& what) {
  const Rotation& r = *what.rotation;
  const std::int64_t tokens = std::ssize(r.positions);
  std::vector<std::string> positions, rows;
  for (std::int64_t axis = 0; axis < r.axes; ++axis)
    for (const auto& token : r.positions)
      positions.push_back(number(token[static_cast<std::size_t>(axis)]));
  for (const RotationCheck& c : r.checks)
    rows.push_back("{" + number(c.token) + ", " + number(c.head) + ", " + number(c.first) + ", " +
                   number(c.second) + ", " + detail::real_text(c.cosine) + ", " +
                   detail::real_text(c.sine) + ", " + hex_word(c.cosine_bits) + ", " +
                   hex_word(c.sine_bits) + "}");
  return "enum { TOKENS = " + number(tokens) + ", HEADS = " + number(r.heads) +
         ", CHANNELS = TOKENS * HEADS * " + number(r.head_dim) + " };\n" +
         "static const int64_t POSITIONS[" + number(r.axes * tokens) + "] = {\n" +
         wrapped_list(positions, "    ") + "};\n" +
         R"(// What the pair of channels (1, 0) becomes: right values, and the floats that must come out.
static const struct {
  int token, head, first, second;
  double cos, sin;
  uint32_t cos_bits, sin_bits;
} CHECKS[] = {
)" + wrapped_list(rows, "    ") +
         R"(};

static void fill(float* x) {
  memset(x, 0, CHANNELS * sizeof(float));
  for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; ++i)
    x[((size_t)CHECKS[i].token * HEADS + CHECKS[i].head) * )" +
         number(r.head_dim) + R"( + CHECKS[i].first] = 1;
)" +
         (r.unrotated ? "  for (size_t i = " + number(*r.unrotated) +
                            "; i < CHANNELS; i += " + number(r.head_dim) + ") x[i] = 7;\n"
                      : "") +
         "}\n";
}

std::string rotation_test_verdict(const Computation& what) {
  const Rotation& r = *what.rotation;
  return R"(static int judge(const float* x) {
  int wrong = 0;
  for (int token = 0; token < TOKENS; ++token) {
    double worst = 0;
    int same = 1;
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; ++i) {
      if (CHECKS[i].token != token) continue;
      const float* head = x + ((size_t)token * HEADS + CHECKS[i].head) * )" +
         number(r.head_dim) + R"(;
      const float c = head[CHECKS[i].first], s = head[CHECKS[i].second];
      worst = fmax(worst, fmax(fabs(c - CHECKS[i].cos), fabs(s - CHECKS[i].sin)));
      same &= bits_of(c) == CHECKS[i].cos_bits && bits_of(s) == CHECKS[i].sin_bits;
)" + (r.unrotated ? "      same &= head[" + number(*r.unrotated) + "] == 7;\n" : "") +
         R"(    }
    printf("position %lld error %.3g bits %s\n", (long long)POSITIONS[token], worst,
           same ? "same" : "DIFFER");
    wrong |= !same || !(worst <= )" +
         detail::real_text(r.most_error()) + R"();
  }
  return wrong;
}
)";
}

std::string bias_test_tables(const Computation& what) {
  const DistanceBias& b = *what.bias;
  const auto list = [](const std::vector<std::int64_t>& of) {
    std::string text;
    for (const std::int64_t each : of) text += (text.empty() ? "" : ", ") + number(each);
    return text;
  };
  std::vector<std::string> rows;
  rows.reserve(b.checks.size());
  for (const BiasCheck& c : b.checks)
    rows.push_back("{" + number(c.head) + ", " + number(c.query) + ", " + number(c.key) + ", " +
                   hex_word(c.bits) + "}");
  std::string text = "enum { QUERIES = " + number(std::ssize(b.queries)) +
                     ", KEYS = " + number(std::ssize(b.keys)) +
                     ", BIAS_HEADS = " + number(b.heads) +
                     " };\nstatic const int64_t QUERY_POSITIONS[] = {" + list(b.queries) +
                     "}, KEY_POSITIONS[] = {" + list(b.keys) + "};\n";
  if (b.learned)
    text +=
        "static const float TEST_VALUES[] = {\n" +
        wrapped_list(
            words_of({.name = {}, .type = Type::f32, .shape = {}, .bits = b.test_values}, "", "f"),
            "    ") +
        "};\n";
  return text + R"(static const struct {
  int head, query, key;
  uint32_t bits;
} BIASES[] = {
)" + wrapped_list(rows, "    ") +
         "};\n";
}

std::string bias_test_verdict(const Computation&) {
  return R"(static int judge_bias(const float* out) {
  int wrong = 0;
  for (size_t i = 0; i < sizeof BIASES / sizeof *BIASES; ++i) {
    const float found = out[(BIASES[i].head * QUERIES + BIASES[i].query) * KEYS + BIASES[i].key];
    wrong += bits_of(found) != BIASES[i].bits;
  }
  printf("biases %d of %d bits %s\n", (int)(sizeof BIASES / sizeof *BIASES) - wrong,
         (int)(sizeof BIASES / sizeof *BIASES), wrong ? "DIFFER" : "same");
  return wrong != 0;
}
)";
}

}  // namespace posenc::emitting
