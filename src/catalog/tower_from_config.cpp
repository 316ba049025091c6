#include "catalog/tower_from_config.h"

#include "core/error.h"

namespace orrery {

std::vector<Tower> towers_from_config(const Json& config, const Architecture&,
                                      const std::string& place, std::vector<std::string>&) {
  if (config.find("vision_config")) throw InputError("towers are not supported yet", "", "", place);
  return {};
}

}  // namespace orrery
