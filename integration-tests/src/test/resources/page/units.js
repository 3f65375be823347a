// Facts about the functions of the web page's script, run after it in the same document. WebPageIT reads the outcome.
'use strict';
const wrong = [];
let facts = 0;
function is(name, actual, expected) {
  facts++;
  const [was, should] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (was !== should) wrong.push(`${name}: ${was} instead of ${should}`);
}
const ticksOf = most => [scale(most).ticks.map(tick => tick.text).join(' '), scale(most).unit];
const MIB = 1048576;

// One unit for an axis, and round ticks that reach its greatest value.
is('ticks of bytes', ticksOf(131), ['0 50 100 150', 'B/s']);
is('ticks of few bytes', ticksOf(3), ['0 1 2 3', 'B/s']);
is('ticks of a part of a byte', ticksOf(0.4), ['0 1', 'B/s']);
is('ticks of KiB', ticksOf(1024), ['0.0 0.5 1.0', 'KiB/s']);
is('ticks of MiB', ticksOf(131 * MIB), ['0 50 100 150', 'MiB/s']);
is('ticks just below a unit', ticksOf(1023 * MIB), ['0 500 1,000 1,500', 'MiB/s']);
is('ticks of GiB', ticksOf(1.6 * 1024 * MIB), ['0.0 0.5 1.0 1.5 2.0', 'GiB/s']);
is('ticks of nothing', ticksOf(0), ['0.0 0.5 1.0', 'MiB/s']);
for (let most = 0.01; most < 1e19; most *= 1.37) {
  const axis = scale(most);
  is(`ticks of ${most}`, [axis.top >= most, axis.ticks.length >= 2 && axis.ticks.length <= 6, new Set(axis.ticks.map(tick => tick.text)).size === axis.ticks.length], [true, true, true]);
}
is('values have the unit of their axis', [0, 131, 90 * MIB, 131 * MIB].map(scale(131 * MIB).text), ['0.0 MiB/s', '< 0.1 MiB/s', '90.0 MiB/s', '131.0 MiB/s']);

// Ticks of time are round in the local time zone, also where it is not whole hours from UTC.
const noon = new Date(2026, 2, 2, 12, 0, 17).getTime();
const labels = (seconds, width) => times(noon - 1000 * seconds, noon, width).map(tick => tick.text).join(' ');
is('five minutes', labels(300, 400), '11:56 11:57 11:58 11:59 12:00');
is('a quarter of an hour', labels(900, 400), '11:50 11:55 12:00');
is('an hour', labels(3600, 400), '11:10 11:20 11:30 11:40 11:50 12:00');
is('an hour, narrow', labels(3600, 230), '11:15 11:30 11:45 12:00');
is('half a minute', labels(30, 400), '11:59:50 11:59:55 12:00:00 12:00:05 12:00:10 12:00:15');

// Shares have gaps where nothing was read.
is('shares', shares({ from: 0, to: 5, values: [3, 1] }), { from: 0, to: 5, values: [0.75, 0.25] });
is('shares of nothing', shares({ from: 0, to: 5, values: [0, 0] }).values, null);
const same = value => value, point = (from, to, values) => ({ from, to, values });
is('outline of neighbours', outline([point(0, 5, [1, 2]), point(5, 10, [3, 4])], 1, same, same), 'M0.0,3.0L5.0,3.0L5.0,7.0L10.0,7.0L10.0,3.0L5.0,3.0L5.0,1.0L0.0,1.0Z');
is('outline with a gap', outline([point(0, 5, [1]), point(5, 10, null), point(10, 15, [2])], 0, same, same).split('M').length - 1, 2);
is('outline without points', outline([point(0, 5, null)], 0, same, same), '');

const past = { tiers: ['ssd:/a'], samples: [
  { timeMillis: 0, tiers: [0], fetched: 0, missed: 0 }, { timeMillis: 100, tiers: [50], fetched: 0, missed: 0 },
  { timeMillis: 5100, tiers: [1050], fetched: 500, missed: 5 }, { timeMillis: 10100, tiers: [1050], fetched: 400, missed: 5 }] };
is('rates', rates(past), [point(100, 5100, [200, 100, 1]), point(5100, 10100, [0, 0, 0])]);

// Numbers.
is('decimals', [0, 0.04, 0.06, 12.34, 1234.5].map(n => decimal(n, 1)), ['0.0', '< 0.1', '0.1', '12.3', '1,234.5']);
is('latencies', [0, 0.0001, 0.0123, 4.567, 45.67, 4567].map(millis), ['–', '< 0.001', '0.012', '4.57', '45.7', '4,567']);
is('sizes', [0, 131, 1023.96 * 1024, 1.5 * MIB].map(size), ['0 B', '131 B', '1.0 MiB', '1.5 MiB']);
is('spans', [59, 60, 3725, 90000].map(span), ['59 s', '1 min', '1 h 2 min', '1 d 1 h']);
is('control characters', clean('a\u202eb\u001bc'), 'a%E2%80%AEb%1Bc');

document.body.replaceChildren(el('pre', { id: 'facts' }, `${facts} facts, ${wrong.length} wrong\n` + wrong.join('\n')));
