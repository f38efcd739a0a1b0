# The entry point of Quorate. `make help` lists the targets; CI calls `make test`.
#
# All output goes to build/ (and, for cargo, to CARGO_TARGET_DIR). `make demo` and `make test` set up their
# requirements on a machine with Rust, Go, Node 20, Python 3.11 and apt.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
# Downloads, compilers and packages of several languages wait for different things: four at a time.
MAKEFLAGS += --no-builtin-rules --no-print-directory --jobs=4
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Tools that know make would look for its job server, which is not theirs.
unexport MAKEFLAGS MFLAGS

STATE ?= .quorate
SERVERS ?= 5
home_writable := $(shell [ -n "$$HOME" ] && mkdir -p "$$HOME/.cache" 2>/dev/null && [ -w "$$HOME/.cache" ] && echo yes)
# One set of flags for build, vet and test: packages compiled with others would be compiled again.
export GOFLAGS ?= -mod=readonly -buildvcs=false -trimpath
export CARGO_TARGET_DIR ?= $(if $(home_writable),$(HOME)/.cache/quorate/target,$(CURDIR)/build/target)

venv := build/venv/bin
stamps := build/stamps
for_tests := setup rust-checked go portal sdk-js prometheus $(stamps)/pulumi
node_folders := $(patsubst %/package-lock.json,%,$(wildcard portal/package-lock.json sdk/js/package-lock.json))
node_stamps := $(foreach folder,$(node_folders),$(stamps)/npm-$(subst /,-,$(folder)))
python_inputs := $(wildcard infra/setup/*.txt \
  services/api/pyproject.toml services/prober/pyproject.toml sdk/python/pyproject.toml infra/*/pyproject.toml loadtest/*/pyproject.toml) infra/setup/python.sh
portal_inputs = $(shell find portal -path portal/node_modules -prune -o -path portal/dist -prune -o \
  -path portal/e2e -prune -o -path portal/test-results -prune -o -type f -print 2>/dev/null) \
  $(wildcard sdk/contract/openapi.json)
sdk_js_inputs = $(shell find sdk/js -path sdk/js/node_modules -prune -o -path sdk/js/dist -prune -o -type f -print 2>/dev/null)

# -- targets for people --------------------------------------------------------------------------

.PHONY: help setup build release up down status logs demo test verify fix gen bench bench-peers profile figures chaos claims sla accounts drill pages sla-oracle scale sim evidence model fuzz e2e infra-test

help: ## Show this list
	@echo 'make <target> [NAME=value …]'
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' Makefile

setup: $(stamps)/python $(node_stamps) system ## Fetch all requirements of the project (once; repeating it is free)

build: setup rust go portal sdk-js ## Build the servers, the portal and the TypeScript SDK

release: build ## Pack the files that machines install at their first start, with checksums, into build/release
	@infra/setup/release.sh

up: build $(if $(filter 1,$(OBSERVE)),prometheus-required) ## Start a whole Quorate here: SERVERS=5 STATE=.quorate COORDINATORS=1 (3, 5) WORKERS=1 PROBERS=1 API_PORT=0 (any free port) PLAINTEXT=1 (TLS not required) OBSERVE=1 (Prometheus too)
	@$(venv)/quorate-local up --state $(STATE) --servers $(SERVERS) $(up_flags)

down: $(stamps)/python ## Stop it (WIPE=1 removes its state too)
	@$(venv)/quorate-local down --state $(STATE) $(if $(filter 1,$(WIPE)),--wipe)

status: $(stamps)/python ## Show the processes, their addresses and memory
	@$(venv)/quorate-local status --state $(STATE) || true

logs: $(stamps)/python ## Show the ends of the logs (NAME=s1 for one process, FOLLOW=1 to follow)
	@$(venv)/quorate-local logs --state $(STATE) $(NAME) $(if $(filter 1,$(FOLLOW)),--follow)

demo: build ## Replay a real day of traffic, kill a server, check every entry and the bill (KEEP=1 leaves it running)
	@$(venv)/quorate-demo $(if $(filter 1,$(GRAY)),--gray) $(if $(filter 1,$(KEEP)),--keep) $(if $(DEMO_SECONDS),--seconds $(DEMO_SECONDS))

test: $(for_tests) ## Run every check and every test, then print how many passed
	@$(venv)/quorate-checks test

verify: setup $(stamps)/pulumi ## Check formats, lints, types and generated files; changes nothing
	@$(venv)/quorate-checks verify

fix: setup ## Apply the fixes of formatters and linters
	@$(venv)/quorate-checks fix

gen: setup ## Write every generated file from its source
	@$(venv)/quorate-checks gen

bench: rust $(stamps)/python ## Measure the cost of appends, each goal in turn: about five minutes, nothing else running (ONLY=isolation REPEATS=3), or beside the binaries of another version (BESIDE=FOLDER)
	@$(venv)/quorate-bench $(if $(ONLY),--only '$(ONLY)') $(if $(REPEATS),--repeats $(REPEATS)) $(if $(BESIDE),--beside '$(BESIDE)')

chaos: rust go $(stamps)/python ## Break real servers under load, check their histories: RUNS=1 SEED=1 FAULT=name (all faults) AT_ONCE=1 GRAY=1 KEEP=1 RESUME=1 PUBLISH=1
	@$(venv)/quorate-chaos --runs $(or $(RUNS),1) --seed $(or $(SEED),1) --at-once $(or $(AT_ONCE),1) $(if $(FAULT),--fault $(FAULT)) $(if $(filter 1,$(GRAY)),--gray) $(if $(filter 1,$(KEEP)),--keep) $(if $(filter 1,$(RESUME)),--resume) $(if $(filter 1,$(PUBLISH)),--publish)

claims: rust $(stamps)/python ## Measure the claims about consensus (ONLY=failover,… QUICK=1 PUBLISH=1), about a quarter of an hour
	@$(venv)/quorate-claims $(if $(ONLY),--only '$(ONLY)') $(if $(filter 1,$(QUICK)),--quick) $(if $(filter 1,$(PUBLISH)),--publish)

sla: build ## Attack the SLA on the whole stack, and run what the READMEs show (about an hour, ONLY=loops|charges|deleted|neighbour|cap|billing|blind|overload QUICK=1)
	@$(venv)/quorate-sla $(if $(ONLY),--only '$(ONLY)') $(if $(filter 1,$(QUICK)),--quick)

drill: ## Lose the disks of PostgreSQL and the coordinator under load, restore both, and count what is lost: a minute
	@cd infra/e2e && ../../$(venv)/python -m pytest -q -p no:cacheprovider -p no:xdist test_backups.py

pages: build ## Measure how quick and accessible each page of the portal is in a real browser, as Lighthouse counts it: five minutes
	@cd portal && QUORATE_PYTHON=../$(venv)/python ../$(venv)/quorate-local run --state ../build/pages --server-cpu 2 -- \
	  npx --no-install playwright test --project=speed

accounts: build ## Measure how soon revoked keys are refused, on the whole stack: a minute (ONLY=revocation QUICK=1)
	@$(venv)/quorate-accounts $(if $(ONLY),--only '$(ONLY)') $(if $(filter 1,$(QUICK)),--quick)

sla-oracle: $(stamps)/python ## Judge 100 000 simulated months by the SLA calculator and by a brute-force oracle (half an hour, MONTHS=N SEED=N)
	@$(venv)/quorate-sla-oracle $(if $(MONTHS),--months $(MONTHS)) $(if $(SEED),--seed $(SEED))

scale: build ## Measure ingest, usage, SLA reports, invoices and a month's close with 10 000 groups and 13 months of data, and a day without Redis (ONLY=outage|world, QUICK=1)
	@$(venv)/quorate-scale $(if $(ONLY),--only '$(ONLY)') $(if $(filter 1,$(QUICK)),--quick)

bench-peers: build ## Measure beside etcd, Kafka, NATS, Aeron, ZooKeeper, hashicorp/raft (40 min): ONLY=nats,64b_mem ROUNDS=3 RESUME=1 QUICK=1
	@$(venv)/quorate-bench-peers $(if $(ONLY),--only '$(ONLY)') $(if $(ROUNDS),--repeats $(ROUNDS)) $(if $(filter 1,$(RESUME)),--resume) $(if $(filter 1,$(QUICK)),--quick)

profile: rust $(stamps)/python ## Measure this machine's cost profile and its error, six minutes, one more if disturbed; nothing else running (REPEATS=3 ACCEPT=1)
	@$(venv)/quorate-profile $(if $(REPEATS),--repeats $(REPEATS)) $(if $(filter 1,$(ACCEPT)),--accept)

figures: rust $(stamps)/python ## Rerun figures of the papers, plots to docs/papers (minutes): ONLY=fig3 (of make profile), computed, fig7 (real servers, RUNS=3 of 3.5 min each, disturbed ones again), pulsar, sharing, capacity, guarantee and pisces (all three of make claims)
	@$(venv)/quorate-figures $(if $(ONLY),--only $(ONLY)) $(if $(RUNS),--runs $(RUNS))

sim: $(stamps)/python ## Simulate whole fleets with every fault: SEEDS=10000 FIRST=1 PROFILE=quorum; PLANTED=1 checks that planted bugs are caught
	@infra/setup/sim.sh $(if $(PLANTED),planted,$(or $(SEEDS),10000) $(or $(FIRST),1) $(or $(PROFILE),any))

evidence: rust go $(stamps)/python ## Measure again all published evidence that is older than its sources, and publish it: hours (ONLY=simulator, ALL=1)
	@$(venv)/quorate-evidence run $(if $(ONLY),--only $(ONLY)) $(if $(filter 1,$(ALL)),--all)

e2e: $(for_tests) ## Run only the tests of the real stack: short demo, bad input, the portal in a browser
	@$(venv)/quorate-checks test --only e2e

infra-test: $(for_tests) ## Try Terraform's providers and modules, and Pulumi components (a stand-in for the API, the clouds' schemas), and alerts with promtool
	@$(venv)/quorate-checks test --only infra

model: setup ## Explore the large worlds of the model of one group in full (minutes)
	@$(venv)/quorate-checks model

fuzz: setup ## Run every fuzz target: SECONDS=120 each
	@$(venv)/quorate-checks fuzz --keep --seconds $(or $(SECONDS),120)

# -- internal targets ----------------------------------------------------------------------------

up_flags = $(foreach pair,api-port:API_PORT coordinator-port:COORDINATOR_PORT \
  coordinator-http-port:COORDINATOR_HTTP_PORT postgres-port:POSTGRES_PORT redis-port:REDIS_PORT \
  server-ports:SERVER_PORTS prometheus-port:PROMETHEUS_PORT,$(if $($(lastword $(subst :, ,$(pair)))),--$(firstword $(subst :, ,$(pair))) \
  $($(lastword $(subst :, ,$(pair)))))) \
  $(if $(COORDINATORS),--coordinators $(COORDINATORS)) $(if $(WORKERS),--workers $(WORKERS)) $(if $(PROBERS),--probers $(PROBERS)) $(if $(filter 1 links,$(PLAINTEXT)),--plaintext) $(if $(filter links,$(PLAINTEXT)),--plaintext-links) \
  $(if $(filter 1,$(OBSERVE)),--observe)

.PHONY: system prometheus prometheus-required rust rust-checked go portal sdk-js lock

# Versions in production (services/api/requirements.txt) win; the rest is the newest that fits them.
lock: $(stamps)/python
	@cd services/api && uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes requirements.in -o requirements.txt
	@cd services/api && uv pip compile --quiet --python-version 3.11 --generate-hashes requirements-dev.in -o requirements-dev.txt
	@{ echo '# Generated by `make lock` from python.in; do not edit.'; \
	  uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --constraint services/api/requirements.txt infra/setup/python.in; } > infra/setup/python.txt.new
	@mv infra/setup/python.txt.new infra/setup/python.txt
	@{ echo '# Generated by `make lock` from pulumi.in; do not edit.'; \
	  uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate infra/setup/pulumi.in; } > infra/setup/pulumi.txt.new
	@mv infra/setup/pulumi.txt.new infra/setup/pulumi.txt

system:
	@infra/setup/system.sh

prometheus: system
	@infra/setup/prometheus.sh

prometheus-required: system
	@REQUIRED=1 infra/setup/prometheus.sh

rust: system
	@infra/setup/rust.sh release

rust-checked: system
	@infra/setup/rust.sh checked

go: system
	@infra/setup/go.sh

portal: $(if $(wildcard portal/package-lock.json),$(stamps)/portal)

sdk-js: $(if $(wildcard sdk/js/package-lock.json),$(stamps)/sdk-js)

$(stamps)/python: $(python_inputs)
	@infra/setup/python.sh
	@mkdir -p $(@D) && touch $@

$(stamps)/pulumi: $(stamps)/python infra/setup/pulumi.sh infra/setup/pulumi.txt infra/pulumi/pyproject.toml
	@infra/setup/pulumi.sh
	@mkdir -p $(@D) && touch $@

$(stamps)/npm-portal: portal/package-lock.json
$(stamps)/npm-sdk-js: sdk/js/package-lock.json
$(node_stamps): infra/setup/node.sh
	@infra/setup/node.sh $(patsubst %/package-lock.json,%,$(filter %/package-lock.json,$^))
	@mkdir -p $(@D) && touch $@

$(stamps)/portal: $(stamps)/npm-portal $(portal_inputs)
	@echo '  portal (vite)'
	@npm run --silent --prefix portal build
	@mkdir -p $(@D) && touch $@

$(stamps)/sdk-js: $(stamps)/npm-sdk-js $(sdk_js_inputs)
	@echo '  TypeScript SDK (tsc)'
	@npm run --silent --prefix sdk/js build
	@mkdir -p $(@D) && touch $@
