// Which keys a query sees, as a command line says it.
#pragma once

#include <cstdint>
#include <optional>

#include "posenc/attention.h"
#include "posenc/error.h"

namespace CLI {
class App;
}

namespace posenc::cli {

class MaskFlags {
 public:
  // Before the command's Source, which leaves flags alone that are there already.
  explicit MaskFlags(CLI::App& app);

  // `own`, a model's layer's, but for what the flags say. Errors: a negative extent.
  Expected<Mask> over(Mask own) const;

  bool bidirectional() const { return bidirectional_; }

 private:
  bool bidirectional_ = false;
  std::optional<std::int64_t> window_, chunk_, prefix_;
};

}  // namespace posenc::cli
