// posenc check-positions: an engine's position ids against the rule that they should follow.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/position_flags.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"

namespace posenc::cli {
namespace {

struct CheckedPositions {
  std::string ids, zigzag;
  PositionFlags rule;
  std::int64_t first = 0;
  bool json = false;
};

struct RawIds {
  std::vector<std::int64_t> values, shape;
};

Expected<RawIds> read_ids(const std::string& text) {
  if (!text.ends_with(".npy")) {
    const Expected<IntegerRows> rows = integer_rows(text, "IDS");
    if (!rows) return std::unexpected(rows.error());
    return RawIds{rows->values, {rows->rows, std::ssize(rows->values) / rows->rows}};
  }
  const Expected<Array> array = read_npy(text);
  if (!array) return std::unexpected(array.error());
  const auto values = integers_of(*array, text);
  if (!values) return std::unexpected(values.error());
  return RawIds{*values, array->shape};
}

// [seq], [batch][seq], [axis][seq] or [axis][batch][seq]: of two axes the first is what the rule has several of.
PositionIds shaped(const RawIds& raw, const Positions& expected) {
  PositionIds ids{.ids = raw.values, .seq = raw.shape.empty() ? 0 : raw.shape.back()};
  if (raw.shape.size() == 3) {
    ids.axes = raw.shape[0];
    ids.batch = raw.shape[1];
  } else if (raw.shape.size() == 2) {
    const bool axes = expected.axes() > 1 && raw.shape[0] == expected.axes();
    (axes ? ids.axes : ids.batch) = raw.shape[0];
  }
  return ids;
}

// "1/4": rank 1 of 4 has pieces 1 and 6 of 8 of a text.
Expected<Positions> zigzag_ids(const std::string& text, std::int64_t seq) {
  const std::size_t slash = text.find('/');
  const auto rank = integer(text.substr(0, slash), "--zigzag");
  const auto ranks =
      slash == text.npos ? Expected<std::int64_t>(0) : integer(text.substr(slash + 1), "--zigzag");
  if (!rank || !ranks || *ranks < 1 || *rank < 0 || *rank >= *ranks || *ranks > 1'000'000)
    return fail("--zigzag", "must be RANK/RANKS, the rank from 0", text, "write it like 1/4");
  if (seq % 2 != 0)
    return fail("--zigzag", "a rank has two pieces of one length, so an even number of tokens",
                std::to_string(seq));
  const std::int64_t piece = seq / 2;
  std::vector<std::int64_t> ids;
  for (const std::int64_t chunk : {*rank, 2 * *ranks - 1 - *rank})
    for (std::int64_t t = 0; t < piece; ++t) ids.push_back(chunk * piece + t);
  return Positions::ids(ids);
}

Expected<MadePositions> expected_ids(const CheckedPositions& options, const RawIds& raw) {
  if (options.rule.any()) return made_positions(options.rule, "check-positions");
  const std::int64_t seq = raw.shape.empty() ? 0 : raw.shape.back();
  if (!options.zigzag.empty()) {
    Expected<Positions> made = zigzag_ids(options.zigzag, seq);
    if (!made) return std::unexpected(made.error());
    return MadePositions{*std::move(made)};
  }
  if (options.first < 0 || options.first > furthest_position - seq)
    return fail("--first", "must be from 0 to 2^62", std::to_string(options.first));
  return MadePositions{Positions::range(options.first, seq)};
}

Run define_check_positions(CLI::App& app) {
  auto options = std::make_shared<CheckedPositions>();
  app.add_option("IDS", options->ids,
                 "The engine's ids: 0,1,2;0,1,2 or ids.npy, of up to [axis][batch][seq]")
      ->required();
  options->rule.add_to(app);
  app.add_option("--first", options->first,
                 "The first id of a chunk: tokens before it in the cache")
      ->group("From");
  app.add_option("--zigzag", options->zigzag,
                 "Context parallelism: the rank has pieces r and 2n-1-r")
      ->type_name("RANK/RANKS")
      ->group("From");
  app.add_flag("--json", options->json)->description("{\"findings\":[...]} (docs/json.md)");
  app.footer(
      "Padding may have any id. Exit code 1: another token is off, and the slip that makes such "
      "ids is named.\n\n"
      "Examples:\n"
      "  posenc check-positions ids.npy --mask mask.npy\n"
      "  posenc check-positions 0,1,2,3,4 --cu_seqlens 0,3,5\n"
      "  posenc check-positions chunk2.npy --first 4096");
  return [options, &app]() -> Expected<int> {
    const Expected<RawIds> raw = read_ids(options->ids);
    if (!raw) return std::unexpected(raw.error());
    const Expected<MadePositions> made = expected_ids(*options, *raw);
    if (!made) return std::unexpected(made.error());
    const auto findings =
        check_positions(shaped(*raw, made->positions), made->positions, made->keep);
    if (!findings) return std::unexpected(findings.error());
    if (options->json)
      fmt::print("{{\"findings\":{}}}\n", to_json(*findings));
    else
      fmt::print("{}", findings_page(*findings, terminal(no_color(app)),
                                     "Every token has the id that the rule gives."));
    return findings->empty() ? 0 : 1;
  };
}

}  // namespace

extern const Command check_positions_command{
    "check-positions", "an engine's position ids against their rule", define_check_positions};

}  // namespace posenc::cli
