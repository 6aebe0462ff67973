// C99: two functions over dense arrays, and a main under POSENC_TEST.
#include <string>

#include "src/emit/c_words.h"

namespace posenc::emitting {
namespace {

std::string c_rotation(const Computation& what, const CPrinter& c) {
  return R"(
// x [tokens][heads][)" +
         number(what.rotation->head_dim) + R"(], in place; positions [axes][tokens].
static void rotate_pairs(float* x, const int64_t* positions, size_t tokens, uint32_t heads) {
  for (size_t token = 0; token < tokens; ++token) {
    for (uint32_t pair = 0; pair < )" +
         number(what.rotation->pairs) + "u; ++pair) {\n" + c.lines(what.rotation->statements, 3) +
         "    }\n  }\n}\n";
}

std::string c_bias(const Computation& what, const CPrinter& c) {
  return std::string(R"(
// out [heads][queries][keys] = what is added to the logits.
static void bias_of(float* out, const int64_t* query_positions, const int64_t* key_positions,
                    size_t queries, size_t keys, uint32_t heads)") +
         (what.bias->learned ? ", const float* values" : "") + R"() {
  for (uint32_t head = 0; head < heads; ++head) {
    for (size_t query = 0; query < queries; ++query) {
      for (size_t key = 0; key < keys; ++key) {
)" + c.lines(what.bias->statements, 4) +
         R"(        out[(head * queries + query) * keys + key] = bias;
      }
    }
  }
}
)";
}

std::string c_test(const Computation& what) {
  std::string text = "\n#ifdef POSENC_TEST\n" + test_helpers(), tables, body = "  int wrong = 0;\n";
  if (what.rotation) {
    tables += rotation_test_tables(what) + rotation_test_verdict(what);
    body += R"(  static float x[CHANNELS];
  fill(x);
  rotate_pairs(x, POSITIONS, TOKENS, HEADS);
  wrong |= judge(x);
)";
  }
  if (what.bias) {
    tables += bias_test_tables(what) + bias_test_verdict(what);
    body += std::string(R"(  static float out[BIAS_HEADS * QUERIES * KEYS];
  bias_of(out, QUERY_POSITIONS, KEY_POSITIONS, QUERIES, KEYS, BIAS_HEADS)") +
            (what.bias->learned ? ", TEST_VALUES" : "") + ");\n  wrong |= judge_bias(out);\n";
  }
  return text + "\n" + tables + "\nint main(void) {\n" + body + "  return wrong;\n}\n#endif\n";
}

Expected<std::string> c_text(const Computation& what) {
  const CPrinter c(what);
  std::string text = about(
      what, "// ",
      {"Test: cc -std=c99 -D POSENC_TEST FILE.c -lm && ./a.out. Compile without contraction of "
       "floats (-ffp-contract=off, or -std=c99 as here), and not with -ffast-math."});
  text += "\n#include <stddef.h>\n#include <stdint.h>\n\n" + c.constants("static const ");
  if (what.rotation)
    text += R"(
// The upper half of the product.
static uint32_t hi(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
)" + c_rotation(what, c);
  if (what.bias) text += c_bias(what, c);
  return text + c_test(what);
}

}  // namespace

extern const Target c_target{{"c", "C99, with a main under POSENC_TEST", ".c"}, c_text};

}  // namespace posenc::emitting
