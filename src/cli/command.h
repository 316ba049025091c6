// A command line taken apart, and the verbs that answer one.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/tables.h"
#include "twin/scenario.h"

namespace orrery::cli {

enum ExitCode { answered = 0, infeasible = 1, bad_input = 2, failed = 3 };

struct Command {
  Request request;                             // a scenario file's keys under the flags
  std::vector<std::string> arguments;          // neither flags nor a scenario file
  std::set<std::string> switches;              // of the verb's own, without dashes
  std::map<std::string, std::string> options;  // likewise, with their values
  bool json = false, explain = false;
  Style style = {};
  bool show_progress = false;  // stderr is a terminal
};

// What a verb says: the text goes to standard output.
struct Reply {
  ExitCode code = answered;
  std::string text;
};

struct Switch {
  std::string_view name, help;
};

struct Option {
  std::string_view name, values, help;
};

struct Verb {
  std::string_view name, group, summary, usage, example;
  std::string_view details;                // paragraphs of the help
  bool asks;                               // takes a scenario file and its flags
  bool arguments;                          // takes others
  std::span<const std::string_view> keys;  // flags of a scenario that it takes without a file
  std::span<const Switch> switches;
  std::span<const Option> options = {};
  Reply (*run)(const Command&) = nullptr;
};

std::span<const Verb> verbs();

// Whether `--key` is a flag of the verb.
bool takes(const Verb& verb, std::string_view key);

// Either a command for a verb, or text to print (help, the version). InputError for anything that
// nobody understands, with near misses.
struct Parsed {
  const Verb* verb = nullptr;  // none: print text
  Command command;
  std::string text;
};
Parsed parse(std::vector<std::string> arguments);

std::string help_text();
std::string help_text(const Verb&);
std::string version_text();

Reply predict_verb(const Command&);
Reply plan_verb(const Command&);
Reply catalog_verb(const Command&);
Reply model_verb(const Command&);
Reply validate_verb(const Command&);
Reply fit_verb(const Command&);
Reply kernel_verb(const Command&);
Reply version_verb(const Command&);

}  // namespace orrery::cli
