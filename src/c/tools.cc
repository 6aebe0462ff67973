// The C interface of the doctor: text in, JSON out.
#include "posenc/tools.h"

#include <cstring>

#include "src/c/handles.h"

namespace {

using namespace posenc;
using namespace posenc::c;

// A configuration's text, or the name of one that travels with the library; never a path.
Expected<Model> model_of(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{')
    return read_model_bytes(std::as_bytes(std::span(text)), "config.json");
  const auto config = bundled_config(text);
  if (!config) return std::unexpected(config.error());
  return read_config(*config, text);
}

// Asks `answer`, which may fail, about a model that may not be one.
template <class Answer>
posenc_status answered(const char* text, char** json, const Answer& answer) {
  const Expected<Model> model = model_of(text);
  if (!model) return refused(model.error());
  const Expected<std::string> made = answer(*model);
  return made ? hand_out(*made, json) : refused(made.error());
}

template <class T>
Expected<std::string> as_json(const Expected<T>& made) {
  if (!made) return std::unexpected(made.error());
  return to_json(*made);
}

}  // namespace

posenc_status posenc_diff_json(const char* expected, const char* found, int64_t length,
                               char** json) noexcept {
  constexpr std::string_view where = "posenc_diff_json";
  if (const auto bad = need(where, {{"json", json}})) return bad;
  *json = nullptr;
  if (const auto bad = need(where, {{"expected", expected}, {"found", found}})) return bad;
  return answered(expected, json, [&](const Model& a) -> Expected<std::string> {
    const Expected<Model> b = model_of(found);
    if (!b) return std::unexpected(b.error());
    const auto findings = differences(a, *b, length);
    if (!findings) return std::unexpected(findings.error());
    return differences_to_json(a, *b, *findings);
  });
}

posenc_status posenc_lint_json(const char* model, const char* engine, int64_t length,
                               char** json) noexcept {
  constexpr std::string_view where = "posenc_lint_json";
  if (const auto bad = need(where, {{"json", json}})) return bad;
  *json = nullptr;
  if (const auto bad = need(where, {{"model", model}})) return bad;
  LintOptions options{.length = length};
  if (engine) options.engines = {engine};
  return answered(model, json, [&](const Model& read) -> Expected<std::string> {
    const auto findings = lint(read, options);
    if (!findings) return std::unexpected(findings.error());
    return "{\"findings\":" + to_json(std::span<const Finding>(*findings)) + "}";
  });
}

posenc_status posenc_translate_json(const char* model, const char* engine, int64_t length,
                                    char** json) noexcept {
  constexpr std::string_view where = "posenc_translate_json";
  if (const auto bad = need(where, {{"json", json}})) return bad;
  *json = nullptr;
  if (const auto bad = need(where, {{"model", model}, {"engine", engine}})) return bad;
  return answered(model, json,
                  [&](const Model& read) { return as_json(translate(read, engine, length)); });
}

posenc_status posenc_extend_json(const char* model, int64_t to, const char* engine, int64_t trained,
                                 int32_t training, char** json) noexcept {
  constexpr std::string_view where = "posenc_extend_json";
  if (const auto bad = need(where, {{"json", json}})) return bad;
  *json = nullptr;
  if (const auto bad = need(where, {{"model", model}})) return bad;
  ExtendOptions options{.to = to, .trained = trained, .training = training != 0};
  if (engine) options.engine = engine;
  return answered(model, json, [&](const Model& read) { return as_json(extend(read, options)); });
}
