// Every count of data/measurements/parameter_counts.csv, through the catalog.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "catalog/catalog.h"
#include "core/csv.h"
#include "core/file.h"
#include "model/count.h"

namespace orrery {
namespace {

const CsvTable& table() {
  static const CsvTable read = [] {
    const std::string path = default_data_dir() + "/measurements/parameter_counts.csv";
    return parse_csv(read_text(path, kMaxCsvBytes), path);
  }();
  return read;
}

const std::string& cell(const CsvRow& row, std::string_view column) {
  return row.cells.at(table().column(column).value());
}

double number(const CsvRow& row, std::string_view column) { return std::stod(cell(row, column)); }

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

TEST(ParameterCounts, OfEveryPublishedModelAreWithinTheirTolerance) {
  EXPECT_GE(table().rows.size(), 33u);
  for (const CsvRow& row : table().rows) {
    SCOPED_TRACE(cell(row, "model"));
    const ParameterCount count = parameters(catalog().model(cell(row, "model")));
    const double total = number(row, "total");
    EXPECT_NEAR(static_cast<double>(count.total()), total, total * number(row, "tolerance"));
    if (!cell(row, "active").empty()) {
      EXPECT_EQ(static_cast<double>(count.active()), number(row, "active"));
    }
  }
}

TEST(ParameterCounts, OfEveryModelOfTheCatalogKeepTheLaws) {
  for (const std::string& name : catalog().names(EntryKind::model)) {
    SCOPED_TRACE(name);
    const Architecture model = catalog().model(name);
    const ParameterCount count = parameters(model);
    EXPECT_GT(count.active(), 0);
    EXPECT_LE(count.active(), count.total());
    EXPECT_EQ(count.active() == count.total(), expert_layers(model) == 0 && model.towers.empty());
    EXPECT_LE(count.routed, count.experts);
    EXPECT_EQ(count.towers.size(), model.towers.size());
  }
}

}  // namespace
}  // namespace orrery
