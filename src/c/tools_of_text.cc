// The C interface of the doctor: text in, JSON out.
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

// What `ask`, a function of the open model, answers about that of a text.
template <class Ask>
posenc_status answered(std::string_view where, Argument text, char** json, const Ask& ask) {
  if (const auto bad = need(where, "json", json, {text})) return bad;
  Expected<Model> model = model_of(static_cast<const char*>(text.pointer));
  if (!model) return refused(model.error());
  const posenc_model open{*std::move(model)};
  return ask(&open);
}

}  // namespace

posenc_status posenc_diff_json(const char* expected, const char* found, int64_t length,
                               char** json) noexcept {
  constexpr std::string_view where = "posenc_diff_json";
  return answered(where, {"expected", expected}, json, [&](const posenc_model* a) {
    return answered(where, {"found", found}, json, [&](const posenc_model* b) {
      return posenc_model_diff_json(a, b, length, json);
    });
  });
}

posenc_status posenc_lint_json(const char* model, const char* engine, int64_t length,
                               char** json) noexcept {
  return answered("posenc_lint_json", {"model", model}, json, [&](const posenc_model* open) {
    return posenc_model_lint_json(open, engine, length, json);
  });
}

posenc_status posenc_translate_json(const char* model, const char* engine, int64_t length,
                                    char** json) noexcept {
  constexpr std::string_view where = "posenc_translate_json";
  return answered(where, {"model", model}, json, [&](const posenc_model* open) {
    if (const auto bad = need(where, {{"engine", engine}})) return bad;
    return posenc_model_translate_json(open, engine, length, json);
  });
}

posenc_status posenc_extend_json(const char* model, int64_t to, const char* engine, int64_t trained,
                                 int32_t training, char** json) noexcept {
  return answered("posenc_extend_json", {"model", model}, json, [&](const posenc_model* open) {
    return posenc_model_extend_json(open, to, engine, trained, training, json);
  });
}
