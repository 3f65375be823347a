// Notes, in an attribute of the document that has this one in a frame, how wide the page is and what of it needs scrolling.
'use strict';
setTimeout(() => {
  const wide = [...document.querySelectorAll('main *')].filter(one => one.scrollWidth > one.clientWidth && one.clientWidth > 0 && getComputedStyle(one).display !== 'inline');
  parent.document.documentElement.dataset.widths = `${document.documentElement.scrollWidth} of ${innerWidth}; too wide: ${wide.map(one => one.id || one.className || one.tagName).join(', ') || 'none'}`;
}, 6000);
