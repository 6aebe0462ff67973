// A score_mod of PyTorch's FlexAttention: the bias of a query and a key.
#include <cstdint>
#include <string>

#include "src/emit/python_words.h"

namespace posenc::emitting {
namespace {

class FlexPrinter : public PythonPrinter {
 public:
  using PythonPrinter::PythonPrinter;

 protected:
  std::string select(const std::string& condition, const std::string& yes,
                     const std::string& no) const override {
    return "torch.where(" + condition + ", " + yes + ", " + no + ")";
  }
  std::string least(const std::string& a, const std::string& b) const override {
    return "torch.clamp(" + a + ", max=" + b + ")";
  }
  std::string most(const std::string& a, const std::string& b) const override {
    return "torch.clamp(" + a + ", min=" + b + ")";
  }
  std::string as_i32(const std::string& of) const override { return of; }
  std::string as_u32(const std::string& of) const override { return of; }
  std::string as_f32(const std::string& of, Type) const override {
    return grouped(of) + ".to(torch.float32)";
  }
  std::string load(const Node& from) const override {
    if (from.name == "query_low") return "q_idx";
    if (from.name == "key_low") return "kv_idx";
    if (from.name == "SLOPES") return "slopes[head]";
    if (from.name == "ROWS") return "rows[" + at(from, 0) + "]";
    return "values[" + at(from, 0) + ", " + at(from, 1) + "]";
  }
  std::string store(const Statement&) const override { return ""; }
  std::string loop(const Statement&) const override { return ""; }
};

Expected<std::string> score_mod_text(const Computation& what) {
  const FlexPrinter f(what);
  const DistanceBias& b = *what.bias;
  std::string text =
      about(what, "# ",
            {"For torch.nn.attention.flex_attention: flex_attention(q, k, v, "
             "score_mod=make_score_mod(q.device" +
             std::string(b.learned ? ", values" : "") +
             ")). Tokens stand at their index, from 0 on; queries and keys come rotated where "
             "the plan rotates. Test: python FILE.py."});
  text += "\nimport numpy as np\nimport torch\n\n";
  std::string given;
  for (const Constant& each : b.constants) {
    text += python_list(each.name, words_of(each, "", ""));
    const bool integers = each.type == Type::i32;
    const std::string shape = each.name == "VALUES" ? ".reshape(" + number(each.shape[0]) + ", " +
                                                          number(each.shape[1]) + ")"
                                                    : "";
    const std::string name = each.name == "SLOPES" ? "slopes" : integers ? "rows" : "values";
    given += "    " + name + " = torch.tensor(" + each.name + ", dtype=torch." +
             (integers ? "int64" : "float32") + ", device=device)" + shape + "\n";
  }
  text += std::string("\n\ndef make_score_mod(device=None") + (b.learned ? ", values=None" : "") +
          "):\n" +
          (b.learned ? "    \"\"\"values " + std::string(b.shared ? "[1" : "[heads") + ", " +
                           number(b.row_count) + "]: the learned table.\"\"\"\n"
                     : "") +
          given + R"(
    def score_mod(score, batch, head, q_idx, kv_idx):
)" + f.lines(b.statements, 2) +
          "        return score + bias\n\n    return score_mod\n" + python_bias_test(what) +
          "\n\nif __name__ == \"__main__\":\n";
  if (b.learned)
    text += "    values = torch.tensor(TEST_VALUES, dtype=torch.float32).reshape(" +
            std::string(b.shared ? "1" : number(b.heads)) + ", " + number(b.row_count) + ")\n";
  return text + "    head = torch.arange(" + number(b.heads) +
         R"()[:, None, None]
    query, key = torch.tensor(QUERIES)[None, :, None], torch.tensor(KEYS)[None, None, :]
    score = torch.zeros(len(head), len(QUERIES), len(KEYS))
    out = make_score_mod()" +
         (b.learned ? "values=values" : "") + R"()(score, 0, head, query, key)
    raise SystemExit(not judge_bias(out.numpy()))
)";
}

}  // namespace

extern const Target score_mod_target{
    {"score_mod", "the bias as a score_mod of PyTorch's FlexAttention", ".py"}, score_mod_text};

}  // namespace posenc::emitting
