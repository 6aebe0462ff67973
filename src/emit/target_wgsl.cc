// WGSL of WebGPU: entry points over storage buffers, and the test as a line of JSON.
#include <string>

#include "src/emit/printer.h"
#include "src/text/number.h"

namespace posenc::emitting {
namespace {

class WgslPrinter : public Printer {
 public:
  explicit WgslPrinter(const Computation& what) : what_(&what) {}

  std::string constants() const {
    std::string text;
    if (what_->rotation) text += constant(what_->rotation->turns);
    if (what_->bias)
      for (const Constant& each : what_->bias->constants) text += constant(each);
    return text;
  }

 protected:
  static std::string type(Type of) {
    return of == Type::u32 ? "u32" : of == Type::i32 ? "i32" : of == Type::f32 ? "f32" : "bool";
  }
  static std::string constant(const Constant& of) {
    const std::string count = number(std::ssize(of.bits));
    return "const " + of.name + " = array<" + type(of.type) + ", " + count + ">(\n" +
           wrapped_list(words_of(of, "u", "f"), "    ") + ");\n";
  }
  std::string literal(const Node& value) const override {
    if (value.type == Type::f32) return float_text(value.bits) + "f";
    if (value.type == Type::i32) return number(static_cast<std::int32_t>(value.bits));
    return number(value.bits) + "u";
  }
  std::string select(const std::string& condition, const std::string& yes,
                     const std::string& no) const override {
    return "select(" + no + ", " + yes + ", " + condition + ")";
  }
  std::string least(const std::string& a, const std::string& b) const override {
    return "min(" + a + ", " + b + ")";
  }
  std::string most(const std::string& a, const std::string& b) const override {
    return "max(" + a + ", " + b + ")";
  }
  std::string as_i32(const std::string& of) const override { return "bitcast<i32>(" + of + ")"; }
  std::string as_u32(const std::string& of) const override { return "u32(" + of + ")"; }
  std::string as_f32(const std::string& of, Type from) const override {
    return (from == Type::u32 ? "to_f32(" : "f32(") + of + ")";
  }
  std::string load(const Node& from) const override {
    const auto place = [&](std::vector<std::string> extents) { return flat(from, extents); };
    if (from.name == "TURNS")
      return "TURNS[" +
             place({number(what_->rotation->axes) + "u", number(what_->rotation->pairs) + "u",
                    "4u"}) +
             "]";
    if (from.name == "low") return "positions[" + place({"tokens"}) + "].x";
    if (from.name == "high") return "positions[" + place({"tokens"}) + "].y";
    if (from.name == "x")
      return "x[" + place({"heads", number(what_->rotation->head_dim) + "u"}) + "]";
    if (from.name == "query_low") return "query_positions[query].x";
    if (from.name == "key_low") return "key_positions[key].x";
    if (from.name == "VALUES" || from.name == "values") {
      const Node& row = *from.of[1];
      const std::string at = "u32(" + expression(row) + ")";
      return from.name + "[" +
             (is_zero(*from.of[0]) ? at
                                   : expression(*from.of[0]) + " * " +
                                         number(what_->bias->row_count) + "u + " + at) +
             "]";
    }
    return from.name + "[" + place({}) + "]";
  }
  std::string let(const Statement& made) const override {
    return "let " + made.text + " = " + expression(*made.value) + ";";
  }
  std::string variable(const Statement& made) const override {
    return "var " + made.text + " = " + expression(*made.value) + ";";
  }
  std::string assign(const Statement& made) const override {
    return made.text + " = " + expression(*made.value) + ";";
  }
  std::string store(const Statement& made) const override {
    return load(*made.target) + " = " + expression(*made.value) + ";";
  }
  std::string loop(const Statement& opened) const override {
    return "for (var " + opened.text + " = 0u; " + opened.text + " < " + expression(*opened.value) +
           "; " + opened.text + "++) {";
  }

 private:
  const Computation* what_;
};

constexpr std::string_view wgsl_helpers = R"(
// The upper half of the product, out of products of 16 bits.
fn hi(a: u32, b: u32) -> u32 {
  let a1 = a >> 16u;
  let a0 = a & 0xffffu;
  let b1 = b >> 16u;
  let b0 = b & 0xffffu;
  let mid = ((a0 * b0) >> 16u) + ((a1 * b0) & 0xffffu) + ((a0 * b1) & 0xffffu);
  return a1 * b1 + ((a1 * b0) >> 16u) + ((a0 * b1) >> 16u) + (mid >> 16u);
}

// To the nearest float, of two the even one, which f32() does not promise: 24 bits are left for it.
fn to_f32(x: u32) -> f32 {
  let excess = 8u - min(8u, countLeadingZeros(x));
  let half = select(0u, ((1u << excess) >> 1u) - 1u + ((x >> excess) & 1u), excess > 0u);
  return f32(((x + half) >> excess) << excess);
}
)";

std::string binding(const std::string& group, int number_of, const std::string& rest) {
  return "@group(" + group + ") @binding(" + number(number_of) + ") var<" + rest + ";\n";
}

std::string wgsl_rotation(const Computation& what, const WgslPrinter& w) {
  return std::string(wgsl_helpers) + "\n// x [tokens][heads][" + number(what.rotation->head_dim) +
         "], in place; positions [axes][tokens] of 64 bits, the lower word first.\n" +
         binding("0", 0, "storage, read_write> x: array<f32>") +
         binding("0", 1, "storage, read> positions: array<vec2<u32>>") +
         "struct RotationSizes { tokens: u32, heads: u32 }\n" +
         binding("0", 2, "uniform> rotation_sizes: RotationSizes") +
         replaced(R"(
// An invocation for each token and each of its PAIRS pairs, 64 in a group.
@compute @workgroup_size(64)
fn rotate_pairs(@builtin(global_invocation_id) id: vec3<u32>,
                @builtin(num_workgroups) groups: vec3<u32>) {
  let tokens = rotation_sizes.tokens;
  let heads = rotation_sizes.heads;
  let item = id.x + id.y * groups.x * 64u;
  if (item >= tokens * PAIRSu) {
    return;
  }
  let token = item / PAIRSu;
  let pair = item % PAIRSu;
)",
                  "PAIRS", number(what.rotation->pairs)) +
         w.lines(what.rotation->statements, 1) + "}\n";
}

std::string wgsl_bias(const Computation& what, const WgslPrinter& w) {
  const std::string group = what.rotation ? "1" : "0";
  return "\n// out [heads][queries][keys] = what is added to the logits; positions as 64 bits, the "
         "lower word\n// first.\n" +
         binding(group, 0, "storage, read_write> out: array<f32>") +
         binding(group, 1, "storage, read> query_positions: array<vec2<u32>>") +
         binding(group, 2, "storage, read> key_positions: array<vec2<u32>>") +
         "struct BiasSizes { queries: u32, keys: u32, heads: u32 }\n" +
         binding(group, 3, "uniform> bias_sizes: BiasSizes") +
         (what.bias->learned ? binding(group, 4, "storage, read> values: array<f32>") : "") + R"(
@compute @workgroup_size(64)
fn bias_of(@builtin(global_invocation_id) id: vec3<u32>,
           @builtin(num_workgroups) groups: vec3<u32>) {
  let queries = bias_sizes.queries;
  let keys = bias_sizes.keys;
  let item = id.x + id.y * groups.x * 64u;
  if (item >= bias_sizes.heads * queries * keys) {
    return;
  }
  let head = item / (queries * keys);
  let query = item / keys % queries;
  let key = item % keys;
)" + w.lines(what.bias->statements, 1) +
         "  out[item] = bias;\n}\n";
}

std::string list(const std::vector<std::int64_t>& of) {
  std::string text;
  for (const std::int64_t each : of) text += (text.empty() ? "" : ", ") + number(each);
  return "[" + text + "]";
}

// What a runner needs: positions by axis, and what must come out.
std::string test_line(const Computation& what) {
  std::string text;
  if (what.rotation) {
    const Rotation& r = *what.rotation;
    std::string axes, checks;
    for (std::int64_t axis = 0; axis < r.axes; ++axis) {
      std::vector<std::int64_t> of_axis;
      of_axis.reserve(r.positions.size());
      for (const auto& token : r.positions)
        of_axis.push_back(token[static_cast<std::size_t>(axis)]);
      axes += (axis > 0 ? ", " : "") + list(of_axis);
    }
    for (const RotationCheck& c : r.checks)
      checks += (checks.empty() ? "[" : ", [") + number(c.token) + ", " + number(c.head) + ", " +
                number(c.first) + ", " + number(c.second) + ", " + detail::real_text(c.cosine) +
                ", " + detail::real_text(c.sine) + ", " + number(c.cosine_bits) + ", " +
                number(c.sine_bits) + "]";
    text += "// test: {\"kernel\": \"rotate_pairs\", \"heads\": " + number(r.heads) +
            ", \"head_dim\": " + number(r.head_dim) + ", \"pairs\": " + number(r.pairs) +
            ", \"most_error\": " + detail::real_text(r.most_error()) +
            ", \"unrotated\": " + (r.unrotated ? number(*r.unrotated) : std::string("null")) +
            ", \"positions\": [" + axes + "], \"checks\": [" + checks + "]}\n";
  }
  if (what.bias) {
    const DistanceBias& b = *what.bias;
    std::string checks, values;
    for (const BiasCheck& c : b.checks)
      checks += (checks.empty() ? "[" : ", [") + number(c.head) + ", " + number(c.query) + ", " +
                number(c.key) + ", " + number(c.bits) + "]";
    for (const std::uint32_t bits : b.test_values)
      values += (values.empty() ? "" : ", ") + float_text(bits);
    text += "// test: {\"kernel\": \"bias_of\", \"group\": " + number(what.rotation ? 1 : 0) +
            ", \"heads\": " + number(b.heads) + ", \"queries\": " + list(b.queries) +
            ", \"keys\": " + list(b.keys) + ", \"values\": [" + values + "], \"checks\": [" +
            checks + "]}\n";
  }
  return text;
}

Expected<std::string> wgsl_text(const Computation& what) {
  const WgslPrinter w(what);
  std::string text = about(
      what, "// ",
      {"Test: the lines that begin with \"test:\" are JSON for whoever runs the kernels. x is 0 "
       "but "
       "for 1 at each check's first channel and 7 at the unrotated one; a check is [token, head, "
       "first channel, second channel, cosine, sine, the two floats' bits], and a bias's [head, "
       "query, key, bits], of queries and keys by their number."});
  text += "\n" + w.constants();
  if (what.rotation) text += wgsl_rotation(what, w);
  if (what.bias) text += wgsl_bias(what, w);
  return text + "\n" + test_line(what);
}

}  // namespace

extern const Target wgsl_target{{"wgsl", "WGSL of WebGPU, its test as JSON in a comment", ".wgsl"},
                                wgsl_text};

}  // namespace posenc::emitting
