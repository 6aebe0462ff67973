// Random numbers that anyone can make anew: the one definition for command, page and docs.
#include <vector>

#include "posenc/tools.h"
#include "src/core/random.h"

namespace posenc {

std::vector<double> normals(std::uint64_t seed, std::int64_t count, std::int64_t first) {
  detail::SplitMix64 engine(seed);
  engine.skip(2 * static_cast<std::uint64_t>(first));
  std::vector<double> out(static_cast<std::size_t>(count));
  for (double& number : out) number = detail::normal(engine);
  return out;
}

}  // namespace posenc
