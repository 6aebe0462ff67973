// Attention with each scheme, in turns with the same without position and with matrix products
// alone.
#include "posenc/attention.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "evidence/bench/harness/blas.h"
#include "evidence/bench/harness/limits.h"
#include "evidence/bench/harness/machine.h"
#include "evidence/bench/harness/products16.h"
#include "evidence/bench/harness/timing.h"
#include "posenc/bench.h"
#include "posenc/content.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"
#include "src/core/try.h"
#include "src/core/words.h"

namespace posenc {
namespace {

using detail::Action, detail::Timed;

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& value : x) value = static_cast<float>(random() % 2001) / 1000 - 1;
  return x;
}

// Within ±0.1, as learned numbers are.
std::vector<double> random_numbers(std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::minstd_rand random(7);
  for (double& value : values) value = (static_cast<double>(random() % 2001) / 1000 - 1) / 10;
  return values;
}

Table random_table(std::int64_t rows, std::int64_t columns) {
  return Table::own(random_numbers(rows * columns), rows, columns);
}

// "rope distance_map=rerope": a name, then fields.
Expected<Scheme> scheme_of(std::string_view text) {
  const std::vector<std::string_view> words = detail::split(text).list();
  Expected<Scheme> scheme = make_scheme(words.empty() ? text : words[0]);
  if (!scheme || words.empty()) return scheme;
  POSENC_TRY(fields, written_fields("bench attend", std::span(words).subspan(1)));
  POSENC_CHECK(set_fields(*scheme, fields));
  return scheme;
}

Expected<Plan> plan_of(const AttendCase& what) {
  POSENC_TRY(scheme, scheme_of(what.scheme));
  if (auto* vectors = std::get_if<Decomposed>(&scheme))
    vectors->row_vectors = vectors->column_vectors = random_table(2 * what.grid - 1, what.head_dim);
  if (auto* xl = std::get_if<TransformerXl>(&scheme)) {
    const std::int64_t width = what.heads * what.head_dim;
    xl->projection = random_table(width, width);
    xl->content_bias = xl->position_bias = random_table(what.heads, what.head_dim);
  }
  POSENC_TRY(plan, compile(scheme, {.width = what.heads * what.head_dim,
                                    .heads = what.heads,
                                    .kv_heads = what.kv_heads,
                                    .head_dim = what.head_dim,
                                    .length = what.length,
                                    .grid_height = what.grid,
                                    .grid_width = what.grid}));
  if (plan.add)
    return fail("bench attend", "the scheme must act in attention", what.scheme,
                "what is added to embeddings costs nothing there: posenc bench add");
  if (auto* bias = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
      bias != nullptr && !bias->values)
    bias->values = random_table(what.heads, bias->row_count);
  if (Mix* const mix = plan.rotate ? std::get_if<Mix>(&plan.rotate->kind) : nullptr) {
    mix->heads = what.kv_heads;
    mix->cosine = mix->sine = random_numbers(mix->heads * mix->inputs * mix->outputs);
  }
  if (plan.relative) {
    for (Table* table : {&plan.relative->query, &plan.relative->key, &plan.relative->value}) {
      const bool of_values = table == &plan.relative->value;
      if (!*table)
        *table = random_table(plan.relative->row_count,
                              of_values ? what.head_dim : plan.relative->columns(what.head_dim));
    }
  }
  return std::move(plan);
}

// What families do to logits, at their strengths: Gemma 2's softcap, Llama 4's temperature from
// 8192 tokens on, here from the first hundred. Sinks are among the inputs.
Expected<void> set_softmax(Logits& logits, const std::string& softmax) {
  if (softmax == "softcap") {
    logits.softcap = 50;
  } else if (softmax == "temperature") {
    logits.beta = 0.1;
    logits.floor = 100;
  } else if (!softmax.empty() && softmax != "sinks") {
    return fail("bench attend", "softmax must be sinks, softcap or temperature", softmax);
  }
  return {};
}

// The attention that is measured: a plan's, or that of a scheme that reads the content beside the
// empty plan.
struct Measured {
  Plan plan = {};
  std::optional<ContentScheme> content = {};
};

Expected<Measured> measured_of(const AttendCase& what) {
  if (Expected<ContentScheme> content = make_content_scheme(what.scheme)) {
    // Of the sizes that papers have; gates are open for the most part.
    randomize(*content, {.seed = 7,
                         .heads = what.heads,
                         .kv_heads = what.kv_heads,
                         .length = what.length,
                         .head_dim = what.head_dim,
                         .hidden = 32,
                         .positions = 64,
                         .columns = 8,
                         .open = 3});
    return Measured{.content = std::move(*content)};
  }
  POSENC_TRY(plan, plan_of(what));
  POSENC_CHECK(set_softmax(plan.logits, what.softmax));
  return Measured{.plan = std::move(plan)};
}

// A tensor of the case's dtype and the memory it lies in.
struct Memory {
  std::vector<float> storage;
  Tensor view;
  Memory(const AttendCase& what, std::int64_t heads, std::int64_t tokens, unsigned seed)
      : Memory(what, what.dtype, heads, tokens, seed) {}
  Memory(const AttendCase& what, DType dtype, std::int64_t heads, std::int64_t tokens,
         unsigned seed)
      : storage(random_floats(heads * tokens * what.head_dim, seed)),
        view(Tensor::dense(storage.data(), dtype, {1, heads, tokens, what.head_dim})) {
    if (dtype == DType::f32) return;
    if (has_8_bits(dtype)) {
      fill_bytes();
      return;
    }
    // 16 bits over the first half of the same memory.
    for (std::int64_t i = 0; i < view.size(); ++i)
      view.set(i, static_cast<double>(storage[static_cast<std::size_t>(i)]));
  }

 private:
  // Bytes of numbers of order 1 over the first quarter.
  void fill_bytes() {
    auto* const bytes = static_cast<std::uint8_t*>(view.data);
    std::minstd_rand random(5);
    for (std::int64_t i = 0; i < bytes_of(view.dtype, view.size()); ++i) {
      const auto byte = static_cast<std::uint8_t>(random() >> 8);
      const bool of_factor = view.dtype == DType::q8_0 && i % q8_block_bytes < 2;
      bytes[i] = of_factor ? (i % q8_block_bytes == 1 ? 0x20 : 0)
                 : view.dtype == DType::q8_0
                     ? byte
                     : static_cast<std::uint8_t>((byte & 0x80U) | byte % 0x40);
    }
  }
};

Expected<void> check(const AttendCase& what, const BenchMachine& machine) {
  const std::pair<const char*, std::int64_t> least_one[] = {{"heads", what.heads},
                                                            {"kv_heads", what.kv_heads},
                                                            {"head_dim", what.head_dim},
                                                            {"length", what.length},
                                                            {"threads", what.threads}};
  for (const auto& [name, value] : least_one) {
    if (value < 1)
      return fail("bench attend", std::string(name) + " must be 1 or more", std::to_string(value));
  }
  if (what.heads % what.kv_heads != 0)
    return fail("bench attend", "heads must be a multiple of kv_heads",
                std::to_string(what.heads) + " and " + std::to_string(what.kv_heads));
  if (what.grid > 0 && what.length % (what.grid * what.grid) != 0)
    return fail("bench attend", "length must be a whole number of grids",
                std::to_string(what.length) + " and " + std::to_string(what.grid));
  if (what.packed > 0 && (what.decode || what.backward || what.grid > 0))
    return fail("bench attend", "texts are packed for attention forwards, without --grid",
                std::to_string(what.packed));
  if (what.cache_dtype && (what.backward || *what.cache_dtype == DType::f64))
    return fail("bench attend", "a cache of 8 bits is read forwards, of another dtype not at all",
                name(*what.cache_dtype));
  if (what.cache_dtype == DType::q8_0 && what.head_dim % q8_block != 0)
    return fail("bench attend", "q8_0 must have a multiple of 32 channels",
                std::to_string(what.head_dim));
  if (what.dtype == DType::f64)
    return fail("bench attend", "only float32, float16 and bfloat16 are measured", "float64");
  const double bytes = 4 * static_cast<double>(2 * what.heads + 2 * what.kv_heads) *
                       static_cast<double>(what.head_dim) * static_cast<double>(what.length);
  if (bytes > 0.5 * static_cast<double>(machine.memory_available))
    return fail("bench attend", "the tensors must fit half the available memory",
                std::to_string(bytes / 1e9) + " GB", "make them smaller");
  return {};
}

}  // namespace

std::int64_t AttendCase::cache_bytes() const {
  return bytes_of(cache_dtype.value_or(dtype), 2 * kv_heads * length * head_dim);
}

double AttendRow::gflops() const {
  const double products = what.backward ? 5 : 2;
  return 2e-9 * products * static_cast<double>(what.heads * what.head_dim) *
         static_cast<double>(what.visible_pairs()) / seconds;
}

double AttendRow::gemm_gflops() const {
  if (gemm_seconds == 0) return 0;
  const auto n = static_cast<double>(gemm_length);
  return 4e-9 * n * n * static_cast<double>(what.head_dim) / gemm_seconds;
}

double AttendRow::gemm16_gflops() const {
  if (gemm16_seconds == 0) return 0;
  const auto n = static_cast<double>(gemm_length);
  return 4e-9 * n * n * static_cast<double>(what.head_dim) / gemm16_seconds;
}

std::vector<AttendCase> attend_cases(int threads) {
  std::vector<AttendCase> cases;
  for (const char* scheme : {"nope", "rope", "pope", "fope", "alibi", "t5", "kerple", "shaw"})
    cases.push_back({.name = "causal", .scheme = scheme, .threads = threads});
  for (const SchemeInfo& scheme : all_content_schemes())
    cases.push_back({.name = "causal",
                     .scheme = std::string(scheme.name),
                     .length = scheme.reads == Reads::keys ? 2048 : 4096,
                     .threads = threads});
  for (const char* scheme : {"profiles", "transformer_xl bidirectional=false",
                             "rope distance_map=rerope map_window=1024",
                             "rope distance_map=dual_chunk chunk_size=1024 local_size=256"})
    cases.push_back({.name = "causal", .scheme = scheme, .threads = threads});
  // A picture, and Swin's windows of 7 × 7, which see themselves whole.
  for (const char* scheme : {"grid_bias", "decomposed"})
    cases.push_back({.name = "picture", .scheme = scheme, .grid = 64, .threads = threads});
  // A page of words, which see each other whole.
  cases.push_back({.name = "page",
                   .scheme = "axis_buckets",
                   .heads = 12,
                   .kv_heads = 12,
                   .length = 512,
                   .page = true,
                   .threads = threads});
  cases.push_back({.name = "windows",
                   .scheme = "grid_bias",
                   .heads = 4,
                   .kv_heads = 4,
                   .head_dim = 32,
                   .length = 64 * 49,
                   .grid = 7,
                   .threads = threads});
  for (const DType dtype : {DType::bf16, DType::f16})
    cases.push_back({.name = "causal", .scheme = "rope", .dtype = dtype, .threads = threads});
  for (const char* softmax : {"sinks", "softcap", "temperature"})
    cases.push_back({.name = softmax, .softmax = softmax, .threads = threads});
  cases.push_back({.name = "grouped", .scheme = "rope", .kv_heads = 4, .threads = threads});
  // Memory must not grow with them.
  for (const std::int64_t length : {512, 2048, 8192, 32768})
    cases.push_back({.name = "length",
                     .scheme = "rope",
                     .heads = 1,
                     .kv_heads = 1,
                     .length = length,
                     .threads = threads});
  for (const char* scheme : {"nope", "alibi"})
    cases.push_back(
        {.name = "decode", .scheme = scheme, .length = 32768, .decode = true, .threads = threads});
  for (const char* scheme : {"nope", "rope"})
    for (const std::int64_t length : {128, 256, 512})
      cases.push_back({.name = "short",
                       .scheme = scheme,
                       .length = length,
                       .long_length = 4096,
                       .threads = threads});
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t packed : {128, 512})
      cases.push_back({.name = "packed",
                       .scheme = "rope",
                       .packed = packed,
                       .long_length = 4096,
                       .dtype = dtype,
                       .threads = threads});
  for (const std::int64_t head_dim : {32, 64})
    for (const std::int64_t length : {64, 128, 256, 512, 1024, 2048})
      cases.push_back({.name = "backward",
                       .scheme = "rope",
                       .heads = 8,
                       .kv_heads = 8,
                       .head_dim = head_dim,
                       .length = length,
                       .backward = true,
                       .threads = threads});
  for (const char* scheme : {"nope", "alibi", "t5", "shaw"})
    cases.push_back({.name = "backward",
                     .scheme = scheme,
                     .heads = 8,
                     .kv_heads = 8,
                     .length = 1024,
                     .backward = true,
                     .threads = threads});
  return cases;
}

namespace {

// [3][1][words]: the place in the text, and a place on the page in thousandths, line by line of
// twelve words.
Positions words_of_a_page(std::int64_t words) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(3 * words));
  for (std::int64_t t = 0; t < words; ++t) {
    ids[static_cast<std::size_t>(t)] = t;
    ids[static_cast<std::size_t>(words + t)] = 60 + t % 12 * 73 + t * 7 % 11;
    ids[static_cast<std::size_t>(2 * words + t)] = t / 12 * 18 % 1000;
  }
  return Positions::ids(ids, 3).value();
}

// Texts of `each` tokens, the last of what is left.
Positions packed_texts(std::int64_t tokens, std::int64_t each) {
  std::vector<std::int64_t> bounds = {0};
  while (bounds.back() < tokens) bounds.push_back(std::min(bounds.back() + each, tokens));
  return Positions::packed(bounds).value();
}

// The tensors of a case at a length.
struct Problem {
  AttendCase what;
  Memory q, out, gradient, by_q;
  Memory kv, by_kv;  // keys, then values, in one piece, so that they are read as one
  std::vector<float> sinks, profiles;
  Positions keys, queries;

  Problem(const AttendCase& of, std::int64_t length)
      : what(at(of, length)),
        q(what, what.heads, query_count(), 1),
        out(what, what.heads, query_count(), 4),
        gradient(what, what.heads, what.backward ? length : 0, 6),
        by_q(what, what.heads, what.backward ? length : 0, 7),
        kv(what, what.cache_dtype.value_or(what.dtype), 2 * what.kv_heads, length, 2),
        by_kv(what, 2 * what.kv_heads, what.backward ? length : 0, 8),
        sinks(random_floats(what.heads, 9)),
        profiles(
            random_floats(what.scheme == "profiles" ? what.heads * query_count() * 16 : 0, 10)),
        keys(Positions::range(0, length)),
        queries(Positions::range(length - query_count(), query_count())) {
    if (what.grid > 0) keys = queries = grid_positions(what.grid, what.grid).value().queries;
    if (what.packed > 0) keys = queries = packed_texts(length, what.packed);
    if (what.page) {
      keys = words_of_a_page(length);
      queries = keys.slice(0, length - query_count(), query_count());
    }
  }

  // `with`: also what no plan holds. The same attention without position is without that, too.
  AttentionInputs inputs(bool with) const {
    AttentionInputs in{pictures(q.view),
                       pictures(half(kv, 0)),
                       pictures(half(kv, 1)),
                       queries,
                       keys,
                       {.causal = what.grid == 0 && !what.page},
                       Threads{what.threads}};
    if (with && !profiles.empty())
      in.profiles.query = Tensor::dense(const_cast<float*>(profiles.data()), DType::f32,
                                        {1, what.heads, query_count(), 16});
    if (with && what.softmax == "sinks")
      in.sink_logits = Tensor::dense(const_cast<float*>(sinks.data()), DType::f32, {what.heads});
    return in;
  }
  Action forwards(const Measured& by, bool with = true) const {
    return [this, &by, with] {
      return by.content ? attend(inputs(with), *by.content, by.plan, out.view)
                        : attend(inputs(with), by.plan, pictures(out.view));
    };
  }
  Action backwards(const Measured& by, bool with) const {
    return [this, &by, with] {
      const Tensor for_q = by_q.view, for_k = half(by_kv, 0), for_v = half(by_kv, 1);
      return by.content ? attend_backward(inputs(with), *by.content, by.plan, gradient.view,
                                          ContentGradients{.q = for_q, .k = for_k, .v = for_v})
                        : attend_backward(inputs(with), by.plan, gradient.view,
                                          {.q = for_q, .k = for_k, .v = for_v});
    };
  }
  Action asked(const Measured& by, bool with = true) const {
    return what.backward ? backwards(by, with) : forwards(by, with);
  }

 private:
  static AttendCase at(AttendCase what, std::int64_t length) {
    what.length = length;
    return what;
  }
  std::int64_t query_count() const { return what.decode ? 1 : what.length; }
  // Tokens of a head as sequences of a batch, a grid each.
  Tensor pictures(const Tensor& view) const {
    if (what.grid == 0) return view;
    Tensor each = view;
    const std::int64_t patches = what.grid * what.grid;
    each.shape[0] = view.shape[2] / patches;
    each.stride[0] = patches * view.stride[2];
    each.shape[2] = patches;
    return each;
  }
  Tensor half(const Memory& both, std::int64_t which) const {
    Tensor view = both.view;
    view.shape[1] = what.kv_heads;
    view.data = static_cast<char*>(view.data) + which * what.cache_bytes() / 2;
    return view;
  }
};

}  // namespace

Expected<AttendRow> measure_attend(const AttendCase& what, const BenchMachine& machine,
                                   const BenchEffort& effort) {
  POSENC_CHECK(check(what, machine));
  POSENC_TRY(measured, measured_of(what));
  const Problem problem(what, what.length);
  const bool beside_long = what.long_length > 0;
  AttendCase whole = what;  // one text
  whole.packed = 0;
  const Problem far(whole, beside_long ? what.long_length : 1);
  AttendCase far_case = whole;
  far_case.length = far.what.length;
  POSENC_TRY(far_measured, measured_of(far_case));
  const Measured none;
  const Action act = problem.asked(measured), bare = problem.asked(none, false),
               forward = problem.forwards(measured), at_length = far.asked(far_measured);
  const Action read = [&]() -> Expected<void> {
    detail::read_all(problem.kv.view.data, what.cache_bytes(), what.threads);
    return {};
  };
  AttendRow row{.what = what};
  row.gemm_length = std::min<std::int64_t>(what.length, 4096);
  const std::int64_t n = row.gemm_length;
  const detail::Blas* const blas = detail::Blas::found(machine.instruction_set);
  const std::vector<float> a = random_floats(n * what.head_dim, 5), b = a;
  std::vector<float> c, d(a.size());
  if (blas != nullptr) c.resize(static_cast<std::size_t>(n * n));
  const Action gemm = [&]() -> Expected<void> {
    blas->multiply({a.data()}, {b.data(), true}, c.data(), n, n, what.head_dim, what.threads);
    blas->multiply({c.data()}, {b.data()}, d.data(), n, what.head_dim, n, what.threads);
    return {};
  };

  detail::AttentionProducts16 products16(n, what.head_dim);
  const bool in_pairs =
      what.dtype == DType::bf16 && !what.decode && !what.backward && products16.present();
  const Action gemm16 = [&]() -> Expected<void> {
    products16.multiply();
    return {};
  };

  const detail::PeakMemory peak;
  POSENC_CHECK(act());
  row.peak_bytes = peak.bytes();
  const auto start = std::chrono::steady_clock::now();
  const Timed act_time(act, what.threads), bare_time(bare, what.threads),
      read_time(read, what.threads), forward_time(forward, what.threads),
      long_time(at_length, what.threads);
  const std::optional<Timed> gemm_time =
      blas != nullptr ? std::optional<Timed>(std::in_place, gemm, what.threads) : std::nullopt;
  const std::optional<Timed> gemm16_time =
      in_pairs ? std::optional<Timed>(std::in_place, gemm16, what.threads) : std::nullopt;
  std::vector<double> acts, bares, reads, gemms, gemms16, ratios, forwards, longs;
  const auto least = static_cast<std::size_t>(std::max(effort.least_runs, 1));
  constexpr double warm_seconds = 0.05;  // what takes longer than this finds its own in no cache
  while (true) {
    // What was measured last, larger than the caches are, left nothing of a short text in them.
    if (acts.empty() || acts.back() < warm_seconds) (void)act();
    acts.push_back(act_time.once());
    bares.push_back(bare_time.once());
    reads.push_back(read_time.once());
    if (gemm_time) gemms.push_back(gemm_time->once());
    if (gemm16_time) gemms16.push_back(gemm16_time->once());
    if (what.backward) forwards.push_back(forward_time.once());
    if (beside_long) longs.push_back(long_time.once());
    ratios.push_back(acts.back() / bares.back());
    if (acts.size() < least) continue;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (taken.count() > effort.seconds || detail::error_of_median(ratios) < effort.settled) break;
  }
  row.seconds = detail::median(acts);
  row.nope_seconds = detail::median(bares);
  row.read_seconds = detail::median(reads);
  if (!gemms.empty()) row.gemm_seconds = detail::median(gemms);
  if (!gemms16.empty()) row.gemm16_seconds = detail::median(gemms16);
  if (what.backward) row.forward_seconds = detail::median(forwards);
  if (beside_long)
    row.long_gflops = AttendRow{.what = far.what, .seconds = detail::median(longs)}.gflops();
  return row;
}

}  // namespace posenc
