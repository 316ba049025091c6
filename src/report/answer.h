// A priced answer for people: the summary, and the whole of it for --explain.
#pragma once

#include <ostream>

#include "report/tables.h"
#include "twin/twin.h"

namespace orrery {

/// "tp 8  pp 2  dp 4", with whatever is not usual.
std::string strategy_text(const Strategy& strategy);

void print_answer(std::ostream& out, const Scenario& scenario, const Answer& answer,
                  const Style& style);

/// Memory by stage and term, the longest kernels, and every assumption with its reason.
void explain_answer(std::ostream& out, const Scenario& scenario, const Answer& answer,
                    const Style& style);

}  // namespace orrery
