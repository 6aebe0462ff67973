// Rows as JSON for machines, and what they say together.
#include <cmath>
#include <nlohmann/json.hpp>

#include "posenc/bench.h"

namespace posenc {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const BenchRow& row) {
  const BenchCase& what = row.what;
  return {{"case", what.name},         {"op", name(what.op)},
          {"dtype", name(what.dtype)}, {"pairing", name(what.pairing)},
          {"heads", what.heads},       {"kv_heads", what.kv_heads},
          {"head_dim", what.head_dim}, {"length", what.length},
          {"threads", what.threads},   {"memory", row.ram ? "ram" : "cache"},
          {"bytes", what.bytes()},     {"seconds", row.seconds},
          {"gbps", row.gbps()},        {"limit_gbps", row.limit_gbps()},
          {"ratio", row.ratio()}};
}

Json json_of(const AttendRow& row) {
  const AttendCase& what = row.what;
  const auto known = [](double number) { return number > 0 ? Json(number) : Json(nullptr); };
  Json json{{"case", what.name},
            {"scheme", what.scheme},
            {"dtype", name(what.dtype)},
            {"heads", what.heads},
            {"kv_heads", what.kv_heads},
            {"head_dim", what.head_dim},
            {"length", what.length},
            {"threads", what.threads},
            {"seconds", row.seconds},
            {"gflops", row.gflops()},
            {"gemm_gflops", known(row.gemm_gflops())},
            {"gemm_ratio", known(row.gemm_ratio())},
            {"gemm16_gflops", known(row.gemm16_gflops())},
            {"gemm16_ratio", known(row.gemm16_ratio())},
            {"overhead", row.overhead()},
            {"cache_bytes", what.cache_bytes()},
            {"read_seconds", row.read_seconds},
            {"peak_bytes", row.peak_bytes < 0 ? Json(nullptr) : Json(row.peak_bytes)}};
  if (what.packed > 0) json["packed"] = what.packed;
  if (what.cache_dtype) json["cache_dtype"] = name(*what.cache_dtype);
  if (what.backward) json["of_forward"] = row.of_forward();
  if (what.long_length > 0) json["of_long"] = row.of_long();
  return json;
}

template <class Row>
std::string json_list(std::span<const Row> rows) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(json_of(row));
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The same case but for its name and the two things that notes compare.
bool alike(const BenchCase& a, const BenchCase& b) {
  return a.op == b.op && a.dtype == b.dtype && a.pairing == b.pairing && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.length == b.length &&
         a.decode == b.decode;
}

std::string two_places(double number) {
  std::string text = std::to_string(std::llround(std::abs(number) * 100));
  while (text.size() < 3) text.insert(0, "0");
  return text.insert(text.size() - 2, ".");
}

std::string title(const BenchCase& what) {
  return std::string(name(what.op)) + ", " + what.name + ", " + std::string(name(what.dtype));
}

// Several threads should be 1.8 times as fast as one for every two, where the limit is.
BenchNote threads_note(const BenchRow& one, const BenchRow& many) {
  const double faster = one.seconds / many.seconds, limit = one.limit_seconds / many.limit_seconds;
  const double wanted = 0.9 * many.what.threads / one.what.threads;
  return {std::to_string(many.what.threads) + " threads against " +
              std::to_string(one.what.threads) + ": " + two_places(faster) +
              " times as fast, the limit " + two_places(limit) + " (" + title(one.what) + ")",
          limit >= wanted && faster < wanted};
}

// By ratios: between two rows a busy machine changes its speed, and the limit with it.
BenchNote position_note(const BenchRow& here, const BenchRow& far) {
  const auto kibibytes = [](const BenchRow& row) {
    return row.peak_bytes < 0 ? "unknown" : std::to_string(row.peak_bytes / 1024) + " KiB";
  };
  return {"from position " + std::to_string(far.what.first_position) + ": " +
              two_places(here.ratio() / far.ratio()) + " times the time of position " +
              std::to_string(here.what.first_position) + ", memory " + kibibytes(far) +
              " against " + kibibytes(here) + " (" + title(here.what) + ")",
          false};
}

// Scaling a 16-bit tensor converts it twice; where that is slower than memory, so is the limit.
BenchNote bytes_note(const BenchRow& floats, const BenchRow& halves) {
  return {std::string(name(halves.what.dtype)) + " moves its bytes at " +
              two_places(halves.gbps() / floats.limit_gbps()) +
              " of float32's limit, its own limit at " +
              two_places(halves.limit_gbps() / floats.limit_gbps()) + " (" +
              std::string(name(halves.what.op)) + ", " + halves.what.name + ", " +
              std::string(name(halves.what.pairing)) +
              ", threads: " + std::to_string(halves.what.threads) + ")",
          false};
}

// The same work on as many bytes from memory, in another dtype.
bool same_bytes(const BenchCase& a, const BenchCase& b) {
  return a.op == b.op && a.pairing == b.pairing && a.name == b.name && a.threads == b.threads;
}

}  // namespace

std::string to_json(std::span<const BenchRow> rows) { return json_list(rows); }
std::string to_json(std::span<const AttendRow> rows) { return json_list(rows); }

std::vector<BenchNote> bench_notes(std::span<const BenchRow> rows) {
  std::vector<BenchNote> notes;
  for (const BenchRow& a : rows)
    for (const BenchRow& b : rows) {
      if (a.ram && b.ram && a.what.dtype == DType::f32 && size_of(b.what.dtype) == 2 &&
          same_bytes(a.what, b.what))
        notes.push_back(bytes_note(a, b));
      if (!alike(a.what, b.what)) continue;
      const bool same_start = a.what.first_position == b.what.first_position;
      if (same_start && a.what.threads < b.what.threads) notes.push_back(threads_note(a, b));
      if (a.what.first_position < b.what.first_position && a.what.threads == b.what.threads)
        notes.push_back(position_note(a, b));
    }
  return notes;
}

}  // namespace posenc
