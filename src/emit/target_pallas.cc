// Pallas of JAX: a program for each token, arrays of [heads, pairs]. Slices of channels are taken
// outside of the kernel, where XLA fuses them, since a TPU gathers nothing within.
#include <cstdint>
#include <string>

#include "posenc/features.h"
#include "src/core/try.h"
#include "src/emit/python_words.h"

namespace posenc::emitting {
namespace {

constexpr Room pallas{"emit --to pallas", rooms::emit.takes.without({Feature::bias_table}),
                      rooms::emit.ignores, "look it up in jax.numpy, or take --to triton"};

class PallasPrinter : public PythonPrinter {
 public:
  using PythonPrinter::PythonPrinter;

 protected:
  std::string literal(const Node& value) const override {
    // A plain integer of Python would be of 32 bits and signed.
    if (value.type == Type::u32 && value.bits >> 31 != 0)
      return "np.uint32(" + number(value.bits) + ")";
    return PythonPrinter::literal(value);
  }
  std::string select(const std::string& condition, const std::string& yes,
                     const std::string& no) const override {
    return "jnp.where(" + condition + ", " + yes + ", " + no + ")";
  }
  std::string least(const std::string& a, const std::string& b) const override {
    return "jnp.minimum(" + a + ", " + b + ")";
  }
  std::string most(const std::string& a, const std::string& b) const override {
    return "jnp.maximum(" + a + ", " + b + ")";
  }
  std::string as_i32(const std::string& of) const override {
    return grouped(of) + ".astype(jnp.int32)";
  }
  std::string as_u32(const std::string& of) const override {
    return grouped(of) + ".astype(jnp.uint32)";
  }
  std::string as_f32(const std::string& of, Type) const override {
    return grouped(of) + ".astype(jnp.float32)";
  }
  std::string load(const Node& from) const override {
    if (from.name == "TURNS") return "turns[" + at(from, 3) + ", :, " + at(from, 1) + "]";
    if (from.name == "low" || from.name == "high")
      return from.name + "[" + at(from, 0) + ", token]";
    if (from.name == "x") return at(from, 2) + "[0].astype(jnp.float32)";
    if (from.name == "query_low") return "query_positions[query]";
    if (from.name == "key_low") return "key_positions[:]";
    return "slopes[head]";
  }
  std::string let(const Statement& made) const override {
    if (made.text == "first" || made.text == "second") return "";
    return PythonPrinter::let(made);
  }
  std::string store(const Statement& made) const override {
    const std::string out = at(*made.target, 2) + "_out";
    return out + "[0] = " + grouped(expression(*made.value)) + ".astype(" + out + ".dtype)";
  }
  std::string loop(const Statement& opened) const override {
    return "for " + opened.text + " in range(" + expression(*opened.value) + "):";
  }
  // All heads at once.
  bool has_loop(const Statement& opened) const override { return opened.text != "head"; }
};

// The channels of all pairs as an index of jax.numpy.
std::string channels(const Rotation& r, bool second) {
  const std::int64_t from = second ? r.second(0) : r.first(0);
  if (r.slice.blocks > 1) {
    std::string list;
    for (std::int64_t pair = 0; pair < r.pairs; ++pair)
      list += (pair > 0 ? ", " : "") + number(second ? r.second(pair) : r.first(pair));
    return "np.array([" + list + "])";
  }
  const bool halves = r.slice.pairing == Pairing::halves;
  return "slice(" + number(from) + ", " + number(from + (halves ? r.pairs : 2 * r.pairs - 1)) +
         (halves ? ")" : ", 2)");
}

constexpr std::string_view pallas_helper = R"(

def hi(a, b):
    """The upper half of the product, out of products of 16 bits."""
    b = jnp.asarray(b, jnp.uint32) if isinstance(b, int) else b
    a1, a0, b1, b0 = a >> 16, a & 0xFFFF, b >> 16, b & 0xFFFF
    mid = (a0 * b0 >> 16) + (a1 * b0 & 0xFFFF) + (a0 * b1 & 0xFFFF)
    return a1 * b1 + (a1 * b0 >> 16) + (a0 * b1 >> 16) + (mid >> 16)


def words(positions):
    """The lower and the upper halves of integers of 64 bits, which JAX has not."""
    positions = np.asarray(positions, np.int64)
    return (positions & 0xFFFFFFFF).astype(np.uint32), (positions >> 32).astype(np.uint32)
)";

std::string pallas_rotation(const Computation& what, const PallasPrinter& p) {
  const Rotation& r = *what.rotation;
  return std::string("\nFIRST, SECOND = ") + channels(r, false) + ", " + channels(r, true) + "\n" +
         R"(

def rotate_pairs(low, high, turns, first, second, first_out, second_out):
    token = pl.program_id(0)
)" + p.lines(r.statements, 1) +
         replaced(R"(

def rotate(x, positions, interpret=None):
    """x [tokens, heads, CHANNELS] rotated; positions [axes, tokens] or [tokens],
    integers of numpy."""
    low, high = (word.reshape(AXES, -1) for word in words(positions))
    first, second = x[..., FIRST], x[..., SECOND]
    tokens, heads, pairs = first.shape
    of_token = pl.BlockSpec((1, heads, pairs), lambda token: (token, 0, 0))
    made = pl.pallas_call(
        rotate_pairs,
        out_shape=[jax.ShapeDtypeStruct(first.shape, x.dtype)] * 2,
        grid=(tokens,),
        in_specs=[pl.BlockSpec(), pl.BlockSpec(), pl.BlockSpec(), of_token, of_token],
        out_specs=[of_token, of_token],
        interpret=jax.default_backend() == "cpu" if interpret is None else interpret,
    )(low, high, TURNS, first, second)
    return x.at[..., FIRST].set(made[0]).at[..., SECOND].set(made[1])
)",
                  "AXES", number(r.axes));
}

std::string pallas_bias(const Computation&, const Statements& statements, const PallasPrinter& p) {
  return R"(

def bias_of(query_positions, key_positions, slopes, out):
    query, head = pl.program_id(0), pl.program_id(1)
)" + p.lines(statements, 1) +
         R"(    out[0, 0] = bias


def bias(query_positions, key_positions, heads, interpret=None):
    """[heads, queries, keys] of float32, which is added to the logits."""
    queries, keys = words(query_positions)[0], words(key_positions)[0]
    return pl.pallas_call(
        bias_of,
        out_shape=jax.ShapeDtypeStruct((heads, len(queries), len(keys)), jnp.float32),
        grid=(len(queries), heads),
        in_specs=[pl.BlockSpec(), pl.BlockSpec(), pl.BlockSpec()],
        out_specs=pl.BlockSpec((1, 1, len(keys)), lambda query, head: (head, query, 0)),
        interpret=jax.default_backend() == "cpu" if interpret is None else interpret,
    )(queries, keys, SLOPES)
)";
}

Expected<std::string> pallas_text(const Computation& what) {
  POSENC_CHECK(check_takes(pallas, what.has, "emit"));
  const PallasPrinter p(what);
  std::string text = about(what, "# ", {"Test: python FILE.py, on a CPU by interpretation."});
  text +=
      "\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom jax.experimental import "
      "pallas as pl\n\n";
  if (what.rotation) {
    const Rotation& r = *what.rotation;
    text += python_list("TURNS", words_of(r.turns, "", "")) +
            "# [word][heads][axes][pairs], the highest word first\nTURNS = np.array(TURNS, "
            "np.uint32).reshape(" +
            number(r.heads) + ", " + number(r.axes) + ", " + number(r.pairs) +
            ", 4).transpose(3, 0, 1, 2)\n";
  }
  if (what.bias)
    for (const Constant& each : what.bias->constants)
      text += python_list(each.name, words_of(each, "", "")) + each.name + " = np.array(" +
              each.name + ", np.float32)\n";
  text += pallas_helper;
  if (what.rotation)
    text += replaced(pallas_rotation(what, p), "CHANNELS", number(what.rotation->head_dim));
  if (what.bias) text += pallas_bias(what, what.bias->statements, p);
  std::string run = "\n\nif __name__ == \"__main__\":\n    right = True\n";
  if (what.rotation) {
    text += python_rotation_test(what);
    run += "    right &= judge(np.array(rotate(jnp.asarray(fill()), POSITIONS)))\n";
  }
  if (what.bias) {
    text += python_bias_test(what);
    run += "    right &= judge_bias(np.array(bias(QUERIES, KEYS, " + number(what.bias->heads) +
           ")))\n";
  }
  return text + run + "    raise SystemExit(not right)\n";
}

}  // namespace

extern const Target pallas_target{{"pallas", "Pallas of JAX, a module of Python", ".py"},
                                  pallas_text};

}  // namespace posenc::emitting
