#include "evidence/bench/harness/machine.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "evidence/bench/harness/limits.h"
#include "posenc/bench.h"
#include "src/core/small_letters.h"
#include "src/kernels/ahead.h"
#include "src/kernels/instruction_sets.h"

namespace posenc {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// What follows "key" and a colon in a file of such lines; "" if nothing does.
std::string value_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == line.npos ? "" : line.substr(start);
  }
  return "";
}

// "2048 kB" and sysfs's "272629760K" or "32M", in bytes; 0 if it is no number.
std::int64_t bytes_in(const std::string& text) {
  char* end = nullptr;
  const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
  while (*end == ' ') ++end;
  if (*end == 'k' || *end == 'K') return number << 10;
  if (*end == 'M') return number << 20;
  return number;
}

// The largest of the caches: that of the last level.
std::int64_t last_level_cache() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string size =
        first_line("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    largest = std::max(largest, bytes_in(size));
  }
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (largest == 0)
    largest =
        std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
  constexpr std::int64_t not_told = 32 << 20;
  return largest > 0 ? largest : not_told;
}

}  // namespace

Expected<void> use_instruction_set(std::string_view name) {
  std::string known;
  for (const detail::InstructionSet& set : detail::instruction_sets()) {
    if (detail::small_letters(set.name) == detail::small_letters(name)) {
      detail::use_instruction_set(set.bit);
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(set.name);
  }
  return fail("bench", "the instruction set must be one of this machine's", name, "use " + known);
}

BenchMachine bench_machine() {
  BenchMachine machine;
  machine.processor = value_of("/proc/cpuinfo", "model name");
  if (machine.processor.empty()) machine.processor = "a processor without a name";
  machine.instruction_set = detail::instruction_set();
  machine.processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  machine.last_level_cache = last_level_cache();
  machine.memory_available = bytes_in(value_of("/proc/meminfo", "MemAvailable"));
  if (machine.memory_available == 0) machine.memory_available = std::int64_t{4} << 30;
  return machine;
}

std::vector<std::string> bench_choices() {
  constexpr std::pair<detail::Loop, const char*> loops[] = {
      {detail::Loop::rotation, "rotate"},
      {detail::Loop::sum, "add"},
      {detail::Loop::scaling, "scaling, the limit"}};
  std::vector<std::string> sentences;
  for (const auto& [loop, name] : loops) {
    const detail::AheadChoice choice = detail::chosen_ahead(loop);
    if (!choice.known) continue;
    const auto hundredths = static_cast<int>(choice.gain * 100 + 0.5);
    std::string gain = std::to_string(hundredths % 100);
    if (gain.size() < 2) gain.insert(0, "0");
    const std::string times = std::to_string(hundredths / 100) + "." + gain + " times as fast as ";
    const bool asks = choice.ask != detail::Ask::no;
    sentences.push_back(
        std::string(name) + ": memory " +
        (asks ? "is asked for ahead of its use, for the " : "is not asked for ahead of its use, ") +
        (asks ? choice.ask == detail::Ask::first ? "first cache, " : "second cache, " : "") +
        times + (asks ? "not asking" : "asking"));
  }
  return sentences;
}

namespace detail {

PeakMemory::PeakMemory() {
  // 5 sets the high-water mark back to what is in use (proc(5)).
  std::ofstream reset("/proc/self/clear_refs");
  reset << 5 << std::flush;
  if (reset) before_ = bytes_in(value_of("/proc/self/status", "VmHWM"));
}

std::int64_t PeakMemory::bytes() const {
  if (before_ <= 0) return -1;
  return bytes_in(value_of("/proc/self/status", "VmHWM")) - before_;
}

}  // namespace detail
}  // namespace posenc
