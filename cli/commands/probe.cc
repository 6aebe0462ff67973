// posenc probe: which rotation a server runs, by its log-probabilities alone.
#include "evidence/lab/endpoint/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/arguments/flags.h"
#include "cli/command.h"
#include "cli/pages/probe_page.h"
#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"
#include "cli/probe/apis.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct ProbeFlags {
  std::vector<std::string> urls;
  std::string model, name, key_env = "POSENC_KEY";
  std::int64_t at = 0, limit = 0, seed = 1;
  double timeout = 300;
  int threads = 0;
  bool json = false;
};

Expected<ServerQuery> asking_of(const std::string& address, const ProbeFlags& flags) {
  POSENC_TRY(url, parse_url(address));
  ServerQuery made{.url = url, .model = flags.name};
  made.limits.seconds = flags.timeout;
  if (const char* key = std::getenv(flags.key_env.c_str()); key != nullptr && *key != '\0') {
    // A line's end in it would be a header of its own.
    for (const char* c = key; *c != '\0'; ++c)
      if (*c <= ' ' || *c == 0x7F)
        return fail("--key_env", "a key must have no blanks or line ends", flags.key_env);
    if (!is_loopback(url))
      return fail("--key_env", "a key would travel in clear text to another machine",
                  flags.key_env + " for " + url.host,
                  "open a tunnel (ssh -L) and give its local end, or unset the variable");
    made.key = key;
  }
  return made;
}

Expected<lab::ProbeResult> probed(lab::Prober& prober, HttpScorer& scorer,
                                  const lab::ProbeOptions& options, const std::string& address) {
  const std::int64_t tokens = options.limit;
  write_error("posenc: asks {} for at most {} prompt tokens\n", address, grouped(tokens));
  Progress progress("probe", static_cast<std::size_t>(tokens));
  lab::ProbeOptions told = options;
  told.told = [&](std::int64_t sent, const std::string& what) {
    progress.tell_share(static_cast<double>(sent) / static_cast<double>(tokens), what);
  };
  return prober.probe(scorer, told);
}

Run define_probe(CLI::App& app) {
  auto flags = std::make_shared<ProbeFlags>();
  app.add_option("URL", flags->urls,
                 "Where a server listens (http://127.0.0.1:8000/v1), or two that are compared")
      ->type_name("URL")
      ->expected(1, 2)
      ->required();
  app.add_option("--model", flags->model,
                 "The model that it should run: a GGUF with its tokenizer, or a folder with "
                 "config.json, tokenizer.json and model.safetensors")
      ->type_name("FILE|FOLDER")
      ->required();
  app.add_option(
         "--at,--length", flags->at,
         "Tokens of the longest text (4096, 16k); default: 1024, or the context if that is less")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--limit", flags->limit, "Prompt tokens in all; default: 8192, or four times --at")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--seed", flags->seed, "Other texts of the same kind")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--name", flags->name,
                 "The model's name at the server; default: the first it lists")
      ->type_name("NAME");
  app.add_option("--key_env", flags->key_env,
                 "The variable with the server's key, which is never shown")
      ->type_name("NAME");
  app.add_option("--timeout", flags->timeout, "Seconds for an answer")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--threads", flags->threads, "Threads; default: as many as there are processors")
      ->check(CLI::Range(1, 1024))
      ->default_str("");
  app.add_flag("--json", flags->json)->description("All of it as JSON (docs/json.md)");
  app.footer(
      "Asks the server for log-probabilities of texts that it chooses, computes the same from the\n"
      "model's weights under each rotation that it might run, and names the likeliest. Needs\n"
      "OpenBLAS (Debian: libopenblas0-pthread).\n"
      "Exit code 0: as the file says, 1: another rotation, or none that is known, 2: no answer "
      "that\n"
      "could be used.\n\n"
      "Examples:\n"
      "  posenc probe http://127.0.0.1:8080 --model SmolLM2.gguf\n"
      "  posenc probe http://127.0.0.1:8000/v1 --model SmolLM2.gguf --at 8k --json\n"
      "  posenc probe http://127.0.0.1:8000 http://127.0.0.1:8001 --model SmolLM2.gguf");
  return [flags, &app]() -> Expected<int> {
    std::vector<ServerQuery> asking;
    for (const std::string& address : flags->urls) {
      POSENC_TRY(one, asking_of(address, *flags));
      asking.push_back(one);
    }
    POSENC_TRY(tokenizer, lab::Tokenizer::read(flags->model));
    std::vector<std::unique_ptr<HttpScorer>> scorers;
    for (ServerQuery& one : asking) {
      POSENC_TRY(scorer, HttpScorer::find(std::move(one), &tokenizer));
      scorers.push_back(std::move(scorer));
    }
    const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    POSENC_TRY(llama,
               lab::Llama::read(flags->model, {flags->threads > 0 ? flags->threads : processors}));
    std::int64_t reach = llama.about().context > 0 ? llama.about().context : 1024;
    for (const auto& scorer : scorers)
      if (scorer->context() > 0) reach = std::min(reach, scorer->context());
    lab::ProbeOptions options{
        .at = flags->at > 0 ? flags->at : std::min<std::int64_t>(1024, reach - 64),
        .seed = static_cast<std::uint64_t>(flags->seed)};
    options.limit = flags->limit > 0 ? flags->limit : std::max<std::int64_t>(8192, 4 * options.at);
    for (const auto& scorer : scorers)
      if (scorer->context() > 0 && options.at > scorer->context() - 48)
        return fail(
            "--at", "must leave the server some tokens to generate",
            std::to_string(options.at) + " of a context of " + std::to_string(scorer->context()),
            "lower --at, or start the server with a longer context");
    lab::Prober prober(llama, &tokenizer);
    std::vector<lab::ProbeResult> results;
    std::vector<lab::ProbedServer> servers;
    for (std::size_t i = 0; i < scorers.size(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      POSENC_TRY(result, probed(prober, *scorers[i], options, flags->urls[i]));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      results.push_back(std::move(result));
      servers.push_back({.url = flags->urls[i],
                         .model = scorers[i]->model(),
                         .api = std::string(name(scorers[i]->api())),
                         .context = scorers[i]->context(),
                         .seconds = took.count()});
    }
    if (flags->json) {
      write_out("{}\n", lab::to_json(results, servers, llama.about().name));
    } else {
      const Terminal term = terminal(no_color(app));
      for (std::size_t i = 0; i < results.size(); ++i)
        write_out("{}{}", i > 0 ? "\n" : "", probe_page(results[i], servers[i], term));
      if (results.size() == 2)
        write_out("{}", apart_page(lab::servers_apart(results[0], results[1]), term));
    }
    return std::ranges::all_of(results,
                               [](const lab::ProbeResult& one) {
                                 return one.verdict == lab::ProbeVerdict::as_file;
                               })
               ? 0
               : 1;
  };
}

}  // namespace

extern const Command probe_command{
    "probe", "which rotation a server runs, by its log-probabilities alone", define_probe};

}  // namespace posenc::cli
