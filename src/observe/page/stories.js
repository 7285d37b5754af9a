// Stories of work that failed: the attempts of one piece of work as a table, in a dialog or in the list of failures.

const attemptsMax = 200; // in one table
const troubledMax = 200; // pieces of work with a table
const troubledAtFirst = 20; // before somebody asks for the rest

function table(headings, rows, attributes = {}) {
  const cell = (tag, content) =>
    content?.numeric ? make(tag, {class: 'numeric'}, content.value) : make(tag, {}, content);
  return make(
    'table',
    attributes,
    make(
      'thead',
      {},
      make(
        'tr',
        {},
        headings.map((heading) => cell('th', heading)),
      ),
    ),
    make(
      'tbody',
      {},
      rows.map((row) =>
        make(
          'tr',
          {},
          row.map((content) => cell('td', content)),
        ),
      ),
    ),
  );
}

const numeric = (value) => ({numeric: true, value: typeof value === 'number' ? number(value) : value});

// ---- one piece of work ---------------------------------------------------------------------------

function attemptsTable(model, work) {
  const segments = model.segmentsOf(work);
  const attempts = segments.filter((segment) => segment.kind !== 'wait');
  const rows = attempts.slice(0, attemptsMax).map((segment) => {
    const next = segments[segments.indexOf(segment) + 1];
    const wait =
      next && next.kind === 'wait'
        ? [make('b', {}, span(next.delay)), `, ${next.reason}`]
        : [];
    const words = segment.lines.map((line, place) => make('span', {class: place === 0 ? 'line first' : 'line'}, line));
    const left = segment.failure ? segment.failure.left : '';
    if (left !== '')
      words.push(make('details', {class: 'left'}, make('summary', {}, 'What it left behind'), make('pre', {}, left)));
    return [
      numeric(segment.attempt > 0 ? segment.attempt : '–'),
      clock(segment.from),
      numeric(segment.kind === 'refusal' ? '' : span(segment.to - segment.from)),
      make('span', {}, badge(segment.outcome), segment.way ? make('span', {class: 'way'}, `its ${segment.way}`) : null),
      make('span', {class: 'outside'}, words),
      make('span', {}, wait),
    ];
  });
  const box = make(
    'div',
    {class: 'scroll'},
    table(
      [numeric('Attempt'), 'Began', numeric('Took'), 'Outcome', 'What happened, and what was decided', 'Then waited'],
      rows,
      {class: 'attempts'},
    ),
  );
  if (attempts.length <= attemptsMax) return box;
  return make(
    'div',
    {},
    box,
    make(
      'p',
      {class: 'note'},
      `… and ${number(attempts.length - attemptsMax)} more attempts. reprise why lists them all.`,
    ),
  );
}

function openStory(model, work) {
  const dialog = byId('story');
  const close = button('Close', () => dialog.close(), {class: 'quiet'});
  const tip = model.tipOfWork(work);
  dialog.replaceChildren(
    make('div', {class: 'title'}, make('h2', {id: 'story-title', class: 'outside'}, model.nameOf(work)), close),
    make('p', {}, badge(tip.state), ` ${tip.lines[0]}`),
    attemptsTable(model, work),
  );
  dialog.showModal();
  close.focus();
}

// ---- failures ------------------------------------------------------------------------------------

function renderFailures(model) {
  const order = ['failed', 'dead', 'canceled', 'waiting', 'running', 'untouched', 'rescued'];
  const troubled = model.steps
    .flatMap((step) => [...step.works.values()])
    .filter((work) => work.failures > 0);
  const rank = (work) => order.indexOf(work.state);
  troubled.sort((a, b) => rank(a) - rank(b) || a.step.number - b.step.number || a.item - b.item);
  const body = byId('failures-body');
  if (troubled.length === 0) {
    body.replaceChildren(make('p', {class: 'note'}, 'Nothing failed, not even once.'));
    return;
  }
  const isForGood = (work) => ['failed', 'dead'].includes(work.state);
  const forGood = troubled.filter(isForGood).length;
  const mended = troubled.filter((work) => work.state === 'rescued').length;
  const ends = `${number(forGood)} for good, ${number(mended)} made good by a later attempt`;
  body.replaceChildren(
    make('p', {class: 'hint'}, `${counted(troubled.length, 'piece')} of work failed at least once: ${ends}.`),
    ...troubled.slice(0, troubledAtFirst).map((work, place) => trouble(model, work, place < 2)),
  );
  const later = troubled.slice(troubledAtFirst, troubledMax);
  const left = troubled.length - troubledAtFirst - later.length;
  if (later.length === 0) return;
  const more = button(
    `Show ${number(later.length)} more`,
    () => {
      more.replaceWith(...later.map((work) => trouble(model, work, false)));
    },
    {class: 'quiet more'},
  );
  body.append(more);
  const where = 'They are in the grids above, and reprise why tells about each of them.';
  if (left > 0) body.append(make('p', {class: 'note'}, `… and ${number(left)} more beyond those. ${where}`));
}

function trouble(model, work, isOpen) {
  const last = model
    .segmentsOf(work)
    .filter((segment) => segment.failure)
    .pop();
  const details = make(
    'details',
    {class: 'trouble'},
    make(
      'summary',
      {},
      badge(work.state),
      make('b', {class: 'outside'}, model.nameOf(work)),
      make(
        'span',
        {class: 'outside quietly'},
        `${counted(work.attempts, 'attempt')}, last failure: ${last ? last.failure.what : 'not on this page'}`,
      ),
    ),
  );
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(attemptsTable(model, work));
  });
  details.open = isOpen;
  return details;
}
