#include "catalog/custom_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.h"

namespace orrery {
namespace {

constexpr std::int64_t most_layers = 10'000, most_items = 1'000;
constexpr std::int64_t most_width = 10'000'000, most_rows = 1'000'000'000;
constexpr std::int64_t most_kept = 1'000'000'000;                // bytes a token
constexpr std::int64_t most_parameters = 1'000'000'000'000'000;  // of one operator
constexpr double most_flop = 1e18, most_bytes = 1e15, most_weights = 1e18;
constexpr std::size_t most_letters = 64;

double real(std::int64_t count) { return static_cast<double>(count); }

// Numbers a token that some operator writes, and whether the tensor ranks divide them.
struct Stream {
  std::string name;
  std::int64_t width;
  bool divided, read = false;
};

std::string read_name(Fields& fields) {
  const auto name = fields.required<std::string>("name");
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  if (name.empty() || name.size() > most_letters || !std::ranges::all_of(name, plain)) {
    fields.fail("name", in_quotes(name.substr(0, most_letters)) + " is no name",
                "use up to 64 letters, digits, - and _");
  }
  return name;
}

// One layer's operators, each of what stands before it.
class LayerReader {
 public:
  explicit LayerReader(Fields fields, std::int64_t hidden)
      : fields_(std::move(fields)), hidden_(hidden), streams_{{"input", hidden, false}} {}

  CustomLayer read() {
    layer_.name = read_name(fields_);
    layer_.count = fields_.optional_in<std::int64_t>("count", 1, most_layers).value_or(1);
    std::vector<Fields> ops = fields_.list("ops");
    if (ops.empty() || static_cast<std::int64_t>(ops.size()) > most_items) {
      fields_.fail("ops", std::to_string(ops.size()) + " operators",
                   "give a layer between 1 and " + std::to_string(most_items));
    }
    for (Fields& op : ops) read_op(op);
    check_output();
    fields_.finish();
    return std::move(layer_);
  }

 private:
  void read_op(Fields& fields) {
    CustomOp op{.name = read_name(fields), .from = {}, .width = 0, .what = CustomMatmul{}};
    if (stream_named(op.name)) {
      fields.fail("name", in_quotes(op.name) + " is the name of another operator of the layer",
                  "names, and \"input\", are each used once");
    }
    op.from = read_from(fields);
    const bool matmul = fields.has("matmul");
    if (matmul == (fields.has("flop") || fields.has("bytes"))) {
      fields.where().fail("an operator has either matmul: [in, out] or flop and bytes",
                          "give one of the two");
    }
    matmul ? read_matmul(fields, op) : read_work(fields, op);
    fields.finish();
    streams_.push_back({op.name, op.width, op.divided});
    layer_.ops.push_back(std::move(op));
  }

  std::optional<std::size_t> stream_named(const std::string& name) const {
    const auto found = std::ranges::find(streams_, name, &Stream::name);
    if (found == streams_.end()) return std::nullopt;
    return found - streams_.begin();
  }

  // What the operator before it writes, unless told so.
  std::vector<std::size_t> read_from(Fields& fields) {
    std::vector<std::size_t> from;
    if (!fields.has("from")) from = {streams_.size() - 1};
    for (const std::string& name : names(fields)) {
      const auto found = stream_named(name);
      if (!found || std::ranges::count(from, *found) > 0) {
        fields.fail("from", in_quotes(name) + (found ? " is read twice" : " is no operator before"),
                    "the layer's own input is named input");
      }
      from.push_back(*found);
    }
    if (from.empty()) fields.fail("from", "an operator reads something", "leave `from` out");
    for (const std::size_t stream : from) streams_[stream].read = true;
    return from;
  }

  static std::vector<std::string> names(Fields& fields) {
    const Json* json = fields.optional_json("from");
    if (!json) return {};
    if (json->is_string()) return {json->as_string()};
    return FieldReader<std::vector<std::string>>::read(*json, fields.where().key("from"));
  }

  void read_matmul(Fields& fields, CustomOp& op) {
    const auto sides = fields.required<std::vector<std::int64_t>>("matmul");
    const auto fits = [](std::int64_t side) { return side >= 1 && side <= most_width; };
    if (sides.size() != 2 || !std::ranges::all_of(sides, fits)) {
      fields.fail("matmul", "expected [in, out]",
                  "two widths between 1 and " + std::to_string(most_width));
    }
    CustomMatmul matmul = {sides[0], sides[1]};
    matmul.split = fields.choice<CustomSplit>("split",
                                              {{"none", CustomSplit::none},
                                               {"columns", CustomSplit::columns},
                                               {"rows", CustomSplit::rows}},
                                              CustomSplit::none);
    if (op.from.size() != 1) fields.fail("from", "a matmul reads one operator", "name one");
    check_input(fields, op, matmul);
    op.width = matmul.out;
    op.divided = matmul.split == CustomSplit::columns;
    op.what = matmul;
  }

  void check_input(const Fields& fields, const CustomOp& op, const CustomMatmul& matmul) const {
    const Stream& input = streams_[op.from[0]];
    if (input.width != matmul.in) {
      fields.fail("matmul",
                  "takes " + std::to_string(matmul.in) + " numbers a token, and " +
                      in_quotes(input.name) + " gives " + std::to_string(input.width),
                  "make them agree, or name what it reads with `from`");
    }
    const bool rows = matmul.split == CustomSplit::rows;
    if (rows == input.divided) return;
    fields.fail("split",
                in_quotes(input.name) +
                    (rows ? " is not divided over tensor ranks" : " is divided over tensor ranks"),
                rows ? "rows follow columns" : "split its reader by rows");
  }

  void read_work(Fields& fields, CustomOp& op) {
    CustomWork work{};
    work.flop = fields.required_in<double>("flop", 0, most_flop);
    work.bytes = fields.required_in<double>("bytes", 0, most_bytes);
    if (work.flop == 0 && work.bytes == 0) fields.fail("flop", "it does nothing", "leave it out");
    work.matrix = fields.choice<bool>("unit", {{"vector", false}, {"matrix", true}}, false);
    work.backward = fields.optional_in<double>("backward", 0, 100).value_or(2);
    work.kept = fields.optional_in<std::int64_t>("kept", 0, most_kept);
    work.parameters =
        fields.optional_in<std::int64_t>("parameters", 0, most_parameters).value_or(0);
    const Stream& first = streams_[op.from[0]];
    op.width = fields.optional_in<std::int64_t>("width", 1, most_width).value_or(first.width);
    op.divided = first.divided;
    for (const std::size_t other : op.from) {
      if (streams_[other].divided == op.divided) continue;
      fields.fail("from", "of what it reads only a part is divided over tensor ranks",
                  "split the matmuls before it alike");
    }
    op.what = work;
  }

  void check_output() {
    const Stream& last = streams_.back();
    if (last.width != hidden_) {
      fields_.fail("ops",
                   "the last one, " + in_quotes(last.name) + ", gives " +
                       std::to_string(last.width) + " numbers a token and the next layer takes " +
                       std::to_string(hidden_),
                   "end with what is as wide as `hidden`");
    }
    if (last.divided) {
      fields_.fail("ops", "what the last one gives is divided over tensor ranks",
                   "end with a matmul of split: rows, or split none");
    }
    for (std::size_t i = 0; i + 1 < streams_.size(); ++i) {
      if (streams_[i].read) continue;
      fields_.fail("ops", "nothing reads what " + in_quotes(streams_[i].name) + " gives",
                   "name it in another operator's `from`");
    }
  }

  Fields fields_;
  std::int64_t hidden_;
  std::vector<Stream> streams_;
  CustomLayer layer_{};
};

double weight_bound(const Architecture& a) {
  double sum = 2 * real(a.vocab) * real(a.hidden);
  for (const CustomLayer& layer : a.custom.layers) {
    double each = 0;
    for (const CustomOp& op : layer.ops) {
      if (const auto* m = std::get_if<CustomMatmul>(&op.what)) each += real(m->in) * real(m->out);
      if (const auto* work = std::get_if<CustomWork>(&op.what)) each += real(work->parameters);
    }
    sum += real(layer.count) * each;
  }
  return sum;
}

void read_ends(Fields& fields, Architecture& a) {
  a.vocab = fields.optional_in<std::int64_t>("vocabulary", 1, most_rows).value_or(0);
  a.has_head = a.final_norm = a.vocab > 0;
  a.tied_embeddings = fields.optional<bool>("tied_embeddings", false);
  if (a.tied_embeddings && a.vocab == 0) {
    fields.fail("tied_embeddings", "there is no vocabulary", "give `vocabulary`, or leave it out");
  }
  if (!a.custom.trained && a.vocab > 0) {
    fields.fail("vocabulary", "a loss over it is of what is trained", "leave it out");
  }
}

void read_layers(Fields& fields, Architecture& a) {
  std::vector<Fields> layers = fields.list("layers");
  if (layers.empty() || static_cast<std::int64_t>(layers.size()) > most_items) {
    fields.fail("layers", std::to_string(layers.size()) + " kinds of layer",
                "give between 1 and " + std::to_string(most_items));
  }
  for (Fields& one : layers) {
    CustomLayer layer = LayerReader(one, a.hidden).read();
    const bool taken = layer.name == "embedding" || layer.name == "head" || layer.name == "input" ||
                       std::ranges::count(a.custom.layers, layer.name, &CustomLayer::name) > 0;
    if (taken) one.fail("name", in_quotes(layer.name) + " is taken", "give each layer its own");
    a.layers += layer.count;
    // The rest of the program sees layers that neither attend nor feed forward.
    a.runs.push_back({{.name = layer.name, .mixer = Mixer::none}, layer.count});
    a.custom.layers.push_back(std::move(layer));
  }
  if (a.layers > most_layers) {
    fields.fail("layers", std::to_string(a.layers) + " layers in all",
                "describe at most " + std::to_string(most_layers));
  }
}

}  // namespace

std::int64_t CustomLayer::matrices() const {
  std::int64_t sum = 0;
  for (const CustomOp& op : ops) {
    if (const auto* matmul = std::get_if<CustomMatmul>(&op.what)) sum += matmul->in * matmul->out;
  }
  return sum;
}

std::int64_t CustomLayer::parameters() const {
  std::int64_t sum = matrices();
  for (const CustomOp& op : ops) {
    if (const auto* work = std::get_if<CustomWork>(&op.what)) sum += work->parameters;
  }
  return sum;
}

double CustomLayer::forward_flop() const {
  double sum = 2 * real(matrices());
  for (const CustomOp& op : ops) {
    if (const auto* work = std::get_if<CustomWork>(&op.what)) sum += work->flop;
  }
  return sum;
}

double CustomLayer::training_flop() const {
  double sum = 6 * real(matrices());
  for (const CustomOp& op : ops) {
    if (const auto* work = std::get_if<CustomWork>(&op.what)) {
      sum += work->flop * (1 + work->backward);
    }
  }
  return sum;
}

Architecture custom_model(Fields fields) {
  Architecture a;
  a.family = "custom";
  a.name = fields.has("name") ? read_name(fields) : a.family;
  a.norm = Norm::rms_norm;
  a.norms_per_layer = 0;
  a.hidden = fields.required_in<std::int64_t>("hidden", 1, most_width);
  a.custom.trained = fields.optional<bool>("trained", true);
  read_ends(fields, a);
  read_layers(fields, a);
  fields.finish();
  if (weight_bound(a) > most_weights) {
    fields.where().fail("such a model would have more than 1e18 weights");
  }
  return a;
}

}  // namespace orrery
