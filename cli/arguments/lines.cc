// A batch is read while the one before is answered: threads take lines of it by a counter, and what
// they say is written when all have been.
#include "cli/arguments/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cli/pages/progress.h"
#include "cli/pages/terminal.h"

namespace posenc::cli {
namespace {

constexpr std::size_t longest_line = std::size_t{16} << 20, block = std::size_t{256} << 10;
constexpr std::size_t most_lines = 1024;

struct Batch {
  std::string text;
  std::vector<Line> lines = {};
  std::vector<bool> cut = {};  // too long
  std::vector<LineAnswer> answers = {};
  std::atomic<std::size_t> next = 0;
};

class Reader {
 public:
  explicit Reader(std::FILE* file) : file_(file) {}

  // Whole lines, of a block or as many as it takes for one. False: there are no more.
  bool fill(Batch& batch) {
    batch.lines.clear();
    batch.cut.clear();
    batch.answers.clear();
    batch.next = 0;
    batch.text = std::exchange(rest_, {});
    std::size_t searched = 0;
    while (true) {
      const std::size_t end = batch.text.rfind('\n');
      const bool has_line = end != batch.text.npos && end >= searched;
      if (has_line || over_ || batch.text.size() > longest_line) break;
      searched = batch.text.size();
      read(batch.text);
    }
    split(batch);
    return !batch.lines.empty() || !over_ || !rest_.empty();
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void read(std::string& text) {
    const std::size_t before = text.size();
    text.resize(before + block);
    const std::size_t got = std::fread(text.data() + before, 1, block, file_);
    text.resize(before + got);
    bytes_ += static_cast<std::int64_t>(got);
    over_ = got == 0;
  }

  void split(Batch& batch) {
    std::string_view left = batch.text;
    while (!left.empty()) {
      std::size_t end = left.find('\n');
      const bool ends = end != left.npos;
      if (!ends && !over_ && left.size() <= longest_line) break;
      if (batch.lines.size() == most_lines) break;
      if (!ends) end = left.size();
      std::string_view line = left.substr(0, end);
      left.remove_prefix(std::min(end + 1, left.size()));
      if (skips_) {  // what is left of one that was too long
        skips_ = !ends;
        continue;
      }
      ++number_;
      const bool is_long = line.size() > longest_line;
      skips_ = is_long && !ends;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") == line.npos) continue;
      batch.lines.push_back({is_long ? line.substr(0, 200) : line, number_});
      batch.cut.push_back(is_long);
    }
    rest_ = std::string(left);
  }

  std::FILE* file_;
  std::string rest_;
  std::int64_t number_ = 0, bytes_ = 0;
  bool over_ = false, skips_ = false;
};

// Threads that answer one batch after another.
class Workers {
 public:
  Workers(int count, std::function<void(Batch&, std::size_t)> act) : act_(std::move(act)) {
    for (int n = 0; n < count; ++n) threads_.emplace_back([this] { work(); });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    begins_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void begin(Batch& batch) {
    batch.answers.resize(batch.lines.size());
    {
      const std::lock_guard lock(mutex_);
      batch_ = &batch;
      busy_ = threads_.size();
      ++round_;
    }
    begins_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void work() {
    std::int64_t seen = 0;
    while (true) {
      Batch* batch = nullptr;
      {
        std::unique_lock lock(mutex_);
        begins_.wait(lock, [&] { return ends_ || round_ != seen; });
        if (ends_) return;
        seen = round_;
        batch = batch_;
      }
      for (std::size_t n = batch->next++; n < batch->lines.size(); n = batch->next++)
        act_(*batch, n);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::function<void(Batch&, std::size_t)> act_;
  std::mutex mutex_;
  std::condition_variable begins_, done_;
  Batch* batch_ = nullptr;
  std::size_t busy_ = 0;
  std::int64_t round_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

struct Closes {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Expected<Answered> answer_lines(const std::string& source, std::string_view work, int threads,
                                const std::function<LineAnswer(const Line&)>& answer,
                                const std::function<LineAnswer(const Line&)>& too_long) {
  std::unique_ptr<std::FILE, Closes> opened;
  std::int64_t size = 0;
  if (source != "-") {
    opened.reset(std::fopen(source.c_str(), "rb"));
    if (!opened) return fail(work, "cannot open the lines", source, "check the path");
    std::error_code none;
    const auto bytes = std::filesystem::file_size(source, none);
    if (!none) size = static_cast<std::int64_t>(bytes);
  }
  Reader reader(opened ? opened.get() : stdin);
  const int cores = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  Workers workers(threads > 0 ? threads : cores, [&](Batch& batch, std::size_t n) {
    batch.answers[n] = (batch.cut[n] ? too_long : answer)(batch.lines[n]);
  });
  Progress progress(work, 1);
  const auto begun = std::chrono::steady_clock::now();
  Answered out;
  Batch batches[2];
  bool more = reader.fill(batches[0]);
  std::string text;
  for (std::size_t now = 0; more; now = 1 - now) {
    Batch& batch = batches[now];
    workers.begin(batch);
    more = reader.fill(batches[1 - now]);
    workers.wait();
    text.clear();
    for (const LineAnswer& one : batch.answers) {
      text += one.line;
      text += '\n';
      out.bad += one.bad;
    }
    out.lines += std::ssize(batch.answers);
    write_out("{}", text);
    if (std::ferror(stdout) != 0) break;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    const std::string done =
        fmt::format("{} lines, {} a second", grouped(out.lines),
                    grouped(static_cast<std::int64_t>(static_cast<double>(out.lines) /
                                                      std::max(spent.count(), 1e-3))));
    size > 0
        ? progress.tell_share(static_cast<double>(reader.bytes()) / static_cast<double>(size), done)
        : progress.tell_time(done);
  }
  return out;
}

}  // namespace posenc::cli
