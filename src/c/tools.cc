// The C interface of the doctor: an open model in, JSON out.
#include "posenc/tools.h"

#include "src/c/handles.h"

using namespace posenc;
using namespace posenc::c;

namespace {

std::string json_of(std::span<const Finding> findings) { return to_json(findings); }

}  // namespace

posenc_status posenc_engines_json(char** json) noexcept {
  if (const auto bad = need("posenc_engines_json", {{"json", json}})) return bad;
  return hand_out(engines_to_json(), json);
}

posenc_status posenc_model_diff_json(const posenc_model* expected, const posenc_model* found,
                                     int64_t length, char** json) noexcept {
  if (const auto bad =
          need("posenc_model_diff_json", "json", json, {{"expected", expected}, {"found", found}}))
    return bad;
  const auto findings = differences(expected->value, found->value, length);
  if (!findings) return refused(findings.error());
  return hand_out(differences_to_json(expected->value, found->value, *findings), json);
}

posenc_status posenc_model_engine_json(const posenc_model* model, const char* engine,
                                       int64_t length, char** json) noexcept {
  if (const auto bad =
          need("posenc_model_engine_json", "json", json, {{"model", model}, {"engine", engine}}))
    return bad;
  return hand_out_json(engine_differences(model->value, engine, length), json);
}

posenc_status posenc_model_log_json(const posenc_model* model, const char* log, size_t size,
                                    int64_t length, char** json) noexcept {
  if (const auto bad =
          need("posenc_model_log_json", "json", json, {{"model", model}, {"log", log}}))
    return bad;
  const auto findings = log_differences(model->value, {log, size}, length);
  if (!findings) return refused(findings.error());
  return hand_out(differences_to_json(model->value, *findings), json);
}

posenc_status posenc_model_command_json(const posenc_model* model, const char* command,
                                        int64_t length, char** json) noexcept {
  if (const auto bad =
          need("posenc_model_command_json", "json", json, {{"model", model}, {"command", command}}))
    return bad;
  const auto findings = command_differences(model->value, command, length);
  if (!findings) return refused(findings.error());
  return hand_out(differences_to_json(model->value, *findings), json);
}

posenc_status posenc_model_lint_json(const posenc_model* model, const char* engine, int64_t length,
                                     char** json) noexcept {
  if (const auto bad = need("posenc_model_lint_json", "json", json, {{"model", model}})) return bad;
  LintOptions options{.length = length};
  if (engine) options.engines = {engine};
  const auto findings = lint(model->value, options);
  if (!findings) return refused(findings.error());
  return hand_out("{\"findings\":" + json_of(*findings) + "}", json);
}

posenc_status posenc_model_translate_json(const posenc_model* model, const char* engine,
                                          int64_t length, char** json) noexcept {
  if (const auto bad =
          need("posenc_model_translate_json", "json", json, {{"model", model}, {"engine", engine}}))
    return bad;
  return hand_out_json(translate(model->value, engine, length), json);
}

posenc_status posenc_model_extend_json(const posenc_model* model, int64_t to, const char* engine,
                                       int64_t trained, int32_t training, char** json) noexcept {
  if (const auto bad = need("posenc_model_extend_json", "json", json, {{"model", model}}))
    return bad;
  ExtendOptions options{.to = to, .trained = trained, .training = training != 0};
  if (engine) options.engine = engine;
  return hand_out_json(extend(model->value, options), json);
}
