#include "evidence/lab/endpoint/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "src/core/try.h"

namespace posenc::lab {
namespace {

// A hypothesis so far behind in ln of likelihood is out: a prior of one in a thousand would still
// be one in a million.
constexpr double out = 14;
constexpr double least_floor = 0.002;  // of float32 against float32, generously
// Where a floor is above the one, the server's log-probabilities must follow the file's: those of
// the same weights in four bits do by 0.97 (docs/probe.md), in PyTorch's dynamic int8 by 0.71, and
// with a layer's sign turned, or from a server that says the same of every token, not at all. Below
// the second no rotation can be told, below the third the weights are others.
constexpr double coarsest = 0.35, least_alike = 0.9, least_kin = 0.5;
// So many times the floor, and no hypothesis explains it.
constexpr double unexplained = 4, well_explained = 2, least_unexplained = 0.02;
// Of differences under the file's rotation and the named one, where weights are coarse: their noise
// is no rotation's, and likelihoods take it for one.
constexpr double clearly_worse = 1.5;
// So far behind in ln, a hypothesis is told from the likeliest, however few tokens tell it.
constexpr double told_by_few = 9;

std::string fingerprint(const Observed& text, bool late) {
  std::string made;
  const auto put = [&](const auto& number) {
    made.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(late);
  put(text.prompt);
  for (const std::int32_t token : text.tokens) put(token);
  for (const Seen& seen : text.seen) {
    put(seen.read);
    for (const Chance& chance : seen.chances) put(chance.token);
  }
  return made;
}

std::string percent(double probability) {
  if (probability >= 0.9995) return "more than 99.9 %";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * probability);
  return text;
}

}  // namespace

ChosenText Prober::text_at(const ProbeOptions& options, std::int64_t distance) const {
  return chosen_text(tokenizer_, model_.vocabulary(), options.seed, distance);
}

Expected<std::vector<float>> Prober::computed(const ServerHypothesis& hypothesis,
                                              const Observed& text, bool late, const GoOn& go_on) {
  std::pair<std::string, std::string> key{hypothesis.id, fingerprint(text, late)};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  bool whole = true;
  const GoOn heard = [&](std::span<const float> part) { return whole = go_on(part); };
  POSENC_TRY(made, log_probabilities(model_, hypothesis, text, late, go_on ? heard : GoOn{}));
  if (whole) known_.emplace(std::move(key), made);
  return std::move(made);
}

// One scorer's turn.
class ProbeRun {
 public:
  ProbeRun(Prober& prober, Scorer& scorer, const ProbeOptions& options)
      : prober_(prober),
        scorer_(scorer),
        options_(options),
        all_(hypotheses_of(prober.model_.about(), options.at)) {}

  Expected<ProbeResult> run() {
    if (options_.at < 64 || options_.limit < 2 * options_.at)
      return fail("probe", "texts must be of 64 tokens or more, and the limit twice the longest",
                  std::to_string(options_.at) + " of " + std::to_string(options_.limit),
                  "raise --at or --limit");
    POSENC_CHECK(measure_floor());
    result_.floor = floor_;
    if (floor_ > coarsest && alike_ < least_alike) return weights_too_far_off();
    judge_.emplace(all_.size(), floor_);
    living_.assign(all_.size(), true);
    for (std::optional<std::int64_t> distance = first_distance(); distance;
         distance = next_distance())
      POSENC_CHECK(ask(*distance));
    POSENC_CHECK(fit());
    conclude();
    return std::move(result_);
  }

 private:
  Expected<Observed> asked(const std::string& text, const std::vector<std::int32_t>& tokens,
                           std::int64_t more) {
    POSENC_TRY(observed, scorer_.score(text, tokens, more));
    result_.tokens += observed.prompt;
    ++result_.requests;
    return std::move(observed);
  }

  // Tokens that repeat tell nothing but the noise: whatever rotates, keys and values are alike.
  Expected<void> measure_floor() {
    constexpr std::int64_t words = 6, times = 6;
    const std::vector<std::int32_t> drawn =
        repeated_tokens(prober_.tokenizer_, prober_.model_.vocabulary(), options_.seed, words);
    std::vector<double> all, said, expected;
    for (const std::int32_t token : drawn) {
      std::string text;
      std::vector<std::int32_t> tokens(times, token);
      if (prober_.tokenizer_ != nullptr) {
        for (std::int64_t i = 0; i < times; ++i) text += prober_.tokenizer_->text_of(token);
        tokens = prober_.tokenizer_->encode(text);
      }
      if (options_.told)
        options_.told(result_.tokens, "a word " + std::to_string(times) + " times");
      POSENC_TRY(observed, asked(text, tokens, 1));
      // Behind a token that begins every text nothing is alike but what follows it alone.
      const bool begun = observed.tokens.front() != token;
      std::erase_if(observed.seen,
                    [&](const Seen& seen) { return begun ? seen.read != 1 : seen.read > times; });
      POSENC_TRY(computed, prober_.computed(all_.front(), observed, false));
      const std::vector<double> off = differences(observed, computed);
      all.insert(all.end(), off.begin(), off.end());
      for (const float number : computed) expected.push_back(weighed(number));
      for (const Seen& seen : observed.seen)
        for (const Chance& chance : seen.chances) said.push_back(weighed(chance.log_probability));
    }
    floor_ = std::max(least_floor, scale_of(std::move(all)));
    alike_ = correlation(said, expected);
    return {};
  }

  // What is unlikely counts less, as in differences().
  static double weighed(double log_probability) {
    return log_probability / (1 + std::abs(log_probability) / 4);
  }

  // Pearson's; 0 where one of them stands still.
  static double correlation(std::span<const double> a, std::span<const double> b) {
    const std::size_t count = std::min(a.size(), b.size());
    double sum_a = 0, sum_b = 0, squares_a = 0, squares_b = 0, both = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum_a += a[i], sum_b += b[i];
      squares_a += a[i] * a[i], squares_b += b[i] * b[i], both += a[i] * b[i];
    }
    const auto n = static_cast<double>(count);
    const double spread_a = n * squares_a - sum_a * sum_a, spread_b = n * squares_b - sum_b * sum_b;
    const bool still = spread_a <= 1e-9 * n * squares_a || spread_b <= 1e-9 * n * squares_b;
    return count == 0 || still ? 0 : (n * both - sum_a * sum_b) / std::sqrt(spread_a * spread_b);
  }

  std::vector<std::int64_t> ladder() const {
    std::vector<std::int64_t> made;
    for (std::int64_t distance = 56; distance + 2 * room < options_.at; distance *= 2)
      made.push_back(distance);
    made.push_back(options_.at - room);
    return made;
  }
  std::int64_t first_distance() const {
    const std::vector<std::int64_t> all = ladder();
    return all.front();
  }
  bool was(std::int64_t distance) const {
    return std::ranges::any_of(result_.texts,
                               [&](const AskedText& text) { return text.distance == distance; });
  }

  // Where those that are in it differ most for what a text costs; once all agree, the longest text.
  std::optional<std::int64_t> next_distance() const {
    const std::size_t best = best_one();
    const std::vector<double> probability = judge_->probabilities();
    const std::vector<std::int64_t> distances = ladder();
    std::optional<std::int64_t> chosen;
    double most = 0;
    for (const std::int64_t distance : distances) {
      if (was(distance)) continue;
      double told = 0;
      for (std::size_t h = 0; h < all_.size(); ++h)
        if (h != best && living_[h] && probability[h] > 1e-4)
          told += static_cast<double>(std::min<std::int64_t>(
              8, pairs_apart(all_[best], all_[h], distance, distance + room)));
      told /= static_cast<double>(distance + room);
      if (told > most) {
        most = told;
        chosen = distance;
      }
    }
    const std::int64_t longest = distances.back();
    const bool decided = sure() >= options_.sure;
    if (!was(longest) && (decided || !chosen)) chosen = longest;
    if (decided && was(longest)) return std::nullopt;
    if (chosen && result_.tokens + *chosen + room > options_.limit) return std::nullopt;
    return chosen;
  }

  Expected<void> ask(std::int64_t distance) {
    const ChosenText text = prober_.text_at(options_, distance);
    // Servers that score what they generate only are given less than all of the second passage.
    constexpr std::int64_t said = 20;
    std::vector<std::int32_t> tokens = text.tokens;
    std::string words = text.text;
    if (!scorer_.scores_prompts()) {
      tokens.resize(tokens.size() - std::min<std::size_t>(said, tokens.size() / 4));
      if (prober_.tokenizer_ != nullptr) {
        // Without the token that begins every text, which the server puts there itself.
        words.clear();
        const std::size_t begun = prober_.tokenizer_->encode("").size();
        for (const std::int32_t token : std::span(tokens).subspan(std::min(begun, tokens.size())))
          words += prober_.tokenizer_->text_of(token);
      }
    }
    if (options_.told) options_.told(result_.tokens, std::to_string(tokens.size()) + " tokens");
    POSENC_TRY(observed, asked(words, tokens, scorer_.scores_prompts() ? 6 : said + 12));
    if (observed.seen.empty())
      return fail("probe", "the server must tell log-probabilities", "none",
                  "start it so that it does (docs/probe.md)");
    POSENC_TRY(scored, computed(observed, result_.late));
    // Some tell each a token late: their own slip, and none of position.
    if (result_.texts.empty() && scorer_.scores_prompts() &&
        least_scale(scored) > unexplained * floor_) {
      Observed whole = observed;
      std::erase_if(whole.seen,
                    [&](const Seen& seen) { return seen.read >= std::ssize(observed.tokens); });
      POSENC_TRY(moved, computed(whole, true));
      if (least_scale(moved) < least_scale(scored) / 2) {
        result_.late = true;
        scored = std::move(moved);
      }
    }
    result_.texts.push_back(
        {observed.prompt, std::ssize(observed.tokens) - observed.prompt, distance});
    result_.observed.push_back(scored.text);
    judge_->add(std::move(scored));
    const std::vector<double> scores = judge_->scores();
    for (std::size_t h = 0; h < all_.size(); ++h) living_[h] = living_[h] && scores[h] > -out;
    return {};
  }

  double least_scale(const Scored& scored) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t h = 0; h < all_.size(); ++h)
      if (scored.whole(h))
        least = std::min(least, scale_of(differences(scored.text, scored.computed[h])));
    return least;
  }

  Expected<Scored> computed(Observed observed, bool late) {
    if (late)
      std::erase_if(observed.seen,
                    [&](const Seen& seen) { return seen.read >= std::ssize(observed.tokens); });
    Scored made{.text = std::move(observed), .computed = {}};
    made.computed.resize(all_.size());
    std::size_t best = 0;
    const std::int64_t length = std::ssize(made.text.tokens);
    const bool generated = !made.text.seen.empty() && made.text.seen.back().read > made.text.prompt;
    for (std::size_t h = 0; h < all_.size(); ++h) {
      if (!living_[h] && h != 0) continue;  // the file's stays, for the picture
      const bool same =
          all_[h].shows_from > length || (all_[h].placement.of_generation() && !generated);
      if (h > 0 && same) {
        made.computed[h] = made.computed[0];
        continue;
      }
      // One that falls far behind the best so far is read no further.
      const GoOn go_on = [&](std::span<const float> part) {
        const std::span<const float> other = std::span(made.computed[best]).first(part.size());
        const double scale = std::max(floor_, std::min(scale_of(differences(made.text, part)),
                                                       scale_of(differences(made.text, other))));
        return log_likelihood(made.text, part, scale) >
               log_likelihood(made.text, other, scale) - 3 * out;
      };
      POSENC_TRY(numbers, prober_.computed(all_[h], made.text, late, h > 0 ? go_on : GoOn{}));
      made.computed[h] = std::move(numbers);
      if (h == 0 || !made.whole(h)) continue;
      const double scale =
          std::max(floor_, std::min(scale_of(differences(made.text, made.computed[h])),
                                    scale_of(differences(made.text, made.computed[best]))));
      if (log_likelihood(made.text, made.computed[h], scale) >
          log_likelihood(made.text, made.computed[best], scale))
        best = h;
    }
    if (!living_[0]) made.computed[0].clear();
    return made;
  }

  std::size_t best_one() const {
    const std::vector<double> probability = judge_->probabilities();
    return static_cast<std::size_t>(std::ranges::max_element(probability) - probability.begin());
  }
  // Of the best and of those that no text has told from it.
  double sure() const {
    const std::size_t best = best_one();
    const std::vector<double> probability = judge_->probabilities();
    double sum = 0;
    for (std::size_t h = 0; h < all_.size(); ++h)
      if (h == best || judge_->alike(best, h)) sum += probability[h];
    return std::min(sum, 1.0);
  }

  // A factor or a base between those of the list: the likeliest number, where the list's own
  // explains less than it should.
  Expected<void> fit() {
    const std::size_t best = best_one();
    // What lies within the noise of the file's own is no other number. Where the file's own is the
    // nearest and still explains nothing, the true number lies between two of the list.
    const bool unexplained_file =
        judge_->scale(0) > unexplained * floor_ && judge_->scale(0) > least_unexplained;
    if (judge_->scale(best) < well_explained * floor_ || (living_[0] && !unexplained_file))
      return {};
    std::vector<std::size_t> tried;
    const std::vector<double> scores = judge_->scores();
    for (const std::string_view family : {"theta", "linear", "yarn", "yarn_flat", "amplitude"}) {
      std::optional<std::size_t> first;
      for (std::size_t h = 0; h < all_.size(); ++h)
        if (all_[h].family == family && (!first || scores[h] > scores[*first])) first = h;
      if (first) tried.push_back(*first);
    }
    std::ranges::sort(
        tried, [&](std::size_t a, std::size_t b) { return judge_->scale(a) < judge_->scale(b); });
    if (tried.size() > 2) tried.resize(2);
    for (const std::size_t from : tried) POSENC_CHECK(fit_family(all_[from]));
    return {};
  }

  // By the scale of differences over the shortest text that was asked.
  Expected<void> fit_family(const ServerHypothesis from) {
    const Model& model = prober_.model_.about();
    const std::span<const Scored> texts = judge_->texts();
    const Scored* shortest = &texts.front();
    for (const Scored& one : texts)
      if (one.text.tokens.size() < shortest->text.tokens.size()) shortest = &one;
    const auto off = [&](double number) -> Expected<double> {
      const auto made = hypothesis_with(model, from.family, number, options_.at);
      if (!made) return std::numeric_limits<double>::infinity();
      POSENC_TRY(numbers, prober_.computed(*made, shortest->text, result_.late));
      return scale_of(differences(shortest->text, numbers));
    };
    const double step = from.family == "theta" ? 3.2 : from.family == "amplitude" ? 1.15 : 2;
    double low = std::log(*from.number / step), high = std::log(*from.number * step);
    for (int turn = 0; turn < 3; ++turn) {
      constexpr int points = 5;
      double nearest = low, least = std::numeric_limits<double>::infinity();
      for (int i = 0; i < points; ++i) {
        const double at = low + (high - low) * i / (points - 1);
        POSENC_TRY(scale, off(std::exp(at)));
        if (scale < least) {
          least = scale;
          nearest = at;
        }
      }
      const double half = (high - low) / (points - 1);
      low = nearest - half;
      high = nearest + half;
    }
    const double found = std::exp((low + high) / 2);
    // Somebody typed it: of the round numbers near it the likeliest.
    double number = found, least = std::numeric_limits<double>::infinity();
    const double unit = std::pow(10, std::floor(std::log10(found)));
    for (const double digits :
         {1.0, 1.2, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 7.5, 8.0, 9.0, 10.0})
      if (std::abs(std::log(digits * unit / found)) < high - low) {
        POSENC_TRY(scale, off(digits * unit));
        if (scale < least) {
          least = scale;
          number = digits * unit;
        }
      }
    POSENC_TRY(at_found, off(found));
    if (at_found < 0.8 * least) number = std::round(found / unit * 1000) / 1000 * unit;
    auto made = hypothesis_with(model, from.family, number, options_.at);
    if (!made) return {};
    for (const ServerHypothesis& one : all_)
      if (one.id == made->id) return {};
    Judge wider(all_.size() + 1, floor_);
    for (const Scored& one : judge_->texts()) {
      Scored more = one;
      POSENC_TRY(numbers, prober_.computed(*made, one.text, result_.late));
      more.computed.push_back(std::move(numbers));
      wider.add(std::move(more));
    }
    all_.push_back(std::move(*made));
    living_.push_back(true);
    judge_ = std::move(wider);
    return {};
  }

  ProbeResult weights_too_far_off() {
    char off[32];
    std::snprintf(off, sizeof off, "%.2f", floor_);
    if (alike_ < least_kin) {
      result_.verdict = ProbeVerdict::other_weights;
      result_.sentence =
          "The server runs other weights than FILE's: where no rotation matters its "
          "log-probabilities are off by " +
          std::string(off) + " nats, and do not follow the file's.";
    } else {
      result_.verdict = ProbeVerdict::undecided;
      result_.sentence =
          "Not decided: the server runs FILE's weights so coarsely, or kin of them, that its "
          "log-probabilities are off by " +
          std::string(off) + " nats where no rotation matters.";
    }
    return std::move(result_);
  }

  void conclude() {
    const std::size_t best = best_one();
    const std::vector<double> scores = judge_->scores(), probability = judge_->probabilities();
    // Where few tokens of many differ, as behind a window, the noise of all hides them, and their
    // likelihood does not.
    const auto is_told = [&](std::size_t h) { return scores[best] - scores[h] > told_by_few; };
    for (std::size_t h = 0; h < all_.size(); ++h)
      result_.rated.push_back({all_[h].id, all_[h].title, scores[h], probability[h],
                               judge_->scale(h),
                               h == best || (judge_->alike(best, h) && !is_told(h))});
    std::ranges::stable_sort(result_.rated, [](const Rated& a, const Rated& b) {
      return a.probability > b.probability;
    });
    result_.scale = judge_->scale(best);
    result_.misfits = judge_->misfits(best);
    tell_evidence(best);
    const double certain = sure();
    const std::string upto = "up to " + std::to_string(longest_text()) + " tokens";
    if (result_.scale > unexplained * floor_ && result_.scale > least_unexplained) {
      result_.verdict = ProbeVerdict::unknown;
      const std::int64_t from = departs_from();
      result_.sentence =
          "The server does not run a rotation that is known: the nearest, " + all_[best].title +
          ", leaves " +
          (from > 1 ? "its log-probabilities off from " + std::to_string(from) + " tokens on"
                    : "its log-probabilities off at every length") +
          ".";
    } else if (certain < options_.sure && certain < 0.95) {
      result_.verdict = ProbeVerdict::undecided;
      result_.sentence = "Not decided within the limit of tokens: the likeliest is " +
                         all_[best].title + ", " + percent(certain) + ".";
    } else if (floor_ > coarsest && (all_[best].finding.code.empty()
                                         ? ahead() < out
                                         : judge_->scale(0) < clearly_worse * result_.scale)) {
      result_.verdict = ProbeVerdict::undecided;
      char off[32];
      std::snprintf(off, sizeof off, "%.2f", floor_);
      result_.sentence = "Not decided: the server's weights are coarser than FILE's (off by " +
                         std::string(off) +
                         " nats where no rotation matters), and the file's rotation explains it "
                         "nearly as well as any.";
    } else if (all_[best].finding.code.empty()) {
      result_.verdict = ProbeVerdict::as_file;
      result_.sure = certain;
      result_.sentence = "The server rotates as the file says, " + upto + ".";
    } else {
      result_.verdict = ProbeVerdict::named;
      result_.sure = certain;
      result_.sentence = "The server does not rotate as the file says: " + all_[best].title + ".";
      result_.findings.push_back(all_[best].finding);
    }
  }

  // How far behind the nearest that is told apart from the likeliest is, in ln.
  double ahead() const {
    for (const Rated& one : result_.rated)
      if (!one.alike) return -one.score;
    return out;
  }

  std::int64_t longest_text() const {
    std::int64_t most = 0;
    for (const AskedText& text : result_.texts) most = std::max(most, text.tokens + text.generated);
    return most;
  }
  std::int64_t departs_from() const {
    for (const Judge::Misfit& band : result_.misfits)
      if (band.scale > unexplained * floor_) return band.from;
    return 1;
  }

  // The chosen tokens of the longest text.
  void tell_evidence(std::size_t best) {
    std::size_t second = best;
    for (const Rated& one : result_.rated)
      if (!one.alike) {
        for (std::size_t h = 0; h < all_.size(); ++h)
          if (all_[h].id == one.id) second = h;
        break;
      }
    const Scored* longest = nullptr;
    for (const Scored& one : judge_->texts())
      if (longest == nullptr || one.text.tokens.size() > longest->text.tokens.size())
        longest = &one;
    if (longest == nullptr || !longest->whole(best)) return;
    std::vector<float> other = longest->computed[second];
    if (!longest->whole(second))
      if (auto numbers = prober_.computed(all_[second], longest->text, result_.late))
        other = std::move(*numbers);
    std::size_t next = 0;
    for (const Seen& seen : longest->text.seen)
      for (std::size_t i = 0; i < seen.chances.size(); ++i, ++next)
        if (i == 0)
          result_.evidence.push_back({seen.read, seen.chances[i].log_probability,
                                      longest->computed[best][next],
                                      other.empty() ? longest->computed[best][next] : other[next]});
  }

  static constexpr std::int64_t room = 56;  // the passage that comes again, and a sentence's end

  Prober& prober_;
  Scorer& scorer_;
  const ProbeOptions& options_;
  std::vector<ServerHypothesis> all_;
  std::vector<bool> living_ = {};
  std::optional<Judge> judge_ = {};
  double floor_ = least_floor, alike_ = 1;
  ProbeResult result_ = {};
};

Expected<ProbeResult> Prober::probe(Scorer& scorer, const ProbeOptions& options) {
  return ProbeRun(*this, scorer, options).run();
}

ServersApart servers_apart(const ProbeResult& one, const ProbeResult& other) {
  ServersApart made{.floor = std::max(one.floor, other.floor)};
  // The texts that both were asked about, and the tokens that both told.
  std::map<std::int64_t, std::vector<double>> bands;  // by the lower end
  for (const Observed& first : one.observed)
    for (const Observed& second : other.observed) {
      const std::int64_t prompt = std::min(first.prompt, second.prompt);
      if (first.prompt != second.prompt ||
          !std::equal(first.tokens.begin(), first.tokens.begin() + prompt, second.tokens.begin()))
        continue;
      for (const Seen& seen : first.seen) {
        const auto there = std::ranges::find(second.seen, seen.read, &Seen::read);
        if (there == second.seen.end() || seen.read > prompt) continue;
        std::int64_t from = 1;
        for (std::int64_t to = 32; seen.read >= to; to *= 2) from = to;
        for (const Chance& chance : seen.chances)
          for (const Chance& same : there->chances)
            if (same.token == chance.token)
              bands[from].push_back(apart(chance.log_probability, same.log_probability));
      }
    }
  for (auto& [from, off] : bands) {
    const auto n = std::ssize(off);
    made.bands.push_back({from, from == 1 ? 32 : 2 * from, scale_of(std::move(off)), n});
    if (made.from == 0 && made.bands.back().scale > unexplained * made.floor) made.from = from;
  }
  return made;
}

}  // namespace posenc::lab
