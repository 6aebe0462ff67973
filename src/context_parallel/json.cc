#include <string>
#include <utility>

#include "posenc/context_parallel.h"
#include "src/text/json_writer.h"

namespace posenc::layout {
namespace {

using Writer = posenc::detail::JsonWriter;

// An empty word is null.
void word(Writer& out, std::string_view key, const std::string& text) {
  out.key(key);
  text.empty() ? out.null() : out.value(text);
}

void write(Writer& out, const GroupVerdict& group) {
  out.object().member("stack", name(group.stack)).member("layers", group.layers);
  out.member("label", group.label).member("verdict", name(group.verdict));
  out.key("reasons").array();
  for (const Reason& reason : group.reasons) {
    out.object().member("code", reason.code).member("verdict", name(reason.verdict));
    out.member("by", name(reason.basis)).member("why", reason.why);
    word(out, "cure", reason.cure);
    word(out, "source", reason.source);
    out.end();
  }
  out.end();
  out.member("needs", group.needs).member("pairs", group.pairs).member("heads", group.heads);
  out.member("balance", group.balance).member("bytes", group.bytes).end();
}

}  // namespace

std::string to_json(const Judgement& judgement) {
  const Sharding& sharding = judgement.sharding;
  Writer out;
  out.object().member("layout", sharding.text()).member("ranks", sharding.ranks);
  out.member("order", name(sharding.order)).member("exchange", name(sharding.exchange));
  out.member("head_ranks", sharding.head_ranks).member("block", sharding.block);
  word(out, "engine", sharding.engine);
  out.member("said", sharding.said).member("length", judgement.length);
  out.member("verdict", name(judgement.verdict));
  out.key("groups").array();
  for (const GroupVerdict& group : judgement.groups) write(out, group);
  out.end();
  out.member("work", judgement.work).member("balance", judgement.balance);
  out.member("bytes", judgement.bytes).member("machine", judgement.machine.name);
  out.member("seconds", judgement.seconds).member("efficiency", judgement.efficiency);
  out.key("best").object().member("layout", judgement.best.layout);
  out.member("verdict", name(judgement.best.verdict)).member("balance", judgement.best.balance);
  out.member("bytes", judgement.best.bytes);
  out.member("seconds", judgement.best.seconds).member("why", judgement.best.why).end();
  out.end();
  return std::move(out.text);
}

}  // namespace posenc::layout
