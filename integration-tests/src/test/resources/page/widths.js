// Notes, in attributes of the document that has this one in a frame, how wide the page is, what of it needs scrolling,
// how many cards have a value after a second, and how far the last one ends from the edge.
'use strict';
setTimeout(() => {
  const cards = [...document.querySelectorAll('.tile')], known = cards.filter(card => !card.textContent.includes('…'));
  const left = document.getElementById('tiles').getBoundingClientRect().right - cards[cards.length - 1].getBoundingClientRect().right;
  parent.document.documentElement.dataset.cards = `${known.length} of ${cards.length}, ${Math.round(left)} px from the edge`;
}, 1000);
setTimeout(() => {
  const wide = [...document.querySelectorAll('main *')].filter(one => one.scrollWidth > one.clientWidth && one.clientWidth > 0 && getComputedStyle(one).display !== 'inline');
  parent.document.documentElement.dataset.widths = `${document.documentElement.scrollWidth} of ${innerWidth}; too wide: ${wide.map(one => one.id || one.className || one.tagName).join(', ') || 'none'}`;
}, 6000);
