#include "cli/conform/adapter.h"

#include <algorithm>
#include <utility>

#include "src/core/try.h"

namespace posenc::cli::conform {
namespace {

using nlohmann::json;

// Libraries greet on standard output; behind so many lines it is no greeting.
constexpr std::size_t most_ignored = 1000;

// Whoever walks an answer goes down one call a list.
constexpr int deepest = 64;

bool is_too_deep(std::string_view line) {
  int depth = 0, most = 0;
  bool text = false;
  for (std::size_t i = 0; i < line.size() && most <= deepest; ++i) {
    if (text && line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      text = !text;
    else if (!text && (line[i] == '[' || line[i] == '{'))
      most = std::max(most, ++depth);
    else if (!text && (line[i] == ']' || line[i] == '}'))
      --depth;
  }
  return most > deepest;
}

}  // namespace

Expected<json> Adapter::answer(const json& request) {
  const std::int64_t id = request["id"];
  Expected<std::string> line = child_->ask(request.dump(), timeout_);
  while (true) {
    if (!line) return std::unexpected(line.error());
    if (is_too_deep(*line))
      return fail("conform", "an answer must nest at most 64 lists and objects", "more",
                  "answer as docs/conformance.md has it");
    json read = json::parse(*line, nullptr, false);
    if (read.is_object()) {
      if (read.value("id", json()) == id) return read;
      return fail("conform", "the answer must have the id of its request, " + std::to_string(id),
                  read.value("id", json()).dump(), "answer in the order of the requests");
    }
    if (line->starts_with('{'))  // an answer, by whoever wrote it
      return json{{"id", id},
                  {"error", "its answer is no JSON: " + printable(*line, 60) +
                                (line->contains("NaN") || line->contains("Inf")
                                     ? "; write NaN and infinity as null"
                                     : "; write it as json.dumps does")}};
    if (++ignored > most_ignored)
      return fail("conform", "must be answered by a JSON object a line", printable(*line, 80),
                  "print what is no answer to standard error");
    line = child_->more(timeout_);
  }
}

Expected<Adapter> Adapter::start(const std::vector<std::string>& command, double timeout) {
  Adapter made;
  POSENC_TRY(child, Child::start(command));
  made.child_ = std::move(child);
  made.timeout_ = timeout;
  POSENC_TRY(hello, made.answer({{"id", 0}, {"operation", "hello"}, {"protocol", 1}}));
  made.name = word(hello, "name");
  made.version = word(hello, "version");
  const std::string dtype = word(hello, "dtype");
  if (made.name.empty())
    return fail("conform", "the answer to hello must have a name", hello.dump().substr(0, 80),
                "answer {\"id\":0,\"name\":\"…\",\"version\":\"…\",\"dtype\":\"float32\"}");
  constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
  const auto found = std::ranges::find(dtypes, dtype.empty() ? "float32" : dtype,
                                       [](DType d) { return posenc::name(d); });
  if (found == std::end(dtypes))
    return fail("conform", "dtype must be float64, float32, float16 or bfloat16", dtype,
                "say in which type the engine computes");
  made.dtype = *found;
  return made;
}

Expected<Answer> Adapter::ask(const std::string& operation, const VectorTest& test) {
  POSENC_TRY(said, answer({{"id", ++asked_}, {"operation", operation}, {"input", test.input}}));
  Answer made{{}, word(said, "unsupported"), word(said, "error")};
  if (!made.unsupported.empty() || !made.error.empty()) return made;
  const auto output = said.find("output");
  if (output == said.end() || !output->is_object()) {
    made.error = "its answer has no output, unsupported or error";
    return made;
  }
  for (const auto& [name, value] : output->items()) {
    std::optional<std::vector<double>> read = numbers(value);
    if (read)
      made.output.emplace(name, std::move(*read));
    else
      made.error = "its output " + printable(name, 20) + " must be numbers";
  }
  return made;
}

}  // namespace posenc::cli::conform
