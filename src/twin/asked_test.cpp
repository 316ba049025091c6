#include "twin/asked.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace orrery {
namespace {

struct One {
  Request request;
  Asked asked;
  explicit One(const std::string& text)
      : request{.values = {{"key", text}}, .architecture = {}, .place = std::string(command_line)},
        asked(request, "key") {}
};

template <class Read>
std::string message_of(const std::string& text, Read read) {
  const One one(text);
  try {
    read(one.asked);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Asked, ReadsOneKeyOrNone) {
  EXPECT_FALSE(Asked(One("1").request, "other"));
  EXPECT_TRUE(One("1").asked);
  EXPECT_EQ(One("12").asked.whole(1, 12), 12);
  EXPECT_TRUE(One("on").asked.yes());
  EXPECT_FALSE(One("false").asked.yes());
  EXPECT_DOUBLE_EQ(One("500").asked.quantity<Watts>("W").value(), 500);
  EXPECT_DOUBLE_EQ(One("0.5 kW").asked.quantity<Watts>("W").value(), 500);
  EXPECT_EQ(One("b").asked.choice<int>({{"a", 1}, {"b", 2}}), 2);
}

TEST(Asked, ComplainsWithThePlace) {
  EXPECT_EQ(message_of("13", [](const Asked& asked) { asked.whole(1, 12); }),
            "--key: \"13\" is out of range; give a whole number from 1 to 12");
  EXPECT_EQ(message_of("maybe", [](const Asked& asked) { asked.yes(); }),
            "--key: \"maybe\" is neither true nor false; give true or false");
  EXPECT_EQ(message_of("fast",
                       [](const Asked& asked) {
                         asked.choice<int>({{"slow", 1}, {"faster", 2}});
                       }),
            "--key: \"fast\" is not one of slow, faster; did you mean \"faster\"?");
}

}  // namespace
}  // namespace orrery
