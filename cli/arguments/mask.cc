#include "cli/arguments/mask.h"

#include "cli/arguments/flags.h"

#include <string>

namespace posenc::cli {

MaskFlags::MaskFlags(CLI::App& app) {
  const auto group = "Which keys a query sees (default: the model's layer's own, or causal)";
  app.add_flag("--bidirectional", bidirectional_,
               "Those after it too; the scheme's own field of that name is set with it")
      ->group(group);
  app.add_option("--window", window_, "Those less than so many tokens away; 0: no window")
      ->group(group);
  app.add_option("--chunk", chunk_, "Those of its own chunk of so many positions; 0: no chunks")
      ->group(group);
  app.add_option("--prefix", prefix_, "Keys at positions below it are seen by all (prefix LM)")
      ->group(group);
}

Expected<Mask> MaskFlags::over(Mask own) const {
  if (bidirectional_) own.causal = false;
  const struct {
    const char* flag;
    const std::optional<std::int64_t>& given;
    std::int64_t& into;
  } rows[] = {{"--window", window_, own.window},
              {"--chunk", chunk_, own.chunk},
              {"--prefix", prefix_, own.prefix}};
  for (const auto& [flag, given, into] : rows) {
    if (!given) continue;
    if (*given < 0)
      return fail(flag, "must be 0 or more", std::to_string(*given), "0 switches it off");
    into = *given;
  }
  return own;
}

}  // namespace posenc::cli
