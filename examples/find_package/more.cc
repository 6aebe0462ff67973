// The libraries beside posenc: one claim checked, and one kernel measured.
#include <posenc/bench.h>
#include <posenc/claims.h>

#include <cstdio>

int main() {
  const posenc::Claim& claim = posenc::all_claims().front();
  std::printf("%s %s\n", claim.number().c_str(),
              posenc::verify(claim).agrees ? "agrees" : "differs");

  const posenc::BenchCase small{.heads = 1, .length = 16};
  const auto row = posenc::measure(small, posenc::bench_machine(), {.seconds = 0.01});
  if (!row) return 1;
  std::printf("rotated %d times\n", row->runs);
}
