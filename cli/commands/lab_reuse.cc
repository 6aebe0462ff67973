// posenc lab reuse: what a model loses when keys are used again behind another prefix, or moved by
// a little many times.
#include "evidence/lab/model/reuse.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/commands/lab.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::size_t chunk_columns = 21;

std::string band_text(const std::vector<std::int64_t>& bands, std::size_t band) {
  const std::int64_t from = band == 0 ? 1 : bands[band - 1] + 1;
  return from == bands[band] ? std::to_string(from) : fmt::format("{}–{}", from, bands[band]);
}

std::string to_the_right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, columns(text)), ' ') + text;
}

std::string divergence_text(double nats) { return fmt::format("{:.4f}", nats); }

std::string line_of(const std::string& what, const std::string& anew, const lab::Lost& lost) {
  std::string line = padded(what, chunk_columns) + to_the_right(anew, 5) +
                     to_the_right(divergence_text(lost.divergence), 8) +
                     to_the_right(fmt::format("{:+.4f}", lost.loss), 9);
  for (const double nats : lost.by_distance) line += to_the_right(divergence_text(nats), 8);
  return line + "\n";
}

std::string page_of_reuse(const lab::Reuse& found, const Terminal& term) {
  const lab::ReuseOptions& asked = found.options;
  std::string out =
      wrapped(fmt::format("{}: a chunk of {} tokens, read without the prefix of {} that it then "
                          "stands behind, {}. KL of the next {} tokens' predictions from a fresh "
                          "prefill's, in nats: of all, and by distance behind the chunk.",
                          found.model, grouped(asked.chunk), grouped(asked.prefix),
                          asked.places == 1 ? "at one place of the text"
                                            : fmt::format("at {} places of the text", asked.places),
                          grouped(asked.tail)),
              0, 0) +
      "\n\n";
  std::string head = padded("the chunk was read", chunk_columns) + to_the_right("anew", 5) +
                     to_the_right("KL", 8) + to_the_right("loss", 9);
  for (std::size_t band = 0; band < found.bands.size(); ++band)
    head += to_the_right(band_text(found.bands, band), 8);
  out += term.bold(head) + "\n";
  for (const lab::ReusedChunk& chunk : found.chunks)
    out += line_of(std::string(chunk.read == lab::ChunkRead::alone ? "alone" : "elsewhere") +
                       (chunk.moved ? ", moved" : ", not moved"),
                   std::to_string(chunk.anew), chunk.lost);
  out += line_of("left out", "", found.left_out);
  out += "\n" +
         term.bold(padded("layer", 8) + to_the_right("keys off by", 13) +
                   to_the_right("values off by", 15) + to_the_right("KL", 9)) +
         "  " + term.dim("of one layer that re-uses, all others fresh") + "\n";
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    const lab::ReusedLayer& at = found.layers[layer];
    out += padded(std::to_string(layer), 8) +
           to_the_right(fmt::format("{:.1f} %", 100 * at.keys), 13) +
           to_the_right(fmt::format("{:.1f} %", 100 * at.values), 15) +
           to_the_right(divergence_text(at.lost.divergence), 9) + "\n";
  }
  return out;
}

std::string page_of_drift(const std::vector<lab::Drift>& found, std::int64_t moves,
                          const Terminal& term) {
  std::string out =
      "\n" +
      wrapped(
          fmt::format("Keys moved on by {} positions, at once and one by one: off by so much of "
                      "themselves, and what the tail's predictions lose beside the same keys "
                      "unmoved",
                      grouped(moves)),
          0, 0) +
      "\n\n";
  out += term.bold(padded("keys in", 10) + to_the_right("unmoved", 11) + to_the_right("once", 11) +
                   to_the_right("one by one", 12) + to_the_right("KL once", 11) +
                   to_the_right("KL one by one", 15) + to_the_right("loss", 9)) +
         "\n";
  for (const lab::Drift& drift : found)
    out += padded(name(drift.dtype), 10) + to_the_right(fmt::format("{:.1e}", drift.stood), 11) +
           to_the_right(fmt::format("{:.1e}", drift.once), 11) +
           to_the_right(fmt::format("{:.1e}", drift.stepwise), 12) +
           to_the_right(fmt::format("{:.1e}", std::abs(drift.lost_once.divergence)), 11) +
           to_the_right(fmt::format("{:.1e}", std::abs(drift.lost_stepwise.divergence)), 15) +
           to_the_right(fmt::format("{:+.4f}", drift.lost_stepwise.loss), 9) + "\n";
  return out;
}

Run define_reuse(CLI::App& app) {
  struct ReuseFlags {
    lab::ReuseOptions options = {};
    std::int64_t moves = 0;
  };
  auto real = std::make_shared<RealModelFlags>();
  auto flags = std::make_shared<ReuseFlags>();
  add_real_model(app, real);
  app.add_option("--prefix", flags->options.prefix, "Tokens before the chunk")
      ->transform(token_count());
  app.add_option("--chunk", flags->options.chunk, "Tokens whose keys are used again")
      ->transform(token_count());
  app.add_option("--tail", flags->options.tail, "Tokens behind it, whose predictions are compared")
      ->transform(token_count());
  app.add_option("--places", flags->options.places, "Places, spread evenly over the text")
      ->transform(above_zero());
  const CLI::Option* anew =
      app.add_option("--anew", flags->options.anew,
                     "So many first tokens of the chunk are read again (0,4,16,64,256)")
          ->delimiter(',')
          ->transform(position_count());
  app.add_option("--moves", flags->moves,
                 "Also move the chunk's keys on by so many positions, at once and one by one")
      ->transform(position_count());
  app.footer(
      "Moved keys are right in the first layer. Deeper ones hold what their tokens read of the "
      "tokens before them, and\n"
      "behind another prefix they would have read others: no rotation mends that, and this is what "
      "it costs.\n\n"
      "Examples:\n"
      "  posenc lab reuse smollm2.gguf book.txt\n"
      "  posenc lab reuse smollm2.gguf book.txt --places 8 --moves 400 --json > r.json\n"
      "  posenc lab picture r.json reuse.svg");
  return [real, flags, anew, &app]() -> Expected<int> {
    POSENC_TRY(model, real_model(*real));
    if (anew->empty())  // a short chunk has not the tokens of all that nobody asked for
      std::erase_if(flags->options.anew,
                    [&](std::int64_t first) { return first > flags->options.chunk; });
    lab::Reuse found;
    {
      Waiting waiting("reuse", model.llama.about().name);
      POSENC_TRY(made, lab::reuse(model.llama, model.tokens, flags->options,
                                  [&](double done) { waiting.share(done); }));
      found = std::move(made);
    }
    std::vector<lab::Drift> drifts;
    if (flags->moves > 0) {
      constexpr std::array dtypes{DType::f32, DType::f16, DType::bf16};
      const Waiting waiting("reuse", "moves");
      POSENC_TRY(made, lab::drift(model.llama, model.tokens, flags->options, flags->moves, dtypes));
      drifts = std::move(made);
    }
    if (real->json) {
      write_out("{}\n", lab::to_json(found, drifts, flags->moves));
      return 0;
    }
    const Terminal term = terminal(no_color(app));
    write_out("{}", page_of_reuse(found, term));
    if (!drifts.empty()) write_out("{}", page_of_drift(drifts, flags->moves, term));
    return 0;
  };
}

}  // namespace

extern const Command lab_reuse{
    "reuse", "keys used again behind another prefix: what it costs, by layer and distance",
    define_reuse};

}  // namespace posenc::cli
