#include "catalog/encoder_from_config.h"

namespace orrery {

std::optional<Architecture> encoder_from_config(const Json&, const std::string&) { return {}; }

std::vector<std::string> encoder_families() { return {}; }

}  // namespace orrery
