#include "src/context_parallel/machine.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/context_parallel/sharding.h"
#include "src/text/json.h"

namespace posenc::layout {

// Assumed, not measured: what attention may reach in bfloat16, half of what the memory promises,
// NVLink's bytes one way, and InfiniBand of 400 and 200 Gb/s a rank. A core is that of
// docs/distributed.md on 10 GbE.
std::span<const Machine> machines() {
  static const Machine all[] = {
      {.name = "h100",
       .flops = 4e14,
       .memory = 1.6e12,
       .near_ranks = 8,
       .near_bytes = 4.5e11,
       .near_delay = 5e-6,
       .far_bytes = 5e10,
       .far_delay = 1e-5},
      {.name = "a100",
       .flops = 2e14,
       .memory = 1e12,
       .near_ranks = 8,
       .near_bytes = 3e11,
       .near_delay = 5e-6,
       .far_bytes = 2.5e10,
       .far_delay = 1e-5},
      {.name = "core",
       .flops = 8.7e10,
       .memory = 2.5e10,
       .near_ranks = 1,
       .near_bytes = 2.5e10,
       .near_delay = 1e-6,
       .far_bytes = 1.25e9,
       .far_delay = 2e-5},
  };
  return all;
}

namespace {

struct Number {
  std::string_view name;
  double Machine::* at;
};
constexpr Number numbers[] = {
    {"flops", &Machine::flops},           {"memory", &Machine::memory},
    {"near_bytes", &Machine::near_bytes}, {"near_delay", &Machine::near_delay},
    {"far_bytes", &Machine::far_bytes},   {"far_delay", &Machine::far_delay}};

// 0: no number.
double number_of(std::string_view text) {
  const auto json = posenc::detail::parse_json(text, "number");
  const auto* real = json ? json->get<double>() : nullptr;
  const auto* whole = json ? json->get<std::int64_t>() : nullptr;
  return real ? *real : whole ? static_cast<double>(*whole) : 0;
}

}  // namespace

Expected<Machine> read_machine(std::string_view text) {
  constexpr std::string_view where = "machine";
  std::string_view rest = text;
  const auto next = [&] {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
  };
  const std::string_view name = next();
  const auto at = std::ranges::find(machines(), name, &Machine::name);
  if (at == machines().end())
    return fail(where, "must be a machine that is known", name.substr(0, 60),
                "h100, a100 or core, with other numbers behind it: h100:far_bytes=2.5e10");
  Machine machine = *at;
  while (!rest.empty()) {
    const std::string_view word = next();
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equals),
                           value = word.substr(std::min(equals + 1, word.size()));
    const double number = number_of(value);
    if (!(number > 0) || !std::isfinite(number))
      return fail(where, "must have numbers above 0", word.substr(0, 60), "h100:flops=6e14");
    if (key == "near_ranks") {
      if (number != std::floor(number) || number > 65536)
        return fail(where, "near_ranks must be whole, 65536 at most", value.substr(0, 60));
      machine.near_ranks = static_cast<std::int64_t>(number);
      continue;
    }
    const auto* const member = std::ranges::find(numbers, key, &Number::name);
    if (member == std::end(numbers))
      return fail(where, "has no such number", key.substr(0, 60),
                  "flops, memory, near_ranks, near_bytes, near_delay, far_bytes or far_delay");
    machine.*(member->at) = number;
  }
  return machine;
}

namespace detail {

Expected<void> check(const Machine& machine) {
  for (const Number& number : numbers)
    if (const double value = machine.*(number.at); !(value > 0) || !std::isfinite(value))
      return fail("machine", std::string(number.name) + " must be above 0", number_text(value),
                  "take one of machines(), or read_machine()");
  if (machine.near_ranks < 1)
    return fail("machine", "near_ranks must be 1 or more", std::to_string(machine.near_ranks));
  return {};
}

// A ring computes its own block while the first message travels, and so on; gathered blocks come
// first. Heads are dealt out to all neighbours before and behind it, which nothing hides. The
// slowest way of a ring is that of all its messages, since each rank waits for its neighbour.
double seconds_of(const Load& load, const Machine& machine) {
  const bool ring_is_near = load.ranks <= machine.near_ranks,
             heads_are_near = load.head_ranks <= machine.near_ranks;
  const auto rounds = static_cast<double>(load.rounds);
  const double message = (ring_is_near ? machine.near_delay : machine.far_delay) +
                         load.block_bytes / (ring_is_near ? machine.near_bytes : machine.far_bytes);
  const double merging = load.hides ? load.merged_bytes / machine.memory : 0;
  const double block = load.flops / machine.flops / (rounds + 1) + merging;
  double seconds = load.hides ? block + rounds * std::max(block, message)
                              : (rounds + 1) * block + rounds * message;
  if (load.head_ranks > 1)
    seconds += 2 * static_cast<double>(load.head_ranks - 1) *
                   (heads_are_near ? machine.near_delay : machine.far_delay) +
               load.head_bytes / (heads_are_near ? machine.near_bytes : machine.far_bytes);
  return seconds;
}

}  // namespace detail
}  // namespace posenc::layout
