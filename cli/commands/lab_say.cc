// posenc lab say: how a decoder that the lab has trained goes on with a text, and what each byte of
// it cost.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/json_text.h"
#include "cli/pages/terminal.h"
#include "evidence/lab/train/weights.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct SayFlags {
  std::string weights, text, scheme;
  std::int64_t bytes = 80, first = 0;
  bool json = false;
};

// Logits of a text's last byte, and the nats of every byte but the first, given those before it.
struct Said {
  std::vector<float> logits = {};
  std::vector<double> losses = {};
};

Expected<Said> read(lab::Decoder& decoder, const std::string& text, std::int64_t first) {
  lab::Batch batch{.texts = 1, .length = std::ssize(text), .positions = {}};
  for (const char c : text) batch.tokens.push_back(static_cast<unsigned char>(c));
  batch.targets.assign(batch.tokens.size(), -1);
  batch.positions = Positions::range(first, batch.length);
  POSENC_TRY(logits, decoder.logits(batch));
  const std::size_t size = logits.size() / text.size();
  Said said;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto row = logits.subspan(i * size, size);
    const float most = *std::ranges::max_element(row);
    const double sum = std::accumulate(row.begin(), row.end(), 0.0, [&](double before, float x) {
      return before + std::exp(static_cast<double>(x) - most);
    });
    const auto next = static_cast<std::size_t>(batch.tokens[i + 1]);
    said.losses.push_back(std::log(sum) + most - row[next]);
  }
  const auto last = logits.last(size);
  said.logits.assign(last.begin(), last.end());
  return said;
}

Expected<int> say(const SayFlags& flags) {
  constexpr std::size_t longest = std::size_t{1} << 16;
  POSENC_TRY(text, named_text(flags.text, longest));
  if (text.size() < 2)
    return fail("TEXT", "must have two bytes or more", std::to_string(text.size()), "give a text");
  POSENC_TRY(trained, lab::read_weights(flags.weights));
  if (!flags.scheme.empty()) {
    POSENC_TRY(scheme, lab::parse_scheme(flags.scheme));
    POSENC_CHECK(trained.decoder.position().replace(std::move(scheme)));
  }
  POSENC_TRY(said, read(trained.decoder, text, flags.first));
  std::string more;
  std::vector<float> next = said.logits;
  for (std::int64_t i = 0; i < flags.bytes; ++i) {
    more += static_cast<char>(std::ranges::max_element(next) - next.begin());
    POSENC_TRY(then, read(trained.decoder, text + more, flags.first));
    next = std::move(then.logits);
  }
  const double mean = std::accumulate(said.losses.begin(), said.losses.end(), 0.0) /
                      static_cast<double>(said.losses.size());
  if (flags.json) {
    const std::vector<double> logits(said.logits.begin(), said.logits.end());
    write_out("{{\"continuation\":{},\"losses\":{},\"logits\":{}}}\n", json_string(more),
              json_numbers(said.losses, "{:.7g}"), json_numbers(logits, "{:.7g}"));
    return 0;
  }
  std::istringstream lines(more);
  for (std::string line; std::getline(lines, line);) write_out("{}\n", printable(line, 4096));
  write_out("\n{:.3f} nats a byte over {} bytes; trained on texts of {}\n", mean,
            said.losses.size(), trained.cell.shape.trained_length);
  return 0;
}

Run define_say(CLI::App& app) {
  auto flags = std::make_shared<SayFlags>();
  app.add_option("WEIGHTS", flags->weights, "What `posenc lab run --weights` wrote")
      ->type_name("FILE")
      ->required();
  app.add_option("TEXT", flags->text, "A text file, - for standard input")
      ->type_name("TEXT")
      ->required();
  app.add_option("--bytes", flags->bytes, "How far to go on, the likeliest byte each time")
      ->check(CLI::Range(0, 4096));
  app.add_option("--scheme", flags->scheme,
                 "Another scheme in place of its own, like 'rope rope_type=linear factor=4'")
      ->type_name("TEXT");
  app.add_option("--first", flags->first, "The position of the first byte")
      ->transform(position_count());
  app.add_flag("--json", flags->json, "Continuation, the nats of each byte and the last logits");
  app.footer(
      "Examples:\n"
      "  posenc lab say web/src/assets/live.safetensors play.txt --bytes 200\n"
      "  posenc lab say web/src/assets/live.safetensors play.txt --scheme 'rope "
      "pairing=interleaved'");
  return [flags] { return say(*flags); };
}

}  // namespace

extern const Command lab_say{"say", "how a decoder that the lab has trained goes on with a text",
                             define_say};

}  // namespace posenc::cli
