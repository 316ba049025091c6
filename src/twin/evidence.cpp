#include "twin/evidence.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/fields.h"
#include "model/count.h"
#include "twin/scenario.h"

namespace orrery {
namespace {

double doublings(double a, double b) { return std::abs(std::log2(a / b)); }

double distance(const EvidenceRow& row, const Scenario& scenario) {
  const double network = network_rate(scenario.cluster).value();
  const bool both_cross = row.network > 0 && network > 0;
  const bool shards = scenario.strategy.zero == Zero::weights;
  return (row.gpu == scenario.cluster.gpu.name ? 0 : far_doublings) +
         (row.shards_weights == shards ? 0 : far_doublings) +
         (both_cross ? doublings(row.network, network) : 0) +
         doublings(static_cast<double>(row.gpus), static_cast<double>(scenario.cluster.gpus)) +
         doublings(row.parameters, static_cast<double>(parameters(scenario.model).total())) +
         doublings(static_cast<double>(row.seq_len),
                   static_cast<double>(scenario.strategy.seq_len));
}

EvidenceRow row_of(Fields fields) {
  EvidenceRow row;
  row.id = fields.required<std::string>("id");
  row.gpus = fields.required_in<std::int64_t>("gpus", 1, std::int64_t{1} << 40);
  row.parameters = fields.required_in<double>("parameters", 1, 1e18);
  row.seq_len = fields.required_in<std::int64_t>("seq_len", 1, std::int64_t{1} << 40);
  row.gpu = fields.required<std::string>("gpu");
  row.network = fields.required_in<double>("network", 0, 1e18);
  row.shards_weights = fields.required<bool>("shards_weights");
  fields.finish();
  return row;
}

EvidenceGroup group_of(Fields fields) {
  EvidenceGroup group;
  group.architecture = fields.required<std::string>("architecture");
  group.framework = fields.required<std::string>("framework");
  group.precision = fields.required<std::string>("precision");
  group.kind = fields.required<std::string>("kind");
  group.median_abs_error = fields.required_in<double>("median_abs_error", 0, 1e6);
  group.p80_abs_error = fields.required_in<double>("p80_abs_error", 0, 1e6);
  for (Fields& row : fields.list("rows")) group.rows.push_back(row_of(std::move(row)));
  fields.finish();
  return group;
}

// How much two kinds of job have in common; 0: nothing that one says of the other.
int likeness(const EvidenceGroup& group, const EvidenceGroup& wanted) {
  if (group.rows.empty()) return 0;
  return 4 * (group.framework == wanted.framework) +
         3 * (group.architecture == wanted.architecture) + 2 * (group.kind == wanted.kind) +
         (group.precision == wanted.precision);
}

const EvidenceRow& nearest_row(const EvidenceGroup& group, const Scenario& scenario) {
  return *std::min_element(group.rows.begin(), group.rows.end(),
                           [&](const EvidenceRow& a, const EvidenceRow& b) {
                             return distance(a, scenario) < distance(b, scenario);
                           });
}

}  // namespace

std::string EvidenceGroup::name() const {
  return architecture + " " + framework + " " + precision + " " + kind;
}

std::string kind_of(const Scenario& scenario) {
  std::string kind(name_of(scenario.job.task));
  if (scenario.model.experts.count > 0) kind += " experts";
  if (scenario.model.state_space.inner > 0) kind += " state-space";
  if (!scenario.model.towers.empty()) kind += " towers";
  if (scenario.job.task == Task::pretrain && !scenario.job.trains_all()) kind += " frozen";
  if (scenario.strategy.offload != Offload::none) kind += " offload";
  return kind;
}

BytesPerSecond network_rate(const Cluster& cluster) {
  return cluster.nodes() > 1 ? cluster.inter_core() : BytesPerSecond();
}

TrackRecord track_record(const EvidenceTable& table, const Scenario& scenario) {
  EvidenceGroup wanted;
  wanted.architecture = to_text(scenario.cluster.gpu.architecture);
  wanted.framework = scenario.framework.name;
  wanted.precision = to_text(scenario.precision);
  wanted.kind = kind_of(scenario);

  TrackRecord record;
  record.group = wanted.name();
  record.extrapolated = true;
  record.spread = unseen_spread;
  const auto closest = std::max_element(
      table.begin(), table.end(),
      [&](const auto& a, const auto& b) { return likeness(a, wanted) < likeness(b, wanted); });
  if (closest == table.end() || likeness(*closest, wanted) == 0) return record;
  const EvidenceRow& nearest = nearest_row(*closest, scenario);
  record.nearest = nearest.id;
  if (closest->name() == record.group) {
    record.n = static_cast<std::int64_t>(closest->rows.size());
    record.median_abs_error = closest->median_abs_error;
    record.extrapolated =
        bool(scenario.model.custom) || distance(nearest, scenario) >= far_doublings;
    const double n = static_cast<double>(record.n);
    record.spread = (n * closest->p80_abs_error + unseen_rows * unseen_spread) / (n + unseen_rows);
    if (record.extrapolated) record.spread *= 2;
  }
  record.spread = std::min(record.spread, 0.9);  // keeps the band's upper end finite
  return record;
}

EvidenceTable load_evidence(const std::string& data_dir) {
  const std::string path = data_dir + "/evidence.json";
  if (!std::filesystem::exists(path)) return {};
  return evidence_from_json(read_json(path), path);
}

EvidenceTable evidence_from_json(const Json& json, const std::string& place) {
  Fields fields(json, place);
  fields.required_in<std::int64_t>("schema_version", 1, 1);
  fields.ignore("about");
  EvidenceTable table;
  for (Fields& group : fields.list("groups")) table.push_back(group_of(std::move(group)));
  fields.finish();
  return table;
}

Json to_json(const EvidenceTable& table) {
  Json groups = Json::array();
  for (const EvidenceGroup& group : table) {
    Json rows = Json::array();
    for (const EvidenceRow& row : group.rows) {
      rows.push_back(Json::object({{"id", row.id},
                                   {"gpus", row.gpus},
                                   {"parameters", row.parameters},
                                   {"seq_len", row.seq_len},
                                   {"gpu", row.gpu},
                                   {"network", row.network},
                                   {"shards_weights", row.shards_weights}}));
    }
    groups.push_back(Json::object({{"architecture", group.architecture},
                                   {"framework", group.framework},
                                   {"precision", group.precision},
                                   {"kind", group.kind},
                                   {"median_abs_error", group.median_abs_error},
                                   {"p80_abs_error", group.p80_abs_error},
                                   {"rows", std::move(rows)}}));
  }
  return Json::object({{"schema_version", 1},
                       {"about", "written by: orrery validate --write-evidence"},
                       {"groups", std::move(groups)}});
}

}  // namespace orrery
