// Decodes through key-value caches for as long as asked, and compares with attention over the whole
// text in double all along. The caches live as long as the run; their sequences come, grow, shift,
// are evicted from and go. Exits with 1 if an output, a position or the memory is wrong.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <CLI/CLI.hpp>

#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "posenc/cache.h"
#include "posenc/schemes.h"
#include "tests/soak/history.h"

namespace posenc::soak {
namespace {

constexpr std::int64_t longest = 512, trained = 96, sinks = 4, every = 32;

// What a sequence does when it is as long as it gets.
enum class End { go, close, keep, shift };

struct Case {
  const char* name;
  Scheme scheme;
  DType dtype = DType::f32;
  CachedKeys keys = CachedKeys::unrotated;
  End end = End::go;
  std::int64_t page_size = 16, sequences = 3;
  std::int64_t max_pages = 0;  // fewer than the sequences would fill: the longest must go
  Mask mask = {};
  bool by_length = false;  // each length has a plan of its own
};

Table learned(std::int64_t rows, std::int64_t columns) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows * columns; ++i)
    values.push_back(std::sin(static_cast<double>(i * i)));
  return Table::own(std::move(values), rows, columns);
}

std::vector<Case> cases() {
  using enum DType;
  constexpr CachedKeys rotated = CachedKeys::rotated;
  const Rope rope, interleaved{.pairing = Pairing::interleaved, .rotary_dim = 16};
  const Rope dynamic{.scaling = DynamicNtk{.factor = 4, .max_position_embeddings = trained}};
  const Rope yarn{.rotate_values = true,
                  .scaling = Yarn{.original_max_position_embeddings = trained, .dynamic = true}};
  std::vector<double> few(head_dim / 2), many(head_dim / 2);
  for (std::size_t r = 0; r < few.size(); ++r) {
    few[r] = 1 + 0.05 * static_cast<double>(r);
    many[r] = 1 + 1.5 * static_cast<double>(r);
  }
  const Rope long_rope{.scaling = LongRope{.short_factor = few,
                                           .long_factor = many,
                                           .original_max_position_embeddings = trained,
                                           .short_mscale = 1.0,
                                           .long_mscale = 1.2}};
  const T5 t5{.num_buckets = 16, .max_distance = 64, .table = learned(16, heads)};
  const Shaw shaw{.max_distance = 8, .key = learned(17, head_dim), .value = learned(17, head_dim)};
  const std::int64_t one_page = longest + 64;  // a sequence a page: not paged
  return {
      {.name = "RoPE", .scheme = rope},
      {.name = "RoPE", .scheme = rope, .keys = rotated, .page_size = one_page},
      {.name = "RoPE, pool too small", .scheme = rope, .keys = rotated, .max_pages = 64},
      {.name = "RoPE, stream", .scheme = rope, .dtype = f64, .keys = rotated, .end = End::close},
      {.name = "RoPE, stream", .scheme = rope, .dtype = bf16, .end = End::close, .page_size = 1},
      {.name = "RoPE, stream", .scheme = rope, .dtype = bf16, .keys = rotated, .end = End::close},
      {.name = "RoPE, endless", .scheme = rope, .keys = rotated, .end = End::keep, .page_size = 7},
      {.name = "RoPE, endless", .scheme = rope, .dtype = f16, .end = End::keep},
      {.name = "RoPE, shift", .scheme = interleaved, .keys = rotated, .end = End::shift},
      {.name = "RoPE, shift",
       .scheme = interleaved,
       .dtype = f16,
       .keys = rotated,
       .end = End::shift,
       .page_size = one_page},
      {.name = "RoPE, window",
       .scheme = Rope{.rotate_values = true},
       .keys = rotated,
       .mask = {.window = 100}},
      {.name = "dynamic NTK", .scheme = dynamic, .dtype = f64, .keys = rotated, .by_length = true},
      {.name = "dynamic NTK", .scheme = dynamic, .keys = rotated, .by_length = true},
      {.name = "dynamic NTK", .scheme = dynamic, .dtype = bf16, .by_length = true},
      {.name = "dynamic YaRN", .scheme = yarn, .keys = rotated, .by_length = true},
      {.name = "LongRoPE", .scheme = long_rope, .keys = rotated, .by_length = true},
      {.name = "LongRoPE", .scheme = long_rope, .dtype = bf16, .keys = rotated, .by_length = true},
      {.name = "xPos", .scheme = XPos{}, .keys = rotated, .by_length = true},
      {.name = "NoPE, chunks", .scheme = NoPe{}, .dtype = bf16, .mask = {.chunk = 128}},
      {.name = "ALiBi, stream", .scheme = Alibi{}, .dtype = f16, .end = End::close},
      {.name = "T5", .scheme = t5, .page_size = 5},
      {.name = "Shaw, endless", .scheme = shaw, .end = End::keep},
  };
}

// What rounding explains. Logits of normal numbers are off by some u·√d, and outputs by as much; a
// key turned n times was rounded n times more, each time another way.
double allowed(const Case& what, std::int64_t turns) {
  constexpr double of[] = {2e-14, 3e-6, 5e-3, 3e-2};
  return of[static_cast<std::size_t>(what.dtype)] * std::sqrt(1.0 + static_cast<double>(turns));
}

struct Tally {
  std::int64_t tokens = 0, comparisons = 0, wrong = 0;
  std::int64_t moves = 0;              // new sequences, evictions, shifts
  std::int64_t furthest = 0;           // length
  double largest = 0, of_allowed = 0;  // error, and its part of what is allowed
};

class Decoder {
 public:
  Decoder(Case what, unsigned seed, std::int64_t misplaced)
      : what_(std::move(what)), engine_(seed), misplaced_(misplaced) {
    auto made = KvCache::make({.kv_heads = kv_heads,
                               .head_dim = head_dim,
                               .dtype = what_.dtype,
                               .page_size = what_.page_size,
                               .max_pages = what_.max_pages,
                               .keys = what_.keys});
    if (!made) {
      complain(made.error().message());
      return;
    }
    cache_.emplace(*std::move(made));
    if (!what_.by_length) fixed_ = plan(0);
    for (std::int64_t s = 0; s < what_.sequences; ++s) start(static_cast<std::size_t>(s));
  }

  // Some tokens for every sequence.
  void decode(std::int64_t tokens) {
    for (std::int64_t t = 0; t < tokens && tally_.wrong == 0; ++t) {
      if (what_.by_length) {
        for (std::size_t s = 0; s < ids_.size(); ++s) step({&ids_[s], 1}, s, 1);
      } else {
        step(ids_, 0, 1);
      }
      for (std::size_t s = 0; s < ids_.size() && tally_.wrong == 0; ++s)
        if (histories_[s].tokens() >= until_[s]) finish(s);
    }
  }

  // Nothing may be left of sequences that are gone.
  void end() {
    if (!cache_) return;
    for (const KvCache::Sequence id : ids_) check(cache_->remove(id));
    if (cache_->free_pages() != cache_->pages()) complain("pages are lost");
    // Every sequence at its longest, twice for the pool's growth, and one gathered.
    const auto tokens = (2 * what_.sequences + 1) * (longest + 2 * what_.page_size + 64);
    const auto a_token = 2 * kv_size * static_cast<std::int64_t>(size_of(what_.dtype)) + 8;
    if (cache_->bytes() > tokens * a_token)
      complain(fmt::format("the cache has grown to {} bytes", cache_->bytes()));
  }

  const Case& what() const { return what_; }
  const Tally& tally() const { return tally_; }

 private:
  std::int64_t drawn(std::int64_t first, std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(first, last)(engine_);
  }
  void complain(const std::string& why) {
    if (tally_.wrong++ > 0) return;
    fmt::print(stderr, "{}MISMATCH {}, {}, {} after {} tokens: {}\n",
               isatty(STDERR_FILENO) != 0 ? "\r\x1b[K" : "", what_.name, name(what_.dtype),
               what_.keys == CachedKeys::rotated ? "rotated" : "unrotated", tally_.tokens, why);
  }
  void check(const Expected<void>& done) {
    if (!done) complain(done.error().message());
  }
  Plan plan(std::int64_t length) {
    auto made =
        compile(what_.scheme,
                {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .length = length});
    if (!made) complain(made.error().message());
    return made ? *std::move(made) : Plan{};
  }

  // An empty sequence in place s, and its prompt.
  void start(std::size_t s) {
    if (s == ids_.size()) {
      ids_.push_back(cache_->add());
      histories_.emplace_back();
      until_.push_back(0);
    } else {
      check(cache_->remove(ids_[s]));
      ids_[s] = cache_->add();
      histories_[s] = {};
      ++tally_.moves;
    }
    until_[s] = drawn(what_.end == End::go ? 1 : longest / 2, longest);
    step({&ids_[s], 1}, s, drawn(1, 48));
  }

  // `count` tokens for each of some sequences, of which the first is in place `first`.
  void step(std::span<const KvCache::Sequence> ids, std::size_t first, std::int64_t count) {
    const auto sequences = static_cast<std::int64_t>(ids.size());
    Numbers k(what_.dtype, sequences, kv_heads, count), v(what_.dtype, sequences, kv_heads, count),
        q(what_.dtype, sequences, heads, count);
    for (Numbers* numbers : {&k, &v, &q}) numbers->draw(engine_);
    const Numbers out(what_.dtype, sequences, heads, count);
    const Plan own = what_.by_length ? plan(histories_[first].next() + count) : Plan{};
    const Plan& now = what_.by_length ? own : fixed_;
    auto kept = cache_->append(ids, k.view(), v.view(), now, {}, {.count = 1});
    for (; !kept && what_.max_pages > 0 && make_room(first, ids.size());
         kept = cache_->append(ids, k.view(), v.view(), now, {}, {.count = 1})) {
    }
    if (!kept) return complain(kept.error().message());
    for (std::size_t s = 0; s < ids.size(); ++s) {
      History& history = histories_[first + s];
      history.append(k, v, static_cast<std::int64_t>(s), count);
      if (what_.by_length && what_.keys == CachedKeys::rotated && history.next() > trained)
        ++history.turns;
      tally_.furthest = std::max(tally_.furthest, history.next());
    }
    check(cache_->attend(ids, q.view(), now, what_.mask, out.view(), {.count = 1}));
    tally_.tokens += sequences * count;
    for (std::size_t s = 0; s < ids.size() && tally_.wrong == 0; ++s)
      if (count > 1 || drawn(1, every) == 1) compare(first + s, s, q, out, now, count);
  }

  void compare(std::size_t place, std::size_t s, const Numbers& q, const Numbers& out,
               const Plan& now, std::int64_t count) {
    History& history = histories_[place];
    const auto positions = cache_->positions(ids_[place]);
    if (!positions || positions->size() != history.tokens())
      return complain("the cache has other tokens than it was given");
    for (std::int64_t t = 0; t < history.tokens(); ++t)
      if (positions->at(t) != history.positions[static_cast<std::size_t>(t)])
        return complain(fmt::format("token {} stands at {} and not at {}", t, positions->at(t),
                                    history.positions[static_cast<std::size_t>(t)]));
    const double error =
        history.error(q, out, static_cast<std::int64_t>(s), count - 1, now, what_.mask, misplaced_);
    const double most = allowed(what_, history.turns);
    ++tally_.comparisons;
    if (!(error <= most))
      complain(fmt::format("off by {:.3g}, {:.3g} allowed, with {} tokens", error, most,
                           history.tokens()));
    tally_.largest = std::max(tally_.largest, error);
    tally_.of_allowed = std::max(tally_.of_allowed, error / most);
  }

  // A full pool has refused tokens and kept what it had: the longest sequence starts anew.
  bool make_room(std::size_t first, std::size_t count) {
    std::size_t most = first;
    for (std::size_t s = 0; s < ids_.size(); ++s) {
      const auto tokens = cache_->tokens(ids_[s]);
      if (!tokens || *tokens != histories_[s].tokens()) complain("a refused append left tokens");
      if (histories_[s].tokens() > histories_[most].tokens()) most = s;
    }
    if (histories_[most].tokens() == 0) return false;
    if (most >= first && most < first + count) {  // it keeps its place among those that wait
      check(cache_->evict(ids_[most], 0, histories_[most].tokens(), KvCache::Gap::keep));
      histories_[most] = {};
      ++tally_.moves;
      return true;
    }
    start(most);
    return tally_.wrong == 0;
  }

  void finish(std::size_t s) {
    History& history = histories_[s];
    const KvCache::Sequence id = ids_[s];
    if (what_.end == End::go) return start(s);
    const std::int64_t some = drawn(32, 96);
    const bool close = what_.end == End::close;
    const std::int64_t first = what_.end == End::shift ? 0 : sinks;
    check(cache_->evict(id, first, first + some, close ? KvCache::Gap::close : KvCache::Gap::keep));
    history.drop(first, first + some, close);
    if (what_.end == End::shift) {
      check(cache_->shift(id, 0, history.tokens(), -some));
      history.shift(0, history.tokens(), -some);
    }
    ++tally_.moves;
    // A token is rotated by at least 32 positions each time, and gone after `longest` of them.
    if (what_.end != End::keep) history.turns = std::min(history.turns + 1, longest / 32);
  }

  Case what_;
  std::mt19937_64 engine_;
  std::int64_t misplaced_;
  std::optional<KvCache> cache_;
  Plan fixed_;
  std::vector<KvCache::Sequence> ids_;
  std::vector<History> histories_;
  std::vector<std::int64_t> until_;
  Tally tally_;
};

// MiB, of the whole process.
double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Options {
  double seconds = 3600, memory = 256;
  unsigned seed = 1;
  bool misplace = false;
};

int soaked(const Options& options) {
  std::vector<Decoder> decoders;
  for (const Case& what : cases())
    decoders.emplace_back(what, options.seed + static_cast<unsigned>(decoders.size()),
                          options.misplace ? 1 : 0);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Tally all;
  std::string progress_text = "0 tokens";
  double settled = 0;  // peak memory after a quarter of the time
  {
    cli::Progress progress("soak", static_cast<std::size_t>(std::max(options.seconds, 1.0)));
    do {
      all = {};
      for (Decoder& decoder : decoders) {
        decoder.decode(64);
        all.tokens += decoder.tally().tokens;
        all.comparisons += decoder.tally().comparisons;
        all.of_allowed = std::max(all.of_allowed, decoder.tally().of_allowed);
        progress.tell(static_cast<std::size_t>(std::min(passed(), options.seconds)), progress_text);
      }
      progress_text = fmt::format("{} tokens, {} comparisons", cli::grouped(all.tokens),
                                  cli::grouped(all.comparisons));
      if (settled == 0 && passed() > options.seconds / 4) settled = peak_memory();
    } while (passed() < options.seconds);
  }
  for (Decoder& decoder : decoders) decoder.end();

  fmt::print("{:<21}{:<9}{:<10}{:>5}{:>12}{:>12}{:>10}{:>11}{:>9}{:>5}\n", "", "dtype", "keys",
             "page", "tokens", "compared", "moves", "furthest", "error", "");
  all.wrong = 0;
  for (const Decoder& decoder : decoders) {
    const Case& what = decoder.what();
    const Tally& tally = decoder.tally();
    all.wrong += tally.wrong;
    fmt::print("{:<21}{:<9}{:<10}{:>5}{:>12}{:>12}{:>10}{:>11}{:>9.1e}{:>4.0f}%{}\n", what.name,
               name(what.dtype), what.keys == CachedKeys::rotated ? "rotated" : "unrotated",
               what.page_size, cli::grouped(tally.tokens), cli::grouped(tally.comparisons),
               cli::grouped(tally.moves), cli::grouped(tally.furthest), tally.largest,
               std::min(100 * tally.of_allowed, 999.0), tally.wrong > 0 ? "  MISMATCH" : "");
  }
  const double peak = peak_memory();
  fmt::print(
      "{} tokens, {} comparisons in {:.0f} s; the largest error is {:.0f}% of what rounding "
      "explains; peak memory {:.0f} MiB, {:.1f} more than after a quarter of the time\n",
      cli::grouped(all.tokens), cli::grouped(all.comparisons), passed(), 100 * all.of_allowed, peak,
      peak - settled);
  if (peak > options.memory) {
    fmt::print(stderr, "MISMATCH the peak of memory is beyond {} MiB\n", options.memory);
    ++all.wrong;
  }
  return all.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace posenc::soak

int main(int argc, char** argv) {
  posenc::soak::Options options;
  CLI::App app("Decodes through key-value caches and compares with attention over the whole text.");
  app.add_option("--seconds", options.seconds, "How long")->capture_default_str();
  app.add_option("--memory", options.memory, "Most memory, MiB")->capture_default_str();
  app.add_option("--seed", options.seed, "Of the numbers and the lengths")->capture_default_str();
  app.add_flag("--misplace", options.misplace,
               "Tell the truth one token's position wrongly: every case must notice");
  CLI11_PARSE(app, argc, argv);
  return posenc::soak::soaked(options);
}
