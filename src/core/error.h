// The three kinds of "no": wrong input, an infeasible answer, a broken contract (and a lost disk).
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace orrery {

/// The user's input is wrong. what() is one line: "place: problem (reason); suggestion".
class InputError : public std::exception {
 public:
  explicit InputError(std::string problem, std::string reason = "", std::string suggestion = "",
                      std::string place = "");

  const char* what() const noexcept override { return message_.c_str(); }

  /// The same error, found further out: "place: " goes in front of the place it already has.
  [[nodiscard]] InputError within(const std::string& place) const;

  std::string problem;
  std::string reason;
  std::string suggestion;
  std::string place;

 private:
  std::string message_;
};

/// The outside world failed while running: a file that cannot be written, a full disk.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A promise between parts of the program was broken: a bug, never the user's fault.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void broken_contract(const char* kind, const char* condition, const char* file,
                                  int line);

}  // namespace orrery

/// What the caller owes.
#define EXPECT(condition) \
  ((condition) ? void() : ::orrery::broken_contract("EXPECT", #condition, __FILE__, __LINE__))

/// What the function promises.
#define ENSURE(condition) \
  ((condition) ? void() : ::orrery::broken_contract("ENSURE", #condition, __FILE__, __LINE__))
