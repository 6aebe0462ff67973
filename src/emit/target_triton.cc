// Triton: a program for each token (rotation) or each query of a head (bias), vectors of pairs and
// of keys.
#include <bit>
#include <cstdint>
#include <string>

#include "src/emit/python_words.h"

namespace posenc::emitting {
namespace {

class TritonPrinter : public PythonPrinter {
 public:
  using PythonPrinter::PythonPrinter;

 protected:
  std::string select(const std::string& condition, const std::string& yes,
                     const std::string& no) const override {
    return "tl.where(" + condition + ", " + yes + ", " + no + ")";
  }
  std::string least(const std::string& a, const std::string& b) const override {
    return "tl.minimum(" + a + ", " + b + ")";
  }
  std::string most(const std::string& a, const std::string& b) const override {
    return "tl.maximum(" + a + ", " + b + ")";
  }
  std::string as_i32(const std::string& of) const override {
    return grouped(of) + ".to(tl.int32, bitcast=True)";
  }
  std::string as_u32(const std::string& of) const override {
    return grouped(of) + ".to(tl.uint32)";
  }
  std::string as_f32(const std::string& of, Type) const override {
    return grouped(of) + ".to(tl.float32)";
  }
  std::string place_of(const Node& from) const {
    const auto place = [&](std::vector<std::string> extents) {
      const std::string at = flat(from, extents);
      return at == "0" ? std::string() : " + " + at;
    };
    if (from.name == "TURNS")
      return "turns" + place({number(what_->rotation->axes), number(what_->rotation->pairs), "4"});
    if (from.name == "low" || from.name == "high") return "positions" + place({"tokens"});
    if (from.name == "x") return "x" + place({"heads", number(what_->rotation->head_dim)});
    if (from.name == "query_low") return "query_positions" + place({});
    if (from.name == "key_low") return "key_positions" + place({});
    if (from.name == "SLOPES") return "slopes" + place({});
    if (from.name == "ROWS") return "rows" + place({});
    return "values" + place({number(what_->bias->row_count)});
  }
  std::string load(const Node& from) const override {
    const std::string place = place_of(from);
    const std::string some = "tl.load(" + place + ", mask=inside, other=0)",
                      one = "tl.load(" + place + ")";
    if (from.name == "TURNS") return some + ".to(tl.uint32, bitcast=True)";
    if (from.name == "low") return one + ".to(tl.uint32)";
    if (from.name == "high") return "(" + one + " >> 32).to(tl.uint32)";
    if (from.name == "x") return some + ".to(tl.float32)";
    if (from.name == "query_low") return one + ".to(tl.uint32)";
    if (from.name == "key_low") return some + ".to(tl.uint32)";
    return from.name == "SLOPES" ? one : some;
  }
  std::string store(const Statement& made) const override {
    return "tl.store(" + place_of(*made.target) + ", " + expression(*made.value) + ", mask=inside)";
  }
  std::string loop(const Statement& opened) const override {
    const std::string count = expression(*opened.value);
    return "for " + opened.text + " in " + (opened.text == "axis" ? "tl.static_range(" : "range(") +
           count + "):";
  }
};

std::string triton_rotation(const Computation& what, const TritonPrinter& t) {
  const Rotation& r = *what.rotation;
  const auto lanes = std::bit_ceil(static_cast<std::uint64_t>(r.pairs));
  return R"(

@triton.jit
def hi(a, b):
    # The upper half of the product.
    return ((a.to(tl.uint64) * b) >> 32).to(tl.uint32)


@triton.jit
def rotate_pairs(x, positions, turns, tokens, heads):
    token = tl.program_id(0).to(tl.int64)
    pair = tl.arange(0, )" +
         std::to_string(lanes) + ")\n    inside = pair < " + number(r.pairs) + "\n" +
         t.lines(r.statements, 1) + R"(

def rotate(x, positions):
    """x [tokens, heads, )" +
         number(r.head_dim) +
         R"(], dense, of any type of floats, in place; positions [axes, tokens]
    or [tokens] of int64."""
    assert x.is_contiguous() and x.shape[2] == )" +
         number(r.head_dim) + R"( and positions.dtype == torch.int64
    if x.shape[0] > 0:
        rotate_pairs[(x.shape[0],)](
            x, positions.contiguous(), constant("TURNS", x.device), x.shape[0], x.shape[1],
            enable_fp_fusion=False,
        )
    return x
)";
}

std::string triton_bias(const Computation& what, const TritonPrinter& t) {
  const DistanceBias& b = *what.bias;
  const std::string tables = b.row_count > 0 ? "rows, values" : "slopes";
  const std::string given = b.row_count > 0
                                ? std::string("constant(\"ROWS\", device), ") +
                                      (b.learned ? "values" : "constant(\"VALUES\", device)")
                                : std::string("constant(\"SLOPES\", device)");
  return "\n\n@triton.jit\ndef bias_of(out, query_positions, key_positions, " + tables +
         ", queries, keys):\n" + R"(    query = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    key = tl.program_id(2).to(tl.int64) * 128 + tl.arange(0, 128)
    inside = key < keys
)" + t.lines(b.statements, 1) +
         R"(    tl.store(out + (head * queries + query) * keys + key, bias, mask=inside)


def bias(query_positions, key_positions, heads)" +
         (b.learned ? ", values" : "") +
         R"():
    """[heads, queries, keys] of float32, which is added to the logits; positions of int64.)" +
         (b.learned ? std::string("\n    values ") + (b.shared ? "[1" : "[heads") + ", " +
                          number(b.row_count) + "] of float32."
                    : "") +
         R"("""
    device, queries, keys = query_positions.device, len(query_positions), len(key_positions)
    out = torch.empty((heads, queries, keys), dtype=torch.float32, device=device)
    if out.numel() > 0:
        bias_of[(queries, heads, triton.cdiv(keys, 128))](
            out, query_positions, key_positions, )" +
         given + R"(, queries, keys
        )
    return out
)";
}

Expected<std::string> triton_text(const Computation& what) {
  const TritonPrinter t(what);
  std::string text = about(what, "# ",
                           {"Test: python FILE.py, where there is no device with "
                            "TRITON_INTERPRET=1."});
  text +=
      "\nimport functools\n\nimport numpy as np\nimport torch\nimport triton\nimport "
      "triton.language "
      "as tl\n\n";
  if (what.rotation)
    text += "# Four words of 32 bits a pair, as signed ones.\n" +
            python_list("TURNS", words_of(what.rotation->turns, "", "")) +
            "TURNS = torch.tensor(TURNS, dtype=torch.int64).to(torch.int32)\n";
  if (what.bias)
    for (const Constant& each : what.bias->constants)
      text += python_list(each.name, words_of(each, "", "")) + each.name + " = torch.tensor(" +
              each.name + ", dtype=torch." + (each.type == Type::i32 ? "int32" : "float32") + ")\n";
  text +=
      "\n\n@functools.cache\ndef constant(name, device):\n    return globals()[name].to(device)\n";
  if (what.rotation) text += triton_rotation(what, t);
  if (what.bias) text += triton_bias(what, t);
  std::string run =
      "\n\nif __name__ == \"__main__\":\n    device = \"cuda\" if "
      "torch.cuda.is_available() else \"cpu\"\n    right = True\n";
  if (what.rotation) {
    text += python_rotation_test(what);
    run +=
        "    x = torch.from_numpy(fill()).to(device)\n    rotate(x, torch.tensor(POSITIONS, "
        "device=device))\n    right &= judge(x.cpu().numpy())\n";
  }
  if (what.bias) {
    text += python_bias_test(what);
    const DistanceBias& b = *what.bias;
    run +=
        "    queries, keys = torch.tensor(QUERIES, device=device), torch.tensor(KEYS, "
        "device=device)\n";
    if (b.learned)
      run += "    values = torch.tensor(TEST_VALUES, dtype=torch.float32, device=device)\n";
    run += "    right &= judge_bias(bias(queries, keys, " + number(b.heads) +
           (b.learned ? ", values" : "") + ").cpu().numpy())\n";
  }
  return text + run + "    raise SystemExit(not right)\n";
}

}  // namespace

extern const Target triton_target{{"triton", "Triton, a module of Python", ".py"}, triton_text};

}  // namespace posenc::emitting
