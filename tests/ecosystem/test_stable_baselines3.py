"""stable-baselines3: agents of every kind learn in small worlds, are saved and loaded."""

import pytest
import torch

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
import gymnasium
import numpy as np
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

SMALL = {"net_arch": [16, 16]}
AGENTS = {
    "A2C": (A2C, "CartPole-v1", {"n_steps": 8}),
    "A2C, continuous": (A2C, "Pendulum-v1", {"n_steps": 8, "use_sde": True}),
    "DDPG": (DDPG, "Pendulum-v1", {"learning_starts": 40, "batch_size": 16}),
    "DQN": (DQN, "CartPole-v1", {"learning_starts": 40, "batch_size": 16, "train_freq": 2, "target_update_interval": 30}),
    "PPO": (PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
    "SAC": (SAC, "Pendulum-v1", {"learning_starts": 40, "batch_size": 16}),
    "TD3": (TD3, "Pendulum-v1", {"learning_starts": 40, "batch_size": 16}),
}


@pytest.mark.parametrize("name", AGENTS)
def test_agents(figures, tmp_path, name):
    kind, world, options = AGENTS[name]
    torch.set_num_threads(1)
    agent = kind("MlpPolicy", world, seed=3, device="cpu", policy_kwargs=dict(SMALL), **options)
    agent.learn(total_timesteps=96)
    state = {key: value for key, value in agent.policy.state_dict().items() if key.endswith(("weight", "bias"))}
    figures.check("weights", state)
    seen = agent.observation_space.__class__(-1, 1, agent.observation_space.shape, seed=5).sample().astype(np.float32)
    figures.check("action", agent.predict(seen, deterministic=True)[0])
    agent.save(tmp_path / "agent")
    other = kind.load(tmp_path / "agent", device="cpu")
    assert np.array_equal(other.predict(seen, deterministic=True)[0], agent.predict(seen, deterministic=True)[0])


def test_several_worlds_and_evaluation(figures):
    worlds = make_vec_env("CartPole-v1", n_envs=3, seed=1)
    agent = PPO("MlpPolicy", worlds, seed=1, n_steps=16, batch_size=16, n_epochs=2, device="cpu", policy_kwargs=dict(SMALL))
    agent.learn(total_timesteps=96)
    mean, spread = evaluate_policy(agent, make_vec_env("CartPole-v1", n_envs=1, seed=7), n_eval_episodes=3)
    figures.check("evaluation", [float(mean), float(spread)])


class Pictures(gymnasium.Env):
    """Random pictures; the reward is for naming the brighter half."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def _picture(self):
        return self.np_random.integers(0, 255, (36, 36, 1), dtype=np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.shown = self._picture()
        return self.shown, {}

    def step(self, action):
        bright = int(self.shown[18:].mean() > self.shown[:18].mean())
        self.shown = self._picture()
        return self.shown, float(action == bright), bool(self.np_random.random() < 0.1), False, {}


def test_pictures(figures):
    agent = PPO("CnnPolicy", Pictures(), seed=2, n_steps=16, batch_size=8, n_epochs=1, device="cpu")
    agent.learn(total_timesteps=32)
    figures.check("last layer", agent.policy.action_net.weight, tolerance=1e-3)
