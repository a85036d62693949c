"""
Better than what was done so far?
=================================

Practice is rarely a rule: the log shows that the second clerk was called now and then, more often
when the queue was long. ``practice`` estimates these habits, with doubt where little was seen, and
``compare`` puts them and a plan through the same posterior draws.
"""

import matplotlib.pyplot as plt
import numpy as np

import brmdp

LONGEST = 10
CHANGE = np.array([[0.1, 0.3, 0.25, 0.2, 0.15], [0.3, 0.3, 0.2, 0.15, 0.05]])  # −2 to 2, by clerks
rng = np.random.default_rng(0)
queue, second = [3], []
for _ in range(300):
    second.append(int(rng.random() < 0.1 + 0.08 * queue[-1]))
    queue.append(int(np.clip(queue[-1] + rng.choice(5, p=CHANGE[second[-1]]) - 2, 0, LONGEST)))

log = brmdp.Transitions(queue[:-1], second, queue[1:], n_states=11, n_actions=2)
learned = brmdp.learn_prior(log, reach=2, draws=1000, rng=0)
waiting = -np.arange(LONGEST + 1.0)
rewards = np.stack([waiting, waiting - 1.5], axis=1)  # a second clerk costs 1.5

# %%
# Plan with the belief that is fast, prove with the one that leaves nothing out.

belief = learned.belief()
plan = brmdp.plan(learned.posterior(), rewards, 0.95, risk=brmdp.Quantile(0.2), start=3)
done = brmdp.practice(queue[:-1], second, n_states=11, n_actions=2)
print(brmdp.compare(belief, rewards, 0.95, plan.policy, done, start=3, rng=0))

drawn = brmdp.values_in_draws(
    belief, rewards, 0.95, {"plan": plan.policy, "practice": done}, start=3, draws=4000, rng=0
)
gain = drawn.values[:, 0] - drawn.values[:, 1]
figure, (above, below) = plt.subplots(2, figsize=(5.2, 5.0))
above.bar(np.arange(11), done.mean[:, 1], color="#bbbbbb", label="so far: share of hours")
above.plot(np.arange(11), plan.policy, "s", color="#0072B2", label="plan: 1 = call")
above.set(title="Call the second clerk?", xlabel="queue", xticks=range(11), yticks=[0.0, 0.5, 1.0])
above.set_ylim(-0.05, 1.6)
above.legend(loc="upper left", ncols=2, handlelength=1.5)
below.hist(gain, bins=60, density=True, color="#bbbbbb")
below.axvline(0.0, color="black", linestyle="--")
below.set(title="Gain in posterior draws", xlabel="discounted cost saved", ylabel="density")
