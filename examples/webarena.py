"""WebArena as in the paper: a web agent of BrowserGym, a bank for each site, the reward of the task as the truth.

python examples/webarena.py          (offline: a scripted site and a scripted agent)

For the real thing: `gym.make("browsergym/webarena.310")` for `Shop`, and your agent, or AgentLab's, for `Scripted`.
"""

from typing import Any
from urllib.parse import urlsplit

import lessonbank
from lessonbank.adapters.browsergym import ReasoningBankAgent
from lessonbank.adapters.following import scope_of

UNMEASURED = lessonbank.Evidence(holdout=None)  # in earnest leave it out: what is withheld shows whether memory helps


class Shop:
    """A site with the observations of BrowserGym's. The orders stand on two pages."""

    def __init__(self, goal: str) -> None:
        self.goal, self.page = goal, "Orders, page 1 of 2: [12] link 'next'"

    def reset(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.observation(), {}

    def observation(self) -> dict[str, Any]:
        goal = ({"type": "text", "text": self.goal},)
        return {"goal": self.goal, "goal_object": goal, "url": "http://shop.example/orders", "axtree_txt": self.page}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.page = "Orders, page 2 of 2: 14 orders" if action == "click('12')" else self.page
        return self.observation(), float("14" in action), action.startswith("send"), False, {}


class Scripted:
    """Looks at the second page only if a lesson says so, as a model might."""

    def get_action(self, obs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if "14 orders" in obs["axtree_txt"]:
            return "send_msg_to_user('14')", {"think": "Now I know."}
        shown = " ".join(part["text"] for part in obs["goal_object"])
        if "second page" in shown:
            return "click('12')", {"think": "There is another page."}
        return "send_msg_to_user('10')", {"think": "I count what I see."}


def main() -> list[float]:
    """The rewards of a task before and after somebody wrote a lesson about the site."""
    rewards: list[float] = []
    with lessonbank.connect(":memory:", scope="web", embedder="lexical", evidence=UNMEASURED) as bank:
        for goal in ("How many orders are there?", "How many orders are there in all?"):
            agent = ReasoningBankAgent(Scripted(), bank, scope=lambda obs: scope_of("web", urlsplit(obs["url"]).netloc))
            env = agent.watch(Shop(goal))
            (obs, _), reward, is_over = env.reset(), 0.0, False
            while not is_over:
                action, _ = agent.get_action(obs)
                obs, reward, is_over, _, _ = env.step(action)
            rewards.append(reward)
            shop = bank.scoped(scope_of("web", "shop.example"))
            shop.lessons.add(title="Open the second page", content="Count orders there, too.", task=goal, by="Ana")
    return rewards


if __name__ == "__main__":
    print(main())
