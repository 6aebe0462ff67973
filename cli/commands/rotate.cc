#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/source.h"
#include "cli/command.h"
#include "cli/pages/progress.h"
#include "posenc/apply.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// The tensor as [batch, head, seq, dim]. The axes named are taken; of the others the last is dim,
// and seq, head and batch follow from the right where they were not named.
Expected<Tensor> arranged(const Tensor& tensor, std::optional<std::int64_t> head,
                          std::optional<std::int64_t> seq) {
  const std::int64_t rank = tensor.rank;
  if (rank < 2) return fail("rotate", "the tensor must have 2, 3 or 4 axes", std::to_string(rank));
  for (auto* axis : {&head, &seq}) {
    if (!*axis) continue;
    const char* flag = axis == &head ? "--head_axis" : "--seq_axis";
    if (**axis < -rank || **axis >= rank)
      return fail(flag, "the tensor has " + std::to_string(rank) + " axes", std::to_string(**axis));
    if (**axis < 0) **axis += rank;
  }
  if (head && head == seq)
    return fail("--seq_axis", "must not be the head axis", std::to_string(*seq));
  std::vector<std::int64_t> rest;
  for (std::int64_t axis = 0; axis < rank; axis++)
    if (axis != head && axis != seq) rest.push_back(axis);
  std::int64_t order[4] = {-1, head.value_or(-1), seq.value_or(-1), -1};
  for (const int place : {3, 2, 1, 0}) {
    if (order[place] >= 0 || rest.empty()) continue;
    order[place] = rest.back();
    rest.pop_back();
  }
  if (order[3] < 0) return fail("rotate", "no axis is left for the channels", std::to_string(rank));
  Tensor out = tensor;
  out.rank = 4;
  for (std::size_t place = 0; place < 4; place++) {
    const auto axis = static_cast<std::size_t>(order[place]);
    out.shape[place] = order[place] < 0 ? 1 : tensor.shape[axis];
    out.stride[place] = order[place] < 0 ? 0 : tensor.stride[axis];
  }
  return out;
}

Angles angles_named(const std::string& word) {
  for (const Angles angles : {Angles::hf_float, Angles::ggml_float})
    if (word == name(angles)) return angles;
  return Angles::exact;
}

// Where tokens stand: at whole positions, at real ones, or turned by angles.
struct Where {
  Positions whole = Positions::range(0, 0);
  std::optional<Array> numbers = {};
  Tensor reals = {}, angles = {};  // of `numbers`: [axis][1][seq], [1][head or 1][seq][pair]
};

Expected<Where> where_of(const std::string& positions_text, const std::string& by,
                         std::int64_t seq) {
  Where where;
  const std::string& file = by.empty() ? positions_text : by;
  const auto wrong_count = [&](std::int64_t count) {
    return fail(by.empty() ? "--positions" : "--by",
                "one for each of the tensor's " + std::to_string(seq) + " tokens",
                std::to_string(count), "say which axis is the sequence with --seq_axis");
  };
  if (file.empty()) return fail("rotate", "--positions is required", "", "write it like 0:4096");
  if (by.empty()) {
    POSENC_TRY(real, real_positions(file));
    if (real) {
      if (real->at.shape[2] != seq) return wrong_count(real->at.shape[2]);
      where.numbers = std::move(real->numbers);
      where.reals = real->at;
      return where;
    }
    POSENC_TRY(whole, positions(file));
    if (whole.size() != seq) return wrong_count(whole.size());
    where.whole = std::move(whole);
    return where;
  }
  if (!names_array(file))
    return fail("--by", "must be a .npy file, or FILE:TENSOR of a .safetensors file", by);
  POSENC_TRY(array, read_array(file));
  where.numbers = std::move(array);
  POSENC_TRY(given, tensor_of(*where.numbers, "", file));
  if (given.rank < 2 || given.rank > 3)
    return fail(file, "must be [seq][pair] or [head][seq][pair]",
                std::to_string(given.rank) + " axes");
  where.angles = given.with_rank(4);
  if (where.angles.shape[2] != seq) return wrong_count(where.angles.shape[2]);
  return where;
}

// Tokens first to first + count - 1.
Tensor tokens_of(Tensor x, std::int64_t first, std::int64_t count, std::size_t seq = 2) {
  if (!x) return x;
  x.data = static_cast<std::byte*>(x.data) +
           x.stride[seq] * first * static_cast<std::int64_t>(size_of(x.dtype));
  x.shape[seq] = count;
  return x;
}

// In place.
Expected<void> rotated(const Plan& plan, const Tensor& x, const Where& where, Side side,
                       bool inverse) {
  if (!where.numbers)
    return inverse ? rotate_inverse(plan, x, where.whole, side, x)
                   : rotate(plan, x, where.whole, side, x);
  std::vector<double> memory;
  Tensor angles = where.angles;
  if (where.reals && plan.rotate) {
    const std::int64_t heads = plan.rotate->frequencies.heads, pairs = plan.rotate->pairs();
    memory.resize(static_cast<std::size_t>(heads * x.shape[2] * pairs));
    angles = Tensor::dense(memory.data(), {1, heads, x.shape[2], pairs});
    POSENC_CHECK(rotation_angles(plan, where.reals, angles));
  }
  return inverse ? rotate_by_inverse(plan, x, angles, side, x)
                 : rotate_by(plan, x, angles, side, x);
}

// The same a few tokens after another, whose rows depend on their own positions alone.
Expected<void> rotated_in_parts(const Plan& plan, const Tensor& x, const Where& where, Side side,
                                bool inverse, Waiting& waiting) {
  constexpr std::int64_t at_once = std::int64_t{1} << 24;  // numbers
  const std::int64_t seq = x.shape[2], of_token = x.shape[0] * x.shape[1] * x.shape[3],
                     step =
                         std::max<std::int64_t>(1, at_once / std::max<std::int64_t>(1, of_token));
  for (std::int64_t first = 0; first < seq; first += step) {
    const std::int64_t count = std::min(step, seq - first);
    Where part = where;
    if (!where.numbers) part.whole = where.whole.slice(0, first, count);
    part.reals = tokens_of(where.reals, first, count);
    part.angles = tokens_of(where.angles, first, count);
    POSENC_CHECK(rotated(plan, tokens_of(x, first, count), part, side, inverse));
    waiting.share(static_cast<double>(first + count) / static_cast<double>(seq));
  }
  return {};
}

bool rotates_nothing(const Plan& plan) {
  return !plan.rotate && (plan.add || plan.bias || plan.relative);
}
auto nothing_rotates() {
  return fail("rotate", "this encoding rotates nothing", "", "see posenc add and posenc bias");
}

Run define_rotate(CLI::App& app) {
  struct Options {
    std::string in, out, positions, by, dtype, side = "q", angles = "exact";
    std::optional<std::int64_t> head_axis, seq_axis;
    bool inverse = false;
    std::optional<Source> source;
  };
  auto options = std::make_shared<Options>();
  app.add_option("IN", options->in,
                 "Queries or keys: .npy, FILE:TENSOR of a .safetensors file, or - for either")
      ->required();
  add_output(app, options->out,
             "Where the rotated tensor goes: .npy, .safetensors (or FILE:TENSOR), .csv, .txt, or - "
             "to print it");
  app.add_option("--positions", options->positions,
                 "0:4096 (4096 not included), 5, 0,2,4, or ids.npy [seq] or [axis][seq]; of "
                 "floats: real positions")
      ->type_name("IDS");
  app.add_option("--by", options->by,
                 "Angles in radians instead, .npy [seq][pair] or [head][seq][pair]")
      ->type_name("FILE")
      ->excludes("--positions");
  app.add_flag("--inverse", options->inverse, "Rotate back");
  app.add_option("--side", options->side, "xPos treats queries and keys differently")
      ->check(CLI::IsMember({"q", "k", "query", "key"}));
  app.add_option("--angles", options->angles,
                 "Whose arithmetic: exact (double), hf_float (Hugging Face), ggml_float (ggml)")
      ->check(CLI::IsMember({"exact", "hf_float", "ggml_float"}));
  app.add_option("--head_axis", options->head_axis, "Default: the tensor is [head][seq][dim]");
  app.add_option("--seq_axis", options->seq_axis, "Of the axes left the last is dim, others batch");
  app.add_option("--dtype", options->dtype, "bfloat16: IN is a .npy of uint16 holding bfloat16")
      ->type_name("TYPE");
  options->source.emplace(app, "rotate");
  app.footer(
      "The tensor's own type is computed in and written: float64 in double throughout, 16-bit "
      "types\n"
      "rounded once. Without --at the model is compiled as constructed, which matters for "
      "scalings\n"
      "that depend on the length (dynamic, longrope).\n\n"
      "Examples:\n"
      "  posenc rotate q.npy out.npy --model llama-3.1-8b --positions 0:4096\n"
      "  posenc rotate k.npy out.npy --model gemma-3-4b --layer 5 --positions ids.npy --side k\n"
      "  posenc rotate q.npy out.npy --scheme rope --rope_theta 1e6 --rope_type linear --factor 4 "
      "\\\n"
      "         --positions 0:128 --seq_axis 0 --head_axis 1\n"
      "  posenc rotate q.npy as_ggml.npy --model llama-3.1-8b --positions 0:4096 --angles "
      "ggml_float\n"
      "  posenc rotate out.npy back.npy --scheme rope --positions 0:4096 --inverse\n"
      "  posenc rotate dump.safetensors:q out.safetensors:q --scheme rope --positions 0:4096");
  return [options]() -> Expected<int> {
    std::optional<Waiting> waiting(std::in_place, "rotate", options->in);
    POSENC_TRY(array, read_array(options->in));
    POSENC_TRY(whole, tensor_of(array, options->dtype, options->in));
    POSENC_TRY(x, arranged(whole, options->head_axis, options->seq_axis));
    POSENC_TRY(where, where_of(options->positions, options->by, x.shape[2]));
    Geometry of_tensor;
    of_tensor.heads = x.shape[1];
    of_tensor.head_dim = x.shape[3];
    const Expected<Plan> plan = options->source->plan(of_tensor, angles_named(options->angles));
    if (!plan) {
      // Where nothing rotates, that is the mistake, whatever the tensor's shape.
      if (const Expected<Plan> known = options->source->plan({}); known && rotates_nothing(*known))
        return nothing_rotates();
      return std::unexpected(plan.error());
    }
    if (rotates_nothing(*plan)) return nothing_rotates();
    if (plan->rotate && plan->rotate->widening() > 0) {
      return fail("rotate", "a rotation must leave a head as wide as it was",
                  "PoPE, which makes a pair of each channel", "posenc attend has it whole");
    }
    const Side side = options->side.starts_with("q") ? Side::query : Side::key;
    // In memory in place; the file read stays as it is.
    if (x.shape[2] > 0)
      POSENC_CHECK(rotated_in_parts(*plan, x, where, side, options->inverse, *waiting));
    if (options->out == "-") waiting.reset();
    POSENC_CHECK(write_array(options->out, array, options->dtype));
    return 0;
  };
}

}  // namespace

extern const Command rotate_command{
    "rotate", "rotate queries or keys (RoPE and its kin), or rotate them back", define_rotate};

}  // namespace posenc::cli
