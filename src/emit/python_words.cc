#include "src/emit/python_words.h"

#include <cstdint>
#include <string>
#include <vector>

#include "src/text/number.h"

namespace posenc::emitting {

std::string PythonPrinter::literal(const Node& value) const {
  if (value.type == Type::f32) return float_text(value.bits);
  if (value.type == Type::i32) return number(static_cast<std::int32_t>(value.bits));
  return number(value.bits);
}

std::string python_list(const std::string& name, const std::vector<std::string>& words) {
  return name + " = [\n" + wrapped_list(words, "    ") + "]\n";
}

std::string python_rotation_test(const Computation& what) {
  const Rotation& r = *what.rotation;
  std::vector<std::string> rows, axes;
  for (std::int64_t axis = 0; axis < r.axes; ++axis) {
    std::string positions;
    for (const auto& token : r.positions)
      positions += (positions.empty() ? "" : ", ") + number(token[static_cast<std::size_t>(axis)]);
    axes.push_back("[" + positions + "]");
  }
  for (const RotationCheck& c : r.checks)
    rows.push_back("(" + number(c.token) + ", " + number(c.head) + ", " + number(c.first) + ", " +
                   number(c.second) + ", " + detail::real_text(c.cosine) + ", " +
                   detail::real_text(c.sine) + ", " + hex_word(c.cosine_bits) + ", " +
                   hex_word(c.sine_bits) + ")");
  const std::string channels = number(r.head_dim), heads = number(r.heads);
  std::string text =
      "\n\n# [axes][tokens], and what the pair of channels (1, 0) becomes: token, head, first, "
      "second,"
      "\n# cos, sin and the floats that must come out.\n" +
      python_list("POSITIONS", axes) + python_list("CHECKS", rows);
  text += "\n\ndef fill():\n    x = np.zeros((len(POSITIONS[0]), " + heads + ", " + channels +
          "), np.float32)\n";
  if (r.unrotated) text += "    x[:, :, " + number(*r.unrotated) + "] = 7\n";
  text += R"(    for token, head, first, *_ in CHECKS:
        x[token, head, first] = 1
    return x


def judge(x):
    right = True
    for token, position in enumerate(POSITIONS[0]):
        worst, same = 0.0, True
        for at, head, first, second, cos, sin, cos_bits, sin_bits in CHECKS:
            if at != token:
                continue
            c, s = x[token, head, first], x[token, head, second]
            worst = max(worst, abs(float(c) - cos), abs(float(s) - sin))
            same &= (c.view(np.uint32), s.view(np.uint32)) == (cos_bits, sin_bits)
)";
  if (r.unrotated)
    text += "        same &= bool((x[token, :, " + number(*r.unrotated) + "] == 7).all())\n";
  return text +
         R"(        print(f"position {position} error {worst:.3g} bits {'same' if same else 'DIFFER'}")
        right &= same and worst <= )" +
         detail::real_text(r.most_error()) + "\n    return right\n";
}

std::string python_bias_test(const Computation& what) {
  const DistanceBias& b = *what.bias;
  const auto list = [](const std::vector<std::int64_t>& of) {
    std::vector<std::string> words;
    words.reserve(of.size());
    for (const std::int64_t each : of) words.push_back(number(each));
    return words;
  };
  std::vector<std::string> rows;
  rows.reserve(b.checks.size());
  for (const BiasCheck& c : b.checks)
    rows.push_back("(" + number(c.head) + ", " + number(c.query) + ", " + number(c.key) + ", " +
                   hex_word(c.bits) + ")");
  std::string text =
      "\n\n" + python_list("QUERIES", list(b.queries)) + python_list("KEYS", list(b.keys));
  if (b.learned) {
    std::vector<std::string> values;
    values.reserve(b.test_values.size());
    for (const std::uint32_t bits : b.test_values) values.push_back(float_text(bits));
    text += python_list("TEST_VALUES", values);
  }
  return text +
         "# Head, query and key by their number, and the bits of the float that must come "
         "out.\n" +
         python_list("BIASES", rows) + R"(

def judge_bias(out):
    found = [int(out[head, query, key].view(np.uint32)) for head, query, key, _ in BIASES]
    same = sum(f == bits for f, (*_, bits) in zip(found, BIASES))
    print(f"biases {same} of {len(BIASES)} bits {'same' if same == len(BIASES) else 'DIFFER'}")
    return same == len(BIASES)
)";
}

}  // namespace posenc::emitting
