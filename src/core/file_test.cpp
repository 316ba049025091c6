#include "core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string pattern = testing::TempDir() + "/file_test_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::size_t file_count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string read_error(const std::string& name, std::size_t limit = kDefaultReadLimit) {
    try {
      read_text(name, limit);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  fs::path folder_;
};

TEST_F(FileTest, what_is_written_is_read) {
  const std::string text("a\0b\n\xFF", 5);
  write_text_atomically(path("x"), text);
  EXPECT_EQ(read_text(path("x")), text);
  write_text_atomically(path("x"), "shorter");
  EXPECT_EQ(read_text(path("x")), "shorter");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(FileTest, says_why_a_file_cannot_be_read) {
  EXPECT_EQ(read_error(path("none")), path("none") + ": no such file");
  EXPECT_THAT(read_error(folder_), HasSubstr("this is a folder"));
}

TEST_F(FileTest, the_limit_is_the_last_size_accepted) {
  write_text_atomically(path("x"), "12345");
  EXPECT_EQ(read_error(path("x"), 5), "accepted");
  EXPECT_THAT(read_error(path("x"), 4), HasSubstr("too large (the limit is 4 bytes)"));
  EXPECT_THAT(read_error("/dev/zero"), HasSubstr("too large (the limit is 16 MiB)"));
}

TEST_F(FileTest, does_not_wait_for_a_pipe_that_nobody_writes_to) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_error(path("pipe")), HasSubstr("nobody writes to this pipe"));
}

TEST_F(FileTest, waits_for_a_slow_writer) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    std::ofstream pipe(path("pipe"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    pipe << "through";
  });
  EXPECT_EQ(read_text(path("pipe")), "through");
  writer.join();
}

TEST_F(FileTest, reads_a_pipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path("pipe")) << "through"; });
  EXPECT_EQ(read_text(path("pipe")), "through");
  writer.join();
}

TEST_F(FileTest, says_why_a_file_cannot_be_written) {
  EXPECT_THROW(write_text_atomically(folder_, "x"), IoError);
  EXPECT_THROW(write_text_atomically(path("none/x"), "x"), IoError);
  EXPECT_THROW(write_text_atomically("/dev/full", "x"), IoError);
}

TEST_F(FileTest, a_write_that_fails_half_way_leaves_the_old_file_alone) {
  write_text_atomically(path("x"), "old");
  // A limit on file size is a full disk that needs no disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_text_atomically(path("x"), std::string(100000, 'y')), IoError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text(path("x")), "old");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(FileTest, writes_through_a_link_and_into_a_device) {
  write_text_atomically(path("x"), "old");
  fs::create_symlink(path("x"), path("link"));
  write_text_atomically(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_text(path("x")), "new");
  write_text_atomically("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileTest, keeps_the_permissions_of_the_file_it_replaces) {
  write_text_atomically(path("x"), "old");
  fs::permissions(path("x"), fs::perms(0640));
  write_text_atomically(path("x"), "new");
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms(0640));
}

}  // namespace
}  // namespace orrery
