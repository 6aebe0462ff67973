// What the sweep measures.
#include <algorithm>

#include "posenc/bench.h"

namespace posenc {
namespace {

constexpr std::int64_t far_position = 10'000'000;

// As many tokens as make a working set of four times the cache, in whole thousands of 1024.
struct Long {
  std::int64_t tokens = 0;
  bool capped = false;
};
Long long_enough(const BenchCase& one_token, const BenchMachine& machine) {
  constexpr std::int64_t step = 1024;
  const std::int64_t bytes = one_token.working_set();
  const std::int64_t wanted = (4 * machine.last_level_cache / (bytes * step) + 1) * step;
  const std::int64_t most =
      std::max(machine.memory_available / 4 / (bytes * step), std::int64_t{1}) * step;
  return {std::min(wanted, most), most < wanted};
}

BenchCase in_memory(BenchCase what, const BenchMachine& machine) {
  what.length = 1;
  const Long found = long_enough(what, machine);
  what.length = found.tokens;
  if (found.capped) what.name += ", capped";
  return what;
}

}  // namespace

std::int64_t BenchCase::elements() const { return length * (heads + kv_heads) * head_dim; }

std::int64_t BenchCase::working_set() const {
  return elements() * static_cast<std::int64_t>(size_of(dtype));
}

std::int64_t BenchCase::bytes() const { return working_set() * (op == BenchOp::table ? 1 : 2); }

std::vector<BenchCase> bench_cases(const BenchMachine& machine, int threads) {
  constexpr DType floats = DType::f32;
  constexpr DType types[] = {DType::f32, DType::bf16, DType::f16};
  constexpr Pairing pairings[] = {Pairing::halves, Pairing::interleaved};
  const int base = threads > 0 ? threads : 1;
  const bool scales = threads == 0 && machine.processors > 1;
  std::vector<BenchCase> all;
  // A case, then the same on all processors where that is asked for.
  const auto list = [&](BenchCase what, bool on_all = false) {
    what.threads = base;
    all.push_back(what);
    if (!on_all || !scales) return;
    what.threads = machine.processors;
    all.push_back(what);
  };

  for (const DType dtype : types)
    for (const Pairing pairing : pairings)
      list(in_memory(
               {.name = "memory", .dtype = dtype, .pairing = pairing, .heads = 32, .goal = 0.90},
               machine),
           pairing == Pairing::halves);
  list(in_memory(
      {.name = "memory, q and k", .dtype = DType::bf16, .heads = 32, .kv_heads = 8, .goal = 0.90},
      machine));

  for (const DType dtype : types)
    for (const Pairing pairing : pairings)
      list({.name = "cache", .dtype = dtype, .pairing = pairing, .goal = 0.60},
           dtype == floats && pairing == Pairing::halves);
  list({.name = "cache, from 10M", .first_position = far_position, .goal = 0.60});

  for (const DType dtype : types)
    for (const Pairing pairing : pairings)
      list({.name = "one head", .dtype = dtype, .pairing = pairing, .heads = 1, .goal = 0.30});
  list({.name = "one head, from 10M", .heads = 1, .first_position = far_position, .goal = 0.30});

  BenchCase decode{
      .name = "decode", .heads = 32, .kv_heads = 8, .length = 64, .decode = true, .goal = 0.25};
  for (const DType dtype : types) {
    decode.dtype = dtype;
    list(decode);
  }
  list({.name = "decode, 8 heads", .length = 64, .decode = true, .goal = 0.25});

  for (const DType dtype : types) {
    list(
        in_memory({.name = "memory", .op = BenchOp::rekey, .dtype = dtype, .goal = 0.90}, machine));
    list({.name = "cache", .op = BenchOp::rekey, .dtype = dtype, .goal = 0.90});
  }

  for (const BenchOp op : {BenchOp::table, BenchOp::add}) {
    for (const Pairing pairing : pairings)
      list({.name = "32768 x 1024", .op = op, .pairing = pairing, .length = 32768, .goal = 0.90},
           pairing == Pairing::halves);
    list({.name = "32768 x 1024", .op = op, .dtype = DType::bf16, .length = 32768, .goal = 0.90});
    list({.name = "from 10M",
          .op = op,
          .length = 32768,
          .first_position = far_position,
          .goal = 0.90});
    list(in_memory({.name = "memory", .op = op, .goal = 0.90}, machine));
  }
  return all;
}

}  // namespace posenc
