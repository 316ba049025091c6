// The first reader of Programs: plays every class on its streams, with prices given by the test.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "plan/program.h"

namespace orrery {

struct Played {
  double makespan = 0;
  std::vector<double> busy;  // of the compute stream, by class
};

class ToyReplay {
 public:
  using Price = std::function<double(const Instruction&)>;

  // `one_stream`: instructions one after another, as an executor without streams runs them.
  ToyReplay(const Program& program, Price price, bool one_stream = false)
      : program_(program), price_(std::move(price)), one_stream_(one_stream) {}

  Played play() {
    for (const ClassId id : program_.classes.ids()) {
      players_.push_back({});
      flatten(program_.classes[id], program_.classes[id].step, players_.back().todo);
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (const ClassId id : program_.classes.ids()) {
        while (play_next(id)) moved = true;
      }
    }
    return result();
  }

 private:
  struct Player {
    std::vector<const Instruction*> todo;
    std::size_t next = 0;
    std::map<Stream, double> streams;
    std::map<EventId, double> events;
    double busy = 0;
  };
  using Link = std::tuple<ClassId, ClassId, std::int32_t>;  // from, to, channel

  static void flatten(const RankClass& ranks, const std::vector<Instruction>& body,
                      std::vector<const Instruction*>& flat) {
    for (const Instruction& instruction : body) {
      if (const auto* loop = std::get_if<Loop>(&instruction.what)) {
        for (std::int64_t i = 0; i < loop->count; ++i) flatten(ranks, loop->body, flat);
      } else if (const auto* call = std::get_if<Call>(&instruction.what)) {
        flatten(ranks, ranks.blocks[call->block].body, flat);
      } else {
        flat.push_back(&instruction);
      }
    }
  }

  // False where the class has finished or waits for a neighbour.
  bool play_next(ClassId id) {
    Player& player = players_[id.index()];
    if (player.next == player.todo.size()) return false;
    const Instruction& instruction = *player.todo[player.next];
    const auto* recv = std::get_if<Recv>(&instruction.what);
    std::deque<double>* arrivals = recv ? &links_[{recv->from, id, recv->channel}] : nullptr;
    if (arrivals && arrivals->empty()) return false;

    double& stream = player.streams[one_stream_ ? Stream::compute : instruction.stream];
    double start = stream;
    for (const EventId event : instruction.wait) start = std::max(start, player.events[event]);
    const double price = price_(instruction);
    double end = start + price;
    if (arrivals) {
      end = std::max(end, arrivals->front());
      arrivals->pop_front();
    }
    if (const auto* send = std::get_if<Send>(&instruction.what)) {
      links_[{id, send->to, send->channel}].push_back(end);
    }
    if (instruction.signal) player.events[instruction.signal] = end;
    if (instruction.stream == Stream::compute) player.busy += price;
    stream = end;
    ++player.next;
    return true;
  }

  Played result() const {
    Played played;
    for (const Player& player : players_) {
      if (player.next != player.todo.size()) throw std::runtime_error("stages wait forever");
      for (const auto& [stream, end] : player.streams) {
        played.makespan = std::max(played.makespan, end);
      }
      played.busy.push_back(player.busy);
    }
    return played;
  }

  const Program& program_;
  Price price_;
  bool one_stream_;
  std::vector<Player> players_;
  std::map<Link, std::deque<double>> links_;
};

}  // namespace orrery
