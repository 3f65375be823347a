"""A discrete-event simulation: events in the order of their times, and stations where jobs wait their turn."""

import heapq


class Simulation:
    """The clock, in seconds, and what is to happen. Events of the same time happen in the order in which they were planned."""

    def __init__(self):
        self.now = 0.0
        self.events = []
        self.planned = 0

    def at(self, time, action, *arguments):
        """Plans an event; what is planned for the past is an error of the model."""
        if time < self.now:
            raise ValueError(f"planned for {time}, and it is {self.now}")
        self.planned += 1
        heapq.heappush(self.events, (time, self.planned, action, arguments))

    def run(self):
        """Until nothing is planned any more; the time of the last event."""
        events, pop = self.events, heapq.heappop
        while events:
            self.now, _, action, arguments = pop(events)
            action(*arguments)
        return self.now


class Station:
    """So many equal servers that take jobs in the order in which they come: cores, one direction of a link, a metadata server.

    The jobs' durations are known when they come, so that the end of each is known at once and no event is spent on waiting.
    """

    # INVARIANT: jobs come in the order of time, or the ends are those of another order.

    def __init__(self, servers=1):
        self.free = [0.0] * servers
        self.busy = 0.0

    def serve(self, now, seconds):
        """A job that comes now and takes so long; when it is done. What takes no time does not wait."""
        if not seconds:
            return now
        free = self.free[0]
        end = (now if now > free else free) + seconds
        heapq.heapreplace(self.free, end)
        self.busy += seconds
        return end

    def utilisation(self, seconds):
        """The share of the servers' time that was used until then."""
        return self.busy / (seconds * len(self.free)) if seconds else 0.0
