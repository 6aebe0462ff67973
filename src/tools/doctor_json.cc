// A diagnosis as JSON, for programs.
#include <optional>
#include <string>
#include <string_view>

#include "posenc/doctor.h"
#include "src/text/json_writer.h"

namespace posenc {

std::string to_json(const Diagnosis& diagnosis) {
  detail::JsonWriter out;
  out.object().key("evidence").array();
  for (const Exhibit& one : diagnosis.evidence)
    out.object().member("name", one.name).member("kind", name(one.kind)).member("as", one.as).end();
  out.end().member("verdict", diagnosis.verdict).key("findings").array();
  const auto or_null = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  };
  for (const Diagnosed& one : diagnosis.findings) {
    const Finding& finding = one.finding;
    std::string values = finding.expected;
    if (!finding.found.empty()) values += (values.empty() ? "" : " → ") + finding.found;
    out.object()
        .member("code", finding.code)
        .member("severity", name(finding.severity))
        .member("engine", or_null(one.engine))
        .member("version", or_null(one.version))
        .member("where", one.where)
        .member("what", values.empty() ? finding.message : values + ": " + finding.message)
        .member("effect", one.effect)
        .member("cure", finding.cure)
        .member("sure", one.sure);
    out.key("finding").json(to_json(finding));
    out.end();
  }
  out.end().member("next", diagnosis.next).end();
  return out.text;
}

}  // namespace posenc
