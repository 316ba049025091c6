# The short way in. `make run` and `make test` install what is missing, build, and go.
.PHONY: configure build run test deps fuzz bench format clean

BUILD := build

configure: deps
	@scripts/quietly.sh cmake --preset release

build: configure
	@echo "Building the program and its tests (a few minutes the first time) ..." >&2
	@scripts/quietly.sh cmake --build --preset release

run: configure
	@echo "Building (two minutes the first time) ..." >&2
	@scripts/quietly.sh cmake --build --preset release --target orrery
	@$(BUILD)/orrery plan --model llama-3.1-70b --gpu h100-sxm --gpus 64

test: build
	@scripts/run-tests.sh $(BUILD)

deps:
	@scripts/install-deps.sh

# One minute for each text format: FUZZ_SECONDS=600 make fuzz.
fuzz:
	@scripts/install-deps.sh --ci
	@scripts/fuzz.sh

bench: build
	@for bench in $(BUILD)/bin/*_bench; do $$bench; done

format:
	@clang-format-14 -i $$(git ls-files '*.h' '*.cpp')

clean:
	@rm -rf build build-dev build-asan build-fuzz
