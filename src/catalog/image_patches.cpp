#include "catalog/image_patches.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace orrery {
namespace {

constexpr std::int64_t most_image = 100'000;
constexpr std::int64_t most_patch = 1'024;

struct Sides {
  std::int64_t height, width;
};

Sides read_sides(ConfigValues& values, std::string_view key, std::int64_t fallback,
                 std::int64_t most) {
  const Json* json = values.fields().optional_json(key);
  const FieldPlace where = values.fields().where().key(key);
  if (!json) {
    values.note(where.path + " = " + std::to_string(fallback));
    return {fallback, fallback};
  }
  if (!json->is_array()) {
    const std::int64_t side = read_integer(*json, where, 1, most);
    return {side, side};
  }
  if (json->size() != 2) where.fail_expected("a side or [height, width]", *json);
  return {read_integer((*json)[0], where.item(0), 1, most),
          read_integer((*json)[1], where.item(1), 1, most)};
}

}  // namespace

ImagePatches read_patches(ConfigValues& values, const ImageSizes& fallback) {
  const Sides image = read_sides(values, "image_size", fallback.image, most_image);
  const Sides patch = read_sides(values, "patch_size", fallback.patch, most_patch);
  if (patch.height > image.height || patch.width > image.width) {
    values.fields().fail("patch_size", "a patch is larger than the image");
  }
  const std::int64_t channels = values.small({"num_channels"}, fallback.channels);
  return {.inputs = channels * patch.height * patch.width,
          .rows = image.height / patch.height,
          .columns = image.width / patch.width,
          .side = patch.height};
}

Tower patch_tower(Architecture stack, const ImagePatches& patches, std::int64_t class_tokens) {
  Tower tower;
  tower.name = "vision";
  tower.patch = patches.inputs;
  tower.tokens = patches.count() + class_tokens;
  tower.tokens_out = patches.count();
  tower.stack = std::move(stack);
  tower.stack.max_positions = tower.tokens;
  if (tower.stack.positions == Positions::learned) tower.stack.position_rows = tower.tokens;
  return tower;
}

Architecture stack_alone(const Tower& tower) {
  Architecture a = tower.stack;
  a.extra.emplace_back("patch map", tower.patch * a.hidden);
  return a;
}

}  // namespace orrery
