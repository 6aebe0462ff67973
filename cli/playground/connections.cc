// A loop around poll(): what a slow client costs is its place among 256 and a few kilobytes, never
// another's time. Why not cpp-httplib (0.11.4, tried): it waits for each byte and not for the head,
// so that as many clients as it has threads, each sending a byte now and then, kept all others out;
// and it took 80 MB of headers in one request.
#include "cli/playground/connections.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "cli/playground/sockets.h"

namespace posenc::cli {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t most_connections = 256;
constexpr auto to_ask = 3s, to_take_the_answer = 60s, to_leave = 2s;
constexpr auto to_keep_a_place = 3s;  // where others wait for one

using Answering = std::function<std::optional<Answer>(std::string_view)>;

class Connection {
 public:
  Connection(int socket, Clock::time_point now)
      : socket_(socket), began_(now), deadline_(now + to_ask) {}
  ~Connection() { close(socket_); }
  Connection(Connection&&) = delete;

  Clock::time_point began() const { return began_; }
  Clock::time_point deadline() const { return deadline_; }
  pollfd wait() const {
    return {socket_, static_cast<short>(answer_ && !is_sent() ? POLLOUT : POLLIN), 0};
  }

  // As far as it goes without waiting; where that is the end, its time is up.
  void go_on(const Answering& answering) {
    if (!advance(answering)) deadline_ = {};
  }

 private:
  bool is_sent() const { return sent_ == answer_->head.size() + answer_->body.size(); }

  bool advance(const Answering& answering) {
    if (answer_ && is_sent()) {
      // Closed with bytes unread a connection is reset, and the client may lose the answer.
      received_.clear();
      return receive();
    }
    if (!answer_) {
      if (!receive()) return false;
      answer_ = answering(received_);
      if (!answer_) return true;
      deadline_ = Clock::now() + to_take_the_answer;
    }
    return send();
  }

  bool receive() {
    char bytes[longest_head];
    const ssize_t count = recv(socket_, bytes, sizeof bytes - received_.size(), 0);
    if (count > 0) received_.append(bytes, static_cast<std::size_t>(count));
    return count > 0 || (count < 0 && is_to_wait());
  }

  bool send() {
    const std::size_t in_head = std::min(sent_, answer_->head.size()), in_body = sent_ - in_head;
    iovec parts[] = {
        {answer_->head.data() + in_head, answer_->head.size() - in_head},
        {const_cast<char*>(answer_->body.data()) + in_body, answer_->body.size() - in_body}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = std::size(parts);
    const ssize_t count = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (count < 0) return is_to_wait();
    sent_ += static_cast<std::size_t>(count);
    if (is_sent()) {
      shutdown(socket_, SHUT_WR);
      deadline_ = Clock::now() + to_leave;
    }
    return true;
  }

  static bool is_to_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

  const int socket_;
  Clock::time_point began_, deadline_;
  std::string received_;
  std::optional<Answer> answer_;  // none until the whole head is there
  std::size_t sent_ = 0;
};

// In the order in which they came.
class Connections {
 public:
  Connections(int listener, const Answering& answering)
      : listener_(listener), answering_(answering) {}

  bool step(const sigset_t& signals) {
    const Clock::time_point now = Clock::now();
    std::erase_if(all_, [now](const Connection& one) { return one.deadline() <= now; });

    waits_.clear();
    Clock::time_point next = now + 1h;
    for (const Connection& one : all_) {
      waits_.push_back(one.wait());
      next = std::min(next, one.deadline());
    }
    const bool room = has_room(now);
    if (room)
      waits_.push_back({listener_, POLLIN, 0});
    else
      next = std::min(next, all_.front().began() + to_keep_a_place);
    if (!wait_for(waits_, next - now, signals)) return errno == EINTR;

    auto wait = waits_.begin();
    for (Connection& one : all_)
      if ((wait++)->revents != 0) one.go_on(answering_);
    return !room || waits_.back().revents == 0 || accept_all();
  }

 private:
  bool has_room(Clock::time_point now) const {
    return all_.size() < most_connections || all_.front().began() + to_keep_a_place <= now;
  }

  bool accept_all() {
    const Clock::time_point now = Clock::now();
    while (has_room(now)) {
      const int socket = next_connection(listener_);
      if (socket < 0) {
        const bool is_short =
            errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (!is_short) return true;
        if (all_.empty()) return false;
      }
      if (socket < 0 || all_.size() == most_connections) all_.pop_front();
      if (socket >= 0) all_.emplace_back(socket, now);
    }
    return true;
  }

  const int listener_;
  const Answering& answering_;
  std::list<Connection> all_;
  std::vector<pollfd> waits_;
};

}  // namespace

bool answer_all(int listener, const Answering& answering, const volatile std::sig_atomic_t& ended,
                const sigset_t& signals) {
  Connections connections(listener, answering);
  while (!ended)
    if (!connections.step(signals)) return false;
  return true;
}

}  // namespace posenc::cli
