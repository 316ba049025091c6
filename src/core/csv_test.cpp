#include "core/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    parse_csv(text, "t.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Csv, PlainCellsKeepTheirSpaces) {
  const CsvTable table = parse_csv("a,b\n1, 2\n,\n", "t.csv");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[0].cells, ElementsAre("1", " 2"));
  EXPECT_THAT(table.rows[1].cells, ElementsAre("", ""));
  EXPECT_EQ(table.column("b"), 1u);
  EXPECT_EQ(table.column("c"), std::nullopt);
}

TEST(Csv, QuotedCellsHoldCommasQuotesAndLineBreaks) {
  const CsvTable table = parse_csv("a,b\n\"x, \"\"y\"\"\",\"1\n2\"\nlast,row\n", "t.csv");
  EXPECT_THAT(table.rows[0].cells, ElementsAre("x, \"y\"", "1\n2"));
  EXPECT_EQ(table.rows[0].line, 2);
  EXPECT_EQ(table.rows[1].line, 4);
}

TEST(Csv, WindowsLinesMarksAndMissingLastBreak) {
  const CsvTable table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n1,2\r\n\r\n3,\"4\"",
      "t.csv");
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[1].cells, ElementsAre("3", "4"));
  EXPECT_EQ(table.rows[1].line, 4);
}

TEST(Csv, AnEmptyLineIsACellWhereThereIsOneColumn) {
  EXPECT_EQ(parse_csv("a\n\n1\n", "t.csv").rows.size(), 2u);
}

TEST(Csv, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a,b\n1,2\n3\n"), "t.csv:3: this row has 1 cells, the header names 2 columns");
  EXPECT_EQ(error_of("a,b\n1,2\n3,\"4\n5,6\n"), "t.csv:3: the quote opened here is never closed");
  EXPECT_EQ(error_of("a,a\n"), "t.csv:1: column \"a\" appears twice");
  EXPECT_EQ(error_of("a,\n1,2\n"), "t.csv:1: column 2 has no name");
  EXPECT_EQ(error_of(""), "t.csv:1: no header; name the columns in the first row");
  EXPECT_THAT(error_of("a\nx\"y\n"), HasSubstr("t.csv:2: quote inside a plain cell"));
  EXPECT_THAT(error_of("a\n\"x\"y\n"), HasSubstr("t.csv:2: text after a closing quote"));
  EXPECT_THAT(error_of("a\nx\ry\n"), HasSubstr("t.csv:2: a carriage return"));
  EXPECT_THAT(error_of(std::string_view("a\n\0\n", 4)), HasSubstr("t.csv:2: a NUL byte"));
  EXPECT_THAT(error_of("a\nb\n\xFF\n"), HasSubstr("t.csv:3: a byte that is not UTF-8"));
}

TEST(Csv, LimitsHold) {
  EXPECT_THAT(error_of(std::string(kMaxCsvBytes + 1, 'a')), HasSubstr("larger than 8 MiB"));
  EXPECT_THAT(error_of("a\n" + std::string(kMaxCsvRows + 1, '\n')),
              HasSubstr(":100002: more than 100000 rows"));
  EXPECT_THAT(error_of(std::string(kMaxCsvColumns, ',')), HasSubstr("more than 1000 columns"));
}

}  // namespace
}  // namespace orrery
