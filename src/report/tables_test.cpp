#include "report/tables.h"

#include <gtest/gtest.h>

#include <sstream>

namespace orrery {
namespace {

std::string printed(const Table& table, const Style& style = {}) {
  std::ostringstream out;
  print_table(out, table, style);
  return out.str();
}

TEST(Tables, ColumnsAlignByWhatATerminalShows) {
  const Table table{.columns = {{"name"}, {"n", Align::right}},
                    .rows = {{"naïve", "1"}, {"a", "100"}},
                    .indent = "  "};
  EXPECT_EQ(printed(table), "  name     n\n  naïve    1\n  a      100\n");
}

TEST(Tables, UntitledTablesHaveNoTitleLine) {
  EXPECT_EQ(printed({.columns = {{""}, {""}}, .rows = {{"a", "b"}}, .indent = ""}), "a  b\n");
}

TEST(Tables, ColourOnlyWhereAsked) {
  const Table table{.columns = {{"a"}}, .rows = {}, .indent = ""};
  EXPECT_EQ(printed(table), "a\n");
  EXPECT_EQ(printed(table, {.colour = true}), "\033[1ma\033[0m\n");
}

TEST(Tables, Bars) {
  EXPECT_EQ(bar(0, 8), "");
  EXPECT_EQ(bar(1, 4), "████");
  EXPECT_EQ(bar(0.5, 4), "██");
  EXPECT_EQ(bar(0.125, 4), "▌");
  EXPECT_EQ(bar(7, 2), "██");
}

TEST(Tables, Numbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(count_text(100), "100");
  EXPECT_EQ(count_text(999'999), "999,999");
  EXPECT_EQ(count_text(2.25e6), "2.25 M");
  EXPECT_EQ(count_text(15e12), "15 T");
  EXPECT_EQ(count_text(1e18), "1,000,000 T");
  EXPECT_EQ(energy_text(Joules(3.6e2)), "0.1 Wh");
  EXPECT_EQ(energy_text(Joules(0.294 * 3.6e6)), "0.294 kWh");
  EXPECT_EQ(energy_text(Joules(3.6e9)), "1 MWh");
  EXPECT_EQ(energy_text(Joules(2.51e13)), "6.97 GWh");
  EXPECT_EQ(energy_text(Joules(3.6e16)), "10,000 GWh");
  EXPECT_EQ(percent_text(0.031), "+3.1 %");
}

}  // namespace
}  // namespace orrery
