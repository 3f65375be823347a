"""The simulator against what queueing theory says in closed form. Seeds are fixed; the tolerances are several times what they scatter."""

import math
import random
import unittest

from simulation import Simulation, Station


def mean_sojourn(servers, load, service, jobs=300_000, seed=7):
    """Of jobs that come as a Poisson process to servers that take 1 on average: mean time from coming to leaving, and the station's use."""
    generator, simulation, station = random.Random(seed), Simulation(), Station(servers)
    total = 0.0

    def come(left):
        nonlocal total
        total += station.serve(simulation.now, service(generator)) - simulation.now
        if left > 1:
            simulation.at(simulation.now + generator.expovariate(load * servers), come, left - 1)

    simulation.at(0.0, come, jobs)
    ended = simulation.run()
    return total / jobs, station.utilisation(ended)


class SimulationTest(unittest.TestCase):
    def test_run_eventsOutOfOrder_happenInOrderOfTimeThenOfPlanning(self):
        simulation, seen = Simulation(), []
        for time, name in [(2, "c"), (1, "a"), (2, "d"), (1, "b")]:
            simulation.at(time, seen.append, name)
        self.assertEqual(2, simulation.run())
        self.assertEqual(["a", "b", "c", "d"], seen)

    def test_at_past_isAnError(self):
        simulation = Simulation()
        simulation.at(1, lambda: simulation.at(0.5, print))
        with self.assertRaises(ValueError):
            simulation.run()


class StationTest(unittest.TestCase):
    def test_serve_oneServerOverloaded_jobsEndOneAfterTheOther(self):
        station = Station()
        self.assertEqual([3, 6, 9, 12], [station.serve(time, 3) for time in range(4)])
        self.assertEqual(1, station.utilisation(12))

    def test_serve_threeServers_threeAtATime(self):
        station = Station(3)
        self.assertEqual([2, 2, 2, 4, 4, 4, 6], [station.serve(0, 2) for _ in range(7)])

    def test_serve_noWork_doesNotWait(self):
        station = Station()
        station.serve(0, 5)
        self.assertEqual(1, station.serve(1, 0))

    def test_serve_exponential_isMM1(self):
        for load in (0.3, 0.7, 0.8):
            sojourn, used = mean_sojourn(1, load, lambda generator: generator.expovariate(1))
            self.assertAlmostEqual(1, sojourn * (1 - load), delta=0.05)
            self.assertAlmostEqual(load, used, delta=0.01)

    def test_serve_constant_isMD1(self):
        for load in (0.3, 0.7, 0.9):
            sojourn, _ = mean_sojourn(1, load, lambda generator: 1)
            self.assertAlmostEqual(1, (sojourn - 1) / (load / (2 * (1 - load))), delta=0.05)

    def test_serve_fourServers_isMMc(self):
        servers, load = 4, 0.8
        offered = servers * load
        waiting = offered**servers / math.factorial(servers) / (1 - load)
        erlang_c = waiting / (waiting + sum(offered**k / math.factorial(k) for k in range(servers)))
        sojourn, _ = mean_sojourn(servers, load, lambda generator: generator.expovariate(1))
        self.assertAlmostEqual(1, sojourn / (1 + erlang_c / (servers * (1 - load))), delta=0.05)


if __name__ == "__main__":
    unittest.main()
