// A lowered Program run with real numbers on many ranks, against the same network on one.
#include "plan/toy_executor.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "plan/schedule.h"
#include "plan/test_walk.h"

namespace orrery {
namespace {

constexpr std::int64_t hidden = 8, heads = 4, head_dim = 2, ffn = 12, vocab = 16, seq = 8;

Architecture toy(std::int64_t layers) {
  return llama_like("toy", {layers, hidden, heads, heads, head_dim, ffn, vocab});
}

std::vector<std::int64_t> tokens(std::int64_t data, std::int64_t n) {
  std::vector<std::int64_t> ids(seq);
  for (std::int64_t i = 0; i < seq; ++i) ids[i] = (7 * i + 5 * n + 3 * data + i * i) % vocab;
  return ids;
}

// --- the network on one rank, written plainly ---------------------------------------------------

struct Model {
  Matrix embedding, head_norm, head;
  struct LayerWeights {
    Matrix norm1, qkv, proj, norm2, fc1, fc2;
  };
  std::vector<LayerWeights> layers;
};

Matrix numbers(std::int64_t rows, std::int64_t cols, std::int64_t seed, double scale) {
  return Matrix::filled(rows, cols, [&](auto i, auto j) {
    return scale * std::sin(static_cast<double>(1 + seed * 37 + i * 13 + j * 7));
  });
}

Model weights(std::int64_t layers) {
  Model m = {
      numbers(vocab, hidden, 1, 1), numbers(1, hidden, 2, 1), numbers(hidden, vocab, 3, 0.3), {}};
  for (std::int64_t l = 0; l < layers; ++l) {
    m.layers.push_back(
        {numbers(1, hidden, 10 * l + 4, 1), numbers(hidden, 3 * hidden, 10 * l + 5, 0.3),
         numbers(hidden, hidden, 10 * l + 6, 0.3), numbers(1, hidden, 10 * l + 7, 1),
         numbers(hidden, 2 * ffn, 10 * l + 8, 0.3), numbers(ffn, hidden, 10 * l + 9, 0.3)});
  }
  return m;
}

Model zeros(const Model& like) {
  Model m = like;
  const auto clear = [](Matrix& x) { std::fill(x.v.begin(), x.v.end(), 0.0); };
  for (Matrix* x : {&m.embedding, &m.head_norm, &m.head}) clear(*x);
  for (auto& l : m.layers) {
    for (Matrix* x : {&l.norm1, &l.qkv, &l.proj, &l.norm2, &l.fc1, &l.fc2}) clear(*x);
  }
  return m;
}

Matrix scaled(const Matrix& x, const Matrix& w) {
  return Matrix::filled(x.rows, x.cols, [&](auto i, auto j) { return x.at(i, j) * w.at(0, j); });
}
Matrix column_sums(const Matrix& x) {
  Matrix sum = Matrix::zero(1, x.cols);
  for (std::int64_t i = 0; i < x.rows; ++i) sum += x.some_rows(i, 1);
  return sum;
}
Matrix mul(const Matrix& a, const Matrix& b) {
  double ignored = 0;
  return product(a, b, ignored);
}

// One decoder layer and what its backward pass needs.
struct Plain {
  Matrix x, n1, q, k, o, r1, n2, gate, up, act;

  Matrix forward(const Model::LayerWeights& w, const Matrix& input) {
    x = input;
    n1 = scaled(x, w.norm1);
    const Matrix qkv = mul(n1, w.qkv);
    q = qkv.columns(0, hidden), k = qkv.columns(hidden, hidden);
    o = times(q, k) + qkv.columns(2 * hidden, hidden);  // (-q)(-k) + v
    r1 = x + mul(o, w.proj);
    n2 = scaled(r1, w.norm2);
    const Matrix f = mul(n2, w.fc1);
    gate = f.columns(0, ffn), up = f.columns(ffn, ffn);
    act = times(gate, up);
    return r1 + mul(act, w.fc2);
  }

  Matrix backward(const Model::LayerWeights& w, const Matrix& dy, Model::LayerWeights& d) const {
    const Matrix dact = mul(dy, transposed(w.fc2));
    d.fc2 += mul(transposed(act), dy);
    const Matrix df = beside({times(dact, up), times(dact, gate)});
    d.fc1 += mul(transposed(n2), df);
    const Matrix dn2 = mul(df, transposed(w.fc1));
    d.norm2 += column_sums(times(dn2, r1));
    const Matrix dr1 = dy + scaled(dn2, w.norm2);
    const Matrix d_o = mul(dr1, transposed(w.proj));
    d.proj += mul(transposed(o), dr1);
    const Matrix dqkv = beside({times(d_o, k), times(d_o, q), d_o});
    d.qkv += mul(transposed(n1), dqkv);
    const Matrix dn1 = mul(dqkv, transposed(w.qkv));
    d.norm1 += column_sums(times(dn1, x));
    return dr1 + scaled(dn1, w.norm1);
  }
};

double train(const Model& w, const std::vector<std::int64_t>& ids, Model& d) {
  Matrix x = Matrix::filled(seq, hidden, [&](auto i, auto j) { return w.embedding.at(ids[i], j); });
  std::vector<Plain> layers(w.layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) x = layers[l].forward(w.layers[l], x);
  const Matrix n = scaled(x, w.head_norm), logits = mul(n, w.head);
  double loss = 0;
  for (const double z : logits.v) loss += z * z / 2;
  d.head += mul(transposed(n), logits);
  const Matrix dn = mul(logits, transposed(w.head));
  d.head_norm += column_sums(times(dn, x));
  Matrix dx = scaled(dn, w.head_norm);
  for (std::size_t l = layers.size(); l-- > 0;)
    dx = layers[l].backward(w.layers[l], dx, d.layers[l]);
  for (std::int64_t i = 0; i < seq; ++i) {
    for (std::int64_t j = 0; j < hidden; ++j) d.embedding.at(ids[i], j) += dx.at(i, j);
  }
  return loss;
}

// --- what one tensor rank holds of it, flat as the Program lays parameters out ------------------

void append(std::vector<double>& flat, const Matrix& m) {
  flat.insert(flat.end(), m.v.begin(), m.v.end());
}
// Rank `t` of `tp` of each of `parts` equal groups of columns.
Matrix own_columns(const Matrix& m, std::int64_t parts, std::int64_t t, std::int64_t tp) {
  std::vector<Matrix> own;
  const std::int64_t width = m.cols / parts, share = width / tp;
  for (std::int64_t p = 0; p < parts; ++p) own.push_back(m.columns(p * width + t * share, share));
  return beside(own);
}
Matrix own_rows(const Matrix& m, std::int64_t t, std::int64_t tp) {
  return m.some_rows(t * m.rows / tp, m.rows / tp);
}

std::vector<double> flat_layer(const Model::LayerWeights& w, std::int64_t t, std::int64_t tp) {
  std::vector<double> flat;
  append(flat, w.norm1);
  append(flat, own_columns(w.qkv, 3, t, tp));
  append(flat, own_rows(w.proj, t, tp));
  append(flat, w.norm2);
  append(flat, own_columns(w.fc1, 2, t, tp));
  append(flat, own_rows(w.fc2, t, tp));
  return flat;
}
std::vector<double> flat_head(const Model& w, std::int64_t t, std::int64_t tp) {
  std::vector<double> flat = w.head_norm.v;
  append(flat, own_columns(w.head, 1, t, tp));
  return flat;
}
std::vector<double> flat_embedding(const Model& w, std::int64_t t, std::int64_t tp) {
  return own_rows(w.embedding, t, tp).v;
}

// By buffer name, the layers that a stage holds.
using Held = std::map<std::string, std::vector<std::vector<double>>>;
Held held(const Model& m, const Strategy& s, std::int64_t stage, std::int64_t t) {
  Held held;
  const Placement placement(s.schedule, s.pp, s.vpp);
  const auto split = layer_split(s, static_cast<std::int64_t>(m.layers.size()));
  for (std::int64_t chunk = 0; chunk < placement.chunks(); ++chunk) {
    const std::int64_t part = placement.part({stage, chunk});
    std::int64_t first = 0;
    for (std::int64_t before = 0; before < part; ++before) {
      const Place place = placement.place(before);
      first += split[place.stage][place.chunk];
    }
    for (std::int64_t i = first; i < first + split[stage][chunk]; ++i) {
      held["decoder"].push_back(flat_layer(m.layers[i], t, s.tp));
    }
    if (part == 0) held["embedding"] = {flat_embedding(m, t, s.tp)};
    if (part == placement.parts() - 1) held["head"] = {flat_head(m, t, s.tp)};
  }
  return held;
}

std::vector<double> shard(const std::vector<double>& flat, std::int64_t rank, std::int64_t ranks) {
  const auto size = static_cast<std::int64_t>(flat.size()) / ranks;
  return {flat.begin() + rank * size, flat.begin() + (rank + 1) * size};
}

// --- running ------------------------------------------------------------------------------------

struct Ranks {
  std::vector<std::unique_ptr<ToyExecutor>> all;  // by stage, data, tensor
  const ToyExecutor& at(const Strategy& s, std::int64_t stage, std::int64_t data, std::int64_t t) {
    return *all[(stage * s.dp + data) * s.tp + t];
  }
};

Ranks executed(const Program& program, const Strategy& s, const Model& model) {
  ToyNetwork network;
  Ranks ranks;
  for (const ClassId id : program.classes.ids()) {
    for (std::int64_t data = 0; data < s.dp; ++data) {
      for (std::int64_t t = 0; t < s.tp; ++t) {
        const ToyRank rank = {t, data, s.tp, s.dp, s.sequence_parallel, tokens};
        ranks.all.push_back(std::make_unique<ToyExecutor>(program, id, rank, network));
        for (auto& [kind, layers] : held(model, s, program.classes[id].stage, t)) {
          auto mine = layers;
          if (s.zero == Zero::weights) {
            for (auto& flat : mine) flat = shard(flat, data, s.dp);
          }
          ranks.all.back()->set_weights(kind + " weights", mine);
        }
      }
    }
  }
  std::vector<std::thread> threads;
  std::vector<std::string> errors(ranks.all.size());
  for (std::size_t i = 0; i < ranks.all.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        ranks.all[i]->run();
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return ranks;
}

// Where a flat layer holds its norms: under sequence parallelism each tensor rank has their
// gradients of its own tokens only (see lower.h).
std::vector<std::int64_t> norm_offsets(const std::string& kind, std::int64_t tp) {
  if (kind == "head") return {0};
  if (kind == "decoder") return {0, hidden + 4 * hidden * hidden / tp};
  return {};
}

// The gradients of one layer on one rank, norms summed over its tensor ranks if need be.
std::vector<double> gradients_of(Ranks& ranks, const Strategy& s, std::int64_t stage,
                                 std::int64_t data, std::int64_t t, const std::string& kind,
                                 std::size_t layer) {
  const std::string name = kind + " gradients";
  std::vector<double> flat = ranks.at(s, stage, data, t).state(name)[layer];
  if (!s.sequence_parallel) return flat;
  for (const std::int64_t from : norm_offsets(kind, s.tp)) {
    for (std::int64_t i = from; i < from + hidden; ++i) {
      flat[i] = 0;
      for (std::int64_t other = 0; other < s.tp; ++other) {
        flat[i] += ranks.at(s, stage, data, other).state(name)[layer][i];
      }
    }
  }
  return flat;
}

void expect_equal(const std::vector<double>& got, const std::vector<double>& expected,
                  const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 1e-9 * (1 + std::abs(expected[i]))) << what << " " << i;
  }
}

struct Case {
  const char* name;
  std::int64_t tp, pp, vpp, dp;
  bool sequence_parallel = false;
  Zero zero = Zero::none;
  Recompute recompute = Recompute::none;
  double share = 1;
  bool reshard = true;
  bool slices = false;
  Schedule schedule = Schedule::one_f_one_b;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ToyExecution : public ::testing::TestWithParam<Case> {};

TEST_P(ToyExecution, GivesTheLossAndTheGradientsOfOneRank) {
  const Case c = GetParam();
  Strategy s;
  s.tp = c.tp, s.pp = c.pp, s.vpp = c.vpp, s.dp = c.dp;
  s.sequence_parallel = c.sequence_parallel, s.zero = c.zero;
  s.recompute = c.recompute, s.recompute_share = c.share;
  s.schedule = c.schedule;
  if (c.vpp > 1 && c.schedule == Schedule::one_f_one_b) s.schedule = Schedule::interleaved;
  s.seq_len = seq, s.global_batch = 4 * s.dp;
  Recipe recipe;
  recipe.reshard_after_forward = c.reshard;
  recipe.scatters_sends = c.slices;
  const std::int64_t layers = 4;
  const Model model = weights(layers);
  const Trained t = trained(toy(layers), s, recipe);

  Model gradients = zeros(model);
  double expected_loss = 0;
  for (std::int64_t data = 0; data < s.dp; ++data) {
    for (std::int64_t n = 0; n < 4; ++n) expected_loss += train(model, tokens(data, n), gradients);
  }

  Ranks ranks = executed(t.program, s, model);
  double loss = 0;
  for (const auto& rank : ranks.all) loss += rank->loss;
  EXPECT_NEAR(loss / expected_loss, 1, 1e-12);

  for (std::int64_t stage = 0; stage < s.pp; ++stage) {
    const RankClass& stage_class = t.program.classes[ClassId(static_cast<std::uint32_t>(stage))];
    const Totals work = totals(t.program, stage_class);
    for (std::int64_t data = 0; data < s.dp; ++data) {
      for (std::int64_t tensor = 0; tensor < s.tp; ++tensor) {
        const ToyExecutor& rank = ranks.at(s, stage, data, tensor);
        for (const auto& [kind, expected] : held(gradients, s, stage, tensor)) {
          for (std::size_t l = 0; l < expected.size(); ++l) {
            const std::vector<double> got = gradients_of(ranks, s, stage, data, tensor, kind, l);
            const bool sharded = got.size() < expected[l].size();
            expect_equal(got, sharded ? shard(expected[l], data, s.dp) : expected[l],
                         kind + " " + std::to_string(l));
          }
        }
        EXPECT_EQ(rank.sent, work.point_to_point.value());
      }
    }
  }
}

// dualpipe's copies number their micro-batches alike; a layer's gradient is what both have of it.
TEST(DualPipeExecution, BothCopiesTogetherGiveTheGradientsOfOneRank) {
  for (const std::int64_t pp : {2, 4}) {
    Strategy s;
    s.pp = pp, s.vpp = 2, s.schedule = Schedule::dual_pipe;
    s.seq_len = seq, s.global_batch = 2 * pp;
    const Model model = weights(4);
    const Trained t = trained(toy(4), s);
    Model gradients = zeros(model);
    double expected_loss = 0;
    for (std::int64_t n = 0; n < pp; ++n) {
      expected_loss += 2 * train(model, tokens(0, n), gradients);
    }
    Ranks ranks = executed(t.program, s, model);
    double loss = 0;
    for (const auto& rank : ranks.all) loss += rank->loss;
    EXPECT_NEAR(loss / expected_loss, 1, 1e-12);
    for (std::int64_t stage = 0; stage < pp; ++stage) {
      for (const auto& [kind, expected] : held(gradients, s, stage, 0)) {
        for (std::size_t l = 0; l < expected.size(); ++l) {
          const std::size_t other = (l + expected.size() / 2) % expected.size();
          std::vector<double> both = gradients_of(ranks, s, stage, 0, 0, kind, l);
          const auto mirrored = gradients_of(ranks, s, pp - 1 - stage, 0, 0, kind, other);
          for (std::size_t i = 0; i < both.size(); ++i) both[i] = (both[i] + mirrored[i]) / 2;
          expect_equal(both, expected[l], kind + " " + std::to_string(l));
        }
      }
    }
  }
}

TEST_P(ToyExecution, CountsTheFlopsThatTheProgramStates) {
  const Case c = GetParam();
  if (c.tp * c.pp > 4) GTEST_SKIP();
  Strategy s;
  s.tp = c.tp, s.pp = c.pp, s.vpp = c.vpp, s.dp = 1;
  s.sequence_parallel = c.sequence_parallel;
  s.recompute = c.recompute, s.recompute_share = c.share;
  s.schedule = c.schedule;
  if (c.vpp > 1 && c.schedule == Schedule::one_f_one_b) s.schedule = Schedule::interleaved;
  s.seq_len = seq, s.global_batch = 4;
  const Trained t = trained(toy(4), s);
  Ranks ranks = executed(t.program, s, weights(4));
  for (std::int64_t stage = 0; stage < s.pp; ++stage) {
    const RankClass& stage_class = t.program.classes[ClassId(static_cast<std::uint32_t>(stage))];
    double stated = 0;  // attention is no matrix product in the toy
    each_instruction(stage_class, [&](const Instruction& instruction) {
      const auto* compute = std::get_if<Compute>(&instruction.what);
      if (!compute) return;
      const Kernel& kernel = t.program.kernels[compute->kernel];
      if (kernel.kind == OpKind::matmul) stated += kernel.flop.value();
    });
    EXPECT_EQ(ranks.at(s, stage, 0, 0).flop, stated);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ToyExecution,
    ::testing::Values(
        Case{"one_rank", 1, 1, 1, 1}, Case{"two_stages", 1, 2, 1, 1},
        Case{"two_tensor_ranks", 2, 1, 1, 1}, Case{"sequence_parallel", 2, 1, 1, 1, true},
        Case{"interleaved", 1, 2, 2, 1}, Case{"data_parallel", 1, 1, 1, 2},
        Case{"all_three", 2, 2, 2, 2}, Case{"all_three_sequence_parallel", 2, 2, 2, 2, true},
        Case{"slices_sent", 2, 2, 2, 1, false, Zero::none, Recompute::none, 1, true, true},
        Case{"zb_h1", 1, 4, 1, 1, false, Zero::none, Recompute::none, 1, true, false,
             Schedule::zero_bubble_h1},
        Case{"zb_h1_all", 2, 2, 1, 2, true, Zero::none, Recompute::full, 1, true, false,
             Schedule::zero_bubble_h1},
        Case{"zb_v", 1, 2, 2, 1, false, Zero::none, Recompute::none, 1, true, false,
             Schedule::zero_bubble_v},
        Case{"zb_v_slices", 2, 2, 2, 2, false, Zero::none, Recompute::full, 0.5, true, true,
             Schedule::zero_bubble_v},
        Case{"recompute", 2, 2, 1, 1, true, Zero::none, Recompute::full},
        Case{"recompute_half", 1, 2, 1, 1, false, Zero::none, Recompute::full, 0.5},
        Case{"zero_2", 1, 1, 1, 2, false, Zero::gradients},
        Case{"zero_3", 1, 1, 1, 2, false, Zero::weights},
        Case{"zero_3_recompute", 2, 1, 1, 2, false, Zero::weights, Recompute::full},
        Case{"zero_3_kept", 1, 1, 1, 2, false, Zero::weights, Recompute::none, 1, false}),
    [](const auto& layout) { return std::string(layout.param.name); });

}  // namespace
}  // namespace orrery
