// Builds a Json from the events of a parser, with the rules that JSON and YAML share.
#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace orrery {

/// Throws InputError without a place; the parser adds it.
class JsonBuilder {
 public:
  void value(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      Level& level = open_.back();
      if (level.is_object) {
        level.members.emplace_back(std::move(level.key), std::move(value));
      } else {
        level.items.push_back(std::move(value));
      }
    }
  }

  void key(std::string name) {
    Level& level = open_.back();
    if (!level.keys.insert(name).second) {
      throw InputError("the key " + in_quotes(name) + " appears twice", "", "keep one of them");
    }
    level.key = std::move(name);
  }

  void begin(bool is_object) {
    if (open_.size() >= kMaxJsonDepth) {
      throw InputError("nested too deep",
                       "the limit is " + std::to_string(kMaxJsonDepth) + " levels");
    }
    open_.push_back(Level{.is_object = is_object});
  }

  void end() {
    Level level = std::move(open_.back());
    open_.pop_back();
    value(level.is_object ? Json::object(std::move(level.members))
                          : Json::array(std::move(level.items)));
  }

  Json take() { return std::move(root_); }

 private:
  struct Level {
    bool is_object = false;
    std::string key = {};
    Json::Object members = {};
    Json::Array items = {};
    std::unordered_set<std::string> keys = {};
  };

  std::vector<Level> open_;
  Json root_;
};

}  // namespace orrery
