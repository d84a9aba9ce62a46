# Two commands matter: `make demo` and `make test`. Both do their own set-up (scripts/setup), on a machine with Go, Node and a C compiler.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Works from an empty environment too (env -i): a home that is not set is read from the account.
ifeq ($(strip $(HOME)),)
export HOME := $(shell getent passwd $$(id -u) | cut -d: -f6)
endif
export PATH := $(if $(PATH),$(PATH):,)/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin
# The race detector and fast signature recovery both want C.
export CGO_ENABLED := 1

FUZZ_SECONDS ?= 600

.PHONY: help demo build test check unit fuzz contracts conformance crash hostile corpus replay window chaos books sim shots cases generate

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## the whole marketplace on this machine: pays for a call, gets a refund for another, then keeps serving
	@scripts/setup demo
	go run ./cmd/demo $(ARGS)

build: ## bin/market
	go build -trimpath -o bin/market ./cmd/market

test: ## everything that CI checks
	@scripts/setup test
	@$(MAKE) --no-print-directory check unit
	@scripts/fuzz 0

# One flag set for everything that is compiled here: another would be a second cold build of minutes.
RACE := GOFLAGS="$${GOFLAGS:-} -race"

check: ## formatting, module file, vet, staticcheck, contract artifacts
	@files=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$files" ] || { echo "gofmt would change:"; echo "$$files"; exit 1; }
	go mod tidy -diff
	go vet -race ./...
	$(RACE) go tool staticcheck ./...
	node contracts/build.mjs --check

unit: ## all tests, against one Postgres server, with the official client
	go run -race ./internal/postgres/pgtest/run -- scripts/unit

fuzz: ## every fuzz target, for FUZZ_SECONDS in all
	@scripts/fuzz $(FUZZ_SECONDS)

contracts: generate ## rebuild the contract artifacts
generate:
	go generate ./contracts

conformance: ## official clients, servers and facilitators from npm against ours; each case of conformance/cases.json
	@scripts/setup test
	@cd conformance && go test -race -count=1 -parallel 3 -timeout 5m | grep -vE '^(PASS|ok  )'

crash: ## kills the server at every point, starts it again, and prints how each call ends
	@scripts/setup demo
	@cd internal/app/crashtest && MARKET_CRASH_EVERY_CELL=1 go test -race -count=1 -timeout 30m -run TestMatrix | grep -vE '^(PASS|ok  )'

hostile: ## a service that means ill, one thing a row: prints how each call ends
	@scripts/setup demo
	@cd internal/app/hostiletest && go test -race -count=1 -timeout 15m -run TestHostile | grep -vE '^(PASS|ok  )'

corpus: ## everything that can happen to a call, one thing a row: prints what becomes of it
	@scripts/setup demo
	@cd internal/app/corpustest && go test -race -count=1 -timeout 15m -run 'TestCorpus|TestTable' | grep -vE '^(PASS|ok  )'

replay: ## incidents of others, played again with a shifted clock: prints what comes of each here
	@scripts/setup demo
	@cd internal/app/replaytest && MARKET_REPLAY_WHOLE=1 go test -race -count=1 -timeout 30m -run TestIncidents | grep -vE '^(PASS|ok  )'

N ?=
SEED ?=
window: ## what is still sent to settlement after whoever settles fell silent: real replicas, and N random runs (50), SEED to repeat them; written to docs/window.md
	@scripts/setup demo
	@cd internal/app/windowtest && MARKET_WINDOW_RUNS=$(or $(N),50) MARKET_WINDOW_SEED=$(SEED) MARKET_WINDOW_COMMIT=$$(git rev-parse HEAD) \
		MARKET_WINDOW_RESULT=$(CURDIR)/docs/window.md go test -race -count=1 -timeout 90m -run TestWindow | grep -vE '^(PASS|ok  )'

chaos: ## a long random run: N calls (100000), SEED to repeat one; what came of it is written to docs/chaos.md
	@scripts/setup demo
	MARKET_CHAOS_CALLS=$(or $(N),100000) MARKET_CHAOS_SEED=$(SEED) MARKET_CHAOS_COMMIT=$$(git rev-parse HEAD) MARKET_CHAOS_RESULT=$(CURDIR)/docs/chaos.md \
		go test -race -count=1 -v -timeout 24h -run TestChaos ./internal/app

books: ## N calls (5000) of a provider that is paid out all the time, while the chain is held against the books each second
	@scripts/setup demo
	MARKET_BOOKED_CALLS=$(or $(N),5000) go test -race -count=1 -v -timeout 2h -run TestBooks_ARunningMarket ./internal/app

sim: ## days of a market of 500 services through Postgres: N calls (1000000), SEED for others; prints what came of it, and writes it to docs/sim.md
	@scripts/setup test
	MARKET_SIM_CALLS=$(or $(N),1000000) MARKET_SIM_SEED=$(SEED) MARKET_SIM_COMMIT=$$(git rev-parse HEAD) MARKET_SIM_RESULT=$(CURDIR)/docs/sim.md \
		go test -race -count=1 -v -timeout 24h -run TestSim_TheDatabase ./internal/delivery/simtest | grep --line-buffered -vE '^(PASS|FAIL|ok  |=== |--- )'

shots: ## screenshots of every page, empty and full, on telephones and a desk, light and dark, into shots/
	@scripts/setup test
	@rm -rf shots && mkdir shots
	MARKET_SHOTS=$(CURDIR)/shots go test -race -count=1 -timeout 10m -run Pages_ ./internal/app/browsertest
	@echo "$$(ls shots | wc -l) screenshots are in shots/"

cases: ## the public bug reports by number: covered, excepted, open, missing
	@go test -race -count=1 -v -run TestCases ./cases | sed -nE 's/^ *cases_test.go:[0-9]+: //p; /^(FAIL|---)/p'
