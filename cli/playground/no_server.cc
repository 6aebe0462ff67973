#include "cli/playground/server.h"

namespace posenc::cli {

Expected<int> serve(const Serving&) {
  return fail("serve", "the playground is not within this posenc", "",
              "`make serve` builds it in and runs it");
}

}  // namespace posenc::cli
