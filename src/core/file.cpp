#include "core/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string error_text(int code) { return std::generic_category().message(code); }

[[noreturn]] void refuse_read(const std::string& path, int code) {
  if (code == ENOENT || code == ENOTDIR) throw InputError("no such file", "", "", path);
  if (code == EISDIR) throw InputError("this is a folder", "a file is needed", "", path);
  if (code == EACCES || code == EPERM) throw InputError("no permission to read", "", "", path);
  throw InputError("cannot be read", error_text(code), "", path);
}

[[noreturn]] void refuse_large(const std::string& path, std::size_t limit) {
  const bool mib = limit >= std::size_t{1} << 20;
  throw InputError("too large",
                   "the limit is " + (mib ? std::to_string(limit >> 20) + " MiB"
                                          : std::to_string(limit) + " bytes"),
                   "", path);
}

[[noreturn]] void fail_write(const std::string& path, int code) {
  throw IoError(path + ": cannot be written (" + error_text(code) + ")");
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// Network file systems report a full disk only here.
  int close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

void let_reads_wait(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
}

// Whether anything happens on a pipe within a second.
bool stirs(int pipe) {
  constexpr int patience_ms = 1000;
  pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, patience_ms) != 0;
}

// 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void write_in_place(const std::string& path, std::string_view text) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) fail_write(path, errno);
  if (const int code = write_all(file.number(), text)) fail_write(path, code);
  if (file.close() != 0) fail_write(path, errno);
}

// A file in the same folder, so that rename() is one step; removed unless it is renamed.
class TemporaryFile {
 public:
  TemporaryFile(const fs::path& target, mode_t mode) {
    static std::atomic<unsigned> counter = 0;
    do {
      path_ = target.parent_path() /
              (".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (descriptor_ < 0 && errno == EEXIST);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  bool is_open() const { return descriptor_ >= 0; }

  // 0, or the errno of the step that failed.
  int fill(std::string_view text) {
    if (const int code = write_all(descriptor_, text)) return code;
    if (::fsync(descriptor_) != 0) return errno;
    return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno;
  }
  int rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
    path_.clear();
    return 0;
  }

 private:
  fs::path path_;
  int descriptor_ = -1;
};

}  // namespace

std::string read_text(const std::string& path, std::size_t limit) {
  // Without O_NONBLOCK a pipe that nobody writes to would keep open() waiting for ever.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) refuse_read(path, errno);
  struct stat info {};
  if (::fstat(file.number(), &info) != 0) refuse_read(path, errno);
  if (S_ISDIR(info.st_mode)) refuse_read(path, EISDIR);
  if (S_ISREG(info.st_mode) && static_cast<std::uintmax_t>(info.st_size) > limit) {
    refuse_large(path, limit);
  }
  const bool abandoned = S_ISFIFO(info.st_mode) && !stirs(file.number());
  if (!abandoned) let_reads_wait(file.number());
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.number(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {  // a pipe whose writer is slow
      let_reads_wait(file.number());
      continue;
    }
    if (got == 0 && abandoned && text.empty()) {
      throw InputError("nobody writes to this pipe", "", "", path);
    }
    if (got < 0) refuse_read(path, errno);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    // Pipes and devices have no size to check before.
    if (text.size() > limit) refuse_large(path, limit);
  }
}

void write_text_atomically(const std::string& path, std::string_view text) {
  std::error_code ignored;
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail_write(path, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) return write_in_place(path, text);

  // Through a link, the file it points to is replaced, not the link.
  fs::path target = exists ? fs::canonical(path, ignored) : fs::path(path);
  if (target.empty()) target = path;
  if (exists && ::access(target.c_str(), W_OK) != 0) fail_write(path, errno);
  TemporaryFile temporary(target, exists ? info.st_mode & 0777 : 0666);
  if (!temporary.is_open()) fail_write(path, errno);
  if (const int code = temporary.fill(text)) fail_write(path, code);
  if (const int code = temporary.rename_to(target)) fail_write(path, code);
}

}  // namespace orrery
