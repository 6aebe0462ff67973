// posenc lab say: how a decoder that the lab has trained goes on with a text, and what each byte of
// it cost.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/json_text.h"
#include "cli/pages/progress.h"
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

// Every byte is asked for but the first, given those before it.
lab::Batch passage(std::string_view text, std::int64_t first) {
  lab::Batch batch{.texts = 1, .length = std::ssize(text), .positions = {}};
  for (const char c : text) batch.tokens.push_back(static_cast<unsigned char>(c));
  batch.targets.assign(batch.tokens.begin() + 1, batch.tokens.end());
  batch.targets.push_back(-1);
  batch.positions = Positions::range(first, batch.length);
  return batch;
}

// Of what may come behind the text.
Expected<std::vector<float>> last_logits(lab::Decoder& decoder, const lab::Batch& batch) {
  POSENC_TRY(logits, decoder.logits(batch));
  const auto last = logits.last(logits.size() / batch.tokens.size());
  return std::vector(last.begin(), last.end());
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
  const lab::Batch batch = passage(text, flags.first);
  POSENC_TRY(mean, trained.decoder.loss(batch));
  const auto nats = trained.decoder.losses().first(text.size() - 1);
  const std::vector<double> losses(nats.begin(), nats.end());
  POSENC_TRY(logits, last_logits(trained.decoder, batch));
  std::string more;
  {
    Progress progress("lab", static_cast<std::size_t>(flags.bytes));
    std::vector<float> next = logits;
    for (std::int64_t i = 0; i < flags.bytes; ++i) {
      progress.tell(static_cast<std::size_t>(i), "a byte at a time");
      more += static_cast<char>(std::ranges::max_element(next) - next.begin());
      POSENC_TRY(then, last_logits(trained.decoder, passage(text + more, flags.first)));
      next = std::move(then);
    }
  }
  if (flags.json) {
    write_out("{{\"continuation\":{},\"losses\":{},\"logits\":{}}}\n", json_string(more),
              json_numbers(losses, "{:.7g}"),
              json_numbers(std::vector<double>(logits.begin(), logits.end()), "{:.7g}"));
    return 0;
  }
  std::istringstream lines(more);
  for (std::string line; std::getline(lines, line);) write_out("{}\n", printable(line, 4096));
  write_out("\n{:.3f} nats a byte over {} bytes; trained on texts of {}\n", mean, losses.size(),
            trained.cell.shape.trained_length);
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
