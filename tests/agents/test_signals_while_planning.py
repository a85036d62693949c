"""A signal that arrives anywhere in a compiled plan, as Ctrl-C does.

This runs in a process of its own, which a crash would end.
"""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import signal
import numpy as np
import brmdp

def made():
    rng = np.random.default_rng(1)
    belief, rewards = brmdp.DirichletBelief.uniform(8, 3), rng.random((8, 3, 8)).round(1)
    rule = brmdp.agents.EveryStep()
    return brmdp.Agent(belief, rewards, 0.95, risk=brmdp.Quantile(0.2), restart=rule, rng=3)

def stop(*arguments):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, stop)
disturbed, calm = made(), made()
# the kernels of first plans and of following ones are loaded before the first signal
for agent in (disturbed, calm):
    agent.observe(0, agent.act(0), 0)
    agent.act(0)
rng = np.random.default_rng(0)
state = stopped = 0
for _ in range(600):
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 8e-4))
            action = disturbed.act(state)
            signal.setitimer(signal.ITIMER_REAL, 0)
            break
        except KeyboardInterrupt:
            stopped += 1
    following = int(rng.integers(8))
    assert action == calm.act(state)
    assert np.array_equal(disturbed._record.plan.memory.facts, calm._record.plan.memory.facts)
    for agent in (disturbed, calm):
        agent.observe(state, action, following)
    state = following
assert stopped > 0
print("done")
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals")
def test_an_agent_survives_signals_at_any_time():
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.strip() == "done"
