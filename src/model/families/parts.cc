// Models of several parts: an encoder and a decoder, each a model of its own within the file or
// both of one build, and the encoder of sound beside a text model.
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {
namespace {

// Gives a stack to the groups that were added since; a picture's stay a picture's.
void move_to(Stack stack, std::size_t first, Model& model) {
  for (std::size_t i = first; i < model.groups.size(); ++i)
    if (!is_tower(model.groups[i].stack)) model.groups[i].stack = stack;
}

// One side by a family of its own. An encoder sees both ways, whatever its family does alone.
void read_side(const Section& config, const Family& family, Stack stack) {
  Family side = family;
  if (side.read != read_vit) side.causal = stack == Stack::decoder;
  if (side.read == read_t5) side.side = name(stack);  // its file says the sizes of both
  const std::size_t first = config.reading.model.groups.size();
  side.read(config, side);
  move_to(stack, first, config.reading.model);
}

void read_part(const Section& part, Stack stack) {
  Reading& reading = part.reading;
  const Section text = text_part(part);
  const auto type = text.word("model_type");
  const Family* family = type ? find_family(type->value) : nullptr;
  if (!family) {
    reading.refuse(text.where("model_type"), "is not a known family, and its part cannot be read",
                   type ? "'" + type->value + "'" : std::string(),
                   "name the known family it shares its code with");
    return;
  }
  const std::string outer = std::exchange(reading.family, type->value);
  read_side(text, *family, stack);
  if (const Section vision = part.section("vision_config"); vision && !reading.error)
    read_tower(vision, {});
  reading.family = outer;
}

}  // namespace

void read_sides(const Section& config, const Family& family) {
  for (const Stack stack : {Stack::encoder, Stack::decoder}) {
    if (config.reading.error) return;
    Family side = family;
    side.side = name(stack);
    side.read = read_decoder;
    read_side(config, side, stack);
  }
}

// Where only the encoder is a part, the file itself is the decoder, if the row has sizes for one:
// it rotates by the row's base, or adds learned rows.
void read_parts(const Section& config, const Family& family) {
  const Section encoder = config.section(
                    "encoder encoder_config audio_config asr_config text_encoder "
                    "dit_config"),
                decoder = config.section("decoder decoder_config");
  if (!encoder) {
    config.reading.refuse(config.where("encoder"), "is missing", {},
                          "give the config.json with both parts, or that of one of them");
    return;
  }
  read_part(encoder, Stack::encoder);
  if (!family.remark.empty() && family.sizes.layers == 0)
    config.reading.warn("family_remark", family.remark);
  if (config.reading.error) return;
  if (decoder) return read_part(decoder, Stack::decoder);
  if (family.sizes.layers == 0) return;
  Family rest = family;
  rest.read = family.rope.theta > 0 ? read_decoder : read_learned;
  read_side(config, rest, Stack::decoder);
}

void read_audio(const Section& audio) {
  Reading& reading = audio.reading;
  const auto type = audio.word("model_type");
  const Family* family = type ? find_family(type->value) : nullptr;
  const bool covered = family && family->read != read_not_covered;
  if (!covered) {
    reading.warn("audio_not_explained",
                 "the audio tower" + (type ? " '" + type->value + "'" : std::string()) +
                     " is not covered" +
                     (family && !family->remark.empty() ? ": " + std::string(family->remark)
                                                        : std::string()) +
                     "; only the other parts are explained");
    return;
  }
  const std::int64_t context = reading.model.context, trained = reading.model.trained_context;
  const std::string outer = std::exchange(reading.family, type->value);
  const std::size_t first = reading.model.groups.size();
  family->read(audio, *family);
  move_to(Stack::audio, first, reading.model);
  reading.model.context = context;
  reading.model.trained_context = trained;
  reading.family = outer;
}

}  // namespace posenc::detail
