'use strict';

// Numbers, spans of time, dates and states, as people read them. Times are microseconds, as everywhere in this page.

const number = (value) => value.toLocaleString('en');
const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`;
const percent = (part, whole) => (whole === 0 ? '' : `${Math.round((part / whole) * 1000) / 10} %`);

// Three digits are plenty: 640us, 1.27s, 2h10m.
function span(us) {
  if (us <= 0) return '0s';
  if (us < 999.5) return `${Math.round(us)}us`;
  if (us < 999500) return `${Number((us / 1e3).toPrecision(3))}ms`;
  if (us < 60e6) return `${Number((us / 1e6).toPrecision(3))}s`;
  const seconds = Math.round(us / 1e6);
  const parts = [
    [Math.floor(seconds / 3600), 'h'],
    [Math.floor((seconds % 3600) / 60), 'm'],
    [seconds % 60, 's'],
  ];
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join('');
}

const iso = (us) => new Date(us / 1000).toISOString();
const dateAndTime = (us) => `${iso(us).slice(0, 10)} ${iso(us).slice(11, 19)} UTC`;
const clock = (us) => `${iso(us).slice(11, 23)}Z`;

// How a state looks without colour, and what it is called. The same letters stand in timeline, grids, graph and tables.
const looks = {
  succeeded: {glyph: '✓', words: 'done'},
  rescued: {glyph: '↻', words: 'done after a failure'},
  failed: {glyph: '✕', words: 'failed'},
  dead: {glyph: '✉', words: 'failed, kept as a dead letter'},
  lost: {glyph: '?', words: 'lost: the engine died'},
  running: {glyph: '▶', words: 'running'},
  active: {glyph: '▶', words: 'under way'},
  preparing: {glyph: '▶', words: 'being prepared'},
  waiting: {glyph: '…', words: 'waiting'},
  paused: {glyph: '‖', words: 'paused'},
  canceled: {glyph: '–', words: 'cancelled'},
  skipped: {glyph: '»', words: 'skipped'},
  unreachable: {glyph: '⊘', words: 'cannot be reached'},
  untouched: {glyph: '·', words: 'not begun'},
  pending: {glyph: '·', words: 'not begun'},
};
const glyphOf = (state) => (looks[state] || looks.untouched).glyph;
const wordsOf = (state) => (looks[state] || {words: state}).words;
