// The project's own tables of kernel timings against the shipped parameters and their record.
#include "validate/kernel_report.h"

#include <gmock/gmock.h>

#include "core/file.h"
#include "tables/kernel_tables.h"
#include "tables/operators.h"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = Catalog::load(default_data_dir());
  return loaded;
}

// Every `step`-th line: all groups, in a fraction of the time.
KernelTable sample(const std::string& name, std::size_t step) {
  const std::string path = default_data_dir() + "/measurements/" + name + ".csv";
  CsvTable table = parse_csv(read_text(path, kMaxCsvBytes), path);
  std::vector<CsvRow> rows;
  for (std::size_t i = 0; i < table.rows.size(); i += step) rows.push_back(table.rows[i]);
  table.rows = std::move(rows);
  return *kernel_table_from_csv(table, path);
}

KernelReport report_of(const KernelTable& table) {
  return validate_kernels(table, catalog(), catalog().kernel_sets());
}

const ErrorGroup& group(const KernelReport& report, const std::string& by, const std::string& key) {
  for (const ErrorGroup& one : report.groups) {
    if (one.by == by && one.key == key) return one;
  }
  throw std::runtime_error("no group " + by + " " + key);
}

TEST(KernelReport, ErrorsAreThoseOfTheRows) {
  const KernelTable table = sample("gemm", 50);
  const KernelReport report = report_of(table);
  ASSERT_GT(report.rows.size(), 300u);
  const ValidatedKernel& row = report.rows.front();
  EXPECT_DOUBLE_EQ(row.error, row.predicted.time / row.row->measured - 1);
  EXPECT_EQ(report.rows.size() + report.skipped.size(), table.rows.size() + table.skipped.size());
  std::int64_t seen = 0, rows = 0;
  for (const ErrorGroup& one : report.groups) {
    if (one.by == "family") seen += one.errors.n;
    if (one.by == "library") rows += one.errors.n;
  }
  EXPECT_EQ(seen, report.summary.n);
  EXPECT_EQ(rows, report.summary.n);
}

TEST(KernelReport, ProductsOfCublasOnH100AreWithinFivePercentOnUnseenFamilies) {
  const KernelReport report = report_of(sample("gemm", 5));
  const ErrorStatistics& unseen = group(report, "unseen", "gemm bf16 tensorrt-llm h100-sxm").errors;
  EXPECT_GT(unseen.n, 100);
  EXPECT_LT(*unseen.median, 0.055);
}

// Four of five measured times lie in the band that an answer prints.
TEST(KernelReport, BandsHoldFourOfFiveMeasuredTimes) {
  const std::vector<KernelEvidence> evidence = load_kernel_evidence(default_data_dir());
  for (const char* name : {"gemm", "attention", "mla", "memory", "collectives"}) {
    const KernelTable table = sample(name, 17);
    double within = 0, all = 0;
    for (const ValidatedKernel& row : report_of(table).rows) {
      const FoundSet found = catalog().kernel_sets().find(
          row.row->op, row.row->variant, row.row->library, catalog().gpu(row.row->gpu));
      const KernelRecord record = record_of(evidence, found, row.predicted);
      within += record.low <= row.row->measured && row.row->measured <= record.high;
      all += 1;
    }
    EXPECT_GT(all, 50) << name;
    EXPECT_GE(within / all, 0.75) << name;
  }
}

}  // namespace
}  // namespace orrery
