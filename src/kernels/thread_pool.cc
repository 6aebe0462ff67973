// A list of work in progress, and threads that sleep until there is some. POSIX threads:
// std::thread throws where none can be started, and nothing here may.
#include "src/kernels/thread_pool.h"

#include <pthread.h>

#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace posenc::detail::pool {
namespace {

thread_local bool working = false;

// One call of run_parts, which lives on the caller's stack.
struct Work {
  Part part;
  const void* act;
  std::int64_t count;
  int team;
  int next = 1;  // the first part that nobody has begun; the caller begins with part 0
  int done = 0;
  Work* after = nullptr;

  void run(int member) const {
    const Share mine = share_of(count, team, member);
    working = true;
    part(act, mine.first, mine.last);
    working = false;
  }
};

class Pool {
 public:
  void run(Work& work) {
    std::unique_lock lock(mutex_);
    while (threads_ < work.team - 1 && start_one()) {
    }
    work.after = first_;
    first_ = &work;
    lock.unlock();
    if (work.team == 2) {
      more_.notify_one();
    } else {
      more_.notify_all();
    }
    work.run(0);
    lock.lock();
    ++work.done;
    while (work.next < work.team) run_next(work, lock);
    for (Work** at = &first_; *at; at = &(*at)->after)
      if (*at == &work) {
        *at = work.after;
        break;
      }
    all_done_.wait(lock, [&] { return work.done == work.team; });
  }

 private:
  // Unlocked while it works.
  void run_next(Work& work, std::unique_lock<std::mutex>& lock) {
    const int member = work.next++;
    lock.unlock();
    work.run(member);
    lock.lock();
    if (++work.done == work.team) all_done_.notify_all();
  }

  bool start_one() {
    pthread_attr_t detached;
    if (pthread_attr_init(&detached) != 0) return false;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const auto serve = [](void* pool) -> void* {
      static_cast<Pool*>(pool)->serve();
      return nullptr;
    };
    const bool started = pthread_create(&thread, &detached, serve, this) == 0;
    pthread_attr_destroy(&detached);
    threads_ += started;
    return started;
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Work* work = first_;
      while (work && work->next == work->team) work = work->after;
      if (work) {
        run_next(*work, lock);
      } else {
        more_.wait(lock);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable more_, all_done_;
  Work* first_ = nullptr;
  int threads_ = 0;
};

// Never destroyed: its threads may outlive everything.
Pool* the_pool = nullptr;
pthread_once_t once = PTHREAD_ONCE_INIT;

Pool& pool() {
  pthread_once(&once, [] {
    the_pool = new Pool;
    // The child has none of the threads, and the lock may be held by one of them.
    pthread_atfork(nullptr, nullptr, [] { the_pool = new Pool; });
  });
  return *the_pool;
}

}  // namespace

int usual_threads() {
  static const int usual = [] {
    const char* const said = std::getenv("OMP_NUM_THREADS");
    int number = 0;  // the first of a list, one for each level of nesting
    if (said) std::from_chars(said, said + std::strlen(said), number);
    const auto processors = static_cast<int>(std::thread::hardware_concurrency());
    return number > 0 ? number : processors > 0 ? processors : 1;
  }();
  return usual;
}

bool within_part() { return working; }

void run_parts(std::int64_t count, int threads, Part part, const void* act) {
  Work work{part, act, count, threads};
  pool().run(work);
}

}  // namespace posenc::detail::pool
