#include "cli/mpi/ranks.h"

namespace posenc::cli {

Ranks* ranks_of_mpi = nullptr;

std::unexpected<Error> become_posenc_mpi() {
  return fail("--mpi", "needs the program posenc-mpi", "Windows, for which there is none",
              "drop the flag");
}

}  // namespace posenc::cli
