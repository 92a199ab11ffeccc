"""WebArena as in the paper: a web agent of BrowserGym, a bank for each site, the reward of the task as the truth.

python examples/webarena.py          (offline: a scripted site and a scripted agent)

For the real thing: `gym.make("browsergym/webarena.310")` for `Shop`, and your agent, or AgentLab's, for `Scripted`.
"""

from typing import Any

import lessonbank
from lessonbank.adapters.browsergym import ReasoningBankAgent
from lessonbank.adapters.following import scope_of


class Shop:
    """A site with the observations of BrowserGym's. The orders stand on two pages."""

    def __init__(self, goal: str) -> None:
        self.goal, self.page = goal, "Orders, page 1 of 2: [12] link 'next'"

    def observation(self) -> dict[str, Any]:
        goal = [{"type": "text", "text": self.goal}]
        return {"goal_object": goal, "url": "http://shop.example/orders", "axtree_txt": self.page}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.page = "Orders, page 2 of 2: 14 orders" if action == "click('12')" else self.page
        return self.observation(), float("14" in action), action.startswith("send"), False, {}


class Scripted:
    """Looks at the second page only if a lesson says so."""

    def get_action(self, obs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if "14 orders" in obs["axtree_txt"]:
            return "send_msg_to_user('14')", {}
        reads_on = "second page" in str(obs["goal_object"])
        return ("click('12')" if reads_on else "send_msg_to_user('10')"), {}


def main() -> list[float]:
    rewards: list[float] = []  # before and after somebody wrote a lesson about the site
    with lessonbank.connect(":memory:", scope="web", evidence=lessonbank.Evidence(holdout=None)) as bank:
        for goal in ("How many orders are there?", "How many orders are there in all?"):
            agent = ReasoningBankAgent(Scripted(), bank, scope=lambda obs: scope_of("web", obs["url"].split("/")[2]))
            env = agent.watch(Shop(goal))
            obs, reward, is_over = env.observation(), 0.0, False  # `obs, _ = env.reset()` with gymnasium
            while not is_over:
                action, _ = agent.get_action(obs)
                obs, reward, is_over, _, _ = env.step(action)
            if not rewards:
                shop = bank.scoped(scope_of("web", "shop.example")).lessons
                shop.add(title="Open the second page", content="Count there, too.", task=goal, by="Ana")
            rewards.append(reward)
    return rewards


if __name__ == "__main__":
    print(main())
