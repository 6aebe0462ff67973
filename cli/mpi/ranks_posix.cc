#include "cli/mpi/ranks.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "cli/system/system.h"

namespace posenc::cli {

Ranks* ranks_of_mpi = nullptr;

std::unexpected<Error> become_posenc_mpi() {
  const auto program = std::filesystem::path(own_program()).parent_path() / "posenc-mpi";
  // The arguments as they came, each behind a zero.
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<char*> arguments;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1)
    arguments.push_back(words.data() + at);
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  return fail("--mpi", "needs the program posenc-mpi beside posenc",
              program.string() + " is not there",
              "build posenc where an MPI is installed (make distributed)");
}

}  // namespace posenc::cli
