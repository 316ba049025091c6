// Ranks of a toy run as threads that exchange matrices.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace orrery {

struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<double> v = {};

  static Matrix zero(std::int64_t rows, std::int64_t cols) {
    return {rows, cols, std::vector<double>(rows * cols)};
  }
  double& at(std::int64_t i, std::int64_t j) { return v[i * cols + j]; }
  double at(std::int64_t i, std::int64_t j) const { return v[i * cols + j]; }

  Matrix columns(std::int64_t from, std::int64_t count) const {
    return filled(rows, count, [&](auto i, auto j) { return at(i, from + j); });
  }
  Matrix some_rows(std::int64_t from, std::int64_t count) const {
    return filled(count, cols, [&](auto i, auto j) { return at(from + i, j); });
  }
  template <class F>
  static Matrix filled(std::int64_t rows, std::int64_t cols, F value) {
    Matrix m = zero(rows, cols);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) m.at(i, j) = value(i, j);
    }
    return m;
  }
};

inline Matrix& operator+=(Matrix& a, const Matrix& b) {
  for (std::size_t i = 0; i < a.v.size(); ++i) a.v[i] += b.v.at(i);
  return a;
}
inline Matrix operator+(Matrix a, const Matrix& b) { return a += b; }
inline Matrix times(const Matrix& a, const Matrix& b) {  // element by element
  return Matrix::filled(a.rows, a.cols, [&](auto i, auto j) { return a.at(i, j) * b.at(i, j); });
}
inline Matrix transposed(const Matrix& a) {
  return Matrix::filled(a.cols, a.rows, [&](auto i, auto j) { return a.at(j, i); });
}
// Side by side.
inline Matrix beside(const std::vector<Matrix>& parts) {
  Matrix all = Matrix::zero(parts.at(0).rows, 0);
  for (const Matrix& part : parts) all.cols += part.cols;
  all.v.resize(all.rows * all.cols);
  std::int64_t from = 0;
  for (const Matrix& part : parts) {
    for (std::int64_t i = 0; i < part.rows; ++i) {
      for (std::int64_t j = 0; j < part.cols; ++j) all.at(i, from + j) = part.at(i, j);
    }
    from += part.cols;
  }
  return all;
}
// a b, its multiplications and additions counted.
inline Matrix product(const Matrix& a, const Matrix& b, double& flop) {
  if (a.cols != b.rows) throw std::runtime_error("shapes do not match");
  Matrix c = Matrix::zero(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.cols; ++j) {
      for (std::int64_t k = 0; k < a.cols; ++k) {
        c.at(i, j) += a.at(i, k) * b.at(k, j);
        flop += 2;
      }
    }
  }
  return c;
}

class ToyNetwork {
 public:
  using Link = std::tuple<std::int64_t, std::int64_t, std::int32_t>;  // from, to, channel

  void send(const Link& link, Matrix m) {
    const std::lock_guard lock(mutex_);
    links_[link].push_back(std::move(m));
    changed_.notify_all();
  }

  Matrix receive(const Link& link) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return !links_[link].empty(); });
    Matrix m = std::move(links_[link].front());
    links_[link].pop_front();
    return m;
  }

  // What each of the `ranks` members of a group brings to its `turn`-th meeting.
  std::vector<Matrix> meet(const std::string& group, std::int64_t turn, std::int64_t ranks,
                           std::int64_t me, Matrix mine) {
    std::unique_lock lock(mutex_);
    auto& table = meetings_[{group, turn}];
    table[me] = std::move(mine);
    changed_.notify_all();
    wait(lock, [&] { return static_cast<std::int64_t>(table.size()) == ranks; });
    std::vector<Matrix> all;
    for (const auto& [rank, m] : table) all.push_back(m);
    return all;
  }

 private:
  void wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready) {
    if (!changed_.wait_for(lock, std::chrono::seconds(20), ready)) {
      throw std::runtime_error("ranks wait forever");
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Link, std::deque<Matrix>> links_;
  std::map<std::pair<std::string, std::int64_t>, std::map<std::int64_t, Matrix>> meetings_;
};

}  // namespace orrery
