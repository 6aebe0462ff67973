// A judgement of a layout as findings: what is said of several groups of layers stands once.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "posenc/context_parallel.h"
#include "posenc/tools.h"

namespace posenc {
namespace {

Severity severity_of(layout::Verdict verdict) {
  return verdict == layout::Verdict::breaks    ? Severity::error
         : verdict == layout::Verdict::unknown ? Severity::warning
                                               : Severity::note;
}

}  // namespace

std::vector<Finding> layout_findings(const layout::Judgement& judgement) {
  std::vector<Finding> out;
  for (const layout::GroupVerdict& group : judgement.groups)
    for (const layout::Reason& reason : group.reasons) {
      Finding one{.code = "cp_" + reason.code,
                  .severity = severity_of(reason.verdict),
                  .stack = group.stack,
                  .layers = group.layers,
                  .found = judgement.sharding.text(),
                  .message = reason.why + (reason.source.empty() ? "" : " (" + reason.source + ")"),
                  .cure = reason.cure};
      if (!judgement.sharding.engine.empty() && reason.basis == layout::Basis::engine)
        one.engines = {judgement.sharding.engine};
      const auto same = std::ranges::find_if(out, [&](const Finding& old) {
        return old.code == one.code && old.stack == one.stack && old.message == one.message;
      });
      if (same == out.end()) {
        out.push_back(std::move(one));
        continue;
      }
      std::vector<std::int64_t> both;
      std::ranges::merge(same->layers, one.layers, std::back_inserter(both));
      same->layers = std::move(both);
    }
  std::ranges::stable_sort(out, {}, &Finding::severity);
  return out;
}

}  // namespace posenc
