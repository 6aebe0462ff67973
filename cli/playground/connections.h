// The connections of `posenc serve`, all on one thread: none waits for another, and none is held
// for long.
#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <string_view>

#include "cli/playground/answer.h"

namespace posenc::cli {

// Gives each connection one answer, until a signal sets `ended`; `signals` is the mask to wait
// with. `answering` gets what a client has sent so far, and must have an answer to longest_head
// bytes. Bounds: 256 connections of longest_head bytes each, 3 s from connecting to the end of a
// request's head, 60 s for an answer to be taken. Where all places are taken, the oldest connection
// loses its own once it has had it for 3 s. false, with errno: the system does not even give one
// connection.
bool answer_all(int listener,
                const std::function<std::optional<Answer>(std::string_view)>& answering,
                const volatile std::sig_atomic_t& ended, const sigset_t& signals);

}  // namespace posenc::cli
