"""What benchmarks/first-read says of the figures of its rounds."""

import unittest

from loading import load


class FirstReadTest(unittest.TestCase):
    def setUp(self):
        self.module = load("first-read")

    def ways(self, kernel, delivered):
        return {"source": [1000, 1, 0], "daemon": [100, 1, 2], "kernel": [kernel, delivered, 0.5]}

    def test_a_slow_kernel_or_a_byte_that_is_read_twice_misses_a_goal(self):
        sizes = [("1M", 1 << 20), ("1G", 1 << 30)]
        good, slow, twice = self.ways(800, 1.04), self.ways(799, 1), self.ways(900, 1.06)
        found = {"1M": {"memory": slow, "device": twice}, "1G": {"memory": good, "device": good}}
        self.assertEqual(list(self.module.missed(sizes, found)), [])
        found["1G"] = {"memory": slow, "device": twice, "throttled": twice}
        lines = list(self.module.missed(sizes, found))
        often = "the device delivered each byte 1.060 times"
        self.assertEqual(
            lines,
            [
                "1G, memory: less than 0.8 of the source's speed",
                f"1G, device: {often}",
                "1G, throttled: less than 0.99 of the source's speed",
                f"1G, throttled: {often}",
            ],
        )


if __name__ == "__main__":
    unittest.main()
