// Runs a target without a fuzzer: the files given, then mutations of each, the same ones every
// time.
//   replay_NAME [--mutations N] [--seconds S] FILE|FOLDER...
// An input that ends the process is left in replay_NAME-finding, which `replay_NAME --mutations 0`
// runs again.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include <fcntl.h>
#include <unistd.h>

#include "src/core/random.h"
#include "tests/fuzz/check.h"

namespace {

using Input = std::vector<std::uint8_t>;

struct Random : posenc::detail::SplitMix64 {
  using SplitMix64::SplitMix64;
  std::size_t below(std::size_t limit) { return limit ? (*this)() % limit : 0; }
};

// One to four small damages; `other` is an input that parts are taken from.
Input mutated(Input bytes, const Input& other, Random& random) {
  constexpr std::uint8_t hostile[] = {0, 1, 0x7F, 0x80, 0xFF, '"', '[', '{', '-', '9', 'e', ','};
  for (std::size_t times = 1 + random.below(4); times > 0; --times) {
    const std::size_t at = random.below(bytes.size() + 1);
    const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t length = random.below(std::min<std::size_t>(bytes.size() - at, 16) + 1);
    const auto end = here + static_cast<std::ptrdiff_t>(length);
    switch (random.below(6)) {
      case 0:
        if (at < bytes.size()) *here ^= static_cast<std::uint8_t>(1u << random.below(8));
        break;
      case 1: std::fill(here, end, hostile[random.below(std::size(hostile))]); break;
      case 2: bytes.erase(here, end); break;
      case 3: {  // doubled, so that a key stands twice
        const Input part(here, end);
        bytes.insert(here, part.begin(), part.end());
        break;
      }
      case 4: {
        const std::size_t from = random.below(other.size() + 1);
        const std::size_t count = random.below(std::min<std::size_t>(other.size() - from, 64) + 1);
        bytes.insert(here, other.begin() + static_cast<std::ptrdiff_t>(from),
                     other.begin() + static_cast<std::ptrdiff_t>(from + count));
        break;
      }
      default:
        if (random.below(4) == 0) bytes.erase(here, bytes.end());
    }
  }
  return bytes;
}

Input current;
char finding[4096];

void keep(int signal) {
  const int file = open(finding, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  if (file >= 0 && write(file, current.data(), current.size()) >= 0) {
    constexpr char said[] = "the input is kept in ";
    (void)!write(2, said, sizeof said - 1);
    (void)!write(2, finding, std::char_traits<char>::length(finding));
    (void)!write(2, "\n", 1);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(Input input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

std::vector<Input> read_seeds(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);  // a folder's own order is another one on each machine
  std::vector<Input> seeds = {{}};
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "cannot read %s\n", file.c_str());
      std::exit(2);
    }
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace

int main(int count, char** arguments) {
  double seconds = 2;
  std::size_t mutations = 1000;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--seconds" && i + 1 < count) {
      seconds = std::atof(arguments[++i]);
    } else if (word == "--mutations" && i + 1 < count) {
      mutations = std::strtoull(arguments[++i], nullptr, 10);
    } else {
      paths.push_back(word);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: %s [--mutations N] [--seconds S] FILE|FOLDER...\n", arguments[0]);
    return 2;
  }
  std::snprintf(finding, sizeof finding, "%s-finding", arguments[0]);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, keep);

  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const std::vector<Input> seeds = read_seeds(paths);
  for (const Input& seed : seeds) run(seed);
  // A mutation of every seed in turn, so that a slow machine leaves out the last rounds and no
  // seed.
  Random random(0);
  std::size_t runs = seeds.size();
  for (std::size_t round = 0; round < mutations; ++round) {
    if (std::chrono::duration<double>(Clock::now() - start).count() > seconds) break;
    for (const Input& seed : seeds) {
      run(mutated(seed, seeds[random.below(seeds.size())], random));
      ++runs;
    }
  }
  std::printf("%zu seeds, %zu inputs, no finding\n", seeds.size(), runs);
}
