// posenc lab waves, posenc lab watch: what the heads of a real model do with position.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/commands/lab.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "evidence/lab/model/heads.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct Surveyed {
  std::string model;
  std::int64_t trained = 0;
  lab::HeadSurvey survey;
};

Expected<Surveyed> surveyed(const RealModelFlags& real, std::int64_t tokens) {
  POSENC_TRY(model, real_model(real));
  const auto count =
      static_cast<std::size_t>(std::min<std::int64_t>(tokens, std::ssize(model.tokens)));
  model.tokens.resize(count);
  POSENC_TRY(survey, lab::survey_heads(model.llama, model.tokens));
  const Model& about = model.llama.about();
  return Surveyed{about.name, about.trained_context > 0 ? about.trained_context : about.context,
                  std::move(survey)};
}

// A share as a bar of eighths of cells.
std::string share_bar(double share, double most, const Terminal& term) {
  constexpr int cells = 30;
  static constexpr std::string_view eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int full = most > 0 ? static_cast<int>(share / most * cells * 8) : 0;
  std::string text;
  for (int i = 0; i < full / 8; ++i) text += term.unicode ? "█" : "#";
  return text + (term.unicode ? std::string(eighths[full % 8]) : "");
}

std::string survey_json(const Surveyed& found, bool waves) {
  std::string heads;
  for (const lab::HeadFacts& head : found.survey.heads) {
    heads += fmt::format("{}{{\"layer\":{},\"head\":{}", heads.empty() ? "" : ",", head.layer,
                         head.head);
    if (waves) {
      heads += fmt::format(",\"waves\":{}}}", json_numbers(head.waves, "{:.4f}"));
    } else {
      heads +=
          fmt::format(",\"sink\":{},\"previous\":{},\"distance\":{},\"entropy\":{}}}",
                      json_number(head.sink, "{:.4f}"), json_number(head.previous, "{:.4f}"),
                      json_number(head.distance, "{:.2f}"), json_number(head.entropy, "{:.4f}"));
    }
  }
  return fmt::format("{{\"tokens\":{},\"trained\":{},\"wavelengths\":{},\"heads\":[{}]}}",
                     found.survey.tokens, found.trained,
                     json_numbers(found.survey.wavelength, "{:.2f}"), heads);
}

std::string waves_page(const Surveyed& found, const Terminal& term) {
  const std::vector<double>& lengths = found.survey.wavelength;
  std::vector<double> mean(lengths.size());
  std::vector<std::int64_t> leads(lengths.size());
  for (const lab::HeadFacts& head : found.survey.heads) {
    for (std::size_t r = 0; r < head.waves.size(); ++r)
      mean[r] += head.waves[r] / static_cast<double>(found.survey.heads.size());
    ++leads[static_cast<std::size_t>(std::ranges::max_element(head.waves) - head.waves.begin())];
  }
  const double most = *std::ranges::max_element(mean);
  double beyond = 0;
  std::string out =
      fmt::format("{}: which waves its {} heads use, over {} tokens\n\n", term.bold(found.model),
                  found.survey.heads.size(), grouped(found.survey.tokens));
  out +=
      term.bold(fmt::format("{:>5}{:>16}{:>9}{:>10}", "pair", "wavelength", "share", "heads led")) +
      "\n";
  for (std::size_t r = 0; r < mean.size(); ++r) {
    const bool long_wave = lengths[r] > static_cast<double>(found.trained);
    if (long_wave) beyond += mean[r];
    const std::string line = fmt::format("{:>5}{:>16.1f}{:>8.1f}%{:>10}  {}", r, lengths[r],
                                         100 * mean[r], leads[r], share_bar(mean[r], most, term));
    out += (long_wave ? term.yellow(line) : line) + "\n";
  }
  return out + "\n" +
         wrapped(fmt::format("{:.0f} % of |q||k| stands in pairs whose wave is longer than the {} "
                             "tokens of training: "
                             "they never made a turn there, and what they do beyond is not known.",
                             100 * beyond, grouped(found.trained)),
                 0, 0) +
         "\n";
}

// A fact of a layer's heads as a strip in which a cell is a head: as high as the fact, of `most`; a
// share above one half stands out. Where the page has no room for all, a cell is several
// neighbours, and shows the most of them.
std::string strip(std::span<const lab::HeadFacts> heads, double lab::HeadFacts::* fact, double most,
                  std::size_t cells, const Terminal& term) {
  static constexpr std::string_view heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr int steps = 8;
  const std::size_t together = (heads.size() + cells - 1) / cells;
  std::string text;
  std::size_t used = 0;
  for (std::size_t from = 0; from < heads.size(); from += together, ++used) {
    double highest = 0;
    for (const lab::HeadFacts& head : heads.subspan(from, std::min(together, heads.size() - from)))
      highest = std::max(highest, head.*fact);
    const double part = most > 0 ? highest / most : 0;
    const std::string cell =
        term.unicode
            ? std::string(heights[std::clamp(static_cast<int>(part * steps), 0, steps - 1)])
            : std::to_string(std::clamp(static_cast<int>(part * 10), 0, 9));
    text += most == 1 && part > 0.5 ? term.yellow(cell) : cell;
  }
  return text + std::string(cells - used, ' ');
}

std::string watch_page(const Surveyed& found, const Terminal& term) {
  const std::vector<lab::HeadFacts>& heads = found.survey.heads;
  std::size_t widest = 1;
  for (std::size_t from = 0, to = 0; from < heads.size(); from = to) {
    while (to < heads.size() && heads[to].layer == heads[from].layer) ++to;
    widest = std::max(widest, to - from);
  }
  constexpr std::size_t number = 7, gap = 3, of_layer = 5, of_entropy = 9;
  const std::size_t room = (page_width() - of_layer - of_entropy) / 3 - number - gap - 1;
  const std::size_t cells = std::min(widest, std::max<std::size_t>(room, 8));
  double farthest = 0;
  for (const lab::HeadFacts& head : heads) farthest = std::max(farthest, head.distance);

  std::string out =
      wrapped(fmt::format("{}: where its {} heads look, over {} tokens. {}.",
                          term.bold(found.model), heads.size(), grouped(found.survey.tokens),
                          widest <= cells ? "A cell is a head"
                                          : fmt::format("A cell is the most of {} heads",
                                                        (widest + cells - 1) / cells)),
              0, 0);
  const auto column = [&](std::string_view name) {
    return std::string(gap, ' ') + padded(name, number + 1 + cells);
  };
  out +=
      "\n\n" +
      term.bold(fmt::format("{:>{}}{}{}{}{:>{}}", "layer", of_layer, column("first token"),
                            column("token before"), column("tokens away"), "entropy", of_entropy)) +
      "\n";
  for (std::size_t from = 0, to = 0; from < heads.size(); from = to) {
    while (to < heads.size() && heads[to].layer == heads[from].layer) ++to;
    const auto layer = std::span(heads).subspan(from, to - from);
    const auto mean = [&](double lab::HeadFacts::* fact) {
      double sum = 0;
      for (const lab::HeadFacts& head : layer) sum += head.*fact;
      return sum / static_cast<double>(layer.size());
    };
    out += fmt::format("{:>{}}", layer.front().layer, of_layer);
    for (const auto fact : {&lab::HeadFacts::sink, &lab::HeadFacts::previous})
      out += fmt::format("{:{}}{:>{}.0f} % {}", "", gap, 100 * mean(fact), number - 2,
                         strip(layer, fact, 1, cells, term));
    out += fmt::format("{:{}}{:>{}.1f} {}{:>{}.2f}\n", "", gap, mean(&lab::HeadFacts::distance),
                       number, strip(layer, &lab::HeadFacts::distance, farthest, cells, term),
                       mean(&lab::HeadFacts::entropy), of_entropy);
  }

  std::vector<const lab::HeadFacts*> order;
  order.reserve(heads.size());
  for (const lab::HeadFacts& head : heads) order.push_back(&head);
  const auto first = [&](double lab::HeadFacts::* fact, bool most, double times,
                         std::string_view unit) {  // the four heads that lead
    std::ranges::stable_sort(order, [&](const lab::HeadFacts* a, const lab::HeadFacts* b) {
      return most ? a->*fact > b->*fact : a->*fact < b->*fact;
    });
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, order.size()); ++i)
      text += fmt::format("{}L{}H{} {:.{}f}{}", text.empty() ? "" : ", ", order[i]->layer,
                          order[i]->head, times * (order[i]->*fact), times == 1 ? 1 : 0, unit);
    return text;
  };
  const auto leaders = [&](std::string_view what, double lab::HeadFacts::* fact) {
    const auto over =
        std::ranges::count_if(heads, [&](const lab::HeadFacts& h) { return h.*fact > 0.5; });
    return wrapped(fmt::format("{:<14}{} of {} heads give it more than half; most: {}", what, over,
                               heads.size(), first(fact, true, 100, " %")),
                   14, 0) +
           "\n";
  };
  const auto distance = [&](std::string_view what, bool most) {
    return fmt::format("{:<14}{} tokens away on average\n", what,
                       first(&lab::HeadFacts::distance, most, 1, ""));
  };
  return out + "\n" + leaders("first token", &lab::HeadFacts::sink) +
         leaders("token before", &lab::HeadFacts::previous) + distance("nearest", false) +
         distance("farthest", true);
}

Run define_survey(CLI::App& app, bool waves, std::string footer) {
  auto real = std::make_shared<RealModelFlags>();
  auto tokens = std::make_shared<std::int64_t>(512);
  add_real_model(app, real);
  app.add_option("--tokens", *tokens,
                 "Tokens of the text to run, at most 8192; time grows with their square")
      ->transform(token_count());
  app.footer(std::move(footer));
  return [real, tokens, waves, &app]() -> Expected<int> {
    POSENC_TRY(found, surveyed(*real, *tokens));
    const Terminal term = terminal(no_color(app));
    if (real->json)
      write_out("{}\n", survey_json(found, waves));
    else
      write_out("{}", waves ? waves_page(found, term) : watch_page(found, term));
    return 0;
  };
}

Run define_waves(CLI::App& app) {
  return define_survey(
      app, true,
      "A pair of channels moves a logit by at most |q_r||k_r|, whatever its angle: the mean of "
      "that, as a share of the\n"
      "head's sum, says which waves a model has learned to use. Pairs that made no turn within the "
      "trained length are\n"
      "marked.\n\n"
      "Examples:\n"
      "  posenc lab waves smollm2.gguf book.txt\n"
      "  posenc lab waves smollm2.gguf book.txt --tokens 2k --json | jq '.heads[0].waves'");
}

Run define_watch(CLI::App& app) {
  return define_survey(app, false,
                       "Of each layer: the mean weight on the first token (a sink, which no cache "
                       "may evict), that on the token\n"
                       "before, and how far away the weight lies; beside each a strip with a cell "
                       "for each head. Entropy: 0 where one\n"
                       "key has all the weight, 1 where all have the same.\n\n"
                       "Examples:\n"
                       "  posenc lab watch smollm2.gguf book.txt\n"
                       "  posenc lab watch smollm2.gguf book.txt --tokens 2k --json | jq "
                       "'[.heads[] | select(.previous > 0.5)]'");
}

}  // namespace

extern const Command lab_waves{"waves", "which waves of the rotation a real model's heads use",
                               define_waves};
extern const Command lab_watch{
    "watch", "where a real model's heads look: first token, last, how far", define_watch};

}  // namespace posenc::cli
