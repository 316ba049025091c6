// The one file that sees CLI11.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>

#include "cli/command.h"
#include "core/error.h"
#include "core/text.h"

namespace orrery::cli {
namespace {

const Verb& verb_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return verb;
    names.emplace_back(verb.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw InputError("unknown verb " + in_quotes(name), "",
                   hint.empty() ? "the verbs are " + join(names) : hint);
}

// The flags of one verb, as CLI11 reads them.
struct Flags {
  CLI::App app;
  std::map<std::string, CLI::Option*> keys;               // of a request
  std::map<std::string, CLI::Option*> switches, options;  // of the verb's own
  std::vector<std::string> names;

  explicit Flags(const Verb& verb) {
    app.set_help_flag();
    app.allow_extras();
    for (const RequestKey& key : request_keys()) {
      if (!takes(verb, key.name)) continue;
      const std::string name = add(key.name);
      CLI::Option* option = key.kind == ValueKind::flag ? app.add_flag(name) : app.add_option(name);
      keys[std::string(key.name)] = option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    for (const Option& own : verb.options) {
      options[std::string(own.name)] =
          app.add_option(add(own.name))->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    for (const Switch& own : verb.switches) add_switch(own.name);
    for (const char* common : {"json", "explain", "help"}) add_switch(common);
  }

  // A switch takes no value: --json=false would not do what it says.
  bool on(const std::string& name) const {
    const CLI::Option& option = *switches.at(name);
    if (option.count() > 0 && option.results().back() != "true") {
      throw InputError("the flag takes no value", "", "write --" + name, "--" + name);
    }
    return option.count() > 0;
  }

 private:
  std::string add(std::string_view name) {
    names.push_back("--" + std::string(name));
    return names.back();
  }
  void add_switch(std::string_view name) {
    switches[std::string(name)] = app.add_flag(add(name) + (name == "help" ? ",-h" : ""));
  }
};

// CLI11 takes a flag's value after "=" only: "--sequence-parallel false" becomes one word.
std::vector<std::string> with_joined_flags(std::vector<std::string> arguments) {
  const auto is_flag = [](const std::string& word) {
    return std::ranges::any_of(request_keys(), [&](const RequestKey& key) {
      return key.kind == ValueKind::flag && word == "--" + std::string(key.name);
    });
  };
  constexpr std::array<std::string_view, 6> values = {"true", "false", "yes", "no", "on", "off"};
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (!is_flag(arguments[i]) || std::ranges::count(values, arguments[i + 1]) == 0) continue;
    arguments[i] += "=" + arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return arguments;
}

void read(Flags& flags, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  try {
    flags.app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    // "--tp: 1 required TEXT missing": nothing else is left for CLI11 to refuse.
    const std::string words = error.what();
    throw InputError("the flag needs a value", "", "see --help", words.substr(0, words.find(':')));
  }
}

void refuse_unknown(const std::vector<std::string>& extras, const Flags& flags) {
  for (const std::string& extra : extras) {
    if (!extra.starts_with("-") || extra == "-") continue;
    const std::string name = extra.substr(0, extra.find('='));
    const std::string hint = did_you_mean(name, flags.names);
    throw InputError("unknown flag " + in_quotes(name), "", hint.empty() ? "see --help" : hint);
  }
}

// The one value of a flag.
std::string value_of(const std::string& name, const CLI::Option& option) {
  const std::vector<std::string>& values = option.results();
  const std::string place = "--" + name;
  if (values.size() > 1) throw InputError("the flag is given twice", "", "keep one", place);
  if (values.front().starts_with("--")) {
    throw InputError("the flag needs a value", "the next word is another flag", "see --help",
                     place);
  }
  return values.front();
}

std::map<std::string, std::string> values_of(const std::map<std::string, CLI::Option*>& flags) {
  std::map<std::string, std::string> values;
  for (const auto& [name, option] : flags) {
    if (option->count() > 0) values[name] = value_of(name, *option);
  }
  return values;
}

Request typed_request(const Flags& flags) {
  return {.values = values_of(flags.keys),
          .architecture = std::nullopt,
          .place = std::string(command_line)};
}

// The flags, over the keys of the first file.
Request request_of(const Flags& flags, std::vector<std::string>& files) {
  const Request typed = typed_request(flags);
  if (files.empty()) return typed;
  const std::string file = files.front();
  files.erase(files.begin());
  return merged(request_from_file(file), typed);
}

}  // namespace

Parsed parse(std::vector<std::string> arguments) {
  Parsed parsed;
  if (arguments.empty()) throw InputError("no verb is given", "", "see orrery --help");
  const std::string first = arguments.front();
  arguments.erase(arguments.begin());
  if (first == "--help" || first == "-h" || first == "help") {
    parsed.text = arguments.empty() ? help_text() : help_text(verb_named(arguments.front()));
    return parsed;
  }
  if (first == "--version") {
    parsed.text = version_text();
    return parsed;
  }
  if (first.starts_with("-")) {
    throw InputError("a verb comes before the flags", in_quotes(first) + " is none",
                     "see orrery --help");
  }
  const Verb& verb = verb_named(first);
  Flags flags(verb);
  read(flags, verb.asks ? with_joined_flags(std::move(arguments)) : std::move(arguments));
  std::vector<std::string> rest = flags.app.remaining();
  refuse_unknown(rest, flags);
  if (flags.on("help")) {
    parsed.text = help_text(verb);
    return parsed;
  }
  Command& command = parsed.command;
  parsed.verb = &verb;
  command.request = verb.asks ? request_of(flags, rest) : typed_request(flags);
  if (!rest.empty() && !verb.arguments) {
    throw InputError("unexpected argument " + in_quotes(rest.front()), "",
                     "usage: " + std::string(verb.usage));
  }
  command.arguments = std::move(rest);
  for (const auto& [name, option] : flags.switches) {
    if (flags.on(name)) command.switches.insert(name);
  }
  command.options = values_of(flags.options);
  command.json = flags.on("json");
  command.explain = flags.on("explain");
  return parsed;
}

}  // namespace orrery::cli
