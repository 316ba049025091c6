// Quantities whose dimension is their type: Bytes / BytesPerSecond is Seconds, nothing else
// compiles.
#pragma once

#include <cmath>
#include <compare>

namespace orrery {

/// Exponents of s, byte, FLOP, joule, US dollar, token.
struct Dim {
  int time = 0, data = 0, work = 0, energy = 0, money = 0, token = 0;
  constexpr bool operator==(const Dim&) const = default;
};

constexpr Dim operator+(const Dim& a, const Dim& b) {
  return {a.time + b.time,     a.data + b.data,   a.work + b.work,
          a.energy + b.energy, a.money + b.money, a.token + b.token};
}
constexpr Dim operator-(const Dim& a) {
  return {-a.time, -a.data, -a.work, -a.energy, -a.money, -a.token};
}
constexpr Dim operator-(const Dim& a, const Dim& b) { return a + -b; }

/// A double in base units (s, byte, FLOP, J, USD, token). Products and ratios without a dimension
/// are plain doubles.
template <Dim D>
requires(D != Dim{}) class Quantity {
 public:
  static constexpr Dim dim = D;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_value) : value_(base_value) {}

  constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value_ -= other.value_, *this; }
  constexpr Quantity& operator*=(double factor) { return value_ *= factor, *this; }
  constexpr Quantity& operator/=(double divisor) { return value_ /= divisor, *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return a *= factor; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a *= factor; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return a /= divisor; }

  constexpr auto operator<=>(const Quantity&) const = default;

 private:
  double value_ = 0;
};

namespace detail {
template <Dim D>
constexpr auto with_dim(double value) {
  if constexpr (D == Dim{}) {
    return value;
  } else {
    return Quantity<D>(value);
  }
}
}  // namespace detail

template <Dim A, Dim B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  return detail::with_dim<A + B>(a.value() * b.value());
}
template <Dim A, Dim B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  return detail::with_dim<A - B>(a.value() / b.value());
}
template <Dim A>
constexpr auto operator/(double a, Quantity<A> b) {
  return Quantity<-A>(a / b.value());
}

template <Dim D>
Quantity<D> abs(Quantity<D> quantity) {
  return Quantity<D>(std::abs(quantity.value()));
}
template <Dim D>
bool is_finite(Quantity<D> quantity) {
  return std::isfinite(quantity.value());
}

using Seconds = Quantity<Dim{.time = 1}>;
using Hertz = Quantity<Dim{.time = -1}>;
using Bytes = Quantity<Dim{.data = 1}>;
using BytesPerSecond = Quantity<Dim{.time = -1, .data = 1}>;
using Flop = Quantity<Dim{.work = 1}>;
using FlopPerSecond = Quantity<Dim{.time = -1, .work = 1}>;
using FlopPerByte = Quantity<Dim{.data = -1, .work = 1}>;
using FlopPerJoule = Quantity<Dim{.work = 1, .energy = -1}>;
using Joules = Quantity<Dim{.energy = 1}>;
using Watts = Quantity<Dim{.time = -1, .energy = 1}>;
using JoulesPerByte = Quantity<Dim{.data = -1, .energy = 1}>;
using JoulesPerFlop = Quantity<Dim{.work = -1, .energy = 1}>;
using Dollars = Quantity<Dim{.money = 1}>;
using DollarsPerSecond = Quantity<Dim{.time = -1, .money = 1}>;
using DollarsPerJoule = Quantity<Dim{.energy = -1, .money = 1}>;
using Tokens = Quantity<Dim{.token = 1}>;
using TokensPerSecond = Quantity<Dim{.time = -1, .token = 1}>;
using SecondsPerToken = Quantity<Dim{.time = 1, .token = -1}>;
using BytesPerToken = Quantity<Dim{.data = 1, .token = -1}>;
using FlopPerToken = Quantity<Dim{.work = 1, .token = -1}>;
using JoulesPerToken = Quantity<Dim{.energy = 1, .token = -1}>;
using DollarsPerToken = Quantity<Dim{.money = 1, .token = -1}>;

namespace literals {

#define ORRERY_LITERAL(suffix, Type, scale)                      \
  constexpr Type operator""_##suffix(long double value) {        \
    return Type(static_cast<double>(value) * (scale));           \
  }                                                              \
  constexpr Type operator""_##suffix(unsigned long long value) { \
    return Type(static_cast<double>(value) * (scale));           \
  }

ORRERY_LITERAL(s, Seconds, 1.0)
ORRERY_LITERAL(ms, Seconds, 1e-3)
ORRERY_LITERAL(us, Seconds, 1e-6)
ORRERY_LITERAL(ns, Seconds, 1e-9)
ORRERY_LITERAL(min, Seconds, 60.0)
ORRERY_LITERAL(h, Seconds, 3600.0)
ORRERY_LITERAL(Hz, Hertz, 1.0)
ORRERY_LITERAL(MHz, Hertz, 1e6)
ORRERY_LITERAL(GHz, Hertz, 1e9)
ORRERY_LITERAL(B, Bytes, 1.0)
ORRERY_LITERAL(KB, Bytes, 1e3)
ORRERY_LITERAL(MB, Bytes, 1e6)
ORRERY_LITERAL(GB, Bytes, 1e9)
ORRERY_LITERAL(TB, Bytes, 1e12)
ORRERY_LITERAL(KiB, Bytes, 1024.0)
ORRERY_LITERAL(MiB, Bytes, 1024.0 * 1024.0)
ORRERY_LITERAL(GiB, Bytes, 1024.0 * 1024.0 * 1024.0)
ORRERY_LITERAL(MBps, BytesPerSecond, 1e6)
ORRERY_LITERAL(GBps, BytesPerSecond, 1e9)
ORRERY_LITERAL(TBps, BytesPerSecond, 1e12)
ORRERY_LITERAL(Gbps, BytesPerSecond, 1e9 / 8.0)
ORRERY_LITERAL(FLOP, Flop, 1.0)
ORRERY_LITERAL(GFLOP, Flop, 1e9)
ORRERY_LITERAL(TFLOP, Flop, 1e12)
ORRERY_LITERAL(PFLOP, Flop, 1e15)
ORRERY_LITERAL(GFLOPs, FlopPerSecond, 1e9)
ORRERY_LITERAL(TFLOPs, FlopPerSecond, 1e12)
ORRERY_LITERAL(PFLOPs, FlopPerSecond, 1e15)
ORRERY_LITERAL(J, Joules, 1.0)
ORRERY_LITERAL(kWh, Joules, 3.6e6)
ORRERY_LITERAL(W, Watts, 1.0)
ORRERY_LITERAL(kW, Watts, 1e3)
ORRERY_LITERAL(MW, Watts, 1e6)
ORRERY_LITERAL(USD, Dollars, 1.0)
ORRERY_LITERAL(tokens, Tokens, 1.0)

#undef ORRERY_LITERAL

}  // namespace literals
}  // namespace orrery
