// What sources call GPUs, in the words of the catalog.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// "H100-SXM-80GB" is h100-sxm, "V100-SXM3-32GB (DGX-2)" is v100-sxm3-32gb. A label of no known
/// kind comes back in lower case with dashes, for the catalog to judge. Where the label is silent,
/// a part is an SXM one with the most memory that was sold.
std::string gpu_named(std::string_view label);

/// Lower case, each run of anything but letters and digits one space: " h100 sxm 80gb ".
std::string words_of(std::string_view label);
bool has_word(std::string_view words, std::string_view word);

}  // namespace orrery
