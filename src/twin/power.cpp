#include "twin/power.h"

#include <algorithm>

#include "core/error.h"

namespace orrery {
namespace {

constexpr double matrix_share = 1.0;
constexpr double memory_share = 0.78;
constexpr double waiting_share = 0.25;
// At rest with a context where nobody measured it: 122 of 700 W on an H100 SXM.
constexpr double usual_rest = 0.17;

}  // namespace

Watts average_power(const Gpu& gpu, Watts limit, const Activity& activity) {
  EXPECT(activity.step > Seconds(0));
  const Watts usual = usual_rest * gpu.power.limit.value();
  const Watts rest = gpu.power.idle.known() && gpu.power.context.known()
                         ? gpu.power.idle.value() + gpu.power.context.value()
                         : usual;
  const double matrix = std::min(1.0, activity.matrix / activity.step);
  const double memory = std::min(1.0 - matrix, activity.memory / activity.step);
  const double waiting = 1 - matrix - memory;
  const double share = matrix * matrix_share + memory * memory_share + waiting * waiting_share;
  return rest + share * std::max(Watts(0), limit - rest);
}

}  // namespace orrery
