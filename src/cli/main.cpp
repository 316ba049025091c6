// The program: a command line in, text and an exit code out.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "cli/command.h"
#include "core/error.h"

namespace {

using namespace orrery;

int fail(int code, const std::string& message) {
  std::string line = message;
  for (char& letter : line) {
    // A path may hold line breaks, or what steers a terminal.
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = ' ';
  }
  std::fprintf(stderr, "orrery: %s\n", line.c_str());
  return code;
}

void write_stdout(const std::string& text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw IoError(std::string("cannot write to standard output: ") + std::strerror(errno));
  }
}

bool colour_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

int run(std::vector<std::string> arguments) {
  cli::Parsed parsed = cli::parse(std::move(arguments));
  if (!parsed.verb) {
    write_stdout(parsed.text);
    return cli::answered;
  }
  parsed.command.style.colour = colour_wanted();
  parsed.command.show_progress = isatty(STDERR_FILENO);
  const cli::Reply reply = parsed.verb->run(parsed.command);
  write_stdout(reply.text);
  return reply.code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const InputError& error) {
    return fail(cli::bad_input, error.what());
  } catch (const ContractError& error) {
    return fail(cli::failed,
                std::string("a mistake in orrery itself, please report it: ") + error.what());
  } catch (const std::exception& error) {
    return fail(cli::failed, error.what());
  }
}
