.DEFAULT_GOAL := help
BENCHTIME ?= 2000x
BENCH_TOGETHER ?= 1
ARCH = $(shell go env GOARCH)
GOLANGCI_LINT := bin/golangci-lint-2.15.0
APIDIFF := bin/apidiff-20261113113407
GOVULNCHECK := bin/govulncheck-1.9.0
GORELEASER := bin/goreleaser-2.16.0
SYFT := bin/syft-1.57.0

.PHONY: help
help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Tests leave go vet to `make lint`: it takes long for all that they depend on.
export GOFLAGS := $(or $(GOFLAGS),$(shell go env GOFLAGS)) -vet=off

# The race detector leaves out SQLite, which is C as Go: it took half of the time. Tests have memory, so garbage is collected
# less often (GOGC).
GO_TEST = env CGO_ENABLED=1 GOGC=400 GORACE=atexit_sleep_ms=0 go test -race -gcflags=modernc.org/...=-race=false -count=1 -timeout 30m
CONFORMANCE = ^(TestConformance|TestSessionLocks|TestCounter)

# Modules of their own, in the workspace adapter/go.work. Their tests go without the race detector: to build goose, migrate
# and what they need once more took longer than all of these tests.
ADAPTERS = $(patsubst adapter/%/go.mod,./%,$(wildcard adapter/*/go.mod)) ../otellock ../otellock/demo/...

.PHONY: check
check: $(GOLANGCI_LINT) ## while you work: vet, linters on what changed, unit tests and conformance on the servers that are here
	go vet ./...
	go vet -C adapter $(ADAPTERS)
	go vet -C bench ./...
	go vet -C docs/recipes/code ./...
	$(GOLANGCI_LINT) run --new ./...
	$(GO_TEST) $$(go list ./... | grep -vE '/(pg|mysql|leasetable|sqltest|schema|cmd/sqllock|internal/(acceptance|examples|modules))$$')
	SQLTEST_SKIP=1 ./scripts/with-servers --here $(GO_TEST) -short -run '$(CONFORMANCE)' ./pg ./mysql ./leasetable

# ALSO has more targets that run beside the last tests. No more than one beside the simulations: they end after some time,
# with fewer histories if others need the processors.
.PHONY: test
test: ## every test, with the race detector, on real servers; gets the servers it needs
	./scripts/with-servers $(MAKE) test-pass
	$(MAKE) -j2 test-modules test-simulations test-bench $(ALSO)

# Those that take longest come first. A later pass, with other versions of the servers, leaves out what does not depend
# on the version: so it is without the race detector.
.PHONY: test-pass
test-pass:
	$(if $(LATER_PASS),env CGO_ENABLED=0 GOGC=400 go test -short -count=1 -timeout 30m,$(GO_TEST)) $(ARGS) \
		./leasetable ./cmd/sqllock ./sqltest ./mysql ./pg ./...

.PHONY: test-modules
test-modules: ## the tests of the adapters, otellock, the recipes (docs/recipes, docs/test-databases.md), and of several processes (internal/acceptance), on the first servers that there are
	./scripts/with-servers --first $(MAKE) test-modules-pass

# Where with-servers has found that processes start slowly, one package is tested at a time.
ifneq ($(filter -p=1,$(GOFLAGS)),)
.NOTPARALLEL:
endif

# Side by side, if make has -j: each has databases of its own.
.PHONY: test-modules-pass test-adapters test-processes test-recipes test-database-recipes
test-modules-pass: test-adapters test-processes test-recipes test-database-recipes

test-adapters:
	CGO_ENABLED=0 go test -C adapter -count=1 -timeout 30m $(ARGS) $(ADAPTERS)

# The race detector would only make the processes start slowly: a build with it has not got these tests.
test-processes:
	CGO_ENABLED=0 go test -count=1 -timeout 30m $(ARGS) ./internal/acceptance

test-recipes:
	CGO_ENABLED=0 go test -C docs/recipes/code -count=1 $(ARGS) ./...

test-database-recipes:
	CGO_ENABLED=0 go test -C sqltest/recipes -count=1 $(ARGS) .

# A history keeps nothing: to collect garbage seldom makes more of them a minute.
FEW_COLLECTIONS = GOGC=off GOMEMLIMIT=4GiB

# nice: their time is virtual, and that of the tests beside them is not.
.PHONY: test-simulations
test-simulations: ## the simulations without the race detector: some thousand histories each, and that a seed runs the same again; and the models
	CGO_ENABLED=0 SQLTEST_SKIP=1 $(FEW_COLLECTIONS) nice go test -count=1 -p 1 -run '^(TestSimulation|TestASeedRunsTheSameAgain)$$' ./leasetable ./internal/session
	CGO_ENABLED=0 nice go test -count=1 -p 1 ./leasetable/internal/model ./internal/session/internal/model

.PHONY: test-bench
test-bench: ## the tests of what `make performance` runs; they need no server
	CGO_ENABLED=0 go test -C bench -count=1 ./...

.PHONY: try-metrics
try-metrics: ## the dashboard and the alerts of otellock with a real Prometheus, for nine minutes; draws docs/metrics.svg
	./scripts/try-metrics

.PHONY: mutate
mutate: ## takes out one condition after the other, and shows that a test turns red; NAMES="a b" for some
	./scripts/with-servers --first ./scripts/mutate $(NAMES)

SEED ?= 1
SEEDS ?= 20000
OF ?= ./leasetable ./internal/session
.PHONY: simulate
simulate: ## histories in simulated worlds (docs/simulation.md); SEEDS=n for so many, SEED=n for the first, OF=./leasetable or ./internal/session
	SQLTEST_SKIP=1 $(FEW_COLLECTIONS) SQLLOCK_SIMULATE_SEEDS=$(SEEDS) SQLLOCK_SIMULATE_SEED=$(SEED) \
		go test -count=1 -p 1 -timeout 0 -v -run '^TestSimulation$$' $(OF)

.PHONY: simulate-bugs
simulate-bugs: ## puts bugs into the engine, and shows that the simulation finds each; NAMES="a b" for some
	./scripts/simulate-bugs $(NAMES)

.PHONY: soak
soak: ## for an hour: long histories, faults and clock steps, again and again; MINUTES=n for so many
	./scripts/with-servers --first ./scripts/soak $(MINUTES)

# BENCH_TOGETHER packages run at once. With more than one, the figures mean nothing.
.PHONY: bench
bench: ## what locks cost beside the bare driver, as ratios, and what sqllock run does
	./scripts/with-servers --first $(MAKE) bench-pass

# One package at a time where with-servers has found that processes start slowly.
.PHONY: bench-pass
bench-pass:
	echo ./leasetable ./mysql ./pg ./cmd/sqllock | xargs -n 1 -P $(if $(filter -p=1,$(GOFLAGS)),1,$(BENCH_TOGETHER)) \
		go test -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 45m $(BENCHFLAGS)

.PHONY: performance
performance: ## measures all beside other libraries, and writes docs/performance.md; ARGS=-quick to try it
	cd bench && go run . $(ARGS) && go run ./report

.PHONY: lint
lint: $(GOLANGCI_LINT) ## words, golangci-lint (with go vet) or go vet, and go mod tidy
	scripts/words
	$(GOLANGCI_LINT) run ./...
	cd adapter && ../$(GOLANGCI_LINT) run $(ADAPTERS)
	go vet -C bench ./...
	go vet -C docs/recipes/code ./...
	go vet -C sqltest/recipes ./...
	go mod tidy -diff

.PHONY: api
api: $(APIDIFF) ## the Go interface of every module, compared with the last tag, or with main; BASE=commit for another
	scripts/api $(APIDIFF) $(BASE)

.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities in what the programs call, if the database of them can be reached
	scripts/vulnerabilities $(GOVULNCHECK)

.PHONY: format
format: $(GOLANGCI_LINT) ## gofumpt and gci
	$(GOLANGCI_LINT) fmt ./...

.PHONY: tidy
tidy: ## go mod tidy, in every module; the others get the core of this working copy
	go mod tidy
	go run ./internal/modules/tidy

.PHONY: images
images: ## Docker images of the servers from Debian packages, where there is no registry
	./scripts/images

.PHONY: build
build: ## the command line, as bin/sqllock
	CGO_ENABLED=0 go build -o bin/sqllock ./cmd/sqllock

.PHONY: image
image: ## a Docker image of the command line, as sqllock
	CGO_ENABLED=0 GOOS=linux go build -ldflags '-s -w' -o bin/image/linux/$(ARCH)/sqllock ./cmd/sqllock
	cp /etc/ssl/certs/ca-certificates.crt bin/image/certificates.pem
	docker build -q -t sqllock --build-arg TARGETPLATFORM=linux/$(ARCH) -f Dockerfile bin/image

.PHONY: release-check
release-check: $(GORELEASER) $(SYFT) ## all files of a release, in dist, and what they contain; publishes nothing
	PATH=$(CURDIR)/bin:$$PATH $(GORELEASER) release --snapshot --clean --skip=docker
	scripts/check-release

.PHONY: release
release: $(GORELEASER) $(SYFT) ## builds and publishes the version whose tag is checked out (scripts/tag v0.1.0)
	tag=$$(git describe --exact-match --match 'v*') && scripts/release-notes $$tag >bin/notes.md && \
		PATH=$(CURDIR)/bin:$$PATH GORELEASER_CURRENT_TAG=$$tag $(GORELEASER) release --clean --release-notes bin/notes.md

.PHONY: captures
captures: build ## what sqllock ls, watch and doctor show, in the documents
	go run ./internal/captures

.PHONY: site
site: ## the documents as a site, in bin/site; a broken link fails
	scripts/site

.PHONY: clean
clean: ## what the other targets made
	rm -rf bin dist certificates.pem

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	mv bin/golangci-lint $@

$(APIDIFF):
	GOBIN=$(CURDIR)/bin go install golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4
	mv bin/apidiff $@

$(GOVULNCHECK):
	GOBIN=$(CURDIR)/bin go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
	mv bin/govulncheck $@

# Both take some minutes to build. goreleaser finds syft by its name.
$(GORELEASER):
	GOBIN=$(CURDIR)/bin go install github.com/goreleaser/goreleaser/v2@v2.16.0
	mv bin/goreleaser $@

$(SYFT):
	GOBIN=$(CURDIR)/bin go install github.com/anchore/syft/cmd/syft@v1.57.0
	mv bin/syft $@
	ln -sf $(notdir $@) bin/syft
