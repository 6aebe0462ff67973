// posenc_cuda_device: what only a device shows. First every problem's bits beside the emulated
// grid's, then speed beside the limits of memory.
//
//   posenc_cuda_device                  bits, then the table
//   posenc_cuda_device check            bits alone
//   posenc_cuda_device bench            the table alone, JSON lines
//   posenc_cuda_device emulated         bits, the emulated grid in the place of a device
//   posenc_cuda_device bench-emulated   rows as the table's, of few tokens, whose times say nothing
//   posenc_cuda_device errors           the error of a cosine by position, as CSV
// Exit codes: 0, 1 where bits differ, 2 without a device.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/program/bench.h"
#include "backends/cuda/program/memory.h"
#include "posenc/cuda.h"
#include "posenc/schemes.h"

namespace {

using namespace posenc;
using cuda::Bytes, cuda::Memory, cuda::must, cuda::numbers, cuda::there;

struct Problem {
  const char* name;
  DType dtype;
  Rope rope;
  std::int64_t batch, heads, kv_heads, tokens, dim;
  std::int64_t first;
  cuda::Action action = cuda::Action::forward;
  bool ids_ready = false;
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  const Rope halves, neighbours{.pairing = Pairing::interleaved},
      part{.partial_rotary_factor = 0.5},
      yarn{.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 4096}};
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    all.push_back({"halves", dtype, halves, 2, 32, 8, 333, 128, 0});
    all.push_back({"neighbours", dtype, neighbours, 2, 32, 8, 333, 128, 131'072});
    all.push_back({"far away", dtype, halves, 1, 8, 8, 100, 128, std::int64_t{1} << 61});
    all.push_back({"a part", dtype, part, 1, 5, 1, 77, 96, 5});
    all.push_back({"odd channels", dtype, halves, 1, 3, 3, 50, 62, 5});
    all.push_back({"yarn, transposed", dtype, yarn, 1, 4, 4, 64, 64, 9, cuda::Action::transpose});
    all.push_back({"yarn, inverted", dtype, yarn, 1, 4, 4, 64, 64, 9, cuda::Action::inverse});
    all.push_back({"one token", dtype, halves, 3, 32, 8, 1, 128, 77'777});
    all.push_back(
        {"angles first", dtype, halves, 3, 32, 8, 1, 128, 77'777, cuda::Action::forward, true});
    all.push_back(
        {"neighbours first", dtype, neighbours, 2, 8, 8, 77, 64, 9, cuda::Action::transpose, true});
  }
  return all;
}

Plan plan_of(const Problem& p) {
  return must(
      compile(Scheme(p.rope), {.heads = p.heads, .kv_heads = p.kv_heads, .head_dim = p.dim}));
}

// Queries, then keys, rotated in place by a backend.
Bytes rotated(const Problem& p, const cuda::Backend& backend) {
  const Plan plan = plan_of(p);
  const auto rotations = must(cuda::Rotations::make(std::span(&plan, 1), backend));
  Bytes q = numbers(p.dtype, p.batch * p.heads * p.tokens * p.dim, 1),
        k = numbers(p.dtype, p.batch * p.kv_heads * p.tokens * p.dim, 2);
  const Memory q_there(backend, q), k_there(backend, k);
  const Tensor queries =
                   Tensor::dense(q_there.data(), p.dtype, {p.batch, p.heads, p.tokens, p.dim}),
               keys =
                   Tensor::dense(k_there.data(), p.dtype, {p.batch, p.kv_heads, p.tokens, p.dim});
  must(cuda::rotate(rotations, queries, keys, {.first = p.first}, queries, keys,
                    {.action = p.action, .ids_ready = p.ids_ready}));
  must(backend.copy_out(q.data(), q_there.data(), q.size()));
  must(backend.copy_out(k.data(), k_there.data(), k.size()));
  q.insert(q.end(), k.begin(), k.end());
  return q;
}

// Queries of packed texts in place, keys and values to pages; half of the tokens depend on a second
// plan, every seventh is padding.
Bytes appended(DType dtype, const cuda::Backend& backend) {
  constexpr std::int64_t tokens = 200, heads = 8, kv_heads = 2, dim = 128, pages = 32, page = 16;
  const Geometry geometry{.heads = heads, .kv_heads = kv_heads, .head_dim = dim};
  const Plan plans[] = {must(compile(Scheme(Rope{}), geometry)),
                        must(compile(Scheme(Rope{.scaling = Linear{.factor = 8}}), geometry))};
  const auto rotations = must(cuda::Rotations::make(plans, backend));
  const std::vector<std::int32_t> bounds{0, 90, 91, tokens}, cached{1000, 0, 131'072};
  std::vector<std::int32_t> plan_ids;
  std::vector<std::int64_t> slots;
  for (std::int64_t t = 0; t < tokens; ++t) {
    plan_ids.push_back(t < tokens / 2 ? 0 : 1);
    slots.push_back(t % 7 == 0 ? -1 : t * 37 % (pages * page));
  }
  const Memory bounds_there = there(backend, bounds), cached_there = there(backend, cached),
               plans_there = there(backend, plan_ids), slots_there = there(backend, slots);
  Bytes q = numbers(dtype, heads * tokens * dim, 1), cache[2];
  const Memory q_there(backend, q), k_there(backend, numbers(dtype, kv_heads * tokens * dim, 2)),
      v_there(backend, numbers(dtype, kv_heads * tokens * dim, 3));
  for (Bytes& one : cache) one = numbers(dtype, pages * page * kv_heads * dim, 4);
  const Memory keys(backend, cache[0]), values(backend, cache[1]);
  const auto view = [&](const Memory& memory, std::int64_t count) {
    return Tensor::dense(memory.data(), dtype, {1, tokens, count, dim}).swapped(1, 2);
  };
  const auto pages_of = [&](const Memory& memory) {
    return Tensor::dense(memory.data(), dtype, {pages, page, kv_heads, dim}).swapped(1, 2);
  };
  const Tensor queries = view(q_there, heads);
  must(cuda::rotate_and_append(rotations, queries, view(k_there, kv_heads), view(v_there, kv_heads),
                               {.cu_seqlens = static_cast<const std::int32_t*>(bounds_there.data()),
                                .cached = static_cast<const std::int32_t*>(cached_there.data()),
                                .texts = 3},
                               queries, {},
                               {.keys = pages_of(keys),
                                .values = pages_of(values),
                                .slots = static_cast<const std::int64_t*>(slots_there.data())},
                               {.plan_ids = static_cast<const std::int32_t*>(plans_there.data())}));
  must(backend.copy_out(q.data(), q_there.data(), q.size()));
  must(backend.copy_out(cache[0].data(), keys.data(), cache[0].size()));
  must(backend.copy_out(cache[1].data(), values.data(), cache[1].size()));
  for (const Bytes& one : cache) q.insert(q.end(), one.begin(), one.end());
  return q;
}

// What the fast kernels have not: queries in place by a plan at real or whole positions.
Bytes rotated_specially(DType dtype, const cuda::Backend& backend, const Plan& plan, bool real) {
  constexpr std::int64_t heads = 4, tokens = 100, dim = 64;
  const auto rotations = must(cuda::Rotations::make(std::span(&plan, 1), backend));
  std::vector<double> at;
  for (std::int64_t t = 0; t < tokens; ++t) at.push_back(static_cast<double>(t * 37) / 16 - 20);
  const Memory at_there = there(backend, at);
  Bytes q = numbers(dtype, heads * tokens * dim, 1);
  const Memory q_there(backend, q);
  const Tensor queries = Tensor::dense(q_there.data(), dtype, {1, heads, tokens, dim});
  const auto* ids = static_cast<const double*>(at_there.data());
  must(cuda::rotate(rotations, queries, {}, {.first = 4000, .real_ids = real ? ids : nullptr},
                    queries, {}));
  must(backend.copy_out(q.data(), q_there.data(), q.size()));
  return q;
}

// Embeddings and vectors that are added to them.
Bytes summed(DType dtype, const cuda::Backend& backend, const Scheme& scheme) {
  constexpr std::int64_t batch = 2, tokens = 100, width = 256;
  const Plan plan = must(compile(scheme, {.width = width}));
  const auto additions = must(cuda::Additions::make(plan, backend));
  Bytes x = numbers(dtype, batch * tokens * width, 1);
  const Memory x_there(backend, x);
  const Tensor view = Tensor::dense(x_there.data(), dtype, {batch, tokens, width});
  must(cuda::add(additions, view, {.first = 1'000'000}, view));
  must(backend.copy_out(x.data(), x_there.data(), x.size()));
  return x;
}

Bytes biased(DType dtype, const cuda::Backend& backend, std::int64_t keys) {
  constexpr std::int64_t heads = 6, queries = 30;
  const Plan plan =
      must(compile(Scheme(Alibi{}), {.heads = heads, .kv_heads = heads, .head_dim = 64}));
  const auto biases = must(cuda::Biases::make(plan, backend));
  Bytes map = numbers(dtype, heads * queries * keys, 1);
  const Memory map_there(backend, map);
  must(cuda::bias(biases, {.first = keys - queries}, {},
                  Tensor::dense(map_there.data(), dtype, {heads, queries, keys})));
  must(backend.copy_out(map.data(), map_there.data(), map.size()));
  return map;
}

// The gradient of a rotation's frequencies.
Bytes frequency_gradient(DType dtype, const cuda::Backend& backend) {
  constexpr std::int64_t heads = 4, tokens = 500, dim = 64, parts = 7;
  const Plan plan =
      must(compile(Scheme(Rope{}), {.heads = heads, .kv_heads = heads, .head_dim = dim}));
  const auto rotations = must(cuda::Rotations::make(std::span(&plan, 1), backend));
  const Memory x(backend, numbers(dtype, heads * tokens * dim, 1)),
      gradient(backend, numbers(dtype, heads * tokens * dim, 2));
  Bytes out = numbers(DType::f64, dim / 2, 3);
  const Memory out_there(backend, out), workspace(backend, numbers(DType::f64, parts * dim / 2, 4));
  const auto view = [&](const Memory& memory) {
    return Tensor::dense(memory.data(), dtype, {1, heads, tokens, dim});
  };
  must(
      cuda::rotate_frequency_gradient(rotations, view(x), view(gradient), {.first = 100},
                                      Tensor::dense(workspace.data(), DType::f64, {parts, dim / 2}),
                                      Tensor::dense(out_there.data(), DType::f64, {dim / 2})));
  must(backend.copy_out(out.data(), out_there.data(), out.size()));
  return out;
}

std::uint64_t hash(const Bytes& bytes) {
  std::uint64_t mark = 0xcbf29ce484222325;
  for (const std::byte byte : bytes)
    mark = (mark ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  return mark;
}

bool same(DType dtype, const char* problem, const Bytes& here, const Bytes& there) {
  const bool alike = hash(here) == hash(there);
  std::printf("%-9s %-18s %016llx %s\n", std::string(name(dtype)).c_str(), problem,
              static_cast<unsigned long long>(hash(here)), alike ? "the same bits" : "OTHER BITS");
  return alike;
}

bool check(const cuda::Backend& backend) {
  bool all = true;
  for (const Problem& p : problems())
    all &= same(p.dtype, p.name, rotated(p, cuda::emulated()), rotated(p, backend));
  const Geometry geometry{.heads = 4, .kv_heads = 4, .head_dim = 64};
  const Plan rope = must(compile(Scheme(Rope{}), geometry)),
             xpos = must(compile(Scheme(XPos{}), geometry)),
             hf = must(compile(Scheme(Rope{}), geometry, Angles::hf_float)),
             ggml = must(compile(Scheme(Rope{}), geometry, Angles::ggml_float));
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    // What a problem makes on the emulated grid, and what on the backend.
    const auto both = [&](const char* problem, const auto& work) {
      all &= same(dtype, problem, work(cuda::emulated()), work(backend));
    };
    both("packed, to pages", [&](const auto& where) { return appended(dtype, where); });
    const auto specially = [&](const char* problem, const Plan& plan, bool real) {
      both(problem, [&](const auto& where) { return rotated_specially(dtype, where, plan, real); });
    };
    specially("real positions", rope, true);
    specially("xPos", xpos, false);
    specially("hf_float", hf, false);
    specially("ggml_float", ggml, false);
    both("waves added", [&](const auto& where) { return summed(dtype, where, Sinusoidal{}); });
    both("slopes", [&](const auto& where) { return biased(dtype, where, 512); });
    both("slopes, odd keys", [&](const auto& where) { return biased(dtype, where, 77); });
    both("frequencies", [&](const auto& where) { return frequency_gradient(dtype, where); });
  }
  return all;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (what == "emulated") return check(cuda::emulated()) ? 0 : 1;
  if (what == "errors" || what == "bench-emulated") {
    what == "errors" ? cuda::print_errors() : cuda::measure(cuda::emulated_bench(), true);
    return 0;
  }
  if (what != "" && what != "check" && what != "bench") {
    std::fprintf(stderr,
                 "posenc_cuda_device: no word %s; there are check, bench, emulated, "
                 "bench-emulated, errors\n",
                 words[1]);
    return 1;
  }
  if (const char* missing = cuda::device().find()) {
    std::fprintf(stderr, "posenc_cuda_device: no CUDA device: %s\n", missing);
    return 2;
  }
  if (what != "bench" && !check(cuda::device())) return 1;
  if (what != "check") cuda::measure(cuda::device_bench(), false);
}
