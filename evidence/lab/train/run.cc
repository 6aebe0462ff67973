// A cell trained, changed and tested.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>
#include <nlohmann/json.hpp>

#include "evidence/lab/train/cell.h"
#include "evidence/lab/train/probe.h"
#include "posenc/bench.h"
#include "src/core/try.h"

namespace posenc::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t held_out_windows = 128;
// Of the texts of recall that are learned from; the others are text alone.
constexpr double share_with_facts = 0.75;

class Runner {
 public:
  Runner(const Cell& cell, const Corpus& corpus, Decoder decoder,
         const std::function<void(double)>& told, std::int64_t tenths,
         const std::function<Expected<void>(Decoder&)>& trained)
      : cell_(cell),
        corpus_(corpus),
        decoder_(std::move(decoder)),
        told_(told),
        trained_(trained),
        order_(cell.seed),
        tenths_(tenths) {
    all_ = cell.steps * tenths / 10;
    if (tenths < 10) return;
    for (const Change& change : cell.afterwards) all_ += change.steps.back();
  }

  Expected<Json> run() {
    Json measured = Json::array();
    POSENC_CHECK(probe(0, measured));
    POSENC_CHECK(train(measured));
    if (trained_) POSENC_CHECK(trained_(decoder_));
    if (tenths_ < 10) return measured;
    POSENC_CHECK(test(cell_.arm, cell_.steps, measured));
    POSENC_CHECK(probe(cell_.steps, measured));
    // Each change starts from the weights, from Adam's memory and from the order of texts that
    // training ended with.
    const Parameters trained = decoder_.parameters();
    const Random order = order_;
    for (const Change& change : cell_.afterwards) {
      decoder_.parameters().restore(trained);
      order_ = order;
      POSENC_CHECK(extend(change, measured));
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
      cell_.task == "masked" ? hide_bytes(batch, seed) : plant_facts(batch, seed, share_with_facts);
    }
    POSENC_CHECK(place(batch, true, order_));
    POSENC_TRY(loss, decoder_.learn(batch));
    decoder_.parameters().step(rate);
    ++done_;
    if (told_) told_(static_cast<double>(done_) / static_cast<double>(all_));
    return std::move(loss);
  }

  // Where positions are drawn, after the symbols: texts are the same whatever their positions.
  Expected<void> place(Batch& batch, bool training, Random& random) const {
    if (cell_.positions.empty()) return {};
    POSENC_TRY(placed,
               positions_of(batch, cell_.positions, cell_.position_range, training, random));
    batch.positions = std::move(placed);
    return {};
  }

  // The rate rises over a twentieth of the steps, then falls as half a cosine to a tenth. The loss
  // is told ten times.
  Expected<void> train(Json& measured) {
    const auto steps = static_cast<double>(cell_.steps);
    double sum = 0;
    std::int64_t since = 0;
    for (std::int64_t i = 0; i < cell_.steps * tenths_ / 10; ++i) {
      const double at = static_cast<double>(i + 1) / steps;
      const double wave = 0.55 + 0.45 * std::cos(std::numbers::pi * at);
      POSENC_TRY(loss, step(cell_.texts, cell_.shape.trained_length,
                            cell_.rate * std::min(20 * at, 1.0) * wave));
      sum += loss;
      ++since;
      if ((i + 1) * 10 / cell_.steps == i * 10 / cell_.steps) continue;
      add(measured, cell_.arm, i + 1, cell_.shape.trained_length, "training",
          sum / static_cast<double>(since));
      sum = 0;
      since = 0;
    }
    return {};
  }

  // With as many tokens a step as in training.
  Expected<void> extend(const Change& change, Json& measured) {
    POSENC_TRY(scheme, parse_scheme(change.scheme));
    POSENC_CHECK(decoder_.position().replace(std::move(scheme)));
    const std::int64_t length = change.length > 0 ? change.length : cell_.tests.back(),
                       tokens = cell_.texts * cell_.shape.trained_length;
    std::int64_t at = 0;
    for (const std::int64_t until : change.steps) {
      for (; at < until; ++at)
        if (Expected<double> loss =
                step(std::max<std::int64_t>(1, tokens / length), length, change.rate * cell_.rate);
            !loss)
          return std::unexpected(loss.error());
      POSENC_CHECK(test(change.arm, at, measured));
    }
    return {};
  }

  Expected<void> test(std::string_view arm, std::int64_t at, Json& measured) {
    for (const std::int64_t length : cell_.tests) {
      const bool text = is_of_text(cell_.task);
      POSENC_TRY(value, text ? loss_at(length) : exact_at(length));
      add(measured, arm, at, length, text ? "nats" : "exact", value);
      if (cell_.task != "recall") continue;
      POSENC_TRY(found, recall_at(length));
      for (std::size_t i = 0; i < found.size(); ++i)
        add(measured, arm, at, length, "recall_" + std::to_string(i + 1), found[i]);
    }
    return {};
  }

  Batch held_out(std::int64_t length) const {
    return corpus_.held_out(held_out_windows, length, cell_.scored_bytes(), cell_.tests.back());
  }

  // Some texts at a time, as memory grows with a batch's tokens: `each` sees them, and their mean
  // loss.
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
      POSENC_TRY(loss, decoder_.loss(batch));
      each(batch, loss);
    }
    return {};
  }

  Expected<double> loss_at(std::int64_t length) {
    Batch all = held_out(length);
    if (cell_.task == "masked") hide_bytes(all, 1'000'003);
    double sum = 0;
    POSENC_CHECK(run(all, [&](const Batch& batch, double loss) {
      sum += loss * static_cast<double>(batch.texts);
    }));
    return sum / static_cast<double>(all.texts);
  }

  // Which share of facts is found, by the eighth of the text in which they stand.
  Expected<std::array<double, facts>> recall_at(std::int64_t length) {
    Batch all = held_out(length);
    plant_facts(all, 1'000'003);
    std::array<double, facts> asked = {}, right = {};
    POSENC_CHECK(run(all, [&](const Batch& batch, double) {
      for (std::int64_t t = 0; t < batch.texts; ++t) {
        const auto from = static_cast<std::size_t>(t * length);
        const auto text = std::span(batch.tokens).subspan(from, static_cast<std::size_t>(length));
        for (const Question& q : questions_of(text)) {
          const auto eighth = static_cast<std::size_t>(q.eighth);
          asked[eighth] += 1;
          right[eighth] += decoder_.hits()[from + static_cast<std::size_t>(q.at)];
        }
      }
    }));
    for (std::size_t i = 0; i < asked.size(); ++i) right[i] /= std::max(1.0, asked[i]);
    return right;
  }

  Expected<double> exact_at(std::int64_t symbols) {
    constexpr std::int64_t texts = 200;
    Random random(1'000'003 + static_cast<std::uint64_t>(symbols));
    Batch batch = task_texts(cell_.task, random, texts, symbols, symbols);
    POSENC_CHECK(place(batch, false, random));
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

  // What the residual stream says of position, before and after training, and whether it hears the
  // order of words.
  Expected<void> probe(std::int64_t at, Json& measured) {
    if (!cell_.probe) return {};
    const std::int64_t length = cell_.shape.trained_length, layers = cell_.shape.layers;
    Batch all = held_out(length);
    if (cell_.task == "masked") hide_bytes(all, 1'000'003);
    std::vector<std::vector<float>> residuals(static_cast<std::size_t>(layers + 1));
    std::vector<double> positions;
    POSENC_CHECK(run(all, [&](const Batch& batch, double) {
      for (std::int64_t layer = 0; layer <= layers; ++layer) {
        std::vector<float>& into = residuals[static_cast<std::size_t>(layer)];
        into.insert(into.end(), decoder_.residual(layer).begin(), decoder_.residual(layer).end());
      }
      for (std::int64_t i = 0; i < batch.texts * length; ++i)
        positions.push_back(static_cast<double>(i % length));
    }));
    for (std::int64_t layer = 0; layer <= layers; ++layer)
      add(measured, cell_.arm, at, length, "position_r2_" + std::to_string(layer),
          ridge_r2(residuals[static_cast<std::size_t>(layer)], cell_.shape.width, positions));
    return order(at, measured);
  }

  // The loss of the last bytes of each held-out text, with the words before them as they stand and
  // shuffled.
  Expected<void> order(std::int64_t at, Json& measured) {
    constexpr double same = 1e-3;  // nats; what rounding does lies a thousand times below
    const std::int64_t length = cell_.shape.trained_length;
    Batch texts = held_out(length);
    for (std::int64_t i = 0; i < std::ssize(texts.targets); ++i) {
      const std::int64_t left = length - i % length;
      const auto here = static_cast<std::size_t>(i);
      if (left > bytes_kept) texts.targets[here] = -1;
      if (cell_.task != "masked" || left > bytes_kept) continue;
      texts.targets[here] = left % 2 == 0 ? texts.tokens[here] : -1;
      if (left % 2 == 0) texts.tokens[here] = 0;  // hidden
    }
    Batch shuffled = texts;
    Random random(1'000'003);
    for (std::int64_t t = 0; t < texts.texts; ++t) {
      const auto text =
          std::span(texts.tokens)
              .subspan(static_cast<std::size_t>(t * length), static_cast<std::size_t>(length));
      std::ranges::copy(words_shuffled(text, random), shuffled.tokens.begin() + t * length);
    }
    std::array<std::vector<double>, 2> losses;
    for (std::size_t which = 0; which < 2; ++which) {
      POSENC_CHECK(run(which == 0 ? texts : shuffled, [&](const Batch& batch, double) {
        for (std::int64_t t = 0; t < batch.texts; ++t) {
          const auto text = decoder_.losses().subspan(static_cast<std::size_t>(t * length),
                                                      static_cast<std::size_t>(length));
          losses[which].push_back(std::reduce(text.begin(), text.end(), 0.0));
        }
      }));
    }
    double apart = 0, right = 0, compared = 0;
    for (std::size_t t = 0; t < losses[0].size(); ++t) {
      const auto from = texts.tokens.begin() + static_cast<std::ptrdiff_t>(t) * length;
      if (std::equal(from, from + length,
                     shuffled.tokens.begin() + static_cast<std::ptrdiff_t>(t) * length))
        continue;  // a text of one word
      const double worse = losses[1][t] - losses[0][t];
      compared += 1;
      apart += std::abs(worse) > same;
      right += std::abs(worse) > same ? (worse > 0 ? 1 : 0) : 0.5;
    }
    add(measured, cell_.arm, at, length, "told_apart", apart / std::max(1.0, compared));
    add(measured, cell_.arm, at, length, "true_order", right / std::max(1.0, compared));
    return {};
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
  const std::function<Expected<void>(Decoder&)>& trained_;
  Random order_;
  std::int64_t tenths_;
  std::int64_t done_ = 0, all_ = 0;
};

}  // namespace

Expected<std::string> run_cell(const Cell& cell, const Corpus& corpus,
                               const std::function<void(double)>& told, std::int64_t tenths,
                               const std::function<Expected<void>(Decoder&)>& trained) {
  POSENC_TRY(scheme, parse_scheme(cell.scheme));
  DecoderShape shape = cell.shape;
  shape.causal = cell.task != "masked";
  POSENC_TRY(decoder, Decoder::make(shape, std::move(scheme), cell.seed));
  const std::int64_t parameters = decoder.parameters().size();
  const auto begin = std::chrono::steady_clock::now();
  Runner runner(cell, corpus, std::move(decoder), told, tenths, trained);
  POSENC_TRY(measured, runner.run());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const BenchMachine machine = bench_machine();
  const Json line = {{"cell", Json::parse(to_json(cell))},
                     {"command", "posenc lab run --cell - --out " + name_of(cell) + ".json"},
                     {"posenc", POSENC_VERSION},
                     {"parameters", parameters},
                     {"text", is_of_text(cell.task) ? corpus.fingerprint() : ""},
                     {"machine", machine.processor},
                     {"instruction_set", machine.instruction_set},
                     {"seconds", std::round(seconds.count() * 10) / 10},
                     {"measured", measured}};
  return line.dump();
}

Expected<Again> run_again(const Outcome& outcome, const Corpus& corpus,
                          const std::function<void(double)>& told, std::int64_t tenths) {
  if (!outcome.text.empty() && outcome.text != corpus.fingerprint())
    return fail("lab", "can run a result again on the text it was made of",
                "text " + std::string(corpus.fingerprint()) + ", the result has " + outcome.text,
                "take the same version of perl-doc, or name the folder by --text");
  POSENC_TRY(line, run_cell(outcome.cell, corpus, told, tenths));
  POSENC_TRY(made, read_outcome(line, "again"));
  Again again{.same_kind = made.machine == outcome.machine &&
                           made.instruction_set == outcome.instruction_set};
  for (const Measurement& m : made.measured)
    for (const Measurement& before : outcome.measured)
      if (std::tie(m.arm, m.step, m.length, m.metric) ==
          std::tie(before.arm, before.step, before.length, before.metric)) {
        ++again.compared;
        again.most = std::max(again.most, std::abs(m.value - before.value));
      }
  return again;
}

}  // namespace posenc::lab
