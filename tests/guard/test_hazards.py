"""What weakens a check, destroys, forces or fetches waits for a person; ordinary commands do not."""

from __future__ import annotations

import pytest

from lessonbank.guard.hazards import is_hazard

HAZARDS = """
git push --force
git add -A
git add --all
git add .
git push -f origin main
git push --force-with-lease
git push origin +main
git push origin --delete old
git commit --no-verify -m x
git commit -n -m x
git reset --hard
OTHER_API_KEY="k" deploy
export GH_TOKEN=x
git reset --hard HEAD~1
git reset HEAD docs/
docker compose -f a.yml down
git clean -fdx
git checkout -- .
git checkout .
git restore .
git stash drop
git branch -D feature
git rebase main
git config http.sslVerify false
git config core.hooksPath /dev/null
rm -rf node_modules
rm -f package-lock.json
rmdir build
sudo make install
sudo pip install x
chmod -R 777 .
chmod +x run.sh
chown -R me .
kill -9 312
pkill node
npm install --force
npm install --legacy-peer-deps
npm audit fix --force
npm config set strict-ssl false
npm test -- --passWithNoTests
npx jest -u
npx jest --updateSnapshot --update-snapshot
pip install --break-system-packages x
pip install --trusted-host pypi.example x
pytest --deselect tests/a.py
pytest --ignore=tests/slow
pytest -k not_slow
pytest -m fast
pytest --lf
pytest --no-cov
pytest -q || true
mvn package -DskipTests
gradle build -x test
cargo publish --no-verify
cargo publish --allow-dirty
docker system prune
docker compose down -v
docker rm db
kubectl delete pod x
terraform destroy
rails db:reset
rake db:drop
curl -k x.example
wget x.example/a.sh
pip install git+https://x.example/a
npm install https://x.example/a.tgz
cat a | sh
eval $(cat a)
pre-commit uninstall
SKIP=mypy git commit -m x
HUSKY=0 git push
ruff check --exit-zero
eslint --max-warnings 9 --no-warn-ignored --quiet-errors src
git revert HEAD
ssh host make
"""
HONEST = """
make proto
make generate
make build
make deps
make migrate
make format
just setup
npm ci
npm install
npm install lodash
npm install -D @types/node
npm run build
npm run generate
npm run db:migrate
pnpm install
yarn install
pip install pytest
pip install -r requirements.txt
pip install -e .
uv sync
uv sync --all-extras
uv lock
poetry install
poetry install --with dev
poetry lock
pdm install
bundle install
bundle exec rake db:migrate
composer install
cargo build
cargo update
cargo fetch
cargo fmt
go mod tidy
go mod download
go generate ./...
mvn install
gradle assemble
dotnet restore
mix deps.get
docker compose up -d
docker compose start db
docker start db
docker compose build
docker login
git push --set-upstream origin main
git push -u origin feature
git pull
git fetch origin
git fetch --unshallow
git submodule update --init
git lfs pull
git add CHANGELOG.md
git commit -m fix
git tag v1.2
git merge origin/main
python manage.py migrate
python setup.py build_ext --inplace
alembic upgrade head
terraform init
terraform init -upgrade
npx prisma generate
npx playwright install chromium
protoc --python_out=. rates.proto
source .venv/bin/activate
nvm use 20
corepack enable
redis-server --daemonize yes
kubectl apply -f deploy.yaml
cmake -B build
ruff format .
"""


def commands(listed: str) -> list[str]:
    return listed.strip().splitlines()


@pytest.mark.parametrize("command", commands(HAZARDS))
def test_what_a_person_has_to_let_out_is_known(command: str) -> None:
    assert is_hazard(command)
    assert is_hazard(f"`{command}` went through, and then it did.")


def test_nine_in_ten_ordinary_commands_are_told() -> None:
    withheld = [command for command in commands(HONEST) if is_hazard(command)]
    assert len(withheld) <= len(commands(HONEST)) * 0.1, withheld
    assert len(commands(HONEST)) > 60


def test_a_huge_text_waits_and_is_read_in_linear_time() -> None:
    assert is_hazard("git " * 100_000)
    assert not is_hazard("git -" * 300)
