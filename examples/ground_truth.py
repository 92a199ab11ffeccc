"""An environment that scores each run: the reward is ground truth and beats any judge.

python examples/ground_truth.py
"""

import random

import lessonbank

PORTS = {"staging": "8081", "production": "8443"}


def run_agent(site: str, memory: str, rng: random.Random) -> tuple[list[dict[str, str]], float]:
    """A toy agent: it guesses a port, but none of which its memory says that it failed."""
    untried = [port for port in PORTS.values() if f"`connect {port}` failed" not in memory]
    port = rng.choice(untried)
    opened = port == PORTS[site]
    messages = [
        {"role": "user", "content": f"Open the dashboard of the {site} site"},
        {"role": "assistant", "content": f"connect {port}"},
        {"role": "user", "content": "connected" if opened else "error: connection refused"},
    ]
    return messages, 1.0 if opened else 0.0


def main() -> float:
    """Play twenty tasks; returns the mean reward of the last ten."""
    rng, rewards = random.Random(7), list[float]()
    with lessonbank.connect(
        ":memory:",
        scope="docs/reward",
        embedder="lexical",
        retrieval=lessonbank.Retrieval(limit=1),  # this agent does not read which site a lesson is about
        evidence=lessonbank.Evidence(holdout=None),
    ) as bank:
        for number in range(20):
            site = ("staging", "production")[number % 2]
            recall = bank.retrieve(f"Open the dashboard of the {site} site")
            messages, reward = run_agent(site, recall.text, rng)
            bank.learn(messages, recall=recall, reward=reward)
            rewards.append(reward)
    print("first ten:", sum(rewards[:10]) / 10, "last ten:", sum(rewards[10:]) / 10)
    return sum(rewards[10:]) / 10


if __name__ == "__main__":
    main()
