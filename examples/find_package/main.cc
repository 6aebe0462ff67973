// A program of its own that uses an installed posenc: the fastest and slowest pair of plain RoPE.
#include <posenc/posenc.h>

#include <cmath>
#include <cstdio>

int main() {
  posenc::Geometry geometry;
  geometry.head_dim = 128;
  const auto plan = posenc::compile(posenc::Rope{}, geometry);
  if (!plan) {
    std::fprintf(stderr, "%s\n", plan.error().message().c_str());
    return 1;
  }
  const auto& frequency = plan->rotate->frequencies.radians;
  std::printf("RoPE, head_dim 128: %zu pairs, one turn in %.1f to %.0f positions\n",
              frequency.size(), 2 * M_PI / frequency.front(), 2 * M_PI / frequency.back());
}
