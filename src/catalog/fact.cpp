#include "catalog/fact.h"

#include "core/error.h"

namespace orrery {

std::string_view to_text(Evidence evidence) {
  switch (evidence) {
    case Evidence::datasheet:
      return "datasheet";
    case Evidence::measured:
      return "measured";
    case Evidence::derived:
      return "derived";
    case Evidence::fitted:
      return "fitted";
    case Evidence::assumed:
      return "assumed";
    case Evidence::unknown:
      return "unknown";
  }
  return "";
}

void fail_unknown(const Provenance& provenance) {
  throw InputError("the value is unknown", provenance.note, "", provenance.place);
}

Provenance read_provenance(Fields& fields, bool has_value) {
  Provenance provenance;
  provenance.evidence = fields.choice<Evidence>("evidence", {{"datasheet", Evidence::datasheet},
                                                             {"measured", Evidence::measured},
                                                             {"derived", Evidence::derived},
                                                             {"fitted", Evidence::fitted},
                                                             {"assumed", Evidence::assumed},
                                                             {"unknown", Evidence::unknown}});
  provenance.source = fields.optional<std::string>("source", "");
  provenance.note = fields.optional<std::string>("note", "");
  provenance.place = fields.where().text();
  if (has_value != (provenance.evidence != Evidence::unknown)) {
    fields.fail("evidence", has_value ? "a value that is there is not unknown"
                                      : "a value that is null is unknown");
  }
  if (has_value && provenance.source.empty()) fields.fail("source", "a value needs a source");
  return provenance;
}

}  // namespace orrery
