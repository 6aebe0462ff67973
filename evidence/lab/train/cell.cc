// A cell as JSON, and a result as it was written.
#include "evidence/lab/train/cell.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "evidence/lab/train/hash.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

using Json = nlohmann::ordered_json;

// Calls visit(key, member) for each member of a cell, whether it is written or read; visit(key,
// member, usual) for those that are written where they differ from a new cell's.
template <class C, class Visit>
void each_member(C& cell, Visit&& visit) {
  visit("experiment", cell.experiment);
  visit("arm", cell.arm);
  visit("scheme", cell.scheme);
  visit("task", cell.task);
  visit("seed", cell.seed);
  visit("vocabulary", cell.shape.vocabulary);
  visit("width", cell.shape.width);
  visit("layers", cell.shape.layers);
  visit("heads", cell.shape.heads);
  visit("hidden", cell.shape.hidden);
  visit("length", cell.shape.trained_length);
  visit("tied", cell.shape.tied);
  visit("window", cell.shape.window);
  visit("without_every", cell.shape.without_every);
  visit("steps", cell.steps);
  visit("texts", cell.texts);
  visit("rate", cell.rate);
  visit("least", cell.least);
  visit("most", cell.most);
  visit("tests", cell.tests);
}

template <class C, class Visit>
void each_optional(C& cell, Visit&& visit) {
  static const Cell usual;
  visit("positions", cell.positions, usual.positions);
  visit("position_range", cell.position_range, usual.position_range);
  visit("scored", cell.scored, usual.scored);
  visit("probe", cell.probe, usual.probe);
}

template <class C, class Visit>
void each_member_of_change(C& change, Visit&& visit) {
  static const Change usual;
  visit("arm", change.arm);
  visit("scheme", change.scheme);
  visit("steps", change.steps);
  visit("length", change.length, usual.length);
  visit("rate", change.rate, usual.rate);
}

Json json_of(const Cell& cell) {
  Json made;
  const auto write = [](Json& into) {
    return [&](const char* key, const auto& member, const auto&... usual) {
      if (((member != usual) && ...)) into[key] = member;
    };
  };
  each_member(cell, write(made));
  made["afterwards"] = Json::array();
  for (const Change& change : cell.afterwards) {
    Json& item = made["afterwards"].emplace_back(Json::object());
    each_member_of_change(change, write(item));
  }
  each_optional(cell, write(made));
  return made;
}

bool fits(const Json& json, const std::string&) { return json.is_string(); }
bool fits(const Json& json, bool) { return json.is_boolean(); }
bool fits(const Json& json, double) { return json.is_number(); }
bool fits(const Json& json, std::int64_t) { return json.is_number_integer(); }
bool fits(const Json& json, std::uint64_t) { return json.is_number_unsigned(); }
bool fits(const Json& json, const std::vector<std::int64_t>&) {
  return json.is_array() &&
         std::ranges::all_of(json, [](const Json& item) { return item.is_number_integer(); });
}

std::unexpected<Error> broken(std::string_view where, std::string_view key) {
  return fail(where, "every key of a cell must be there, of its kind, and no other", key,
              "posenc lab cells prints whole ones");
}

Expected<void> in_range(const Cell& cell, std::string_view where) {
  struct Range {
    std::string_view key;
    std::int64_t value, least, most;
  };
  const DecoderShape& s = cell.shape;
  // A text with facts has room for them; what is scored of a text is half of a trained length.
  const std::int64_t shortest = cell.task == "recall" ? 64 : 2;
  std::vector<Range> ranges = {{"vocabulary", s.vocabulary, 13, symbols_of_recall},
                               {"width", s.width, 2, 4096},
                               {"heads", s.heads, 1, 256},
                               {"layers", s.layers, 1, 64},
                               {"hidden", s.hidden, 1, 16384},
                               {"length", s.trained_length, shortest, 65536},
                               {"window", s.window, 0, 65536},
                               {"without_every", s.without_every, 0, 64},
                               {"steps", cell.steps, 1, 10'000'000},
                               {"texts", cell.texts, 1, 4096},
                               {"scored", cell.scored, 0, s.trained_length},
                               {"most", cell.most, 1, 1000},
                               {"least", cell.least, 1, cell.most}};
  const std::int64_t least = !is_of_text(cell.task)  ? 1
                             : cell.task == "recall" ? shortest
                                                     : cell.scored_bytes();
  std::int64_t longest = 0;  // positions that a test has
  for (const std::int64_t length : cell.tests) {
    ranges.push_back({"tests", length, least, 65536});
    longest = std::max(longest, cell.positions == "numbers" ? length + 2
                                : cell.task == "addition"   ? 3 * length + 4
                                                            : 2 * length + 2);
  }
  if (!cell.positions.empty())
    ranges.push_back({"position_range", cell.position_range, longest, 65536});
  for (const Change& change : cell.afterwards) {
    ranges.push_back({"length", change.length, 0, 65536});
    for (const std::int64_t steps : change.steps) ranges.push_back({"steps", steps, 0, 10'000'000});
    if (change.steps.empty())
      return fail(where, "steps must have a number", change.arm, "0 tests without learning");
    if (!(change.rate > 0 && change.rate <= 1))
      return fail(where, "rate must lie above 0, and be 1 at most", std::to_string(change.rate));
  }
  for (const Range& range : ranges)
    if (range.value < range.least || range.value > range.most)
      return fail(where,
                  std::string(range.key) + " must be from " + std::to_string(range.least) + " to " +
                      std::to_string(range.most),
                  std::to_string(range.value));
  if (s.width % s.heads != 0)
    return fail(where, "width must be a multiple of heads",
                std::to_string(s.width) + " of " + std::to_string(s.heads));
  if (!(cell.rate > 0 && cell.rate <= 1))
    return fail(where, "rate must lie above 0, and be 1 at most", std::to_string(cell.rate));
  if (cell.tests.empty()) return fail(where, "tests must have a length", "none");
  if (is_of_text(cell.task) ? s.vocabulary != (cell.task == "recall" ? symbols_of_recall : 256)
                            : !is_task(cell.task))
    return fail(where,
                "task must be text or masked (vocabulary 256), recall (" +
                    std::to_string(symbols_of_recall) +
                    "), copy, reverse, sort, parity or addition",
                cell.task);
  if (!is_positions(cell.positions) || (is_of_text(cell.task) && !cell.positions.empty()))
    return fail(where, "positions must be random or numbers, of a task that is no text",
                cell.positions);
  if (cell.probe && (!is_of_text(cell.task) || cell.task == "recall"))
    return fail(where, "probe looks at text and masked alone", cell.task);
  return {};
}

// Members out of an object's keys; what is wrong is named in `wrong`.
class Reader {
 public:
  Reader(const Json& object, std::string& wrong) : object_(object), wrong_(wrong) {}
  Reader(Reader&&) = delete;
  ~Reader() {
    for (const auto& [key, value] : object_.items())
      if (std::ranges::find(known_, key) == known_.end()) wrong_ = key;
  }

  void list(std::string_view key) {
    known_.emplace_back(key);
    if (!object_.contains(key) || !object_[key].is_array()) wrong_ = key;
  }
  auto read() {
    return [this](const char* key, auto& member, const auto&... usual) {
      if (sizeof...(usual) > 0 && !object_.contains(key)) return;
      known_.emplace_back(key);
      const auto found = object_.find(key);
      if (found == object_.end() || !fits(*found, member))
        wrong_ = key;
      else
        found->get_to(member);
    };
  }

 private:
  const Json& object_;
  std::string& wrong_;
  std::vector<std::string> known_;
};

Expected<Cell> cell_of(const Json& json, std::string_view where) {
  if (!json.is_object()) return fail(where, "a cell must be a JSON object");
  Cell cell;
  std::string wrong;
  {
    Reader reader(json, wrong);
    each_member(cell, reader.read());
    each_optional(cell, reader.read());
    reader.list("afterwards");
  }
  if (!wrong.empty()) return broken(where, wrong);
  for (const Json& item : json["afterwards"]) {
    if (!item.is_object()) return broken(where, "afterwards");
    Change& change = cell.afterwards.emplace_back();
    {
      Reader reader(item, wrong);
      each_member_of_change(change, reader.read());
    }
    if (!wrong.empty()) return broken(where, wrong);
  }
  POSENC_CHECK(in_range(cell, where));
  return cell;
}

}  // namespace

std::string to_json(const Cell& cell) { return json_of(cell).dump(); }

Expected<Cell> read_cell(std::string_view json, std::string_view where) {
  return cell_of(Json::parse(json, nullptr, false), where);
}

std::string name_of(const Cell& cell) {
  return cell.experiment + "-" + cell.arm + "-" + std::to_string(cell.seed) + "-" +
         Hash().add(to_json(cell)).text();
}

Expected<Outcome> read_outcome(std::string_view text, std::string_view where) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("cell") || !line.contains("measured"))
    return fail(where, "must be a line that posenc lab run wrote");
  POSENC_TRY(cell, cell_of(line["cell"], where));
  Outcome made{.cell = std::move(cell), .measured = {}};
  made.seconds = line.value("seconds", 0.0);
  made.line = text;
  made.machine = line.value("machine", "");
  made.instruction_set = line.value("instruction_set", "");
  made.text = line.value("text", "");
  for (const Json& item : line["measured"]) {
    if (!item.is_object()) return fail(where, "must be a line that posenc lab run wrote");
    made.measured.push_back({item.value("arm", ""), item.value("step", std::int64_t{0}),
                             item.value("length", std::int64_t{0}), item.value("metric", ""),
                             item.value("value", 0.0)});
  }
  return made;
}

}  // namespace posenc::lab
