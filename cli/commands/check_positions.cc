// posenc check-positions: an engine's position ids against the rule that they should follow.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/npy.h"
#include "cli/arguments/parse.h"
#include "cli/arguments/position_flags.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/terminal.h"
#include "posenc/layout.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct CheckedPositions {
  std::string ids, zigzag, layout;
  PositionFlags rule;
  std::int64_t first = 0, ranks = 0;
  std::optional<std::int64_t> rank;
  bool json = false;
};

struct RawIds {
  std::vector<std::int64_t> values, shape;
};

Expected<RawIds> read_ids(const std::string& text) {
  if (!names_array(text)) {
    POSENC_TRY(rows, integer_rows(text, "IDS"));
    return RawIds{rows.values, {rows.rows, std::ssize(rows.values) / rows.rows}};
  }
  POSENC_TRY(array, read_array(text));
  POSENC_TRY(values, integers_of(array, text));
  return RawIds{values, array.shape};
}

// [seq], [batch][seq], [axis][seq] or [axis][batch][seq]: of two axes the first is what the rule
// has several of.
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
    POSENC_TRY(made, zigzag_ids(options.zigzag, seq));
    return MadePositions{std::move(made)};
  }
  if (options.first < 0 || options.first > furthest_position - seq)
    return fail("--first", "must be from 0 to 2^62", std::to_string(options.first));
  return MadePositions{Positions::range(options.first, seq)};
}

// Ids that count a rank's tokens in its own memory, or those of each text anew: the slip that is
// known best.
std::optional<Finding> local_ids(const std::vector<std::int64_t>& found, const Positions& own) {
  std::int64_t off = -1, next = 0;
  for (std::int64_t t = 0; t < own.size(); ++t) {
    next = t > 0 && own.segment(t) == own.segment(t - 1) ? next + 1 : 0;
    const std::int64_t id = found[static_cast<std::size_t>(t)];
    if (id != t && id != next) return std::nullopt;
    if (off < 0 && id != own.at(t)) off = t;
  }
  if (off < 0) return std::nullopt;
  return Finding{.code = "sharding_ignored",
                 .position = off,
                 .expected = std::to_string(own.at(off)),
                 .found = std::to_string(found[static_cast<std::size_t>(off)]),
                 .message = "token " + std::to_string(off) +
                            ": the ids are local, they count the tokens that the rank holds",
                 .cure = "give each rank the ids that its tokens have in the whole text"};
}

// Of ranks that share out a text: a row of ids for each, or those of --rank.
Expected<std::vector<Finding>> check_ranks(const CheckedPositions& options, const RawIds& raw) {
  const std::int64_t seq = raw.shape.empty() ? 0 : raw.shape.back();
  const auto given = static_cast<std::int64_t>(raw.values.size());
  if (options.ranks < 1) return fail("--ranks", "must say how many share out the text", "none");
  if (options.rank && (*options.rank < 0 || *options.rank >= options.ranks))
    return fail("--rank", "must be below --ranks", std::to_string(*options.rank));
  if (given != (options.rank ? seq : seq * options.ranks))
    return fail(
        "IDS",
        "must be a row for each of the " + std::to_string(options.ranks) + " ranks, or --rank's",
        std::to_string(given) + " ids");
  std::vector<std::int64_t> bounds = {0, seq * options.ranks};
  MadePositions whole{Positions::range(0, bounds.back())};
  if (options.rule.any()) {
    POSENC_TRY(made, made_positions(options.rule, "check-positions"));
    whole = std::move(made);
    bounds = {0};
    for (std::int64_t t = 1; t < whole.positions.size(); ++t)
      if (whole.positions.segment(t) != whole.positions.segment(t - 1)) bounds.push_back(t);
    bounds.push_back(whole.positions.size());
  }
  POSENC_TRY(layout, Layout::named(options.layout, bounds, options.ranks));
  std::vector<Finding> findings;
  const std::int64_t first = options.rank.value_or(0),
                     last = options.rank ? first + 1 : options.ranks;
  for (std::int64_t rank = first; rank < last; ++rank) {
    POSENC_TRY(own, layout.positions(rank, whole.positions));
    if (own.size() != seq)
      return fail(
          "IDS",
          "rank " + std::to_string(rank) + " holds " + std::to_string(own.size()) + " tokens",
          std::to_string(seq) + " ids", "check one rank at a time, with --rank");
    const auto begin = raw.values.begin() + (rank - first) * seq;
    const std::vector<std::int64_t> ids(begin, begin + seq);
    std::vector<Finding> of_rank;
    if (auto local = local_ids(ids, own)) {
      of_rank.push_back(std::move(*local));
    } else {
      POSENC_TRY(others, check_positions({.ids = ids, .seq = seq}, own, {}));
      of_rank = std::move(others);
    }
    for (Finding& finding : of_rank) {
      finding.message = "rank " + std::to_string(rank) + ", " + finding.message;
      findings.push_back(std::move(finding));
    }
  }
  return findings;
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
      ->group("");  // of --layout zigzag, shorter
  app.add_option("--layout", options->layout,
                 "A row of IDS a rank: contiguous, zigzag, striped, by-document, balanced")
      ->type_name("NAME")
      ->group("From");
  app.add_option("--ranks", options->ranks, "How many they are")->group("From");
  app.add_option("--rank", options->rank, "IDS are this rank's alone")->group("From");
  app.add_flag("--json", options->json)->description("{\"findings\":[...]} (docs/json.md)");
  app.footer(
      "Padding may have any id. Exit code 1: another token is off, by a slip that is named.\n\n"
      "Examples:\n"
      "  posenc check-positions ids.npy --mask mask.npy\n"
      "  posenc check-positions 0,1,2,3,4 --cu_seqlens 0,3,5\n"
      "  posenc check-positions chunk2.npy --first 4096\n"
      "  posenc check-positions ids_of_ranks.npy --layout zigzag --ranks 8");
  return [options, &app]() -> Expected<int> {
    POSENC_TRY(raw, read_ids(options->ids));
    const auto checked = [&]() -> Expected<std::vector<Finding>> {
      if (!options->layout.empty()) return check_ranks(*options, raw);
      POSENC_TRY(made, expected_ids(*options, raw));
      return check_positions(shaped(raw, made.positions), made.positions, made.keep);
    };
    POSENC_TRY(findings, checked());
    if (options->json)
      write_out("{{\"findings\":{}}}\n", to_json(findings));
    else
      write_out("{}", findings_page(findings, terminal(no_color(app)),
                                    "Every token has the id that the rule gives."));
    return findings.empty() ? 0 : 1;
  };
}

}  // namespace

extern const Command check_positions_command{
    "check-positions", "an engine's position ids against their rule", define_check_positions};

}  // namespace posenc::cli
