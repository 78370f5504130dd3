"""A process may stay at a signal that its children heed."""

import os
import signal
import subprocess
import sys

from intloom.common.signals import ignore_signals


def test_children_heed_what_their_parent_stays_at():
    before = signal.getsignal(signal.SIGUSR1)
    try:
        ignore_signals(signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"]) as child:
            child.send_signal(signal.SIGUSR1)
            assert child.wait(timeout=20) == -signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR1, before)
