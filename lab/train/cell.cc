#include "lab/train/cell.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>
#include <nlohmann/json.hpp>

#include "lab/train/hash.h"
#include "posenc/bench.h"

namespace posenc::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t held_out_windows = 128;

// Calls visit(key, member) for each member of a cell, whether it is written or read.
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

Json json_of(const Cell& cell) {
  Json made;
  each_member(cell, [&](const char* key, const auto& member) { made[key] = member; });
  made["afterwards"] = Json::array();
  for (const Change& change : cell.afterwards)
    made["afterwards"].push_back(
        {{"arm", change.arm}, {"scheme", change.scheme}, {"steps", change.steps}});
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
  return fail(where, "every key of a cell must be there, of its kind", key,
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
  std::vector<Range> ranges = {{"vocabulary", s.vocabulary, 13, 256},
                               {"width", s.width, 2, 4096},
                               {"heads", s.heads, 1, 256},
                               {"layers", s.layers, 1, 64},
                               {"hidden", s.hidden, 1, 16384},
                               {"length", s.trained_length, shortest, 65536},
                               {"window", s.window, 0, 65536},
                               {"without_every", s.without_every, 0, 64},
                               {"steps", cell.steps, 1, 10'000'000},
                               {"texts", cell.texts, 1, 4096},
                               {"most", cell.most, 1, 1000},
                               {"least", cell.least, 1, cell.most}};
  const std::int64_t least = !is_of_text(cell.task)  ? 1
                             : cell.task == "recall" ? shortest
                                                     : s.trained_length / 2;
  for (const std::int64_t length : cell.tests) ranges.push_back({"tests", length, least, 65536});
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
  if (is_of_text(cell.task) ? s.vocabulary != 256 : !is_task(cell.task))
    return fail(where,
                "task must be text, masked or recall (vocabulary 256), copy, reverse or addition",
                cell.task);
  return {};
}

Expected<Cell> cell_of(const Json& json, std::string_view where) {
  if (!json.is_object()) return fail(where, "a cell must be a JSON object");
  Cell cell;
  std::string_view missing;
  each_member(cell, [&](const char* key, auto& member) {
    const auto found = json.find(key);
    if (found == json.end() || !fits(*found, member))
      missing = key;
    else
      found->get_to(member);
  });
  const auto changes = json.find("afterwards");
  if (changes == json.end() || !changes->is_array()) missing = "afterwards";
  if (!missing.empty()) return broken(where, missing);
  for (const Json& item : *changes) {
    Change change;
    if (!item.is_object() || !item.contains("arm") || !fits(item["arm"], change.arm) ||
        !item.contains("scheme") || !fits(item["scheme"], change.scheme) ||
        !item.contains("steps") || !fits(item["steps"], change.steps))
      return broken(where, "afterwards");
    cell.afterwards.push_back({item["arm"].get<std::string>(), item["scheme"].get<std::string>(),
                               item["steps"].get<std::vector<std::int64_t>>()});
  }
  if (Expected<void> sound = in_range(cell, where); !sound) return std::unexpected(sound.error());
  return cell;
}

// --- a run ---------------------------------------------------------------------------------------

class Runner {
 public:
  Runner(const Cell& cell, const Corpus& corpus, Decoder decoder,
         const std::function<void(double)>& told)
      : cell_(cell), corpus_(corpus), decoder_(std::move(decoder)), told_(told), order_(cell.seed) {
    all_ = cell.steps;
    for (const Change& change : cell.afterwards) all_ += change.steps.back();
  }

  Expected<Json> run() {
    Json measured = Json::array();
    if (Expected<void> done = train(measured); !done) return std::unexpected(done.error());
    if (Expected<void> done = test(cell_.arm, cell_.steps, measured); !done)
      return std::unexpected(done.error());
    // Each change starts from the weights, from Adam's memory and from the order of texts that training ended with.
    const Parameters trained = decoder_.parameters();
    const Random order = order_;
    for (const Change& change : cell_.afterwards) {
      decoder_.parameters().restore(trained);
      order_ = order;
      if (Expected<void> done = extend(change, measured); !done)
        return std::unexpected(done.error());
    }
    return measured;
  }

 private:
  Expected<double> step(std::int64_t texts, std::int64_t length, double rate) {
    Batch batch = is_of_text(cell_.task)
                      ? corpus_.window(order_, texts, length)
                      : task_texts(cell_.task, order_, texts, cell_.least, cell_.most);
    if (cell_.task == "masked" || cell_.task == "recall") {
      const auto seed = static_cast<std::uint64_t>(order_.below(std::int64_t{1} << 40));
      cell_.task == "masked" ? hide_bytes(batch, seed) : scatter_facts(batch, seed);
    }
    const Expected<double> loss = decoder_.learn(batch);
    if (!loss) return loss;
    decoder_.parameters().step(rate);
    ++done_;
    if (told_) told_(static_cast<double>(done_) / static_cast<double>(all_));
    return loss;
  }

  // The rate rises over a twentieth of the steps, then falls as half a cosine to a tenth. The loss is told ten times.
  Expected<void> train(Json& measured) {
    const auto steps = static_cast<double>(cell_.steps);
    double sum = 0;
    std::int64_t since = 0;
    for (std::int64_t i = 0; i < cell_.steps; ++i) {
      const double at = static_cast<double>(i + 1) / steps;
      const double wave = 0.55 + 0.45 * std::cos(std::numbers::pi * at);
      const Expected<double> loss =
          step(cell_.texts, cell_.shape.trained_length, cell_.rate * std::min(20 * at, 1.0) * wave);
      if (!loss) return std::unexpected(loss.error());
      sum += *loss;
      ++since;
      if ((i + 1) * 10 / cell_.steps == i * 10 / cell_.steps) continue;
      add(measured, cell_.arm, i + 1, cell_.shape.trained_length, "training",
          sum / static_cast<double>(since));
      sum = 0;
      since = 0;
    }
    return {};
  }

  // At the last rate of training, with as many tokens a step.
  Expected<void> extend(const Change& change, Json& measured) {
    Expected<AnyScheme> scheme = parse_scheme(change.scheme);
    if (!scheme) return std::unexpected(scheme.error());
    if (Expected<void> placed = decoder_.position().replace(std::move(*scheme)); !placed)
      return placed;
    const std::int64_t length = cell_.tests.back(),
                       tokens = cell_.texts * cell_.shape.trained_length;
    std::int64_t at = 0;
    for (const std::int64_t until : change.steps) {
      for (; at < until; ++at)
        if (Expected<double> loss =
                step(std::max<std::int64_t>(1, tokens / length), length, 0.1 * cell_.rate);
            !loss)
          return std::unexpected(loss.error());
      if (Expected<void> done = test(change.arm, at, measured); !done) return done;
    }
    return {};
  }

  Expected<void> test(std::string_view arm, std::int64_t at, Json& measured) {
    for (const std::int64_t length : cell_.tests) {
      const bool text = is_of_text(cell_.task);
      const Expected<double> value = text ? loss_at(length) : exact_at(length);
      if (!value) return std::unexpected(value.error());
      add(measured, arm, at, length, text ? "nats" : "exact", *value);
      if (cell_.task != "recall") continue;
      const Expected<std::array<double, 4>> found = recall_at(length);
      if (!found) return std::unexpected(found.error());
      for (std::size_t i = 0; i < found->size(); ++i)
        add(measured, arm, at, length, "recall_" + std::to_string(i + 1), (*found)[i]);
    }
    return {};
  }

  Batch held_out(std::int64_t length) const {
    return corpus_.held_out(held_out_windows, length, cell_.shape.trained_length / 2,
                            cell_.tests.back());
  }

  // Some texts at a time, as memory grows with a batch's tokens: `each` sees them, and their mean loss.
  Expected<void> run(const Batch& all, const std::function<void(const Batch&, double)>& each) {
    const std::int64_t together = std::max<std::int64_t>(1, 2048 / all.length);
    for (std::int64_t from = 0; from < all.texts; from += together) {
      const std::int64_t texts = std::min(together, all.texts - from);
      const auto part = [&](const std::vector<std::int32_t>& list) {
        return std::vector(list.begin() + from * all.length,
                           list.begin() + (from + texts) * all.length);
      };
      const Batch batch{.texts = texts,
                        .length = all.length,
                        .tokens = part(all.tokens),
                        .targets = part(all.targets)};
      const Expected<double> loss = decoder_.loss(batch);
      if (!loss) return std::unexpected(loss.error());
      each(batch, *loss);
    }
    return {};
  }

  Expected<double> loss_at(std::int64_t length) {
    Batch all = held_out(length);
    if (cell_.task == "masked") hide_bytes(all, 1'000'003);
    double sum = 0;
    const Expected<void> done = run(all, [&](const Batch& batch, double loss) {
      sum += loss * static_cast<double>(batch.texts);
    });
    if (!done) return std::unexpected(done.error());
    return sum / static_cast<double>(all.texts);
  }

  // Which share of facts is found, by the quarter of the text in which they stand.
  Expected<std::array<double, 4>> recall_at(std::int64_t length) {
    Batch all = held_out(length);
    plant_facts(all, 1'000'003);
    std::array<double, 4> asked = {}, right = {};
    const Expected<void> done = run(all, [&](const Batch& batch, double) {
      for (std::int64_t t = 0; t < batch.texts; ++t) {
        const auto from = static_cast<std::size_t>(t * length);
        const auto text = std::span(batch.tokens).subspan(from, static_cast<std::size_t>(length));
        for (const Question& q : questions_of(text)) {
          const auto quarter = static_cast<std::size_t>(q.eighth / 2);
          asked[quarter] += 1;
          right[quarter] += decoder_.hits()[from + static_cast<std::size_t>(q.at)];
        }
      }
    });
    if (!done) return std::unexpected(done.error());
    for (std::size_t i = 0; i < asked.size(); ++i) right[i] /= std::max(1.0, asked[i]);
    return right;
  }

  Expected<double> exact_at(std::int64_t symbols) {
    constexpr std::int64_t texts = 200;
    Random random(1'000'003 + static_cast<std::uint64_t>(symbols));
    const Batch batch = task_texts(cell_.task, random, texts, symbols, symbols);
    if (const Expected<double> loss = decoder_.loss(batch); !loss) return loss;
    std::int64_t right = 0;
    for (std::int64_t t = 0; t < texts; ++t) {
      bool all = true;
      for (std::int64_t i = t * batch.length; i < (t + 1) * batch.length; ++i) {
        const auto at = static_cast<std::size_t>(i);
        all = all && (batch.targets[at] < 0 || decoder_.hits()[at] != 0);
      }
      right += all;
    }
    return static_cast<double>(right) / static_cast<double>(texts);
  }

  static void add(Json& list, std::string_view arm, std::int64_t step, std::int64_t length,
                  std::string_view metric, double value) {
    list.push_back({{"arm", arm},
                    {"step", step},
                    {"length", length},
                    {"metric", metric},
                    {"value", std::round(value * 1e6) / 1e6}});
  }

  const Cell& cell_;
  const Corpus& corpus_;
  Decoder decoder_;
  const std::function<void(double)>& told_;
  Random order_;
  std::int64_t done_ = 0, all_ = 0;
};

}  // namespace

std::string to_json(const Cell& cell) { return json_of(cell).dump(); }

Expected<Cell> read_cell(std::string_view json, std::string_view where) {
  return cell_of(Json::parse(json, nullptr, false), where);
}

std::string name_of(const Cell& cell) {
  return cell.experiment + "-" + cell.arm + "-" + std::to_string(cell.seed) + "-" +
         Hash().add(to_json(cell)).text();
}

Expected<std::string> run_cell(const Cell& cell, const Corpus& corpus,
                               const std::function<void(double)>& told) {
  Expected<AnyScheme> scheme = parse_scheme(cell.scheme);
  if (!scheme) return std::unexpected(scheme.error());
  DecoderShape shape = cell.shape;
  shape.causal = cell.task != "masked";
  Expected<Decoder> decoder = Decoder::make(shape, std::move(*scheme), cell.seed);
  if (!decoder) return std::unexpected(decoder.error());
  const std::int64_t parameters = decoder->parameters().size();
  const auto begin = std::chrono::steady_clock::now();
  Runner runner(cell, corpus, std::move(*decoder), told);
  const Expected<Json> measured = runner.run();
  if (!measured) return std::unexpected(measured.error());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const BenchMachine machine = bench_machine();
  const Json line = {{"cell", json_of(cell)},
                     {"parameters", parameters},
                     {"text", is_of_text(cell.task) ? corpus.fingerprint() : ""},
                     {"machine", machine.processor},
                     {"instruction_set", machine.instruction_set},
                     {"seconds", std::round(seconds.count() * 10) / 10},
                     {"measured", *measured}};
  return line.dump();
}

Expected<Outcome> read_outcome(std::string_view text, std::string_view where) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("cell") || !line.contains("measured"))
    return fail(where, "must be a line that posenc lab run wrote");
  Expected<Cell> cell = cell_of(line["cell"], where);
  if (!cell) return std::unexpected(cell.error());
  Outcome made{.cell = std::move(*cell), .measured = {}};
  made.seconds = line.value("seconds", 0.0);
  made.line = text;
  made.machine = line.value("machine", "");
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
