#include "cli/command.h"
#include "core/json.h"

namespace orrery::cli {

Reply version_verb(const Command& command) {
  std::string text = version_text();
  if (!command.json) return {answered, text};
  const std::string number = text.substr(text.find(' ') + 1, text.size() - text.find(' ') - 2);
  return {answered, Json::object({{"schema_version", 1}, {"version", number}}).dump(2) + "\n"};
}

}  // namespace orrery::cli
