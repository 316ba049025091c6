#include "physics/parameters.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "physics/gemm.h"

namespace orrery {
namespace {

KernelSet written() {
  std::vector<double> starts;
  for (const auto& parameter : GemmParameters::parameters()) starts.push_back(parameter.info.start);
  KernelSet set;
  set.place = "test.json";
  write_parameters(parameters_from<GemmParameters>(starts), set);
  return set;
}

TEST(Parameters, SurviveAFile) {
  const KernelSet set = written();
  EXPECT_EQ(set.values.at("start"), Json("2.6 us"));
  EXPECT_EQ(set.values.at("overlap"), Json(4.1));
  const auto read = parameters_from<GemmParameters>(set);
  EXPECT_DOUBLE_EQ(read.start.value(), 2.6e-6);
  EXPECT_DOUBLE_EQ(read.feed.value(), 128e9);
  EXPECT_EQ(values_of(read).size(), GemmParameters::parameters().size());
}

TEST(Parameters, AreNamedWhenMissingOrUnknown) {
  KernelSet set = written();
  set.values["sped"] = Json(1.0);
  EXPECT_THROW(parameters_from<GemmParameters>(set), InputError);
  set = written();
  set.values.erase("feed");
  try {
    parameters_from<GemmParameters>(set);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("parameter \"feed\" missing"));
  }
}

}  // namespace
}  // namespace orrery
