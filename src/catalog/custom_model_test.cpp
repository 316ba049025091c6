#include "catalog/custom_model.h"

#include <gtest/gtest.h>

#include "core/yaml.h"

namespace orrery {
namespace {

Architecture read(const std::string& yaml) {
  const Json json = parse_yaml(yaml, "job.yaml");
  return custom_model(Fields(json, "job.yaml", "custom"));
}

// A layer of the given operators, one a line.
Architecture read_ops(const std::string& ops, const std::string& keys = "") {
  return read("hidden: 64\nlayers:\n- name: a\n" + keys + "  ops:\n" + ops);
}

void expect_refused(const std::string& ops, const std::string& words,
                    const std::string& keys = "") {
  try {
    read_ops(ops, keys);
    ADD_FAILURE() << "accepted: " << ops;
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("job.yaml: custom"), std::string::npos) << message;
  }
}

TEST(CustomModel, ReadsWhatOperatorsReadAndHowTheyAreDivided) {
  const Architecture a = read_ops(
      "  - {name: up, matmul: [64, 256], split: columns}\n"
      "  - {name: scan, flop: 5, bytes: 7, width: 128, parameters: 424}\n"
      "  - {name: down, matmul: [128, 64], split: rows}\n"
      "  - {name: sum, from: [input, down], flop: 1, bytes: 6, backward: 0}\n",
      "  count: 3\n");
  EXPECT_EQ(a.layers, 3);
  const CustomLayer& layer = a.custom.layers.at(0);
  EXPECT_EQ(layer.matrices(), 64 * 256 + 128 * 64);
  EXPECT_EQ(layer.parameters(), layer.matrices() + 424);
  EXPECT_TRUE(layer.ops[1].divided);
  EXPECT_EQ(layer.ops[1].from, std::vector<std::size_t>{1});
  EXPECT_FALSE(layer.ops[2].divided);
  EXPECT_EQ(layer.ops[3].from, (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(layer.ops[3].width, 64);
  EXPECT_DOUBLE_EQ(layer.forward_flop(), 2.0 * (64 * 256 + 128 * 64) + 5 + 1);
  EXPECT_DOUBLE_EQ(layer.training_flop(), 6.0 * (64 * 256 + 128 * 64) + 3 * 5 + 1);
}

TEST(CustomModel, RefusesInWords) {
  expect_refused("  - {name: a, matmul: [32, 64]}\n", "takes 32 numbers a token");
  expect_refused("  - {name: a, matmul: [64, 32]}\n", "gives 32 numbers a token and the next");
  expect_refused("  - {name: a, matmul: [64, 64], split: columns}\n", "end with a matmul");
  expect_refused("  - {name: a, matmul: [64, 64], split: rows}\n", "not divided");
  expect_refused("  - {name: a, matmul: [64, -64]}\n", "expected [in, out]");
  expect_refused("  - {name: a, matmul: [64, 64, 64]}\n", "expected [in, out]");
  expect_refused("  - {name: a}\n", "either matmul");
  expect_refused("  - {name: a, matmul: [64, 64], flop: 1, bytes: 1}\n", "either matmul");
  expect_refused("  - {name: a, flop: 1}\n", "bytes");
  expect_refused("  - {name: a, flop: 0, bytes: 0}\n", "does nothing");
  expect_refused("  - {name: a, flop: 1e300, bytes: 0}\n", "flop");
  expect_refused("  - {name: a, flop: -1, bytes: 1}\n", "flop");
  expect_refused("  - {name: a, flop: .nan, bytes: 1}\n", "number");
  expect_refused("  - {name: a, flop: 1, bytes: 1, unit: tensor}\n", "vector");
  expect_refused("  - {name: a, flop: 1, bytes: 1, kept: -1}\n", "kept");
  expect_refused("  - {name: a, flop: 1, bytes: 1, flops: 2}\n", "flops");
  expect_refused("  - {name: a, from: b, flop: 1, bytes: 1}\n", "no operator before");
  expect_refused("  - {name: a, from: [], flop: 1, bytes: 1}\n", "reads something");
  expect_refused("  - {name: a, from: [input, input], flop: 1, bytes: 1}\n", "read twice");
  expect_refused("  - {name: input, flop: 1, bytes: 1}\n", "another operator");
  expect_refused("  - {name: 'a b', flop: 1, bytes: 1}\n", "is no name");
  expect_refused(
      "  - {name: a, flop: 1, bytes: 1}\n  - {name: b, from: input, flop: 1, bytes: 1}\n",
      "nothing reads what \"a\" gives");
  expect_refused("  - {name: a, matmul: [64, 64], parameters: 9}\n", "parameters");
  expect_refused("  - {name: a, flop: 1, bytes: 1}\n", "count", "  count: 0\n");
}

TEST(CustomModel, RefusesWholesThatNoMachineHolds) {
  const std::string wide =
      "hidden: 10000000\nlayers:\n- {name: a, count: 10000, ops: [{name: m, matmul: [10000000, "
      "10000000]}, {name: n, matmul: [10000000, 10000000]}]}\n";
  EXPECT_THROW(read(wide), InputError);
  EXPECT_THROW(read("hidden: 1\nlayers: []\n"), InputError);
  EXPECT_THROW(read("hidden: 1\n"), InputError);
}

}  // namespace
}  // namespace orrery
