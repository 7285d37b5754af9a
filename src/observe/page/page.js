// Puts the page together.

function renderHead(model) {
  const {head} = model;
  const statusState = head.is_open ? (head.status === 'paused' ? 'paused' : 'running') : head.status;
  const fact = (name, ...value) => make('div', {class: 'fact'}, make('dt', {}, name), make('dd', {}, value));
  const tile = (value, words, detail = '') =>
    make(
      'div',
      {class: 'tile'},
      make('b', {}, value),
      make('span', {}, words),
      detail === '' ? null : make('small', {}, detail),
    );
  const share = (part) => (head.work_retried === 0 ? '' : percent(part, head.work_retried));
  const average = head.work_retried === 0 ? '0' : String(Math.round((head.retries / head.work_retried) * 10) / 10);
  const begun = model.steps.reduce(
    (sum, step) => sum + step.done + step.failed + step.running + step.waiting + step.canceled,
    0,
  );
  const elapsed = (head.is_open ? head.now : head.ended || model.to) - head.created;
  const facts = [
    fact('Run', make('code', {}, head.run)),
    fact('Created', dateAndTime(head.created)),
    head.ended === null ? fact('As of', dateAndTime(head.now)) : fact('Ended', dateAndTime(head.ended)),
    fact(head.is_open ? 'Since' : 'Elapsed', span(elapsed)),
  ];
  if (head.key) facts.push(fact('Key', make('span', {class: 'outside'}, head.key)));
  byId('head').replaceChildren(
    make(
      'div',
      {class: 'masthead', 'data-state': statusState},
      make('h1', {class: 'outside'}, head.flow),
      badge(statusState, head.status_words),
    ),
    make('dl', {class: 'facts'}, facts),
    make(
      'div',
      {class: 'tiles', role: 'group', 'aria-label': 'Retries'},
      tile(number(head.attempts), 'attempts', counted(model.steps.length, 'step')),
      tile(number(head.retries), 'retries in all', `${average} on average per work with retries`),
      tile(number(head.work_retried), 'work with retries', `of ${counted(begun, 'piece')} of work`),
      tile(number(head.succeeded_after), 'succeeded after retry', share(head.succeeded_after)),
      tile(number(head.failed_after), 'failed after all retries', share(head.failed_after)),
      tile(span(head.waited), 'spent waiting', 'between attempts'),
      tile(
        number(head.recoveries),
        'recoveries',
        head.recoveries === 0 ? 'the engine never died' : 'the engine had died',
      ),
    ),
  );
  const note = (words) => byId('head').append(make('p', {class: 'note'}, words));
  if (head.is_left_alone) note('Nobody is working on this run. reprise resume goes on with it.');
  else if (head.is_open) note('This run was not over when the page was made.');
  if (head.events_left_out > 0) {
    note(
      `The numbers are of the whole run; everything else is about its first ${counted(model.events.length, 'event')}. ` +
        `${number(head.events_left_out)} more: reprise events.`,
    );
  }
  document.title = `${head.flow}: ${head.status} – Reprise`;
  byId('foot').textContent = `Made by reprise show --html on ${dateAndTime(head.now)}. Times are UTC.`;
}

function listenForTheme() {
  const choices = ['auto', 'light', 'dark'];
  const element = byId('theme');
  const set = (choice) => {
    document.documentElement.dataset.theme = choice;
    element.textContent = `Colours: ${choice}`;
  };
  set('auto');
  element.addEventListener('click', () =>
    set(choices[(choices.indexOf(document.documentElement.dataset.theme) + 1) % choices.length]),
  );
}

function start() {
  const model = new Model(JSON.parse(byId('data').textContent));
  const open = (work) => openStory(model, work);
  listenForTheme();
  renderHead(model);
  new Timeline(model, open).render();
  new Items(model, open).render();
  new Graph(model).render();
  renderFailures(model);
  renderStatistics(model);
  new Events(model).render();
  listenForTips();
  addEventListener('beforeprint', () => {
    for (const details of document.querySelectorAll('details')) details.open = true;
  });
}

start();
