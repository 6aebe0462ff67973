#include "cli/commands/bench_exactness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/pages/json_text.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "cli/system/child.h"
#include "posenc/apply.h"
#include "posenc/emit.h"
#include "posenc/schemes.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t head_dim = 128, pairs = head_dim / 2;
constexpr double base = 10000, goal = 6e-8, seconds_for_one = 300;
constexpr std::int64_t marks[] = {1'000,      10'000,      100'000,      1'000'000,
                                  10'000'000, 100'000'000, 1'000'000'000};

struct Row {
  std::string backend;
  std::int64_t position = 0;
  double error = 0;
  bool ours = true;
  std::optional<bool> same_bits = {};  // as all emitted texts; none: it rounds by itself
};

// A text's runner: {file}, {bin} and {python} are replaced. What it prints are the lines of the
// text's own test. A new one is a row.
struct Runner {
  std::string_view backend, target, command;
};
constexpr Runner runners[] = {
    {"C", "c", "cc -std=c99 -O2 -D POSENC_TEST {file} -lm -o {bin} && {bin}"},
    {"CUDA's text on the host", "cuda",
     "c++ -O2 -ffp-contract=off -D POSENC_TEST -x c++ {file} -o {bin} && {bin}"},
    {"CUDA", "cuda",
     "if nvidia-smi >/dev/null 2>&1; then nvcc -D POSENC_TEST {file} -o {bin} && {bin}; else echo "
     "'there is no device of NVIDIA'; fi"},
    {"Triton", "triton",
     "if nvidia-smi >/dev/null 2>&1; then {python} {file}; else TRITON_INTERPRET=1 {python} "
     "{file}; "
     "fi"},
    {"Pallas", "pallas", "{python} {file}"},
    {"OpenCL", "opencl",
     "cc -D CL_TARGET_OPENCL_VERSION=120 -x c {file} -x none -lOpenCL -lm -o {bin} && {bin}"},
    {"WGSL", "wgsl",
     "if [ -f bindings/webgpu/test/emitted.mjs ]; then node bindings/webgpu/test/emitted.mjs "
     "{file}; "
     "else echo 'its runner is bindings/webgpu/test/emitted.mjs of the sources, from there'; fi"}};

std::string filled(std::string_view command, std::string_view what, const std::string& with) {
  std::string text(command);
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// A folder that goes when this does.
class Folder {
 public:
  Folder() {
    std::error_code failed;
    path_ = std::filesystem::temp_directory_path(failed) /
            ("posenc-exactness-" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(path_, failed);
  }
  ~Folder() {
    std::error_code failed;
    std::filesystem::remove_all(path_, failed);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// "position 1000 error 2.98e-08 bits same"
std::optional<Row> row_of(const std::string& line) {
  std::istringstream words(line);
  std::string of_position, of_error, of_bits, bits;
  Row row;
  words >> of_position >> row.position >> of_error >> row.error >> of_bits >> bits;
  if (!words || of_position != "position" || of_error != "error" || of_bits != "bits") return {};
  row.same_bits = bits == "same";
  return row;
}

struct Ran {
  std::vector<Row> rows;
  std::string reason;  // why there are none
};

Expected<Ran> run(const Runner& runner, const Plan& plan, const std::string& python) {
  const EmitOptions options{.head_dim = head_dim,
                            .title = "RoPE",
                            .positions = {std::begin(marks), std::end(marks)},
                            .every_pair = true};
  POSENC_TRY(text, emit(plan, runner.target, options));
  const Folder folder;
  const auto of_target = std::ranges::find(emit_targets(), runner.target, &EmitTarget::name);
  const std::string file = folder.file("rope" + std::string(of_target->ending));
  std::ofstream(file) << text;
  std::string command = filled(runner.command, "{file}", "'" + file + "'");
  command = filled(command, "{bin}", "'" + folder.file("rope.out") + "'");
  command = filled(command, "{python}", "'" + python + "'");
  const auto child = Child::start({"sh", "-c", "{ " + command + "; } 2>&1; echo \"ended $?\""});
  if (!child) return Ran{{}, child.error().message()};
  Ran ran;
  std::string last = "no answer";
  for (;;) {
    const Expected<std::string> line = (*child)->more(seconds_for_one);
    if (!line) return Ran{{}, line.error().message()};
    if (line->starts_with("ended ")) break;
    if (std::optional<Row> row = row_of(*line)) {
      row->backend = runner.backend;
      ran.rows.push_back(std::move(*row));
    } else if (!line->empty()) {
      last = *line;
    }
  }
  if (ran.rows.empty()) ran.reason = last;
  return ran;
}

struct Unit {
  double cos, sin;
};

// Exact, of the frequency in double: long double holds the product's digits that matter.
Unit exact(std::int64_t position, double frequency) {
  const long double turn = 2 * std::acos(-1.0L);
  const long double angle =
      std::fmod(static_cast<long double>(position) * static_cast<long double>(frequency), turn);
  return {static_cast<double>(std::cos(angle)), static_cast<double>(std::sin(angle))};
}

template <class Made>
double worst(const Plan& plan, std::int64_t position, const Made& made) {
  double error = 0;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const Unit right = exact(position, plan.rotate->at(0, 0, pair)), found = made(pair);
    error = std::max({error, std::abs(found.cos - right.cos), std::abs(found.sin - right.sin)});
  }
  return error;
}

// The library's own kernels: a pair (1, 0) comes out as its cosine and sine.
Expected<std::vector<float>> rotated_here(const Plan& plan, std::int64_t position) {
  std::vector<float> x(static_cast<std::size_t>(head_dim));
  std::fill_n(x.begin(), pairs, 1.0F);
  const Tensor tensor = Tensor::dense(x.data(), {1, 1, 1, head_dim});
  POSENC_CHECK(rotate(plan, tensor, Positions::range(position, 1), Side::query, tensor));
  return x;
}

Expected<void> add_here(std::vector<Row>& rows, const Plan& plan) {
  for (const std::int64_t mark : marks) {
    POSENC_TRY(x, rotated_here(plan, mark));
    const auto at = [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
    rows.push_back({"posenc (CPU)", mark, worst(plan, mark, [&](std::int64_t pair) {
                      return Unit{at(pair), at(pair + pairs)};
                    })});
  }
  return {};
}

void add_others(std::vector<Row>& rows, const Plan& plan) {
  const auto of_angle = [](float angle) { return Unit{std::cos(angle), std::sin(angle)}; };
  for (const std::int64_t mark : marks)
    rows.push_back({"cos of float angles", mark,
                    worst(plan, mark,
                          [&](std::int64_t pair) {
                            return of_angle(static_cast<float>(mark) *
                                            static_cast<float>(plan.rotate->at(0, 0, pair)));
                          }),
                    false});
  for (const std::int64_t mark : marks)
    rows.push_back({"Hugging Face", mark,
                    worst(plan, mark,
                          [&](std::int64_t pair) {
                            const float share =
                                static_cast<float>(2 * pair) / static_cast<float>(head_dim);
                            const float frequency =
                                1.0F / std::pow(static_cast<float>(base), share);
                            return of_angle(static_cast<float>(mark) * frequency);
                          }),
                    false});
}

std::string page(std::span<const Row> rows,
                 std::span<const std::pair<std::string, std::string>> missing,
                 const Terminal& term) {
  std::string out = "Largest error of the cosines and sines of RoPE's 64 pairs, base 10000\n\n";
  std::string header = fmt::format("{:<25}", "position");
  for (const std::int64_t mark : marks)
    header += fmt::format("{:>9}", fmt::format("10^{}", std::lround(std::log10(mark))));
  out += term.bold(header + "  bits") + "\n";
  for (std::size_t i = 0; i < rows.size(); i += std::size(marks)) {
    out += fmt::format("{:<25}", rows[i].backend);
    bool same = true;
    for (std::size_t k = 0; k < std::size(marks); ++k) {
      out += fmt::format("{:>9.1e}", rows[i + k].error);
      same = same && rows[i + k].same_bits.value_or(false);
    }
    out += std::string("  ") +
           (!rows[i].same_bits ? "its own"
            : same             ? "same"
                               : term.yellow("differ")) +
           "\n";
  }
  for (const auto& [backend, why] : missing)
    out += fmt::format("{:<25}", backend) + "  " + term.dim("does not run here: " + why) + "\n";
  return out;
}

}  // namespace

Expected<int> bench_exactness(const std::string& python, bool json) {
  POSENC_TRY(plan,
             compile(Rope{.rope_theta = base}, {.heads = 1, .kv_heads = 1, .head_dim = head_dim}));
  std::vector<Row> rows;
  std::vector<std::pair<std::string, std::string>> missing;
  POSENC_CHECK(add_here(rows, plan));
  {
    Progress progress("bench", std::size(runners));
    for (const Runner& runner : runners) {
      progress.tell(static_cast<std::size_t>(&runner - runners), std::string(runner.backend));
      POSENC_TRY(ran, run(runner, plan, python));
      if (ran.rows.size() == std::size(marks))
        rows.insert(rows.end(), ran.rows.begin(), ran.rows.end());
      else
        missing.emplace_back(runner.backend, ran.reason);
    }
  }
  add_others(rows, plan);
  if (json) {
    std::string text;
    for (const Row& row : rows)
      text += fmt::format(
          "{}{{\"backend\":{},\"position\":{},\"error\":{},\"ours\":{},\"same_bits\":{}}}",
          text.empty() ? "" : ",", json_string(row.backend), row.position, json_number(row.error),
          row.ours, row.same_bits ? (*row.same_bits ? "true" : "false") : "null");
    for (const auto& [backend, why] : missing)
      text += fmt::format("{}{{\"backend\":{},\"missing\":{}}}", text.empty() ? "" : ",",
                          json_string(backend), json_string(why));
    write_out("[{}]\n", text);
  } else {
    write_out("{}", page(rows, missing, terminal(false)));
  }
  return std::ranges::any_of(rows,
                             [](const Row& row) {
                               return row.ours &&
                                      (row.error > goal || !row.same_bits.value_or(true));
                             })
             ? 1
             : 0;
}

}  // namespace posenc::cli
